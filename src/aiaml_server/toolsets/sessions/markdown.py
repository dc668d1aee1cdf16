"""A markdown file as sections: where each heading is, and how content is put into a section.

Every change inserts bytes, or replaces the body of one section. All other bytes stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from aiaml_server.format.invisible import invisible_in

_LINE_END = re.compile(rb"\r\n|\r|\n")
_CONFLICT_MARK = re.compile(rb"(?m)^(?:<{7}|>{7})(?: |\r?$)")
_PROBE = "end-of-the-document"
_parser = MarkdownIt("commonmark").disable(["inline"])


class Problem(NamedTuple):
    """Something that is wrong in a file.

    Attributes:
        line: counted from 1.
        text: what is wrong there.
    """

    line: int
    text: str


class Heading(NamedTuple):
    """A heading of level 1 or 2.

    Attributes:
        level: 1 or 2.
        text: without the marks.
        line: counted from 1.
        start: the offset of its first byte.
        end: the offset behind its last line.
    """

    level: int
    text: str
    line: int
    start: int
    end: int


@dataclass(frozen=True)
class Document:
    """The content of a markdown file."""

    data: bytes

    @cached_property
    def text(self) -> str:
        """The content as text.

        Raises:
            UnicodeDecodeError: it is not UTF-8.
        """
        return self.data.decode("utf-8")

    @cached_property
    def tokens(self) -> list[Token]:
        """The blocks of the document, and a heading that is only found if all blocks end."""
        text = self.data.decode("utf-8", "replace")
        return _parser.parse(f"{text}\n\n# {_PROBE}\n")

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset at which each line begins, and at last the length of the content."""
        ends = [match.end() for match in _LINE_END.finditer(self.data)]
        if not ends or ends[-1] < len(self.data):
            ends.append(len(self.data))
        return [0, *ends]

    @cached_property
    def headings(self) -> list[Heading]:
        """All headings of level 1 and 2 outside of lists, quotations and code."""
        headings = []
        for position, token in enumerate(self.tokens):
            if token.type != "heading_open" or token.level or token.tag not in ("h1", "h2"):
                continue
            first, last = token.map or (0, 0)
            text = self.tokens[position + 1].content
            if text == _PROBE and first + 1 >= len(self.line_starts):
                continue
            start, end = self._offset(first), self._offset(last)
            headings.append(Heading(int(token.tag[1]), text, first + 1, start, end))
        return headings

    @property
    def sections(self) -> list[Heading]:
        """The headings of level 2."""
        return [heading for heading in self.headings if heading.level == 2]

    def section(self, name: str) -> Heading | None:
        """Return the heading of a section."""
        return next((heading for heading in self.sections if heading.text == name), None)

    def body_range(self, heading: Heading) -> tuple[int, int]:
        """Return the offsets at which the body below a heading begins and ends."""
        later = [other.start for other in self.headings if other.start > heading.start]
        return heading.end, min(later, default=len(self.data))

    def body(self, name: str) -> bytes:
        """Return the body of a section without white space around it; empty if there is none."""
        if (heading := self.section(name)) is None:
            return b""
        start, end = self.body_range(heading)
        return self.data[start:end].strip()

    def line_at(self, offset: int) -> int:
        """Return the number of the line that contains an offset, counted from 1."""
        return len(_LINE_END.findall(self.data, 0, offset)) + 1

    @cached_property
    def newline(self) -> bytes:
        """The line end that the file uses."""
        match = _LINE_END.search(self.data)
        return match[0] if match else b"\n"

    def open_block(self) -> Problem | None:
        """Return the code fence or HTML that does not end: what follows would be part of it."""
        if any(token.content == _PROBE for token in self.tokens):
            return None
        blocks = [token.map[0] for token in self.tokens if token.level == 0 and token.map]
        return Problem(blocks[-1] + 1, "a code fence or HTML begins here and is not closed")

    def text_problems(self) -> list[Problem]:
        """Return where the file is not UTF-8, or has the marks of an unfinished merge."""
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            return [Problem(self.line_at(error.start), f"byte {error.start} is not UTF-8")]
        text = "this line is left of an unfinished merge; resolve the conflict"
        marks = _CONFLICT_MARK.finditer(self.data)
        return [Problem(self.line_at(match.start()), text) for match in marks]

    def append(self, section: str, content: str) -> Document:
        """Return the document with content after what a section holds."""
        start, end = self._range_of(section)
        used = start + len(self.data[start:end].rstrip())
        if used == start:
            return self._insert(start, start, content)
        match = _LINE_END.search(self.data, used, end)
        position = match.end() if match else end
        return self._insert(position, position, content)

    def replace(self, section: str, content: str) -> Document:
        """Return the document with content instead of what a section held."""
        start, end = self._range_of(section)
        if content.strip():
            return self._insert(start, end, content)
        gap = self.newline if end < len(self.data) else b""
        return Document(self.data[:start] + gap + self.data[end:])

    def with_section(self, name: str, order: list[str]) -> Document:
        """Return the document with an empty section at its place in `order`, if it has none."""
        if self.section(name):
            return self
        later = order[order.index(name) + 1 :]
        starts = [heading.start for heading in self.sections if heading.text in later]
        position = min(starts, default=len(self.data))
        before, after = self.data[:position], self.data[position:]
        line = b"## " + name.encode() + self.newline
        return Document(before + self._gap(before) + line + self.newline * bool(after) + after)

    def _insert(self, start: int, end: int, content: str) -> Document:
        """Put content in the place of a range, with an empty line before and after it."""
        before, after = self.data[:start], self.data[end:]
        text = "\n".join(re.split(r"\r\n|\r|\n", content)).rstrip("\n") + "\n"
        data = text.encode().replace(b"\n", self.newline)
        if after and not _LINE_END.match(after.lstrip(b" \t")):
            data += self.newline
        return Document(before + self._gap(before) + data + after)

    def _gap(self, before: bytes) -> bytes:
        """Return what makes a text end with its line end and an empty line."""
        if not before:
            return b""
        if before.endswith((b"\n\n", b"\n\r\n")):
            return b""
        return self.newline if before.endswith((b"\n", b"\r")) else self.newline * 2

    def _range_of(self, section: str) -> tuple[int, int]:
        heading = self.section(section)
        assert heading is not None  # noqa: S101 (callers have added the section)
        return self.body_range(heading)

    def _offset(self, line: int) -> int:
        return self.line_starts[min(line, len(self.line_starts) - 1)]


def hidden_characters(text: str) -> Iterator[Problem]:
    """Yield the lines with characters that a person does not see."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if names := ", ".join(invisible_in(line)):
            yield Problem(number, f"contains {names}, which nobody sees; remove it")


def check_content(content: str) -> str:
    """Return why a content cannot be put into a section; empty if it can."""
    if not content.strip():
        return "it is empty"
    for hidden in hidden_characters(content):
        return f"line {hidden.line} {hidden.text}"
    document = Document(content.encode("utf-8", "replace"))
    if problem := document.open_block():
        return f"line {problem.line}: {problem.text}"
    for heading in document.headings:
        return (
            f"line {heading.line} is a heading of level {heading.level}, which would begin a new "
            "section; use ### or deeper"
        )
    return ""
