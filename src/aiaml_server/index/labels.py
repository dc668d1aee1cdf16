"""The tables of labels: agent, user, topics, moment and end of each memory, for filters and counts.

A memory's row holds the numbers of names, a few bytes, so that one pass over all of 100,000 takes
some ten milliseconds. Names stand as they are written, once each; what is the same in any case has
the same `folded`. A checksum of all rows and names together is compared once, before anything is
told that is made of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias
from zlib import crc32

from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.index.postings import MASK
from aiaml_server.storage.sqlite import Damaged, SharedFile

TABLES = """
CREATE TABLE names (id INTEGER PRIMARY KEY, field, name, folded, uses, UNIQUE (field, name));
CREATE TABLE labels (id INTEGER PRIMARY KEY, agent, user, topics, instant);
CREATE TABLE labels_sum (sum);
INSERT INTO labels_sum VALUES (0);
CREATE TABLE ends (id INTEGER PRIMARY KEY, moment);
CREATE TABLE ends_sum (sum);
INSERT INTO ends_sum VALUES (0)
"""
"""`uses`: how many memories have a name. `topics`: the numbers of these, a comma around each.
`ends`: only of the memories that have one, so that it is read at once and compared by itself."""

_ROWS = "SELECT id, agent, user, topics, instant FROM labels"
_NAMES = "SELECT id, field, name, folded FROM names"
_USES = "SELECT id, uses FROM names"
_USE = """
INSERT INTO names (field, name, folded, uses) VALUES (?, ?, ?, ?)
ON CONFLICT (field, name) DO UPDATE SET uses = uses + excluded.uses
"""
_NUMBERS = "SELECT id, name FROM names WHERE field = ? AND name IN ({})"
_FOLDED = "SELECT id FROM names WHERE field = ? AND folded = ?"
_FAR = 4_102_444_800_000_000  # the year 2100: what claims to be of then would flatten a picture
_FEW_PEOPLE = 50
_LINKED = 18  # topics whose pairs are counted
_NEWEST = 5_000  # memories in which they are
MOST_PAIRS = 60
MOST_NAMES = 200
_NEVER = -(1 << 63)  # the moment of a memory that names none

Name: TypeAlias = tuple[str, str]  # the field, and what stands there
Row: TypeAlias = tuple[int, int, int, str, int]


Folded: TypeAlias = tuple[str, str]  # a name as it is written, and in any case
Pairs: TypeAlias = list[tuple[str, str, int]]


class Label(NamedTuple):
    """What is recorded of a memory: agent, user and topics, each once, its moment and its end."""

    names: tuple[Name, ...]
    instant: int
    ends: int | None

    @classmethod
    def of(cls, memory: Memory, instant: int) -> Label:
        """Return the label of a memory, of which `instant` is the moment as it is recorded."""
        topics = (("topic", each) for each in dict.fromkeys(memory.topics))
        names = (("agent", memory.agent), ("user", memory.user), *topics)
        return cls(names, instant, memory.ends)


class Counts(NamedTuple):
    """What a filter lets through, counted.

    Attributes:
        all: memories.
        malformed: files that are none.
        meant: those that the filter lets through.
        agents: of those that were meant if none were chosen, with numbers; the most frequent first.
        users: likewise.
        topics: of those that are meant; one that a memory has in two ways counts twice.
        pairs: frequent topics that stand together, among the newest 5,000 that are meant.
        times: the beginning of each span, and how many of those that were meant at any time.
    """

    all: int
    malformed: int
    meant: int
    agents: list[tuple[str, int]]
    users: list[tuple[str, int]]
    topics: list[tuple[str, int]]
    pairs: Pairs
    times: list[tuple[int, int]]


class Labels:
    """The labels of all memories, in the file that the index shares."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._agreed = False
        self._ends: dict[int, int] | None = None

    def doubt(self) -> None:
        """Compare the checksums anew: somebody else has written."""
        self._agreed = False
        self._ends = None

    def marks(self, wanted: Filter, size: int) -> bytes:
        """Return a byte for each number below `size`: 255 where the filter `matches`, else 0."""
        marks = bytearray(size)
        found = self._file.sql.execute(f"SELECT id FROM labels WHERE {self.where(wanted)}")  # noqa: S608 (numbers)
        for (number,) in found:
            marks[number] = 255
        return bytes(marks)

    def where(self, wanted: Filter) -> str:
        """Return the condition on `labels` for the memories that a filter lets through."""
        self._check()
        return self._where(wanted)

    def expired(self, at: int) -> set[int]:
        """Return the numbers of the memories that no longer hold at a moment."""
        return {number for number, moment in self._checked_ends().items() if moment < at}

    def _checked_ends(self) -> dict[int, int]:
        if self._ends is None:
            rows = self._file.read("SELECT id, moment FROM ends")
            if _sum(rows) & MASK != self._file.read("SELECT sum FROM ends_sum")[0][0]:
                raise Damaged
            self._ends = dict(rows)
        return self._ends

    def _where(self, wanted: Filter) -> str:
        conditions = ["1"]
        if wanted.expired is not None:
            self._checked_ends()
            conditions.append(f"id IN (SELECT id FROM ends WHERE moment < {wanted.expired})")  # noqa: S608 (a number)
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
        return " AND ".join(conditions)

    def names(self, field: str) -> list[tuple[str, int]]:
        """Return the names of a field and how many memories have each, the most frequent first.

        They are for the Tab key, and so not compared with the checksum, which takes longer.
        """
        return self._file.read(
            "SELECT name, uses FROM names WHERE field = ? ORDER BY uses DESC, name", (field,)
        )

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
        execute = self._file.sql.execute
        total = _sum(execute(_ROWS)) + _sum(execute(_NAMES)) + _sum_of_uses(execute(_USES))
        if total & MASK != self._file.read("SELECT sum FROM labels_sum")[0][0]:
            raise Damaged
        self._agreed = True

    # --- counted ------------------------------------------------------------------------------

    def extent(self, wanted: Filter) -> tuple[int, int] | None:
        """Return the first and the last moment of what a filter lets through at any time."""
        self._check()
        ends = "SELECT min(instant), max(instant) FROM labels"
        ((first, last),) = self._file.read(f"{ends} WHERE {self._in_picture(wanted)}")
        return None if first is None else (first, last)

    def _in_picture(self, wanted: Filter) -> str:
        at_any_time = wanted._replace(since=None, until=None)
        return f"{self._where(at_any_time)} AND instant > 0 AND instant < {_FAR}"

    def counts(self, wanted: Filter, borders: Sequence[int]) -> Counts:
        """Count what a filter lets through, and that of any time between borders."""
        self._check()
        anyone = wanted._replace(agent=""), wanted._replace(user="")
        where = self._where(wanted)
        count = self._one(f"SELECT count(*) FROM labels WHERE {where}")  # noqa: S608 (numbers)
        written = self._written()
        topics = self._topics(where, count)
        return Counts(
            all=self._one("SELECT count(*) FROM labels"),
            malformed=self._one("SELECT count(*) FROM files WHERE memory_id IS NULL"),
            meant=count,
            agents=_most(self._people("agent", anyone[0]), written),
            users=_most(self._people("user", anyone[1]), written),
            topics=_most(topics, written),
            pairs=self._pairs(where, topics, written),
            times=self._times(wanted, borders),
        )

    def _one(self, statement: str) -> int:
        return int(self._file.read(statement)[0][0] or 0)

    def _written(self) -> dict[int, Folded]:
        """Return of each name, by its number, how it is written and what it is in any case."""
        rows = self._file.read("SELECT id, name, folded FROM names ORDER BY id")
        return {number: (name, folded) for number, name, folded in rows}

    def _uses(self, field: str) -> Counter[int]:
        rows = self._file.read("SELECT id, uses FROM names WHERE field = ?", (field,))
        return Counter(dict(rows))

    def _people(self, field: str, wanted: Filter) -> Counter[int]:
        """Count agents or users; looking through one text is quicker than grouping rows."""
        uses = self._uses(field)
        if not wanted or len(uses) > _FEW_PEOPLE:
            return uses if not wanted else self._grouped(field, wanted)
        text = self._text(f"';' || {field} || ';'", self._where(wanted))
        return Counter({number: text.count(f";{number};") for number in uses})

    def _grouped(self, field: str, wanted: Filter) -> Counter[int]:
        rows = self._file.read(
            f"SELECT {field}, count(*) FROM labels WHERE {self._where(wanted)} GROUP BY {field}"  # noqa: S608 (numbers)
        )
        return Counter(dict(rows))

    def _text(self, column: str, where: str) -> str:
        rows = self._file.read(f"SELECT group_concat({column}, '') FROM labels WHERE {where}")  # noqa: S608 (numbers)
        return rows[0][0] or ""

    def _topics(self, where: str, count: int) -> Counter[int]:
        """Count topics: those that are meant or, where these are most, all but the others."""
        uses, rest = self._uses("topic"), self._one("SELECT count(*) FROM labels") - count
        if count <= rest:
            return _numbered(self._text("topics", where))
        if rest:
            uses.subtract(_numbered(self._text("topics", f"NOT ({where})")))
        return uses

    def _pairs(self, where: str, topics: Counter[int], written: Mapping[int, Folded]) -> Pairs:
        """Count which of the most frequent topics stand together in the newest memories."""
        most = dict(topics.most_common(_LINKED))
        rows = self._file.sql.execute(
            f"SELECT topics FROM labels WHERE {where} ORDER BY id DESC LIMIT {_NEWEST}"  # noqa: S608 (numbers)
        )
        counts: Counter[tuple[str, str]] = Counter()
        wanted = {str(number): written[number][1] for number in most}
        for (each,) in rows:
            if len(found := wanted.keys() & each.split(",")) > 1:
                counts.update(combinations(sorted({wanted[number] for number in found}), 2))
        names = {written[number][1]: written[number][0] for number in most}
        return [(names[a], names[b], count) for (a, b), count in counts.most_common(MOST_PAIRS)]

    def _times(self, wanted: Filter, borders: Sequence[int]) -> list[tuple[int, int]]:
        if not wanted._replace(since=None, until=None):
            count = "SELECT count(*) FROM files WHERE instant >= ? AND instant < ?"
            return [(a, self._file.read(count, (a, b))[0][0]) for a, b in pairwise(borders)]
        text = self._text("instant || ','", self._in_picture(wanted))
        moments = sorted(map(int, filter(None, text.split(","))))
        places = [bisect_left(moments, each) for each in borders]
        return [(start, b - a) for start, (a, b) in zip(borders, pairwise(places), strict=False)]

    # --- recording ------------------------------------------------------------------------------

    def agree(self, number: int, label: Label) -> bool:
        """Say whether this is what is recorded of a memory."""
        row = _row(number, label, self._numbers(label.names))
        ends = self._file.read("SELECT moment FROM ends WHERE id = ?", (number,))
        same = self._file.read(f"{_ROWS} WHERE id = ?", (number,)) == [row]
        return same and ends == ([] if label.ends is None else [(label.ends,)])

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
        used = _sum_of_uses((numbers[name], count) for name, count in uses.items())
        self._change_sum(_sum(new) + _sum(added) + used)
        ends = [(number, each.ends) for number, each in labels.items() if each.ends is not None]
        self._file.sql.executemany("INSERT INTO ends VALUES (?, ?)", ends)
        self._change_ends(_sum(ends))

    def remove(self, numbers: Sequence[int]) -> None:
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
        self._change_sum(-_sum(gone) - _sum(rows) - _sum_of_uses(uses.items()))
        ends = self._file.read_some("SELECT id, moment FROM ends WHERE id IN ({})", numbers)
        self._change_ends(-_sum(rows := list(ends)))
        self._file.sql.executemany("DELETE FROM ends WHERE id = ?", [row[:1] for row in rows])

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

    def _change_ends(self, change: int) -> None:
        if change:
            self._file.sql.execute("UPDATE ends_sum SET sum = sum + ? & ?", (change, MASK))
            self._ends = None


