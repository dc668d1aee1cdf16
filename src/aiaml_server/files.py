"""Three promises: whole files, one writer at a time, and no files but our own.

What the program keeps beside the memories (locks, the index, how sync stands) lies in a directory
that may have been cloned, unpacked or shared. There, a name of ours may be a link to a file of
another program, a pipe that nobody writes to, or another user's. So all that is opened, created or
deleted below a base directory goes through this module; it follows no link, and waits for no pipe.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.errors import MalformedFile, NotOurs, TooLarge

if TYPE_CHECKING:
    import logging

__all__ = [
    "Hold",
    "Lock",
    "check_own",
    "is_local",
    "is_temporary",
    "make_directory",
    "open_own",
    "own_directory",
    "read_own",
    "read_regular",
    "remove_own",
    "replace_atomic",
    "sync_directory",
    "write_atomic",
]

TEMPORARY = ".tmp"  # ends the name of a file that is still being written
_TEMPORARY = re.compile(r"\.aiaml-[0-9a-f]{16,}\.tmp")  # 64 bits of chance: no person's name
_POLL_SECONDS = 0.002
_WRITERS = 8
_MANY = 32  # files that a whole file system is synced for; fewer are synced one by one
_LOCAL = frozenset(  # the kernel's numbers for file systems
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # btrfs
        0xF2F52010,  # F2FS
        0x01021994,  # tmpfs
    }
)
_BLOCK = 1024 * 1024
_TELLS = (5, 8)  # the Linux whose syncfs tells what could not be written


def log_of(module: str) -> logging.Logger:
    """Return the log of a module whose users seldom write into it: `logging` takes 3 ms to load."""
    import logging  # noqa: PLC0415 (see above)

    return logging.getLogger(module)


def make_directory(path: Path, mode: int = 0o700) -> None:
    """Create `path` and what is missing above it, for the owner alone as a rule, and durably.

    An existing directory is left as it is.

    Raises:
        OSError: it cannot be created, or something else has its name.
    """
    try:
        _make_one(path, mode)
    except FileNotFoundError:
        if path.parent == path:
            raise
        make_directory(path.parent, mode)
        _make_one(path, mode)  # retried once: below /proc, mkdir says so for ever


def _make_one(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode)
    except FileExistsError:
        if path.is_dir():
            return
        if path.is_symlink():
            gone = "it is a link to a directory that is not there; connect its disk, or remove it"
            raise FileNotFoundError(errno.ENOENT, gone, str(path)) from None
        raise
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
    current = write_beside(path, data)
    try:
        take_name(current, path)
        current = path
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            current.unlink()
        raise


def write_beside(path: Path, data: bytes) -> Path:
    """Put `data` durably into a hidden temporary file beside `path`; return that one's path.

    Raises:
        OSError: the disk refused; nothing was left behind.
    """
    beside = temporary(path.parent)
    _write_new(beside, data)
    return beside


def write_all_beside(files: Sequence[tuple[Path, bytes]]) -> list[Path]:
    """Put the bytes of several files of one directory durably beside their paths.

    Many are made durable in one step where the system has one for a whole file system (syncfs on
    Linux), which waits for what other programs wrote there, too. Elsewhere several threads write:
    a file system may make the files of several durable together.

    Returns:
        The temporary files, in the same order.

    Raises:
        OSError: the disk refused; nothing was left behind.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    texts = [data for _, data in files]
    drafts = _temporaries(files[0][0].parent, len(files)) if files else []
    try:
        if len(files) < _MANY or not _written_together(drafts, texts):
            with ThreadPoolExecutor(_WRITERS, "writer") as pool:
                list(pool.map(_write_new, drafts, texts))
    except BaseException:
        for draft in drafts:
            with suppress(OSError):
                draft.unlink()
        raise
    return drafts


