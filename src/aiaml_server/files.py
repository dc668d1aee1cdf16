"""Write files atomically and durably, lock them, and open only safe ones.

A memory directory may have been cloned, unpacked or shared. In it, a name of ours may be a link to
another program's file, a pipe without a writer, or another user's file. Everything below a memory
directory is therefore opened, created and deleted with the functions of this module, which follow
no link and wait for no pipe.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, NamedTuple

from aiaml_server.errors import MalformedFile, TooLarge, UnsafePath

log = logging.getLogger(__name__)

TEMPORARY_NAME = re.compile(r"\.aiaml-[0-9a-f]{16,}\.tmp")  # of `temporary_path`
_POLL_SECONDS = 0.002
_RENAME_TRIES = 10
_RENAME_PAUSE_SECONDS = 0.02
_REPARSE_LINK = 0x2000_0000  # bit in a Windows reparse tag: a link or a junction
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFREG: "a file",
}

# Follow no link, wait for no pipe, and pass the descriptor to no child process.
_SAFE_FLAGS = 0
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOINHERIT", "O_NOCTTY", "O_BINARY"):
    _SAFE_FLAGS |= getattr(os, _flag, 0)


# --- directories ----------------------------------------------------------------------------------


def make_directory(path: Path, mode: int = 0o700) -> None:
    """Create a directory and its missing parents durably; leave an existing one as it is.

    Raises:
        OSError: it cannot be created, or something else has its name.
    """
    if path.is_dir():
        return
    if path.is_symlink():
        reason = "it is a link to a directory that is not there; connect its disk, or remove it"
        raise FileNotFoundError(errno.ENOENT, reason, str(path))
    if path.parent != path and not path.parent.is_dir():
        make_directory(path.parent, mode)
    try:
        path.mkdir(mode, exist_ok=True)  # another process may be faster
    except FileExistsError:
        reason = os.strerror(errno.ENOTDIR).lower()
        raise NotADirectoryError(errno.ENOTDIR, reason, str(path)) from None
    try:
        sync_directory(path.parent)
    except OSError:
        with suppress(OSError):  # so that the next call tries again
            path.rmdir()
        raise


def make_own_directory(path: Path) -> None:
    """Create a directory for this user alone, or check that the existing one is ours.

    Raises:
        UnsafePath: it is a link, not a directory, or another user's.
        OSError: it cannot be created.
    """
    if not check_own(path, directory=True):
        make_directory(path)
        check_own(path, directory=True)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where the platform can (Windows cannot)."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # the file system has no such call
            raise
    finally:
        os.close(descriptor)


# --- writing --------------------------------------------------------------------------------------


def replace_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file or replace it. Readers see either the old file or the new one.

    The data goes to a temporary file in the same directory, which is synced and renamed. Then the
    directory is synced, as Maildir and git do.

    Raises:
        OSError: the disk refused. The old file is in place, or the new one if only syncing the
            directory failed.
    """
    temporary = write_temporary(path, data, mode)
    try:
        rename_over(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def write_temporary(path: Path, data: bytes, mode: int = 0o600) -> Path:
    """Write a durable temporary file beside `path` and return its path.

    Raises:
        OSError: the disk refused; nothing was left.
    """
    temporary = temporary_path(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS
    descriptor = os.open(temporary, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if mode != 0o600 and sys.platform != "win32":
                os.fchmod(descriptor, mode)
            _sync(descriptor)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":  # there, fsync leaves the data in the drive's cache
        import fcntl  # noqa: PLC0415

        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def rename_over(source: Path, target: Path) -> None:
    """Rename a file over another one. The name is not durable before `sync_directory`.

    Raises:
        OSError: the system refused; nothing was changed.
    """
    for tries_left in reversed(range(_RENAME_TRIES)):
        try:
            source.replace(target)
        except PermissionError:
            # On Windows, a virus scanner may hold a new file for a moment.
            if sys.platform != "win32" or not tries_left:
                raise
            time.sleep(_RENAME_PAUSE_SECONDS)
        else:
            return


def temporary_path(directory: Path) -> Path:
    """Return an unused name for a temporary file in a directory."""
    return directory / f".aiaml-{os.urandom(8).hex()}.tmp"


def remove_stale_temporaries(directory: Path, names: Iterable[str], seconds: float) -> None:
    """Delete the temporary files that killed writers left in a directory.

    Args:
        directory: where they are.
        names: the names in it.
        seconds: the least age of what is deleted; 0 for the only writer.
    """
    for name in filter(TEMPORARY_NAME.fullmatch, names):
        path = directory / name
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime >= seconds:
                path.unlink()
                log.info("Removed %s, which a killed process left", path)


# --- reading any file -----------------------------------------------------------------------------


def read_regular(path: str, limit: int, status: os.stat_result | None = None) -> bytes:
    """Read a regular file of at most `limit` bytes. Follow no link and wait for no pipe.

    Args:
        path: of the file.
        limit: the largest size that is read.
        status: the result of `os.lstat` for it, if the caller has it.

    Raises:
        MalformedFile: it is not a regular file, or too large.
        OSError: it is missing or cannot be read.
    """
    _check_regular(status or os.lstat(path), limit)
    descriptor = os.open(path, os.O_RDONLY | _SAFE_FLAGS)
    try:
        status = os.fstat(descriptor)
        _check_regular(status, limit)
        return b"".join(iter(partial(os.read, descriptor, status.st_size + 4096), b""))
    finally:
        os.close(descriptor)


def is_text(name: str) -> bool:
    """Return whether a file's name is UTF-8; one from an old archive may not be."""
    return name.encode("utf-8", "ignore").decode() == name


def _check_regular(status: os.stat_result, limit: int) -> None:
    kind = _kind(status)
    if kind != "a file":
        raise MalformedFile([f"it is {kind}"])
    if status.st_size > limit:
        raise TooLarge([f"it is larger than {limit:,} bytes: {status.st_size:,}"])


def _kind(status: os.stat_result) -> str:
    """Return what a file is, in words."""
    if getattr(status, "st_reparse_tag", 0) & _REPARSE_LINK:
        return "a symbolic link"
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a device")


# --- files of our own -----------------------------------------------------------------------------


def check_own(path: Path, *, directory: bool = False) -> bool:
    """Return whether a file of ours exists at a path, and raise if something else does.

    A file is ours if it belongs to this user, to the owner of its directory (a container may know
    this user by another number), or to root.

    Raises:
        UnsafePath: it is a link, of another kind, or another user's.
        OSError: it cannot be examined.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    _check_status(path, status, "a directory" if directory else "a file")
    return True


def _check_status(path: Path, status: os.stat_result, wanted: str) -> None:
    kind = _kind(status)
    if kind != wanted:
        raise UnsafePath(path, kind)
    if sys.platform == "win32" or status.st_uid == os.geteuid():
        return
    if status.st_uid not in (0, path.parent.stat().st_uid):
        raise UnsafePath(path, "another user's")


def open_own(path: Path, flags: int) -> int:
    """Open a file of ours and return its descriptor. `O_CREAT` creates it with mode 0600.

    Raises:
        UnsafePath: it is not a file, or not ours.
        OSError: it is missing, or cannot be opened.
    """
    check_own(path)
    descriptor = os.open(path, flags | _SAFE_FLAGS, 0o600)
    try:
        _check_status(path, os.fstat(descriptor), "a file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_own(path: Path, limit: int) -> bytes:
    """Read a file of ours of at most `limit` bytes.

    Raises:
        UnsafePath: it is not a file, not ours, or larger.
        OSError: it is missing, or cannot be read.
    """
    with FileIO(open_own(path, os.O_RDONLY)) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UnsafePath(path, f"larger than {limit:,} bytes")
    return data


def remove_own(path: Path) -> None:
    """Delete a file, a link itself, or a directory with all that is in it, if it exists.

    Raises:
        OSError: it cannot be deleted.
    """
    with suppress(FileNotFoundError):
        if _kind(os.lstat(path)) == "a directory":
            shutil.rmtree(path)
        else:
            path.unlink()


# --- locks ----------------------------------------------------------------------------------------


class Hold(NamedTuple):
    """The result of trying to acquire a lock.

    Attributes:
        file: the open file, while the lock is held; None if it could not be acquired.
        problem: why the file cannot be locked at all; None if it is only taken.
    """

    file: IO[bytes] | None = None
    problem: OSError | None = None

    @property
    def acquired(self) -> bool:
        """Whether the lock is held."""
        return self.file is not None


@contextmanager
def hold_lock(path: Path, seconds: float) -> Iterator[Hold]:
    """Try for `seconds` to lock a file, across threads and processes of this machine.

    The lock is held inside the `with`. Failing is no error: the caller decides what it can do
    without the lock. The system releases it when its holder dies, so there are no stale locks.
    """
    import portalocker  # noqa: PLC0415 (25 ms, which most commands do not need)

    lock = portalocker.Lock(
        path,
        "r+b",
        timeout=seconds,
        check_interval=_POLL_SECONDS,
        buffering=0,
        opener=_open_lock,
    )
    try:
        hold = Hold(lock.acquire())
    except portalocker.AlreadyLocked:
        hold = Hold()
    except OSError as error:
        hold = Hold(problem=error)
    except portalocker.LockException as error:
        reason = f"files cannot be locked ({error})"
        hold = Hold(problem=OSError(errno.ENOTSUP, reason, str(path)))
    if hold.problem:
        log.warning("Cannot use the lock file %s: %s", path, hold.problem.strerror)
    try:
        yield hold
    finally:
        lock.release()


def _open_lock(path: str, flags: int) -> int:
    return open_own(Path(path), flags | os.O_CREAT)
