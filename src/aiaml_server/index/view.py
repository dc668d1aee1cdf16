"""One state of the database, as one question sees it: what it is made of is read once.

Whatever an answer is made of is compared with its checksum, unless it agreed before, so that no
damage gives a wrong answer unseen (`checked`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from aiaml_server.format.filters import Filter
from aiaml_server.format.scorer import Fields
from aiaml_server.index import tuning
from aiaml_server.index.checked import CheckedFile, sum_of
from aiaml_server.index.facets import Facets
from aiaml_server.index.postings import Postings
from aiaml_server.index.records import (
    ROW,
    TEXT,
    TIE_BREAK,
    Row,
    row_sum,
    searched_in,
    tie_break_sum,
    unpacked,
)
from aiaml_server.index.tokens import NO_TEXT, Block, matching
from aiaml_server.storage.sqlite import Damaged
from aiaml_server.storage.store import Stamp

JOINED = "CAST(topics || char(0) || user || char(0) || agent || char(0) || content AS BLOB)"
"""A text as its checksum is made of it."""

TieBreak: TypeAlias = "tuple[int, bytes, int]"
"""A memory's instant and packed name, the greater of which is the newer, and its document."""

_TIE_BREAKS = "SELECT instant, name, id, tie_break_sum FROM files WHERE id IN ({})"
_TEXTS = "SELECT id, topics, content, user, agent{} FROM texts WHERE id IN ({{}})"
_TEXT_SUM = f", text_sum, {JOINED}"
_ROWS = """
SELECT id, name, modified, changed, inode, size, memory_id, timestamp,
    topics, content, user, agent{}
FROM files JOIN texts USING (id) WHERE id IN ({{}})
"""
_ROW_SUMS = f", tie_break_sum, sum{_TEXT_SUM}"
_ENCODED = """
SELECT id, CAST(topics || char(0) || topics || char(0) || user || char(0) || agent || char(0)
    || content AS BLOB){} FROM texts WHERE id >= ?
"""
_ENCODED_SUM = ", length(CAST(topics AS BLOB)) + 1, text_sum"
_ORDER_SUM = """
SELECT ifnull(sum(instant % 2147483647 * (id + 1) % 2147483647), 0) FROM """


class Unindexed(NamedTuple):
    """The memories that have no postings.

    Attributes:
        waiting: those that are yet to be tokenized, and the characters of each.
        skipped: those for which it does not pay.
    """

    waiting: dict[int, int]
    skipped: set[int]

    def __contains__(self, doc: object) -> bool:
        """Say whether a memory is one of them."""
        return doc in self.waiting or doc in self.skipped


