"""The index: answers by keyword and by id, derived from the files."""
