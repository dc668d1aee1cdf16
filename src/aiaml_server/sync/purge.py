"""Forgetting everywhere: a history without some files, on every computer and on the remote.

Rewriting depends on nothing but the history and the purge list. So every computer makes the same
commits of the same history, and nobody needs to be told which ones replaced which.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def plan_purge(repository: Repository, names: Iterable[str], ids: Iterable[str]) -> Plan:
    """Find all versions of memories, by their file names and by the ids in file names."""
    versions = repository.versions(repository.head())
    wanted_ids = set(ids)
    paths = {f"files/{name}" for name in names}
    paths |= {path for path, _ in versions if memory_id_of(path) in wanted_ids}
    paths = _with_copies(paths, versions)
    found = {name for path, name in versions if path in paths}
    sums = frozenset(map(sum_of, paths | found))
    return Plan(sums, sorted(paths), len(found))


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
    """Return a commit like this one, whose history has nothing of the list; "" if nothing is left.

    It is the same commit where that is so already.
    """
    if not commit or not purged.sums:
        return commit
    cache = _CleanCache(repository, purged)
    if commit in cache.commits:
        return commit
    words = (*_EXPORT, "--ignore-missing", commit, *(f"^{each}" for each in cache.commits))
    exported = repository.git.run("fast-export", *words, seconds=_SECONDS)
    stream, tip = _rewrite(list(_parse(exported)), purged)
    if stream or tip != commit:
        replace_atomic(repository.notes / _PENDING_NOTE, b"")
    if stream:
        words = ("--quiet", "--force", "--done")
        output = repository.git.run("fast-import", *words, stdin=stream, seconds=_SECONDS)
        tip = output.decode().strip()
    cache.add(tip)
    return tip


class _CleanCache:
    """The commits that are known to have nothing of a purge list in their history."""

    def __init__(self, repository: Repository, purged: PurgeList) -> None:
        self._file = repository.notes / _CLEAN_NOTE
        self._key = sum_of(purged.text.decode())
        lines = repository.read_note(_CLEAN_NOTE).decode().split()
        self.commits = lines[1:] if lines[:1] == [self._key] else []

    def add(self, commit: str) -> None:
        """Add a commit; the oldest ones are dropped."""
        if commit:
            self.commits = [*self.commits[-3:], commit]
            replace_atomic(self._file, "\n".join([self._key, *self.commits]).encode())


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


# --- rewriting ------------------------------------------------------------------------------------


class _Commit(NamedTuple):
    """A commit as `git fast-export` prints it. Its lines compare it with its first parent."""

    mark: bytes
    name: bytes
    people: list[bytes]
    message: bytes
    parents: list[bytes]
    lines: list[bytes]


def _parse(stream: bytes) -> Iterator[_Commit]:
    """Read what `git fast-export` printed; parents come before children."""
    fields = defaultdict[bytes, list[bytes]](list)
    start = 0
    while start < len(stream):
        end = stream.index(b"\n", start)
        line, start = stream[start:end], end + 1
        word, _, rest = line.partition(b" ")
        if word in (b"commit", b"reset"):
            if b"mark" in fields:
                yield _commit_of(fields)
            fields.clear()
        elif word == b"data":
            end = start + int(rest)
            fields[word].append(stream[start:end])
            start = end
        elif word in (b"M", b"D", b"author", b"committer", b"encoding"):
            fields[b"lines" if len(word) == 1 else b"people"].append(line)
        else:
            fields[b"from" if word == b"merge" else word].append(rest)
    if b"mark" in fields:
        yield _commit_of(fields)


def _commit_of(fields: Mapping[bytes, list[bytes]]) -> _Commit:
    (mark,), (name,), (message,) = fields[b"mark"], fields[b"original-oid"], fields[b"data"]
    people, parents, lines = fields[b"people"], fields[b"from"], fields[b"lines"]
    return _Commit(mark, name, [*people], message, [*parents], [*lines])


def _rewrite(history: Sequence[_Commit], purged: PurgeList) -> tuple[bytes, str]:
    """Return the stream that makes the history anew, and the tip where none has to be made."""
    now: dict[bytes, bytes] = {}  # what became of each commit; empty for nothing
    made: list[bytes] = []
    changed: set[bytes] = set()
    tip = b""
    for commit in history:
        kept = _kept_lines(commit, purged)
        if kept == commit.lines and changed.isdisjoint(commit.parents):
            now[commit.mark] = tip = commit.name
            continue
        changed.add(commit.mark)
        parents = [now.get(parent, parent) for parent in commit.parents]
        left = [parent for parent in dict.fromkeys(parents) if parent]
        is_first_gone = bool(parents and not parents[0])
        did_something = bool(commit.lines) or len(commit.parents) > 1
        if did_something and not kept and len(left) < 2 and not (left and is_first_gone):
            tip = left[0] if left else b""
        else:
            tip = commit.mark
            made += _rewritten(commit, left, kept, is_first_gone=is_first_gone)
        now[commit.mark] = tip
    if not tip.startswith(b":"):
        return b"", tip.decode()
    return b"".join(made) + b"get-mark %s\ndone\n" % tip, ""


def _kept_lines(commit: _Commit, purged: PurgeList) -> list[bytes]:
    kept = []
    for line in commit.lines:
        words = line.split(b" ", 3)
        raw_path = line[2:] if words[0] == b"D" else words[3]
        if purged.has(os.fsdecode(raw_path)):
            continue
        is_purged = words[0] == b"M" and purged.has(words[2].decode())
        kept.append(b"D " + raw_path if is_purged else line)
    return kept


def _rewritten(
    commit: _Commit, parents: Sequence[bytes], lines: Sequence[bytes], *, is_first_gone: bool
) -> Iterator[bytes]:
    ref = SCRATCH.encode()
    if not parents:
        yield b"reset %s\n\n" % ref
    yield b"commit %s\nmark %s\n" % (ref, commit.mark)
    yield b"".join(line + b"\n" for line in commit.people)
    yield b"data %d\n%s\n" % (len(commit.message), commit.message)
    for number, parent in enumerate(parents):
        yield b"%s %s\n" % (b"merge" if number else b"from", parent)
    if parents and is_first_gone:
        yield b"deleteall\n"
    yield b"".join(line + b"\n" for line in lines) + b"\n"


# --- commands -------------------------------------------------------------------------------------


def plan_forgetting(base: Path, names: Iterable[str], ids: Iterable[str]) -> Plan:
    """Return what forgetting memories everywhere takes; nothing is changed.

    Args:
        base: the memory directory.
        names: the names of their files.
        ids: their ids.

    Raises:
        GitFailed: the repository cannot be read.
        SyncError: the directory came from elsewhere.
    """
    repository = open_repository(base)
    return plan_purge(repository, names, ids) if repository.exists else Plan(frozenset(), [], 0)