class View:
    """What one question reads, in one snapshot or transaction.

    Attributes:
        end: the number that all documents are below.
        postings: where terms stand.
        facets: agents, users, topics and times.
        given_out: names and stamps of the memories that the answer is made of.
    """

    def __init__(self, file: CheckedFile, postings: Postings, facets: Facets) -> None:
        self.facets = facets
        self.given_out: list[tuple[str, Stamp]] = []
        self._file = file
        self.postings = postings
        self._verified = file.verified
        self._terms: dict[tuple[bytes, bool], list[tuple[int, bytes]]] = {}
        self.end = last_doc(file) + 1
        self._verified.make_room(self.end)

    # --- read once ------------------------------------------------------------------------------

    @cached_property
    def vocabulary(self) -> list[Block]:
        """All terms, block by block."""
        return self.postings.vocabulary()

    def beginning(self, start: str) -> list[tuple[int, bytes]]:
        """Return the terms that begin so, with their numbers; found once."""
        return self._found(start.encode(), ends=False)

    def equal(self, term: bytes) -> list[tuple[int, bytes]]:
        """Return a term with its number, if a memory has it; found once."""
        return self._found(term, ends=True)

    def _found(self, term: bytes, *, ends: bool) -> list[tuple[int, bytes]]:
        if (term, ends) not in self._terms:
            blocks = self._apart if term[0] in NO_TEXT else self.vocabulary
            self._terms[term, ends] = [*matching(blocks, term, begins=True, ends=ends)]
        return self._terms[term, ends]

    @cached_property
    def _apart(self) -> list[Block]:
        """The blocks that have terms which are no text: few have, and a byte is found at once."""
        return [block for block in self.vocabulary if any(each in block.lines for each in NO_TEXT)]

    @cached_property
    def waiting(self) -> Mapping[int, int]:
        """The memories that are yet to be tokenized, and the characters of each."""
        return unindexed(self._file).waiting

    @cached_property
    def skipped(self) -> AbstractSet[int]:
        """The memories for which that does not pay."""
        return unindexed(self._file).skipped

    @property
    def unindexed(self) -> list[int]:
        """The memories that have no postings, for either reason."""
        return [*self.waiting, *self.skipped]

    @property
    def due(self) -> bool:
        """Whether enough memories wait to be tokenized; one would cost as much as many."""
        sizes = self.waiting.values()
        many = len(sizes) >= tuning.RECENT or sum(sizes) >= tuning.RECENT_BYTES
        return bool(sizes) and many

    # --- by words -------------------------------------------------------------------------------

    def rows(self, docs: Iterable[int]) -> list[Row]:
        """Return memories that the answer is made of, in no order."""
        wanted = list(docs)
        agree = self._verified.have(ROW, wanted)
        rows = list(self._file.read_some(_ROWS.format("" if agree else _ROW_SUMS), wanted))
        for doc, *row in () if agree else rows:
            if row[12] != row_sum(doc, row[1:5], row[5], row[6], row[11]):
                raise Damaged
            if row[13] != crc32(row[14], doc):
                raise Damaged
            self._verified.docs[doc] |= ROW | TEXT
        if not len({row[1] for row in rows}) == len(rows) == len(wanted):  # a name stands once
            raise Damaged
        found = [
            Row(
                row[0],
                unpacked(row[1]),
                Stamp._make(row[2:6]),
                row[6],
                row[7],
                searched_in(*row[8:12]),
            )
            for row in rows
        ]
        self.given_out += [(row.name, row.stamp) for row in found]
        return found

    def texts(self, docs: Iterable[int]) -> Iterator[tuple[int, Fields]]:
        """Return what is searched in some memories, with their documents."""
        wanted = list(docs)
        if self._verified.have(TEXT, wanted):
            rows = self._file.read_some(_TEXTS.format(""), wanted)
        else:
            rows = self._agreeing(self._file.read_some(_TEXTS.format(_TEXT_SUM), wanted))
        found = 0
        for doc, topics, content, user, agent in rows:
            found += 1
            yield doc, searched_in(topics, content, user, agent)
        if found != len(wanted):
            raise Damaged

    def _agreeing(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            if row[5] != crc32(row[6], row[0]):
                raise Damaged
            self._verified.docs[row[0]] |= TEXT
            yield row[:5]

    @cached_property
    def first_waiting(self) -> int:
        """The lowest of the memories that are yet to be tokenized; `end` where there is none."""
        return min(self.waiting, default=self.end)

    @property
    def passed_over(self) -> int:
        """How many texts `waiting_texts` reads."""
        return self.end - (self.first_waiting if "texts" in self._verified.kinds else 0)

    def waiting_texts(self) -> Iterable[tuple[int, bytes]]:
        """Return, of `encoded`, the memories that are yet to be tokenized."""
        texts = self._encoded(self.first_waiting)
        if len(self.waiting) == self.passed_over:
            return texts
        return (each for each in texts if each[0] in self.waiting)

    def encoded(self) -> Iterator[tuple[int, bytes]]:
        """Return what is searched in all memories as UTF-8, one at a time, with their documents.

        There are zeros between the fields, and the topics stand there twice.
        """
        return self._encoded(0)

    def _encoded(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Return the same from a document on, if all texts agreed before."""
        if "texts" in self._verified.kinds:
            return self._file.sql.execute(_ENCODED.format(""), (first,))
        return self._encoded_agreeing()

    def _encoded_agreeing(self) -> Iterator[tuple[int, bytes]]:
        agreed, total, last = self._verified.docs, 0, -1
        for doc, text, once, its_sum in self._file.sql.execute(_ENCODED.format(_ENCODED_SUM), (0,)):
            if doc <= last:  # a row that took the number of another one
                raise Damaged
            last = doc
            total += its_sum
            if not agreed[doc] & TEXT:
                if its_sum != crc32(memoryview(text)[once:], doc):
                    raise Damaged
                agreed[doc] |= TEXT
            yield doc, text
        self._file.compare_sum("texts", total)

    def tie_breaks(self, docs: Iterable[int]) -> list[TieBreak]:
        """Return what breaks ties between some memories, in no order."""
        wanted = list(docs)
        rows = list(self._file.read_some(_TIE_BREAKS, wanted))
        if not self._verified.have(TIE_BREAK, wanted):
            for moment, name, doc, its_sum in rows:
                if its_sum != tie_break_sum(moment, name, doc):
                    raise Damaged
                self._verified.docs[doc] |= TIE_BREAK
        if len(rows) != len(wanted):
            raise Damaged
        return [row[:3] for row in rows]

    def newest_first(self) -> Iterator[int]:
        """Return all memories in the order that breaks ties."""
        self._compare_order()
        rows = self._file.sql.execute("SELECT id FROM files ORDER BY instant DESC, name DESC")
        return (doc for (doc,) in rows)

    def _compare_order(self) -> None:
        """Compare the index of moments, whose order is relied on, with what was recorded."""
        if "order" not in self._verified.kinds:
            self._file.compare_sum("order", order_sum(self._file, "files INDEXED BY newest"))

    # --- by name, by id, by facets --------------------------------------------------------------

    def names(self, memory_id: str) -> list[str]:
        """Return the files whose memories carry an id."""
        rows = self._file.read("SELECT name FROM files WHERE memory_id = ?", (memory_id,))
        if not rows:  # in the order of ids; the table itself can tell that it was damaged
            rows = self._file.read("SELECT name FROM files WHERE +memory_id = ?", (memory_id,))
        return [unpacked(name) for (name,) in rows]

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`, in the order of the alphabet."""
        rows = self._file.read(
            "SELECT DISTINCT memory_id FROM files WHERE memory_id BETWEEN ? AND ? || char(1114111)",
            (prefix, prefix),
        )
        return sorted(memory_id for (memory_id,) in rows)

    def dated(self, wanted: Filter | None = None) -> list[tuple[int, str]]:
        """Return moment and file of each memory that is meant, or of all, newest first."""
        self._compare_order()
        meant = "memory_id IS NOT NULL"
        if wanted:  # `+id`: through the index that has the order, not by a look for each row
            meant = f"+id IN (SELECT id FROM facets WHERE {self.facets.where(wanted)})"
        rows = self._file.read(
            f"SELECT instant, name FROM files WHERE {meant} ORDER BY instant DESC, name DESC"
        )
        return [(moment, unpacked(name)) for moment, name in rows]


def last_doc(database: CheckedFile) -> int:
    """Return the highest document of all; -1 where there is none."""
    return int(database.read("SELECT ifnull(max(id), -1) FROM files")[0][0])


def unindexed(database: CheckedFile) -> Unindexed:
    """Return the memories that have no postings; it is kept, and changed as they are."""
    kept = database.verified.kept
    if "unindexed" not in kept:
        rows = database.read("SELECT id, size FROM unindexed")
        database.compare_sum("unindexed", sum_of(rows))
        waiting = {doc: size for doc, size in rows if size is not None}
        skipped = {doc for doc, size in rows if size is None}
        kept["unindexed"] = Unindexed(waiting, skipped)
    found: Unindexed = kept["unindexed"]
    return found


def order_sum(database: CheckedFile, files: str, values: Sequence[int] = ()) -> int:
    """Return what some files, said in SQL, add to the sum over the index of moments."""
    return int(database.read(f"{_ORDER_SUM}{files}", values)[0][0])
