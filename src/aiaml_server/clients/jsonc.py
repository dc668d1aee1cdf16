"""Edit JSON with comments and trailing commas in place. Everything else stays unchanged.

For parsing, comments and trailing commas are replaced by blanks. The result is strict JSON of the
same length, so an offset in it is an offset in the original text. Each edit is checked: the new
text is parsed again, and has to mean what the old one meant, apart from the edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import getitem
from typing import Any, NamedTuple

from aiaml_server.clients.text import BOM, RefusedEdit, verified

Keys = Sequence[str | int]
"""The way to a value: names of members of objects, and indices of items of lists."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\\r\n])*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\\r\n])*")|,(?=\s*[}\]])')
_COMMA = re.compile(r"(//[^\r\n]*|/\*.*?\*/)|,", re.DOTALL)  # between two values
_UNIT = re.compile(r'\n([ \t]+)"')
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """One `"name": value` of an object, or one item of a list, whose name is its index.

    Attributes:
        start: where the name begins; in a list, the value.
        value: where the value begins.
        end: where the value ends.
    """

    name: str | int
    start: int
    value: int
    end: int


def load(text: str) -> Any:
    """Return the value of a text; None if there is nothing but blanks and comments.

    Raises:
        RefusedEdit: it is not JSON, even with comments and trailing commas.
    """
    strict = _strict(text)
    try:
        return json.loads(strict) if strict.strip() else None
    except json.JSONDecodeError as error:
        raise RefusedEdit(f"line {error.lineno}: {error.msg}") from None


def put(text: str, keys: Keys, value: Any) -> str:
    """Set the value under nested keys. Objects and lists on the way are made if missing.

    The index of a new item of a list is the length of the list.

    Raises:
        RefusedEdit: the text cannot be parsed, or not be edited safely.
        LookupError, TypeError, ValueError: a value on the way is no object or list.
    """
    if load(text) is None:
        text += "{}\n"
    path = _find(text, keys)
    last = path[-1]
    if len(path) > len(keys):
        new = _render(text, value, _indent(text, last.start))
        edited = text[: last.value] + new + text[last.end :]
    else:
        key, *rest = keys[len(path) - 1 :]
        label = f"{json.dumps(key)}: " if isinstance(key, str) else ""
        edited = _insert(text, last.value, label, _changed(None, rest, value))
    return verified(load, edited, _changed(load(text), keys, value))


def remove(text: str, keys: Keys) -> str:
    """Remove the existing member, or item of a list, that the last key names.

    Raises:
        RefusedEdit: see `put`.
    """
    *outer, key = keys
    expected = load(text)
    del reduce(getitem, outer, expected)[key]
    *_, container, member = _find(text, keys)
    members = _members(text, container.value)
    index = members.index(member)
    begin, end = members[index - 1].end, members[index + 1].start
    before, behind = text[begin : member.start], text[member.end : end]
    if _without_comma(behind) == behind:
        before = _without_comma(before)
    gap = before.rstrip() + _without_comma(behind)
    return verified(load, text[:begin] + (gap.strip() and gap) + text[end:], expected)


@lru_cache(maxsize=4)
def _strict(text: str) -> str:
    """Return JSON of the same length, without BOM, comments and trailing commas."""
    text = re.sub(f"^{BOM}", " ", text)
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)
    return text


def _changed(value: Any, keys: Keys, new: Any) -> Any:
    """Return a parsed value with another one under nested keys."""
    if not keys:
        return new
    key, *rest = keys
    if isinstance(key, int):
        return [*(value or ())[:key], new]
    members = value or {}
    return {**members, key: _changed(members.get(key), rest, new)}


def _skip(strict: str, at: int) -> int:
    """Return the offset of the next character that is not blank."""
    return len(strict) - len(strict[at:].lstrip())


def _find(text: str, keys: Keys) -> list[_Member]:
    """Return the members on the way to nested keys, from the document to the last existing one."""
    start = _skip(_strict(text), 0)
    path = [_Member("", start, start, len(text))]
    for key in keys:
        found = [member for member in _members(text, path[-1].value) if member.name == key]
        if not found:
            break
        path.append(found[0])
    return path


def _members(text: str, start: int) -> list[_Member]:
    """Return the members of the container at an offset, with its brackets first and last."""
    strict = _strict(text)
    members = [_Member(-1, start, start, start + 1)]
    at = _skip(strict, start + 1)
    while strict[at] not in "}]":
        name: str | int = len(members) - 1
        begin = at
        if strict[start] == "{":
            name, at = _DECODER.raw_decode(strict, at)
            at = _skip(strict, _skip(strict, at) + 1)
        _, end = _DECODER.raw_decode(strict, at)
        members.append(_Member(name, begin, at, end))
        at = _skip(strict, end)
        if strict[at] == ",":
            at = _skip(strict, at + 1)
    return [*members, _Member(-2, at, at, at)]


def _without_comma(gap: str) -> str:
    """Return the text between two values without the comma."""
    return _COMMA.sub(r"\1", gap)


def _insert(text: str, start: int, label: str, value: Any) -> str:
    """Return the text with one more member at the end of the container at an offset."""
    *first, last, close = _members(text, start)
    outer, newline = _indent(text, start), _newline(text)
    inner = outer + _unit(text)
    new = newline + inner + label + _render(text, value, inner)
    gap = text[last.end : close.start].rstrip()
    rest = text[last.end + len(gap) :]
    comma = "," if first and _without_comma(gap) == gap else ""
    if not first:
        rest = newline + outer + text[close.start :]
    return text[: last.end] + comma + gap + new + rest


def _indent(text: str, offset: int) -> str:
    """Return the blanks at the beginning of the line of an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return one step of indentation."""
    found = _UNIT.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _render(text: str, value: Any, indent: str) -> str:
    """Return a value as JSON in the style of a text."""
    new = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return new.replace("\n", _newline(text) + indent)
