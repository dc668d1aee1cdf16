"""How the files that may have changed are brought up to date in the database.

Each is looked at inside the transaction that records it, so it does not matter what another process
does at the same time.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain

from aiaml_server.errors import MalformedFile, StoreError
from aiaml_server.format.memory import Memory
from aiaml_server.index import tuning
from aiaml_server.index.database import Database, remove_others
from aiaml_server.index.freshness import Closed, Freshness
from aiaml_server.index.records import FileEntry
from aiaml_server.storage.store import NEVER, UNREADABLE, Stamp, Store


class Recorder:
    """Records the files of a store. Its user holds a lock.

    Attributes:
        looked_at: the files that were looked at for the answer that is being made.
    """

    def __init__(self, store: Store, freshness: Freshness, ended: threading.Event) -> None:
        self.looked_at: set[str] = set()
        self._store = store
        self._freshness = freshness
        self._ended = ended
        self._gone: set[str] = set()  # names that were not there when they were to be recorded

    def bring_up_to_date(self, database: Database, directory: Stamp) -> None:
        """Record all that changed; the directory bears the stamp `directory` now.

        Raises:
            Closed: the index was closed meanwhile.
            StoreError: the directory cannot be read.
        """
        self.looked_at.clear()
        for names in self._freshness.changes(database, directory):
            self.record(database, names)

    def record(self, database: Database, names: Collection[str]) -> None:
        """Bring what is recorded of some files up to date.

        What another process has recorded meanwhile is taken out before the next transaction, in
        which it would hold up all others. A changed file's old and new state change places in one.
        """
        if not names:
            return
        self._gone.clear()
        rest = sorted(names, reverse=True)
        # No transaction that others have begun before gives numbers of the next segment.
        next_segment = (database.end // tuning.SEGMENT + 1) * tuning.SEGMENT
        later = next_segment if self._freshness.listed else None
        forgotten, shared, others = False, True, database.changed_by_others()
        while rest:
            with database.transaction():
                disturbed = shared and others != database.changed_by_others()
                if not disturbed:
                    stamps = self._next_batch(rest, tuning.SEGMENT - database.end % tuning.SEGMENT)
                    forgotten |= self._apply_batch(database, stamps)
                    self.looked_at.update(stamps)
            if disturbed:
                others = database.changed_by_others()
                left = self._unrecorded(database, rest, later)
                shared, rest = len(left) < len(rest), left
        if forgotten and database.path:  # it must not linger in files of other processes, either
            remove_others(database.path, older_than=0)
        self._look_again()
        if len(names) > tuning.SEGMENT // 4:
            give_back()

    def _look_again(self) -> None:
        """Have what was gone looked at again where only a directory above was, for a moment.

        That changes no stamp of the directory of memories, with which all would be believed.

        Raises:
            StoreError: it is not there now.
        """
        if self._gone and self._store.stamp() is None:
            cause = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            raise StoreError("read", self._store.directory, cause)
        if back := {name for name in self._gone if self._store.stamp(name)}:
            self._freshness.suspect(back)

    def _unrecorded(self, database: Database, names: list[str], later: int | None) -> list[str]:
        """Return those files that are not recorded as they are now, in the same order.

        Args:
            database: where they may be recorded.
            names: the files.
            later: from which number on they were read while this process watched them, so that
                what changed since is on its own list; None where it does not.
        """
        read = set() if later is None else database.read_from(later)
        rest = [name for name in names if name not in read]
        known = database.find(rest)
        changed = self._freshness.differing((each.name, each.stamp) for each in known.values())
        return [name for name in rest if name not in known or name in changed]

    def _next_batch(self, names: list[str], most: int) -> dict[str, Stamp | None]:
        """Take from the end of `names` what one transaction is to record, with its stamps."""
        stamps: dict[str, Stamp | None] = {}
        size = 0
        while names and len(stamps) < most and size < tuning.STEP_BYTES:
            name = names.pop()
            stamp = stamps[name] = self._store.stamp(name)
            size += stamp.size if stamp else 0
        return stamps

    def _apply_batch(self, database: Database, stamps: Mapping[str, Stamp | None]) -> bool:
        """Record files as they are now; say whether anything recorded before was forgotten."""
        known = database.find(stamps)
        differing = {name: each for name, each in known.items() if each.stamp != stamps[name]}
        changed = []
        for entry in self._entries({name: stamps[name] for name in differing}):
            if database.restamp_if_same(differing[entry.name], entry):
                del differing[entry.name]
            else:
                changed.append(entry)
        database.forget([each.id for each in differing.values()])
        new = {name: stamp for name, stamp in stamps.items() if name not in known}
        database.add(chain(changed, self._entries(new)))
        return bool(differing)

    def _entries(self, stamps: Mapping[str, Stamp | None]) -> Iterator[FileEntry]:
        """Read files, one at a time; those that are gone are left out."""
        for name, stamp in stamps.items():
            if self._ended.is_set():
                raise Closed("the index is closed")
            settled = stamp and stamp.settled  # before it is read
            try:
                found: Memory | str = self._store.read(name)
            except FileNotFoundError:
                self._gone.add(name)
                continue
            except MalformedFile as error:
                self._store.report(name, str(error))
                found = str(error)
                if stamp != UNREADABLE and _may_pass(error):
                    stamp = NEVER  # noqa: PLW2901
            yield FileEntry(name, stamp if stamp and settled else NEVER, found)


def _may_pass(error: MalformedFile) -> bool:
    """Say whether a file may be readable soon without any change to it."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (errno.EACCES, errno.EPERM)


def give_back() -> None:
    """Return to the system what was needed for many files; glibc would keep megabytes of it."""
    if sys.platform == "linux":
        # Another C library has no such call, and a Python may be without ctypes.
        with suppress(OSError, AttributeError, ImportError):
            import ctypes  # noqa: PLC0415 (after seconds of work)

            ctypes.CDLL(None).malloc_trim(0)
