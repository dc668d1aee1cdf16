"""The index's tables in one SQLite file, and the few statements on them.

Files are numbered; `SEGMENT` numbers in a row make a segment, in which a number's rest is its slot.
A segment has postings for each run in it (see `tokens`), under its own number and the run's; the
vocabulary, which gives runs their numbers, is common to all. The stored text is what `scorer`
searches, in lower case.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from .files import check_own, open_own, own_directory
from .memory import Memory, instant
from .scorer import Fields, fields
from .store import Stamp
from .tokens import SEGMENT, Block, Postings, cut, with_slots, without_slots
from .tokens import numbers as find_numbers

SCHEMA = 3  # also in the last line of _TABLES
PATIENCE = 15  # tries, of `_TRY` each, while another process holds the file and gets nowhere
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
    memory_id, timestamp, instant, problems
);
CREATE INDEX by_memory_id ON files (memory_id);
CREATE INDEX newest ON files (instant, name);
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent);
CREATE TABLE uncut (id INTEGER PRIMARY KEY, size);
CREATE TABLE vocabulary (id INTEGER PRIMARY KEY, runs BLOB);
CREATE TABLE postings (id INTEGER PRIMARY KEY, totals, topics);
PRAGMA user_version = 3;
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
_TEXTS = "SELECT id, topics, content, user, agent FROM texts WHERE id IN ({})"
_PUT = "INSERT OR REPLACE INTO postings VALUES (?, ?, ?)"
_AGES = "SELECT instant, name, id FROM files WHERE id IN ({})"
_ROWS = """
SELECT id, name, modified, changed, inode, size, memory_id, timestamp, topics, content, user, agent
FROM files JOIN texts USING (id) WHERE id IN ({})
"""
_RECORDED = """
SELECT memory_id, timestamp, instant, problems, topics, content, user, agent
FROM files LEFT JOIN texts USING (id) WHERE id = ?
"""
_RESTAMP = "UPDATE files SET (modified, changed, inode, size) = (?, ?, ?, ?) WHERE id = ?"


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
    return f"{zlib.crc32(kind.encode()):08x}"


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
            self._version_read = -1  # it may have been read in between
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
                if self._hurried() or tries > PATIENCE:
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
        return [
            Row(row[0], _name(row[1]), Stamp(*row[2:6]), row[6], row[7], _searched(*row[8:]))
            for marks, some in _by_some(numbers)
            for row in self._sql.execute(_ROWS.format(marks), some)
        ]

    def texts(self, numbers: Iterable[int]) -> Iterator[tuple[int, Fields]]:
        """Return what is searched in some memories, with their numbers."""
        for marks, some in _by_some(numbers):
            for number, *texts in self._sql.execute(_TEXTS.format(marks), some):
                yield number, _searched(*texts)

    def uncut(self) -> list[int]:
        """Return the memories that have no postings."""
        return [number for (number,) in self._sql.execute("SELECT id FROM uncut")]

    def ages(self, numbers: Iterable[int]) -> list[tuple[int, bytes, int]]:
        """Return what breaks ties, the greater of which is the newer, and the number."""
        return [
            row
            for marks, some in _by_some(numbers)
            for row in self._sql.execute(_AGES.format(marks), some)
        ]

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
            self._version_read = version
        return self._vocabulary

    def postings(self, wanted: Collection[int]) -> Iterator[Posting]:
        """Return what there is of some runs, in all segments."""
        if len(wanted) < _MANY:
            return self._postings(wanted, 0, self._last_id() // SEGMENT)
        rows = self._sql.execute("SELECT id, totals, topics FROM postings")
        parted = ((*divmod(key, 1 << _RUN_BITS), *packed) for key, *packed in rows)
        return (row for row in parted if row[1] in wanted)

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
        first = self._last_id() + 1
        postings, new = Postings(), first % SEGMENT == 0
        for number, entry in enumerate(entries, first):
            self._beat()
            if len(postings.totals) > _RUNS:
                self._append(first // SEGMENT, postings, new=new)
                postings, new = Postings(), False
            facts = (number, _packed(entry.name), *entry.stamp, *_facts(entry))
            self._sql.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", facts)
            if isinstance(entry.found, Memory):
                searched = fields(entry.found)
                texts = [text for _, text in searched]
                self._sql.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", (number, *texts))
                if few or not postings.add(number % SEGMENT, searched):
                    size = sum(map(len, texts)) if few else None
                    self._sql.execute("INSERT INTO uncut VALUES (?, ?)", (number, size))
        self._append(first // SEGMENT, postings, new=new)
        if few:
            self._cut_young()

    def confirm(self, known: Known, entry: Entry) -> bool:
        """Record the stamp of a file that holds what is recorded of it; False if it does not."""
        held = self._sql.execute(_RECORDED, (known.id,)).fetchone()
        same = bool(held == (*_facts(entry), *_texts(entry)))
        if same:
            stamp = (*entry.stamp, known.id)
            self._sql.execute(_RESTAMP, stamp)
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
        self._sql.executemany(
            _PUT,
            (
                (_key(segment, number), *_added(held.get(number, _NONE), postings, run))
                for run, number in known.items()
            ),
        )

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
        self._sql.execute("INSERT OR REPLACE INTO vocabulary VALUES (?, ?)", (first, last + added))
        self._version_read = -1
        return known | {run: number for number, run in enumerate(new, following)}

    def forget(self, numbers: Sequence[int]) -> None:
        """Remove files with all that is recorded of them."""
        by_segment: defaultdict[int, set[int]] = defaultdict(set)
        for number in numbers:
            by_segment[number // SEGMENT].add(number)
        empty: dict[int, bytes] = {}
        for segment, its in by_segment.items():
            empty |= self._withdraw(segment, its)
            for table in ("files", "texts", "uncut"):
                self._sql.executemany(
                    f"DELETE FROM {table} WHERE id = ?",
                    ((number,) for number in its),
                )
        elsewhere = {number for _, number, *_ in self.postings(empty)}
        self._shrink({run for number, run in empty.items() if number not in elsewhere})

    def _withdraw(self, segment: int, numbers: set[int]) -> dict[int, bytes]:
        """Take files out of the postings; return the runs that the segment has no more."""
        held: set[bytes] = set()
        for _, searched in self.texts(numbers.difference(self.uncut())):
            for _, text in searched:
                held.update(cut(text))
        known = {number: run for run, number in find_numbers(self.vocabulary(), held).items()}
        gone = {number % SEGMENT for number in numbers}
        left = [
            (number, without_slots(totals, gone), without_slots(topics, gone))
            for _, number, totals, topics in self._postings(known, segment, segment)
        ]
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
                self._sql.execute(
                    "UPDATE vocabulary SET runs = ? WHERE id = ?", (left, block.first)
                )
        self._version_read = -1


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
