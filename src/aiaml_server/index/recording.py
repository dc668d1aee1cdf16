"""Recording the files of a store in the database of its index."""

from __future__ import annotations

from itertools import islice

from aiaml_server.index.database import Database
from aiaml_server.storage.changes import ChangeDetector
from aiaml_server.storage.store import Stamp, Store

_BATCH_BYTES = 8_000_000
_STAMPS = "SELECT name, modified, changed, inode, size, id FROM files WHERE id > ? ORDER BY id"


class Recorder:
    """Keeps a database up to date with the files of a store.

    Attributes:
        pending: the names of files to record, in order.
    """

    def __init__(self, store: Store, database: Database, rescan_seconds: float | None) -> None:
        """Record from now on; `rescan_seconds` is that of the change detector."""
        self.pending: dict[str, None] = {}
        self._store = store
        self._database = database
        # The stamp of the directory when all its files were recorded; NEVER before that.
        (self._saved,) = map(Stamp._make, database.rows("SELECT * FROM directory"))
        self._changes = ChangeDetector(store, self._saved, rescan_seconds)
        self._last_id = 0
        for name, problem in database.rows("SELECT name, problem FROM files WHERE problem != ''"):
            store.report(name, problem)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to record."""
        return not self.pending and self._changes.listed in (None, self._saved)

    def find_changes(self, directory: Stamp) -> None:
        """Set `pending` to the names of files that are not recorded as they are now."""
        if self._changes.is_due(directory):
            self._load()
            self.pending = dict.fromkeys(self._changes.find(directory))

    def _load(self) -> None:
        """Load the stamps that were recorded since the last time, by this or another process.

        All are loaded again if another process has removed some.
        """
        known = self._changes.known
        for _ in range(2):
            rows = self._database.rows(_STAMPS, [self._last_id])
            for name, *stamp, self._last_id in rows:
                known[name] = Stamp(*stamp)
            if self._database.rows("SELECT count(*) FROM files").fetchone() == (len(known),):
                return
            known.clear()
            self._last_id = 0

    def record(self, most: int) -> None:
        """Record the next pending files, at most so many, in one transaction."""
        listed = self._changes.listed
        with self._database.transaction("IMMEDIATE"):
            self._load()
            read = self._store.read_many(islice(self.pending, most), _BATCH_BYTES)
            self._database.remove(read)
            self._database.add(filter(None, read.values()))
            if listed and len(read) == len(self.pending):
                self._database.rows(
                    "UPDATE directory SET (modified, changed, inode, size) = (?, ?, ?, ?)", listed
                )
                self._saved = listed
        for name in read:
            del self.pending[name]
            self._changes.known.pop(name, None)
