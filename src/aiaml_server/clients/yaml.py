"""YAML, edited in place: only the entry that is named changes, every other byte stays.

The entry is written anew as a whole, as lines of their own; what cannot be edited so is refused.
PyYAML says what a text means and where its parts are, and reads again what was written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .text import BOM, Refused, end_of_block, end_of_line, end_of_words, newline

if TYPE_CHECKING:
    import yaml

MOST = 24 * 1024  # bytes of a file; it is parsed several times, in some 40 ms a KiB
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_EMPTY = re.compile(r"[ \t]*(?![ \t])(?:\{[ \t]*\}|null|~)?(?=[ \t]*(?:#[^\r\n]*)?(?:[\r\n]|\Z))")


def entry(text: str, keys: Sequence[str]) -> Any:
    """Return the value under nested keys, None where there is none.

    Raises:
        Refused: the text cannot be read, or something on the way is no mapping.
    """
    value = _load(text)
    for depth, key in enumerate(keys):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _no_mapping(keys[:depth])
        value = value.get(key)
    return value


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Bring the mapping under a key of a key up to date; what it has besides `value` stays.

    The mapping is written anew, if anything in it changes: comments in it go.

    Raises:
        Refused: see `entry`; or the text is laid out in a way that cannot be edited in place.
    """
    outer, inner = keys
    current = entry(text, keys)
    if not isinstance(current, (dict, type(None))):
        raise _no_mapping(keys)
    wanted = _updated(current or {}, value)
    if wanted == current:
        return text
    between = newline(text)
    found = _pair(_root(text), outer)
    if found is None:
        end = end_of_line(text, end_of_words(text, len(text)))
        lines = [f"{outer}:", *_lines(inner, wanted, "  ")]
        edited = text[:end] + (between if text[:end].strip(BOM) else "")
        edited += between.join(lines) + (text[end:] or between)
    elif pairs := list(_pairs(found[1])):
        key, node = next((each for each in pairs if each[0].value == inner), (None, pairs[-1][1]))
        margin = " " * pairs[0][0].start_mark.column
        block = between.join(_lines(inner, wanted, margin))
        end = _end(text, node)
        if key is None:
            edited = text[:end] + between + block + text[end:]
        else:
            edited = text[: key.start_mark.index - len(margin)] + block + text[end:]
    else:
        at = text.index(":", found[0].end_mark.index) + 1
        empty = _EMPTY.match(text, at)
        end = end_of_line(text, empty.end() if empty else at)
        behind = text[empty.end() : end] if empty else ""
        edited = text[:at] + between.join([behind, *_lines(inner, wanted, "  ")]) + text[end:]
    return _proven(edited, {**(_load(text) or {}), outer: _with(text, outer, inner, wanted)}, keys)


def remove(text: str, keys: Sequence[str]) -> str:
    """Take the mapping under a key of a key out; without it the text stays as it is.

    Raises:
        Refused: see `put`.
    """
    outer, inner = keys
    if entry(text, keys) is None:
        return text
    name, parent = _pair(_root(text), outer)  # type: ignore[misc]  # it is there
    pairs = list(_pairs(parent))
    key, node = next(each for each in pairs if each[0].value == inner)
    start, end = key.start_mark.index - key.start_mark.column, _end(text, node)
    edited = text[:start].removesuffix("\n").removesuffix("\r") + text[end:]
    if len(pairs) == 1:
        at = text.index(":", name.end_mark.index) + 1
        edited = f"{edited[:at]} {{}}{edited[at:]}"
    return _proven(edited, {**_load(text), outer: _with(text, outer, inner, None)}, keys)


def _with(text: str, outer: str, inner: str, value: Any) -> dict[str, Any]:
    """Return what is to be under the outer key; without the inner one for None."""
    left = {key: old for key, old in (entry(text, [outer]) or {}).items() if key != inner}
    return left if value is None else {**left, inner: value}


def _root(text: str) -> yaml.Node | None:
    import yaml  # noqa: PLC0415 (one client's file is YAML)

    return yaml.compose(text, yaml.SafeLoader)


def _pairs(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    import yaml  # noqa: PLC0415 (see `_root`)

    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _pair(root: yaml.Node | None, name: str) -> tuple[yaml.Node, yaml.Node] | None:
    return next((each for each in _pairs(root) if each[0].value == name), None)


def _end(text: str, node: yaml.Node) -> int:
    """Return the end of a value's last line, with the comment that stands on it."""
    end = node.end_mark.index
    if text[end - 1 : end] in "}]":
        return end_of_line(text, end)
    return end_of_block(text, 0, end)  # a block ends where the next thing begins


def _lines(name: str, value: Any, margin: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield f"{margin}{_scalar(name)}:"
        for key, inner in value.items():
            yield from _lines(key, inner, margin + "  ")
    else:
        yield f"{margin}{_scalar(name)}: {_value(value)}"


def _value(value: Any) -> str:
    """Write a value in one line: JSON's are YAML's too, and simple words stand for themselves."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _scalar(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and _load(text) == text
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _updated(current: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    updated = dict(current)
    for name, new in value.items():
        old = current.get(name) or {}
        if isinstance(new, Mapping) and not isinstance(old, Mapping):
            raise _no_mapping([name])
        updated[name] = {**old, **new} if isinstance(new, Mapping) else new
    return updated


def _no_mapping(keys: Sequence[str]) -> Refused:
    return Refused(0, f"{'.'.join(keys) or 'the text'} should be a mapping")


def _proven(edited: str, expected: Any, keys: Sequence[str]) -> str:
    """Return the edited text if it says what it should.

    Raises:
        Refused: it does not; the layout was one that the splicing does not know.
    """
    try:
        found = _load(edited)
    except Refused:
        found = None
    if found != expected:
        name = ".".join(keys)
        raise Refused(0, f"{name} can be edited safely only on lines of its own; edit it by hand")
    return edited


@lru_cache(maxsize=2)  # what is there, and what it becomes; nobody changes a value in it
def _load(text: str) -> Any:
    import yaml  # noqa: PLC0415 (see `_root`)

    try:
        return yaml.safe_load(text.removeprefix(BOM))
    except RecursionError:
        raise Refused(0, "its values are nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it is no YAML that can be edited"
        raise Refused(mark.index if mark else 0, str(reason)) from None
