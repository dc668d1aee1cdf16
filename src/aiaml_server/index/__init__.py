"""Answers by keyword and by id: `index.Index`; the rest of the house knows little else of it."""
