r"""How text is cut into terms, and why counting in the terms is counting in the text.

A text is cut into *terms*: the longest stretches of word characters (`\w`), and the longest of
other characters that are not white space. A keyword of word characters alone can occur only inside
terms of them, because nothing else in the text matters to where it can stand. So

    text.count(keyword) = sum over the terms that contain it of term.count(keyword)

(`str.count` does not overlap, and no occurrence crosses the end of a term), and the whole words,
`\b` keyword `\b`, are exactly the terms equal to it.

Any other keyword is cut in the same way. If it is one term, it can occur only in a text with a term
that contains it. If it is several (`node.js`, `san francisco`), it can occur only in a text with
its inner terms, one that ends with its first and one that begins with its last; and not more often
than any of these. These conditions are necessary, not sufficient: they narrow the search and say
which texts can be the best, and `scorer` then counts in the text itself.

Terms are kept as UTF-8: in it, one text's bytes occur in another's exactly where its characters do.
"""

from __future__ import annotations

import re
import struct
import sys
import zlib
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import accumulate, repeat
from typing import TypeAlias

from aiaml_server.format.bm25 import length
from aiaml_server.format.scorer import Fields
from aiaml_server.index import tuning
from aiaml_server.index.tuning import COMMON, SEGMENT

LocalIds: TypeAlias = "array[int]"
"""Documents of one segment, each as its place in it, repeated as often as it counts."""

Scores: TypeAlias = "Counter[int] | bytes"  # by local id

_TERM = re.compile(r"\w+|[^\w\s]+")
_WORD = re.compile(r"\w+")
_SIGNS = re.compile(r"[^\w\s]+")
_ASCII = bytes(range(128))
_ONE = b"\0" + b"\1" * 255


def _spaces(wanted: re.Pattern[str]) -> bytes:
    """Return a translation of the ASCII characters that are not wanted into spaces."""
    others = bytes(code for code in _ASCII if not wanted.match(chr(code)))
    return bytes.maketrans(others, b" " * len(others))


_ONLY_WORDS = _spaces(_WORD)
_ONLY_SIGNS = _spaces(_SIGNS)


def terms_of(keyword: str) -> list[str]:
    """Cut a cleaned keyword into its terms."""
    return _TERM.findall(keyword)


def is_word(keyword: str) -> bool:
    """Say whether a keyword is of word characters alone."""
    return _WORD.fullmatch(keyword) is not None


