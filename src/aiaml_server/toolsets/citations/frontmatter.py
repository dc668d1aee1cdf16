"""Reads the YAML that people write above a memory, with the place of every value in the text.

A subset, on the standard library alone: maps and lists by indentation, plain and quoted scalars,
`[lists]` and `{maps}` on one line, comments. Anything else is handed to PyYAML where that is
installed, and refused otherwise; nothing is guessed. Dates and times stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiaml_server.toolsets.citations.failures import MalformedMemory
from aiaml_server.toolsets.citations.foreign import read_foreign
from aiaml_server.toolsets.citations.nodes import MOST_DIGITS, Node, Part


class Document(NamedTuple):
    """A text with frontmatter.

    Attributes:
        text: all of it.
        root: the map in the frontmatter.
        end: the offset of the line that closes the frontmatter.
        body: the offset behind that line.
    """

    text: str
    root: Node
    end: int
    body: int


_OPENS = re.compile(r"\ufeff?---[ \t]*(?:\r?\n)")
_CLOSES = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
UNREADABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\r(?!\n)"
)


def read(text: str) -> Document:
    """Read a text that begins with frontmatter.

    Raises:
        MalformedMemory: there is none, or it cannot be read; the sentence has the line.
    """
    opening = _OPENS.match(text)
    if not opening:
        raise MalformedMemory("line 1 must be ---, which opens the frontmatter")
    closing = _CLOSES.search(text, opening.end())
    if not closing:
        raise MalformedMemory("the frontmatter that line 1 opens is never closed by a line ---")
    root = read_map(text, opening.end(), closing.start(), 2)
    return Document(text, root, closing.start(), closing.end())


def read_map(text: str, start: int = 0, end: int | None = None, line: int = 1) -> Node:
    """Read a map between two offsets, of which the first is on a line with the given number.

    Raises:
        MalformedMemory: it cannot be read, or is no map; the sentence has the line.
    """
    end = len(text) if end is None else end
    try:
        root = _Reader(text, start, end, line).root()
    except Unknown as unknown:
        root = read_foreign(text, start, end, line, str(unknown))
    except RecursionError:
        raise MalformedMemory("its values are nested too deeply") from None
    if not isinstance(root.value, dict):
        raise MalformedMemory(f"line {root.line} must be a map, as in 'key: value'")
    return root


class Unknown(Exception):  # noqa: N818 (no error yet: PyYAML may know it)
    """What this reader does not take."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line} {what}")


class _Line(NamedTuple):
    number: int
    start: int  # offset of the first character
    indent: int
    text: str  # without indentation and line end; never empty, never a comment
    end: int  # offset behind the line's end