def is_local(directory: Path) -> bool:
    """Say whether this machine alone can change the files of a directory, as far as is known."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # noqa: PLC0415 (only whoever is asked a question needs it)

        libc = ctypes.CDLL(None, use_errno=True)
    except (OSError, ImportError):
        return False
    status = ctypes.create_string_buffer(512)  # more than any struct statfs has
    width = ctypes.sizeof(ctypes.c_long)
    failed = libc.statfs(os.fsencode(directory), status)
    return not failed and int.from_bytes(status.raw[:width], sys.byteorder) in _LOCAL


def _written_together(paths: Sequence[Path], texts: Sequence[bytes]) -> bool:
    """Write files of one directory, durable in one step; if there is none, write none, say False.

    Raises:
        OSError: the disk refused.
    """
    directory = paths[0].parent
    if not is_local(directory) or _kernel() < _TELLS:
        return False
    import ctypes  # noqa: PLC0415 (there, or it would not be known to be local)

    descriptor = os.open(directory, os.O_RDONLY)  # first: it is told what fails from now on
    try:
        for path, data in zip(paths, texts, strict=True):
            _write_new(path, data, synced=False)
        refused = ctypes.CDLL(None, use_errno=True).syncfs(descriptor) and ctypes.get_errno()
    finally:
        os.close(descriptor)
    if refused in (errno.ENOSYS, errno.EPERM):  # a sandbox does not let us
        for path in paths:
            path.unlink()
        return False
    if refused:
        raise OSError(refused, os.strerror(refused), str(directory))
    return True


def _kernel() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def replace_atomic(path: Path, data: bytes, mode: int, beside: Path | None = None) -> None:
    """Put `data` and `mode` under a name that may be taken; a reader sees the old or the new file.

    Args:
        path: the name.
        data: the bytes.
        mode: the file's mode.
        beside: the temporary file, for who is the only writer: what a killed one left there goes.

    Raises:
        OSError: the disk refused; the old file is there, or the new one if only the last step, to
            make its name durable, failed.
    """
    if beside and os.path.lexists(beside):
        beside.unlink()
    current = beside or temporary(path.parent)
    _write_new(current, data, mode)
    try:
        take_name(current, path)
    except BaseException:
        with suppress(OSError):
            current.unlink()
        raise
    sync_directory(path.parent)


def temporary(directory: Path) -> Path:
    """Return a free name in a directory for what is still being written, with our mark."""
    return _temporaries(directory, 1)[0]


def _temporaries(directory: Path, number: int) -> list[Path]:
    """Return several such names in a directory."""
    chance = os.urandom(8).hex()
    return [directory / f".aiaml-{chance}{each:x}{TEMPORARY}" for each in range(number)]


def _write_new(path: Path, data: bytes, mode: int = 0o600, *, synced: bool = True) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        with FileIO(descriptor, "w") as stream:
            written = 0
            while written < len(data):
                written += stream.write(memoryview(data)[written:]) or 0
            if mode != 0o600 and sys.platform != "win32":
                os.fchmod(descriptor, mode)
            if synced:
                _sync(descriptor)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


_SAFELY = 0  # follows no link, waits for no pipe, and no program that is started inherits it
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_NOINHERIT", "O_NOCTTY", "O_BINARY"):
    _SAFELY |= getattr(os, _flag, 0)


def read_regular(path: str, most: int) -> bytes:
    """Read a regular file of at most `most` bytes, following no link and waiting for no pipe.

    Raises:
        MalformedFile: it is something else.
        OSError: it is not there, or cannot be read.
    """
    _check_regular(os.lstat(path), most)
    descriptor = os.open(path, os.O_RDONLY | _SAFELY)
    try:
        status = os.fstat(descriptor)
        _check_regular(status, most)
        return _whole(descriptor, status.st_size, most)
    finally:
        os.close(descriptor)


def read_beginning(path: str, most: int) -> bytes:
    """Read at most the first `most` bytes of a regular file, as `read_regular` reads all.

    Raises:
        MalformedFile: it is something else.
        OSError: it is not there, or cannot be read.
    """
    _check_regular(os.lstat(path), sys.maxsize)
    with FileIO(os.open(path, os.O_RDONLY | _SAFELY)) as source:
        _check_regular(os.fstat(source.fileno()), sys.maxsize)
        return source.read(most)


def copy_regular(path: str, target: Path, most: int) -> None:
    """Copy a regular file of at most `most` bytes to a new file, as `read_regular` reads one.

    Raises:
        MalformedFile: it is something else.
        OSError: it is not there, or cannot be read, or the new one cannot be written.
    """
    _check_regular(os.lstat(path), most)
    with FileIO(os.open(path, os.O_RDONLY | _SAFELY)) as source, target.open("xb") as copy:
        _check_regular(os.fstat(source.fileno()), most)
        while data := source.read(_BLOCK):
            copy.write(data)
            if copy.tell() > most:  # it grows
                raise TooLarge([f"it is larger than {bound(most)}"])


def _whole(descriptor: int, size: int, most: int) -> bytes:
    parts = [os.read(descriptor, size + 1)]
    if len(parts[0]) == size:  # as many as there are, and no more at this moment
        return parts[0]
    while parts[-1] and sum(map(len, parts)) <= most:
        parts.append(os.read(descriptor, most))
    return b"".join(parts)


def _check_regular(status: os.stat_result, most: int) -> None:
    if kind := _other_than(stat.S_ISREG, status):
        raise MalformedFile([f"it is {kind}"])
    if status.st_size > most:
        raise TooLarge([f"it is larger than {bound(most)}: {status.st_size:,} bytes"])


def bound(most: int) -> str:
    """Return a number of bytes as a limit is told, exactly: "100 bytes", "64 KiB", "4 MiB"."""
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if most % size == 0:
            return f"{most // size:,} {unit}"
    return f"{most:,} bytes"


_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFREG: "a file",
}

_LEADS_ELSEWHERE = 0x2000_0000  # of a reparse tag on Windows: a link or junction


def _other_than(wanted: Callable[[int], bool], status: os.stat_result) -> str:
    """Say what something is, if it is not of the wanted kind."""
    if getattr(status, "st_reparse_tag", 0) & _LEADS_ELSEWHERE:
        return "a symbolic link"
    if wanted(status.st_mode):
        return ""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "no file")


# --- files of our own -----------------------------------------------------------------------------


def check_own(path: Path, *, directory: bool = False, alone: bool = False) -> bool:
    """Say whether there is a file of ours (or a directory).

    It is ours if it belongs to this process's user; unless it must be theirs `alone`, also if it
    belongs to the user whose directory it lies in (which a container may see under another number),
    or to root.

    Raises:
        NotOurs: there is something else.
        OSError: that cannot be found out.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    _check_own(path, status, stat.S_ISDIR if directory else stat.S_ISREG, alone=alone)
    return True


