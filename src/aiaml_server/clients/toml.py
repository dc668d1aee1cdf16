"""TOML, edited in place: only the table that is named changes, every other byte stays.

The table is written anew as a whole; what cannot be edited so is refused. The standard library
reads TOML and says whether it is right; this module only finds where tables begin and end, and what
it wrote is read again before it is given out. (The library that edits TOML, tomlkit 0.13, mixes
line ends, loses comments behind a removed table, and puts a new one between dotted keys, where it
swallows the next key.)
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from aiaml_server.clients.text import (
    BOM,
    Edit,
    Refused,
    end_of_block,
    end_of_line,
    end_of_words,
    newline,
    splice,
)

MOST = 128 * 1024  # bytes of a file; it is parsed several times, a MiB in some 2 s
_DEEP = re.compile(r"(?<![\w.-])(?:[\w-]{1,200}[ \t]{0,20}\.[ \t]{0,20}){100}")
_HEADER = re.compile(rf"^{BOM}?[ \t]*(\[[^\r\n]*)", re.MULTILINE)


class _Table(NamedTuple):
    """A `[table]` with what is in it: `text[start:end]`, without the comments that follow it."""

    path: tuple[str, ...]
    start: int
    end: int


class _Number(NamedTuple):
    """A number with a fraction, as it is written, so that any two may be compared."""

    text: str


def entry(text: str, keys: Sequence[str]) -> Any:
    """Return the value under nested keys, None where there is none.

    Raises:
        Refused: the text cannot be read, or something on the way is no table.
    """
    value: Any = _whole(text)
    for depth, key in enumerate(keys):
        if not isinstance(value, dict):
            raise _no_table(text, keys[:depth])
        value = value.get(key)
        if value is None:
            return None
    return value


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Bring the table under nested keys up to date; what it has besides `value` stays.

    The table is written anew, if anything in it changes: comments in it go.

    Raises:
        Refused: see `entry`; or the table is written in a way that cannot be edited in place.
    """
    current = entry(text, keys)
    if not isinstance(current, (dict, type(None))):
        raise _no_table(text, keys)
    wanted = _updated(text, current or {}, value)
    if wanted == current:
        return text
    between = newline(text)
    pairs = (f"{_name(name)} = {_value(inner)}" for name, inner in wanted.items())
    block = between.join([f"[{'.'.join(map(_name, keys))}]", *pairs])
    if current is None:
        end = end_of_line(text, end_of_words(text, len(text)))
        before = between * 2 if text[:end].removeprefix(BOM) else ""
        edited = text[:end] + before + block + (text[end:] or ("" if before else between))
    else:
        (start, end), *others = _runs(text, keys) or [(0, 0)]
        edited = splice(text, [Edit(start, end, block), *(_removal(text, *run) for run in others)])
    return _proven(text, edited, _nested(_whole(text), keys, wanted), keys)


def remove(text: str, keys: Sequence[str]) -> str:
    """Take the table out, with the tables in it; without it the text stays as it is.

    Raises:
        Refused: see `put`.
    """
    if entry(text, keys) is None:
        return text
    edited = splice(text, [_removal(text, *run) for run in _runs(text, keys)])
    return _proven(text, edited, _nested(_whole(text), keys, None), keys)


def _runs(text: str, keys: Sequence[str]) -> list[tuple[int, int]]:
    """Find where a table and the tables in it are: as a rule, they stand together."""
    ours = groupby(_tables(text), key=lambda table: table.path[: len(keys)] == tuple(keys))
    runs = [list(tables) for mine, tables in ours if mine]
    return [(run[0].start, run[-1].end) for run in runs]


def _tables(text: str) -> list[_Table]:
    """Find the tables of a text that is right.

    A line in brackets begins one where what stands before it can be read by itself: inside a list
    or a text of several lines it cannot.
    """
    headers: list[re.Match[str]] = []
    begun = 0
    for found in _HEADER.finditer(text):
        try:
            _load(text[begun : found.start()])
        except Refused:
            continue
        headers.append(found)
        begun = found.start()
    ends = [*(header.start() for header in headers[1:]), len(text)]
    return [
        _Table(_path(header[1]), header.start(1), end_of_block(text, header.start(1), end))
        for header, end in zip(headers, ends, strict=True)
    ]


