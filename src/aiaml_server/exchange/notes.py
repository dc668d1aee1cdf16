"""A markdown file that others wrote → notes: its frontmatter, title, tags, time and sections."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.dates import moment_in
from aiaml_server.exchange.found import PIPED, Note, Skip, printable
from aiaml_server.exchange.walk import MAX_TEXT, first_time, place, read_text
from aiaml_server.format.memory import MAX_TOPICS, OURS
from aiaml_server.frontmatter import check_expanded_size, format_scalar, load_yaml

_CREATED = ("created", "created_at", "createdAt", "date", "timestamp", "updated", "modified")
_TAGS = ("tags", "tag", "keywords", "topics")
_TITLES = ("title", "name", "subject")
_NAMES = (*_TITLES, "aliases", "alias", "author", "authors")
MAX_SECTIONS = 2_500  # of a note, each a memory of its own
_MANY = (
    f"it has more than {MAX_SECTIONS:,} sections, or they are larger than {MAX_TEXT >> 20} MiB with"
    " its properties in each; without `--split heading` it is one memory"
)
_MOST_WORDS = 4 * MAX_TOPICS  # of names and tags, from which a section's topics are taken
_MAX_HEAD = 16 * 1024  # characters of frontmatter
_MAX_KEPT = 40 * 1024  # characters of properties in a memory's frontmatter
_HEAD = re.compile(r"---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Style:
    """How the notes of one kind are read.

    Attributes:
        kind: the kind of source.
        agent: who is taken to have written its notes.
        split: whether each section becomes a note.
        categories: whether `- [category] text` gives a topic, as in basic-memory.
        templates: whether what holds `{{date}}` is a template, as in Obsidian.
    """

    kind: str
    agent: str
    split: bool = False
    categories: bool = False
    templates: bool = False


def notes_in(
    top: Path, path: Path, style: Style, about: Iterable[str] = ()
) -> Iterator[Note | Skip]:
    """Read one markdown file below the source `top`; `about` are more topics for it."""
    where = place(top, path)
    try:
        text = read_text(path).removeprefix("\ufeff").replace("\r\n", "\n")
        fields, body = _fields(text)
        dated = re.match(r"\d{4}-\d\d-\d\d(?!\d)", path.stem)
        made = first_time([*(fields.get(name) for name in _CREATED), dated and dated[0]], path)
    except (ValueError, OSError, MalformedFile) as error:
        yield Skip(where, str(error))
        return
    if style.templates and (sign := _placeholder(text)):
        yield Skip(where, f"it is a template ({sign}); `--from markdown` takes it")
        return
    listed = _listed(fields) if not body.strip() else ""
    if not (body.strip() or listed):
        yield Skip(where, "it is empty")
        return
    stem = "" if where == PIPED else printable(path.stem)
    titled = next((fields[each] for each in _TITLES if fields.get(each)), "")
    title = one_line(titled) or stem
    description = one_line(fields.get("description"))
    folders = [] if path == top else path.relative_to(top).parts[:-1]
    metadata = fields.get("metadata")  # where Claude keeps the type
    stated = fields.get("type") or (metadata.get("type") if isinstance(metadata, dict) else "")
    kinds = [] if stated == "note" else words(one_line(stated))
    described = [*_named_tags(fields)[:_MOST_WORDS], *kinds]
    names = [stem, *(text for name in _NAMES for text in _texts(fields.get(name)))]
    named = [*dict.fromkeys(words(*names, numbers=True))][:_MOST_WORDS]
    extra, lost = kept_lines(fields)
    parts = [*islice(_sections(body), MAX_SECTIONS + 1)] if style.split else [((), body or listed)]
    if len(parts) > MAX_SECTIONS or len(parts) * sum(map(len, extra)) > MAX_TEXT:
        yield Skip(where, _MANY)
        return
    for headings, section in parts:
        tags = [*described, *_inline_tags(section, categories=style.categories)]
        content = _named(section.strip(), title, headings, description)
        below = content.lower()
        missing = [word for word in named if word not in below]
        heading = headings[-1] if headings else ""
        yield Note(
            kind=style.kind,
            agent=style.agent,
            place=f"{where}#{heading}" if heading else where,
            content=content,
            topics=(
                *(tags or words(title)),
                *words(heading),
                *missing,
                *words(*folders),
                *words(*about),
            ),
            timestamp=made,
            extra=extra,
            said=section.strip(),
            former=_titled(section.strip(), title, description),
            below=top if path != top else top.parent,
            lost=(*lost, *_unread_times(fields)),
        )


_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")


def _named(section: str, title: str, headings: Sequence[str], description: str) -> str:
    """Have a text begin with its name: the headings above a section, a title that it lacks."""
    first, _, rest = section.partition("\n")
    begins = _HEADING.fullmatch(first.rstrip())
    if begins and headings:
        path = headings if not title or _says(headings[0], title) else (title, *headings)
        first = f"{begins[1]} {' › '.join(path)}"
    elif title and (not begins or (len(begins[1]) > 1 and not _says(begins[2], title))):
        first, rest = f"# {title}", f"\n{section}"
    if description not in section and not headings:
        rest = f"\n{description}\n\n{rest.lstrip()}"
    return f"{first}\n{rest}".rstrip()


def _says(text: str, title: str) -> bool:
    named, there = set(words(title, numbers=True)), set(words(text, numbers=True))
    return title.lower() in text.lower() or (bool(named) and named <= there)


def _titled(section: str, title: str, description: str) -> str:
    """Return a note's content as earlier versions of this program made it."""
    if re.match(r"#{1,6}\s", section):
        return section
    above = [f"# {title}", *([description] if description not in section else [])]
    return "\n\n".join([*above, section])


