"""The memory directory, and files about it in the user's state and cache directories."""
