"""Where the index is kept: its tables in one SQLite file, and the few statements on them.

Each file of the store has a row, under a number; a memory also has the text that `scorer` searches,
in lower case, and its terms are among the `postings`. Unless it is *unindexed*, because it
waits for that or is not worth it: then it is scored as a text.

Whatever an answer is made of is compared with checksums (CRC-32) of what was recorded, so that no
damage gives a wrong answer unseen: a file's row and a text have one each, and the list of unindexed
memories one of the whole, so that none is missing. Those of the terms are in `postings`.
"""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

from aiaml_server.files import Lock
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import Fields, fields
from aiaml_server.index import labels, postings, tuning
from aiaml_server.index.labels import Label, Labels
from aiaml_server.index.postings import MASK, Postings
from aiaml_server.index.tokens import Batch, about, tokenize
from aiaml_server.index.tuning import SEGMENT
from aiaml_server.moments import instant
from aiaml_server.storage.sqlite import PATIENCE, TRY, Damaged, SharedFile, files_of
from aiaml_server.storage.store import Stamp

SCHEMA = 10
_NO_INSTANT = -(1 << 63)
_SUFFIX = ".sqlite"
_NAME = re.compile(r"[0-9]{1,6}-[0-9a-f]{8}(?:-[0-9a-f]{8})?\.sqlite")

_TABLES = f"""
CREATE TABLE directory (modified, changed, inode, size);
INSERT INTO directory VALUES (0, 0, 0, 0);
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name BLOB UNIQUE, modified, changed, inode, size,
    memory_id, timestamp, instant, problems, age_sum, sum
);
CREATE INDEX by_memory_id ON files (memory_id);
CREATE INDEX newest ON files (instant, name);
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent, text_sum);
CREATE TABLE unindexed (id INTEGER PRIMARY KEY, size);
CREATE TABLE unindexed_sum (sum);
INSERT INTO unindexed_sum VALUES (0);
CREATE TABLE texts_sum (sum);
INSERT INTO texts_sum VALUES (0);
CREATE TABLE order_sum (sum);
INSERT INTO order_sum VALUES (0);
{postings.TABLES}{labels.TABLES}"""

_KNOWN = """
SELECT name, modified, changed, inode, size FROM files WHERE name > ? ORDER BY name LIMIT ?
"""
_FIND = "SELECT id, name, modified, changed, inode, size FROM files WHERE name IN ({})"
_AGES = "SELECT instant, name, id, age_sum FROM files WHERE id IN ({})"
_ORDER_SUM = """
SELECT ifnull(sum(instant % 2147483647 * (id + 1) % 2147483647), 0) FROM files {}
"""
_TEXTS = "SELECT id, topics, content, user, agent{} FROM texts WHERE id IN ({{}})"
_ROWS = """
SELECT id, name, modified, changed, inode, size, memory_id, timestamp,
    topics, content, user, agent{}
FROM files JOIN texts USING (id) WHERE id IN ({{}})
"""
_TEXT_SUM = """
, text_sum, CAST(topics || char(0) || user || char(0) || agent || char(0) || content AS BLOB)
"""
_ENCODED = """
SELECT id, CAST(topics || char(0) || topics || char(0) || user || char(0) || agent || char(0)
    || content AS BLOB){} FROM texts
"""
_ENCODED_SUM = ", length(CAST(topics AS BLOB)) + 1, text_sum"
_TEXT_SUMS = "SELECT id, text_sum FROM texts WHERE id IN ({})"
_SUMS = f", age_sum, sum{_TEXT_SUM}"
_UNINDEXED = """
SELECT NULL, sum FROM unindexed_sum UNION ALL SELECT id, size FROM unindexed
"""
_RECORDED = """
SELECT memory_id, timestamp, instant, problems, topics, content, user, agent
FROM files LEFT JOIN texts USING (id) WHERE id = ?
"""
_ADD_FILE = "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_TEXT = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)"
_MEMORIES = "SELECT id FROM files WHERE memory_id IS NOT NULL AND id IN ({})"
_RESTAMP = "UPDATE files SET (modified, changed, inode, size, sum) = (?, ?, ?, ?, ?) WHERE id = ?"


class Row(NamedTuple):
    """A memory as the database has it."""

    id: int
    name: str
    stamp: Stamp
    memory_id: str
    timestamp: str
    searched: Fields


class Known(NamedTuple):
    """What the database knows of a file without looking into it."""

    id: int
    name: str
    stamp: Stamp


