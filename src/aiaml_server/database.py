"""The index's tables in one SQLite file, and the few statements on them.

Files are numbered; `SEGMENT` numbers in a row make a segment, in which a number's rest is its slot.
A segment has postings for each run in it (see `tokens`), under its own number and the run's; the
vocabulary, which gives runs their numbers, is common to all. The stored text is what `scorer`
searches, in lower case.

Whatever an answer is made of is compared with checksums (CRC-32) of what was recorded, so that no
damage gives a wrong answer unseen: a file's row and a text have one each; a run has one of all its
postings, and the vocabulary and the uncut memories one of the whole, so that nothing is missing.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
import unicodedata
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from .files import check_own, open_own, own_directory
from .memory import Memory, instant
from .scorer import Fields, fields
from .store import Stamp
from .tokens import SEGMENT, Block, Postings, cut, with_slots, without_slots
from .tokens import numbers as find_numbers

SCHEMA = 4  # also in the last line of _TABLES
PATIENCE = 15  # tries, of `_TRY` each, while another process holds the file and gets nowhere
_LITTLE_PATIENCE = 3  # of whoever is in a hurry: most hold it for milliseconds
_TRY = 0.1  # seconds; more on a busy machine, where the other one is slow, too
_BEAT = 0.2  # seconds after which whoever writes shows again that it goes on
STALE_SECONDS = 7 * 24 * 3600.0
Value = TypeVar("Value")
NEVER = Stamp(0, 0, 0, 0)  # recorded where a change might not show in the stamp
_NONE = (b"", b"")
_NO_INSTANT = -(1 << 63)

_NAME = re.compile(r"[0-9]+-[0-9a-f]{8}(?:-[0-9a-f]{8})?\.sqlite")

_TABLES = """
CREATE TABLE directory (modified, changed, inode, size);
INSERT INTO directory VALUES (0, 0, 0, 0);
CREATE TABLE unsynced (boot);
INSERT INTO unsynced VALUES ('');
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name BLOB UNIQUE, modified, changed, inode, size,
    memory_id, timestamp, instant, problems, age_sum, sum
);
CREATE INDEX by_memory_id ON files (memory_id);
CREATE INDEX newest ON files (instant, name);
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent, text_sum);
CREATE TABLE uncut (id INTEGER PRIMARY KEY, size);
CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, runs BLOB);
CREATE TABLE postings (id INTEGER PRIMARY KEY, totals, topics);
CREATE TABLE run_sums (id INTEGER PRIMARY KEY, sums BLOB);
CREATE TABLE whole_sums (vocabulary, uncut);
INSERT INTO whole_sums VALUES (0, 0);
PRAGMA user_version = 4;
"""

_SUFFIX = ".sqlite"
_PAGE = 10_000  # files that one reading of all takes at a time
YOUNG = 64  # memories that are scored at each question rather than cut one by one
YOUNG_BYTES = 1024 * 1024  # of such memories at most
_SOME = (1, 10, 100)  # values that one statement asks for
_BLOCK = 16 * 1024  # bytes of the vocabulary that a new memory writes again at most
_RUNS = 200_000  # different ones that are held in memory before they are recorded: some 60 MB
_MANY = 5000  # runs that are sooner found in one pass over all postings
_RUN_BITS = 32
_POSTINGS = f"""
WITH RECURSIVE segments (segment) AS
(SELECT ? UNION ALL SELECT segment + 1 FROM segments WHERE segment < ?),
runs (run) AS (VALUES {{}})
SELECT segment, run, totals, topics
FROM segments CROSS JOIN runs CROSS JOIN postings ON id = (segment << {_RUN_BITS}) + run
"""
_KNOWN = """
SELECT name, modified, changed, inode, size FROM files WHERE name > ? ORDER BY name LIMIT ?
"""
_FIND = "SELECT id, name, modified, changed, inode, size FROM files WHERE name IN ({})"
_TEXTS = "SELECT id, topics, content, user, agent, text_sum FROM texts WHERE id IN ({})"
_PUT = "INSERT OR REPLACE INTO postings VALUES (?, ?, ?)"
_AGES = "SELECT instant, name, id, age_sum FROM files WHERE id IN ({})"
_ROWS = """
SELECT id, name, modified, changed, inode, size, memory_id, timestamp, problems, age_sum, sum,
    topics, content, user, agent, text_sum
