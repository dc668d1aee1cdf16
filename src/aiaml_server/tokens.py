r"""How text is cut for the index, and why counting in the pieces is counting in the text.

A text is cut into *runs*: the longest stretches of word characters (`\w`), and the longest of other
characters that are not white space. A keyword of word characters alone can occur only inside runs
of them, because nothing else in the text matters to where it can stand. So

    text.count(keyword) = sum over the runs that contain it of run.count(keyword)

(`str.count` does not overlap, and no occurrence crosses the end of a run), and the whole words,
`\b` keyword `\b`, are exactly the runs equal to it.

Any other keyword is cut in the same way. If it is one run, it can occur only in a text with a run
that contains it. If it is several (`node.js`, `san francisco`), it can occur only in a text with
its inner runs, one that ends with its first and one that begins with its last. These conditions are
necessary, not sufficient: they narrow the search, and `scorer` then counts in the text itself.

Vocabularies are searched as UTF-8: in it, one text's bytes occur in another's exactly where its
characters do.
"""

from __future__ import annotations

import re
import struct
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from .scorer import Fields

SEGMENT = 4096  # slots
_MANY_PARTS = 1000  # enough to be added up together
MAX_RUN = 200  # characters; a text with a longer run (encoded data) is not cut but always scored

Slots: TypeAlias = "array[int]"

_RUN = re.compile(r"\w+|[^\w\s]+")
_WORD = re.compile(r"\w+")
_SIGNS = re.compile(r"[^\w\s]+")
_ASCII = [chr(code) for code in range(128)]
_ONLY_WORDS = str.maketrans({each: " " for each in _ASCII if not _WORD.match(each)})
_ONLY_SIGNS = str.maketrans({each: " " for each in _ASCII if _WORD.match(each)})


def runs(text: str) -> list[str]:
    """Cut a lower-cased text, or a cleaned keyword, into its runs."""
    return _RUN.findall(text)


def is_word(keyword: str) -> bool:
    """Say whether a keyword is of word characters alone."""
    return _WORD.fullmatch(keyword) is not None


def _no_slots() -> Slots:
    return array("H")


class Postings:
    """For each run of some texts, the slots of the texts that it stands in.

    A slot is a small number that stands for a text.

    Attributes:
        totals: for each run, the slots, over all fields; for runs of word characters, repeated for
            each time that the run stands there.
        topics: for each run of the topics, whose occurrences count once more, the same again.
    """

    def __init__(self) -> None:
        self.totals: defaultdict[str, Slots] = defaultdict(_no_slots)
        self.topics: defaultdict[str, Slots] = defaultdict(_no_slots)

    def add(self, slot: int, searched: Fields) -> bool:
        """Cut a text's fields; False, and nothing is added, when it has too long a run."""
        cut = [(weight, *_cut(text)) for weight, text in searched]
        if any(len(max(words, key=len, default="")) > MAX_RUN for _, words, _ in cut):
            return False
        signs = {run for _, _, each in cut for run in each}
        if len(max(signs, key=len, default="")) > MAX_RUN:
            return False
        for weight, words, _ in cut:
            for slots in map(self.totals.__getitem__, words):
                slots.append(slot)
            for slots in map(self.topics.__getitem__, words if weight > 1 else ()):
                slots.append(slot)
        for slots in map(self.totals.__getitem__, signs):
            slots.append(slot)
        return True


def _cut(text: str) -> tuple[list[str], list[str]]:
    """Return a text's runs of word characters and those of others.

    Cutting at ASCII characters by translation is several times as fast as by pattern; so is it in a
    text of which only a few words are beyond ASCII.
    """
    if text.isascii():
        return text.translate(_ONLY_WORDS).split(), text.translate(_ONLY_SIGNS).split()
    pieces = text.split()
    words, signs = _cut(" ".join([piece for piece in pieces if piece.isascii()]))
    rest = " ".join([piece for piece in pieces if not piece.isascii()])
    return words + _WORD.findall(rest), signs + _SIGNS.findall(rest)


# --- slots, packed -------------------------------------------------------------------------------
#
# Few slots are packed as they are. Many are packed as their counts: a byte for every slot of the
# segment, then, if a count needs more, the second bytes, and so on. Such counts can be added up
# as one long number that has four bytes for each slot.


def pack(slots: Slots) -> bytes:
    """Pack slots, of which each is repeated as often as it counts."""
    if 2 * len(slots) < SEGMENT:
        return slots.tobytes()
    counts = Counter(slots)
    width = (max(counts.values()).bit_length() + 7) // 8
    planes = bytearray(width * SEGMENT)
    for slot, count in counts.items():
        for plane in range(width):
            planes[plane * SEGMENT + slot] = count >> (8 * plane) & 0xFF
    return bytes(planes)


def unpack(packed: bytes) -> Slots:
    """Undo `pack`, but for the order."""
    total = Total()
    total.add(packed, 1)
    return array("H", total.counts().elements())


class Total:
    """Adds up packed slots. The sum for each must stay below 2 to the 32."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._few: list[bytes] = []
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
        """Return the sums that are not 0."""
        self._add_few()
        if self._many:
            lanes = struct.unpack(f"<{SEGMENT}I", self._many.to_bytes(4 * SEGMENT, "little"))
            self._counts.update({slot: count for slot, count in enumerate(lanes) if count})
            self._many = 0
        return self._counts


# --- a vocabulary: the distinct runs of a segment, each between line feeds ----------------------


def vocabulary(words: set[str]) -> bytes:
    """Pack runs for `matching`."""
    return "\n".join(["", *sorted(words), ""]).encode()


def matching(
    packed: bytes, part: str, *, begins: bool = False, ends: bool = False
) -> Iterator[str]:
    """Find the runs that contain `part`; at their beginning, at their end, or as a whole."""
    body = part.encode()
    pattern = b"\n" * begins + body + b"\n" * ends
    at = packed.find(pattern)
    while at >= 0:
        inside = at + begins
        end = packed.find(b"\n", inside)
        yield packed[packed.rfind(b"\n", 0, inside) + 1 : end].decode()
        at = packed.find(pattern, end)
