"""What happens while somebody looks: memories changed, or sync did; told as it happens."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from aiaml_server.bank import MemoryBank
from aiaml_server.storage.store import Stamp
from aiaml_server.storage.watch import Watch, touched
from aiaml_server.sync import STATUS_FILE

LOOK_SECONDS = 0.5
BEAT = 20  # looks without news after which a line shows whether anybody is there
MOST_STREAMS = 4  # a browser has six connections to a server, for all of its tabs together


class Changes:
    """Counts what changed in a directory since it is looked at. Safe to use from any thread."""

    def __init__(self, bank: MemoryBank) -> None:
        self._bank = bank
        self._lock = threading.Lock()
        self._watch = Watch()
        self._directory: Stamp | None = None
        self._status = 0
        self._counted = (0, 0)

    def look(self) -> tuple[int, int]:
        """Return how often memories, and how often sync's status, were seen to have changed.

        Where the system tells which files were touched, an edit in place is seen too; elsewhere
        only what gives the directory another stamp: a file added, deleted or replaced.
        """
        with self._lock:
            memories, status = self._counted
            self._counted = (memories + self._memories_changed(), status + self._status_changed())
            return self._counted

    def _memories_changed(self) -> bool:
        before, self._directory = self._directory, self._bank.stamp("")
        names = touched(self._watch, before, self._directory)
        if names is None:  # nothing is noted yet, or not any more
            self._watch.begin(self._bank.directory)
            return self._directory != before
        return bool(names)

    def _status_changed(self) -> bool:
        before, self._status = self._status, 0
        with suppress(OSError):
            self._status = (self._bank.base / STATUS_FILE).lstat().st_mtime_ns
        return self._status != before

    def close(self) -> None:
        """Watch no more."""
        with self._lock:
            self._watch.end()


class Streams:
    """What is told of a directory as it happens, to every window that listens.

    Attributes:
        open: how many listen.
    """

    def __init__(self) -> None:
        self.open = 0
        self._ended = False

    async def events(self, directory: Changes) -> AsyncIterator[bytes]:
        """Yield the lines of server-sent events: what `look` counts, now and when it differs."""
        self.open += 1
        try:
            told, quiet = None, 0
            while not self._ended:
                counted = await run_in_threadpool(directory.look)
                if counted != told:
                    yield f"data: {json.dumps(counted)}\n\n".encode()
                    told, quiet = counted, 0
                elif quiet >= BEAT:
                    yield b":\n\n"
                    quiet = 0
                quiet += 1
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.open -= 1

    def close(self) -> None:
        """Have all streams end, soon."""
        self._ended = True
