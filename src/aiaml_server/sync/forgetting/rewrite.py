"""A history without some of its files: the same commits, as if these had never been.

Pure: what `git fast-export` says becomes what `git fast-import` makes of it. What comes out depends
on nothing but the history and what is taken out, so that every machine makes the same commits of
the same history, and need not be told which of them took the place of which.

What is taken out is known by marks: SHA-256 sums of file paths and of git's names for what files
held. A commit that has nothing of it, and stands on none that had, stays as it is. One that did
nothing else disappears.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from aiaml_server.sync.stream import Commit, rewritten
from aiaml_server.sync.union import Copy, Entry, renamed
from aiaml_server.sync.worktree import object_name

FILE = b".aiaml-forgotten"
_HEAD = b"""\
# Forgotten everywhere: SHA-256 sums of file paths and of git's names for what files held. No
# machine keeps these in its history. See "Removing something for good" in AIAML's docs/sync.md.
"""
_MARK = rb"(?m)^[0-9a-f]{64}$"

Marks = frozenset[bytes]


def mark(name: bytes) -> bytes:
    """Return the mark of a path, or of an object's name."""
    import hashlib  # noqa: PLC0415 (OpenSSL, which reading a repository does not need)

    return hashlib.sha256(name).hexdigest().encode()


def marks_in(text: bytes) -> Marks:
    """Return the marks that stand in a text, each on a line of its own."""
    return frozenset(re.findall(_MARK, text)) if text else frozenset()


def text_of(marks: AbstractSet[bytes]) -> bytes:
    """Return the text of the file that tells other machines what is forgotten."""
    return _HEAD + b"".join(each + b"\n" for each in sorted(marks))


def is_erased(path: bytes, data: bytes, marks: Marks) -> bool:
    """Whether a file is marked, by its path or by what it holds."""
    names = (path, object_name(data, b""), object_name(data, b"0" * 64))
    return any(mark(each) in marks for each in names)


class Rewritten(NamedTuple):
    """What becomes of a history.

    Attributes:
        stream: makes the new commits, and tells the last one's name; empty for none.
        tip: the name of the last commit where none is made; empty where nothing is left.
        commits: how many are not as they were.
        taken: what was taken out, as paths and names of objects.
    """

    stream: bytes
    tip: str
    commits: int
    taken: frozenset[tuple[bytes, bytes]]


def without(history: Iterable[Commit], marks: Marks) -> Rewritten:
    """Take files out of a history.

    Args:
        history: its commits; the last one is its tip.
        marks: what to take out: files under a path in all their versions, and what files held under
            whatever path.
    """
    marked = _Marked(marks)
    now: dict[bytes, bytes] = {}  # what has become of each commit; empty for nothing
    changed = set[bytes]()
    taken = set[tuple[bytes, bytes]]()
    made = list[bytes]()
    tip = b""
    for commit in history:
        kept = []
        for touch in commit.touches:
            if touch.path in marked:
                taken.add((touch.path, touch.oid))
            elif touch.oid in marked:
                taken.add((touch.path, touch.oid))
                kept.append(b"D " + touch.line.split(b" ", 3)[3])
            else:
                kept.append(touch.line)
        if kept == [touch.line for touch in commit.touches] and changed.isdisjoint(commit.parents):
            now[commit.mark] = tip = commit.oid
            continue
        changed.add(commit.mark)
        parents = [now.get(each, each) for each in commit.parents]
        tip = _in_place_of(commit, parents, kept)
        if tip == commit.mark:
            made += rewritten(commit, parents, kept)
        now[commit.mark] = tip
    if tip.startswith(b":"):
        made.append(b"get-mark %s\ndone\n" % tip)
        return Rewritten(b"".join(made), "", len(changed), frozenset(taken))
    return Rewritten(b"", tip.decode(), len(changed), frozenset(taken))


class _Marked(dict[bytes, bool]):
    """Which paths and names of objects are marked."""

    def __init__(self, marks: Marks) -> None:
        super().__init__({b"": False})
        self._marks = marks

    def __missing__(self, name: bytes) -> bool:
        found = self[name] = mark(name) in self._marks
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, bytes) and self[name]


def _in_place_of(commit: Commit, parents: Sequence[bytes], kept: Sequence[bytes]) -> bytes:
    """Return the commit's own mark; or, where nothing is left of it, what it stood on."""
    did_something = bool(commit.touches) or len(commit.parents) > 1
    left = set(parents) - {b""}
    if kept or len(left) > 1 or not did_something or (left and not parents[0]):
        return commit.mark
    return parents[0] if parents else b""


def with_copies(history: Sequence[Commit], marks: Marks) -> Marks:
    """Add the paths of copies: of versions that two machines made at once, one got a new name."""
    touches = {(each.path, each.oid) for commit in history for each in commit.touches if each.oid}
    paths = {path for path, _ in touches}
    marked = _Marked(marks)
    copies = {
        copy: mark(copy)
        for path, oid in touches
        if path in marked
        and (copy := renamed(Copy(path, Entry(b"100644", oid)), b"")[0]) in paths
        and copy not in marked
    }
    return with_copies(history, marks.union(copies.values())) if copies else marks
