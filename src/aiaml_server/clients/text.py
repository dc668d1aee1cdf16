"""What the two formats share: places in a text, edits of it, and refusing to make one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

BOM = "\ufeff"
_END_OF_LINE = re.compile(r"[^\r\n]*")


class Refused(Exception):  # noqa: N818 (what happens, not what went wrong)
    """A text that is not edited, because it cannot be read or would not survive it.

    Attributes:
        offset: where, in characters from the beginning.
        reason: what is wrong there.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


def splice(text: str, edits: Sequence[Edit]) -> str:
    """Make all edits; those at the same place in the order given."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*pieces, text[at:]])


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of an offset, both from 1; a BOM takes no column."""
    before = text[:offset].removeprefix(BOM)
    lines = re.split(r"\r\n|\r|\n", before)
    return len(lines), len(lines[-1]) + 1


def newline(text: str) -> str:
    """Return how the first line of a text ends; what a text without lines would get is LF."""
    found = re.search(r"\r\n|\n", text)
    return found[0] if found else "\n"


def end_of_words(text: str, offset: int) -> int:
    """Return the end of what is not white space before an offset."""
    return len(text[:offset].rstrip(" \t\r\n"))


def end_of_line(text: str, offset: int) -> int:
    """Return the end of the line of an offset, before its line end."""
    found = _END_OF_LINE.match(text, offset)
    return found.end() if found else offset


def end_of_block(text: str, start: int, end: int) -> int:
    """Return where the last line ends that is neither blank nor a comment behind `#`."""
    lines = text[start:end].split("\n")
    while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
        lines.pop()
    return end_of_line(text, start + len("\n".join(lines).rstrip("\r")))


def indentation(text: str, offset: int) -> str:
    """Return the white space that begins the line of an offset."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = re.compile(rf"{BOM}?([ \t]*)").match(text, start)
    return found[1] if found else ""
