"""The memory files on disk: scanned, compared with the record and the newest commit, and written.

Each path has three versions: the one on disk, the one in the record (`LastSync`), and the one in
the newest commit. A path whose disk version differs from the record was changed by the person or an
agent; one whose commit differs from the record has arrived and is not written yet.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.files import (
    hold_lock,
    make_directory,
    read_regular,
    rename_over,
    sync_directory,
    write_temporary,
)
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.history import all_versions
from aiaml_server.sync.last_sync import FileState, LastSync, Stamp, settled
from aiaml_server.sync.merge import is_memory_path
from aiaml_server.sync.repository import Repository
from aiaml_server.sync.skip import SkipRules
from aiaml_server.sync.status import Problem

MANY_DELETIONS = 20  # more at once, if also more than a fifth of all, wait for confirmation
SHARE_OF_DELETIONS = 5
_LOCK_SECONDS = 5.0
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
_PLACEHOLDER = re.compile(r"\.?(.+\.md)\.(icloud|nextcloud|owncloud)")
_NO_FILE = "Put a regular file that you can read in its place, or move it elsewhere."
_TOO_LARGE = Problem("too-large", "the other computer's version is too large", "Make it smaller.")
_RENAME = "Give it another name on the computer that it is from."


class DiskFile(NamedTuple):
    """A file as it was found: its stamp, object name and, if it had to be read, its content."""

    stamp: Stamp
    name: str
    data: bytes | None


@dataclass
class Scan:
    """What is on disk.

    Attributes:
        files: the memory files, by path.
        unreadable: what has a memory's name and cannot be read, with the reason.
        placeholders: paths whose files a cloud program has replaced by placeholders.
    """

    files: dict[str, DiskFile] = field(default_factory=dict)
    unreadable: dict[str, Problem] = field(default_factory=dict)
    placeholders: set[str] = field(default_factory=set)


class Write(NamedTuple):
    """A version to write: only where the disk still has `expected`; None stands for no file."""

    path: str
    expected: str | None
    name: str | None


class Deletions(NamedTuple):
    """What is known about files that are gone.

    Attributes:
        confirmed: paths that the person has deleted by a command.
        answer: "delete" or "restore" for all of them; empty for no answer.
        git_changed_at: when the person's own git may have changed files, in nanoseconds; 0 if not.
        is_undecided: whether nothing may be concluded now, because their git is working.
    """

    confirmed: set[str]
    answer: str
    git_changed_at: int
    is_undecided: bool


def stat_directory(directory: Path) -> dict[str, os.stat_result]:
    """Map the names in a directory to what the system says of them; empty if it is missing."""
    found = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found[entry.name] = entry.stat(follow_symlinks=False)
    return found


def scan(directory: Path, record: Mapping[str, FileState]) -> Scan:
    """Find the memory files; read those that have changed since they were recorded."""
    found = Scan()
    for name, status in stat_directory(directory).items():
        path = f"files/{name}"
        if placeholder := _PLACEHOLDER.fullmatch(name):
            found.placeholders.add(f"files/{placeholder[1]}")
        elif is_memory_path(path) and not stat.S_ISDIR(status.st_mode):
            stamp = Stamp.of(status)
            known = record.get(path)
            if known and known.stamp == stamp:
                found.files[path] = DiskFile(stamp, known.name, None)
                continue
            try:
                data = read_regular(str(directory / name), MAX_FILE)
            except FileNotFoundError:
                continue
            except (OSError, MalformedFile) as error:
                reason = os_reason(error) if isinstance(error, OSError) else str(error)
                found.unreadable[path] = Problem("unreadable", reason, _NO_FILE)
                continue
            found.files[path] = DiskFile(stamp, object_name(data), data)
    return found


def object_name(data: bytes) -> str:
    """Return git's name for the content of a file."""
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