Facts: TypeAlias = "tuple[str | None, str | None, int, str | None]"
"""A file's id, timestamp, instant and problems as they are recorded."""


class Entry(NamedTuple):
    """What is to be recorded of a file: a memory, or the problems that make it none."""

    name: str
    stamp: Stamp
    found: Memory | str


# --- its file -------------------------------------------------------------------------------------


def file_of(directory: Path) -> Path:
    """Return the database file for this kind of process: the one that is there, or a new name.

    Texts are cut by Python's Unicode tables, and local times depend on the zone; a process that
    sees either differently has a file of its own. No two files ever have the same name, so that
    what SQLite keeps beside one (a journal) is never taken for that of the next.
    """
    prefix = f"{SCHEMA}-{_kind()}-"
    try:
        names = os.listdir(directory)  # noqa: PTH208 (asked before every answer)
    except OSError:
        names = []
    there = [name for name in names if name.startswith(prefix) and _NAME.fullmatch(name)]
    return directory / (min(there) if there else f"{prefix}{os.urandom(4).hex()}{_SUFFIX}")


@contextmanager
def making(directory: Path) -> Iterator[None]:
    """Have processes that find no file there wait while one of them makes it.

    Each would make one of its own otherwise, and index all memories into it. Where there is no
    lock, or its holder was stopped, that is what happens.
    """
    with Lock(directory / "lock").held(PATIENCE * TRY):
        yield


@cache
def _kind() -> str:
    local = [instant(f"{year}-{month:02}-01") for year in range(1990, 2030, 8) for month in (1, 7)]
    kind = f"{unicodedata.unidata_version} {sys.byteorder} {local}"
    return f"{crc32(kind.encode()):08x}"


def databases(directory: Path) -> list[Path]:
    """Return the databases of all kinds of processes in a directory."""
    return [path for path in directory.glob(f"*{_SUFFIX}") if _NAME.fullmatch(path.name)]


def remove(path: Path) -> None:
    """Delete a database file and what SQLite keeps beside it."""
    for beside in files_of(path):
        with suppress(OSError):
            beside.unlink()


def remove_others(path: Path, older_than: float) -> None:
    """Delete databases of other kinds of processes, unused for so many seconds."""
    for other in databases(path.parent):
        with suppress(OSError):
            if other != path and time.time() - other.lstat().st_mtime > older_than:
                remove(other)


# --- its tables -----------------------------------------------------------------------------------


