"""Databases in the user's cache directory, in a folder for each base.

A base directory may come from somebody else, and SQLite uses files beside a database, such as a
journal. So no database is stored in the base itself.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from aiaml_server.files import make_directory, replace_atomic
from aiaml_server.identity import base_id, cache_directory

LOCK_SECONDS = 5.0
"""How long to wait for another process that writes."""

_SETTINGS = """
PRAGMA page_size = 16384; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;
PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;
"""
_BASE = "base"  # the file in each folder that names its base
_FILE = f"7-{unicodedata.unidata_version}.sqlite"
"""The version of the tables, and of the characters by which this Python cuts terms."""


def index_file(base: Path) -> Path:
    """Return the path of the index of a base, whether or not it exists.

    Raises:
        NoStateDirectory: the user has no cache directory.
    """
    place = zlib.crc32(os.fsencode(base.resolve()))
    return cache_directory() / "index" / f"{base_id(base)}-{place:08x}" / _FILE


def make_index_file(base: Path) -> Path:
    """Return the path of the index of a base, in a folder that exists.

    When a folder is created, the folders of bases that no longer exist are removed.

    Raises:
        NoStateDirectory: the user has no cache directory.
        OSError: the disk refuses.
    """
    file = index_file(base)
    if not file.exists():
        make_directory(file.parent)
        named = str(base.resolve()).encode("utf-8", "surrogateescape")
        replace_atomic(file.with_name(_BASE), named, 0o600)
        for other in file.parent.parent.glob(f"*/{_BASE}"):
            with suppress(OSError):
                if not Path(other.read_bytes().decode("utf-8", "surrogateescape")).is_dir():
                    shutil.rmtree(other.parent)
    return file


def delete_index(base: Path, *, others: bool = False) -> None:
    """Delete the index of a base. The next question rebuilds it.

    Args:
        base: the memory directory.
        others: delete those that other versions made of it instead. They hold what was forgotten
            until that version is used again, which may be never.

    Raises:
        NoStateDirectory: the user has no cache directory.
        OSError: the disk refuses.
    """
    own = index_file(base)
    for file in own.parent.glob("*.sqlite*"):
        if file.name.startswith(own.name) != others:
            file.unlink(missing_ok=True)


class CacheDatabase:
    """One connection to a SQLite file that several processes share and that may be deleted.

    Used by one thread at a time.
    """

    def __init__(self, path: Path | None, schema: str) -> None:
        """Open a file, and create its tables if it has none.

        Args:
            path: None for a database in memory.
            schema: statements that create the tables and set `user_version`.

        Raises:
            sqlite3.Error: the file is damaged, or cannot be used.
            OSError: it cannot be created.
        """
        if path:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._path = path
        self._inode = path.stat().st_ino if path else 0
        self._connection = sqlite3.connect(
            path or ":memory:",
            timeout=LOCK_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._connection.executescript(_SETTINGS)
            with self.transaction("IMMEDIATE"):
                if self.rows("PRAGMA user_version").fetchone() == (0,):
                    for statement in schema.split(";\n"):
                        self.rows(statement)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def is_current(self) -> bool:
        """Return whether the open file is still the one at the path."""
        try:
            return self._path is None or self._path.stat().st_ino == self._inode
        except OSError:
            return False

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        """Run a transaction inside the `with`: for reading, or with `IMMEDIATE` for writing."""
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def rows(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a statement and return a cursor over its rows."""
        return self._connection.execute(statement, values)

    def insert(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each of many rows."""
        self._connection.executemany(statement, rows)
