"""Which memories the person has seen, on this computer.

A memory is known by a digest of all it says, so that one that an agent, another machine or another
program has changed is new again. Digests of what is seen lie beside the index.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from io import FileIO
from pathlib import Path

from aiaml_server.files import open_own, read_own
from aiaml_server.format import memory as form
from aiaml_server.format.memory import Memory
from aiaml_server.storage.derived import folder

_FILE = "inbox"
_MOST = 64 * 1024 * 1024  # bytes: two million memories


class Inbox:
    """What the person has seen of one base directory."""

    def __init__(self, base: Path, *, kept: bool = False) -> None:
        """Take a base; `kept` says whether the person wants to be told what is new."""
        self.kept = kept
        self._base = base
        self._known: tuple[tuple[int, int], set[bytes]] | None = None

    @property
    def _seen(self) -> set[bytes]:
        """What is noted, read again where it has changed: other processes note as well."""
        with suppress(FileNotFoundError):
            file = folder(self._base) / _FILE
            status = file.lstat()
            state = (status.st_ino, status.st_size)  # it only grows
            if not self._known or self._known[0] != state:
                self._known = state, set(read_own(file, _MOST).split())
            return self._known[1]
        return set()

    @property
    def problem(self) -> str:
        """Why it cannot be told what is new; empty where it can."""
        try:
            self.has(b"")
        except OSError as error:
            return str(error)
        return ""

    def is_new(self, memory: Memory) -> bool:
        """Say whether the person has not seen this memory as it is now.

        Raises:
            OSError: what was noted cannot be read.
        """
        return not self.has(digest(memory))

    def has(self, known: bytes) -> bool:
        """Say whether the person has seen the memory of this digest.

        Raises:
            OSError: what was noted cannot be read.
        """
        return known in self._seen

    def see(self, memories: Iterable[Memory]) -> int:
        """Note that the person has seen these memories; return how many were new.

        Raises:
            OSError: the disk refused.
        """
        seen = self._seen
        new = {each for memory in memories if (each := digest(memory)) not in seen}
        if new:
            _append(folder(self._base, make=True) / _FILE, new)
        return len(new)


def _append(path: Path, digests: Iterable[bytes]) -> None:
    with FileIO(open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as file:
        file.write(b"\n" + b"\n".join(sorted(digests)) + b"\n")  # a torn line ends here


def digest(memory: Memory) -> bytes:
    """Return by what a memory is known, which all that it says makes."""
    import hashlib  # noqa: PLC0415 (OpenSSL, which only who asks for what is new needs)

    text = form.format(memory).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest().encode()