class Database(SharedFile):
    """One open database. Its user holds a lock: no method may run twice at a time.

    Any method raises sqlite3.Error when the file is damaged or the disk refuses.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        hurried: Callable[[], bool] = lambda: False,
        local: bool = False,
    ) -> None:
        """Open the file, as `SharedFile` does; without a path, a database in memory."""
        self.postings = Postings(self)
        self.labels = Labels(self)
        self._agreed = bytearray()  # of each number, what agreed with its checksums
        self._agreed_at: tuple[int, ...] = ()
        self._all_agree = False  # all texts, and none is missing
        self._order_agrees = False
        self._unindexed: list[int] = []
        self._waiting: dict[int, int] = {}
        self._read_at = -1  # what `changed_by_others` said then; never read
        super().__init__(path, _TABLES, SCHEMA, hurried=hurried, local=local)

    @property
    def there(self) -> bool:
        """Whether the file still is the one to use (a person may delete it at any time)."""
        return super().there and (self.path is None or file_of(self.path.parent) == self.path)

    @property
    def folder(self) -> Path | None:
        """Where the file is; None in memory."""
        return self.path.parent if self.path else None

    def rolled_back(self) -> None:
        """Read anew what may have been read of a transaction that came to nothing."""
        self.postings.rolled_back()
        self._read_at = -1
        self._agreed_at = ()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the database, whatever other processes write meanwhile."""
        with super().snapshot():
            self._believe()
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, alone among the processes."""
        with super().transaction():
            others = self._believe()
            self._all_agree = False
            room = self._last_id() + 1 + SEGMENT  # with what one step adds
            self._agreed.extend(bytes(max(0, room - len(self._agreed))))
            yield
        self._agreed_at = (others, *self._written())  # our own writing harms nothing

    def _believe(self) -> int:
        """Go on believing what agreed with its checksums, unless somebody has written since.

        Return what `changed_by_others` says.
        """
        others = self.changed_by_others()
        if self._agreed_at != (others, *self._written()):
            self._agreed = bytearray(self._last_id() + 1)
            self._all_agree = self._order_agrees = False
            self.postings.doubt()
            self.labels.doubt()
            self._agreed_at = (others, *self._written())
        return others

    def renew(self, path: Path) -> None:
        """Change the file's time; what agreed before is still believed."""
        undisturbed = self._agreed_at[1:] == self._written()
        super().renew(path)
        if undisturbed:
            self._agreed_at = (self._agreed_at[0], *self._written())

    def _written(self) -> tuple[int, ...]:
        """Return the file's time and size, which tell who writes to it other than by SQLite."""
        status = self.path.stat() if self.path else None
        return (status.st_mtime_ns, status.st_size) if status else ()

    # --- files ----------------------------------------------------------------------------------

    def directory(self) -> Stamp:
        """Return the directory's stamp as of the last time all files were compared."""
        return Stamp(*self.read("SELECT * FROM directory")[0])

    def set_directory(self, stamp: Stamp) -> None:
        """Record the directory's stamp."""
        with self.transaction():
            self.sql.execute(
                "UPDATE directory SET (modified, changed, inode, size) = (?, ?, ?, ?)", stamp
            )

    def known(self, after: str = "", most: int = -1) -> Iterator[tuple[str, Stamp]]:
        """Return up to `most` files, or all, whose names come after `after`, in their order."""
        while most:
            size = min(most, tuning.LISTED) if most > 0 else tuning.LISTED
            rows = self.read(_KNOWN, (_packed(after), size))
            yield from ((_name(name), Stamp._make(stamp)) for name, *stamp in rows)
            if len(rows) < tuning.LISTED:
                return
            after, most = _name(rows[-1][0]), most - len(rows) if most > 0 else most

    def read_from(self, first: int) -> set[str]:
        """Return the files whose numbers are not below `first`, and that bear a stamp."""
        rows = self.read("SELECT name FROM files WHERE id >= ? AND inode > 0", (first,))
        return {_name(name) for (name,) in rows}

    def any_name(self, few: int) -> str:
        """Return the name of a random file; empty while there are at most `few`."""
        count, last = self.read("SELECT count(*), max(id) FROM files")[0]
        if count <= few:
            return ""
        some = int.from_bytes(os.urandom(8), "little") % (last + 1)
        rows = self.read("SELECT name FROM files WHERE id >= ? ORDER BY id LIMIT 1", (some,))
        return "".join(_name(name) for (name,) in rows)

    def malformed(self) -> list[tuple[str, str]]:
        """Return the files that are no memories, with their problems."""
        rows = self.read("SELECT name, problems FROM files WHERE memory_id IS NULL")
        return [(_name(name), problems) for name, problems in rows]

    def names(self, memory_id: str) -> list[str]:
        """Return the files whose memories carry an id."""
        rows = self.read("SELECT name FROM files WHERE memory_id = ?", (memory_id,))
        if not rows:  # in the order of ids; the table itself can tell that it was damaged
            rows = self.read("SELECT name FROM files WHERE +memory_id = ?", (memory_id,))
        return [_name(name) for (name,) in rows]

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`, in the order of the alphabet."""
        rows = self.read(
            "SELECT DISTINCT memory_id FROM files WHERE memory_id BETWEEN ? AND ? || char(1114111)",
            (prefix, prefix),
        )
        return sorted(memory_id for (memory_id,) in rows)

    def dated(self, wanted: Filter | None = None) -> list[tuple[int, str]]:
        """Return moment and file of each memory that is meant, or of all, newest first."""
        # Through the index that has the order: `+id` keeps SQLite from looking up each row.
        statement = "SELECT instant, name FROM files WHERE %s ORDER BY instant DESC, name DESC"
        with self.snapshot():
            self._check_order()
            if wanted:
                meant = f"+id IN (SELECT id FROM labels WHERE {self.labels.where(wanted)})"
            else:
                meant = "memory_id IS NOT NULL"
            return [(moment, _name(name)) for moment, name in self.read(statement % meant)]

    def _check_order(self) -> None:
        """Compare the index of moments, whose order is relied on, with what was recorded."""
        if not self._order_agrees:
            total = self.read(_ORDER_SUM.format("INDEXED BY newest"))[0][0]
            if total & MASK != self.read("SELECT sum FROM order_sum")[0][0]:
                raise Damaged
            self._order_agrees = True

    # --- memories -------------------------------------------------------------------------------

    def rows(self, numbers: Iterable[int]) -> list[Row]:
        """Return memories by their numbers, in no order."""
        wanted = list(numbers)
        agree = self._agree(_ROW, wanted)
        rows = list(self.read_some(_ROWS.format("" if agree else _SUMS), wanted))
        for number, *row in () if agree else rows:
            if row[12] != _file_sum(number, row[1:5], row[5], row[6], row[11]):
                raise Damaged
            if row[13] != crc32(row[14], number):
                raise Damaged
            self._agreed[number] |= _ROW | _TEXT
        if not len({row[1] for row in rows}) == len(rows) == len(wanted):  # a name stands once
            raise Damaged
        return [
            Row(row[0], _name(row[1]), Stamp._make(row[2:6]), row[6], row[7], _fields(*row[8:12]))
            for row in rows
        ]

    def texts(self, numbers: Iterable[int]) -> Iterator[tuple[int, Fields]]:
        """Return what is searched in some memories, with their numbers."""
        wanted = list(numbers)
        if self._agree(_TEXT, wanted):
            rows = self.read_some(_TEXTS.format(""), wanted)
        else:
            rows = self._agreeing(self.read_some(_TEXTS.format(_TEXT_SUM), wanted))
        found = 0
        for number, topics, content, user, agent in rows:
            found += 1
            yield number, _fields(topics, content, user, agent)
        if found != len(wanted):
            raise Damaged

    def end(self) -> int:
        """Return a number that all files are below."""
        return self._last_id() + 1

    def encoded(self) -> Iterator[tuple[int, bytes]]:
        """Return what is searched in all memories as UTF-8, one at a time, with their numbers.

        There are zeros between the fields, and the topics stand there twice.
        """
        if self._all_agree:
            return self.sql.execute(_ENCODED.format(""))
        return self._encoded_agreeing()

    def _encoded_agreeing(self) -> Iterator[tuple[int, bytes]]:
        agreed, total, last = self._agreed, 0, -1
        for number, text, once, text_sum in self.sql.execute(_ENCODED.format(_ENCODED_SUM)):
            if number <= last:  # a row that took the number of another one
                raise Damaged
            last = number
            total += text_sum
            if not agreed[number] & _TEXT:
                if text_sum != crc32(memoryview(text)[once:], number):
                    raise Damaged
                agreed[number] |= _TEXT
            yield number, text
        if total & MASK != self.read("SELECT sum FROM texts_sum")[0][0]:
            raise Damaged
        self._all_agree = True

    def _agreeing(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            if row[5] != crc32(row[6], row[0]):
                raise Damaged
            self._agreed[row[0]] |= _TEXT
            yield row[:5]

    def _agree(self, what: int, numbers: Iterable[int]) -> bool:
        """Say whether all of some memories are known to agree with their checksums."""
        return all(self._agreed[number] & what for number in numbers)

    def unindexed(self) -> list[int]:
        """Return the memories that have no postings."""
        now = self.changed_by_others()
        if self._read_at != now:
            (_, recorded), *rows = self.read(_UNINDEXED)
            if _rows_sum(rows) != recorded:
                raise Damaged
            self._unindexed = [number for number, _ in rows]
            self._waiting = {number: size for number, size in rows if size is not None}
            self._read_at = now
        return self._unindexed

    def waiting(self) -> Mapping[int, int]:
        """Return the memories that are yet to be tokenized, and the characters of each."""
        self.unindexed()
        return self._waiting

    def ages(self, numbers: Iterable[int]) -> list[tuple[int, bytes, int]]:
        """Return what breaks ties, the greater of which is the newer, and the number."""
        wanted = list(numbers)
        rows = list(self.read_some(_AGES, wanted))
        if not self._agree(_AGE, wanted):
            for moment, name, number, age_sum in rows:
                if age_sum != _age_sum(moment, name, number):
                    raise Damaged
                self._agreed[number] |= _AGE
        if len(rows) != len(wanted):
            raise Damaged
        return [row[:3] for row in rows]

    def newest_first(self) -> Iterator[int]:
        """Return the numbers of all memories in the order that breaks ties."""
        self._check_order()
        rows = self.sql.execute("SELECT id FROM files ORDER BY instant DESC, name DESC")
        return (number for (number,) in rows)

    # --- recording ------------------------------------------------------------------------------

    def room(self) -> int:
        """Return how many files the last segment still takes."""
        return SEGMENT - (self._last_id() + 1) % SEGMENT

    def _last_id(self) -> int:
        return int(self.read("SELECT ifnull(max(id), -1) FROM files")[0][0])

    def find(self, names: Iterable[str]) -> dict[str, Known]:
        """Return what is known of some files."""
        return {
            _name(name): Known(number, _name(name), Stamp._make(stamp))
            for number, name, *stamp in self.read_some(_FIND, map(_packed, names))
        }

    def add(self, entries: Iterable[Entry]) -> None:
        """Record files that are not, at most as many as there is room for.

        Their texts are found from then on; they wait to be tokenized.
        """
        rest = iter(entries)
        while self._add(islice(rest, tuning.ADDED)) == tuning.ADDED:
            pass

    def _add(self, entries: Iterable[Entry]) -> int:
        first = self._last_id() + 1
        total, labelled = 0, {}
        files: list[tuple[object, ...]] = []
        rows: list[tuple[object, ...]] = []
        waiting: list[tuple[int, int]] = []
        for number, entry in enumerate(entries, first):
            self.beat()
            facts = _facts(entry)
            sums = _file_sums(number, entry, facts)
            files.append((number, _packed(entry.name), *entry.stamp, *facts, *sums))
            if isinstance(entry.found, Memory):
                searched = fields(entry.found)
                labelled[number] = Label.of(entry.found, facts[2])
                its_sum = _text_sum(number, searched)
                total += its_sum
                rows.append((number, *[text for _, text in searched], its_sum))
                waiting.append((number, sum([len(text) for _, text in searched])))
        self.sql.executemany(_ADD_FILE, files)
        self._change_order_sum(1, range(first, first + len(files)))
        self.sql.executemany(_ADD_TEXT, rows)
        self._leave(waiting)
        self._change_texts_sum(total)
        self.labels.add(labelled)
        return len(files)

    def _leave(self, rows: Iterable[tuple[int, int | None]]) -> None:
        """Leave memories unindexed, each with its characters if it waits to be tokenized."""
        left = list(rows)
        self.sql.executemany("INSERT INTO unindexed VALUES (?, ?)", left)
        self._change_unindexed_sum(_rows_sum(left))

    def _take(self, numbers: Iterable[int]) -> None:
        """Take memories from among the unindexed, if they are there."""
        wanted = list(numbers)
        rows = self.read_some("SELECT id, size FROM unindexed WHERE id IN ({})", wanted)
        self._change_unindexed_sum(-_rows_sum(rows))
        marked = [(number,) for number in wanted]
        self.sql.executemany("DELETE FROM unindexed WHERE id = ?", marked)

    def _change_unindexed_sum(self, change: int) -> None:
        self._read_at = -1
        self.sql.execute("UPDATE unindexed_sum SET sum = sum + ? & ?", (change, MASK))

    def _change_texts_sum(self, change: int) -> None:
        self.sql.execute("UPDATE texts_sum SET sum = sum + ? & ?", (change, MASK))

    def _change_order_sum(self, sign: int, numbers: Iterable[int]) -> None:
        rows = self.read_some(_ORDER_SUM.format("WHERE id IN ({})"), numbers)
        change = sign * sum(each for (each,) in rows)
        self.sql.execute("UPDATE order_sum SET sum = sum + ? & ?", (change, MASK))

    def confirm(self, known: Known, entry: Entry) -> bool:
        """Record the stamp of a file that holds what is recorded of it; False if it does not."""
        held = self.sql.execute(_RECORDED, (known.id,)).fetchone()
        facts = _facts(entry)
        same = bool(held == (*facts, *_texts(entry)))
        if same and isinstance(entry.found, Memory):  # the text is in lower case, without borders
            same = self.labels.agree(known.id, Label.of(entry.found, facts[2]))
        if same:
            _, its_sum = _file_sums(known.id, entry, facts)
            self.sql.execute(_RESTAMP, (*entry.stamp, its_sum, known.id))
        return same

    @property
    def due(self) -> bool:
        """Whether enough memories wait to be tokenized; one would cost as much as many."""
        sizes = self.waiting().values()
        return len(sizes) >= tuning.RECENT or sum(sizes) >= tuning.RECENT_BYTES

    def tokenize(self) -> Iterator[None]:
        """At each step tokenize a few of the memories that wait, or record what was found.

        What belongs together is recorded together: as much of a segment as a transaction takes.
        That comes to nothing where one of these was changed or forgotten between the steps.
        """
        while self.due and (all_waiting := self.waiting()):
            segment = min(all_waiting) // SEGMENT
            rest = sorted([each for each in all_waiting if each // SEGMENT == segment])[::-1]
            batch, sums, unfit = Batch(), dict[int, int](), list[int]()
            size = 0
            while rest and size < tuning.STEP_BYTES and len(batch.totals) <= tuning.STEP_TERMS:
                with self.snapshot():
                    some, waiting, end = list[int](), self.waiting(), size + tuning.PIECE_BYTES
                    while rest and size < end:
                        if (number := rest.pop()) in waiting:
                            some.append(number)
                            size += waiting[number]
                    for number, searched in self.texts(some):
                        sums[number] = _text_sum(number, searched)
                        if not batch.add(number % SEGMENT, searched):
                            unfit.append(number)
                yield
            with self.transaction():
                now = dict(self.read_some(_TEXT_SUMS, sums.keys() & self.waiting().keys()))
                if now == sums:
                    self.postings.add(segment, batch)
                    self._take(sums)
                    self._leave([(number, None) for number in unfit])
            yield

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove files with all that is recorded of them."""
        if not numbers:
            return
        unindexed = set(self.unindexed())
        by_segment: defaultdict[int, set[int]] = defaultdict(set)
        for (number,) in self.read_some(_MEMORIES, numbers):
            if number not in unindexed:
                by_segment[number // SEGMENT].add(number)
        for segment, its in by_segment.items():
            terms = set[bytes]()
            for _, searched in self.texts(its):
                terms.update(about(searched), *[tokenize(text) for _, text in searched])
            self.postings.remove(segment, {number % SEGMENT for number in its}, terms)
        self.labels.remove(numbers)
        self._change_texts_sum(-sum(each for _, each in self.read_some(_TEXT_SUMS, numbers)))
        self._change_order_sum(-1, numbers)
        for number in numbers:
            self._agreed[number] = 0  # the number may be given again
        for table in ("files", "texts"):
            rows = [(number,) for number in numbers]
            self.sql.executemany(f"DELETE FROM {table} WHERE id = ?", rows)
        self._take(numbers)


# --- its columns ----------------------------------------------------------------------------------

_TEXT, _ROW, _AGE = 1, 2, 4
_STAMP = Struct("<qqqqq")


def _file_sum(
    number: int, stamp: Sequence[int], memory_id: str | None, timestamp: str | None, age_sum: int
) -> int:
    """Return the checksum of a file's row; that of its name and instant is `age_sum`."""
    text = f"{memory_id}\0{timestamp}".encode("utf-8", "replace")
    return crc32(text, crc32(_STAMP.pack(number, *stamp), age_sum))


def _file_sums(number: int, entry: Entry, facts: Facts) -> tuple[int, int]:
    memory_id, timestamp, moment, _ = facts
    age_sum = _age_sum(moment, _packed(entry.name), number)
    return age_sum, _file_sum(number, entry.stamp, memory_id, timestamp, age_sum)


def _age_sum(moment: int, name: bytes, number: int) -> int:
    return crc32(name, (moment ^ moment >> 32 ^ number << 8) & MASK)


def _text_sum(number: int, searched: Fields) -> int:
    """Return the checksum of a text, in the order of `_TEXT_SUM`."""
    (_, topics), (_, content), (_, user), (_, agent) = searched
    return crc32(f"{topics}\0{user}\0{agent}\0{content}".encode(), number)


def _rows_sum(rows: Iterable[object]) -> int:
    return sum([crc32(repr(row).encode()) for row in rows]) & MASK


def _facts(entry: Entry) -> Facts:
    """Return a file's id, timestamp, instant and problems as they are recorded."""
    if isinstance(entry.found, str):
        return None, None, _NO_INSTANT, entry.found
    moment = instant(entry.found.timestamp)
    return entry.found.id, entry.found.timestamp, _NO_INSTANT if moment is None else moment, None


def _texts(entry: Entry) -> tuple[str | None, ...]:
    """Return what is searched in a file as it is recorded; of one that is no memory, nothing."""
    if isinstance(entry.found, str):
        return (None,) * 4
    return tuple(text for _, text in fields(entry.found))


def _fields(topics: str, content: str, user: str, agent: str) -> Fields:
    return ((2, topics), (1, content), (1, user), (1, agent))


def _packed(name: str) -> bytes:
    """Names as bytes sort like names as text, also those that are no valid Unicode."""
    return name.encode("utf-8", "surrogatepass")


def _name(packed: bytes) -> str:
    return packed.decode("utf-8", "surrogatepass")
