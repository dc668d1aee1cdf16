"""A markdown file as pieces, each small enough to be a memory.

The text of a section is a piece, each item of its lists is one, and a decision record (ADR) is one
as a whole.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.dates import first_date
from aiaml_server.format.frontmatter import load_yaml, split
from aiaml_server.toolsets.semantic.models import MAX_LINE, MAX_TAGS, iso_to_sql

MAX_RECORD = 4_000  # characters; a longer decision record is split into its sections
MAX_HEAD = 16 * 1024  # characters of a frontmatter
_RECORD = re.compile(r"adr[-_ ]?\d*", re.IGNORECASE)
_NO_TEXT = ("heading_open", "bullet_list_open", "ordered_list_open")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
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
        created_at: from the frontmatter, the file's name, or the file, as the databases hold it.
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
    stated = [fields[key] for key in _DATE_KEYS if key in fields]
    created_at = iso_to_sql(first_date(stated, path))
    tags = _tags(fields)
    first_line = text.count("\n") - body.count("\n") + 1
    is_record = bool(_RECORD.match(path.stem))
    tags = [*tags, "adr"] if is_record else tags
    if is_record and len(body) <= MAX_RECORD:
        whole = Piece(body.strip(), first_line, tags, "decision", created_at)
        return [whole] if _WORD.search(body) else []
    pieces = []
    for content, line, heading in _sections(body):
        if _WORD.search(content):
            tag = "-".join(_WORD.findall(heading.lower()))[:40].strip("-")
            own = list(dict.fromkeys(filter(None, (*tags, tag))))[:MAX_TAGS]
            pieces.append(Piece(content, first_line + line, own, None, created_at))
    return pieces


def _frontmatter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the keys of a file's frontmatter, and the text below it."""
    try:
        head, body, _ = split(text)
        fields = load_yaml(head) if len(head) <= MAX_HEAD else None
    except MalformedFile:
        return {}, text
    return (fields, body) if isinstance(fields, dict) else ({}, text)


def _tags(fields: Mapping[str, Any]) -> Sequence[str]:
    tags: list[str] = []
    for key in _TAG_KEYS:
        given = fields.get(key) or ()
        words = re.split(r"[,\s]+", given) if isinstance(given, str) else given
        if isinstance(words, list):
            tags += [" ".join(str(each).lstrip("#").split())[:MAX_LINE] for each in words]
    return [tag for tag in dict.fromkeys(tags) if tag]


def _sections(body: str) -> Iterator[tuple[str, int, str]]:
    """Yield each section's text and each item of its lists, with its line and its heading."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 (heavy)

    lines = body.split("\n")
    tokens = MarkdownIt().parse(body)
    headings: dict[int, str] = {}
    is_text = False
    blocks: list[tuple[int, int, bool, Sequence[str]]] = []
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map
        if token.type == "list_item_open" and token.level == 1:
            blocks.append((start, end, True, [*headings.values()]))
        elif token.level == 0:
            goes_on = is_text
            is_text = token.type not in _NO_TEXT
            if token.type == "heading_open":
                level = int(token.tag[1:])
                headings = {each: headings[each] for each in headings if each < level}
                headings[level] = tokens[number + 1].content
            elif is_text and goes_on:
                blocks[-1] = (blocks[-1][0], end, *blocks[-1][2:])
            elif is_text:
                blocks.append((start, end, False, [*headings.values()]))
    for start, end, is_item, titles in blocks:
        text = textwrap.dedent("\n".join(lines[start:end])).strip()
        if is_item:
            first, _, rest = text.partition("\n")
            text = f"{_MARKER.sub('', first)}\n{textwrap.dedent(rest)}".strip()
        trail = " > ".join(titles)
        separator = ": " if is_item else "\n\n"
        yield f"{trail}{separator}{text}" if trail else text, start, titles[-1] if titles else ""
