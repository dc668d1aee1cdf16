"""What changed in the directory since it was recorded, and recording it."""

from __future__ import annotations

import time
from itertools import islice

from aiaml_server.errors import MalformedFile
from aiaml_server.index.database import Database, ReadFile
from aiaml_server.storage.store import NEVER, Stamp, Store

_BATCH_BYTES = 8 * 1024 * 1024


class Changes:
    """Compares the files of a store with what a database has of them.

    Attributes:
        pending: the names of files to record, in order.
    """

    def __init__(self, store: Store, database: Database, rescan_seconds: float | None) -> None:
        """Compare from now on.

        Args:
            store: the files.
            database: where they are recorded.
            rescan_seconds: how often to compare the stamps of all files; None for never.
        """
        self.pending: dict[str, None] = {}
        self._store = store
        self._database = database
        self._rescan_seconds = rescan_seconds
        self._rescanned = float("-inf")
        self._known: dict[str, Stamp] = {}  # by name, as recorded
        self._last_id = 0
        self._version: object = None
        self._saved = database.directory
        for name, problem in database.rows("SELECT name, problem FROM files WHERE problem != ''"):
            store.report(name, problem)
        self._listed = self._saved  # the stamp of the directory when its names were compared
        self._seen = self._saved  # the same, even if a later change might not show in it

    @property
    def is_recorded(self) -> bool:
        """Whether there is nothing left to record."""
        return not self.pending and self._listed in (None, self._saved)

    def find(self, directory: Stamp) -> None:
        """Set `pending` to the names of files that are not recorded as they are now.

        Args:
            directory: the stamp of the directory, as it is now.
        """
        is_due = self._rescan_seconds is not None and (
            time.monotonic() - self._rescanned >= self._rescan_seconds
        )
        if directory == self._listed and not is_due:
            return
        self._load()
        names = set(self._store.names())
        changed = names ^ self._known.keys()
        is_replaced = not changed and directory != self._seen and self._rescan_seconds is not None
        if is_due or is_replaced:
            self._rescanned = time.monotonic()
            known = names & self._known.keys()
            changed |= {name for name in known if self._store.stamp(name) != self._known[name]}
        self.pending = dict.fromkeys(sorted(changed))
        self._seen = directory
        self._listed = directory if directory.settled else None

    def _load(self) -> None:
        """Load what another process has recorded, or what was recorded before."""
        ((version,),) = self._database.rows("PRAGMA data_version")
        if version == self._version:
            return
        self._version = version
        rows = self._database.rows(
            "SELECT name, modified, changed, inode, size, id FROM files WHERE id > ? ORDER BY id",
            [self._last_id],
        )
        for name, *stamp, self._last_id in rows:
            self._known[name] = Stamp(*stamp)

    def record(self, most: int) -> None:
        """Record the next pending files, at most so many, in one transaction."""
        with self._database.transaction("IMMEDIATE"):
            self._load()
            read = self._read(most)
            self._database.remove(read.keys())
            files = [file for file in read.values() if file]
            self._database.add(files)
            is_complete = len(read) == len(self.pending)
            if is_complete and self._listed:
                self._database.directory = self._listed
        for name, file in read.items():
            del self.pending[name]
            self._known.pop(name, None)
            if file:
                self._known[name] = file.stamp
        if is_complete:
            self._saved = self._listed

    def _read(self, most: int) -> dict[str, ReadFile | None]:
        """Read the next pending files; None for one that is gone."""
        files: dict[str, ReadFile | None] = {}
        size = 0
        for name in islice(self.pending, most):
            stamp = self._store.stamp(name) or NEVER
            size += stamp.size
            # A file may change once more in the same tick of the clock, and keep its stamp.
            known = stamp if stamp.settled else NEVER
            try:
                files[name] = ReadFile(name, known, self._store.read(name))
            except FileNotFoundError:
                files[name] = None
            except MalformedFile as error:
                if isinstance(error.__cause__, OSError):  # it may pass
                    known = NEVER
                files[name] = ReadFile(name, known, problem=str(error))
                self._store.report(name, str(error))
            if size > _BATCH_BYTES:
                break
        return files
