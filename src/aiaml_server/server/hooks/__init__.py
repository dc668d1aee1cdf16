"""The program that AI clients start at events, to show memories that nobody asked for."""
