"""The terms of all memories and where they stand, in tables of the index's file.

Documents are numbered; `SEGMENT` ids in a row make a segment, in which an id's remainder is its
local id. A segment has a posting for each term in it (see `tokens`), under its own number and the
term's; the vocabulary, which gives terms their numbers, is common to all.

Each term has the sum of the checksums of all its postings, so that none is missing either; the
vocabulary has one of the whole.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice, repeat
from typing import TypeAlias
from zlib import crc32

from aiaml_server.index import tuning
from aiaml_server.index.checked import MASK, CheckedFile
from aiaml_server.index.tokens import Batch, Block, add_ids, pack, remove_ids, term_numbers, unpack
from aiaml_server.storage.sqlite import Damaged

TABLES = """
CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, terms BLOB);
CREATE TABLE postings (id INTEGER PRIMARY KEY, totals, topics);
CREATE TABLE term_sums (id INTEGER PRIMARY KEY, sums BLOB);
"""

_TERM_BITS = 32
_LAST_SEGMENT = f"SELECT ifnull(max(id), -1) >> {_TERM_BITS} FROM postings"
_FIND = f"""
WITH RECURSIVE segments (segment) AS
(SELECT ? UNION ALL SELECT segment + 1 FROM segments WHERE segment < ?),
terms (term) AS (VALUES {{}})
SELECT segment, term, totals, topics
FROM segments CROSS JOIN terms CROSS JOIN postings ON id = (segment << {_TERM_BITS}) + term
"""
_BEGUN = "SELECT 1 FROM postings WHERE id >= ? AND id < ? LIMIT 1"
_PUT = "INSERT OR REPLACE INTO postings VALUES (?, ?, ?)"
_SUMS = "SELECT id, sums FROM term_sums WHERE id IN ({})"

Posting: TypeAlias = tuple[int, int, bytes, bytes]
"""A segment, a term's number, its packed local ids over all fields, and those of the topics."""


