"""A markdown file as pieces, each small enough to be a memory of its own.

A section's text is one, each item of its lists is one, a decision record (ADR) is one as a whole,
and so is a file that is a memory already: one of this product's own, or one that cites code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.frontmatter import check_written_out, divide, load_yaml

_MOST_HEAD = 16 * 1024  # characters of a frontmatter; YAML takes long
_MOST_RECORD = 4000  # characters; a longer ADR is cut into its sections
_RECORD = re.compile(r"adr[-_ ]?\d*", re.IGNORECASE)
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_WORD = re.compile(r"[^\W_]{2,}")
_MOST_TAG = 40


class Piece(NamedTuple):
    """What becomes a memory.

    Attributes:
        content: its text, with the headings above it.
        line: where it begins in the file, from 1.
        tags: that its place suggests.
        category: `decision` for an ADR.
    """

    content: str
    line: int
    tags: tuple[str, ...] = ()
    category: str | None = None


def pieces(text: str, stem: str) -> list[Piece]:
    """Cut a file into pieces.

    Args:
        text: what it says.
        stem: its name without `.md`.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    fields, body, above = _fields(text)
    # A memory: of this product's own, or one that cites code.
    if {"id", "timestamp", "agent"} <= set(fields) or {"id", "subject"} <= set(fields):
        subject = str(fields.get("subject") or "")
        content = "\n\n".join(filter(None, [subject, body.strip()]))
        given = fields.get("topics") or fields.get("tags")
        labels = [str(each) for each in given] if isinstance(given, list) else []
        return [Piece(content, 1, tuple(dict.fromkeys(filter(None, labels))))] if content else []
    lines = body.split("\n")
    blocks = list(_blocks(body))
    title = next((block.text for block in blocks if block.kind == "heading"), "")
    if (_RECORD.match(stem) or _RECORD.match(title)) and len(body) <= _MOST_RECORD:
        record = body.strip()
        return [Piece(record, above + 1, ("adr",), "decision")] if _WORD.search(record) else []
    tags = ("adr",) if _RECORD.match(stem) else ()
    return sorted(_sections(lines, blocks, above, tags), key=lambda each: each.line)


def tag(text: str) -> str:
    """Return what tags a heading: "Rules of billing" is `rules-of-billing`."""
    return "-".join(_WORD.findall(text.lower()))[:_MOST_TAG].strip("-")


# --- frontmatter ----------------------------------------------------------------------------------


def _fields(text: str) -> tuple[dict[str, Any], str, int]:
    """Return a file's frontmatter, what is below it, and how many lines it takes.

    What is no YAML of names and values is text.

    Raises:
        MalformedFile: the frontmatter's aliases mean too much.
    """
    try:
        head, body, _ = divide(text)
    except MalformedFile:
        return {}, text, 0
    if len(head) > _MOST_HEAD:
        return {}, text, 0
    fields = load_yaml(head)
    check_written_out(fields)
    if not isinstance(fields, dict):
        return {}, text, 0
    return fields, body, text.count("\n") - body.count("\n")


# --- sections and lists ---------------------------------------------------------------------------


class _Block(NamedTuple):
    """A block that stands in no other one: lines `start` to before `end`, from 0.

    Attributes:
        kind: `heading`, `list`, or `text` for anything else.
        level: of a heading.
        text: of a heading.
        items: the first line of each item of a list.
    """

    kind: str
    start: int
    end: int
    level: int = 0
    text: str = ""
    items: tuple[int, ...] = ()


def _blocks(text: str) -> Iterator[_Block]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 (only who imports pays for it)

    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable("inline")  # what a line says is taken as it stands
    tokens = parser.parse(text)
    begun = [
        each.map[0]
        for each in tokens
        if each.type == "list_item_open" and each.level == 1 and each.map
    ]
    for number, token in enumerate(tokens):
        if token.level or not token.map or token.nesting < 0:
            continue
        start, end = token.map
        if token.type == "heading_open":
            yield _Block("heading", start, end, int(token.tag[1]), tokens[number + 1].content)
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            items = tuple(begun[bisect_left(begun, start) : bisect_left(begun, end)])
            yield _Block("list", start, end, items=items)
        else:
            yield _Block("text", start, end)


def _sections(
    lines: Sequence[str], blocks: Sequence[_Block], above: int, tags: tuple[str, ...]
) -> Iterator[Piece]:
    """Yield a piece for each section's text, and one for each item of its lists."""
    trail: list[tuple[int, str]] = []
    held: list[_Block] = []

    def section() -> Iterator[Piece]:
        if held:
            text = "\n".join("\n".join([*lines[each.start : each.end], ""]) for each in held)
            line = above + held[0].start + 1
            held.clear()
            if _WORD.search(text):
                yield Piece(_under(trail, "\n\n", text), line, _tags(trail, tags))

    for block in blocks:
        if block.kind == "heading":
            yield from section()
            trail = [each for each in trail if each[0] < block.level]
            trail.append((block.level, " ".join(block.text.split())))
        elif block.kind == "text":
            held.append(block)
        else:
            for start, end in zip(block.items, (*block.items[1:], block.end), strict=True):
                item = _item(lines[start:end])
                if _WORD.search(item):
                    yield Piece(_under(trail, ": ", item), above + start + 1, _tags(trail, tags))
    yield from section()


def _under(trail: Sequence[tuple[int, str]], between: str, text: str) -> str:
    """Put before a text the headings that it stands under."""
    headings = " > ".join(name for _, name in trail if name)
    return f"{headings}{between}{text.strip()}" if headings else text.strip()


def _tags(trail: Sequence[tuple[int, str]], more: tuple[str, ...]) -> tuple[str, ...]:
    own = tag(trail[-1][1]) if trail else ""
    return tuple(filter(None, (*more, own)))


def _item(lines: Sequence[str]) -> str:
    """Return an item's text without its marker, and without the blanks that it is indented by."""
    marker = _MARKER.match(lines[0])
    width = marker.end() if marker else 0
    first = lines[0][width:]
    rest = [line[width:] if not line[:width].strip() else line.lstrip() for line in lines[1:]]
    return "\n".join([first, *rest]).strip()
