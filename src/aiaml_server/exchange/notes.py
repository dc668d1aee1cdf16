"""A markdown file that others wrote → notes: its frontmatter, title, tags, time and sections."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aiaml_server.frontmatter import load_yaml

from .found import Note, Skip
from .walk import first_time, place, read_text

_CREATED = ("created", "created_at", "createdAt", "date", "timestamp", "updated", "modified")
_TAGS = ("tags", "tag", "keywords", "topics")
_OURS = frozenset({"id", "timestamp", "agent", "user", "verbatim"})
_USED = frozenset({*_TAGS, *_OURS, "imported-from", "imported-digest"})
_MAX_HEAD = 32 * 1024  # characters of frontmatter
_HEAD = re.compile(r"---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Style:
    """How the notes of one kind are read.

    Attributes:
        kind: the kind of source.
        agent: who is taken to have written its notes.
        split: whether each section becomes a note.
        categories: whether `- [category] text` gives a topic, as in basic-memory.
    """

    kind: str
    agent: str
    split: bool = False
    categories: bool = False


def notes_in(
    top: Path, path: Path, style: Style, about: Iterable[str] = ()
) -> Iterator[Note | Skip]:
    """Read one markdown file below the source `top`; `about` are more topics for it."""
    where = place(top, path)
    try:
        text = read_text(path).removeprefix("\ufeff").replace("\r\n", "\n")
        fields, body = _fields(text)
        made = first_time(_stated_times(fields, path.stem), path)
    except (ValueError, OSError) as error:
        yield Skip(where, str(error))
        return
    if not body.strip():
        yield Skip(where, "it is empty")
        return
    title = _one_line(fields.get("title") or fields.get("name")) or path.stem
    folders = [] if path == top else path.relative_to(top).parts[:-1]
    described = [*_named_tags(fields), *_type(fields)]
    for heading, section in _sections(body) if style.split else [("", body)]:
        tags = [*described, *_inline_tags(section, categories=style.categories)]
        yield Note(
            kind=style.kind,
            agent=style.agent,
            place=f"{where}#{heading}" if heading else where,
            content=_titled(section.strip(), title, _one_line(fields.get("description"))),
            topics=(*(tags or words(title)), *words(heading), *words(*folders), *words(*about)),
            timestamp=made,
            extra=tuple(_kept_lines(fields)),
        )


def _titled(section: str, title: str, description: str) -> str:
    """Put before a text without a heading what only its name and frontmatter say."""
    if re.match(r"#{1,6}\s", section):
        return section
    above = [f"# {title}", *([description] if description not in section else [])]
    return "\n\n".join([*above, section])


# --- frontmatter ------------------------------------------------------------------------------


def _fields(text: str) -> tuple[Mapping[str, object], str]:
    """Split a note into its frontmatter's fields and its body; one that is no YAML is body."""
    head = _HEAD.match(text) if text.startswith("---") else None
    if not head or head.end() > _MAX_HEAD:
        return {}, text
    loaded = load_yaml(head[1] or "", fast=True)
    if not isinstance(loaded, dict):
        said = [line for line in (head[1] or "").split("\n") if line.strip() and line[0] != "#"]
        return {}, text if said else text[head.end() :]
    return {str(key): value for key, value in loaded.items()}, text[head.end() :]


def _one_line(value: object) -> str:
    return " ".join(value.split())[:200] if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _named_tags(fields: Mapping[str, object]) -> list[str]:
    texts = (text for name in _TAGS for text in _texts(fields.get(name)))
    return [word.lstrip("#") for text in texts for word in re.split(r"[\s,]+", text)]


def _type(fields: Mapping[str, object]) -> list[str]:
    """Return the note's type as a topic; Claude keeps it under `metadata`."""
    metadata = fields.get("metadata")
    stated = fields.get("type") or (metadata.get("type") if isinstance(metadata, dict) else "")
    return [] if stated == "note" else words(_one_line(stated))


def _stated_times(fields: Mapping[str, object], stem: str) -> list[object]:
    """Return what may be the note's time: as it says, or as its name begins."""
    dated = re.match(r"\d{4}-\d\d-\d\d(?!\d)", stem)
    return [*(fields.get(name) for name in _CREATED), dated and dated[0]]


def _kept_lines(fields: Mapping[str, object]) -> Iterator[str]:
    """Write the fields that a memory has no place for, each on one line that any YAML reads."""
    for name, value in fields.items():
        flat = value if isinstance(value, str) else _texts(value)
        plain = re.fullmatch(r"[A-Za-z][\w-]{0,63}", name, re.ASCII)
        line = json.dumps(flat)
        if plain and flat and name not in _USED and len(line) <= 2000:
            yield f"{name}: {line}"


# --- body -------------------------------------------------------------------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]{0,63}[^\W\d])([\w/-]{1,64})")
_CATEGORY = re.compile(r"\s{0,8}[-*] \[([^\W\d][\w-]{1,63})\] ")
_SECTION = re.compile(r"#{1,2}[ \t]+(\S.*)")


def _prose(body: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and of each whether it is prose and no code."""
    fence = ""
    for line in body.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            yield line, False
        else:
            yield line, not fence
            if mark and mark[1].startswith(fence):
                fence = ""


def _inline_tags(body: str, *, categories: bool) -> Iterator[str]:
    for line, is_prose in _prose(body):
        if is_prose and "#" in line:
            yield from _TAG.findall(re.sub(r"`[^`]*`", "`", line))
        if is_prose and categories and (category := _CATEGORY.match(line)):
            yield category[1]


def _sections(body: str) -> Iterator[tuple[str, str]]:
    """Cut at the headings of the first two levels; leave out those without a text of their own."""
    heading, lines = "", list[str]()
    for line, is_prose in [*_prose(body), ("# end", True)]:
        begins = _SECTION.match(line) if is_prose else None
        if not begins:
            lines.append(line)
            continue
        if any(each.strip() for each in lines[bool(heading) :]):
            yield heading, "\n".join(lines)
        heading, lines = begins[1].strip(" \t#")[:200], [line]


_IDLE_WORDS = (
    "a an and are as at be but by for from how in into is it its my not note notes of on or our "
    "so that the their then this to was what when where which who why will with you your"
)
_IDLE = frozenset(_IDLE_WORDS.split())


def words(*texts: str) -> list[str]:
    """Return the words of names and headings that say something, in lower case."""
    found = (word for text in texts for word in re.findall(r"[^\W_]+", text.lower()))
    return [word for word in found if len(word) > 1 and word not in _IDLE and not word.isdigit()]
