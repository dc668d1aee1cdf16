"""A markdown document as headings, as markdown-it finds them, and the bytes between them.

Every change is an insertion or replaces one section's body: the bytes around it never change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt

_PARSER = MarkdownIt("commonmark")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT_LINE_END = re.compile(_LINE_END.pattern.decode())
_RAW_HEADING = re.compile(r"<h[12][\s>/]", re.IGNORECASE)
_SENTINEL = "aiaml-end-of-content"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Heading(NamedTuple):
    """A heading of level 1 or 2 that stands in no list or quotation.

    Attributes:
        level: 1 or 2.
        text: what it says.
        start: the offset of its first byte.
        end: the offset behind its last line's end.
        line: its line's number, from 1.
    """

    level: int
    text: str
    start: int
    end: int
    line: int


def parse_headings(text: str) -> Iterator[tuple[int, str, int, int]]:
    """Yield level, text, first line and the line behind of each heading that begins a section."""
    tokens = _PARSER.parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and not token.level and token.tag in ("h1", "h2"):
            assert token.map  # noqa: S101 (block tokens have one)
            first, behind = token.map
            yield int(token.tag[1]), inline.content.strip(), first, behind


@dataclass(frozen=True)
class Document:
    """The bytes of a markdown file.

    Attributes:
        data: all of it.
    """

    data: bytes

    @cached_property
    def text(self) -> str:
        """What it says.

        Raises:
            UnicodeDecodeError: it is no UTF-8.
        """
        return self.data.decode("utf-8")

    @cached_property
    def _lines(self) -> list[int]:
        """The offset of each line's first byte, and of the end."""
        starts = [0, *(match.end() for match in _LINE_END.finditer(self.data))]
        return starts if starts[-1] == len(self.data) else [*starts, len(self.data)]

    @cached_property
    def _parsed(self) -> tuple[list[Heading], int]:
        """The headings of level 1 and 2, and what `open_block` returns: one parse tells both."""
        text = self.text.removeprefix("\ufeff")
        found = list(parse_headings(f"{text}\n\n## {_SENTINEL}\n"))
        closed = bool(found) and found[-1][1] == _SENTINEL
        headings = [
            Heading(level, text, self._lines[first], self._lines[behind], first + 1)
            for level, text, first, behind in (found[:-1] if closed else found)
        ]
        return headings, 0 if closed else _open_block(text)

    @property
    def headings(self) -> list[Heading]:
        """Every heading of level 1 or 2, in order."""
        return self._parsed[0]

    @property
    def sections(self) -> list[Heading]:
        """Every heading of level 2."""
        return [each for each in self.headings if each.level == 2]

    def find(self, name: str) -> Heading | None:
        """Return the heading of a section."""
        return next((each for each in self.sections if each.text == name), None)

    def line_at(self, offset: int) -> int:
        """Return the number of the line that begins at an offset."""
        return self._lines.index(offset) + 1

    def body(self, section: Heading) -> tuple[int, int]:
        """Return where a section's body begins and ends."""
        behind = [each.start for each in self.headings if each.start > section.start]
        return section.end, min(behind, default=len(self.data))

    def _body_of(self, name: str) -> tuple[int, int]:
        heading = self.find(name)
        assert heading  # noqa: S101 (it was there, or has been put in)
        return self.body(heading)

    @cached_property
    def newline(self) -> bytes:
        """The line end that the document uses."""
        first = _LINE_END.search(self.data)
        return first[0] if first else b"\n"

    @property
    def open_block(self) -> int:
        """The line on which a code fence or HTML begins that is never closed; else 0.

        What is appended behind it would not be what it looks like.
        """
        return self._parsed[1]

    def appended(self, section: str, content: str) -> Document:
        """Return the document with `content` behind what a section holds; all else stays."""
        start, end = self._body_of(section)
        body = self.data[start:end]
        kept = start + len(body.rstrip(b" \t\r\n"))
        if kept > start:  # behind the last line that says something
            match = _LINE_END.search(self.data, kept, end)
            at = match.end() if match else end
        else:
            at = start
        return self._inserted(at, content)

    def replaced(self, section: str, content: str) -> Document:
        """Return the document with `content` for what a section held."""
        start, end = self._body_of(section)
        return self._inserted(start, content, end)

    def with_section(self, name: str, order: list[str]) -> Document:
        """Return the document with an empty section `name`, where `order` has it."""
        later = order[order.index(name) + 1 :]
        at = min((each.start for each in self.sections if each.text in later), default=None)
        line = b"## " + name.encode() + self.newline
        if at is None:
            gap = self._gap(len(self.data))
            return Document(self.data + gap + line)
        return Document(self.data[:at] + line + self.newline + self.data[at:])

    def _inserted(self, at: int, content: str, behind: int = -1) -> Document:
        """Put content at an offset, instead of what stands there up to `behind`."""
        data = content.encode("utf-8")
        if not data.endswith((b"\n", b"\r")):
            data += self.newline
        rest = self.data[max(at, behind) :]
        if rest and not _LINE_END.match(rest.lstrip(b" \t")):
            data += self.newline
        return Document(self.data[:at] + self._gap(at) + data + rest)

    def _gap(self, at: int) -> bytes:
        """Return what makes the line before an offset end, and an empty line follow."""
        before = self.data[:at]
        if not before:
            return b""
        return self.newline if before.endswith((b"\n", b"\r")) else self.newline * 2


def controls(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a control character that no content may, and its code point."""
    for line, part in enumerate(_TEXT_LINE_END.split(text), 1):
        if found := _CONTROL.search(part):
            yield line, f"U+{ord(found[0]):04X}"


def objection(content: str) -> str:
    """Return why a content cannot stand in a section; empty if it can."""
    if not content.strip():
        return "it is empty"
    for line, name in controls(content):
        return f"line {line} holds the control character {name}"
    found = list(parse_headings(f"{content}\n\n## {_SENTINEL}\n"))
    for level, text, first, _ in found:
        if text != _SENTINEL:
            return (
                f"line {first + 1} is a heading of level {level}, which would begin a section of "
                "its own; use ### or deeper"
            )
    if not found:
        return (
            f"line {_open_block(content)} opens a code fence or HTML that is not closed; close it"
        )
    for token in _PARSER.parse(content):
        raw = token.type == "html_block" or any(
            child.type == "html_inline" for child in token.children or ()
        )
        if raw and _RAW_HEADING.search(token.content):
            line = (token.map or [0])[0] + 1
            return f"line {line} is a heading in HTML, which would begin a section; use ### instead"
    return ""


def _open_block(text: str) -> int:
    """Return the number of the line on which the block begins that the text ends in."""
    blocks = [token for token in _PARSER.parse(text) if token.map and not token.level]
    return (blocks[-1].map or [0])[0] + 1 if blocks else 1
