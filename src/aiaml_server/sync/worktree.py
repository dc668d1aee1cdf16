"""The memory files on disk: scanned, compared with the record and the newest commit, and written.

Each path has three versions: the one on disk, the one in the record (`LastSync`), and the one in
the newest commit. A path whose disk version differs from the record was changed by the person or an
agent; one whose commit differs from the record has arrived and is not written yet.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.files import (
    Lock,
    make_directory,
    read_regular,
    rename_over,
    sync_directory,
    write_temporary,
)
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.last_sync import FileState, LastSync, Stamp, known_version, settled
from aiaml_server.sync.merge import Tree, is_memory_path
from aiaml_server.sync.skip import SkipRules
from aiaml_server.sync.status import Problem

MANY_DELETIONS = 20  # more at once, if they are also more than a fifth of all, are held
SHARE_OF_DELETIONS = 5
_LOCK_SECONDS = 5.0
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE)
_PLACEHOLDERS = (".icloud", ".nextcloud", ".owncloud")
_NO_FILE = "Put a regular file that you can read in its place, or move it elsewhere."
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


@dataclass
class Comparison:
    """What follows from comparing the three versions of all paths.

    Attributes:
        added, edited: paths to commit with their content on disk.
        deleted: paths whose deletion is to be committed.
        conflicts: paths that were edited here while another version arrived; that one is copied.
        writes: what is to be written to the disk.
        skipped: the files that must not be committed, with the reason.
        held: deletions that wait for confirmation.
        unchanged: paths that are as in the newest commit.
    """

    added: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    skipped: dict[str, Problem] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    unchanged: list[str] = field(default_factory=list)


class Deletions(NamedTuple):
    """What is known about files that are gone.

    Attributes:
        confirmed: paths that the person has deleted by a command.
        answer: "delete" or "restore" for all of them; empty where nobody has said anything.
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
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    found[entry.name] = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return {}
    return found


def scan(directory: Path, record: Mapping[str, FileState]) -> Scan:
    """Find the memory files; read those that have changed since they were recorded."""
    found = Scan()
    for name, status in stat_directory(directory).items():
        path = f"files/{name}"
        if original := _replaced_by(name):
            found.placeholders.add(f"files/{original}")
        elif is_memory_path(path) and not stat.S_ISDIR(status.st_mode):
            stamp = Stamp.of(status)
            if version := known_version(record, path, stamp):
                found.files[path] = DiskFile(stamp, version, None)
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


def _replaced_by(name: str) -> str:
    """Return the memory file that a placeholder such as `.X.md.icloud` stands for, or ""."""
    for ending in _PLACEHOLDERS:
        if name.endswith(f".md{ending}"):
            return name.removesuffix(ending).removeprefix(".")
    return ""


def object_name(data: bytes) -> str:
    """Return git's name for the content of a file."""
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def compare(
    disk: Scan,
    record: LastSync,
    tree: Tree,
    rules: SkipRules,
    deletions: Deletions,
    versions: Callable[[], set[tuple[str, str]]],
) -> Comparison:
    """Decide what to commit and what to write.

    Args:
        disk: what is on disk.
        record: what was there when it was last in sync.
        tree: the files of the newest commit.
        rules: say which files must not be committed.
        deletions: what is known about files that are gone.
        versions: returns the path and object name of every version in the history.
    """
    result = Comparison()
    memories = {path: name for path, name in tree.items() if is_memory_path(path)}
    gone = {}
    rules.prepare(disk.files)
    for path in sorted(memories.keys() | disk.files.keys()):
        known, committed = record.files.get(path), memories.get(path)
        before = known.name if known else None
        file = disk.files.get(path)
        if path in disk.unreadable or (file is None and path in disk.placeholders):
            continue
        if file is None:
            gone[path] = before == committed
        elif file.name == committed:
            result.unchanged.append(path)
        elif file.name == before:
            result.writes.append(Write(path, before, committed))
        elif deletions.is_undecided and (known or committed):
            continue
        else:
            _compare_changed(result, path, file, before, committed, rules, deletions, versions)
    is_empty = not disk.files and not disk.placeholders
    held = set(record.held)
    _decide_deletions(result, gone, memories, held, deletions, is_empty=is_empty)
    result.skipped |= disk.unreadable
    return result


