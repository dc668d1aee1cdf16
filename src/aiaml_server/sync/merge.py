"""Three-way merge of memory trees: nothing is lost, and every computer gets the same result.

The functions are pure. A tree maps each path to the object name of its content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

Tree = Mapping[str, str]


class Conflict(NamedTuple):
    """Two versions of one path: `kept` keeps the path, `other` becomes a file of its own."""

    path: str
    kept: str
    other: str


class Merged(NamedTuple):
    """The result of a merge.

    Attributes:
        changes: what to change in our tree; None removes a path.
        conflicts: the paths that both sides changed.
    """

    changes: dict[str, str | None]
    conflicts: list[Conflict]


def merge_trees(base: Tree, ours: Tree, theirs: Tree) -> Merged:
    """Merge two trees that developed from `base`.

    An edit wins over a deletion. Of two edits, the larger object name keeps the path: whichever
    computer merges first, all get the same answer.
    """
    merged = Merged({}, [])
    for path in sorted(ours.keys() | theirs.keys()):
        our, their, before = ours.get(path), theirs.get(path), base.get(path)
        if their in (our, before):
            continue
        if our == before or our is None:
            merged.changes[path] = their
        elif their is not None:
            kept, other = max(our, their), min(our, their)
            merged.conflicts.append(Conflict(path, kept, other))
            if kept == their:
                merged.changes[path] = their
    return merged


def apply_changes(tree: Tree, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return a tree with changes applied."""
    result = dict(tree)
    for path, name in changes.items():
        if name is None:
            result.pop(path, None)
        else:
            result[path] = name
    return result


def copy_of(path: str, name: str, data: bytes) -> tuple[str, bytes]:
    """Return path and content of the copy that keeps the other version of a conflict.

    Its id is derived from what it copies, so all computers choose the same one.

    Args:
        path: the path that both sides changed.
        name: the object name of the version to keep.
        data: its content.
    """
    memory_id = next(
        digest
        for attempt in count()
        if (digest := _short_hash(f"{path}\0{name}\0{attempt}")) and re.search("[acdf]", digest)
    )
    stem = path.removesuffix(".md").rpartition("_")[0] or path.removesuffix(".md")
    return f"{stem}_{memory_id}.md", _ID_LINE.sub(rb"\g<1> " + memory_id.encode(), data, count=1)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


# The value of `id` in the frontmatter.
_ID_LINE = re.compile(rb"\A((?:\xef\xbb\xbf)?---[^\n]*\n(?:(?!---)[^\n]*\n)*?id[ \t]*:)[^\r\n]*")


def is_memory_path(path: str) -> bool:
    """Return whether a path of a tree may be a memory: `files/*.md`, not hidden."""
    directory, _, name = path.partition("/")
    is_plain = not set(name) & set('/\\:*?"<>|\n')
    return directory == "files" and is_plain and name.endswith(".md") and name[0] != "."


def memory_id_of(path: str) -> str:
    """Return the id in a file name such as `20260101_120000_1b2c3d4e.md`."""
    return path.removesuffix(".md").rpartition("_")[2].rpartition("/")[2]
