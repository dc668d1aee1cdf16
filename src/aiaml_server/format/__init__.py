"""A memory and its text: the value, its file, its score, the filters, what nobody sees."""
