"""The program that AI clients start at events, so that memories appear without being asked for."""
