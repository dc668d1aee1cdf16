"""The tables of labels: the agent, user, topics and moment of each memory, for filters and counts.

A memory's row holds the numbers of names, a few bytes, so that one pass over all of 100,000 takes
some ten milliseconds. Names stand as they are written, once each; what is the same in any case has
the same `folded`. A checksum of all rows and names together is compared once, before anything is
told that is made of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias
from zlib import crc32

from .filters import Filter
from .memory import Memory
from .postings import MASK
from .sqlite import Damaged, SharedFile

TABLES = """
CREATE TABLE names (id INTEGER PRIMARY KEY, field, name, folded, uses, UNIQUE (field, name));
CREATE TABLE labels (id INTEGER PRIMARY KEY, agent, user, topics, instant);
CREATE TABLE labels_sum (sum);
INSERT INTO labels_sum VALUES (0)
"""
"""`uses`: how many memories have a name. `topics`: the numbers of these, a comma around each."""

_ROWS = "SELECT id, agent, user, topics, instant FROM labels"
_NAMES = "SELECT id, field, name, folded FROM names"
_USE = """
INSERT INTO names (field, name, folded, uses) VALUES (?, ?, ?, ?)
ON CONFLICT (field, name) DO UPDATE SET uses = uses + excluded.uses
"""
_NUMBERS = "SELECT id, name FROM names WHERE field = ? AND name IN ({})"
_FOLDED = "SELECT id FROM names WHERE field = ? AND folded = ?"
_NEVER = -(1 << 63)  # the moment of a memory that names none

Name: TypeAlias = tuple[str, str]  # the field, and what stands there
Row: TypeAlias = tuple[int, int, int, str, int]


class Label(NamedTuple):
    """What is recorded of a memory: its agent, user and topics, each once, and its moment."""

    names: tuple[Name, ...]
    instant: int

    @classmethod
    def of(cls, memory: Memory, instant: int) -> Label:
        """Return the label of a memory, of which `instant` is the moment as it is recorded."""
        topics = (("topic", each) for each in dict.fromkeys(memory.topics))
        return cls((("agent", memory.agent), ("user", memory.user), *topics), instant)


class Labels:
    """The labels of all memories, in the file that the index shares."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._agreed = False

    def doubt(self) -> None:
        """Compare the checksum anew: somebody else has written."""
        self._agreed = False

    def meant(self, wanted: Filter) -> set[int]:
        """Return the numbers of the memories that a filter lets through: those it `matches`."""
        self._check()
        conditions = ["1"]
        for field, name in (("agent", wanted.agent), ("user", wanted.user)):
            if name:
                numbers = ", ".join(map(str, self._folded(field, name)))
                conditions.append(f"{field} IN ({numbers})")
        for topic in wanted.topics:
            places = [f"instr(topics, ',{each},')" for each in self._folded("topic", topic)]
            conditions.append(f"({' OR '.join(places) or '0'})")
        if wanted.since is not None or wanted.until is not None:
            since = _NEVER if wanted.since is None else wanted.since - 1
            conditions.append(f"instant > {since}")
        if wanted.until is not None:
            conditions.append(f"instant < {wanted.until}")
        found = self._file.sql.execute(f"SELECT id FROM labels WHERE {' AND '.join(conditions)}")  # noqa: S608 (numbers)
        return {number for (number,) in found}

    def _folded(self, field: str, name: str) -> list[int]:
        """Return the numbers of all names of a field that are this one in any case."""
        if name != name.encode("utf-8", "ignore").decode():
            return []  # half of a surrogate pair, which no file holds
        found = self._file.read(
            "SELECT id FROM names WHERE field = ? AND folded = ?", (field, name)
        )
        return [number for (number,) in found]

    def _check(self) -> None:
        if self._agreed:
            return
        total = _sum(self._file.sql.execute(_ROWS)) + _sum(self._file.sql.execute(_NAMES))
        if total & MASK != self._file.read("SELECT sum FROM labels_sum")[0][0]:
            raise Damaged
        self._agreed = True

    # --- recording ------------------------------------------------------------------------------

    def agree(self, number: int, label: Label) -> bool:
        """Say whether this is what is recorded of a memory."""
        row = _row(number, label, self._numbers(label.names))
        return self._file.read(f"{_ROWS} WHERE id = ?", (number,)) == [row]

    def add(self, labels: Mapping[int, Label]) -> None:
        """Record the labels of memories, by their numbers."""
        uses = Counter(name for label in labels.values() for name in label.names)
        known = self._numbers(uses)
        folded = {name: name[1].casefold() for name in uses}
        rows = [(*name, folded[name], count) for name, count in uses.items()]
        self._file.sql.executemany(_USE, rows)
        numbers = self._numbers(uses)
        new = [(numbers[name], *name, folded[name]) for name in uses if name not in known]
        added = [_row(number, label, numbers) for number, label in labels.items()]
        self._file.sql.executemany("INSERT INTO labels VALUES (?, ?, ?, ?, ?)", added)
        self._change_sum(_sum(new) + _sum(added))

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove the labels of memories, and the names that no other has."""
        rows = list(self._file.read_some(f"{_ROWS} WHERE id IN ({{}})", numbers))
        uses = Counter(number for row in rows for number in _numbers_in(row))
        self._file.sql.executemany(
            "UPDATE names SET uses = uses - ? WHERE id = ?",
            [(count, number) for number, count in uses.items()],
        )
        gone = list(self._file.read_some(f"{_NAMES} WHERE uses <= 0 AND id IN ({{}})", uses))
        self._file.sql.executemany("DELETE FROM names WHERE id = ?", [row[:1] for row in gone])
        self._file.sql.executemany("DELETE FROM labels WHERE id = ?", [row[:1] for row in rows])
        self._change_sum(-_sum(gone) - _sum(rows))

    def _numbers(self, names: Iterable[Name]) -> dict[Name, int]:
        by_field: defaultdict[str, list[str]] = defaultdict(list)
        for field, name in names:
            by_field[field].append(name)
        return {
            (field, name): number
            for field, wanted in by_field.items()
            for number, name in self._file.read_some(_NUMBERS, wanted, before=(field,))
        }

    def _change_sum(self, change: int) -> None:
        self._file.sql.execute("UPDATE labels_sum SET sum = sum + ? & ?", (change, MASK))


def _row(number: int, label: Label, numbers: Mapping[Name, int]) -> Row:
    agent, user, *topics = (numbers.get(name, 0) for name in label.names)
    return number, agent, user, "".join(f",{each}" for each in topics) + ",", label.instant


def _numbers_in(row: Row) -> list[int]:
    """Return the numbers of the names in a row."""
    _, agent, user, topics, _ = row
    return [agent, user, *map(int, filter(None, topics.split(",")))]


def _sum(rows: Iterable[tuple[object, ...]]) -> int:
    return sum(crc32(repr(row).encode()) for row in rows)
