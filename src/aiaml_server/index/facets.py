"""The tables of facets: agent, user, topics, moment and end of each memory, for filters and counts.

A memory's row holds the numbers of values, a few bytes, so that one pass over all of 100,000 takes
some ten milliseconds. Values stand as they are written, once each; what is the same in any case has
the same `folded`. The sum of all rows and values together is compared once, before anything is told
that is made of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple, TypeAlias
from zlib import crc32

from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.index.checked import CheckedFile, sum_of

TABLES = """
CREATE TABLE names (id INTEGER PRIMARY KEY, field, name, folded, uses, UNIQUE (field, name));
CREATE TABLE facets (id INTEGER PRIMARY KEY, agent, user, topics, instant);
"""
"""`uses`: how many memories have a name. `topics`: the numbers of these, a comma around each."""

_ROWS = "SELECT id, agent, user, topics, instant FROM facets"
_NAMES = "SELECT id, field, name, folded FROM names"
_USES = "SELECT id, uses FROM names"
_NUMBERS = "SELECT id, name FROM names WHERE field = ? AND name IN ({})"
_FAR = 4_102_444_800_000_000  # the year 2100: what claims to be of then would flatten a picture
_FEW_PEOPLE = 50
_LINKED = 18  # topics whose pairs are counted
_NEWEST = 5_000  # memories in which they are
MOST_PAIRS = 60
MOST_NAMES = 200
_NEVER = -(1 << 63)  # the moment of a memory that names none
_UNKNOWN = -1  # of a name without a row, which no column holds: 0 may be one that says "none"

Name: TypeAlias = tuple[str, str]  # the field, and what stands there
_Row: TypeAlias = tuple[int, int, int, str, int]
Folded: TypeAlias = tuple[str, str]  # a name as it is written, and in any case
Pairs: TypeAlias = list[tuple[str, str, int]]
Borders: TypeAlias = Callable[[tuple[int, int] | None], Sequence[int]]
"""From the first and last moment of what is meant at any time to where its spans begin and end."""


class Described(NamedTuple):
    """What is recorded of a memory: agent, user and topics, each once, and its moment."""

    names: tuple[Name, ...]
    instant: int

    @classmethod
    def of(cls, memory: Memory, instant: int) -> Described:
        """Describe a memory, of which `instant` is the moment as it is recorded."""
        topics = [("topic", each) for each in dict.fromkeys(memory.topics)]
        names = (("agent", memory.agent), ("user", memory.user), *topics)
        return cls(names, instant)


class Step:
    """The names of memories that one transaction records together.

    Attributes:
        numbers: of each name, new or known.
        new: the names that have no row yet.
        uses: how many of these memories have each.
    """

    def __init__(self) -> None:
        self.numbers: dict[Name, int] = {}
        self.new: list[Name] = []
        self.uses: Counter[Name] = Counter()


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


class Facets:
    """The facets of all memories, in the file that the index shares."""

    def __init__(self, file: CheckedFile) -> None:
        self._file = file
        self._among = "1"  # the condition that holds whatever is wanted

    def among(self, docs: Iterable[int]) -> Facets:
        """Return the same tables, of which only these documents are meant."""
        facets = Facets(self._file)
        facets._among = f"id IN ({', '.join(map(str, docs))})"
        return facets

    def marks(self, wanted: Filter, end: int) -> bytes:
        """Return a byte for each document below `end`: 255 where the filter `matches`, else 0."""
        marks = bytearray(end)
        found = self._file.sql.execute(f"SELECT id FROM facets WHERE {self.where(wanted)}")
        for (doc,) in found:
            marks[doc] = 255
        return bytes(marks)

    def where(self, wanted: Filter) -> str:
        """Return the condition for memories that a filter lets through; compare the rows first."""
        if "facets" not in self._file.verified.kinds:
            execute = self._file.sql.execute
            total = sum_of(execute(_ROWS)) + sum_of(execute(_NAMES)) + _sum_of_uses(execute(_USES))
            self._file.compare_sum("facets", total)
        conditions = [self._among]
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

    # --- counted ------------------------------------------------------------------------------

    def extent(self, wanted: Filter) -> tuple[int, int] | None:
        """Return the first and the last moment of what a filter lets through at any time."""
        ends = "SELECT min(instant), max(instant) FROM facets"
        ((first, last),) = self._file.read(f"{ends} WHERE {self._in_picture(wanted)}")
        return None if first is None else (first, last)

    def _in_picture(self, wanted: Filter) -> str:
        at_any_time = wanted._replace(since=None, until=None)
        return f"{self.where(at_any_time)} AND instant > 0 AND instant < {_FAR}"

    def counts(self, wanted: Filter, borders: Borders) -> Counts:
        """Count what a filter lets through, and that of any time between borders."""
        between = borders(self.extent(wanted))
        anyone = wanted._replace(agent=""), wanted._replace(user="")
        where = self.where(wanted)
        count = self._one(f"SELECT count(*) FROM facets WHERE {where}")
        written = self._written()
        topics = self._topics(where, count)
        return Counts(
            all=self._one("SELECT count(*) FROM facets"),
            malformed=self._one("SELECT count(*) FROM files WHERE memory_id IS NULL"),
            meant=count,
            agents=_most(self._people("agent", anyone[0]), written),
            users=_most(self._people("user", anyone[1]), written),
            topics=_most(topics, written),
            pairs=self._pairs(where, topics, written),
            times=self._times(wanted, between),
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
        everyone = self._among == "1" and not wanted
        if everyone or len(uses) > _FEW_PEOPLE:
            return uses if everyone else self._grouped(field, wanted)
        text = self._text(f"';' || {field} || ';'", self.where(wanted))
        return Counter({number: text.count(f";{number};") for number in uses})

    def _grouped(self, field: str, wanted: Filter) -> Counter[int]:
        rows = self._file.read(
            f"SELECT {field}, count(*) FROM facets WHERE {self.where(wanted)} GROUP BY {field}"
        )
        return Counter(dict(rows))

    def _text(self, column: str, where: str) -> str:
        rows = self._file.read(f"SELECT group_concat({column}, '') FROM facets WHERE {where}")
        return rows[0][0] or ""

    def _topics(self, where: str, count: int) -> Counter[int]:
        """Count topics: those that are meant or, where these are most, all but the others."""
        uses, rest = self._uses("topic"), self._one("SELECT count(*) FROM facets") - count
        if count <= rest:
            return _numbered(self._text("topics", where))
        if rest:
            uses.subtract(_numbered(self._text("topics", f"NOT ({where})")))
        return uses

    def _pairs(self, where: str, topics: Counter[int], written: Mapping[int, Folded]) -> Pairs:
        """Count which of the most frequent topics stand together in the newest memories."""
        most = dict(topics.most_common(_LINKED))
        rows = self._file.sql.execute(
            f"SELECT topics FROM facets WHERE {where} ORDER BY id DESC LIMIT {_NEWEST}"
        )
        counts: Counter[tuple[str, str]] = Counter()
        wanted = {str(number): written[number][1] for number in most}
        for (each,) in rows:
            if len(found := wanted.keys() & each.split(",")) > 1:
                counts.update(combinations(sorted({wanted[number] for number in found}), 2))
        names = {written[number][1]: written[number][0] for number in most}
        return [(names[a], names[b], count) for (a, b), count in counts.most_common(MOST_PAIRS)]

    def _times(self, wanted: Filter, borders: Sequence[int]) -> list[tuple[int, int]]:
        if self._among == "1" and not wanted._replace(since=None, until=None):
            count = "SELECT count(*) FROM files WHERE instant >= ? AND instant < ?"
            return [(a, self._file.read(count, (a, b))[0][0]) for a, b in pairwise(borders)]
        text = self._text("instant || ','", self._in_picture(wanted))
        moments = sorted(map(int, filter(None, text.split(","))))
        places = [bisect_left(moments, each) for each in borders]
        return [(start, b - a) for start, (a, b) in zip(borders, pairwise(places), strict=False)]

    # --- recording ------------------------------------------------------------------------------

    def agree(self, doc: int, described: Described) -> bool:
        """Say whether this is what is recorded of a memory."""
        row = _row(doc, described, self._numbers(described.names))
        return self._file.read(f"{_ROWS} WHERE id = ?", (doc,)) == [row]

    def add(self, memories: Mapping[int, Described], step: Step) -> None:
        """Record the facets of memories, by their documents; their names with `finish`."""
        used = [name for described in memories.values() for name in described.names]
        step.uses.update(used)
        unknown = [name for name in dict.fromkeys(used) if name not in step.numbers]
        step.numbers |= self._numbers(unknown)
        if new := [name for name in unknown if name not in step.numbers]:
            ((last,),) = self._file.read("SELECT ifnull(max(id), 0) FROM names")
            first = last + len(step.new) + 1
            step.numbers |= zip(new, range(first, first + len(new)), strict=True)
            step.new += new
        rows = [_row(doc, described, step.numbers) for doc, described in memories.items()]
        self._file.sql.executemany("INSERT INTO facets VALUES (?, ?, ?, ?, ?)", rows)
        self._file.change_sum("facets", sum_of(rows))

    def finish(self, step: Step) -> None:
        """Record the names of a step."""
        numbers = step.numbers
        new = [(numbers[name], *name, name[1].casefold()) for name in step.new]
        self._file.sql.executemany("INSERT INTO names VALUES (?, ?, ?, ?, 0)", new)
        uses = [(numbers[name], count) for name, count in step.uses.items()]
        self._change_uses(uses)
        self._file.change_sum("facets", sum_of(new) + _sum_of_uses(uses))

    def _change_uses(self, uses: Iterable[tuple[int, int]]) -> None:
        changes = [(count, number) for number, count in uses]
        self._file.sql.executemany("UPDATE names SET uses = uses + ? WHERE id = ?", changes)

    def remove(self, docs: Sequence[int]) -> None:
        """Remove the facets of memories, and the names that no other has."""
        rows = list(self._file.read_some(f"{_ROWS} WHERE id IN ({{}})", docs))
        uses = Counter(number for row in rows for number in _numbers_in(row))
        self._change_uses((number, -count) for number, count in uses.items())
        gone = list(self._file.read_some(f"{_NAMES} WHERE uses <= 0 AND id IN ({{}})", uses))
        for table, removed in (("names", gone), ("facets", rows)):
            ids = [row[:1] for row in removed]
            self._file.sql.executemany(f"DELETE FROM {table} WHERE id = ?", ids)
        self._file.change_sum("facets", -sum_of(gone) - sum_of(rows) - _sum_of_uses(uses.items()))

    def _numbers(self, names: Iterable[Name]) -> dict[Name, int]:
        by_field: defaultdict[str, list[str]] = defaultdict(list)
        for field, name in names:
            by_field[field].append(name)
        return {
            (field, name): number
            for field, wanted in by_field.items()
            for number, name in self._file.read_some(_NUMBERS, wanted, before=(field,))
        }


def _row(doc: int, described: Described, numbers: Mapping[Name, int]) -> _Row:
    agent, user, *topics = [numbers.get(name, _UNKNOWN) for name in described.names]
    return doc, agent, user, "".join([f",{each}" for each in topics]) + ",", described.instant


def _numbers_in(row: _Row) -> list[int]:
    """Return the numbers of the names in a row."""
    _, agent, user, topics, _ = row
    return [agent, user, *map(int, filter(None, topics.split(",")))]


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