def _compare_changed(
    result: Comparison,
    path: str,
    file: DiskFile,
    before: str | None,
    committed: str | None,
    rules: SkipRules,
    deletions: Deletions,
    versions: Callable[[], set[tuple[str, str]]],
) -> None:
    """Decide about a file that is neither as in the record nor as in the newest commit."""
    data = file.data or b""
    is_torn = not data.strip(b"\0")  # as after a power cut
    may_be_old = not before or file.stamp.modified <= deletions.git_changed_at
    if committed and (is_torn or (may_be_old and (path, file.name) in versions())):
        result.writes.append(Write(path, file.name, committed))
    elif reason := rules.reason(path, file.name, data):
        result.skipped[path] = reason
    elif not committed:
        result.added.append(path)
    else:
        result.edited.append(path)
        if before and before != committed:
            result.conflicts.append(path)


def _decide_deletions(
    result: Comparison,
    gone: Mapping[str, bool],
    memories: Tree,
    held_before: set[str],
    deletions: Deletions,
    *,
    is_empty: bool,
) -> None:
    """Commit, hold or take back deletions.

    Args:
        result: where the decision goes.
        gone: the files that the disk lacks; whether each was here in the committed version.
        memories: the files of the newest commit.
        held_before: the deletions that waited for confirmation until now.
        deletions: what is known about them.
        is_empty: whether the disk has no file at all.
    """
    if deletions.is_undecided:
        result.held = held_before
        return
    said = deletions.confirmed | held_before
    deleted = {
        path
        for path, was_here in gone.items()
        if was_here and (path in said or not deletions.git_changed_at)
    }
    unasked = deleted - deletions.confirmed
    restored = gone.keys() - deleted
    if deletions.answer == "delete":
        unasked = set()
    elif deletions.answer == "restore" or (is_empty and unasked == deleted):
        restored, unasked = restored | unasked, set()
    elif len(unasked) <= MANY_DELETIONS or SHARE_OF_DELETIONS * len(unasked) <= len(memories):
        unasked &= held_before
    result.writes += [Write(path, None, memories[path]) for path in sorted(restored)]
    result.held = unasked
    result.deleted = sorted(deleted - unasked - restored)


def write_files(
    base: Path, writes: list[Write], contents: Mapping[str, bytes]
) -> tuple[dict[str, FileState | None], dict[str, Problem], bool]:
    """Write versions to the disk, each whole and durable, under the lock of the store.

    New files come first: a copy of a version must be there before its name is given to another.

    Returns:
        The new states of what was written, what the disk refused, and whether a file was changed
        meanwhile and therefore left as it is.

    Raises:
        OSError: the directory cannot be made, or the disk is full.
    """
    directory = base / "files"
    make_directory(directory)
    lock = Lock(base / ".lock")
    written: dict[str, FileState | None] = {}
    refused: dict[str, Problem] = {}
    is_changed = False
    for write in sorted(writes, key=lambda each: (each.expected is not None, each.name is None)):
        path = base / write.path
        draft = None
        try:
            if write.name is not None:
                draft = write_temporary(path, contents[write.name])
            with lock.held(_LOCK_SECONDS):
                if not _is_as_expected(path, write.expected):
                    is_changed = True
                elif draft:
                    rename_over(draft, path)
                    draft = None
                    stamp = Stamp.of(path.lstat())
                    written[write.path] = FileState(write.name or "", settled(stamp))
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
    return written, refused, is_changed


def _is_as_expected(path: Path, expected: str | None) -> bool:
    try:
        data = read_regular(str(path), MAX_FILE)
    except FileNotFoundError:
        return expected is None
    except MalformedFile:
        return False
    return object_name(data) == expected
