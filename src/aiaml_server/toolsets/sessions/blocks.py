"""Where a markdown text's headings of level 1 and 2 stand, told line by line in one pass.

A log may have a mebibyte, for which a parser that builds a tree takes seconds. Which lines begin a
section is told by little: the lists and quotations that are open, and whether a paragraph, a fence
or HTML is. Blocks are those of CommonMark (https://spec.commonmark.org/0.31.2/, appendix), but for
two rare things: a definition of a link is a paragraph, and what is nested a hundred deep is text.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from markdown_it.rules_block.html_block import HTML_SEQUENCES

_DEEPEST = 100  # lists and quotations in one another
_MOST_LINES = 50_000  # that must be looked at one by one; a log of a mebibyte has some 10,000
_MOST_HEADINGS = 1000
ITEMS = (b"- ", b"* ", b"+ ")
_QUOTATION = -1  # stands among the widths of lists' items
# Most lines go on with a paragraph or begin an item, and a run of them is passed as a whole.
_USUAL = r"[^\s\d#>*+\-_=`~<][^\n]*(?:\n|\Z)"
_TEXT = re.compile(_USUAL)
_TEXTS = re.compile(rf"(?:{_USUAL})+")
_ITEMS = re.compile(rf"(?:[-*+] {_USUAL}(?:  {_USUAL})*)+")
_BEGIN = "#=-*_`~<"  # what a heading, a rule, a fence or HTML begins with
_MARKS = " \t>*+-0123456789.)"
_BLANKS = re.compile(r"[ \t\n]*\n")
_HEADING = re.compile(r"(#{1,6})(?: |$)")
_MARKS_BEHIND = re.compile(r"(?<=[ \t])#+$")
_UNDERLINE = re.compile(r"(?:=+|-+) *$")
_RULE = re.compile(r"([-*_])(?: *\1){2,} *$")
_MARKER = re.compile(r"(?:[-+*]|(\d{1,9})[.)])(?:$|( +))")
_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_FENCE_ENDS = {mark: re.compile(rf"^ {{0,3}}{mark}{{3,}}[ \t]*$", re.MULTILINE) for mark in "`~"}
_BLANK = re.compile(r"^[ \t]*$", re.MULTILINE)


class Heading(NamedTuple):
    """A heading of level 1 or 2 that stands in no list or quotation; or why no more are found.

    Attributes:
        level: 1 or 2; 0 for a line behind which headings cannot be told.
        text: what a heading says; else what such a line does.
        start: the offset of its first byte.
        end: the offset behind its last line's end.
        line: its line's number, from 1.
    """

    level: int
    text: str
    start: int
    end: int
    line: int


class _Block(NamedTuple):
    """A block that is no paragraph.

    Attributes:
        level: of a heading.
        text: of a heading, in bytes as characters.
        begun: the offset of a heading.
        ends: what closes a fence or HTML that goes on; None where it does not.
        length: how many characters that has at least.
    """

    level: int = 0
    text: str = ""
    begun: int = -1
    ends: re.Pattern[str] | None = None
    length: int = 0


def headings(data: bytes) -> Iterator[Heading]:
    r"""Yield the headings of level 1 and 2 of a markdown text.

    At last comes, with the level 0, the code fence or HTML that is never closed; or the line at
    which there are too many to go on.

    Args:
        data: the text in UTF-8, whose lines end with `\n`, `\r\n` or `\r`.
    """
    scan = _Scan.of(data)
    line, counted = 1, 0
    for number, (level, said, start, end) in enumerate(scan.found()):
        line += scan.text.count("\n", counted, start)
        counted = start
        if number == _MOST_HEADINGS:
            too_many = f"is behind {number:,} headings of level 1 or 2, too many"
            yield Heading(0, too_many, start, end, line)
            return
        text = said.encode("latin-1").decode("utf-8", "replace").strip()
        yield Heading(level, text, start, end, line)


def fences(data: bytes) -> list[tuple[int, int]]:
    """Return where each code fence begins and ends that stands in no list or quotation."""
    scan = _Scan.of(data)
    for _ in scan.found():
        pass
    return scan.fences


def entries(data: bytes) -> list[tuple[int, bytes]]:
    """Return what stands at the margin: each item, and each part between empty lines.

    What is indented, or in a fence, goes on with what is before it.

    Returns:
        Each one's offset, and its bytes up to the next.
    """
    code = dict(fences(data))
    starts = [0] if data else []
    at = behind = 0
    is_apart = True
    for line in data.splitlines(keepends=True):
        if at >= behind:  # outside of a fence
            behind = code.get(at, at)
            is_inside = line[:1] in (b" ", b"\t") or not (is_apart or line[:2] in ITEMS)
            is_apart = not line.strip()
            if at and not is_apart and not is_inside:
                starts.append(at)
        at += len(line)
    return [(start, data[start:end]) for start, end in pairwise([*starts, len(data)])]


class _Scan:
    """A pass over a text.

    Attributes:
        at: the offset of the next line.
        containers: what is open, the outermost first: of a list's item the columns by which its
            lines are indented, or a quotation.
        is_empty: whether the innermost of them is an item that has nothing yet.
        paragraph: the offset of the paragraph that is open; -1 where none is.
        ends: what closes the fence or the HTML that is open; None where neither is.
        length: how many characters that has at least.
        begun: the offset of that fence or HTML.
        fences: where the fences begin and end that were passed.
    """

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.containers: list[int] = []
        self.is_empty = False
        self.paragraph = self.begun = -1
        self.ends: re.Pattern[str] | None = None
        self.length = 0
        self.fences: list[tuple[int, int]] = []

    @classmethod
    def of(cls, data: bytes) -> _Scan:
        """Return a pass over a text in UTF-8."""
        # Every byte is a character, and the ends of lines are as long as they were: offsets stay.
        scan = cls(data.replace(b"\r\n", b" \n").replace(b"\r", b"\n").decode("latin-1"))
        scan.at = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0
        return scan

    def found(self) -> Iterator[tuple[int, str, int, int]]:
        """Go through the text; yield level, text, first offset and the offset behind."""
        looked_at = 0
        while self.at < len(self.text):
            if not self.ends and self._pass_usual():
                continue
            start = self.at
            looked_at += 1
            if looked_at > _MOST_LINES:
                said = f"is behind {_MOST_LINES:,} lines that begin with a mark, too many"
                yield 0, said, start, self._behind_line(start)
                return
            if self.ends and not self.containers:
                self._pass_closing()
                continue
            self.at = self._behind_line(start)
            line = self.text[start : self.at].rstrip("\n")
            if heading := self._read(line.expandtabs(4), start):
                yield *heading, self.at
            elif self.paragraph >= 0:
                self._pass_alike(line)
        if self.ends not in (None, _BLANK) and not self.containers:
            yield 0, "opens a code fence or HTML that is not closed", self.begun, self.at

    def _behind_line(self, at: int) -> int:
        """Return the offset behind the end of the line that has an offset."""
        return self.text.find("\n", at) + 1 or len(self.text)

    def _closed(self, text: str, at: int = 0) -> int:
        """Return the offset behind what closes the open fence or HTML; -1 where nothing does."""
        assert self.ends  # noqa: S101 (asked before)
        found = self.ends.finditer(text, at)
        return next((each.end() for each in found if len(each[0].strip()) >= self.length), -1)

    def _pass_closing(self) -> None:
        """Go behind the line that closes a fence or HTML; to the end where there is none."""
        behind = self._closed(self.text, self.at)
        self.at = len(self.text) if behind < 0 else self._behind_line(behind)
        if self.ends in _FENCE_ENDS.values():
            self.fences.append((self.begun, self.at))
        if behind >= 0:
            self.ends = None

    def _pass_usual(self) -> bool:
        """Go behind a run of items, of plain text or of empty lines; say whether there is one."""
        if run := _ITEMS.match(self.text, self.at):  # not indented: whatever was open ends
            self.containers, self.paragraph, self.ends = [2], self.at, None
        elif run := _TEXTS.match(self.text, self.at):
            if self.paragraph < 0:
                self.containers, self.paragraph, self.ends = [], self.at, None
        elif run := _BLANKS.match(self.text, self.at):
            self._end_by_blank()
        else:
            return False
        self.is_empty = False
        self.at = run.end()
        return True

    def _pass_alike(self, line: str) -> None:
        """Go behind the lines that have the same marks before a usual text as the line before.

        They change nothing: each is another item of the list, or goes on with the paragraph.
        """
        marks = line[: len(line) - len(line.lstrip(_MARKS))]
        text, match, width = self.text, _TEXT.match, len(marks)  # looked up once: many are alike
        alike = match(line, width)
        while alike and text.startswith(marks, self.at):
            alike = match(text, self.at + width)
            self.at = alike.end() if alike else self.at

    def _end_by_blank(self) -> None:
        """End what an empty line ends: a paragraph, quotations, an item that has nothing."""
        self.paragraph = -1
        if self.is_empty:
            self.containers.pop()
        if _QUOTATION in self.containers:
            del self.containers[self.containers.index(_QUOTATION) :]
            self.ends = None
        if self.ends is _BLANK:
            self.ends = None

    def _read(self, line: str, start: int) -> tuple[int, str, int] | None:
        """Read a line; return level, text and offset of a heading that stands in nothing else."""
        held, at = self._held(line)
        inside, is_inside = self.containers[:held], held == len(self.containers)
        self.is_empty = False
        if self.ends and is_inside:
            if self._closed(line[at:]) >= 0:
                self.ends = None
            return None
        self.ends = None
        in_paragraph = self.paragraph >= 0  # which the line goes on with, if it begins nothing
        block: _Block | None = None
        while rest := line[at:].lstrip(" "):
            indent = len(line) - at - len(rest)
            if indent >= 4:
                block = None if in_paragraph else _Block()  # code
                break
            goes_on = in_paragraph and is_inside
            block = self._block(rest, start, in_paragraph, goes_on) if rest[0] in _BEGIN else None
            if block:
                break
            taken = _container(rest, is_text=goes_on)
            if not taken or len(inside) == _DEEPEST:
                break
            inside.append(_QUOTATION if rest[0] == ">" else indent + taken)
            at += indent + taken
            in_paragraph, self.is_empty = False, rest[0] != ">" and not line[at:].strip(" ")
        else:  # empty, or nothing but the marks of containers
            block = _Block()
        if block:
            self.containers, self.paragraph = inside, -1
            self.ends, self.length, self.begun = block.ends, block.length, start
            is_found = block.level in (1, 2) and not inside
            return (block.level, block.text, block.begun) if is_found else None
        if not in_paragraph:
            self.paragraph = start
        if is_inside or not in_paragraph:  # else it goes on with what is deeper inside
            self.containers = inside
        return None

    def _block(self, rest: str, start: int, in_paragraph: bool, goes_on: bool) -> _Block | None:
        """Return the block that begins in a line, other than code, containers and paragraphs."""
        if heading := _HEADING.match(rest):
            level = len(heading[1])
            text = self.text[start : self.at].strip(" \t\n")[level:].rstrip(" \t")
            return _Block(level, _MARKS_BEHIND.sub("", text), start)
        if goes_on and _UNDERLINE.match(rest):
            lines = self.text[self.paragraph : start].split("\n")
            text = "\n".join(each.strip(" \t") for each in lines)
            return _Block(1 if rest[0] == "=" else 2, text, self.paragraph)
        if _RULE.match(rest):
            return _Block()
        if fence := _FENCE.match(rest):
            return _Block(ends=_FENCE_ENDS[rest[0]], length=len(fence[0]))
        if rest[0] == "<" and (ends := _html_end(rest, in_paragraph)):
            return _Block(ends=None if ends.search(rest) else ends)
        return None

    def _held(self, line: str) -> tuple[int, int]:
        """Return how many of the open containers a line stands in, and the column behind them."""
        at = 0
        for held, width in enumerate(self.containers):
            rest = line[at:].lstrip(" ")
            indent = len(line) - at - len(rest)
            is_last_and_empty = self.is_empty and held == len(self.containers) - 1
            if width == _QUOTATION and rest[:1] == ">" and indent < 4:
                at += indent + (2 if rest[1:2] == " " else 1)
            elif width != _QUOTATION and (indent >= width if rest else not is_last_and_empty):
                at += min(width, indent)
            else:
                return held, at
        return len(self.containers), at


def _container(rest: str, *, is_text: bool) -> int:
    """Return how many columns the mark takes that begins a quotation or an item; 0 where none does.

    Args:
        rest: a line from its first character that is no space.
        is_text: whether it stands in a paragraph, which not every item ends.
    """
    if rest[0] == ">":
        return 2 if rest[1:2] == " " else 1
    marker = _MARKER.match(rest)
    if not marker:
        return 0
    is_empty = marker.end() == len(rest)
    if is_text and (is_empty or int(marker[1] or 1) != 1):
        return 0
    spaces = len(marker[2] or "")
    return marker.end() - spaces + (1 if is_empty or spaces > 4 else spaces)


def _html_end(rest: str, in_paragraph: bool) -> re.Pattern[str] | None:
    """Return what ends the HTML that a line begins with; None where that is no block."""
    for begins, ends, ends_paragraph in HTML_SEQUENCES:
        if (ends_paragraph or not in_paragraph) and begins.search(rest):
            return _BLANK if ends.search("") else ends
    return None
