"""Answers by keyword and by id: what the rest of the house knows of the index is here."""

from aiaml_server.index.facets import Borders, Counts
from aiaml_server.index.index import Index, Mismatch

__all__ = ["Borders", "Counts", "Index", "Mismatch"]
