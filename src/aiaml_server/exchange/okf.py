"""Memories as concepts of the Open Knowledge Format, and concepts as memories, without loss.

The format is version 0.2 of `okf/SPEC.md` in GoogleCloudPlatform/knowledge-catalog, of 2026-08-20:
markdown files with YAML frontmatter, in which `type` is the one required key. A concept that is
made here is a memory's file as well, with `type`, `tags`, `generated` and `stale_after` behind our
own fields, and a line `okf-added` that names those of them that the memory does not have itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.exchange.found import Found, Kept, Note, Skip, printable
from aiaml_server.exchange.notes import Style, notes_in, one_line
from aiaml_server.exchange.walk import markdown_below, place, read_text
from aiaml_server.format.memory import (
    OURS,
    Memory,
    checked_user,
    format,  # noqa: A004 (the word for it)
    parse,
)
from aiaml_server.frontmatter import (
    format_scalar,
    load_yaml,
    parse_list,
    parse_text,
    split,
    split_entries,
)
from aiaml_server.timestamps import format_timestamp, parse_timestamp, to_utc

VERSION = "0.2"
RESERVED = ("index.md", "log.md")
"""Names of files that are no concepts (§3.1)."""

_ADDED, _KEPT, _ABOVE = "okf-added", "okf-kept", "okf-above"
_OURS = OURS | {_ADDED, _KEPT, _ABOVE}
_MOST = 4_000  # characters of what is put above a body
_MAX_HEAD = 8 * 1024  # characters of a frontmatter that is kept as it stands
_NONE = Memory("a1b2c3d4", "2026-01-01", "a", "u", ("t",), "x")


def concept(memory: Memory) -> str:
    """Return a memory as the text of a concept; `own` makes the same memory of what `parse` reads.

    Lines of its frontmatter that are no YAML, or say a key twice, stand as one text in `okf-kept`.

    Raises:
        MalformedFile: its frontmatter is too long for another four lines.
    """
    for lines in (memory.extra, ()):
        stated = _stated(lines)
        above = parse_text(stated[_ABOVE]) if _ABOVE in stated else None
        cut = bool(above) and memory.content.startswith(above or "")
        added = {key: value for key, value in _said(memory).items() if key not in stated}
        names = [*added, *([_ABOVE] if cut else [])]
        kept = "\n".join(memory.extra) if lines != memory.extra else None
        head = [f"{key}: {value}" for key, value in added.items()]
        head += [f"{_ADDED}: [{', '.join(names)}]"]
        head += [] if kept is None else [f"{_KEPT}: {format_scalar(kept)}"]
        content = memory.content.removeprefix(above or "") if cut else memory.content
        text = format(replace(memory, content=content, extra=(*head, *lines)))
        with suppress(MalformedFile):
            if _conforms(text) and own(parse(text)) == memory:
                return text
    raise MalformedFile([f"{memory.id} cannot be written as a concept without loss"])


def own(memory: Memory) -> Memory:
    """Return the memory of which `concept` made this one; any other as it is."""
    stated = _stated(memory.extra)
    if _ADDED not in stated:
        return memory
    added = parse_list(stated[_ADDED]) or ()
    if _KEPT in stated:
        return replace(memory, extra=tuple((parse_text(stated[_KEPT]) or "").split("\n")))
    gone = {_ADDED, *added} - {_ABOVE}
    parts = split_entries("\n".join(memory.extra))
    extra = [line for entry in parts if _key(entry) not in gone for line in entry]
    above = parse_text(stated[_ABOVE]) if _ABOVE in added and _ABOVE in stated else ""
    return replace(memory, content=f"{above}{memory.content}", extra=tuple(extra))


def _said(memory: Memory) -> Mapping[str, str]:
    """Return what the format has keys for, as YAML."""
    made = parse_timestamp(memory.timestamp)
    is_actor = "/" in memory.agent or memory.agent.startswith(("human:", "process:"))
    by = format_scalar(
        memory.agent if is_actor else f"{memory.agent}/unknown"
    )  # §7: producer/version
    at = f", at: {format_timestamp(made)}" if made is not None and to_utc(made) else ""
    return {
        "type": "Memory",
        "tags": f"[{', '.join(map(format_scalar, memory.topics))}]",
        "generated": f"{{by: {by}{at}}}",
    }


def _conforms(text: str) -> bool:
    """Say whether a text is a concept (§11): YAML, no key twice, with a type."""
    head = split(text).head
    keys = [_key(entry) for entry in split_entries(head) if not entry[0].startswith("#")]
    fields = load_yaml(head, fast=True)
    stated = fields.get("type") if isinstance(fields, dict) else None
    return isinstance(stated, str) and bool(stated.strip()) and len(keys) == len({*keys})


def _key(entry: list[str]) -> str:
    return entry[0].partition(":")[0].strip()


def _stated(lines: Iterable[str]) -> dict[str, list[str]]:
    return {_key(entry): entry for entry in split_entries("\n".join(lines))}


# --- a bundle, read ---------------------------------------------------------------------------


def is_bundle(source: Path) -> bool:
    """Say whether a folder's index names a version of the format (§12)."""
    with suppress(ValueError, MalformedFile):
        return "okf_version" in _stated(split(read_text(source / RESERVED[0])).head.split("\n"))
    return False