def _row(number: int, label: Label, numbers: Mapping[Name, int]) -> Row:
    agent, user, *topics = (numbers.get(name, 0) for name in label.names)
    return number, agent, user, "".join(f",{each}" for each in topics) + ",", label.instant


def _numbers_in(row: Row) -> list[int]:
    """Return the numbers of the names in a row."""
    _, agent, user, topics, _ = row
    return [agent, user, *map(int, filter(None, topics.split(",")))]


def _sum(rows: Iterable[tuple[object, ...]]) -> int:
    return sum(crc32(repr(row).encode()) for row in rows)


def _sum_of_uses(uses: Iterable[tuple[int, int]]) -> int:
    """Return a checksum of how many memories have names, by their numbers, that can be added to."""
    return sum(count * crc32(b"%d" % number) for number, count in uses)


def _numbered(topics: str) -> Counter[int]:
    """Count the numbers between commas."""
    counted = Counter(topics.split(","))
    del counted[""]
    return Counter({int(each): count for each, count in counted.items()})


def _most(counts: Counter[int], written: Mapping[int, Folded]) -> list[tuple[str, int]]:
    """Return names in any case with their counts, the most frequent first, as first written."""
    by_name: Counter[str] = Counter()
    names: dict[str, str] = {}
    for number in sorted(written.keys() & counts.keys(), reverse=True):
        name, folded = written[number]
        if counts[number] > 0:
            by_name[folded] += counts[number]
            names[folded] = name
    return [(names[each], count) for each, count in by_name.most_common(MOST_NAMES)]
