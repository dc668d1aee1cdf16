"""Reads frontmatter of the shape that this program writes, in a fraction of the time.

Maps and lists of maps by two and four spaces, plain scalars of few characters, JSON strings. What
has any other shape is left to `frontmatter.read`; what has this one is read the same by both.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .frontmatter import UNREADABLE, WORDS, Document, Unknown, read, resolved
from .nodes import Node, Part

_HEAD = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_LINE = re.compile(
    r"(  - |    |)"
    r"(?:([a-z]+):(?: (?=.)|$))?"
    r'("[^"\\]*(?:\\.[^"\\]*)*"|[A-Za-z_](?:[A-Za-z0-9_./@+()-]| (?! ))*(?<! )'
    r"|[0-9][0-9.TZ:-]*|\[\]|)"
)


def read_values(text: str) -> Document:
    """Read a text that begins with frontmatter; of places, only the lines' numbers are right.

    Raises:
        MalformedMemory: as `frontmatter.read` does.
    """
    head = _HEAD.match(text)
    root = _root(head[1]) if head else None
    if head and root:
        return Document(text, root, head.end(1), head.end())
    return read(text)


def _root(head: str) -> Node | None:
    """Return the map; None where it has another shape."""
    if UNREADABLE.search(head) or "\r" in head:
        return None
    reading = _Reading()
    for number, line in enumerate(head[:-1].split("\n"), 2):
        found = _LINE.fullmatch(line)
        if not found:
            return None
        indent, key, written = found.groups()
        node = _scalar(written, number)
        if node is None or key in WORDS or not reading.takes(indent, key, written, node):
            return None
    value = {key: each.node.value for key, each in reading.entries.items()}
    return Node(value, "block", 2, 0, 0, "", reading.entries)


class _Reading:
    """What was read so far: the entries, the list at their end, and the map at its end."""

    def __init__(self) -> None:
        self.entries: dict[str, Part] = {}
        self._top: Node | None = None
        self._items: list[Part] = []
        self._item: dict[str, Part] | None = None
        self._value: dict[str, Any] = {}

    def takes(self, indent: str, key: str | None, written: str, node: Node) -> bool:
        """Take in a line, if it has its place here."""
        part = Part(0, 0, 0, node)
        if not indent:
            if key is None or key in self.entries:
                return False
            self.entries[key] = part
            self._top, self._item = None if written else node, None
        elif not written or self._top is None:
            return False
        elif indent == "    ":
            if self._item is None or key is None or key in self._item:
                return False
            self._item[key], self._value[key] = part, node.value
        else:
            self._append(self._top, key, part)
        return True

    def _append(self, top: Node, key: str | None, part: Part) -> None:
        if top.value is None:
            self._items = []
            top.value, top.items = [], self._items
        self._item = None
        if key is not None:
            self._item, self._value = {key: part}, {key: part.node.value}
            line = part.node.line
            part = Part(0, 0, 0, Node(self._value, "block", line, 0, 0, "", self._item))
        top.value.append(part.node.value)
        self._items.append(part)


def _scalar(written: str, line: int) -> Node | None:
    try:
        if written[:1] == '"':
            return Node(json.loads(written), "scalar", line, 0, 0)
        if written == "[]":
            return Node([], "flow", line, 0, 0)
        return Node(resolved(written, line), "scalar", line, 0, 0, written)
    except (ValueError, Unknown):
        return None