def concepts(source: Path, *, split: bool = False, without: Path | None = None) -> Iterator[Found]:
    """Read a bundle or one file of it: memories of ours as they were, other concepts as notes."""
    paths: Iterable[Path | Skip] = [source]
    if source.is_dir():
        paths = markdown_below(source, without)
    for path in paths:
        if isinstance(path, Skip):
            yield path
        elif path == source or path.name not in RESERVED:
            yield from _concept(source, path, split=split)


def _concept(source: Path, path: Path, *, split: bool) -> Iterator[Found]:
    try:
        text = read_text(path).removeprefix("\ufeff").replace("\r\n", "\n")
    except ValueError as error:
        yield Skip(place(source, path), str(error))
        return
    with suppress(MalformedFile):
        yield Kept(place(source, path), own(parse(text)))
        return
    for note in notes_in(source, path, Style("okf", "okf", split)):
        yield _faithful(note, path, text) if isinstance(note, Note) else note


def _faithful(note: Note, path: Path, text: str) -> Note:
    """Have a note keep its concept's frontmatter as it stands, and say what is not of the body."""
    try:
        head, body, _ = split(text)
    except MalformedFile:
        return note
    if len(head) > _MAX_HEAD:
        return note
    fields = load_yaml(head)
    parts = split_entries(head.rstrip("\n"))
    keys = {_key(entry) for entry in parts if not entry[0].startswith("#")}
    if not isinstance(fields, dict) or {*fields} != keys:
        return note  # whose lines are made anew of what YAML reads
    note = replace(note, **_made(fields.get("generated")))
    lines: list[str] = []
    whole = not body.strip()  # then its properties are the note
    if whole or body.strip() == note.said:  # else it is a section
        above = note.content if whole else _above(note.said, fields, printable(path.stem))
        if len(above) < _MOST:
            lines += [f"{_ABOVE}: {format_scalar(above)}"] if above else []
            note = replace(note, content=above if whole else f"{above}{note.said}")
    for entry in parts:
        lines += [f"source-{entry[0]}" if _key(entry) in _OURS else entry[0], *entry[1:]]
    with suppress(MalformedFile):
        if parse(format(replace(_NONE, extra=tuple(lines)))).extra == tuple(lines):
            return replace(note, extra=tuple(lines))
    return note


def _above(body: str, fields: Mapping[str, Any], name: str) -> str:
    """Return what is to be read above a body that does not say it: a title, a description."""
    title, description = one_line(fields.get("title")) or name, one_line(fields.get("description"))
    is_said = title.lower() in body.partition("\n")[0].lower()
    above = [] if is_said else [f"# {title}\n\n"]
    return "".join([*above, f"{description}\n\n" if description not in body else ""])


def _made(generated: object) -> dict[str, Any]:
    """Return who made a concept, and when, where that is said (§5.2)."""
    said = generated if isinstance(generated, dict) else {}
    made: dict[str, Any] = {}
    with suppress(InvalidInput):
        made["agent"] = checked_user(said.get("by", ""))
    at = said.get("at")
    moment = parse_timestamp(at) if isinstance(at, str) else None
    if moment is not None and to_utc(moment):
        made["timestamp"] = format_timestamp(moment)
    return made
