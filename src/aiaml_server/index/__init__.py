"""The search index: exact keyword scores, the person's search, lists and counts of memories."""

from aiaml_server.format.question import Question
from aiaml_server.index.index import Index
from aiaml_server.index.listing import Counts
from aiaml_server.index.ranking import Answer
from aiaml_server.storage.cache import delete_index, index_file

__all__ = ["Answer", "Counts", "Index", "Question", "delete_index", "index_file"]
