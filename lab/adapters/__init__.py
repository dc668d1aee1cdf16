"""One file for each server; copy one of them for yours, and `python -m lab run --servers NAME`."""
