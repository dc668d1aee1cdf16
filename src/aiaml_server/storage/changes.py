"""Find the files of a store that changed since they were recorded."""

from __future__ import annotations

import time

from aiaml_server.storage.store import NEVER, Stamp, Store


class ChangeDetector:
    """Compares the files of a store with recorded stamps.

    Names are compared when the stamp of the directory changes, and stamps of files at intervals.
    Where the directory has changed and its names have not, a file was replaced, and the stamps are
    compared at once.

    Attributes:
        known: the recorded stamp of each file.
        listed: the stamp of the directory at the last comparison of names; None where a later
            change might not show in it.
    """

    def __init__(self, store: Store, listed: Stamp | None, rescan_seconds: float | None) -> None:
        """Prepare to compare.

        Args:
            store: the files.
            listed: the stamp of the directory when all of `known` was recorded.
            rescan_seconds: how often to compare the stamps of all files; None for never.
        """
        self.known: dict[str, Stamp] = {}
        self.listed = listed
        self._seen = listed
        self._store = store
        self._rescan_seconds = rescan_seconds
        self._rescanned = float("-inf")

    def is_due(self, directory: Stamp) -> bool:
        """Return whether files must be compared, by the stamp of the directory and the interval."""
        return directory != self.listed or self._is_rescan_due()

    def _is_rescan_due(self) -> bool:
        seconds = self._rescan_seconds
        return seconds is not None and time.monotonic() - self._rescanned >= seconds

    def find(self, directory: Stamp) -> list[str]:
        """Return the names of files that appeared, disappeared or may have changed, in order.

        Raises:
            StoreError: the directory cannot be read.
        """
        changed = self.known.keys() ^ set(self._store.names())
        is_replaced = not changed and directory != self._seen
        if self._is_rescan_due() or (is_replaced and self._rescan_seconds is not None):
            self._rescanned = time.monotonic()
            for name, stamp in self.known.items():
                if name not in changed and self._store.stamp(name) != stamp:
                    changed.add(name)
        if NEVER in self.known.values():
            changed.update(name for name, stamp in self.known.items() if stamp == NEVER)
        self._seen = directory
        self.listed = directory if directory.settled else None
        return sorted(changed)
