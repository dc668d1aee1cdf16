r"""Terms: the `\w+` runs of a memory's text, counted, and the vocabulary of all of them.

A keyword of word characters can only occur inside a term, so the number of its occurrences in a
text is the sum over the text's terms, and it is a whole word exactly where it equals a term. The
index therefore stores terms with their counts, and no positions.

A *counted term* is one string: the term, how often it occurs in the topics, and how often in the
other fields, separated by tabs. A term that occurs once, and not in the topics, stands alone: most
do.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import NamedTuple

from aiaml_server.format.question import normalize

TERM = re.compile(r"\w+")
# A term that is not indexed, such as encoded data. Its memory is read instead.
LONG_TERM = re.compile(r"(?<!\w)\w{201,}")


class TermCounts(NamedTuple):
    """The terms of one memory.

    Attributes:
        terms: its counted terms.
        length: how many terms occur in it, repeated ones included.
        is_exact: whether scores can be computed from the terms. They cannot where the text is not
            in NFC, because the terms are, nor where a term is too long to be indexed.
    """

    terms: list[str]
    length: int
    is_exact: bool


def count_terms(topics: str, *others: str) -> TermCounts:
    """Count the terms of a memory in its topics and in the other fields, in lower case."""
    given = [topics, "\n".join(others)]
    searched = [LONG_TERM.sub(" ", normalize(text)) for text in given]
    in_topics, elsewhere = [Counter(TERM.findall(text)) for text in searched]
    length = in_topics.total() + elsewhere.total()
    counted = [f"{term}\t{count}\t{elsewhere.pop(term, 0)}" for term, count in in_topics.items()]
    for term, count in [each for each in elsewhere.items() if each[1] > 1]:
        del elsewhere[term]
        counted.append(f"{term}\t0\t{count}")
    return TermCounts([*elsewhere, *counted], length, searched == given)


def split_counts(counted: str) -> tuple[str, int, int]:
    """Return the term of a counted term, and how often it occurs in the topics and elsewhere."""
    term, in_topics, elsewhere = [*counted.split("\t"), "0", "1"][:3]
    return term, int(in_topics), int(elsewhere)


class Vocabulary:
    """All counted terms of an index as one text, in which `str.find` looks for a part.

    Attributes:
        last_id: the highest id among the terms, by which later ones are recognized.
    """

    def __init__(self) -> None:
        self.last_id = 0
        self._lines = "\n"

    def add(self, terms: list[tuple[int, str]]) -> None:
        """Add terms with their ids, in the order of the ids."""
        if terms:
            self.last_id = terms[-1][0]
            self._lines += "\n".join([term for _, term in terms]) + "\n"

    def find(self, text: str, limit: int = sys.maxsize) -> list[str] | None:
        r"""Return the counted terms that contain a text, or begin with it if that begins with `\n`.

        A number may also be found in the counts. None if there are more than `limit`.
        """
        found: list[str] = []
        at = self._lines.find(text)
        while at >= 0:
            if len(found) == limit:
                return None
            start = self._lines.rfind("\n", 0, at + 1) + 1
            end = self._lines.find("\n", at + 1)
            found.append(self._lines[start:end])
            at = self._lines.find(text, end)
        return found
