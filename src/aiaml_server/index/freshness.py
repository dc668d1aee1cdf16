"""What changed in a directory of memories since it was last recorded; not how that is recorded.

Nobody tells of a change; before each answer it is looked for, in three steps:

- *Told.* Once a record was up to date and where the system keeps a list of touched names (`watch`),
  the names on it are all that is to be looked at again.
- *Compared.* Otherwise, adding, removing or replacing a file changes the directory's stamp; when
  that is not the recorded one, the stamps of all files are compared.
- *Swept.* An edit in place changes no stamp of the directory. Where the system lists nothing, the
  stamps of a slice of files are compared for each second since the last question. Where it does,
  some edits are on no list: a first slice is compared before the first answer, and another one
  behind an answer, a few files at a time (`next_known`, `differing`, `suspect`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

from aiaml_server.errors import AiamlError
from aiaml_server.index import tuning
from aiaml_server.index.database import Database
from aiaml_server.storage.store import Stamp, Store
from aiaml_server.storage.watch import Watch, is_local, touched


class Closed(AiamlError):  # noqa: N818
    """What was asked for has ended in the middle of an answer."""


class Freshness:
    """Finds the files of a store that may differ from a database. Its user holds a lock."""

    def __init__(self, store: Store, ended: threading.Event, *, lasting: bool) -> None:
        """Make it for a store; `lasting` says whether it pays to watch, `ended` that it closes."""
        self._store = store
        self._ended = ended
        self._lasting = lasting
        self._watch = Watch()
        self._database: Database | None = None  # that was last brought up to date
        self._current: Stamp | None = None  # the directory's at that time
        self._sweep_after: str | None = None  # a name; None for a random one
        self._swept_at: float | None = None
        self._comparing = 0.0
        self._suspected: set[str] = set()

    def changes(self, database: Database, directory: Stamp) -> Iterator[set[str]]:
        """Yield the names of files that may differ from what is recorded, or be new or gone.

        They come in batches. Whoever asks for the next one has recorded the files as they are now;
        after the last, the database is up to date.

        Args:
            database: what is recorded; with another one than the last time, all begins anew.
            directory: the directory's stamp of now.

        Raises:
            Closed: the index was closed meanwhile.
            StoreError: the directory cannot be read.
        """
        before = self._current if database is self._database else None
        self._database, self._current = database, None  # unless all goes well
        names = touched(self._watch, before, directory)
        if names is None and self._lasting and not (before and directory == database.directory()):
            self._watch.begin(self._store.directory)
            directory = self._store.stamp() or directory  # nothing falls in between
        settled = directory.settled  # asked before listing: a change from here on gives another one
        if names is None:
            if self._watch.begun:  # just now; nobody knows what happened before
                self._swept_at = None
            names = set() if directory == database.directory() else self._compared(database)
        yield names
        if self._suspected:
            suspected, self._suspected = self._suspected, set()
            yield suspected
        if settled and directory != database.directory():
            database.set_directory(directory)
        if slices := self._due():
            yield self._swept(database, slices * tuning.SWEEP) - names
        self._current = directory

    def _compared(self, database: Database) -> set[str]:
        """Compare all files."""
        began = time.thread_time()
        new = set(self._store.names(missing_ok=False))  # it was there a moment ago
        changed = self.differing(database.known(), new)
        self._comparing = time.thread_time() - began
        self._swept_at = time.perf_counter()
        return changed | new

    def _due(self) -> int:
        """Return how many slices to compare before an answer: one for each second, if untold."""
        if self._swept_at is None:
            return 1
        if self._watch.begun:
            return 0
        seconds = time.perf_counter() - self._swept_at
        return min(int(seconds / tuning.UNTOLD_SECONDS), tuning.SWEEPS)

    def _swept(self, database: Database, size: int) -> set[str]:
        """Compare the next files in the order of names."""
        if self._sweep_after is None:  # else each short life would compare the same first files
            self._sweep_after = database.any_name(size)
        began = self._sweep_after
        known = self.next_known(database, size)
        if began and len(known) < size:  # behind the last one the first again
            known += self.next_known(database, size - len(known))
        self._swept_at = time.perf_counter()
        return self.differing(known)

    # --- behind an answer -----------------------------------------------------------------------

    @property
    def listed(self) -> bool:
        """Whether the system lists touched names, so that sweeping need not precede an answer."""
        return self._watch.begun

    def next_known(self, database: Database, most: int) -> list[tuple[str, Stamp]]:
        """Return the next files in the order of names; fewer than `most` are the last ones."""
        known = list(database.known(self._sweep_after or "", most))
        self._sweep_after = known[-1][0] if len(known) == most else ""
        return known

    def suspect(self, names: set[str]) -> None:
        """Have files looked at again before the next answer."""
        self._suspected |= names

    def differing(
        self, known: Iterable[tuple[str, Stamp]], names: set[str] | None = None
    ) -> set[str]:
        """Return the files that are not as they are known; take what is known out of `names`.

        Needs no lock.
        """
        found = set()
        for name, stamp in known:
            if self._ended.is_set():
                raise Closed("the index is closed")
            if names:
                names.discard(name)
            if self._store.stamp(name) != stamp:
                found.add(name)
        return found

    @property
    def comparing(self) -> float:
        """Seconds of a processor that comparing all takes; 0 where the system tells."""
        return 0.0 if self._watch.begun else self._comparing

    @property
    def lacks_watch(self) -> bool:
        """Whether a system that could tell what was touched has nothing left to do it with."""
        return not self._watch.begun and is_local(self._store.directory)

    def close(self) -> None:
        """Watch the directory no more."""
        self._watch.end()
