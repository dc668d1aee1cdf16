"""Writes frontmatter that any YAML parser reads the same, and changes no byte that may stay."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from aiaml_server.toolsets.citations.frontmatter import Document
from aiaml_server.toolsets.citations.nodes import Node, Part

KEYS = ("id", "subject", "created", "verified", "confidence", "citations", "links", "tags")
"""The frontmatter's keys, in the order in which a new file has them."""

ABSENT: Final = object()
"""Stands for a key that is taken out, if it is there."""

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_PLAIN = re.compile(r"[A-Za-z_](?:[\w./@+()-]| (?! ))*(?<! )", re.ASCII)
_SPECIAL = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
_ESCAPED = re.compile("[\x7f-\x84\x85\x86-\x9f\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def scalar(value: str | float | bool | None) -> str:
    """Return a scalar: plain where every YAML reader takes it for the same, else a JSON string."""
    if isinstance(value, float):
        value = round(value, 3)  # without an exponent, which not all readers take
    if not isinstance(value, str):
        return json.dumps(value)
    if TIME.fullmatch(value) or (_PLAIN.fullmatch(value) and value.lower() not in _SPECIAL):
        return value
    return _ESCAPED.sub(
        lambda each: f"\\u{ord(each[0]):04x}", json.dumps(value, ensure_ascii=False)
    )


def block(key: str, value: Any, indent: int = 0) -> list[str]:
    """Return the lines of an entry."""
    pad = " " * indent
    if isinstance(value, Mapping):
        return [f"{pad}{key}:", *_map_lines(value, indent + 2)]
    if isinstance(value, list | tuple):
        if not value:
            return [f"{pad}{key}: []"]
        return [f"{pad}{key}:", *(line for each in value for line in _item(each, indent + 2))]
    return [f"{pad}{key}: {scalar(value)}"]


def _map_lines(value: Mapping[str, Any], indent: int) -> list[str]:
    return [
        line
        for key, each in value.items()
        if each is not ABSENT
        for line in block(key, each, indent)
    ]


def _item(value: Any, indent: int) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{' ' * indent}- {scalar(value)}"]
    first, *rest = _map_lines(value, indent + 2)
    return [f"{' ' * indent}- {first.lstrip(' ')}", *rest]


class _Splice(NamedTuple):
    start: int
    end: int
    text: str


def updated(document: Document, changes: Mapping[str, Any]) -> str:
    """Return the document's text with some entries changed, and all else as it was.

    Args:
        document: as it was read.
        changes: the entries' new values, each one of `KEYS`; in maps that are items of lists,
            `ABSENT` takes an entry out, and what is not named stays.
    """
    newline = "\r\n" if "\r\n" in document.text[: document.body] else "\n"
    writer = _Writer(document.text, newline)
    splices = writer.splices
    known = document.root.entries
    pending: dict[int, list[str]] = {}
    for key, value in changes.items():
        if key in known:
            writer.entry(key, known[key], value)
        else:
            before = [known[each].end for each in KEYS[: KEYS.index(key)] if each in known]
            at = max(before, default=document.end if known else document.root.start)
            pending.setdefault(at, []).extend(block(key, value))
    for at, lines in pending.items():
        splices.append(_Splice(at, at, "".join(line + newline for line in lines)))
    parts, at = [], 0
    for splice in sorted(splices, key=lambda each: (each.start, each.end)):
        parts += [document.text[at : splice.start], splice.text]
        at = splice.end
    return "".join([*parts, document.text[at:]])


class _Writer:
    """Finds what has to be written for an entry to get another value."""

    def __init__(self, text: str, newline: str) -> None:
        self._text, self._newline = text, newline
        self.splices: list[_Splice] = []

    def entry(self, key: str, part: Part, value: Any) -> None:
        """Give an entry of a block another value."""
        node = part.node
        if _same(node.value, value):
            return
        if node.kind == "scalar" and not isinstance(value, list | tuple | Mapping):
            gap = " " if node.start == node.end else ""
            self.splices.append(_Splice(node.start, node.end, gap + scalar(value)))
        elif node.kind == "block" and node.items and isinstance(value, list | tuple) and value:
            self._list(node, value)
        elif node.kind == "flow" and isinstance(value, list | tuple) and _are_scalars(value):
            items = ", ".join(map(scalar, value))
            self.splices.append(_Splice(node.start, node.end, f"[{items}]"))
        else:
            self._replace(part, block(key, value, part.indent))

    def _list(self, node: Node, value: Sequence[Any]) -> None:
        old = [_identity(each.node.value) for each in node.items]
        new = list(map(_identity, value))
        indent = node.items[0].indent
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                for part, item in zip(node.items[a:b], value[c:d], strict=True):
                    self._update(part, item)
                continue
            at = node.items[a].start if a < len(node.items) else node.items[-1].end
            end = node.items[b - 1].end if b > a else at
            lines = [line for each in value[c:d] for line in _item(each, indent)]
            self.splices.append(_Splice(at, end, self._joined(lines)))

    def _update(self, part: Part, value: Any) -> None:
        """Give a list's item another value; the identity is the same."""
        node = part.node
        if _same(node.value, value):
            return
        if not (isinstance(value, Mapping) and node.kind == "block" and node.entries):
            self._replace(part, _item(value, part.indent))
            return
        first = next(iter(node.entries))
        if value.get(first, 0) is ABSENT:  # it stands beside the dash
            kept = {key: each for key, each in node.value.items() if key not in value}
            self._replace(part, _item({**value, **kept}, part.indent))
            return
        last = max(each.end for each in node.entries.values())
        for key, each in value.items():
            if each is ABSENT:
                if key in node.entries:
                    gone = node.entries[key]
                    self.splices.append(_Splice(gone.start, gone.end, ""))
            elif key in node.entries:
                self.entry(key, node.entries[key], each)
            else:
                lines = block(key, each, node.entries[first].indent)
                self.splices.append(_Splice(last, last, self._joined(lines)))

    def _replace(self, part: Part, lines: Sequence[str]) -> None:
        text = self._joined(lines)
        if part.start and self._text[part.start - 1] != "\n":  # beside a dash
            text = text.lstrip(" ")
        self.splices.append(_Splice(part.start, part.end, text))

    def _joined(self, lines: Sequence[str]) -> str:
        return "".join(line + self._newline for line in lines)


def _identity(item: Any) -> Any:
    """Return by what an item of a list is known again: of such a one, only changes are written."""
    if isinstance(item, Mapping):
        return item.get("path", item.get("target"))
    return repr(item)


def _are_scalars(value: Sequence[Any]) -> bool:
    return not any(isinstance(each, list | tuple | Mapping) for each in value)


def _same(old: Any, new: Any) -> bool:
    """Say whether a value is as it is wanted."""
    if isinstance(new, Mapping):
        return isinstance(old, dict) and all(
            key not in old if each is ABSENT else key in old and _same(old[key], each)
            for key, each in new.items()
        )
    if isinstance(new, list | tuple):
        return isinstance(old, list) and len(old) == len(new) and all(map(_same, old, new))
    return type(old) is type(new) and bool(old == new)
