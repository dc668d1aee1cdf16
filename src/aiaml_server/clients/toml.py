"""TOML, edited in place: only the table that is named changes, every other byte stays.

The standard library reads TOML and says whether it is right; this module only finds where
statements begin and end. What it cannot place it refuses, and what it wrote is read again before it
is given out. (The library that edits TOML, tomlkit 0.13, mixes line ends, loses comments behind a
removed table, and puts a new one between dotted keys, where it swallows the next key.)
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .text import BOM, Edit, Refused, end_of_words, indentation, newline, splice

_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"|'[^'\r\n]*')"""
_PART = re.compile(rf"[ \t.]*({_NAME})")
_DOTTED = rf"({_NAME}(?:[ \t]*\.[ \t]*{_NAME})*)"
_HEADER = re.compile(rf"\[\[?[ \t]*{_DOTTED}[ \t]*\]\]?")
_PAIR = re.compile(rf"{_DOTTED}[ \t]*=[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""{1,3}(?!")|'  # `\"\"\"` may hold two more quotes at its end
    r"'''.*?'''{1,3}(?!')|"
    r'"(?:\\.|[^"\\\r\n])*"|'
    r"'[^'\r\n]*'|#[^\r\n]*|[\r\n]+|[\[{]|[\]}]|[^\"'#\r\n\[\]{}]+",
    re.DOTALL,
)


class Statement(NamedTuple):
    """A `[table]` or a `key = value`, and where it stands.

    Attributes:
        path: the full name of what it defines.
        table: the name of the table that it is in; its own for a `[table]`.
        value: where the value begins; `end` for a `[table]`.
    """

    path: tuple[str, ...]
    table: tuple[str, ...]
    start: int
    value: int
    end: int

    @property
    def is_table(self) -> bool:
        """Whether it is a `[table]`."""
        return self.value == self.end


def entry(text: str, keys: Sequence[str]) -> Any:
    """Return the value under nested keys, None where there is none.

    Raises:
        Refused: the text cannot be read, or something on the way is no table.
    """
    value: Any = _load(text)
    for depth, key in enumerate(keys):
        if not isinstance(value, dict):
            name = ".".join(keys[:depth])
            raise Refused(_place(text, keys[:depth]), f"{name} should be a table")
        value = value.get(key)
        if value is None:
            return None
    return value


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Bring the table under nested keys up to date; what it has besides `value` stays.

    Raises:
        Refused: see `entry`; or the table is written in a way that cannot be edited in place.
    """
    current = entry(text, keys)
    if current is None:
        edited = _with_table(text, keys, value)
    elif isinstance(current, dict):
        edited = splice(text, list(_updates(text, tuple(keys), current, value)))
    else:
        raise Refused(_place(text, keys), f"{'.'.join(keys)} should be a table")
    expected = _nested(_load(text), keys, {**(current or {}), **_joined(current or {}, value)})
    return _proven(text, edited, expected, keys)


def remove(text: str, keys: Sequence[str]) -> str:
    """Take the table out, with the tables in it; without it the text stays as it is.

    Raises:
        Refused: see `put`.
    """
    if entry(text, keys) is None:
        return text
    edited = splice(text, list(_removals(text, tuple(keys))))
    return _proven(text, edited, _nested(_load(text), keys, None), keys)


def statements(text: str) -> Iterator[Statement]:
    """Find the statements of a text that is right."""
    at = len(BOM) if text.startswith(BOM) else 0
    table: tuple[str, ...] = ()
    while (at := _match(_BLANK, text, at).end()) < len(text):
        if text[at] == "[":
            found = _match(_HEADER, text, at)
            at, table = found.end(), _names(found[1])
            yield Statement(table, table, found.start(), at, at)
        else:
            found = _match(_PAIR, text, at)
            at = _end_of_value(text, found.end())
            path = (*table, *_names(found[1]))
            yield Statement(path, table, found.start(), found.end(), at)


def _match(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    found = pattern.match(text, at)
    if not found:
        raise Refused(at, "this cannot be edited safely; edit the file by hand")
    return found


def _end_of_value(text: str, at: int) -> int:
    depth, end = 0, at
    while at < len(text):
        token = _match(_TOKEN, text, at)
        if not depth and token[0][0] in "#\r\n":
            break
        depth += (token[0] in "[{") - (token[0] in "]}")
        at = token.end()
        end = at if token[0].strip() else end
    return end_of_words(text, end)


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(
        _loads(f"k = {name}")["k"] if name[0] in "\"'" else name for name in _split(dotted)
    )


def _split(dotted: str) -> list[str]:
    names, at = [], 0
    while found := _PART.match(dotted, at):
        names.append(found[1])
        at = found.end()
    return names


def _with_table(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Write the table behind everything else; the end of the text stays what it was."""
    for line in statements(text):
        if not line.is_table and line.path == tuple(keys[: len(line.path)]):
            inline = f"{'.'.join(line.path)} is written in one line, where nothing can be added"
            raise Refused(line.start, f"{inline}; write [{'.'.join(keys[:-1])}.NAME] tables")
    between = newline(text)
    end = _end_of_line(text, end_of_words(text, len(text)))
    pairs = [f"{_name(name)} = {_value(inner)}" for name, inner in value.items()]
    block = between.join([f"[{'.'.join(map(_name, keys))}]", *pairs])
    before = between * 2 if text[:end].removeprefix(BOM) else ""
    return text[:end] + before + block + (text[end:] or ("" if before else between))


