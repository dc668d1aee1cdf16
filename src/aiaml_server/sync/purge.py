"""Forgetting everywhere: a history without some files, on every computer and on the remote.

Rewriting depends on nothing but the history and the purge list: a set of SHA-256 sums of paths and
object names. So every computer makes the same commits of the same history.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from aiaml_server.files import replace_atomic
from aiaml_server.sync.history import all_versions
from aiaml_server.sync.merge import copy_of, memory_id_of
from aiaml_server.sync.repository import (
    FETCHED,
    MAIN,
    SCRATCH,
    Change,
    NewCommit,
    Repository,
    open_repository,
)

PURGE_FILE = ".aiaml-forgotten"
_HEADER = (
    "# SHA-256 sums of file paths and object names that are forgotten everywhere: no computer keeps"
    " them in its history."
)
_NOTE = "forgotten"
MESSAGE = "Forget memories everywhere"
_CLEAN_NOTE = "clean"
_PENDING_NOTE = "purge-pending"
_EXPORT = ("--no-data", "--reference-excluded-parents", "--show-original-ids", "--reencode=no")
_SECONDS = 3600.0
_MESSAGE_FILE = re.compile(rb"\A\w+ memory \S* \((.+)\)(?:\n|\Z)")


@lru_cache(100_000)
def sum_of(name: str) -> str:
    """Return the sum of a path or an object name."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()


def is_purged(purged: frozenset[str], name: str) -> bool:
    """Return whether a path or an object name is on the purge list."""
    return bool(purged) and sum_of(name) in purged


def _parse(text: bytes) -> frozenset[str]:
    return frozenset(each.decode() for each in re.findall(rb"(?m)^[0-9a-f]{64}$", text))


def _format(purged: frozenset[str]) -> bytes:
    return "\n".join([_HEADER, *sorted(purged), ""]).encode()


class Plan(NamedTuple):
    """What forgetting everywhere takes.

    Attributes:
        sums: what is added to the purge list.
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
    head = repository.resolve(MAIN) if repository.exists else ""
    versions = all_versions(repository, head)
    wanted = set(ids)
    known = {path for path, _ in versions}
    new = {path for path in known if memory_id_of(path) in wanted}
    new |= {f"files/{name}" for name in names}
    paths: set[str] = set()
    while new:
        paths |= new
        copies = {copy_of(path, name, b"")[0] for path, name in versions if path in new}
        new = copies & known - paths
    found = {name for path, name in versions if path in paths}
    return Plan(frozenset(map(sum_of, paths | found)), sorted(paths), len(found))


def load_list(repository: Repository, *commits: str) -> frozenset[str]:
    """Return what is forgotten everywhere, according to our notes and these commits."""
    purged = _parse(repository.read_note(_NOTE))
    return purged.union(*(_published(repository, commit) for commit in commits))


def _published(repository: Repository, commit: str) -> frozenset[str]:
    """Return the list in a commit, which other computers read."""
    name = repository.tree(commit).get(PURGE_FILE, "")
    return _parse(repository.blobs([name]).get(name, b""))


def record(repository: Repository, sums: frozenset[str]) -> None:
    """Add to the list in our notes, durably: from now on every cycle works towards it."""
    known = load_list(repository)
    if not sums <= known:
        replace_atomic(repository.notes / _NOTE, _format(known | sums))


def publish(repository: Repository, commit: str, purged: frozenset[str]) -> str:
    """Return a commit whose tree has the whole list; a new one on top where it lacks some."""
    if purged <= _published(repository, commit):
        return commit
    addition = NewCommit(MESSAGE, [Change(PURGE_FILE, _format(purged))])
    return repository.commit([addition], commit, ref=SCRATCH)


def clean(repository: Repository, commit: str, purged: frozenset[str]) -> str:
    """Return a commit like this one, whose history has nothing of the list.

    It is the same commit where that is so already. A commit that did nothing else stays, empty.
    """
    if not commit or not purged:
        return commit
    key = sum_of("".join(sorted(purged)))
    before, *known = repository.read_note(_CLEAN_NOTE).decode().split() or [""]
    known = known if before == key else []  # commits that are clean of this list
    if commit in known:
        return commit
    options = (*_EXPORT, "--ignore-missing", commit, *(f"^{each}" for each in known))
    exported = repository.git.run("fast-export", *options, seconds=_SECONDS)
    stream, is_changed = _filter(exported, purged)
    if is_changed:
        replace_atomic(repository.notes / _PENDING_NOTE, b"")
        commit = repository.import_stream(stream)
    replace_atomic(repository.notes / _CLEAN_NOTE, " ".join([key, *known[-3:], commit]).encode())
    return commit


def _filter(stream: bytes, purged: frozenset[str]) -> tuple[bytes, bool]:
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
            message = stream[start:end]
            found = _MESSAGE_FILE.match(message)
            if found and is_purged(purged, f"files/{os.fsdecode(found[1])}"):
                message = MESSAGE.encode()
            line = b"data %d\n%s" % (len(message), message)
            start = end
        elif word in (b"M", b"D"):
            filtered = _filter_line(line, purged)
            is_changed |= filtered != line
            line = filtered
            if not line:
                continue
        parts.append(line)
    return b"\n".join([*parts, b"get-mark " + mark, b"done", b""]), is_changed


def _filter_line(line: bytes, purged: frozenset[str]) -> bytes:
    """Return a line about a file; an empty one if the file is on the list."""
    action, *fields = line.split(b" ", 3)
    path = line[2:] if action == b"D" else fields[2]
    if is_purged(purged, os.fsdecode(path)):
        return b""
    return b"D " + path if action == b"M" and is_purged(purged, fields[1].decode()) else line


def finish(repository: Repository) -> None:
    """Remove what only the rewritten histories had, once no ref of ours leads to it."""
    pending = repository.notes / _PENDING_NOTE
    if pending.exists():
        for damaged in repository.base.glob(f"{repository.directory.name}.damaged-*"):
            shutil.rmtree(damaged, ignore_errors=True)
        for ref in (SCRATCH, FETCHED):
            repository.point(ref, "")
        repository.git.run("gc", "--quiet", "--force", "--prune=now", seconds=_SECONDS)
        pending.unlink(missing_ok=True)
