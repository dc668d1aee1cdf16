"""Forgetting everywhere: a history without some files, on every computer and on the remote.

Rewriting depends on nothing but the history and the purge list. So every computer makes the same
commits of the same history, and nobody needs to be told which ones replaced which.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from aiaml_server.files import replace_atomic
from aiaml_server.sync.merge import copy_of, memory_id_of
from aiaml_server.sync.repository import (
    FETCHED,
    SCRATCH,
    Change,
    NewCommit,
    Repository,
    open_repository,
)

PURGE_FILE = ".aiaml-forgotten"
_HEADER = (
    "# SHA-256 sums of file paths and object names that are forgotten everywhere: no computer keeps"
    " them in its history.\n"
)
_NOTE = "forgotten"
MESSAGE = "Forget memories everywhere"
_CLEAN_NOTE = "clean"
_PENDING_NOTE = "purge-pending"
_EXPORT = ("--no-data", "--reference-excluded-parents", "--show-original-ids", "--reencode=no")
_SECONDS = 3600.0
_MESSAGE_FILE = re.compile(rb"\A\w+ memory \S* \((.+)\)(?:\n|\Z)")


class PurgeList:
    """A set of sums. Equal lists have equal sums."""

    def __init__(self, sums: Iterable[str] = ()) -> None:
        self.sums = frozenset(sums)
        self._known: dict[str, bool] = {}

    @classmethod
    def parse(cls, text: bytes) -> PurgeList:
        """Read a list from the text of its file."""
        return cls(found.decode() for found in re.findall(rb"(?m)^[0-9a-f]{64}$", text))

    @cached_property
    def text(self) -> bytes:
        """The text of the file."""
        return (_HEADER + "".join(f"{each}\n" for each in sorted(self.sums))).encode()

    def has(self, *names: str) -> bool:
        """Return whether a path or an object name is on the list."""
        return bool(self.sums) and any(self._has_one(name) for name in names)

    def _has_one(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = sum_of(name) in self.sums
        return self._known[name]


def sum_of(name: str) -> str:
    """Return the sum by which a path or an object name is known."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


class Plan(NamedTuple):
    """What forgetting everywhere takes.

    Attributes:
        sums: what the purge list gets.
        paths: the files, also copies that conflicts made.
        versions: how many versions of them the history has.
    """

    sums: frozenset[str]
    paths: list[str]
    versions: int


def plan_forgetting(base: Path, names: Iterable[str], ids: Iterable[str]) -> Plan:
    """Return what forgetting memories everywhere takes; nothing is changed.

    Args:
        base: the memory directory.
        names: the names of their files.
        ids: their ids, as they stand in the names of files.

    Raises:
        GitFailed: the repository cannot be read.
        SyncError: the directory came from elsewhere.
    """
    repository = open_repository(base)
    head = repository.head() if repository.exists else ""
    versions = repository.versions(head) if head else set()
    paths, wanted_ids = {f"files/{name}" for name in names}, set(ids)
    paths |= {path for path, _ in versions if memory_id_of(path) in wanted_ids}
    paths = _with_copies(paths, versions)
    found = {name for path, name in versions if path in paths}
    return Plan(frozenset(map(sum_of, paths | found)), sorted(paths), len(found))


def _with_copies(paths: set[str], versions: Iterable[tuple[str, str]]) -> set[str]:
    """Add the paths of copies that conflicts made of some files."""
    there = {path for path, _ in versions}
    copies = {copy_of(path, name, b"")[0] for path, name in versions if path in paths}
    new = (copies & there) - paths
    return _with_copies(paths | new, versions) if new else paths


def load_list(repository: Repository, *commits: str) -> PurgeList:
    """Return what is forgotten everywhere, as our notes and these commits know it."""
    sums = set(PurgeList.parse(repository.read_note(_NOTE)).sums)
    for commit in filter(None, commits):
        sums |= list_in(repository, commit).sums
    return PurgeList(sums)


def list_in(repository: Repository, commit: str) -> PurgeList:
    """Return the list that a commit tells to other computers."""
    name = repository.tree(commit).get(PURGE_FILE, "")
    return PurgeList.parse(repository.blobs([name]).get(name, b"")) if name else PurgeList()


