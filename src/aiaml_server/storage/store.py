"""The directory of memories: allocate an id, add, read, scan. The files are the only truth."""

from __future__ import annotations

import errno
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from aiaml_server.errors import FileChanged, MalformedFile, StoreError
from aiaml_server.files import (
    hold_lock,
    is_text,
    make_directory,
    read_regular,
    remove_stale_temporaries,
    rename_over,
    replace_atomic,
    sync_directory,
    write_temporary,
)
from aiaml_server.format.memory import Memory, format, parse

log = logging.getLogger(__name__)

SUFFIX = ".md"
MAX_FILE = 4 * 1024 * 1024  # bytes; four times the largest memory that can be remembered
LOCK_SECONDS = 5.0
_WRITERS = 8  # threads
_LEFTOVER_SECONDS = 3600.0
_TICK = 50_000_000  # nanoseconds: several times the usual 1 to 10 ms
_COARSE_TICK = 2_500_000_000  # where only whole seconds are counted
_MOST = (1 << 63) - 1  # that a database takes; a time after 2262 and some inodes are above


class Stamp(NamedTuple):
    """The state of a file or directory, without its content: two states differ in their stamps.

    Attributes:
        modified: when its content was changed, in nanoseconds since 1970.
        changed: when anything about it was changed; no program can set it (on Windows the time of
            its creation).
        inode: its number in the file system.
        size: in bytes.
    """

    modified: int
    changed: int
    inode: int
    size: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Make a stamp from the result of `os.stat`."""
        modified, changed = status.st_mtime_ns & _MOST, status.st_ctime_ns & _MOST
        return cls(modified, changed, status.st_ino & _MOST, status.st_size)

    @property
    def settled(self) -> bool:
        """Return whether any later change is certain to give another stamp.

        File systems count time in ticks. A file that changes twice within a tick keeps its stamp
        (git calls this "racy"), so a stamp of the current tick proves nothing yet.
        """
        last = self.modified if sys.platform == "win32" else self.changed
        tick = _COARSE_TICK if last % 1_000_000_000 == 0 else _TICK
        return abs(time.time_ns() - last) > tick


NEVER = Stamp(0, 0, 0, 0)
"""Recorded if a later change might not show in the stamp. No file has this stamp."""

UNREADABLE = Stamp(-1, -1, -1, -1)
"""The stamp of a file of which the system does not say in what state it is."""


class ReadFile(NamedTuple):
    """A file that was read.

    Attributes:
        name: its name in the directory.
        stamp: of the file before it was read; NEVER if a later change might not show in it.
        size: in bytes.
        memory: the memory in it; None if there is none.
        problem: why there is no memory.
    """

    name: str
    stamp: Stamp
    size: int
    memory: Memory | None = None
    problem: str | None = None


class Store:
    """The memories in `<base>/files/`. Safe to use from any thread and any number of processes."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = base / "files"
        self._prefix = f"{self.directory}{os.sep}"
        self._lock = base / ".lock"
        self._mark = os.urandom(16)  # in the lock file, while no other store has held the lock
        self._names = ""  # each after a "_", in the directory when its stamp was _names_stamp
        self._names_stamp: Stamp | None = None
        self._added: set[str] = set()  # ids of ours since
        self._reported: dict[str, Stamp | None] = {}
        self._skipped: list[tuple[str, str]] = []  # names and problems

    # --- writing ------------------------------------------------------------------------------

    def add(self, memory: Memory) -> Memory:
        """Store a new memory; return it with its id.

        On return it is whole and durable on disk. The id is unique in the directory: it is drawn
        again while a file has it, under a lock that processes share. If another process holds the
        lock for `LOCK_SECONDS`, or the file system has no locks, the memory is stored without it:
        a write is never refused because of a lock.

        Raises:
            StoreError: the disk refused; nothing was left behind.
        """
        with self._adding("a memory"):
            while self._is_taken(memory.id):
                memory = memory.with_new_id()
            path = self.directory / memory.file_name
            try:
                replace_atomic(path, format(memory).encode())
            except BaseException:
                with suppress(OSError):
                    path.unlink()
                raise
            self._added.add(memory.id)
        return memory

    @contextmanager
    def _adding(self, what: str) -> Iterator[None]:
        """Hold the lock and know which ids are taken, inside the `with`."""
        self._make_directories()
        try:
            with hold_lock(self._lock, LOCK_SECONDS) as hold:
                if not self._was_last(hold.file) or self._names_stamp != self.stamp():
                    names = os.listdir(self.directory)  # noqa: PTH208 (names, not paths)
                    self._names, self._added = "_".join(["", *names]), set()
                    remove_stale_temporaries(self.directory, names, _LEFTOVER_SECONDS)
                yield
                self._names_stamp = None
                with suppress(StoreError):  # what was stored is stored, whatever becomes of this
                    self._names_stamp = self.stamp()
        except OSError as error:
            raise StoreError("write in", self.directory, error) from error
        if not hold.acquired:
            without = "Stored %s without the lock on %s, which could not be acquired"
            log.warning(without, what, self.base)

    def _was_last(self, lock: IO[bytes] | None) -> bool:
        """Leave our mark in the lock file; return whether it was there already.

        A stamp alone does not tell: another process may add a file within one tick of the clock.
        """
        if not lock:
            return False
        with suppress(OSError):  # what becomes of the mark refuses no memory
            found = lock.read(len(self._mark) + 1)
            if found == self._mark:
                return True
            if len(found) in (0, len(self._mark)):  # otherwise the file is not ours
                lock.seek(0)
                lock.write(self._mark)
        return False

    def _is_taken(self, memory_id: str) -> bool:
        # One text is made, and looked through, in a thirtieth of the time that a set of ids takes.
        return memory_id in self._added or f"_{memory_id}{SUFFIX}" in self._names

    def _make_directories(self) -> None:
        try:
            make_directory(self.base)
            make_directory(self.directory)
        except OSError as error:
            raise StoreError("create", error.filename or self.directory, error) from error

    def add_all(self, memories: Iterable[Memory], stored: Callable[[Memory], object]) -> None:
        """Store new memories like `add`, but make all of them durable in one step.

        Args:
            memories: at most some hundreds: other writers wait until these are stored.
            stored: is called with each stored memory, also with those before a failure or Ctrl-C.

        Raises:
            StoreError: the disk refused; nothing was left behind but what `stored` was given.
        """
        with self._adding("memories"):
            self._add_all(memories, stored)

    def _add_all(self, memories: Iterable[Memory], stored: Callable[[Memory], object]) -> None:
        from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415 (no server's)

        drafts: list[tuple[Memory, Future[Path]]] = []
        named = 0
        try:
            # A file system makes the files of several threads durable in one step.
            with ThreadPoolExecutor(_WRITERS, "writer") as pool:
                for memory in memories:
                    while self._is_taken(memory.id):
                        memory = memory.with_new_id()  # noqa: PLW2901
                    self._added.add(memory.id)
                    path, data = self.directory / memory.file_name, format(memory).encode()
                    drafts.append((memory, pool.submit(write_temporary, path, data)))
            for memory, draft in drafts:
                rename_over(draft.result(), self.directory / memory.file_name)
                named += 1
        finally:
            for _, draft in drafts[named:]:
                with suppress(OSError):
                    draft.result().unlink()
            sync_directory(self.directory)
            for memory, _ in drafts[:named]:
                stored(memory)
            for memory, _ in drafts[named : named + 1]:  # Ctrl-C between its name and our count
                if os.path.lexists(self._path(memory.file_name)):
                    stored(memory)

    def replace(self, name: str, before: str | None, after: str | None) -> None:
        """Change the text of the file `name`; None stands for no file. It is durable on return.

        Raises:
            FileChanged: it does not hold `before`; nothing was changed.
            StoreError: the disk refused; nothing was changed, or it is not known to be durable.
        """
        self._make_directories()
        path = self.directory / name
        try:
            with hold_lock(self._lock, LOCK_SECONDS):
                if self.present(name) != before:
                    raise FileChanged(name)
                if after is not None:
                    replace_atomic(path, after.encode(), 0o600)
                elif before is not None:
                    path.unlink()
                    sync_directory(self.directory)
        except OSError as error:
            raise StoreError("change", path, error) from error

    # --- reading ------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names that memories may have: `*.md`, without hidden files.

        Raises:
            StoreError: the directory cannot be listed. A missing one has no names.
        """
        try:
            names = os.listdir(self.directory)  # noqa: PTH208
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError("read", self.directory, error) from error
        return [name for name in names if name.endswith(SUFFIX) and name[0] != "."]

    def stamp(self, name: str = "") -> Stamp | None:
        """Return the stamp of the file `name`, or of the directory; None when there is none.

        The stamp of the directory changes whenever a name in it appears, disappears or is replaced.
        A file that cannot be examined is `UNREADABLE`, so that it hides no other.

        Raises:
            StoreError: the directory exists, but cannot be examined.
        """
        path = self._path(name)
        try:
            return Stamp.of(os.lstat(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            if name:
                with suppress(OSError):
                    os.lstat(self._path("."))
                    return UNREADABLE
            raise StoreError("read", path, error) from error

    def _path(self, name: str) -> str:
        return self._prefix + name

    def read(self, name: str) -> Memory:
        """Return the memory in the file `name`.

        Raises:
            FileNotFoundError: there is no such file.
            MalformedFile: the file is no memory.
            StoreError: no file can be opened now.
        """
        return parse(self.text(name))

    def read_stamped(self, name: str) -> ReadFile | None:
        """Read a file together with its stamp; None if it is gone, or its name is not UTF-8.

        Raises:
            StoreError: no file can be opened now.
        """
        try:
            status = os.lstat(self._path(name))
            stamp = Stamp.of(status)
        except OSError:
            status, stamp = None, NEVER
        known = stamp if stamp.settled else NEVER
        try:
            return ReadFile(name, known, stamp.size, parse(self.text(name, status)))
        except FileNotFoundError:
            return None
        except MalformedFile as error:
            self.report(name, str(error))
            if not is_text(name):  # which no database takes
                return None
            if isinstance(error.__cause__, OSError):  # it may pass
                known = NEVER
            return ReadFile(name, known, stamp.size, problem=str(error))

    def read_many(self, names: Iterable[str], most_bytes: int) -> dict[str, ReadFile | None]:
        """Read files as `read_stamped` does, until they have more than so many bytes."""
        files: dict[str, ReadFile | None] = {}
        size = 0
        for name in names:
            files[name] = file = self.read_stamped(name)
            size += file.size if file else 0
            if size > most_bytes:
                break
        return files

    def text(self, name: str, status: os.stat_result | None = None) -> str:
        """Return the exact text of the file `name`.

        Args:
            name: of the file.
            status: the result of `os.lstat` for it, if the caller has it.

        Raises:
            FileNotFoundError: there is no such file.
            MalformedFile: it is no text, or no file that could be a memory.
            StoreError: no file can be opened now.
        """
        path = self._path(name)
        if not is_text(name):
            raise MalformedFile(["its name is not UTF-8"])
        try:
            return read_regular(path, MAX_FILE, status).decode("utf-8")
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # our trouble, not the file's
                raise StoreError("read", path, error) from error
            raise MalformedFile([f"it cannot be read: {(error.strerror or '').lower()}"]) from error
        except UnicodeDecodeError as error:
            raise MalformedFile([f"byte {error.start} is not UTF-8"]) from error

    def present(self, name: str) -> str | None:
        """Return the text of a file, as `text` does; None where there is none."""
        try:
            return self.text(name)
        except FileNotFoundError:
            return None

    def scan(self, names: Iterable[str] | None = None) -> Iterator[tuple[str, Memory]]:
        """Read every memory, or those of `names`; a damaged file is skipped, and logged once.

        Raises:
            StoreError: the directory cannot be listed.
        """
        for name in self.names() if names is None else names:
            try:
                yield name, self.read(name)
            except FileNotFoundError:
                continue  # deleted since it was listed
            except MalformedFile as error:
                self.report(name, str(error))
        self.log_skipped()

    def report(self, name: str, problems: str) -> None:
        """Let `log_skipped` log what is wrong with a file, once for each of its states."""
        stamp = self.stamp(name)
        if self._reported.get(name) != stamp:
            self._reported[name] = stamp
            self._skipped.append((name, problems))

    def log_skipped(self) -> None:
        """Log how many files were skipped since the last call, and what is wrong with the first.

        The caller must hold no lock.
        """
        skipped, self._skipped = self._skipped, []
        if skipped:
            name, problems = min(skipped)
            others = f" ({len(skipped) - 1:,} more were skipped)" if len(skipped) > 1 else ""
            path = self.directory / name
            log.warning("Skipped %s: %s%s. See `aiaml doctor files`", path, problems, others)


def id_in(name: str) -> str:
    """Return the id at the end of a file's name; the whole name if it has another form."""
    return name.removesuffix(SUFFIX).rpartition("_")[2]
