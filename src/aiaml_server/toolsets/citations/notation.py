"""How people and agents name a place: `a.py:20-24`, `a.py#L20-L24`, `a.py::Shop.price`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_LINES = re.compile(r"L?([0-9]+)(?:-L?([0-9]+))?")
_DIGITS = 19  # no file has more lines
_NAME = re.compile(r"[A-Za-z_$#][\w$]*(?:\.[A-Za-z_$#][\w$]*)*")


class Place(NamedTuple):
    """A place in a file.

    Attributes:
        path: the file's.
        first: the first line's number; None where none is named.
        last: the last one's.
        name: the name of a definition.
    """

    path: str
    first: int | None = None
    last: int | None = None
    name: str = ""


def read_place(text: str) -> Place:
    """Read a place; what is no notation of one is a path."""
    path, sign, name = text.rpartition("::")
    if sign and _NAME.fullmatch(name):
        return Place(path, name=name)
    for sign in ("#", ":"):
        path, found, said = text.rpartition(sign)
        if found and path and (lines := _LINES.fullmatch(said)):
            first, last = lines[1], lines[2] or lines[1]
            return Place(path, int(first[:_DIGITS]), int(last[:_DIGITS]))
    return Place(text)


def relative(path: str, root: str | os.PathLike[str], start: str = "") -> str:
    """Return a path as it is below a repository's top, with slashes.

    Args:
        path: absolute and in the repository, or relative to `start` or to the top.
        root: the repository's top.
        start: the directory that it may be relative to; empty for the top alone. What exists
            there comes first.
    """
    top = os.path.realpath(root)
    start = os.path.realpath(start) if start else ""
    for base in (start, top) if start else (top,):
        absolute = os.path.join(base, path)  # noqa: PTH118
        if os.path.isabs(path) or (base != top and os.path.lexists(absolute)):  # noqa: PTH117
            directory = os.path.realpath(os.path.dirname(absolute))  # noqa: PTH120
            below = Path(directory, os.path.basename(absolute))  # noqa: PTH119
            if below.is_relative_to(top):
                return below.relative_to(top).as_posix()
    path = re.sub(r"/(?:\.?/)+", "/", path.replace("\\", "/"))
    return path.removeprefix("./")