FROM files JOIN texts USING (id) WHERE id IN ({})
"""
_SUMS = "SELECT id, sums FROM run_sums WHERE id IN ({})"
_MASK = (1 << 32) - 1
_RECORDED = """
SELECT memory_id, timestamp, instant, problems, topics, content, user, agent
FROM files LEFT JOIN texts USING (id) WHERE id = ?
"""
_ADD_FILE = "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MEMORIES = "SELECT id FROM files WHERE memory_id IS NOT NULL AND id IN ({})"
_RESTAMP = "UPDATE files SET (modified, changed, inode, size, sum) = (?, ?, ?, ?, ?) WHERE id = ?"


Posting: TypeAlias = tuple[int, int, bytes, bytes]
"""A segment, a run's number, its packed slots over all fields, and those of the topics."""


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


class Entry(NamedTuple):
    """What is to be recorded of a file: a memory, or the problems that make it none."""

    name: str
    stamp: Stamp
    found: Memory | str


class Stalled(Exception):  # noqa: N818
    """Another process holds the database and does nothing."""


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
    return directory / min(there, default=f"{prefix}{os.urandom(4).hex()}{_SUFFIX}")


@cache
def _kind() -> str:
    local = [instant(f"{year}-{month:02}-01") for year in range(1990, 2030, 8) for month in (1, 7)]
    kind = f"{unicodedata.unidata_version} {sys.byteorder} {local}"
    return f"{crc32(kind.encode()):08x}"


