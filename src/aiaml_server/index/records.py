"""What is recorded of one file: the columns of its row and of its text, and their checksums."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple, TypeAlias
from zlib import crc32

from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import Fields, fields
from aiaml_server.index.checked import MASK
from aiaml_server.storage.store import Stamp
from aiaml_server.timestamps import parse_timestamp

TEXT, ROW, TIE_BREAK = 1, 2, 4
"""The parts of a document that have a checksum each, as bits."""

NO_INSTANT = -(1 << 63)
"""Recorded for the moment of a timestamp that names none; earlier than any."""

_STAMP = Struct("<qqqqq")


class Row(NamedTuple):
    """A memory as it is recorded."""

    id: int
    name: str
    stamp: Stamp
    memory_id: str
    timestamp: str
    searched: Fields


class Known(NamedTuple):
    """What is recorded of a file without its text."""

    id: int
    name: str
    stamp: Stamp


class FileEntry(NamedTuple):
    """What is to be recorded of a file: a memory, or the problems that make it none."""

    name: str
    stamp: Stamp
    found: Memory | str


Facts: TypeAlias = "tuple[str | None, str | None, int, str | None]"
"""A file's id, timestamp, instant and problems as they are recorded."""


def facts_of(entry: FileEntry) -> Facts:
    """Return a file's id, timestamp, instant and problems as they are recorded."""
    if isinstance(entry.found, str):
        return None, None, NO_INSTANT, entry.found
    moment = parse_timestamp(entry.found.timestamp)
    return entry.found.id, entry.found.timestamp, NO_INSTANT if moment is None else moment, None


def texts_of(entry: FileEntry) -> tuple[str | None, ...]:
    """Return what is searched in a file as it is recorded; of one that is no memory, nothing."""
    if isinstance(entry.found, str):
        return (None,) * 4
    return tuple(text for _, text in fields(entry.found))


def searched_in(topics: str, content: str, user: str, agent: str) -> Fields:
    """Return what `scorer` searches, of the columns of a text."""
    return ((2, topics), (1, content), (1, user), (1, agent))


def packed(name: str) -> bytes:
    """Return a file's name as it is recorded.

    Names as bytes sort like names as text, also those that are no valid Unicode.
    """
    return name.encode("utf-8", "surrogatepass")


def unpacked(name: bytes) -> str:
    """Undo `packed`."""
    return name.decode("utf-8", "surrogatepass")


def row_sums(doc: int, entry: FileEntry, facts: Facts) -> tuple[int, int]:
    """Return the checksums of what breaks ties and of a file's row."""
    memory_id, timestamp, moment, _ = facts
    tie_break = tie_break_sum(moment, packed(entry.name), doc)
    return tie_break, row_sum(doc, entry.stamp, memory_id, timestamp, tie_break)


def row_sum(
    doc: int, stamp: Sequence[int], memory_id: str | None, timestamp: str | None, tie_break: int
) -> int:
    """Return the checksum of a file's row; that of its name and instant is `tie_break`."""
    text = f"{memory_id}\0{timestamp}".encode("utf-8", "replace")
    return crc32(text, crc32(_STAMP.pack(doc, *stamp), tie_break))


def tie_break_sum(moment: int, name: bytes, doc: int) -> int:
    """Return the checksum of what breaks ties between memories of equal score."""
    return crc32(name, (moment ^ moment >> 32 ^ doc << 8) & MASK)


def text_sum(doc: int, searched: Fields) -> int:
    """Return the checksum of a text: its fields in the order of `view.JOINED`."""
    (_, topics), (_, content), (_, user), (_, agent) = searched
    return crc32(f"{topics}\0{user}\0{agent}\0{content}".encode(), doc)
