r"""How text is cut for the index, and why counting in the pieces is counting in the text.

A text is cut into *runs*: the longest stretches of word characters (`\w`), and the longest of other
characters that are not white space. A keyword of word characters alone can occur only inside runs
of them, because nothing else in the text matters to where it can stand. So

    text.count(keyword) = sum over the runs that contain it of run.count(keyword)

(`str.count` does not overlap, and no occurrence crosses the end of a run), and the whole words,
`\b` keyword `\b`, are exactly the runs equal to it.

Any other keyword is cut in the same way. If it is one run, it can occur only in a text with a run
that contains it. If it is several (`node.js`, `san francisco`), it can occur only in a text with
its inner runs, one that ends with its first and one that begins with its last; and no oftener than
any of these. These conditions are necessary, not sufficient: they narrow the search and say which
texts can be the best, and `scorer` then counts in the text itself.

Runs are kept as UTF-8: in it, one text's bytes occur in another's exactly where its characters do.
"""

from __future__ import annotations

import re
import struct
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, repeat
from typing import TypeAlias

from .scorer import Fields

Slots: TypeAlias = "array[int]"

Scores: TypeAlias = "Counter[int] | bytes"  # by slot

SEGMENT = 4096  # slots
MANY_SLOTS = SEGMENT // 4
_MANY_PARTS = 1000  # enough to be added up together
MAX_RUN = 600  # bytes; a text with a longer run (encoded data) is always scored
LARGE = 16 * 1024  # bytes of a text that may be of mostly different runs
_STEP = 512  # bytes of the vocabulary, in which lines are counted anew
_MANY_KINDS = 32  # characters beyond ASCII in one text; with more, cutting by pattern is faster

_RUN = re.compile(r"\w+|[^\w\s]+")
_WORD = re.compile(r"\w+")
_SIGNS = re.compile(r"[^\w\s]+")
_ASCII = bytes(range(128))


def _spaces(wanted: re.Pattern[str]) -> bytes:
    """Return a translation of the ASCII characters that are not wanted into spaces."""
    others = bytes(code for code in _ASCII if not wanted.match(chr(code)))
    return bytes.maketrans(others, b" " * len(others))


_ONLY_WORDS = _spaces(_WORD)
_ONLY_SIGNS = _spaces(_SIGNS)


def runs(keyword: str) -> list[str]:
    """Cut a cleaned keyword into its runs."""
    return _RUN.findall(keyword)


def is_word(keyword: str) -> bool:
    """Say whether a keyword is of word characters alone."""
    return _WORD.fullmatch(keyword) is not None