def tokenize(text: str) -> list[bytes]:
    """Return a lower-cased text's terms, those of word characters first.

    Whatever is not wanted is made a space, ASCII by one translation and each other character that
    the text has by one replacement: several times as fast as cutting by pattern.
    """
    data = text.encode("utf-8", "surrogatepass")
    kinds = set(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    if len(kinds) > tuning.KINDS:
        terms = _WORD.findall(text) + _SIGNS.findall(text)
        return [each.encode("utf-8", "surrogatepass") for each in terms]
    words = signs = data
    for kind in kinds:
        encoded, in_words, in_signs = _kind(kind)
        if not in_words:
            words = words.replace(encoded, b" ")
        if not in_signs:
            signs = signs.replace(encoded, b" ")
    return words.translate(_ONLY_WORDS).split() + signs.translate(_ONLY_SIGNS).split()


@cache
def _kind(character: str) -> tuple[bytes, bool, bool]:
    """Return a character's bytes, and whether it stands in words and in signs."""
    encoded = character.encode("utf-8", "surrogatepass")
    return encoded, bool(_WORD.match(character)), bool(_SIGNS.match(character))


LENGTH = b"\xc0"
"""The term of which a memory has as many as its length is steps; like those of names, no text."""

_DIGITS = bytes.maketrans(b"01234567", bytes(range(0xF8, 0x100)))

NO_TEXT = LENGTH + b"0123".translate(_DIGITS)
"""What terms that are no text begin with: a byte has at most 377 in three octal digits."""


@lru_cache(maxsize=1000)
def name_of(term: bytes) -> bytes:
    """Return the term of a term that stands in the user or the agent.

    It is of bytes that are in no UTF-8, so that no keyword stands in it.
    """
    return b"".join([b"%03o" % byte for byte in term]).translate(_DIGITS)


def about(searched: Fields) -> list[bytes]:
    """Return the terms that say of a memory how long it is, and which of its terms are names."""
    _, _, (_, user), (_, agent) = searched
    return [LENGTH] * length(searched) + [name_of(each) for each in tokenize(f"{user}\n{agent}")]


def _has_long_word(text: str) -> bool:
    """Say whether a text may have a term that is too long; only one without spaces has.

    A character has at most four bytes, so such a term has whole pieces of the text, end to end.
    """
    size = tuning.MAX_TERM // 8
    return any(" " not in text[at : at + size] for at in range(0, len(text) - size + 1, size))


class Batch:
    """The postings of some documents of one segment, before they are recorded.

    Attributes:
        totals: for each term, the documents, over all fields, repeated for each time that the term
            stands there.
        topics: for each term of the topics, whose occurrences count once more, the same again.
    """

    def __init__(self) -> None:
        self.totals: defaultdict[bytes, LocalIds] = defaultdict(lambda: array("H"))
        self.topics: defaultdict[bytes, LocalIds] = defaultdict(lambda: array("H"))

    def add(self, local_id: int, searched: Fields) -> bool:
        """Tokenize a text's fields; False, and nothing is added, where that does not pay.

        It does not when it has a long term or very many, nor when it is large and of mostly
        different terms.
        """
        text = "\n".join([text for _, text in searched])
        terms = tokenize(text)
        if _has_long_word(text) and max(map(len, terms), default=0) > tuning.MAX_TERM:
            return False
        if len(text) > tuning.LARGE:  # one that has less has fewer than `DIFFERENT` as well
            different = set(terms)
            if len(different) > tuning.DIFFERENT:
                return False
            if 4 * sum(map(len, different)) > 3 * len(text):
                return False
        topics = tokenize("\n".join([text for weight, text in searched if weight > 1]))
        both = ((terms + about(searched), self.totals), (topics, self.topics))
        for found, postings in both:
            lists = map(postings.__getitem__, found)
            deque(map(array.append, lists, repeat(local_id)), maxlen=0)  # a loop in C
        return True


# --- postings, packed ----------------------------------------------------------------------------
#
# Few local ids are packed as they are. Many are packed as their counts: a byte for every document
# of the segment, then, if a count needs more, the second bytes, and so on. Such counts can be added
# up as one long number that has four bytes for each document.


def pack(ids: LocalIds) -> bytes:
    """Pack local ids."""
    if len(ids) < COMMON:
        return ids.tobytes()
    counts = Counter(ids)
    plane = bytearray(SEGMENT)
    with suppress(ValueError):  # a count above 255 needs a second byte
        deque(map(plane.__setitem__, counts, counts.values()), maxlen=0)
        return bytes(plane)
    every = list(map(counts.get, range(SEGMENT), repeat(0)))
    width = (max(counts.values()).bit_length() + 7) // 8
    return b"".join(bytes([count >> 8 * plane & 0xFF for count in every]) for plane in range(width))


def planes(counts: array[int]) -> bytes:
    """Pack counts, four bytes for every document of the segment."""
    if sys.byteorder == "big":
        counts.byteswap()
    lanes = counts.tobytes()
    width = max([at + 1 for at in range(4) if lanes[at::4].count(0) < SEGMENT], default=0)
    return b"".join(lanes[at::4] for at in range(width))


def unpack(packed: bytes) -> LocalIds:
    """Undo `pack`, but for the order."""
    if len(packed) < SEGMENT:
        return array("H", packed)
    accumulator = Accumulator()
    accumulator.add(packed, 1)
    return array("H", accumulator.counts().elements())


def add_ids(packed: bytes, ids: LocalIds) -> bytes:
    """Add local ids to packed ones."""
    if not packed:
        return pack(ids)
    if len(packed) != SEGMENT:
        return pack(unpack(packed) + ids)
    plane = bytearray(packed)
    with suppress(ValueError):  # a count above 255 needs a second byte
        for local_id in ids:
            plane[local_id] += 1
        return bytes(plane)
    return pack(unpack(packed) + ids)


def remove_ids(packed: bytes, gone: set[int]) -> bytes:
    """Take local ids out of packed ones; empty when none is left."""
    if len(packed) < SEGMENT:
        return array("H", [each for each in array("H", packed) if each not in gone]).tobytes()
    planes = bytearray(packed)
    for first in range(0, len(packed), SEGMENT):
        for local_id in gone:
            planes[first + local_id] = 0
    return bytes(planes) if any(planes) else b""


class Accumulator:
    """Adds up packed postings of a segment. The sum for each document must stay below 2 ** 32."""

    def __init__(self) -> None:
        self._few: list[bytes] = []
        self._counts: Counter[int] = Counter()
        self._many = 0

    def add(self, packed: bytes, times: int) -> None:
        """Add packed postings, `times` over."""
        if len(packed) < SEGMENT:
            self._few += [packed] * times
            if len(self._few) > tuning.PARTS:
                self._add_few()
            return
        lanes = bytearray(4 * SEGMENT)
        for plane in range(len(packed) // SEGMENT):
            lanes[plane::4] = packed[plane * SEGMENT : (plane + 1) * SEGMENT]
        self._many += times * int.from_bytes(lanes, "little")

    def add_scores(self, scores: Scores) -> None:
        """Add what another one has added up."""
        if isinstance(scores, bytes):
            self.add(scores, 1)
        else:
            self._counts.update(scores)

    def _add_few(self) -> None:
        self._counts.update(array("H", b"".join(self._few)))
        self._few.clear()

    def counts(self) -> Counter[int]:
        """Return the sums that are not 0, by local id."""
        self._add_few()
        if self._many:
            lanes = struct.unpack(f"<{SEGMENT}I", self._many.to_bytes(4 * SEGMENT, "little"))
            self._counts.update({each: count for each, count in enumerate(lanes) if count})
            self._many = 0
        return self._counts

    def scores(self) -> Scores:
        """Return the same; where many are not 0 and all below 256, a byte for each."""
        if not self._many:
            return self.counts()
        lanes = self._many.to_bytes(4 * SEGMENT, "little")
        plane = bytearray(lanes[::4])
        self._add_few()
        with suppress(ValueError):
            for local_id, count in self._counts.items():
                plane[local_id] += count
            if all(lanes[at::4].count(0) == SEGMENT for at in (1, 2, 3)):
                return bytes(plane)
        return self.counts()


def added_up(packed: list[bytes]) -> Scores:
    """Return the sums of packed postings of a segment."""
    if len(packed) == 1 and len(packed[0]) == SEGMENT:
        return packed[0]
    accumulator = Accumulator()
    for each in packed:
        accumulator.add(each, 1)
    return accumulator.scores()


def least(ones: Scores, others: Scores) -> Scores:
    """Return the lower of two scores for each document."""
    if isinstance(ones, bytes) and isinstance(others, bytes):
        return bytes(map(min, ones, others))
    few, many = (ones, others) if isinstance(ones, Counter) else (others, ones)
    return Counter({each: min(few[each], many[each]) for each in few if many[each]})


def number_of(scores: Scores) -> int:
    """Return how many documents have a score."""
    return len(scores) - (scores.count(0) if isinstance(scores, bytes) else 0)


def present(scores: Scores) -> bytes:
    """Return a byte for each document: 1 where it has a score, else 0."""
    if isinstance(scores, bytes):
        return scores.translate(_ONE)
    plane = bytearray(SEGMENT)
    deque(map(plane.__setitem__, scores, repeat(1)), maxlen=0)
    return bytes(plane)


def histogram(scores: Sequence[Scores], most: int) -> Iterator[tuple[int, int]]:
    """Return scores, the highest first, and how many there are of each; `most` in all at least."""
    planes = b"".join([each for each in scores if isinstance(each, bytes)])
    counted: Counter[int] = Counter()
    for each in scores:
        if isinstance(each, Counter):
            counted.update(each.values())
    for least in (64, 16, 4, 1):  # so that not all bytes are looked at one by one
        highest = planes.translate(None, bytes(range(least)))
        if len(highest) >= most:
            break
    for value in sorted({*highest, *counted} - {0}, reverse=True):
        yield value, counted[value] + (highest.count(value) if value < 256 else 0)


def at_least(scores: Scores, least: int) -> Iterator[tuple[int, int]]:
    """Return the local ids with such scores, and these."""
    if isinstance(scores, Counter):
        yield from [(each, value) for each, value in scores.items() if value >= least]
    elif least < 256:
        for found in re.finditer(b"[\\x%02x-\xff]" % least, scores):
            yield found.start(), scores[found.start()]


def keep(scores: Scores, marks: bytes) -> Scores:
    """Return only the scores of local ids whose byte in `marks` is 255; it is 0 for the others."""
    if isinstance(scores, Counter):
        return Counter({each: value for each, value in scores.items() if marks[each]})
    both = int.from_bytes(scores, "little") & int.from_bytes(marks, "little")
    return both.to_bytes(SEGMENT, "little")


def drop(scores: Scores, gone: set[int]) -> Scores:
    """Return scores without some local ids."""
    if isinstance(scores, Counter):
        return Counter({each: value for each, value in scores.items() if each not in gone})
    plane = bytearray(scores)
    for each in gone:
        plane[each] = 0
    return bytes(plane)


# --- the vocabulary ------------------------------------------------------------------------------


class Block:
    """Terms that are numbered one after the other.

    Attributes:
        first: the number of the first.
        lines: all of them, each between line feeds. A deleted term leaves an empty line, so that
            the others keep their numbers.
        sum: a checksum of both.
    """

    def __init__(self, first: int, lines: bytes) -> None:
        self.first = first
        self.lines = lines
        self.sum = zlib.crc32(lines, first & 0xFFFFFFFF)
        self._before: list[int] = []  # lines before each `LINES` bytes, once asked for

    def number(self, start: int) -> int:
        """Return the number of the term that starts at `start`."""
        if not self._before:
            steps = range(0, len(self.lines), tuning.LINES)
            counts = (self.lines.count(b"\n", at, at + tuning.LINES) for at in steps)
            self._before = list(accumulate(counts, initial=self.first - 1))
        step = start // tuning.LINES
        return self._before[step] + self.lines.count(b"\n", step * tuning.LINES, start)


def matching(
    blocks: Iterable[Block], part: str | bytes, *, begins: bool = False, ends: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Find the terms that contain `part`; at their beginning, at their end, or as a whole."""
    letters = part.encode() if isinstance(part, str) else part
    pattern = b"\n" * begins + letters + b"\n" * ends
    for block in blocks:
        lines = block.lines
        at = lines.find(pattern)
        while at >= 0:
            start = lines.rfind(b"\n", 0, at + begins) + 1
            end = lines.find(b"\n", start)
            yield block.number(start), lines[start:end]
            at = lines.find(pattern, end)


def term_numbers(blocks: Iterable[Block], terms: Collection[bytes]) -> dict[bytes, int]:
    """Return the numbers of those terms that are in the vocabulary."""
    return {
        term: number
        for block in blocks
        for number, term in enumerate(block.lines.split(b"\n"), block.first - 1)
        if term in terms
    }