def record(repository: Repository, sums: Iterable[str]) -> PurgeList:
    """Add to the list in our notes, durably: from now on every cycle works towards it."""
    before = PurgeList.parse(repository.read_note(_NOTE))
    purged = PurgeList(before.sums.union(sums))
    if purged.sums != before.sums:
        replace_atomic(repository.notes / _NOTE, purged.text)
    return purged


def publish(repository: Repository, commit: str, purged: PurgeList) -> str:
    """Return a commit whose tree has the whole list; a new one on top where it lacks some."""
    if purged.sums <= list_in(repository, commit).sums:
        return commit
    addition = NewCommit(MESSAGE, [Change(PURGE_FILE, purged.text)])
    return repository.commit([addition], commit, ref=SCRATCH)


def clean(repository: Repository, commit: str, purged: PurgeList) -> str:
    """Return a commit like this one, whose history has nothing of the list.

    It is the same commit where that is so already. A commit that did nothing else stays, empty.
    """
    if not commit or not purged.sums:
        return commit
    key = sum_of(purged.text.decode())
    known = repository.read_note(_CLEAN_NOTE).decode().split()
    known = known[1:] if known[:1] == [key] else []  # commits that are clean of this list
    if commit in known:
        return commit
    words = (*_EXPORT, "--ignore-missing", commit, *(f"^{each}" for each in known))
    exported = repository.git.run("fast-export", *words, seconds=_SECONDS)
    stream, is_changed = _filter(exported, purged)
    if is_changed:
        replace_atomic(repository.notes / _PENDING_NOTE, b"")
        words = ("--quiet", "--force", "--done")
        output = repository.git.run("fast-import", *words, stdin=stream, seconds=_SECONDS)
        commit = output.decode().strip()
    replace_atomic(repository.notes / _CLEAN_NOTE, " ".join([key, *known[-3:], commit]).encode())
    return commit


def _filter(stream: bytes, purged: PurgeList) -> tuple[bytes, bool]:
    """Take files out of what `git fast-export` printed; return whether there were any."""
    parts: list[bytes] = []
    mark, is_changed, start = b"", False, 0
    while start < len(stream):
        end = stream.index(b"\n", start)
        line, start = stream[start:end], end + 1
        word, _, rest = line.partition(b" ")
        if word in (b"commit", b"reset"):
            line = b"%s %s" % (word, SCRATCH.encode())
        elif word == b"mark":
            mark = rest
        elif word == b"data":
            end = start + int(rest)
            message = _MESSAGE_FILE.sub(
                lambda found: _without_name(found, purged), stream[start:end]
            )
            line = b"data %d\n%s" % (len(message), message)
            start = end
        elif word in (b"M", b"D"):
            kept = _kept(line, purged)
            is_changed |= kept != line
            line = kept
            if not line:
                continue
        parts.append(line)
    return b"\n".join([*parts, b"get-mark " + mark, b"done", b""]), is_changed


def _kept(line: bytes, purged: PurgeList) -> bytes:
    """Return a line about a file; an empty one if the file is on the list."""
    words = line.split(b" ", 3)
    path = line[2:] if words[0] == b"D" else words[3]
    if purged.has(os.fsdecode(path)):
        return b""
    return b"D " + path if words[0] == b"M" and purged.has(words[2].decode()) else line


def _without_name(found: re.Match[bytes], purged: PurgeList) -> bytes:
    return MESSAGE.encode() if purged.has(f"files/{os.fsdecode(found[1])}") else found[0]


def finish(repository: Repository) -> None:
    """Remove what only the rewritten histories had, once no ref of ours leads to it."""
    pending = repository.notes / _PENDING_NOTE
    if pending.exists():
        for damaged in repository.base.glob(f"{repository.directory.name}.damaged-*"):
            shutil.rmtree(damaged, ignore_errors=True)
        for ref in (SCRATCH, FETCHED):
            repository.point(ref, "")
        repository.git.run("reflog", "expire", "--expire=now", "--all")
        repository.git.run("gc", "--quiet", "--prune=now", seconds=_SECONDS)
        pending.unlink(missing_ok=True)