def _check_own(
    path: Path, status: os.stat_result, wanted: Callable[[int], bool], *, alone: bool = False
) -> None:
    if kind := _other_than(wanted, status):
        raise NotOurs(path, kind)
    if sys.platform == "win32" or status.st_uid == os.geteuid():
        return
    if alone or (status.st_uid and status.st_uid != path.parent.stat().st_uid):
        raise NotOurs(path, "another user's")


def private(path: str, flags: int) -> int:
    """Open a file, a new one for the owner alone: an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def open_own(path: Path, flags: int) -> int:
    """Open a file of ours and return its descriptor, which no other program inherits.

    With `O_CREAT` among the flags, a new file is for the owner alone (0600).

    Raises:
        NotOurs: it is no file, or not ours.
        OSError: it is not there, or cannot be opened.
    """
    check_own(path)
    descriptor = os.open(path, flags | _SAFELY, 0o600)
    try:
        _check_own(path, os.fstat(descriptor), stat.S_ISREG)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_own(path: Path, most: int) -> bytes:
    """Read a file of ours of at most `most` bytes.

    Raises:
        NotOurs: it is no file, not ours, or larger.
        OSError: it is not there, or cannot be read.
    """
    with FileIO(open_own(path, os.O_RDONLY)) as file:
        size = os.fstat(file.fileno()).st_size
        data = _whole(file.fileno(), size, most) if size <= most else b""
    if max(size, len(data)) > most:
        raise NotOurs(path, f"larger than {bound(most)}")
    return data


def check_end(path: Path) -> None:
    """See that reading a file, perhaps of the person's and through links, comes to an end.

    Raises:
        NotOurs: it is a pipe or a device; the one that is always empty is none here.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)) and not path.samefile(os.devnull):
        raise NotOurs(path, _KINDS[stat.S_IFMT(mode)])


def check_git(directory: Path) -> None:
    """See that git in a git directory will wait for no pipe.

    Raises:
        NotOurs: there is one.
    """
    for name in _GIT_READS:
        check_end(directory / name)
    for found, _, refs in os.walk(directory / "refs"):
        for name in refs:
            check_end(Path(found, name))


# What git reads unasked, and waits for.
_GIT_READS = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "logs/HEAD"),
    *("objects/info/alternates", "objects/info/commit-graph", "objects/pack/multi-pack-index"),
)


def own_directory(path: Path) -> None:
    """Create a directory of ours, as `make_directory` does, or see that what is there is one.

    Raises:
        NotOurs: it is a link, no directory, or not ours.
        OSError: it cannot be created.
    """
    if not check_own(path, directory=True):
        make_directory(path)
        check_own(path, directory=True)


