"""What forgetting everywhere will do, for a person to see before, and what it has left after."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.forgetting import purge
from aiaml_server.sync.forgetting.rewrite import Marks, mark, with_copies, without
from aiaml_server.sync.stream import Commit
from aiaml_server.sync.union import Entry, is_memory

if TYPE_CHECKING:
    from aiaml_server.sync.repository import Repository

_AT_ONCE = 2000  # objects that are read in one call


class Plan(NamedTuple):
    """What is to be forgotten everywhere, and what that takes.

    Attributes:
        marks: what machines know it by (see `rewrite`).
        names: its files, with copies that were made where two machines edited one at once.
        shared: those of them that hold another memory, or did.
        versions: how many versions of them there are.
        commits: how many commits become others.
        authors: the names that commits are by, the most frequent first.
        holders: what of the person's own has them too, and is left as it is.
    """

    marks: Marks
    names: Sequence[str]
    shared: Sequence[str]
    versions: int
    commits: int
    authors: Sequence[str]
    holders: Sequence[str]


def plan(base: Path, names: Iterable[str], is_one: Callable[[bytes], bool | None]) -> Plan:
    """Find out what it takes; nothing is changed.

    Args:
        base: the base directory.
        names: the names of files, there or forgotten.
        is_one: whether bytes are a version of one of the memories, under whatever name; None where
            they are no memory.

    Raises:
        GitFailed: the repository cannot be read.
    """
    from aiaml_server.sync.repository import Repository  # noqa: PLC0415 (which stands above)

    repository = Repository(base)
    repository.find()
    history = repository.erasure.history(repository.head())
    versions = defaultdict[bytes, set[bytes]](set)
    for commit in history:
        for touch in commit.touches:
            if touch.oid and is_memory(touch.path):
                versions[touch.path].add(touch.oid)
    one = _judged(repository, set[bytes]().union(*versions.values()), is_one)
    meant = {b"files/" + os.fsencode(name) for name in names}
    paths = {
        path
        for path, oids in versions.items()
        if not any(one[oid] is False for oid in oids)  # which is another memory's file as well
        and (path in meant or any(one[oid] for oid in oids))
    }
    marks = with_copies(history, frozenset(map(mark, paths)))
    marks |= {mark(oid) for oid, is_its in one.items() if is_its}
    found = without(history, marks)
    entries = [Entry(b"100644", oid) for _, oid in found.taken if oid]
    taken = {path for path, _ in found.taken}
    return Plan(
        marks,
        _names(taken),
        _names(path for path in taken if mark(path) not in marks),
        len(entries),
        found.commits,
        _authors(history),
        purge.holders(repository, (each.oid for each in entries)),
    )


def _names(paths: Iterable[bytes]) -> list[str]:
    return sorted(os.fsdecode(path).removeprefix("files/") for path in paths)


def _judged(
    repository: Repository, oids: Iterable[bytes], is_one: Callable[[bytes], bool | None]
) -> dict[bytes, bool | None]:
    """Ask of each object whether it is a version of one of the memories; a lost one is none."""
    judged = dict[bytes, bool | None].fromkeys(oids)
    ahead = sorted(judged)
    for start in range(0, len(ahead), _AT_ONCE):
        texts = repository.small_objects(ahead[start : start + _AT_ONCE], MAX_FILE)
        judged |= {oid: is_one(data) for oid, data in texts.items()}
    return judged


def still_held_in(base: Path) -> list[str]:
    """Say so of the repository of a base directory, if there is one."""
    from aiaml_server.sync.repository import Repository  # noqa: PLC0415 (see `plan`)

    repository = Repository(base)
    return still_held(repository) if repository.find() else []


def still_held(repository: Repository) -> list[str]:
    """Say what still has something that was forgotten everywhere; empty where nothing has."""
    files = purge.held(repository)
    found = purge.holders(repository, files)
    return found or (["git's logs of where branches were (`git reflog`)"] if files else [])


def _authors(history: Sequence[Commit]) -> list[str]:
    lines = (line for commit in history for line in commit.head if line.startswith(b"author "))
    names = [line[7:].partition(b" <")[0].decode("utf-8", "replace") for line in lines]
    return sorted(set(names), key=names.count, reverse=True)
