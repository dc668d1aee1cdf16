"""Keeping the repository small: beside the rounds, at low priority, and without harm when killed.

A commit brings a whole new listing of `files/`, and git stores it whole at first; packed together,
these listings are small. So it does not matter who made them: whoever only receives must pack, too.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress

from aiaml_server.files import Lock
from aiaml_server.storage import programs
from aiaml_server.sync.command import Git, GitFailed, dying_with_us
from aiaml_server.sync.repository import Repository

log = logging.getLogger(__name__)

_LEAST = 512 * 1024  # bytes that may lie about in any repository …
_FOR_EACH = 640  # … or this for each memory, if that is more
_PACKS = 50
_SECONDS = 600.0
_STALE_SECONDS = 3600.0


class Tidy:
    """Packs the objects of one repository when many lie about; used by one thread."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._git = Git(repository.base)
        program = programs.find("nice") if os.name == "posix" else None
        self._git.prefix = [*dying_with_us(), *([program, "-n", "19"] if program else [])]
        self._thread: threading.Thread | None = None
        self._left = 0  # bytes that the last packing left as they were

    def begin(self) -> None:
        """Have it done if it is worth it, by a thread that nobody waits for."""
        if self._thread and self._thread.is_alive():
            return
        size, packs = self._lying_about()
        memories = 0
        with suppress(OSError), os.scandir(self._repository.base / "files") as entries:
            memories = sum(1 for _ in entries)
        if packs > _PACKS or size - self._left > max(_LEAST, memories * _FOR_EACH):
            self._thread = threading.Thread(target=self.run, name="tidy", daemon=True)
            self._thread.start()

    def run(self) -> None:
        """Do it now. Another process that does it is let be."""
        self._git.variables = self._repository.git.variables
        objects = self._repository.directory / "objects"
        place = self._repository.directory / "aiaml"
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            with Lock(place / "tidying").held(0) as hold:
                if hold.acquired:
                    for path in (objects / "pack").glob(".tmp-*"):  # of a killed packing
                        with suppress(OSError):
                            if time.time() - path.lstat().st_mtime > _STALE_SECONDS:
                                path.unlink()
                    words = ("-d", "-l", "-q", "--geometric=2")
                    one_thread = ("-c", "pack.threads=1")
                    self._git.run("repack", *words, seconds=_SECONDS, options=one_thread)
        except (GitFailed, OSError) as error:
            log.info("The repository was not packed: %s", error)
        self._left, _ = self._lying_about()

    def _lying_about(self) -> tuple[int, int]:
        """Return how many bytes are outside the largest pack, and how many packs besides it."""
        objects = self._repository.directory / "objects"
        loose = 0
        for directory in _entries(objects):
            if len(directory.name) == 2:
                loose += sum(map(_size, _entries(directory)))
        found = _entries(objects / "pack")
        packs = [0, *(_size(entry) for entry in found if entry.name.endswith(".pack"))]
        return loose + sum(packs) - max(packs), len(packs) - 1

    def wait(self) -> None:
        """Wait until it is done, if it is being done."""
        if self._thread:
            self._thread.join()

    def end(self) -> None:
        """Kill what does it, and begin no more."""
        self._git.end()


def _entries(directory: str | os.PathLike[str]) -> list[os.DirEntry[str]]:
    """Return what is in a directory; nothing where another git has just removed it."""
    with suppress(OSError), os.scandir(directory) as entries:
        return list(entries)
    return []


def _size(entry: os.DirEntry[str]) -> int:
    with suppress(OSError):
        return entry.stat(follow_symlinks=False).st_size
    return 0
