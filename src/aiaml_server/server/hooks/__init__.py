"""What hosts start at a prompt and at a session's start, so that memory comes by itself."""