class Postings:
    """The vocabulary and the postings in a file; what of them is read is kept until it changes."""

    def __init__(self, file: CheckedFile) -> None:
        self._file = file

    def vocabulary(self) -> list[Block]:
        """Return the vocabulary, block by block."""
        kept = self._file.verified.kept
        if "vocabulary" not in kept:
            rows = self._file.sql.execute("SELECT id, terms FROM vocabulary ORDER BY id")
            blocks = [Block(first, lines) for first, lines in rows]
            self._file.compare_sum("vocabulary", sum([block.sum for block in blocks]))
            kept["vocabulary"] = blocks
        vocabulary: list[Block] = kept["vocabulary"]
        return vocabulary

    def find(self, terms: AbstractSet[int] | Mapping[int, int]) -> Iterator[Posting]:
        """Return the postings of some terms, in all segments."""
        if not terms:
            return
        if self._file.verified.terms.issuperset(terms):
            for rows in self._found(terms):
                yield from rows
            return
        total = 0
        for rows in self._found(terms):
            total += sum([_sum(*row) for row in rows])
            yield from rows
        if total & MASK != self._sum(terms):
            raise Damaged
        self._file.verified.terms.update(terms)

    def some(self, terms: Iterable[int]) -> list[Posting]:
        """Return the postings of some terms of the middle segment, unchecked, for an estimate."""
        ((last,),) = self._file.read(_LAST_SEGMENT)
        return list(self._in_segments(terms, last // 2, last // 2))

    def _found(self, terms: AbstractSet[int] | Mapping[int, int]) -> Iterator[list[Posting]]:
        if len(terms) < tuning.ALL_TERMS:
            ((last,),) = self._file.read(_LAST_SEGMENT)
            yield list(self._in_segments(terms, 0, last))
            return
        cursor = self._file.sql.execute("SELECT id, totals, topics FROM postings")
        while rows := cursor.fetchmany(1000):
            parted = [(*divmod(key, 1 << _TERM_BITS), *packed) for key, *packed in rows]
            yield [row for row in parted if row[1] in terms]

    def _in_segments(self, terms: Iterable[int], first: int, last: int) -> Iterator[Posting]:
        return self._file.read_some(_FIND, terms, "(?)", (first, last))

    # --- checksums ------------------------------------------------------------------------------

    def _sum(self, terms: Iterable[int]) -> int:
        """Return the checksum of all postings of some terms."""
        by_block = self._by_block(terms)
        sums = self._sums_of(by_block)
        total = 0
        for first, numbers in by_block.items():
            its = sums[first]
            total += sum([its[number - first] for number in numbers])
        return total & MASK

    def _by_block(self, terms: Iterable[int]) -> dict[int, list[int]]:
        """Return terms by the first number of their block of the vocabulary."""
        firsts = [block.first for block in self.vocabulary()]
        by_block: defaultdict[int, list[int]] = defaultdict(list)
        for term in terms:
            by_block[firsts[bisect_right(firsts, term) - 1]].append(term)
        return by_block

    def _sums_of(self, blocks: Iterable[int]) -> dict[int, array[int]]:
        """Return the checksums of terms by their blocks."""
        kept: dict[int, array[int]] = self._file.verified.kept.setdefault("term sums", {})
        missing = [first for first in blocks if first not in kept]
        for first, sums in self._file.read_some(_SUMS, missing):
            kept[first] = array("I", sums)
        return kept

    def _change_sums(self, changes: Mapping[int, int]) -> None:
        """Add to the checksums of terms."""
        by_block = self._by_block(changes)
        sums = self._sums_of(by_block)
        for first, numbers in by_block.items():
            its = sums.setdefault(first, array("I"))
            its.extend(repeat(0, max(numbers) - first + 1 - len(its)))
            for number in numbers:
                its[number - first] = its[number - first] + changes[number] & MASK
        self._file.sql.executemany(
            "INSERT OR REPLACE INTO term_sums VALUES (?, ?)",
            [(first, sums[first].tobytes()) for first in by_block],
        )

    # --- recording ------------------------------------------------------------------------------

    def add(self, segment: int, batch: Batch) -> None:
        """Add the terms of some documents of a segment."""
        if not batch.totals:
            return
        first_new = self._next_number()
        known = self._numbered(batch.totals)
        begun = self._file.read(_BEGUN, (_key(segment, 0), _key(segment + 1, 0)))
        wanted = [number for number in known.values() if number < first_new] if begun else ()
        held = {
            number: packed for _, number, *packed in self._in_segments(wanted, segment, segment)
        }
        changes: dict[int, int] = {}

        def rows() -> Iterator[tuple[int, bytes, bytes]]:
            first = _key(segment, 0)
            for term, number in known.items():
                totals = pack(batch.totals[term])
                topics = pack(batch.topics[term]) if term in batch.topics else b""
                before = 0
                if number in held:
                    before = _sum(segment, number, *held[number])
                    totals = add_ids(held[number][0], unpack(totals))
                    topics = add_ids(held[number][1], unpack(topics))
                changes[number] = _sum(segment, number, totals, topics) - before
                yield first + number, totals, topics

        self._file.sql.executemany(_PUT, rows())
        self._change_sums(changes)

    def _next_number(self) -> int:
        """Return the number that the next new term gets."""
        last = self.vocabulary()[-1:]
        return last[0].first + last[0].lines.count(b"\n") - 1 if last else 0

    def _numbered(self, terms: Collection[bytes]) -> dict[bytes, int]:
        """Return the numbers of terms, by number; those that have none yet get one."""
        blocks = self.vocabulary()
        known = term_numbers(blocks, terms)
        new = [term for term in terms if term not in known]
        if not new:
            return known
        first, last = (blocks[-1].first, blocks[-1].lines) if blocks else (0, b"\n")
        following = first + last.count(b"\n") - 1
        added = b"\n".join([*new, b""])
        if len(last) + len(added) > tuning.VOCABULARY_BLOCK:
            first, last = following, b"\n"
        self._put_block(Block(first, last + added))
        return known | {term: number for number, term in enumerate(new, following)}

    def _put_block(self, block: Block) -> None:
        """Record a block of the vocabulary, new or changed."""
        blocks = self.vocabulary()
        at = bisect_left([each.first for each in blocks], block.first)
        before = sum([each.sum for each in blocks[at : at + 1]])
        blocks[at : at + 1] = [block]
        values = (block.first, block.lines)
        self._file.sql.execute("INSERT OR REPLACE INTO vocabulary VALUES (?, ?)", values)
        self._file.change_sum("vocabulary", block.sum - before)

    def remove(self, segment: int, gone: set[int], terms: Collection[bytes]) -> None:
        """Remove documents of a segment, by their local ids, from the postings of their terms.

        A term that is left without any posting is removed from the vocabulary.
        """
        known = {number: term for term, number in term_numbers(self.vocabulary(), terms).items()}
        left, changes = [], {}
        empty: set[int] = set()
        for _, number, totals, topics in self._in_segments(known, segment, segment):
            packed = remove_ids(totals, gone), remove_ids(topics, gone)
            changes[number] = -_sum(segment, number, totals, topics)
            if packed[0]:
                changes[number] += _sum(segment, number, *packed)
                left.append((_key(segment, number), *packed))
            else:
                empty.add(number)
        self._change_sums(changes)
        self._file.sql.executemany(_PUT, left)
        keys = [(_key(segment, number),) for number in empty]
        self._file.sql.executemany("DELETE FROM postings WHERE id = ?", keys)
        rest = iter(list(empty))
        while some := set(islice(rest, tuning.ALL_TERMS - 1)):  # looked up, so that few are read
            empty.difference_update([number for _, number, *_ in self.find(some)])
        self._shrink({known[number] for number in empty})

    def _shrink(self, terms: set[bytes]) -> None:
        """Remove terms from the vocabulary."""
        for block in list(self.vocabulary()) if terms else ():
            words = block.lines.split(b"\n")
            if not terms.isdisjoint(words):
                left = b"\n".join([b"" if word in terms else word for word in words])
                self._put_block(Block(block.first, left))


def _key(segment: int, term: int) -> int:
    return (segment << _TERM_BITS) + term


def _sum(segment: int, term: int, totals: bytes, topics: bytes) -> int:
    return crc32(topics, crc32(totals, segment << 20 ^ term))
