"""The directory on disk: its files, and what lies beside them."""