class _Reader:
    """Reads lines, from the first to the last."""

    def __init__(self, text: str, start: int, end: int, number: int) -> None:
        self._text, self._start, self._end, self._number = text, start, end, number
        if found := UNREADABLE.search(text, start, end):
            line = number + text.count("\n", start, found.start())
            raise Unknown(
                line, f"holds the character U+{ord(found[0]):04X}; write it as an escape in quotes"
            )
        self._lines = list(self._split())
        self._at = 0

    def root(self) -> Node:
        if not self._lines:
            return Node({}, "block", self._number, self._start, self._end)
        root = self._block(self._lines[0].indent)
        if self._at < len(self._lines):
            raise Unknown(self._lines[self._at].number, "is indented less than those before it")
        return root

    def _split(self) -> Iterator[_Line]:
        at, number = self._start, self._number
        for raw in self._text[self._start : self._end].split("\n"):
            line = raw.removesuffix("\r")
            text = line.lstrip(" ")
            behind = at + len(raw) + 1
            if text and text[0] not in "#\t":
                yield _Line(number, at, len(line) - len(text), text, min(behind, self._end))
            elif text.lstrip("\t")[:1] not in ("", "#"):
                raise Unknown(number, "is indented by a tab; use spaces")
            at = behind
            number += 1

    def _next(self) -> _Line | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    # --- blocks ---------------------------------------------------------------------------------

    def _block(self, indent: int) -> Node:
        line = self._lines[self._at]
        if _is_item(line.text):
            return self._list(indent)
        return self._map(indent, line.start)

    def _list(self, indent: int) -> Node:
        first = self._lines[self._at]
        items: list[Part] = []
        while (line := self._next()) and line.indent == indent and _is_item(line.text):
            rest = line.text[1:].lstrip(" ")
            column = indent + len(line.text) - len(rest)
            self._at += 1
            if rest[:1] in ("", "#"):
                node = self._below(line, indent + 1, indent + 1)
            elif _is_item(rest) or rest[0] == "\t":
                raise Unknown(line.number, "is a list directly in a list")
            elif _USUAL_KEY.match(rest) or _KEY.match(rest):  # a map that begins beside the dash
                self._at -= 1
                self._lines[self._at] = line._replace(indent=column, text=rest)
                node = self._map(column, line.start + column)
            else:
                node = self._inline(line, line.start + column)
            items.append(Part(line.start, self._lines[self._at - 1].end, indent, node))
        self._check_indent(indent)
        return Node(
            [each.node.value for each in items],
            "block",
            first.number,
            first.start,
            items[-1].end,
            items=items,
        )

    def _map(self, indent: int, start: int) -> Node:
        first = self._lines[self._at]
        entries: dict[str, Part] = {}
        while (line := self._next()) and line.indent == indent and not _is_item(line.text):
            found = _USUAL_KEY.match(line.text) or _KEY.match(line.text)
            if not found:
                raise Unknown(line.number, "is no 'key: value'")
            key = self._key(found["key"].rstrip(" \t"), line.number)
            if key in entries:
                raise MalformedMemory(f"line {line.number} has the key {key!r} once more")
            self._at += 1
            rest = line.text[found.end() :]
            if rest[:1] in ("", "#"):
                node = self._below(line, indent, indent + found.end())
            else:
                node = self._inline(line, line.start + indent + found.end())
            where = line.start if entries else start
            entries[key] = Part(where, self._lines[self._at - 1].end, indent, node)
        self._check_indent(indent)
        value = {key: each.node.value for key, each in entries.items()}
        return Node(
            value, "block", first.number, start, self._lines[self._at - 1].end, entries=entries
        )

    def _key(self, written: str, line: int) -> str:
        if written[0] in "'\"":
            text, end = _quoted(written, 0, line)
            if end != len(written):
                raise Unknown(line, "is no 'key: value'")
            return text
        if not isinstance(resolved(written, line), str) or written == "<<":
            raise Unknown(line, f"has the key {written}, which is no text; put it in quotes")
        return written

    def _below(self, line: _Line, least: int, column: int) -> Node:
        """Read what stands below a key or a dash with nothing beside it.

        Lists may stand at `least`, where the key does; else it is deeper, or nothing.
        """
        follows = self._next()
        if follows and (
            follows.indent > least
            or (follows.indent == least and _is_item(follows.text) != _is_item(line.text))
        ):
            return self._block(follows.indent)
        at = line.start + column
        return Node(None, "scalar", line.number, at, at)

    def _check_indent(self, indent: int) -> None:
        if (line := self._next()) and line.indent > indent:
            raise Unknown(line.number, "is indented more than those before it")

    # --- on one line ----------------------------------------------------------------------------

    def _inline(self, line: _Line, start: int) -> Node:
        text = line.text[start - line.start - line.indent :]
        node, end = _value(text, 0, line.number, start, in_flow=False)
        rest = text[end:].strip(" \t")
        if rest and not (rest[0] == "#" and text[end] in " \t"):
            raise Unknown(line.number, f"goes on after its value with {rest[:20]!r}")
        follows = self._next()
        if follows and follows.indent > line.indent:
            raise Unknown(
                follows.number, "goes on with the value of the line before; put it on one line"
            )
        return node


