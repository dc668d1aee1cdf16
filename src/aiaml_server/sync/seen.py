"""What this machine has seen on disk: which memory files, in which version, in which directory.

A file that git has and the disk has not was deleted only if it had been in this very directory: an
unmounted disk, a checkout that broke off or an old backup must not be taken for a wish to forget.
The record is disposable. Without it nothing was seen, so nothing counts as deleted, and every file
is read once.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import make_own_directory, open_private, read_regular
from aiaml_server.storage.journal import check_beside
from aiaml_server.storage.sqlite import files_of
from aiaml_server.storage.store import NEVER, Stamp

log = logging.getLogger(__name__)

MARKER = ".aiaml-directory"
_MARK = b"AIAML knows this directory again by this file. Deleting it harms nothing.\n%s\n"
_TABLES = """
CREATE TABLE IF NOT EXISTS place (mark BLOB, inode INTEGER, changed INTEGER, listed INTEGER);
CREATE TABLE IF NOT EXISTS held (path BLOB);
CREATE TABLE IF NOT EXISTS seen (
    path BLOB PRIMARY KEY, oid BLOB, modified INTEGER, changed INTEGER, inode INTEGER, size INTEGER
) WITHOUT ROWID;
"""


class Sighting(NamedTuple):
    """A version that a file was seen to have.

    Attributes:
        oid: git's name for the bytes.
        stamp: while the file bears it, it has these bytes; None where that is not sure.
    """

    oid: bytes
    stamp: Stamp | None


class Place(NamedTuple):
    """What tells one directory from another, also from a later one of the same name or a copy.

    The number of a directory is given to another one as soon as it is free. So a small file in it
    is marked by chance, and known again by its own number and time of change, which no program can
    set: a copy of it has others.
    """

    mark: bytes
    inode: int
    changed: int


class Seen:
    """The record in `file` of what was seen in `directory`; used by one process at a time.

    Without a file, it is that of this process alone. SQLite opens the file and what lies beside it:
    nobody else may have put anything there.
    """

    def __init__(self, file: Path | None, directory: Path) -> None:
        self.file = file
        self._directory = directory
        self._rows: tuple[Stamp, dict[bytes, Sighting]] | None = None  # as read at that stamp
        self._place: Place | None = None  # the directory that was there when it was read

    def mark(self) -> None:
        """Have the directory known again, if it is there."""
        with suppress(OSError):
            if self._directory.is_dir() and not _place(self._directory):
                _mark(self._directory)

    def is_same(self) -> bool:
        """Whether the directory is the one that was there when the record was read."""
        return _place(self._directory) == self._place

    def read(self) -> dict[bytes, Sighting]:
        """Return what each file was last seen to be; nothing where this is another directory."""
        self._place = _place(self._directory)
        try:
            with self._opened(write=False) as connection:
                if not self._is_here(connection):
                    return {}
                return self._read(connection)
        except (OSError, sqlite3.Error) as error:
            log.debug("What was seen on disk is not known: %s", error)
            return {}

    def _read(self, connection: sqlite3.Connection) -> dict[bytes, Sighting]:
        """Return all rows; what was read before, while no process has written since."""
        stamp = Stamp.of(self.file.stat()) if self.file else NEVER
        if self._rows and self._rows[0] == stamp:
            return self._rows[1]
        settled = self.file and stamp.settled
        rows = connection.execute("SELECT * FROM seen")
        sightings = {
            path: Sighting(oid, None if None in numbers else Stamp(*numbers))
            for path, oid, *numbers in rows
        }
        self._rows = (stamp, sightings) if settled else None
        return sightings

    def held(self) -> set[bytes]:
        """Return the files whose deletion waits for a person's word."""
        return {path for (path,) in self._rows_of("SELECT path FROM held")}

    def hold(self, paths: Iterable[bytes]) -> None:
        """Note these as the files whose deletion waits for a person's word."""
        with suppress(OSError, sqlite3.Error), self._opened(write=True) as connection:
            connection.execute("DELETE FROM held")
            connection.executemany("INSERT INTO held VALUES (?)", ((path,) for path in paths))
            connection.commit()

    def anything(self) -> bool:
        """Whether any file was ever seen, in this directory or in another of its name."""
        return bool(self._rows_of("SELECT 1 FROM seen LIMIT 1"))

    def _rows_of(self, statement: str) -> list[tuple[bytes]]:
        """Return the rows of a query; none where there is no record that can be read."""
        with suppress(OSError, sqlite3.Error), self._opened(write=False) as connection:
            return connection.execute(statement).fetchall()
        return []

    def note(self, sightings: Mapping[bytes, Sighting | None]) -> None:
        """Add what was seen now; None for a file that is gone and whose deletion is committed.

        A disk that refuses is let be: what is not noted, was not seen. Nothing is noted either if
        another directory has taken the place of the one that was there when the record was read.
        """
        if not sightings or (self._place and not self.is_same()):
            return
        try:
            self._note(sightings)
        except (OSError, sqlite3.Error) as error:
            log.debug("What was seen on disk is made known anew: %s", error)
            with suppress(OSError):
                for path in files_of(self.file) if self.file else ():
                    path.unlink(missing_ok=True)

    def _note(self, sightings: Mapping[bytes, Sighting | None]) -> None:
        place = _place(self._directory) or _mark(self._directory)
        with self._opened(write=True) as connection:
            if not self._is_here(connection):
                connection.execute("DELETE FROM seen")
            connection.execute("DELETE FROM place")
            listed = self._directory.stat().st_ctime_ns
            connection.execute("INSERT INTO place VALUES (?, ?, ?, ?)", (*place, listed))
            gone = ((path,) for path, sighting in sightings.items() if not sighting)
            connection.executemany("DELETE FROM seen WHERE path = ?", gone)
            rows = [
                (path, sighting.oid, *(sighting.stamp or (None,) * 4))
                for path, sighting in sightings.items()
                if sighting
            ]
            connection.executemany("REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?)", rows)
            connection.commit()

    def _is_here(self, connection: sqlite3.Connection) -> bool:
        """Whether the record is of this directory, and not of a later state of it."""
        row = connection.execute("SELECT * FROM place").fetchone()
        if not row or row[:3] != _place(self._directory):
            return False
        listed: int = row[3]
        return self._directory.stat().st_ctime_ns >= listed

    @contextmanager
    def _opened(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        if not self.file:
            yield _in_memory(self._directory)
            return
        check_beside(self.file)
        if write:
            make_own_directory(self.file.parent)
            os.close(open_private(str(self.file), os.O_CREAT | os.O_WRONLY))
        mode = "rw" if write else "ro"
        name = f"{self.file.absolute().as_uri()}?mode={mode}"
        with closing(sqlite3.connect(name, uri=True)) as connection:
            if write:
                connection.executescript(_TABLES)
            yield connection


@cache
def _in_memory(_directory: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(_TABLES)
    return connection


def _place(directory: Path) -> Place | None:
    """Return which directory it is; None where that was never marked."""
    path = directory / MARKER
    try:
        mark = read_regular(str(path), 1024)
        stamp = Stamp.of(path.lstat())
    except (OSError, MalformedFile):
        return None
    return Place(mark, stamp.inode, stamp.changed) if mark else None


def _mark(directory: Path) -> Place:
    path = directory / MARKER
    path.unlink(missing_ok=True)
    with open(path, "xb", opener=open_private) as file:
        file.write(_MARK % os.urandom(16).hex().encode())
    place = _place(directory)
    if not place:
        raise OSError(f"{path} cannot be read")
    return place