def remove_own(path: Path) -> None:
    """Delete what has a name of ours, if anything has: of a link, the link alone.

    Raises:
        OSError: it cannot be deleted.
    """
    try:
        kind = _other_than(stat.S_ISDIR, os.lstat(path))
        if kind:
            path.unlink()
        else:
            import shutil  # noqa: PLC0415 (its compressors are slow, and a link is the usual case)

            shutil.rmtree(path)
    except FileNotFoundError:
        return


def is_temporary(name: str) -> bool:
    """Say whether a name has the mark of what a writer of ours has not finished."""
    return name.startswith(".") and _TEMPORARY.fullmatch(name) is not None


def remove_left(directory: Path, names: Iterable[str], seconds: float) -> None:
    """Delete what writers of ours that died have left among the `names` in a directory.

    That is a regular file of this user's, with our mark, unchanged for `seconds`: 0 for whoever is
    the only one who writes there. If a repository tracks such a name, git still has the file.
    """
    for path in (directory / name for name in names if is_temporary(name)):
        with suppress(OSError):
            status = path.lstat()
            own = sys.platform == "win32" or status.st_uid == os.geteuid()
            if own and stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime >= seconds:
                path.unlink()
                log_of(__name__).info("Removed %s, left by a writer that died", path)


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


def take_name(source: Path, target: Path) -> None:
    """Give a file another name, in place of what may have that; not yet durably.

    Raises:
        OSError: the system refused; nothing was changed.
    """
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
        problem: why nobody can hold it; None where another holder only was not done in time.
    """

    had: bool
    alone: bool
    problem: OSError | None = None


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
        """Hold the lock inside the `with`, if it can be acquired: ask `had` of what it yields.

        It is not when another holder keeps it for `seconds`, and on a file system that cannot
        lock. Neither is an error here: the caller knows what it can do without.
        """
        deadline = time.monotonic() + seconds
        if not self._thread.acquire(timeout=seconds):
            yield Hold(had=False, alone=False)
            return
        try:
            yield from self._held_by_us(deadline)
        finally:
            self._thread.release()

    def _held_by_us(self, deadline: float) -> Iterator[Hold]:
        try:
            stream = FileIO(open_own(self._path, os.O_RDWR | os.O_CREAT), "r+")
        except OSError as error:
            log_of(__name__).warning("Cannot use the lock file %s: %s", self._path, error.strerror)
            yield Hold(had=False, alone=False, problem=error)
            return
        had, problem = False, None
        try:
            had, problem = _acquire(stream, self._path, deadline)
            yield Hold(had, had and self._marked(stream), problem)
        finally:
            # What was done under the lock stands, whatever becomes of the lock.
            if had:
                _release(stream)
            with suppress(OSError):
                stream.close()

    def _marked(self, stream: FileIO) -> bool:
        """Say whether the mark is ours, and make it ours.

        A file that has another name as well, or holds more than a mark, may be somebody else's.
        """
        with suppress(OSError):
            if stream.read(len(self._mark)) == self._mark:
                return True
            status = os.fstat(stream.fileno())
            if status.st_nlink == 1 and status.st_size in (0, len(self._mark)):
                stream.seek(0)
                stream.write(self._mark)
        return False


def _acquire(stream: FileIO, path: Path, deadline: float) -> tuple[bool, OSError | None]:
    """Return whether the lock is held, and why it never can be, if that is so."""
    while True:
        try:
            if _locked(stream):
                return True, None
        except OSError as error:
            log_of(__name__).warning("Cannot lock %s: %s", path, error)
            return False, OSError(errno.ENOTSUP, f"files cannot be locked ({error})", str(path))
        if time.monotonic() >= deadline:
            return False, None
        time.sleep(_POLL_SECONDS)


def _locked(stream: FileIO) -> bool:
    """Lock a file, unless another process has; say whether it is locked by us.

    Raises:
        OSError: files cannot be locked there.
    """
    if sys.platform == "win32":
        import portalocker  # noqa: PLC0415 (imports importlib.metadata: 20 ms)

        try:
            portalocker.lock(stream, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except portalocker.AlreadyLocked:
            return False
        except portalocker.LockException as error:
            raise OSError(errno.ENOTSUP, str(error)) from error
        return True
    import fcntl  # noqa: PLC0415 (not there on Windows)

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _release(stream: FileIO) -> None:
    if sys.platform == "win32":
        import portalocker  # noqa: PLC0415

        with suppress(OSError, portalocker.LockException):
            portalocker.unlock(stream)
    else:
        import fcntl  # noqa: PLC0415

        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_UN)
