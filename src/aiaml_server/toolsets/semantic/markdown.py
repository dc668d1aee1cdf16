"""A markdown file as pieces, each small enough to be a memory.

The text of a section is a piece, each item of its lists is one, and a decision record (ADR) is one
as a whole. So is a file of the default toolset, which holds a memory already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.frontmatter import load_yaml, split
from aiaml_server.toolsets.semantic.models import MAX_LINE, MAX_TAGS, iso_to_sql

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_RECORD = 4_000  # characters; a longer decision record is split into its sections
MAX_HEAD = 16 * 1024  # characters of a frontmatter
_RECORD = re.compile(r"adr[-_ ]?\d*", re.IGNORECASE)
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_WORD = re.compile(r"[^\W_]{2,}")
_DATE_KEYS = ("created", "created_at", "date", "timestamp")
_TAG_KEYS = ("tags", "topics", "keywords")


class Piece(NamedTuple):
    """What becomes a memory.

    Attributes:
        content: the text, below the headings above it.
        line: where it begins in the file, from 1.
        tags: from the frontmatter and the heading.
        category: `decision` for a decision record.
        created_at: from the frontmatter, else the file's, as the databases hold it.
    """

    content: str
    line: int
    tags: Sequence[str]
    category: str | None
    created_at: str | None


def split_markdown(text: str, path: Path) -> list[Piece]:
    """Split the text of a file; `path` gives its name and its time."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    fields, body = _frontmatter(text)
    created_at = _created_at(fields, path)
    tags = _tags(fields)
    first_line = text.count("\n") - body.count("\n") + 1
    whole = body.strip()
    if {"id", "timestamp", "agent"} <= set(fields):
        return [Piece(whole, first_line, tags, None, created_at)] if whole else []
    is_record = bool(_RECORD.match(path.stem))
    if is_record and len(whole) <= MAX_RECORD:
        is_text = bool(_WORD.search(whole))
        return [Piece(whole, first_line, (*tags, "adr"), "decision", created_at)] if is_text else []
    pieces = []
    for content, line, heading in _sections(body):
        if _WORD.search(content):
            own = (*tags, *(["adr"] if is_record else []), *filter(None, [heading_tag(heading)]))
            unique = list(dict.fromkeys(own))[:MAX_TAGS]
            pieces.append(Piece(content, first_line + line, unique, None, created_at))
    return pieces


def heading_tag(heading: str) -> str:
    """Return a heading as a tag: "Rules of billing" is `rules-of-billing`."""
    return "-".join(_WORD.findall(heading.lower()))[:40].strip("-")


def _frontmatter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the keys of a file's frontmatter, and the text below it."""
    try:
        head, body, _ = split(text)
        fields = load_yaml(head) if len(head) <= MAX_HEAD else None
    except MalformedFile:
        return {}, text
    return (fields, body) if isinstance(fields, dict) else ({}, text)


def _created_at(fields: Mapping[str, Any], path: Path) -> str | None:
    modified = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat()
    stated = [iso_to_sql(str(fields[key])) for key in _DATE_KEYS if key in fields]
    return next(filter(None, [*stated, iso_to_sql(modified)]), None)


def _tags(fields: Mapping[str, Any]) -> Sequence[str]:
    tags: list[str] = []
    for key in _TAG_KEYS:
        value = fields.get(key) or []
        given = re.split(r"[,\s]+", value) if isinstance(value, str) else value
        if isinstance(given, list):
            tags += [" ".join(str(each).lstrip("#").split())[:MAX_LINE] for each in given]
    return [tag for tag in dict.fromkeys(tags) if tag.strip()]


def _sections(body: str) -> Iterator[tuple[str, int, str]]:
    """Yield each section's text and each item of its lists, with its line and its heading."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 (only for imports)

    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable("inline")
    tokens = parser.parse(body)
    lines = body.split("\n")
    headings: list[tuple[int, str]] = []
    start: int | None = None
    end = 0

    def piece(content: str, line: int, separator: str) -> tuple[str, int, str]:
        trail = " > ".join(title for _, title in headings)
        own = headings[-1][1] if headings else ""
        return (f"{trail}{separator}{content}" if trail else content), line, own

    for number, token in enumerate(tokens):
        if token.level or not token.map or token.nesting < 0:
            continue
        is_list = token.type in ("bullet_list_open", "ordered_list_open")
        is_heading = token.type == "heading_open"
        if (is_list or is_heading) and start is not None:
            yield piece("\n".join(lines[start:end]).strip(), start, "\n\n")
            start = None
        if is_heading:
            level = int(token.tag[1])
            headings = [each for each in headings if each[0] < level]
            headings.append((level, " ".join(tokens[number + 1].content.split())))
        elif is_list:
            for first, last in _items(tokens[number + 1 :]):
                yield piece(_item_text(lines[first:last]), first, ": ")
        else:
            start = token.map[0] if start is None else start
            end = token.map[1]
    if start is not None:
        yield piece("\n".join(lines[start:end]).strip(), start, "\n\n")


def _items(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the lines of the items of a list whose tokens begin here."""
    for token in tokens:
        if token.level == 0:
            return
        if token.type == "list_item_open" and token.level == 1 and token.map:
            yield token.map[0], token.map[1]


def _item_text(lines: Sequence[str]) -> str:
    """Return an item without its marker and its indentation."""
    marker = _MARKER.match(lines[0])
    width = marker.end() if marker else 0
    rest = [line[width:] if not line[:width].strip() else line.lstrip() for line in lines[1:]]
    return "\n".join([lines[0][width:], *rest]).strip()
