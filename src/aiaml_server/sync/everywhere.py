"""What forgetting everywhere will do, for a person to see before, and what it has left after."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from . import purge
from .repository import Repository
from .rewrite import Commit, Marks, mark, with_copies, without
from .union import Entry


class Plan(NamedTuple):
    """What is to be forgotten everywhere, and what that takes.

    Attributes:
        marks: what machines know it by (see `rewrite`).
        names: its files, with copies that were made where two machines edited one at once.
        versions: how many versions of them there are.
        commits: how many commits become others.
        authors: the names that commits are by, the most frequent first.
        holders: what of the person's own has them too, and is left as it is.
    """

    marks: Marks
    names: Sequence[str]
    versions: int
    commits: int
    authors: Sequence[str]
    holders: Sequence[str]


def plan(base: Path, names: Iterable[str], is_one: Callable[[bytes], bool]) -> Plan:
    """Find out what it takes; nothing is changed.

    Args:
        base: the base directory.
        names: the names of files, there or forgotten.
        is_one: whether bytes are a version of one of the memories, under whatever name.

    Raises:
        GitFailed: the repository cannot be read.
    """
    repository = Repository(base)
    repository.find()
    history = repository.erasure.history(repository.head())
    paths = {mark(b"files/" + os.fsencode(name)) for name in names}
    marks = with_copies(history, frozenset(paths))
    found = without(history, marks)
    entries = [Entry(b"100644", oid) for _, oid in found.taken if oid]
    texts = repository.blobs(entries)
    marks |= {mark(each.oid) for each, data in texts.items() if is_one(data)}
    return Plan(
        marks,
        sorted({os.fsdecode(path).removeprefix("files/") for path, _ in found.taken}),
        len(entries),
        without(history, marks).commits,
        _authors(history),
        purge.holders(repository, (each.oid for each in entries)),
    )


def still_held(base: Path) -> list[str]:
    """Say what still has something that was forgotten everywhere; empty where nothing has."""
    repository = Repository(base)
    if not repository.find():
        return []
    files = purge.held(repository)
    found = purge.holders(repository, files)
    return found or (["git's logs of where branches were (`git reflog`)"] if files else [])


def _authors(history: Sequence[Commit]) -> list[str]:
    lines = (line for commit in history for line in commit.head if line.startswith(b"author "))
    names = [line[7:].partition(b" <")[0].decode("utf-8", "replace") for line in lines]
    return sorted(set(names), key=names.count, reverse=True)
