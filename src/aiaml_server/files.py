"""Two promises: whole files (`write_atomic`, `read_regular`), one writer at a time (`Lock`)."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from .errors import MalformedFile

log = logging.getLogger(__name__)

TEMPORARY = ".tmp"  # ends the name of a file that is still being written
_POLL_SECONDS = 0.002


def make_directory(path: Path) -> None:
    """Create `path` and what is missing above it, for the owner alone (0700), and durably.

    An existing directory is left as it is.

    Raises:
        OSError: it cannot be created, or something else has its name.
    """
    try:
        _make_one(path)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_directory(path.parent)
        _make_one(path)  # once more and no oftener: /proc says so of every new name in it


def _make_one(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    try:
        sync_directory(path.parent)
    except OSError:
        with suppress(OSError):  # left there, it would be taken for a durable one next time
            path.rmdir()
        raise


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` under the new name `path` (mode 0600), whole and durable, or leave nothing.

    The bytes go to a hidden temporary file beside it, are synced, take the name by a rename, and
    the directory is synced: the order that Maildir and git use. After a kill in between, a
    temporary file may stay; no reader takes it for a memory.

    Raises:
        OSError: the disk refused; neither the name nor the temporary file is there.
    """
    current = path.with_name(f".{path.name}{TEMPORARY}")
    _write_new(current, data, 0o600)
    try:
        _rename(current, path)
        current = path
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            current.unlink()
        raise


def replace_atomic(path: Path, data: bytes, mode: int) -> None:
    """Put `data` and `mode` under a name that may be taken; a reader sees the old or the new file.

    Raises:
        OSError: the disk refused; the old file is there, or the new one if only the last step, to
            make its name durable, failed.
    """
    current = path.with_name(f".{path.name}.{os.urandom(4).hex()}{TEMPORARY}")
    _write_new(current, data, mode)
    try:
        _rename(current, path)
    except BaseException:
        with suppress(OSError):
            current.unlink()
        raise
    sync_directory(path.parent)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 (a descriptor, not a path)
            stream.write(data)
            stream.flush()
            if mode != 0o600 and sys.platform != "win32":
                os.fchmod(stream.fileno(), mode)
            _sync(stream.fileno())
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


_READ = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


def read_regular(path: str, most: int) -> bytes:
    """Read a regular file of at most `most` bytes, following no link and waiting for no pipe.

    Raises:
        MalformedFile: it is something else.
        OSError: it is not there, or cannot be read.
    """
    _check_regular(os.lstat(path), most)
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        _check_regular(status, most)
        parts = [os.read(descriptor, status.st_size + 1)]
        while parts[-1] and sum(map(len, parts)) <= most:
            parts.append(os.read(descriptor, most))
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _check_regular(status: os.stat_result, most: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise MalformedFile(["it is a symbolic link"])
    if not stat.S_ISREG(status.st_mode):
        raise MalformedFile(["it is not a regular file"])
    if status.st_size > most:
        raise MalformedFile([f"it is larger than {most // 1024 // 1024} MiB"])


def sync_directory(path: Path) -> None:
    """Make the names in `path` durable, where the platform can (Windows cannot)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without the notion
            raise
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":  # there, fsync leaves the bytes in the drive's cache
        import fcntl  # noqa: PLC0415

        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _rename(source: Path, target: Path) -> None:
    for attempt in range(10):
        try:
            source.replace(target)
        except PermissionError:
            # On Windows a virus scanner may hold a new file for a moment.
            if sys.platform != "win32" or attempt == 9:
                raise
            time.sleep(0.02)
        else:
            return


class Hold(NamedTuple):
    """How a lock is held.

    Attributes:
        had: whether it is held at all.
        alone: whether nobody else has held it since this `Lock` last did.
    """

    had: bool
    alone: bool


class Lock:
    """An advisory lock on a file, across the threads and processes of this machine.

    The system releases it when its holder dies, so there are no stale ones. Each holder leaves its
    mark in the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = os.urandom(16)
        self._thread = threading.Lock()

    @contextmanager
    def held(self, seconds: float) -> Iterator[Hold]:
        """Hold the lock inside the `with`, if it is to be had.

        It is not when another holder keeps it for `seconds`, and on a file system that cannot
        lock. Neither is an error here: the caller knows what it can do without.
        """
        deadline = time.monotonic() + seconds
        if not self._thread.acquire(timeout=seconds):
            yield Hold(had=False, alone=False)
            return
        try:
            with _locked_file(self._path, deadline) as stream:
                yield Hold(stream is not None, stream is not None and self._marked(stream))
        finally:
            self._thread.release()

    def _marked(self, stream: FileIO) -> bool:
        """Say whether the mark is ours, and make it ours."""
        with suppress(OSError):
            if stream.read(len(self._mark)) == self._mark:
                return True
            stream.seek(0)
            stream.write(self._mark)
        return False


@contextmanager
def _locked_file(path: Path, deadline: float) -> Iterator[FileIO | None]:
    import portalocker  # noqa: PLC0415 (20 ms that a server which never writes does not pay)

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        log.warning("Cannot open the lock file %s: %s", path, error.strerror)
        yield None
        return
    stream = FileIO(descriptor, "r+")
    held = False
    try:
        held = _acquire(stream, path, deadline)
        yield stream if held else None
    finally:
        # What was done under the lock stands, whatever becomes of the lock.
        with suppress(OSError, portalocker.LockException):
            if held:
                portalocker.unlock(stream)
        with suppress(OSError):
            stream.close()


def _acquire(stream: FileIO, path: Path, deadline: float) -> bool:
    import portalocker  # noqa: PLC0415

    while True:
        try:
            portalocker.lock(stream, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.AlreadyLocked:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        except portalocker.LockException as error:
            log.warning("Cannot lock %s: %s", path, error)
            return False
        else:
            return True
