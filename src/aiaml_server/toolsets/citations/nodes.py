"""A YAML document as values with their places in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

Kind = str
"""`scalar`, `flow` (on one line), `block` (by indentation), or `foreign` (read by PyYAML)."""

MOST_DIGITS = 640
"""Of a whole number: so many Python reads and writes whatever its limit is
(https://docs.python.org/3/library/stdtypes.html#int-max-str-digits)."""

_NOTHING: Mapping[str, Part] = MappingProxyType({})


class Node(NamedTuple):
    """A value, and where it stands.

    Attributes:
        value: text, number, truth, None, list or dict.
        kind: how it is written.
        line: its first line's number, from 1.
        start: the offset of its first character; for a block, of its first line.
        end: the offset behind it; for a block, behind its last line's end.
        written: a plain scalar as it is written, also where that means a number.
        entries: a map's parts, by key.
        items: a list's parts.
    """

    value: Any
    kind: Kind
    line: int
    start: int
    end: int
    written: str = ""
    entries: Mapping[str, Part] = _NOTHING
    items: Sequence[Part] = ()


class Part(NamedTuple):
    """A map's entry or a list's item: whole lines in a block.

    Attributes:
        start: the offset of its first line, or of what follows the dash before it.
        end: the offset behind its last line's end.
        indent: the column of its key or dash.
        node: the value.
    """

    start: int
    end: int
    indent: int
    node: Node
