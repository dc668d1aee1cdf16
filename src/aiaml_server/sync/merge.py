"""Three-way merge of memory trees: nothing is lost, and every computer gets the same result.

The functions are pure. A tree maps each path to the object name of its content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

Tree = Mapping[str, str]
_MEMORY_PATH = re.compile(r'files/(?!\.)[^/\\:*?"<>|\n]+\.md')


class Merged(NamedTuple):
    """The result of a merge.

    Attributes:
        changes: what to change in our tree; None removes a path.
        conflicts: the paths that both sides changed, each with the object name of the version
            that becomes a file of its own.
    """

    changes: dict[str, str | None]
    conflicts: dict[str, str]


def merge_trees(base: Tree, ours: Tree, theirs: Tree) -> Merged:
    """Merge two trees that developed from `base`.

    An edit wins over a deletion. Of two edits, the larger object name keeps the path: whichever
    computer merges first, all get the same answer.
    """
    merged = Merged({}, {})
    for path in sorted(ours.keys() | theirs.keys()):
        our, their, before = ours.get(path), theirs.get(path), base.get(path)
        if their in (our, before):
            continue
        if our == before or our is None:
            merged.changes[path] = their
        elif their is not None:
            merged.conflicts[path] = min(our, their)
            merged.changes[path] = max(our, their)
    return merged


def apply_changes(tree: Tree, changes: Mapping[str, str | None]) -> Tree:
    """Return a tree with changes applied."""
    return {path: name for path, name in {**tree, **changes}.items() if name}


def copy_of(path: str, name: str, data: bytes) -> tuple[str, bytes]:
    """Return path and content of the copy that keeps the other version of a conflict.

    Its id is derived from what it copies, so all computers choose the same one. The letter at its
    beginning keeps YAML from reading it as a number.

    Args:
        path: the path that both sides changed.
        name: the object name of the version to keep.
        data: its content.
    """
    text = f"{path}\0{name}".encode("utf-8", "surrogateescape")
    memory_id = f"c{hashlib.sha256(text).hexdigest()[:7]}"
    stem = path.removesuffix(".md").rpartition("_")[0] or path.removesuffix(".md")
    return f"{stem}_{memory_id}.md", _ID_LINE.sub(rb"\g<1> " + memory_id.encode(), data, count=1)


# The value of `id` in the frontmatter.
_ID_LINE = re.compile(rb"\A((?:\xef\xbb\xbf)?---[^\n]*\n(?:(?!---)[^\n]*\n)*?id[ \t]*:)[^\r\n]*")


def is_memory_path(path: str) -> bool:
    """Return whether a path of a tree may be a memory: `files/*.md`, not hidden."""
    return bool(_MEMORY_PATH.fullmatch(path))


def memory_id_of(path: str) -> str:
    """Return the id in a file name such as `20260101_120000_1b2c3d4e.md`."""
    return path.removesuffix(".md").rpartition("_")[2].rpartition("/")[2]
