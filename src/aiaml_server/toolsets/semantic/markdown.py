"""A markdown file as pieces, each small enough to be a memory.

The text of a section is a piece, each item of its lists is one, and a decision record (ADR) is one
as a whole. So is a file of the default toolset, which holds a memory already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.frontmatter import load_yaml, split
from aiaml_server.toolsets.semantic.models import MAX_LINE, MAX_TAGS, iso_to_sql

MAX_RECORD = 4_000  # characters; a longer decision record is split into its sections
MAX_HEAD = 16 * 1024  # characters of a frontmatter
_RECORD = re.compile(r"adr[-_ ]?\d*", re.IGNORECASE)
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
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
    is_record = bool(_RECORD.match(path.stem))
    is_memory = {"id", "timestamp", "agent"} <= set(fields)
    tags = [*tags, "adr"] if is_record else tags
    if is_memory or (is_record and len(body) <= MAX_RECORD):
        category = "decision" if is_record else None
        whole = Piece(body.strip(), first_line, tags, category, created_at)
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


def _created_at(fields: Mapping[str, Any], path: Path) -> str | None:
    modified = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc).isoformat()
    stated = [iso_to_sql(str(fields[key])) for key in _DATE_KEYS if key in fields]
    return next(filter(None, [*stated, iso_to_sql(modified)]), None)


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
    headings: list[tuple[int, str]] = []
    block: list[str] = []
    start = 0
    in_code = False
    for number, line in enumerate([*body.split("\n"), "# "]):  # the last heading ends the text
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
        heading = None if in_code else _HEADING.match(line)
        is_item = bool(_MARKER.match(line)) and not in_code
        in_item = bool(block) and bool(_MARKER.match(block[0]))
        is_apart = in_item and not block[-1].strip() and line[:1] not in ("", " ", "\t")
        if block and (heading or is_item or is_apart):
            text = "\n".join(each.removeprefix("  ") for each in block).strip()
            text = _MARKER.sub("", text, count=1) if in_item else text
            trail = " > ".join(title for _, title in headings)
            own = headings[-1][1] if headings else ""
            separator = ": " if in_item else "\n\n"
            yield (f"{trail}{separator}{text}" if trail else text), start, own
            block = []
        if heading:
            level = len(heading[1])
            headings = [each for each in headings if each[0] < level]
            headings.append((level, heading[2].strip(" #")))
        elif block or line.strip():
            start = start if block else number
            block.append(line)
