"""One writer at a time, on the standard library alone."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aiaml_server.toolsets.citations.failures import Busy

_POLL_SECONDS = 0.005


@contextmanager
def alone(directory: Path, seconds: float) -> Iterator[None]:
    """Be the only one of this machine's threads and processes that writes into a directory.

    The lock is on the directory itself; where a system locks no directories, on a file of its own
    among the temporary ones. The system releases it when its holder dies.

    Raises:
        Busy: another process holds it for longer than so many seconds.
        OSError: there is nothing to lock.
    """
    deadline = time.monotonic() + seconds
    descriptor = _open(directory)
    try:
        while not _acquired(descriptor):
            if time.monotonic() >= deadline:
                raise Busy(f"another process writes in {directory.name}; try again")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _open_substitute(directory: Path) -> int:
    name = hashlib.sha256(os.path.realpath(directory).encode("utf-8", "surrogateescape"))
    user = os.getuid() if sys.platform != "win32" else ""
    path = Path(tempfile.gettempdir()) / f"aiaml-citations-{user}-{name.hexdigest()[:16]}.lock"
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags | getattr(os, "O_NOINHERIT", 0), 0o600)


if sys.platform == "win32":
    import msvcrt

    _open = _open_substitute

    def _acquired(descriptor: int) -> bool:
        with suppress(OSError):
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        return False

else:
    import fcntl

    def _open(directory: Path) -> int:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except BlockingIOError:
            return descriptor
        except OSError:  # some network file systems lock no directories
            os.close(descriptor)
            return _open_substitute(directory)
        return descriptor

    def _acquired(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
