"""One SQLite file that several processes share, and that nobody misses when it is deleted.

Whoever writes is alone; the others wait as long as it goes on. Nothing of the file is mapped into
memory, and on a local disk nobody waits for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from aiaml_server.files import open_private
from aiaml_server.storage.journal import check_beside

VALUES = (1, 10, 100)
"""Values that one statement asks for, so that only three are prepared; 100 terms take 250 µs."""

TRY = 0.1
"""Seconds that SQLite waits for another process; more where the machine is busy, and so is that."""

PATIENCE = 15
"""Such tries, 1.5 s, in which whoever holds the file gets nowhere, until it is given up."""

LITTLE_PATIENCE = 3
"""The same for who is in a hurry: most hold the file for milliseconds."""

BEAT = 0.2
"""Seconds after which whoever writes shows again that it goes on: seven times in that patience."""

_UNSYNCED = """
CREATE TABLE unsynced (boot);
INSERT INTO unsynced VALUES ('');
"""


class Busy(Exception):  # noqa: N818
    """Another process holds the database and gets nowhere, or there is no time to wait for it."""


class Damaged(sqlite3.DatabaseError):
    """What is read is not what was recorded."""

    def __init__(self) -> None:
        super().__init__("it does not hold what was recorded")


def boot() -> str:
    """Return what tells one start of this machine from another; empty where nothing does."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def files_of(path: Path) -> list[Path]:
    """Return a database's file and those that SQLite keeps beside it."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal", "-shm")]


class SharedFile:
    """One open database. Its user holds a lock: no method may run twice at a time.

    Any method raises sqlite3.Error when the file is damaged or the disk refuses.
    """

    def __init__(
        self,
        path: Path | None,
        tables: str,
        version: int,
        *,
        hurried: Callable[[], bool] = lambda: False,
        local: bool = False,
    ) -> None:
        """Open the file and create what is missing; without a path, a database in memory.

        Args:
            path: the file, in a directory where nobody else can have put anything (`derived`).
            tables: the statements that a new file is made with, each ended by a semicolon.
            version: of these; a file of another version is not opened.
            hurried: called after each failed try to get the lock; returns whether to give up soon
                rather than wait for another process.
            local: whether no other machine can reach the file. Writing then need not wait for the
                disk; a file that was written so is not believed after this machine went down.

        Raises:
            sqlite3.Error: it cannot be opened; or it is damaged, or of another version.
            NotOurs: a file beside it could have SQLite harm another.
            OSError: the file cannot be created.
        """
        self.path = path
        self.begin_anew()
        self._hurried = hurried
        self._boot = boot() if local and path else ""
        self._wrote = False
        self._beaten = 0.0
        if path:
            check_beside(path)  # what brings a directory back may bring its own of these
            os.close(open_private(str(path), os.O_RDWR | os.O_CREAT))  # SQLite would make it 0644
            self._inode = path.stat().st_ino
        self.sql = sqlite3.connect(
            path or ":memory:", isolation_level=None, check_same_thread=False, timeout=TRY
        )
        try:
            self._prepare(f"{_UNSYNCED}{tables};PRAGMA user_version = {version}", version)
        except BaseException:
            self.sql.close()
            raise

    def _prepare(self, tables: str, version: int) -> None:
        self.sql.execute("PRAGMA page_size = 8192")  # of a new file: fewer gaps between the texts
        # A write-ahead log would be a map of memory shared with others: whoever cuts its file, or a
        # disk that has no room for a copy of a block, kills every process that reads it.
        self.patiently("PRAGMA journal_mode = TRUNCATE")
        self.sql.execute(f"PRAGMA synchronous = {'OFF' if self._boot else 'NORMAL'}")
        self.sql.execute("PRAGMA mmap_size = 0")
        self.sql.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        self.sql.execute("PRAGMA cache_size = -2000")
        self.sql.execute("PRAGMA cache_spill = OFF")  # others can read until all is written
        self.sql.set_progress_handler(self.beat, 10_000)
        if not self._version():
            with self._alone():
                if not self._version():  # no other process was quicker
                    for statement in tables.split(";"):
                        self.sql.execute(statement)
        if self._version() != version:
            raise sqlite3.DatabaseError("it is of another version")
        if self._unsynced() not in ("", boot()):
            raise sqlite3.DatabaseError("the machine went down before it was safe on disk")

    def _version(self) -> int:
        return int(self.read("PRAGMA user_version")[0][0])

    def _unsynced(self) -> str:
        """Return under which boot it was written without waiting for the disk, if it was."""
        return str(self.read("SELECT boot FROM unsynced")[0][0])

    @property
    def there(self) -> bool:
        """Whether the file is still there (a person may delete it at any time)."""
        try:
            return self.path is None or self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; what was written is first made safe on disk, unless somebody holds it."""
        if self._wrote and self.there:
            self._hurried = lambda: True
            with suppress(sqlite3.Error, Busy):
                self._set_unsynced(self._boot)  # all that was written before is synced with it
                self._set_unsynced("")
        self.sql.close()

    def _set_unsynced(self, boot: str) -> None:
        self.sql.execute("PRAGMA synchronous = FULL")
        with self._alone():
            self.sql.execute("UPDATE unsynced SET boot = ?", (boot,))
        self.sql.execute("PRAGMA synchronous = OFF")

    def __del__(self) -> None:
        """Close the file of a bank that was dropped without being closed."""
        if sql := getattr(self, "sql", None):
            sql.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, alone among the processes.

        Raises:
            Busy: another process holds the file and gets nowhere, or there is no time to wait.
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
        self.patiently("BEGIN IMMEDIATE")
        self._beaten = time.monotonic()
        try:
            yield
            self.patiently("COMMIT")
        except BaseException:
            self.begin_anew()
            with suppress(sqlite3.Error):
                self.sql.execute("ROLLBACK")
            raise

    def begin_anew(self) -> None:
        """Forget what is kept in memory: at the beginning, and of what came to nothing."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the database, whatever other processes write meanwhile."""
        self.sql.execute("BEGIN")
        self._beaten = time.monotonic()
        try:
            self._unsynced()  # SQLite begins with the first reading
            yield
        finally:
            with suppress(sqlite3.Error):
                self.sql.execute("COMMIT")

    def changed_by_others(self) -> int:
        """Return a number that another process's writing changes."""
        return int(self.read("PRAGMA data_version")[0][0])

    def read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query, so that nothing is held up by one that was half read."""
        return self.patiently(statement, values).fetchall()

    def read_some(
        self,
        statement: str,
        values: Iterable[object],
        mark: str = "?",
        before: Sequence[object] = (),
    ) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query for many values, as many at a time as a statement takes.

        Args:
            statement: the query, with braces in the place of the values.
            values: these; the last ones are filled up with NULL, which finds nothing.
            mark: what stands for each of them.
            before: the values of other marks, which stand before the braces.
        """
        rest = iter(values)
        while some := list(islice(rest, VALUES[-1])):
            size = next(size for size in VALUES if size >= len(some))
            marks = ", ".join([mark] * size)
            filled = (*before, *some, *repeat(None, size - len(some)))
            yield from self.read(statement.format(marks), filled)

    def patiently(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute what another process may hinder, as soon as it does not.

        Raises:
            Busy: it does, as `transaction` says.
        """
        progress, tries = 0, 0
        while True:
            try:
                return self.sql.execute(statement, values)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                if (now := self._progress()) != progress:
                    progress, tries = now, 0
                tries += 1
                if tries > (LITTLE_PATIENCE if self._hurried() else PATIENCE):
                    raise Busy("another process holds it and gets nowhere") from error
                time.sleep(0.001)  # SQLite itself has waited for most of a try

    def beat(self) -> None:
        """Show others, now and then, that what takes long goes on."""
        if self.path and (now := time.monotonic()) > self._beaten + BEAT:
            self._beaten = now
            if self.sql.in_transaction:
                self.renew(self.path)

    def renew(self, path: Path) -> None:
        """Change the file's time, and nothing else."""
        with suppress(OSError):
            os.utime(path)

    def _progress(self) -> int:
        """Return what changes as long as whoever writes goes on."""
        with suppress(OSError):
            return self.path.stat().st_mtime_ns if self.path else 0
        return 0
