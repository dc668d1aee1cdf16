"""The search index: exact keyword scores, the person's search, lists and counts of memories."""

from aiaml_server.index.index import Index
from aiaml_server.index.listing import Counts
from aiaml_server.index.place import delete_index, index_file
from aiaml_server.index.question import Question
from aiaml_server.index.ranking import Answer, WordMatch

__all__ = ["Answer", "Counts", "Index", "Question", "WordMatch", "delete_index", "index_file"]
