"""A markdown document as headings and the bytes between them.

Every change is an insertion or replaces one section's body: the bytes around it never change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from markdown_it import MarkdownIt

from aiaml_server.format.invisible import INVISIBLE, invisible_in
from aiaml_server.toolsets.sessions.blocks import Heading, headings

_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT_LINE_END = re.compile(_LINE_END.pattern.decode())
_RAW_HEADING = re.compile(r"<h[12][\s>/]", re.IGNORECASE)
_MOST_WITH_HTML = 16 * 1024  # characters; such a content is parsed, which takes long
_UNSEEN = re.compile(f"[{INVISIBLE}]")


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
    def _found(self) -> list[Heading]:
        return list(headings(self.data))

    @property
    def headings(self) -> list[Heading]:
        """Every heading of level 1 or 2, in order."""
        return [each for each in self._found if each.level]

    @property
    def problem(self) -> Heading | None:
        """The line behind which headings cannot be told, where there is one.

        What is appended behind it would not be what it looks like.
        """
        return self._found[-1] if self._found and not self._found[-1].level else None

    @property
    def sections(self) -> list[Heading]:
        """Every heading of level 2."""
        return [each for each in self.headings if each.level == 2]

    def find(self, name: str) -> Heading | None:
        """Return the heading of a section."""
        return next((each for each in self.sections if each.text == name), None)

    def line_at(self, offset: int) -> int:
        """Return the number of the line that begins at an offset."""
        return len(_LINE_END.findall(self.data, 0, offset)) + 1

    def body(self, section: Heading) -> tuple[int, int]:
        """Return where a section's body begins and ends."""
        behind = [each.start for each in self.headings if each.start > section.start]
        return section.end, min(behind, default=len(self.data))

    def entries(self, name: str) -> bytes:
        """Return what a section holds, without white space around it; empty without it."""
        section = self.find(name)
        return self.data[slice(*self.body(section))].strip() if section else b""

    def _body_of(self, name: str) -> tuple[int, int]:
        heading = self.find(name)
        assert heading  # noqa: S101 (it was there, or has been put in)
        return self.body(heading)

    @cached_property
    def newline(self) -> bytes:
        """The line end that the document uses."""
        first = _LINE_END.search(self.data)
        return first[0] if first else b"\n"

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
        if not content.strip():
            gap = self.newline if end < len(self.data) else b""
            return Document(self.data[:start] + gap + self.data[end:])
        return self._inserted(start, content, end)

    def with_section(self, name: str, order: list[str]) -> Document:
        """Return the document with a section `name`: a new one is empty, where `order` has it."""
        if self.find(name):
            return self
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
        if not data.endswith((b"\n", self.newline)):
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
        return self.newline if before.endswith((b"\n", self.newline)) else self.newline * 2


def unseen(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold characters that nobody sees, which no content may, and which."""
    if not _UNSEEN.search(text):
        return
    for line, part in enumerate(_TEXT_LINE_END.split(text), 1):
        if names := ", ".join(invisible_in(part)):
            yield line, f"holds {names}, which nobody sees; take it out"


def objection(content: str) -> str:
    """Return why a content cannot stand in a section; empty if it can."""
    if not content.strip():
        return "it is empty"
    for line, what in unseen(content):
        return f"line {line} {what}"
    for found in headings(content.encode("utf-8", "replace")):
        if not found.level:
            return f"line {found.line} {found.text}"
        return (
            f"line {found.line} is a heading of level {found.level}, which would begin a section "
            "of its own; use ### or deeper"
        )
    return _heading_in_html(content)


def _heading_in_html(content: str) -> str:
    """Return where a content has a heading of level 1 or 2 in HTML that is no code."""
    found = _RAW_HEADING.search(content)
    if not found:
        return ""
    if len(content) > _MOST_WITH_HTML:
        line = len(_TEXT_LINE_END.findall(content, 0, found.start())) + 1
        most = f"{_MOST_WITH_HTML:,} characters"
        return f"line {line} holds {found[0]!r}, which only a content of at most {most} may"
    for token in MarkdownIt("commonmark").parse(content):
        raw = token.type == "html_block" or any(
            child.type == "html_inline" for child in token.children or ()
        )
        if raw and _RAW_HEADING.search(token.content):
            line = (token.map or [0])[0] + 1
            return f"line {line} is a heading in HTML, which would begin a section; use ### instead"
    return ""