def _path(header: str) -> tuple[str, ...]:
    names: list[str] = []
    value: Any = _load(header)
    while value:
        value = value[0] if isinstance(value, list) else value
        for name, inner in value.items():
            names.append(name)
            value = inner
    return tuple(names)


def _removal(text: str, start: int, end: int) -> Edit:
    """Take lines out with the blank line before them, or after them at the text's beginning."""
    start = text.rfind("\n", 0, start) + 1
    if start:
        return Edit(len(re.sub(r"(?:\r?\n){1,2}\Z", "", text[:start])), end, "")
    return Edit(len(BOM) * text.startswith(BOM), len(text) - len(text[end:].lstrip("\r\n")), "")


def _no_table(text: str, keys: Sequence[str]) -> Refused:
    return Refused(_place(text, keys), f"{'.'.join(keys)} should be a table")


def _place(text: str, keys: Sequence[str]) -> int:
    """Return where something seems to be defined: the first line that names it before a value."""
    at = 0
    for line in text.split("\n"):
        if keys[-1] in re.split("[=#]", line, maxsplit=1)[0]:
            return at
        at += len(line) + 1
    return 0


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Write a value in one line. JSON's strings and whole numbers are TOML's too."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_name(name)} = {_value(inner)}" for name, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, _Number):
        return value.text
    if hasattr(value, "isoformat"):  # a date, a time or both
        return str(value.isoformat())
    return json.dumps(value, ensure_ascii=False)


def _updated(text: str, current: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    updated = dict(current)
    for name, new in value.items():
        old = current.get(name, {})
        if isinstance(new, Mapping) and not isinstance(old, Mapping):
            raise _no_table(text, [name])
        updated[name] = {**old, **new} if isinstance(new, Mapping) else new
    return updated


def _nested(document: Mapping[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the document with another value under the keys; without them for None."""
    name, *deeper = keys
    inner = _nested(document.get(name, {}), deeper, value) if deeper else value
    left = {key: old for key, old in document.items() if key != name}
    return {**left, name: inner} if inner else left


def _proven(text: str, edited: str, expected: Any, keys: Sequence[str]) -> str:
    """Return the edited text if it says what it should.

    Raises:
        Refused: it does not; the layout was one that the splicing does not know.
    """
    try:
        found = _load(edited)
    except Refused:
        found = {}
    if not found.get(keys[0]):
        found.pop(keys[0], None)
    if found != expected:
        name = ".".join(keys)
        place = _place(text, keys) or _place(text, keys[:-1])
        raise Refused(
            place, f"{name} can be edited safely only as a [{name}] table; edit the file by hand"
        )
    return edited


def _load(text: str) -> dict[str, Any]:
    if deep := _DEEP.search(text):
        raise Refused(deep.start(), "this name has more than 100 parts")
    try:
        if sys.version_info >= (3, 11):
            import tomllib  # noqa: PLC0415 (only Codex's file is TOML)
        else:
            import tomli as tomllib  # noqa: PLC0415
        return tomllib.loads(text.removeprefix(BOM), parse_float=_Number)
    except RecursionError:
        raise Refused(0, "its values are nested too deeply") from None
    except ValueError as error:
        reason, where = str(error), re.search(r" \(at line (\d+), column (\d+)\)", str(error))
        offset = _offset(text, int(where[1]), int(where[2])) if where else len(text)
        raise Refused(offset, re.sub(r" \(at [^()]*\)$", "", reason).lower()) from None


@lru_cache(maxsize=1)
def _whole(text: str) -> Mapping[str, Any]:
    """Return what a whole file says, which is asked for several times."""
    return _load(text)


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1 + (len(BOM) if line == 1 and text.startswith(BOM) else 0)