@cache
def _boot() -> str:
    """Return what tells one start of this machine from another; empty where nothing does."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def remove(path: Path) -> None:
    """Delete a database file and what SQLite keeps beside it, if its directory is ours."""
    with suppress(OSError):
        if not check_own(path.parent, directory=True):
            return
        for beside in _files_of(path):
            with suppress(OSError):
                beside.unlink()


def _files_of(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal", "-shm")]


class Damaged(sqlite3.DatabaseError):
    """What is read is not what was recorded."""

    def __init__(self) -> None:
        super().__init__("it does not hold what was recorded")


class Database:
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
        """Open the file and create what is missing; without a path, a database in memory.

        Args:
            path: the file.
            hurried: asked again and again, says whether to fail rather than wait for another
                process.
            local: whether no other machine can reach the file. Writing then need not wait for the
                disk; a file that was written so is not believed after this machine went down.

        Raises:
            sqlite3.Error: it cannot be opened; or it is damaged, or of another version.
            OSError: its directory or the file cannot be created.
        """
        self.path = path
        self._hurried = hurried
        self._vocabulary: list[Block] = []
        self._version_read = -1  # of the vocabulary; none
        self._firsts: list[int] = []  # the numbers of its blocks
        self._run_sums: dict[int, array[int]] = {}
        self._uncut: list[int] = []
        self._uncut_read = -1
        self._boot = _boot() if local and path else ""
        self._wrote = False
        self._beaten = 0.0
        if path:
            own_directory(path.parent)
            for beside in _files_of(path):  # SQLite opens them all, and follows links to the first
                check_own(beside)
            os.close(open_own(path, os.O_RDWR | os.O_CREAT))  # SQLite would make it 0644
            self._inode = path.stat().st_ino
        self._sql = sqlite3.connect(
            path or ":memory:", isolation_level=None, check_same_thread=False, timeout=_TRY
        )
        try:
            self._prepare()
        except BaseException:
            self._sql.close()
            raise

    def _prepare(self) -> None:
        self._sql.execute("PRAGMA page_size = 8192")  # of a new file: fewer gaps between the texts
        # A write-ahead log would be a map of memory shared with others: whoever cuts its file, or a
        # disk that has no room for a copy of a block, kills every process that reads it.
        self._patiently("PRAGMA journal_mode = TRUNCATE")
        self._sql.execute(f"PRAGMA synchronous = {'OFF' if self._boot else 'NORMAL'}")
        self._sql.execute("PRAGMA mmap_size = 0")
        self._sql.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        self._sql.execute("PRAGMA cache_size = -2000")
        self._sql.execute("PRAGMA cache_spill = OFF")  # others can read until all is written
        self._sql.set_progress_handler(self._beat, 10_000)
        if not self._version():
            with self._alone():
                if not self._version():  # no other process was quicker
                    for statement in _TABLES.split(";"):
                        self._sql.execute(statement)
        if self._version() != SCHEMA:
            raise sqlite3.DatabaseError("it is of another version")
        if self._unsynced() not in ("", _boot()):
            raise sqlite3.DatabaseError("the machine went down before it was safe on disk")

    def _version(self) -> int:
        return int(self._read("PRAGMA user_version")[0][0])

    def _unsynced(self) -> str:
        """Return under which boot it was written without waiting for the disk, if it was."""
        return str(self._read("SELECT boot FROM unsynced")[0][0])

    @property
    def there(self) -> bool:
        """Whether the file still is the one to use (a person may delete it at any time)."""
        try:
            if self.path is None:
                return True
            return file_of(self.path.parent) == self.path and self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; what was written is first made safe on disk, unless somebody holds it."""
        if self._wrote and self.there:
            self._hurried = lambda: True
            with suppress(sqlite3.Error, Stalled):
                self._set_unsynced(self._boot)  # all that was written before is synced with it
                self._set_unsynced("")
        self._sql.close()

    def _set_unsynced(self, boot: str) -> None:
        self._sql.execute("PRAGMA synchronous = FULL")
        with self._alone():
            self._sql.execute("UPDATE unsynced SET boot = ?", (boot,))
        self._sql.execute("PRAGMA synchronous = OFF")

    def __del__(self) -> None:
        """Close the file of a bank that was dropped without being closed."""
        if sql := getattr(self, "_sql", None):
            sql.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, alone among the processes.

        Raises:
            Stalled: another process holds the file and gets nowhere, or there is no time to wait.
        """
        while True:
            with self._alone():
                if not self._boot or self._unsynced():
                    self._wrote = bool(self._boot)
                    yield
                    return
            self._set_unsynced(self._boot)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._patiently("BEGIN IMMEDIATE")
        try:
            yield
            self._patiently("COMMIT")
        except BaseException:
            self._version_read = self._uncut_read = -1  # they may have been read in between
            with suppress(sqlite3.Error):
                self._sql.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the database, whatever other processes write meanwhile."""
        self._sql.execute("BEGIN")
        try:
            self._unsynced()  # SQLite begins with the first reading
            yield
        finally:
            with suppress(sqlite3.Error):
                self._sql.execute("COMMIT")

    def _patiently(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute what another process may hinder, as soon as it does not.

        Raises:
            Stalled: it does, as `transaction` says.
        """
        progress, tries = 0, 0
        while True:
            try:
                return self._sql.execute(statement, values)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if (now := self._progress()) != progress:
                    progress, tries = now, 0
                tries += 1
                if tries > (_LITTLE_PATIENCE if self._hurried() else PATIENCE):
                    raise Stalled("another process holds it and gets nowhere") from error
                time.sleep(0.001)  # SQLite itself has waited for most of a try

    def _read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query, so that nothing is held up by one that was half read."""
        return self._patiently(statement, values).fetchall()

    def _beat(self) -> None:
        """Show others that we go on."""
        if self.path and (now := time.monotonic()) > self._beaten + _BEAT:
            self._beaten = now
            if self._sql.in_transaction:
                with suppress(OSError):
                    os.utime(self.path)

    def _progress(self) -> int:
        """Return what changes as long as whoever writes goes on."""
        with suppress(OSError):
            return self.path.stat().st_mtime_ns if self.path else 0
        return 0

    # --- what is recorded -----------------------------------------------------------------------

    def directory(self) -> Stamp:
        """Return the directory's stamp as of the last time all files were compared."""
        return Stamp(*self._read("SELECT * FROM directory")[0])

    def set_directory(self, stamp: Stamp) -> None:
        """Record the directory's stamp."""
        self._sql.execute(
            "UPDATE directory SET (modified, changed, inode, size) = (?, ?, ?, ?)", stamp
        )

    def known(self, after: str = "", most: int = -1) -> Iterator[tuple[str, Stamp]]:
        """Return the files whose names come after `after`, in the order of names."""
        while most:
            rows = self._read(_KNOWN, (_packed(after), most if 0 < most < _PAGE else _PAGE))
            yield from ((_name(name), Stamp._make(stamp)) for name, *stamp in rows)
            if len(rows) < _PAGE:
                return
            after, most = _name(rows[-1][0]), most - len(rows) if most > 0 else most

    def any_name(self, few: int) -> str:
        """Return the name of any file; nothing while there are at most `few`."""
        count, last = self._read("SELECT count(*), max(id) FROM files")[0]
        if count <= few:
            return ""
        some = int.from_bytes(os.urandom(8), "little") % (last + 1)
        rows = self._read("SELECT name FROM files WHERE id >= ? ORDER BY id LIMIT 1", (some,))
        return "".join(_name(name) for (name,) in rows)

    def malformed(self) -> list[tuple[str, str]]:
        """Return the files that are no memories, with their problems."""
        rows = self._read("SELECT name, problems FROM files WHERE memory_id IS NULL")
        return [(_name(name), problems) for name, problems in rows]

    def names(self, memory_id: str) -> list[str]:
        """Return the files whose memories carry an id."""
        rows = self._read("SELECT name FROM files WHERE memory_id = ?", (memory_id,))
        if not rows:  # in the order of ids; the table itself can tell that it was damaged
            rows = self._read("SELECT name FROM files WHERE +memory_id = ?", (memory_id,))
        return [_name(name) for (name,) in rows]

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`, in the order of the alphabet."""
        rows = self._read(
            "SELECT DISTINCT memory_id FROM files WHERE memory_id BETWEEN ? AND ? || char(1114111)",
            (prefix, prefix),
        )
        return sorted(memory_id for (memory_id,) in rows)

    def newest(self) -> list[str]:
        """Return the files of all memories, newest first."""
        rows = self._read(
            "SELECT name FROM files WHERE memory_id IS NOT NULL ORDER BY instant DESC, name DESC"
        )
        return [_name(name) for (name,) in rows]

    def rows(self, numbers: Iterable[int]) -> list[Row]:
        """Return memories by their numbers, in no order."""
        wanted = list(numbers)
        rows = [
            row
            for marks, some in _by_some(wanted)
            for row in self._sql.execute(_ROWS.format(marks), some)
        ]
        for number, *file, age_sum, its_sum, topics, content, user, agent, text_sum in rows:
            if its_sum != _file_sum(number, file[1:], age_sum) or text_sum != _text_sum(
                number, topics, content, user, agent
            ):
                raise Damaged
        if len(rows) != len(wanted):
            raise Damaged
        return [
            Row(row[0], _name(row[1]), Stamp(*row[2:6]), row[6], row[7], _searched(*row[11:15]))
            for row in rows
        ]

    def texts(self, numbers: Iterable[int]) -> Iterator[tuple[int, Fields]]:
        """Return what is searched in some memories, with their numbers."""
        wanted = list(numbers)
        found = 0
        for marks, some in _by_some(wanted):
            for number, *texts, text_sum in self._sql.execute(_TEXTS.format(marks), some):
                if text_sum != _text_sum(number, *texts):
                    raise Damaged
                found += 1
                yield number, _searched(*texts)
        if found != len(wanted):
            raise Damaged

    def uncut(self) -> list[int]:
        """Return the memories that have no postings."""
        (version,) = self._sql.execute("PRAGMA data_version").fetchone()
        if self._uncut_read != version:
            rows = self._read("SELECT id, size FROM uncut")
            if _rows_sum(rows) != self._whole_sum("uncut"):
                raise Damaged
            self._uncut = [number for number, _ in rows]
            self._uncut_read = version
        return self._uncut

    def _whole_sum(self, table: str) -> int:
        return int(self._read(f"SELECT {table} FROM whole_sums")[0][0])

    def _set_whole_sum(self, table: str, value: int) -> None:
        self._sql.execute(f"UPDATE whole_sums SET {table} = ?", (value & _MASK,))

    def ages(self, numbers: Iterable[int]) -> list[tuple[int, bytes, int]]:
        """Return what breaks ties, the greater of which is the newer, and the number."""
        wanted = list(numbers)
        rows = [
            row
            for marks, some in _by_some(wanted)
            for row in self._sql.execute(_AGES.format(marks), some)
        ]
        sums = [_age_sum(moment, name, number) for moment, name, number, _ in rows]
        if len(rows) != len(wanted) or sums != [row[3] for row in rows]:
            raise Damaged
        return [row[:3] for row in rows]

    def newest_first(self) -> Iterator[int]:
        """Return the numbers of all memories in the order that breaks ties."""
        rows = self._sql.execute("SELECT id FROM files ORDER BY instant DESC, name DESC")
        return (number for (number,) in rows)

    def vocabulary(self) -> list[Block]:
        """Return the vocabulary, block by block; it is kept until somebody writes."""
        (version,) = self._sql.execute("PRAGMA data_version").fetchone()
        if self._version_read != version:
            held = {block.first: block for block in self._vocabulary}
            rows = self._sql.execute("SELECT id, runs FROM vocabulary ORDER BY id")
            self._vocabulary = [_same(held.get(first), Block(first, runs)) for first, runs in rows]
            self._firsts = [block.first for block in self._vocabulary]
            self._run_sums.clear()
            if _vocabulary_sum(self._vocabulary) != self._whole_sum("vocabulary"):
                raise Damaged
            self._version_read = version
        return self._vocabulary

    def postings(self, wanted: Collection[int]) -> Iterator[Posting]:
        """Return what there is of some runs, in all segments."""
        sums = 0
        for rows in self._found(wanted):
            sums += sum([_posting_sum(*row) for row in rows])
            yield from rows
        if sums & _MASK != self._sum_of(wanted):
            raise Damaged

    def _found(self, wanted: Collection[int]) -> Iterator[list[Posting]]:
        if len(wanted) < _MANY:
            last = self._last_id() // SEGMENT
            for marks, some in _by_some(wanted, "(?)"):
                yield self._sql.execute(_POSTINGS.format(marks), (0, last, *some)).fetchall()
            return
        cursor = self._sql.execute("SELECT id, totals, topics FROM postings")
        while rows := cursor.fetchmany(1000):
            parted = [(*divmod(key, 1 << _RUN_BITS), *packed) for key, *packed in rows]
            yield [row for row in parted if row[1] in wanted]

    def _sum_of(self, wanted: Iterable[int]) -> int:
        """Return the checksum of all postings of some runs."""
        by_block = self._by_block(wanted)
        sums = self._sums_of(by_block)
        total = 0
        for first, numbers in by_block.items():
            its = sums[first]
            total += sum([its[number - first] for number in numbers])
        return total & _MASK

    def _by_block(self, runs: Iterable[int]) -> dict[int, list[int]]:
        """Return runs by the first number of their block of the vocabulary."""
        self.vocabulary()
        firsts = self._firsts
        by_block: defaultdict[int, list[int]] = defaultdict(list)
        for run in runs:
            by_block[firsts[bisect_right(firsts, run) - 1]].append(run)
        return by_block

    def _sums_of(self, blocks: Iterable[int]) -> dict[int, array[int]]:
        """Return the checksums of runs by their blocks; they are kept until somebody writes."""
        for marks, some in _by_some([first for first in blocks if first not in self._run_sums]):
            for first, sums in self._sql.execute(_SUMS.format(marks), some):
                self._run_sums[first] = array("I", sums)
        return self._run_sums

    def _change_run_sums(self, changes: Mapping[int, int]) -> None:
        """Add to the checksums of runs."""
        by_block = self._by_block(changes)
        sums = self._sums_of(by_block)
        for first, numbers in by_block.items():
            its = sums.setdefault(first, array("I"))
            its.extend(repeat(0, max(numbers) - first + 1 - len(its)))
            for number in numbers:
                its[number - first] = its[number - first] + changes[number] & _MASK
        self._sql.executemany(
            "INSERT OR REPLACE INTO run_sums VALUES (?, ?)",
            [(first, sums[first].tobytes()) for first in by_block],
        )

    def _postings(self, wanted: Iterable[int], first: int, last: int) -> Iterator[Posting]:
        for marks, some in _by_some(wanted, "(?)"):
            yield from self._sql.execute(_POSTINGS.format(marks), (first, last, *some))

    # --- recording ------------------------------------------------------------------------------

    def room(self) -> int:
        """Return how many files the last segment still takes."""
        return SEGMENT - (self._last_id() + 1) % SEGMENT

    def _last_id(self) -> int:
        return int(self._sql.execute("SELECT ifnull(max(id), -1) FROM files").fetchone()[0])

    def find(self, names: Iterable[str]) -> dict[str, Known]:
        """Return what is known of some files."""
        return {
            _name(name): Known(number, _name(name), Stamp._make(stamp))
            for marks, some in _by_some(map(_packed, names))
            for number, name, *stamp in self._sql.execute(_FIND.format(marks), some)
        }

    def add(self, entries: Iterable[Entry], *, few: bool = False) -> None:
        """Record files that are not, at most as many as there is room for.

        A few are not cut before they have become `YOUNG`; cutting one costs as much as many.
        """
        self.uncut()  # is as it was recorded, and so may be recorded again with what is added
        first = self._last_id() + 1
        postings, new = Postings(), first % SEGMENT == 0
        for number, entry in enumerate(entries, first):
            self._beat()
            if len(postings.totals) > _RUNS:
                self._append(first // SEGMENT, postings, new=new)
                postings, new = Postings(), False
            name, facts = _packed(entry.name), _facts(entry)
            sums = _file_sums(number, entry)
            self._sql.execute(_ADD_FILE, (number, name, *entry.stamp, *facts, *sums))
            if isinstance(entry.found, Memory):
                searched = fields(entry.found)
                texts = [text for _, text in searched]
                text_sum = _text_sum(number, *texts)
                values = (number, *texts, text_sum)
                self._sql.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)", values)
                if few or not postings.add(number % SEGMENT, searched):
                    size = sum(map(len, texts)) if few else None
                    self._sql.execute("INSERT INTO uncut VALUES (?, ?)", (number, size))
        self._append(first // SEGMENT, postings, new=new)
        if few:
            self._cut_young()
        self._sum_uncut()

    def _sum_uncut(self) -> None:
        self._uncut_read = -1
        self._set_whole_sum("uncut", _rows_sum(self._read("SELECT id, size FROM uncut")))

    def confirm(self, known: Known, entry: Entry) -> bool:
        """Record the stamp of a file that holds what is recorded of it; False if it does not."""
        held = self._sql.execute(_RECORDED, (known.id,)).fetchone()
        same = bool(held == (*_facts(entry), *_texts(entry)))
        if same:
            _, its_sum = _file_sums(known.id, entry)
            self._sql.execute(_RESTAMP, (*entry.stamp, its_sum, known.id))
        return same

    def _cut_young(self) -> None:
        sizes = dict(self._read("SELECT id, size FROM uncut WHERE size IS NOT NULL"))
        if len(sizes) < YOUNG and sum(sizes.values()) < YOUNG_BYTES:
            return
        by_segment: defaultdict[int, Postings] = defaultdict(Postings)
        done = []
        for number, searched in self.texts(sizes):
            self._beat()
            if by_segment[number // SEGMENT].add(number % SEGMENT, searched):
                done.append((number,))
        for segment, postings in by_segment.items():
            self._append(segment, postings, new=False)
        self._sql.executemany("DELETE FROM uncut WHERE id = ?", done)
        self._sql.execute("UPDATE uncut SET size = NULL")

    def _append(self, segment: int, postings: Postings, *, new: bool) -> None:
        if not postings.totals:
            return
        before = self._next_run()
        known = self._numbered(postings.totals)
        wanted = () if new else [number for number in known.values() if number < before]
        held = {number: packed for _, number, *packed in self._postings(wanted, segment, segment)}
        changes = {
            number: -_posting_sum(segment, number, *packed) for number, packed in held.items()
        }

        def rows() -> Iterator[tuple[int, bytes, bytes]]:
            for run, number in known.items():
                packed = _added(held.get(number, _NONE), postings, run)
                changes[number] = changes.get(number, 0) + _posting_sum(segment, number, *packed)
                yield _key(segment, number), *packed

        self._sql.executemany(_PUT, rows())
        self._change_run_sums(changes)

    def _next_run(self) -> int:
        """Return the number that the next new run gets."""
        last = self.vocabulary()[-1:]
        return last[0].first + last[0].lines.count(b"\n") - 1 if last else 0

    def _numbered(self, runs: Collection[bytes]) -> dict[bytes, int]:
        """Return the numbers of runs, by number; those that have none yet get one."""
        blocks = self.vocabulary()
        known = find_numbers(blocks, runs)
        new = [run for run in runs if run not in known]
        if not new:
            return known
        first, last = (blocks[-1].first, blocks[-1].lines) if blocks else (0, b"\n")
        following = first + last.count(b"\n") - 1
        added = b"\n".join([*new, b""])
        if len(last) + len(added) > _BLOCK:
            first, last = following, b"\n"
        self._put_block(Block(first, last + added))
        return known | {run: number for number, run in enumerate(new, following)}

    def _put_block(self, block: Block) -> None:
        """Record a block of the vocabulary, new or changed."""
        others = [each for each in self.vocabulary() if each.first != block.first]
        values = (block.first, block.lines)
        self._sql.execute("INSERT OR REPLACE INTO vocabulary VALUES (?, ?)", values)
        self._set_whole_sum("vocabulary", _vocabulary_sum([*others, block]))
        self._version_read = -1

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove files with all that is recorded of them."""
        by_segment: defaultdict[int, set[int]] = defaultdict(set)
        for number in numbers:
            by_segment[number // SEGMENT].add(number)
        empty: dict[int, bytes] = {}
        uncut = self.uncut() if numbers else ()
        for segment, its in by_segment.items():
            empty |= self._withdraw(segment, its.difference(uncut))
            for table in ("files", "texts", "uncut"):
                self._sql.executemany(
                    f"DELETE FROM {table} WHERE id = ?",
                    ((number,) for number in its),
                )
        if numbers:
            self._sum_uncut()
        elsewhere = {number for _, number, *_ in self.postings(empty)}
        self._shrink({run for number, run in empty.items() if number not in elsewhere})

    def _withdraw(self, segment: int, numbers: set[int]) -> dict[int, bytes]:
        """Take files out of the postings; return the runs that the segment has no more."""
        held: set[bytes] = set()
        memories = [
            number
            for marks, some in _by_some(numbers)
            for (number,) in self._sql.execute(_MEMORIES.format(marks), some)
        ]
        for _, searched in self.texts(memories):
            for _, text in searched:
                held.update(cut(text))
        known = {number: run for run, number in find_numbers(self.vocabulary(), held).items()}
        gone = {number % SEGMENT for number in numbers}
        left, changes = [], {}
        for _, number, totals, topics in self._postings(known, segment, segment):
            packed = without_slots(totals, gone), without_slots(topics, gone)
            left.append((number, *packed))
            changes[number] = -_posting_sum(segment, number, totals, topics)
            if packed[0]:
                changes[number] += _posting_sum(segment, number, *packed)
        self._change_run_sums(changes)
        empty = {number: known[number] for number, totals, _ in left if not totals}
        self._sql.executemany(
            _PUT, ((_key(segment, number), *packed) for number, *packed in left if packed[0])
        )
        self._sql.executemany(
            "DELETE FROM postings WHERE id = ?", ((_key(segment, number),) for number in empty)
        )
        return empty

    def _shrink(self, runs: set[bytes]) -> None:
        """Take runs out of the vocabulary."""
        for block in self.vocabulary() if runs else ():
            words = block.lines.split(b"\n")
            if not runs.isdisjoint(words):
                left = b"\n".join([b"" if word in runs else word for word in words])
                self._put_block(Block(block.first, left))


def remove_others(path: Path, older_than: float) -> None:
    """Delete databases of other kinds of processes, unused for so many seconds."""
    for other in databases(path.parent):
        with suppress(OSError):
            if other != path and time.time() - other.lstat().st_mtime > older_than:
                remove(other)


def databases(directory: Path) -> list[Path]:
    """Return the databases of all kinds of processes in a directory of ours; none in another."""
    with suppress(OSError):
        if check_own(directory, directory=True):
            return [path for path in directory.glob(f"*{_SUFFIX}") if _NAME.fullmatch(path.name)]
    return []


def _by_some(values: Iterable[Value], mark: str = "?") -> Iterator[tuple[str, list[Value | None]]]:
    """Cut values into lists that a statement takes, with its marks.

    The last list is filled up with NULL, which finds nothing.
    """
    rest = iter(values)
    while some := list(islice(rest, _SOME[-1])):
        size = next(size for size in _SOME if size >= len(some))
        yield ", ".join([mark] * size), [*some, *repeat(None, size - len(some))]


def _same(held: Block | None, read: Block) -> Block:
    return held if held and held.lines == read.lines else read


def _key(segment: int, run: int) -> int:
    return (segment << _RUN_BITS) + run


def _added(held: Sequence[bytes], postings: Postings, run: bytes) -> tuple[bytes, bytes]:
    totals, topics = held
    more = postings.topics.get(run)
    return with_slots(totals, postings.totals[run]), with_slots(topics, more) if more else topics


def _posting_sum(segment: int, run: int, totals: bytes, topics: bytes) -> int:
    key = segment << 20 ^ run
    return crc32(topics, crc32(totals, key)) if topics else crc32(totals, key)


def _text_sum(number: int, topics: str, content: str, user: str, agent: str) -> int:
    others = f"{topics}\0{user}\0{agent}".encode("utf-8", "surrogatepass")
    return crc32(content.encode("utf-8", "surrogatepass"), crc32(others, number))


def _age_sum(moment: int, name: bytes, number: int) -> int:
    return crc32(name, (moment ^ number << 8) & _MASK)


def _file_sum(number: int, facts: Iterable[object], age_sum: int) -> int:
    """Return the checksum of a file's row.

    Args:
        number: the file's.
        facts: its stamp, the memory's id and timestamp, and the problems.
        age_sum: the checksum of its name and instant.
    """
    modified, changed, inode, size, memory_id, timestamp, problems = facts
    text = f"{number} {modified} {changed} {inode} {size} {memory_id}\0{timestamp}\0{problems}"
    return crc32(text.encode("utf-8", "replace"), age_sum)


def _file_sums(number: int, entry: Entry) -> tuple[int, int]:
    memory_id, timestamp, moment, problems = _facts(entry)
    age_sum = _age_sum(moment, _packed(entry.name), number)
    return age_sum, _file_sum(number, (*entry.stamp, memory_id, timestamp, problems), age_sum)


def _rows_sum(rows: Iterable[object]) -> int:
    return sum([crc32(repr(row).encode()) for row in rows]) & _MASK


def _vocabulary_sum(blocks: Iterable[Block]) -> int:
    return sum([block.sum for block in blocks]) & _MASK


def _facts(entry: Entry) -> tuple[str | None, str | None, int, str | None]:
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


def _searched(topics: str, content: str, user: str, agent: str) -> Fields:
    return ((2, topics), (1, content), (1, user), (1, agent))


def _packed(name: str) -> bytes:
    """Names as bytes sort like names as text, also those that are no valid Unicode."""
    return name.encode("utf-8", "surrogatepass")


def _name(packed: bytes) -> str:
    return packed.decode("utf-8", "surrogatepass")