def cut(text: str) -> list[bytes]:
    """Return a lower-cased text's runs, those of word characters first.

    Whatever is not wanted is made a space, ASCII by one translation and each other character that
    the text has by one replacement: several times as fast as cutting by pattern.
    """
    data = text.encode("utf-8", "surrogatepass")
    kinds = set(data.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    if len(kinds) > _MANY_KINDS:
        return _encoded(_WORD.findall(text) + _SIGNS.findall(text))
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


def _encoded(texts: Iterable[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogatepass") for text in texts]


def _no_slots() -> Slots:
    return array("H")


class Postings:
    """For each run of some texts, the slots of the texts that it stands in.

    A slot is a small number that stands for a text.

    Attributes:
        totals: for each run, the slots, over all fields, repeated for each time that the run stands
            there.
        topics: for each run of the topics, whose occurrences count once more, the same again.
    """

    def __init__(self) -> None:
        self.totals: defaultdict[bytes, Slots] = defaultdict(_no_slots)
        self.topics: defaultdict[bytes, Slots] = defaultdict(_no_slots)

    def add(self, slot: int, searched: Fields) -> bool:
        """Cut a text's fields; False, and nothing is added, where that does not pay.

        It does not when it has a long run, nor when it is large and of mostly different runs (keys,
        logs, tables): the vocabulary would grow by as much as the text has, to be searched as long.
        """
        text = "\n".join([text for _, text in searched])
        runs = cut(text)
        if max(map(len, runs), default=0) > MAX_RUN:
            return False
        if len(text) > LARGE and 4 * sum(map(len, set(runs))) > 3 * len(text):
            return False
        for slots in map(self.totals.__getitem__, runs):
            slots.append(slot)
        topics = cut("\n".join([text for weight, text in searched if weight > 1]))
        for slots in map(self.topics.__getitem__, topics):
            slots.append(slot)
        return True


# --- slots, packed -------------------------------------------------------------------------------
#
# Few slots are packed as they are. Many are packed as their counts: a byte for every slot of the
# segment, then, if a count needs more, the second bytes, and so on. Such counts can be added up
# as one long number that has four bytes for each slot.


def pack(slots: Slots) -> bytes:
    """Pack slots, of which each is repeated as often as it counts."""
    if len(slots) < MANY_SLOTS:
        return slots.tobytes()
    counts = Counter(slots)
    every = list(map(counts.get, range(SEGMENT), repeat(0)))
    width = (max(counts.values()).bit_length() + 7) // 8
    if width == 1:
        return bytes(every)
    return b"".join(bytes([count >> 8 * plane & 0xFF for count in every]) for plane in range(width))


def unpack(packed: bytes) -> Slots:
    """Undo `pack`, but for the order."""
    if len(packed) < SEGMENT:
        return array("H", packed)
    total = Total()
    total.add(packed, 1)
    return array("H", total.counts().elements())


def with_slots(packed: bytes, slots: Slots) -> bytes:
    """Add slots to packed ones."""
    if len(packed) != SEGMENT:
        return pack(unpack(packed) + slots)
    plane = bytearray(packed)
    with suppress(ValueError):  # a count above 255 needs a second byte
        for slot in slots:
            plane[slot] += 1
        return bytes(plane)
    return pack(unpack(packed) + slots)


def without_slots(packed: bytes, gone: set[int]) -> bytes:
    """Take slots out of packed ones; empty when none is left."""
    if len(packed) < SEGMENT:
        return array("H", [slot for slot in array("H", packed) if slot not in gone]).tobytes()
    planes = bytearray(packed)
    for first in range(0, len(packed), SEGMENT):
        for slot in gone:
            planes[first + slot] = 0
    return bytes(planes) if any(planes) else b""


class Total:
    """Adds up packed slots. The sum for each must stay below 2 to the 32."""

    def __init__(self) -> None:
        self._few: list[bytes] = []
        self._counts: Counter[int] = Counter()
        self._many = 0

    def add(self, packed: bytes, times: int) -> None:
        """Add slots, `times` over."""
        if len(packed) < SEGMENT:
            self._few += [packed] * times
            if len(self._few) > _MANY_PARTS:
                self._add_few()
            return
        lanes = bytearray(4 * SEGMENT)
        for plane in range(len(packed) // SEGMENT):
            lanes[plane::4] = packed[plane * SEGMENT : (plane + 1) * SEGMENT]
        self._many += times * int.from_bytes(lanes, "little")

    def _add_few(self) -> None:
        self._counts.update(array("H", b"".join(self._few)))
        self._few.clear()

    def counts(self) -> Counter[int]:
        """Return the sums that are not 0, by slot."""
        self._add_few()
        if self._many:
            lanes = struct.unpack(f"<{SEGMENT}I", self._many.to_bytes(4 * SEGMENT, "little"))
            self._counts.update({slot: count for slot, count in enumerate(lanes) if count})
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
            for slot, count in self._counts.items():
                plane[slot] += count
            if all(lanes[at::4].count(0) == SEGMENT for at in (1, 2, 3)):
                return bytes(plane)
        return self.counts()


def spread(scores: Sequence[Scores]) -> Iterator[tuple[int, int]]:
    """Return scores, the highest first, and how many there are of each."""
    planes = b"".join([each for each in scores if isinstance(each, bytes)])
    counted: Counter[int] = Counter()
    for each in scores:
        if isinstance(each, Counter):
            counted.update(each.values())
    for value in sorted({*planes, *counted} - {0}, reverse=True):
        yield value, counted[value] + (planes.count(value) if value < 256 else 0)


def at_least(scores: Scores, least: int) -> Iterator[tuple[int, int]]:
    """Return the slots with such scores, and these."""
    if isinstance(scores, Counter):
        yield from [(slot, value) for slot, value in scores.items() if value >= least]
    elif least < 256:
        for found in re.finditer(b"[\\x%02x-\xff]" % least, scores):
            yield found.start(), scores[found.start()]


# --- the vocabulary ------------------------------------------------------------------------------


class Block:
    """Runs that are numbered one after the other.

    Attributes:
        first: the number of the first.
        lines: all of them, each between line feeds. Of a run that is no more, only the line stays,
            so that the others keep their numbers.
        sum: a checksum of both.
    """

    def __init__(self, first: int, lines: bytes) -> None:
        self.first = first
        self.lines = lines
        self.sum = zlib.crc32(lines, first & 0xFFFFFFFF)
        self._before: list[int] = []  # lines before each `_STEP` bytes, once asked for

    def number(self, start: int) -> int:
        """Return the number of the run that starts at `start`."""
        if not self._before:
            steps = range(0, len(self.lines), _STEP)
            counts = (self.lines.count(b"\n", at, at + _STEP) for at in steps)
            self._before = list(accumulate(counts, initial=self.first - 1))
        step = start // _STEP
        return self._before[step] + self.lines.count(b"\n", step * _STEP, start)


def matching(
    blocks: Iterable[Block], part: str, *, begins: bool = False, ends: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Find the runs that contain `part`; at their beginning, at their end, or as a whole."""
    pattern = b"\n" * begins + part.encode() + b"\n" * ends
    for block in blocks:
        lines = block.lines
        at = lines.find(pattern)
        while at >= 0:
            start = lines.rfind(b"\n", 0, at + begins) + 1
            end = lines.find(b"\n", start)
            yield block.number(start), lines[start:end]
            at = lines.find(pattern, end)


def numbers(blocks: Iterable[Block], runs: Collection[bytes]) -> dict[bytes, int]:
    """Return the numbers of those runs that are in the vocabulary."""
    return {
        run: number
        for block in blocks
        for number, run in enumerate(block.lines.split(b"\n"), block.first - 1)
        if run in runs
    }