_PLACEHOLDER = re.compile(r"\{\{ ?(?:date|time|title)(?: ?:[^{}\n]{0,60})? ?\}\}|<%[-_*+~]? ?tp\.")


def _placeholder(text: str) -> str:
    """Return the first sign of Obsidian's templates, outside of code; empty where there is none."""
    if "{{" not in text and "<%" not in text:
        return ""
    prose = "\n".join(line for line, is_prose in _prose(text) if is_prose)
    found = _PLACEHOLDER.search(re.sub(r"`[^`\n]*`", "`", prose))
    return found[0] if found else ""


# --- frontmatter ------------------------------------------------------------------------------


def _fields(text: str) -> tuple[Mapping[str, object], str]:
    """Split a note into its frontmatter's fields and its body; one that is no YAML is body.

    Raises:
        MalformedFile: the frontmatter's aliases mean too much.
    """
    head = _HEAD.match(text) if text.startswith("---") else None
    if not head or head.end() > _MAX_HEAD:
        return {}, text
    loaded = load_yaml(head[1] or "", fast=True)
    check_expanded_size(loaded)
    if not isinstance(loaded, dict):
        said = [line for line in (head[1] or "").split("\n") if line.strip() and line[0] != "#"]
        return {}, text if said else text[head.end() :]
    return {str(key): value for key, value in loaded.items()}, text[head.end() :]


def one_line(value: object) -> str:
    """Return a text on one line, cut to 200 characters; empty for any other value."""
    return " ".join(value.split())[:200] if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _named_tags(fields: Mapping[str, object]) -> list[str]:
    texts = (text for name in _TAGS for text in _texts(fields.get(name)))
    return [word.lstrip("#") for text in texts for word in re.split(r"[\s,]+", text)]


def _unread_times(fields: Mapping[str, object]) -> Iterator[str]:
    """Name the dates that are passed over, up to the one that is taken."""
    for name in _CREATED:
        text = fields.get(name)
        if isinstance(text, str) and text.strip():
            if moment_in(text) is not None:
                return
            yield f"{name}: {text[:40]!r} names no day for certain"


def _listed(fields: Mapping[str, object]) -> str:
    """Return properties as a list, for a note that has nothing else; empty for mere times."""
    if not any(value for name, value in fields.items() if name not in _CREATED):
        return ""
    pairs = (
        (name, value if isinstance(value, str) else _texts(value) or value)
        for name, value in fields.items()
        if value and name not in _TAGS
    )
    lines = (f"- {name}: {_flat(value)}" for name, value in pairs)
    return "\n".join(lines) or f"- tags: {_flat(_named_tags(fields))}"


def _flat(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())


def kept_lines(fields: Mapping[str, object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the fields that a memory has no place for, each on one line that any YAML reads.

    Returns:
        The lines, and what there is no room for. What would be taken for our own has `source-`
        before its name.
    """
    lines, lost, room = [], [], _MAX_KEPT
    for name, value in fields.items():
        used = name in _TAGS and (isinstance(value, str) or _texts(value) == value)
        if used or value in (None, "", [], {}):
            continue
        line = f"{format_scalar(f'source-{name}' if name in OURS else name)}: {json.dumps(value)}"
        if len(line) > room or len(name) > 200:
            lost.append(f"the property {name[:40]!r} is too long")
        else:
            room -= len(line)
            lines.append(line)
    return tuple(lines), tuple(lost)


# --- body -------------------------------------------------------------------------------------

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`]*`")
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]{0,63}[^\W\d])([\w/-]{1,64})")
_CATEGORY = re.compile(r"\s{0,8}[-*] \[([^\W\d][\w-]{1,63})\] ")
_SECTION = re.compile(r"(#{1,2})[ \t]+(\S.*)")


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
    if "#" not in body and not categories:
        return
    for line, is_prose in _prose(body):
        if is_prose and "#" in line:
            yield from _TAG.findall(_CODE.sub("`", line) if "`" in line else line)
        if is_prose and categories and (category := _CATEGORY.match(line)):
            yield category[1]


def _sections(body: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Cut at the headings of the first two levels; leave out those without a text of their own.

    Yields:
        The headings above each section with its own, and its text.
    """
    above: dict[int, str] = {}
    lines: list[str] = []
    for line, is_prose in [*_prose(body), ("# end", True)]:
        begins = _SECTION.match(line) if is_prose else None
        if not begins:
            lines.append(line)
            continue
        if any(each.strip() for each in lines[bool(above) :]):
            yield tuple(above.values()), "\n".join(lines)
        level = len(begins[1])
        above = {each: heading for each, heading in above.items() if each < level}
        above[level], lines = begins[2].strip(" \t#")[:200], [line]


_IDLE_WORDS = (
    "a about an and any are as at be but by can do for from has have how if in into is it its my "
    "no none not note notes of on or our so some that the their then this to was what when where "
    "which who why will with you your"
)
_IDLE = frozenset(_IDLE_WORDS.split())


def words(*texts: str, numbers: bool = False) -> list[str]:
    """Return the words of names and headings that say something, in lower case."""
    return [word for text in texts for word in _words(text) if numbers or not word.isdigit()]


@lru_cache(maxsize=1024)  # folders and tags come again with each note
def _words(text: str) -> tuple[str, ...]:
    found = re.findall(r"[^\W_]+", text.lower())
    return tuple(
        word for word in found if (len(word) > 1 or not word.isascii()) and word not in _IDLE
    )
