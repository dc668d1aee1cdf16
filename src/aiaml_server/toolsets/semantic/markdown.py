"""A markdown file as pieces, each small enough to be a memory of its own.

A section's text is one, each item of its lists is one, a decision record (ADR) is one as a whole,
and so is a file that is a memory already: one of this product's own, or one that cites code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.dates import moment_in
from aiaml_server.exchange.walk import first_time
from aiaml_server.format import memory as files
from aiaml_server.frontmatter import check_expanded_size, load_yaml, split
from aiaml_server.toolsets.semantic.memory import Draft, instant_of, kept
from aiaml_server.toolsets.semantic.portable import draft_of

MOST_CUT = 64 * 1024  # bytes of a file …
_MOST_LINES = 8000  # … and its lines; a parser takes half a second for them
_MOST_HEAD = 16 * 1024  # characters of a frontmatter; YAML takes long
_MOST_RECORD = 4000  # characters; a longer ADR is cut into its sections
_RECORD = re.compile(r"adr[-_ ]?\d*", re.IGNORECASE)
_MARKER = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_WORD = re.compile(r"[^\W_]{2,}")
_MOST_TAG = 40
_CREATED = ("created", "created_at", "date", "timestamp", "updated", "modified")
_TAGS = ("tags", "tag", "topics", "keywords")
_DATED = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\**date\**[ \t]*:\**[ \t]*(\S.{3,60})$", re.IGNORECASE | re.MULTILINE
)
_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")
_ONLY_LINK = re.compile(
    r"(?:[\w -]{1,40}[ ])?(?:\[\[[^\]\n]{1,200}\]\]|\[[^\]\n]{1,200}\]\([^)\n]{1,400}\))"
)
"""An item that is a link and nothing else, such as `relates_to [[Grinder]]`."""
_HASHTAG = re.compile(r"(?<!\S)#(?=[\w/-]{0,63}[^\W\d])([\w/-]{1,64})")
_KIND = re.compile(r"\[([^\W\d][\w-]{1,63})\][ ]+(?=\S)")
"""What Basic Memory writes before an observation: `[method] Pour slowly`."""


class Piece(NamedTuple):
    """What becomes a memory.

    Attributes:
        content: its text, with the headings above it.
        line: where it begins in the file, from 1.
        tags: that its place suggests.
        category: `decision` for an ADR.
        created: when it was written, as the databases have it.
        draft: where it is a memory already, of this product's own.
    """

    content: str
    line: int
    tags: tuple[str, ...] = ()
    category: str | None = None
    created: str | None = None
    draft: Draft | None = None


def pieces(text: str, path: Path) -> list[Piece]:
    """Cut a file into pieces, each with the time that it, a heading or the file says.

    Args:
        text: what it says.
        path: where it is; it need not be there, and then says no time.

    Raises:
        MalformedFile: it is too large to be cut, or a memory of this product's own with a fault.
    """
    is_as_written = text.startswith("---\n")  # else an editor, or git, has set other line ends
    text, given = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), text
    own = files.parsed(given if is_as_written else text)
    size = len(text.encode("utf-8", "replace"))
    if own is None and size > MOST_CUT:
        raise MalformedFile([f"it is larger than {MOST_CUT >> 10} KiB: {size:,} bytes"])
    if own is None and text.count("\n") > _MOST_LINES:
        raise MalformedFile([f"it has more than {_MOST_LINES:,} lines"])
    fields, body, above = ({}, "", 0) if own else _fields(text)
    if own or {"id", "timestamp", "agent"} <= set(fields):  # a memory of this product's own
        draft = draft_of(own or files.parse(text))
        return [Piece(draft.content, 1, tuple(draft.tags), draft.category, draft.created, draft)]
    created = _time(fields, path)
    tags = _tags_of(fields)
    if {"id", "subject"} <= set(fields):  # one that cites code
        subject = str(fields.get("subject") or "")
        content = "\n\n".join(filter(None, [subject, body.strip()]))
        return [Piece(content, 1, tags, None, created)] if content else []
    lines = body.split("\n")
    blocks = list(_blocks(body))
    title = next((block.text for block in blocks if block.kind == "heading"), "")
    if _RECORD.match(path.stem) or _RECORD.match(title):
        tags = (*tags, "adr")
        dated = _DATED.search(body)
        created = (_day(dated[1]) if dated else None) or created
        if len(body) <= _MOST_RECORD:
            record = body.strip()
            is_one = _WORD.search(record)
            return [Piece(record, above + 1, tags, "decision", created)] if is_one else []
    trail = [(0, str(fields["title"]))] if isinstance(fields.get("title"), str) else []
    if trail and trail[0][1].strip().lower() == title.strip().lower():
        trail = []  # its first heading says it
    found = _Sections(lines, above, tags, created, trail).cut(blocks)
    return sorted(found, key=lambda each: each.line)


def _time(fields: Mapping[str, Any], path: Path) -> str | None:
    """Return what the frontmatter, else the name, else the file says of when it was written."""
    dated = _DAY.search(path.stem)
    stated = [str(fields[name]) for name in _CREATED if fields.get(name)]
    try:
        return instant_of(first_time([*stated, dated and dated[0]], path))
    except OSError:
        return None


def _day(text: str) -> str | None:
    moment = moment_in(text.strip().strip("*"))
    return None if moment is None else kept(moment)


def _tags_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for name in _TAGS:
        value = fields.get(name)
        given = re.split(r"[,\s]+", value) if isinstance(value, str) else value
        found += [str(each).lstrip("#") for each in given] if isinstance(given, list) else []
    return tuple(dict.fromkeys(filter(None, found)))


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
        head, body, _ = split(text)
    except MalformedFile:
        return {}, text, 0
    if len(head) > _MOST_HEAD:
        return {}, text, 0
    fields = load_yaml(head)
    check_expanded_size(fields)
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


class _Sections:
    """The sections of a file, each with the headings above it."""

    def __init__(
        self,
        lines: Sequence[str],
        above: int,
        tags: tuple[str, ...],
        created: str | None,
        trail: list[tuple[int, str]],
    ) -> None:
        self._lines, self._above, self._tags, self._created = lines, above, tags, created
        self._trail = trail
        self._held: list[_Block] = []

    def cut(self, blocks: Sequence[_Block]) -> Iterator[Piece]:
        """Yield a piece for each section's text, and one for each item of its lists."""
        for block in blocks:
            if block.kind == "heading":
                yield from self._section()
                self._trail = [each for each in self._trail if each[0] < block.level]
                self._trail.append((block.level, " ".join(block.text.split())))
            elif block.kind == "text":
                self._held.append(block)
            else:
                for start, end in zip(block.items, (*block.items[1:], block.end), strict=True):
                    yield from self._piece(_item(self._lines[start:end]), start, ": ")
        yield from self._section()

    def _section(self) -> Iterator[Piece]:
        if self._held:
            held, self._held = self._held, []
            parts = ("\n".join([*self._lines[each.start : each.end], ""]) for each in held)
            yield from self._piece("\n".join(parts), held[0].start, "\n\n")

    def _piece(self, text: str, start: int, between: str) -> Iterator[Piece]:
        if not _WORD.search(text) or _ONLY_LINK.fullmatch(text.strip()):
            return
        kind = _KIND.match(text)
        text = text[kind.end() :] if kind else text
        own = tag(_DAY.sub("", self._trail[-1][1])) if self._trail else ""  # `created` has a day
        tags = (*self._tags, *([kind[1]] if kind else ()), own, *_HASHTAG.findall(text))
        headed = (_day(day[0]) for _, name in reversed(self._trail) if (day := _DAY.search(name)))
        created = next(headed, None) or self._created
        unique = tuple(dict.fromkeys(filter(None, tags)))
        headings = " > ".join(name for _, name in self._trail if name)
        content = f"{headings}{between}{text.strip()}" if headings else text.strip()
        yield Piece(content, self._above + start + 1, unique, None, created)


def _item(lines: Sequence[str]) -> str:
    """Return an item's text without its marker, and without the blanks that it is indented by."""
    marker = _MARKER.match(lines[0])
    width = marker.end() if marker else 0
    first = lines[0][width:]
    rest = [line[width:] if not line[:width].strip() else line.lstrip() for line in lines[1:]]
    return "\n".join([first, *rest]).strip()