class Comparison:
    """What follows from comparing the three versions of all paths.

    Attributes:
        added, edited: paths to commit with their content on disk.
        deleted: paths whose deletion is to be committed.
        conflicts: paths that were edited here while another version arrived; that one is copied.
        writes: what is to be written to the disk.
        skipped: the files that must not be committed, with the reason.
        waiting: deletions that wait for confirmation.
    """

    def __init__(
        self,
        disk: Scan,
        record: LastSync,
        repository: Repository,
        head: str,
        rules: SkipRules,
        deletions: Deletions,
    ) -> None:
        """Decide what to commit and what to write.

        Args:
            disk: what is on disk.
            record: what was there when it was last in sync.
            repository: the repository.
            head: the newest commit.
            rules: say which files must not be committed.
            deletions: what is known about files that are gone.
        """
        self.added: list[str] = []
        self.edited: list[str] = []
        self.conflicts: list[str] = []
        self.writes: list[Write] = []
        self.skipped = dict(disk.unreadable)
        self._disk = disk
        self._rules = rules
        self._deletions = deletions
        self._repository = repository
        self._head = head
        tree = repository.tree(head).items()
        self._memories = {path: name for path, name in tree if is_memory_path(path)}
        self._missing: dict[str, bool] = {}
        rules.prepare(disk.files)
        for path in sorted(self._memories.keys() | disk.files.keys()):
            known = record.files.get(path)
            self._compare(path, known.name if known else None)
        self._decide_deletions(set(record.waiting))

    @cached_property
    def _versions(self) -> set[tuple[str, str]]:
        """The path and object name of every version in the history."""
        return all_versions(self._repository, self._head)

    def _compare(self, path: str, before: str | None) -> None:
        """Decide about a path; `before` is its version when it was last in sync."""
        committed = self._memories.get(path)
        file = self._disk.files.get(path)
        if file is None:
            if path not in self._disk.unreadable and path not in self._disk.placeholders:
                self._missing[path] = before == committed
        elif file.name == before:
            if committed != before:
                self.writes.append(Write(path, before, committed))
        elif file.name != committed and not (
            self._deletions.is_undecided and (before or committed)
        ):
            self._compare_changed(path, file, before, committed)

    def _compare_changed(
        self, path: str, file: DiskFile, before: str | None, committed: str | None
    ) -> None:
        """Decide about a file that is neither as in the record nor as in the newest commit."""
        data = file.data or b""
        is_torn = not data.strip(b"\0")  # as after a power cut
        may_be_old = not before or file.stamp.modified <= self._deletions.git_changed_at
        if committed and (is_torn or (may_be_old and (path, file.name) in self._versions)):
            self.writes.append(Write(path, file.name, committed))
        elif reason := self._rules.reason(path, file.name, data):
            self.skipped[path] = reason
        elif not committed:
            self.added.append(path)
        else:
            self.edited.append(path)
            if before and before != committed:
                self.conflicts.append(path)

    def _decide_deletions(self, waiting: set[str]) -> None:
        """Commit, hold or undo deletions; `waiting` are those that have waited until now."""
        deletions = self._deletions
        self.waiting = waiting
        self.deleted: list[str] = []
        if deletions.is_undecided:
            self.writes = []
            return
        expected = deletions.confirmed | waiting
        deleted = {
            path
            for path, was_here in self._missing.items()
            if was_here and (path in expected or not deletions.git_changed_at)
        }
        unconfirmed = deleted - deletions.confirmed
        restored = self._missing.keys() - deleted
        is_empty = not self._disk.files and not self._disk.placeholders
        if deletions.answer == "delete":
            unconfirmed = set()
        elif deletions.answer == "restore" or (is_empty and unconfirmed == deleted):
            restored, unconfirmed = restored | unconfirmed, set()
        elif len(unconfirmed) <= max(MANY_DELETIONS, len(self._memories) / SHARE_OF_DELETIONS):
            unconfirmed &= waiting
        self.writes += [Write(path, None, self._memories[path]) for path in sorted(restored)]
        self.waiting = unconfirmed
        self.deleted = sorted(deleted - unconfirmed - restored)


def write_files(
    base: Path, writes: list[Write], contents: Mapping[str, bytes]
) -> tuple[dict[str, FileState | None], dict[str, Problem]]:
    """Write versions to the disk, each whole and durable, under the lock of the store.

    New files come first: a copy of a version must be there before its name is given to another.

    Returns:
        The new states of what was written, and what the disk refused. A path that is in neither
        was changed meanwhile and therefore left as it is.

    Raises:
        OSError: the directory cannot be made, or the disk is full.
    """
    directory = base / "files"
    make_directory(directory)
    written: dict[str, FileState | None] = {}
    refused: dict[str, Problem] = {}
    for write in sorted(writes, key=lambda each: (each.expected is not None, each.name is None)):
        path = base / write.path
        draft = None
        try:
            if write.name:
                if write.name not in contents:
                    refused[write.path] = _TOO_LARGE
                    continue
                draft = write_temporary(path, contents[write.name])
            with hold_lock(base / ".lock", _LOCK_SECONDS):
                if not _is_as_expected(path, write.expected):
                    continue
                if draft:
                    rename_over(draft, path)
                    stamp = settled(Stamp.of(path.lstat()))
                    written[write.path] = FileState(write.name or "", stamp)
                else:
                    path.unlink(missing_ok=True)
                    written[write.path] = None
        except OSError as error:
            if error.errno in _DISK_ERRORS:
                raise
            sentence = f"the disk refuses this name: {os_reason(error)}"
            refused[write.path] = Problem("name", sentence, _RENAME)
        finally:
            if draft:
                draft.unlink(missing_ok=True)
    sync_directory(directory)
    return written, refused


def _is_as_expected(path: Path, expected: str | None) -> bool:
    try:
        data = read_regular(str(path), MAX_FILE)
    except FileNotFoundError:
        return expected is None
    except MalformedFile:
        return False
    return object_name(data) == expected
