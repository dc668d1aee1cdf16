"""What there is to say of any of the files: what a merge has left, what a reader does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from aiaml_server.toolsets.sessions.blocks import entries, fences
from aiaml_server.toolsets.sessions.document import Document, unseen

_SAYS = re.compile(rb"[0-9A-Za-z\x80-\xff]")
_MARK = re.compile(rb"(<{7}|\|{7}|>{7})(?:[ \t]|$)|={7}$")
_HIDING = re.compile(rb"<!--|<details\b", re.IGNORECASE)


class Remark(NamedTuple):
    """What there is to say of a line of a file.

    Attributes:
        line: which, from 1.
        what: the sentence.
        level: "error" for what is wrong, "warning" for what is only worth knowing.
    """

    line: int
    what: str
    level: str = "error"


def conflicts(document: Document) -> Iterator[Remark]:
    """Yield the lines by which git marks what it could not merge, unless they stand in a fence.

    A line of equals signs may underline a title: it is a mark between two others.
    """
    if not any(each * 7 in document.data for each in (b"<", b">", b"|")):
        return
    is_open = False
    for number, line in _outside_code(document.data):
        mark = _MARK.match(line)
        if mark and (mark[1] or is_open):
            said = mark[0][:7].decode()
            what = f"{said} is of a merge that was not finished: keep what is right of both sides"
            yield Remark(number, f"{what}, and delete the marks")
            is_open = said[0] != ">"


def hidden(text: str) -> Iterator[Remark]:
    """Yield the lines that hold what a reader does not see and a model does.

    Characters without a shape are errors; comments, and what the page of a host folds away, are
    warnings.
    """
    for number, what in unseen(text):
        yield Remark(number, f"this {what}")
    data = text.encode("utf-8", "replace")
    if _HIDING.search(data):
        for number, line in _outside_code(data):
            if found := _HIDING.search(line):
                what = f"this holds {found[0].decode()}, whose content is not on a host's page"
                yield Remark(number, what, "warning")


def repeated(document: Document) -> Iterator[Remark]:
    """Yield the entries that a section has twice, as a merge of both sides may leave them."""
    line, counted = 1, 0
    for section in document.sections:
        start, end = document.body(section)
        first: dict[bytes, int] = {}
        for at, each in entries(document.data[start:end]):
            line += len(document.data[counted : start + at].splitlines())
            counted = start + at
            said = each.rstrip()
            before = first.setdefault(said, line)
            if before != line and _SAYS.search(said):
                what = f"this stands in line {before} already; if a merge has kept both, delete one"
                yield Remark(line, what, "warning")


def _outside_code(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that stand in no code fence, without their ends, each with its number."""
    code = fences(data)
    start = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        while code and code[0][1] <= start:
            code.pop(0)
        if not code or start < code[0][0]:
            yield number, line.rstrip(b"\r\n")
        start += len(line)