_KEY = re.compile(
    r"""(?P<key>(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*"""
    r"""|(?![-?:][ \t]|[\[\]{},#&*!|>'"%@`])(?:(?![ \t]\#|:[ \t]|:$).)+):(?:[ \t]+|$)""",
    re.VERBOSE,
)
_USUAL_KEY = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_]*):(?:[ \t]+|$)")
_SINGLE = re.compile(r"'((?:[^']|'')*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": chr(27), " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_PLAIN = re.compile(r"(?:[^ \t:]+|:(?![ \t]|$)|[ \t](?!#))+")
_PLAIN_IN_FLOW = re.compile(r"(?:[^ \t:,\[\]{}]+|:(?![ \t,\[\]{}]|$)|[ \t](?!#))+")
_INDICATES = re.compile(r"[-?:](?=[ \t,\[\]{}]|$)")
_NOT_FIRST = "[]{},#&*!|>'\"%@`"
WORDS: dict[str, bool | None] = {"": None, "~": None}
for _word, _means in (
    ("null", None),
    *((w, True) for w in ("yes", "true", "on")),
    *((w, False) for w in ("no", "false", "off")),
):
    WORDS |= dict.fromkeys((_word, _word.capitalize(), _word.upper()), _means)
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?")
_OTHER_NUMBER = re.compile(
    r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?[0-9][0-9_]*|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*"
    r"|[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)


def _is_item(text: str) -> bool:
    return text[:1] == "-" and text[1:2] in ("", " ", "\t", "\r", "\n")


def _value(text: str, at: int, line: int, base: int, *, in_flow: bool) -> tuple[Node, int]:
    """Read the value that begins at `at`; return it, and where it ends."""
    first = text[at : at + 1]
    if first in "[{" and first:
        return _flow(text, at, line, base)
    if first and first in "'\"":
        value, end = _quoted(text, at, line)
        return Node(value, "scalar", line, base + at, base + end), end
    if not first or first in _NOT_FIRST or (first in "-?:" and _INDICATES.match(text, at)):
        raise Unknown(
            line, f"has the value {text[at : at + 20]!r}; write it in quotes, on one line"
        )
    found = (_PLAIN_IN_FLOW if in_flow else _PLAIN).match(text, at)
    assert found  # noqa: S101 (its first character may be one)
    written = found[0].rstrip(" \t")
    end = at + len(written)
    value = resolved(written, line)
    return Node(value, "scalar", line, base + at, base + end, written), end


def _flow(text: str, at: int, line: int, base: int) -> tuple[Node, int]:
    """Read a `[list]` or a `{map}`."""
    start, closing = at, "]" if text[at] == "[" else "}"
    items: list[Part] = []
    entries: dict[str, Part] = {}
    at = _skip(text, at + 1)
    while text[at : at + 1] != closing:
        begin, key = at, None
        if closing == "}":
            named, at = _value(text, at, line, base, in_flow=True)
            key = named.value
            at = _skip(text, at)
            if not isinstance(key, str) or key in entries or not re.match(r":[ \t]", text[at:]):
                raise Unknown(line, "has a map in {} that is not {key: value}")
            at = _skip(text, at + 1)
        node, at = _value(text, at, line, base, in_flow=True)
        part = Part(base + begin, base + at, 0, node)
        if key is None:
            items.append(part)
        else:
            entries[key] = part
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise Unknown(line, f"has a {text[start]} that is not closed on it")
    value: Any = {key: each.node.value for key, each in entries.items()}
    if closing == "]":
        value = [each.node.value for each in items]
    return Node(value, "flow", line, base + start, base + at + 1, "", entries, items), at + 1


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _quoted(text: str, at: int, line: int) -> tuple[str, int]:
    """Read a quoted scalar; return what it says, and where it ends."""
    single = text[at] == "'"
    found = _SINGLE.match(text, at) if single else _DOUBLE.match(text, at)
    if not found:
        raise Unknown(line, "has a quotation that is not closed on it")
    if single:
        return found[1].replace("''", "'"), found.end()

    def meant(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) > 1:
            if int(code[1:], 16) > 0x10FFFF:
                raise Unknown(line, f"has the escape {escape[0]}, which is no character")
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise Unknown(line, f"has the escape {escape[0]}, which YAML does not know")
        return _ESCAPES[code]

    said = _ESCAPE.sub(meant, found[1])
    if not said.isascii():  # two halves of a surrogate pair, as JSON has them, are one character
        said = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return said, found.end()


def resolved(written: str, line: int) -> Any:
    """Return what a plain scalar means."""
    if written in WORDS:
        return WORDS[written]
    if written[0].isalpha():
        return written
    if _INT.fullmatch(written):
        if len(written) > MOST_DIGITS:
            raise MalformedMemory(
                f"line {line} has a number of {len(written):,} digits; put it in quotes"
            )
        return int(written)
    if _FLOAT.fullmatch(written):
        return float(written)
    if _OTHER_NUMBER.fullmatch(written):
        raise Unknown(
            line,
            f"has the number {written[:40]}, which not all readers take for the same;"
            " put it in quotes",
        )
    if written in ("=", "<<"):
        raise Unknown(line, f"has the value {written}; put it in quotes")
    return written