def _updates(
    text: str, table: tuple[str, ...], current: Mapping[str, Any], value: Mapping[str, Any]
) -> Iterator[Edit]:
    """Find the edits of an existing table, whichever way the tables in it are written."""
    lines = list(statements(text))
    if not any(line.is_table and line.path == table for line in lines):
        raise Refused(
            _place(text, table),
            f"{'.'.join(table)} is not written as a [{'.'.join(table)}] table, the only form that "
            "can be edited in place; delete it and try again",
        )
    for name, new in value.items():
        old = current.get(name)
        written = next((line for line in lines if line.path == (*table, name)), None)
        if not isinstance(new, Mapping) or old is None:
            yield from _set(text, lines, table, (name,), old, new)
        elif not isinstance(old, Mapping):
            raise Refused(_place(text, (*table, name)), f"{name} should be a table")
        elif written and not written.is_table:
            yield from _set(text, lines, table, (name,), old, {**old, **new})
        else:
            inner = (*table, name) if written else table
            for key, deep in new.items():
                path = (key,) if written else (name, key)
                yield from _set(text, lines, inner, path, old.get(key), deep)


def _set(
    text: str,
    lines: Sequence[Statement],
    table: tuple[str, ...],
    path: tuple[str, ...],
    old: Any,
    new: Any,
) -> Iterator[Edit]:
    """Replace the value of a key, or add the key as its table's last."""
    if old == new:
        return
    mine = [line for line in lines if line.table == table]
    same = [line for line in mine if line.path == (*table, *path) and not line.is_table]
    if same:
        yield Edit(same[0].value, same[0].end, _value(new))
        return
    end = _end_of_line(text, mine[-1].end)
    pair = f"{'.'.join(map(_name, path))} = {_value(new)}"
    yield Edit(end, end, newline(text) + indentation(text, mine[0].start) + pair)


def _removals(text: str, table: tuple[str, ...]) -> Iterator[Edit]:
    """Find each run of lines that belong to the table, with the blank line before it."""
    lines = list(statements(text))
    runs: list[list[Statement]] = [[]]
    for line in lines:
        if line.path[: len(table)] == table:
            runs[-1].append(line)
        elif runs[-1]:
            runs.append([])
    for run in filter(None, runs):
        start = run[0].start - len(indentation(text, run[0].start))
        end = _end_of_line(text, run[-1].end)
        before = text[:start]
        if before.removeprefix(BOM):
            found = re.search(r"(?:\r?\n){0,2}\Z", before)
            yield Edit(found.start() if found else start, end, "")
        else:
            yield Edit(start, len(text) - len(text[end:].lstrip("\r\n")), "")


def _end_of_line(text: str, at: int) -> int:
    return _match(re.compile(r"[^\r\n]*"), text, at).end()


def _place(text: str, keys: Sequence[str]) -> int:
    """Return where something is defined, as near as can be said."""
    lines, wanted = list(statements(text)), tuple(keys)
    places = [line.start for line in lines if line.path[: len(wanted)] == wanted]
    places += [line.start for line in reversed(lines) if wanted[: len(line.path)] == line.path]
    return places[0] if places else 0


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Write a value in one line. JSON's strings, numbers and lists of strings are TOML's too."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_name(name)} = {_value(inner)}" for name, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return json.dumps(value, ensure_ascii=False)


def _joined(current: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {**(current.get(name) or {}), **new} if isinstance(new, Mapping) else new
        for name, new in value.items()
    }


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
        raise Refused(_place(text, keys), "this cannot be edited safely; edit the file by hand")
    return edited


def _load(text: str) -> dict[str, Any]:
    try:
        return _loads(text.removeprefix(BOM))
    except RecursionError:
        raise Refused(0, "its values are nested too deeply") from None
    except ValueError as error:
        reason, where = str(error), re.search(r" \(at line (\d+), column (\d+)\)", str(error))
        offset = _offset(text, int(where[1]), int(where[2])) if where else len(text)
        raise Refused(offset, re.sub(r" \(at [^()]*\)$", "", reason).lower()) from None


def _loads(text: str) -> dict[str, Any]:
    """Read TOML; a float stays text, so that any two may be compared."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 (only Codex's file is TOML)
    else:
        import tomli as tomllib  # noqa: PLC0415
    return tomllib.loads(text, parse_float=str)


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1 + (len(BOM) if line == 1 and text.startswith(BOM) else 0)
