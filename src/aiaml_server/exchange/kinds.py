"""The kinds of source: how each is told from the others, and read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.exchange.chats import chatgpt, chatgpt_files, claude_ai, claude_ai_files
from aiaml_server.exchange.databases import database_below, kind_of, rows_of
from aiaml_server.exchange.found import Found, Kept, Skip, label
from aiaml_server.exchange.jsonl import Record, entities_in, memories_in, records
from aiaml_server.exchange.notes import Style, notes_in
from aiaml_server.exchange.okf import concepts, is_bundle
from aiaml_server.exchange.records import Fields, document, fields_of, is_mem0, notes_of, records_in
from aiaml_server.exchange.toolkits import (
    citations,
    citations_below,
    compartments,
    is_compartments,
    sessions,
    sessions_below,
)
from aiaml_server.exchange.walk import MARKDOWN, beginning, markdown_below, place, read_text
from aiaml_server.format.memory import parse
from aiaml_server.storage.store import MAX_FILE

_LOOKED_AT = 100  # files of a folder, to tell what it is


@dataclass(frozen=True)
class Reading:
    """How a source is to be read.

    Attributes:
        split: each section of a note becomes a memory of its own.
        without: a folder to leave out: the own memories.
        fields: which fields of records say what, where a person gave it.
        named: a person said of what kind the source is: what it has besides is left out.
    """

    split: bool = False
    without: Path | None = None
    fields: Fields | None = None
    named: bool = False


Reader = Callable[[Path, Reading], Iterator[Found]]


# --- readers ----------------------------------------------------------------------------------


def _own_folder(source: Path) -> Path:
    return source / "files" if (source / "files").is_dir() else source


def _own_files(source: Path, reading: Reading) -> Iterator[Found]:
    for path in _markdown(_own_folder(source), reading):
        if isinstance(path, Skip):
            yield path
            continue
        try:
            yield Kept(place(source, path), parse(read_text(path, MAX_FILE)))
        except (ValueError, MalformedFile) as error:
            yield Skip(place(source, path), str(error))


def _plain(kind: str, *, categories: bool = False, templates: bool = False) -> Reader:
    def read(source: Path, reading: Reading) -> Iterator[Found]:
        style = Style(kind, kind, reading.split, categories, templates)
        for path in _markdown(source, reading):
            yield from [path] if isinstance(path, Skip) else notes_in(source, path, style)

    return read


def _serena_folder(source: Path) -> Path:
    inside = (source / "memories",) if source.name == ".serena" else ()
    return next(filter(Path.is_dir, (*inside, source / ".serena" / "memories")), source)


def _serena(source: Path, reading: Reading) -> Iterator[Found]:
    style = Style("serena", "serena", reading.split)
    top = _serena_folder(source)
    about = [label(top).split("/")[0]] if "/" in label(top) else []
    for path in _markdown(top, reading):
        yield from [path] if isinstance(path, Skip) else notes_in(top, path, style, about)


_CLAUDE_FILES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md")


def _claude(source: Path, reading: Reading) -> Iterator[Found]:
    """Read a file, a folder of memories, `~/.claude` with those of all projects, or a project."""
    if not source.is_dir():
        yield from _claude_file(source.parent, source, reading)
    elif (source / "MEMORY.md").is_file():
        yield from _claude_memories(source, reading)
    elif _is_claude_home(source):
        for top in _claude_home(source):
            if top.parent != source:
                yield from _claude_memories(top, reading)
                continue
            for path in _markdown(top, reading):
                yield from [path] if isinstance(path, Skip) else _claude_file(source, path, reading)
    else:
        yield from _claude_project(source, reading)


def _is_claude_home(source: Path) -> bool:
    return source.name == ".claude" or any(source.glob("projects/*/memory"))


def _claude_home(source: Path) -> list[Path]:
    """Return what is read of `~/.claude`: files, rules, and the memories of each project."""
    own = (source / name for name in (*_CLAUDE_FILES, "rules"))
    return [*filter(Path.exists, own), *sorted(source.glob("projects/*/memory"))]


def _claude_project(source: Path, reading: Reading) -> Iterator[Found]:
    """Read what is Claude's among a project's files, in all its folders, and the other notes."""
    run, notes = 0, []
    for path in markdown_below(source, reading.without, (".claude",)):
        if isinstance(path, Skip):
            if not reading.named:  # what is no markdown is no memory of Claude's either
                yield path
            continue
        inside = path.relative_to(source).as_posix()
        if path.name in _CLAUDE_FILES or "/.claude/rules/" in f"/{inside}":
            yield from _claude_file(source, path, reading)
        elif "/.claude/" in f"/{inside}":
            run += 1
        else:
            notes.append(path)
    if run:
        yield Skip(label(source), f"what Claude Code runs, in .claude, is no memory: {run:,}")
    if notes and reading.named:
        why = "other markdown files, which come along without `--from claude`"
        yield Skip(label(source), f"{why}: {len(notes):,}")
    elif notes:
        is_basic = any(map(_has_permalink, notes[:_LOOKED_AT]))
        kind = "basic-memory" if is_basic else "markdown"
        style = Style(kind, kind, reading.split, is_basic)
        for path in notes:
            yield from notes_in(source, path, style)


def _claude_memories(folder: Path, reading: Reading) -> Iterator[Found]:
    found = list(_markdown(folder, reading))
    for path in found:
        if isinstance(path, Skip):
            yield path
        elif path.name == "MEMORY.md" and len(found) > 1 and _is_index(path):
            yield Skip(place(folder, path), "it is the index of the files beside it")
        else:
            yield from _claude_file(folder, path, reading)


def _claude_file(top: Path, path: Path, reading: Reading) -> Iterator[Found]:
    # Claude names a project's folder after its path: -home-me-shop
    project = label(top).split("/")[0]
    about = [project.rpartition("-")[2] if project.startswith("-") else project]
    style = Style("claude", "claude-code", reading.split)
    yield from notes_in(top, path, style, [] if top.name == ".claude" else about)


def _is_index(path: Path) -> bool:
    """Say whether every line of a text is a heading or a link to a note."""
    with suppress(ValueError):
        lines = [line for line in read_text(path).splitlines() if line.strip()]
        links = ["[[" in line or _links_to_a_note(line) for line in lines]
        return any(links) and all(
            link or line.startswith("#") for link, line in zip(links, lines, strict=True)
        )
    return False


def _links_to_a_note(line: str) -> bool:
    *parts, _ = line.split(")")
    return any(part.endswith(".md") and "](" in part for part in parts)


def _markdown(source: Path, reading: Reading) -> Iterator[Path | Skip]:
    return markdown_below(source, reading.without) if source.is_dir() else iter([source])


def _records(kind: str, in_folder: str = "") -> Reader:
    def read(source: Path, reading: Reading) -> Iterator[Found]:
        path = source / in_folder if source.is_dir() else source
        yield from notes_of(path, kind, fields_of(path, reading.fields))

    return read


def _graph(source: Path) -> Path:
    """Return the file of the MCP memory server in a folder that has it."""
    return next(filter(Path.is_file, (source / name for name in _GRAPHS)), source)


_GRAPHS = ("memory.jsonl", "memory.json")

READERS: dict[str, Reader] = {
    "aiaml": _own_files,
    "jsonl": lambda source, _: memories_in(source),
    "okf": lambda source, reading: concepts(source, split=reading.split, without=reading.without),
    "mcp-memory": lambda source, _: entities_in(_graph(source)),
    "chatgpt": lambda source, _: chatgpt(source),
    "claude-ai": lambda source, _: claude_ai(source),
    "mem0": _records("mem0", "memories.json"),
    "compartments": lambda source, _: compartments(source),
    "semantic": lambda source, _: rows_of(source, "semantic"),
    "mcp-memory-service": lambda source, _: rows_of(source, "mcp-memory-service"),
    "claude-mem": lambda source, _: rows_of(source, "claude-mem"),
    "sessions": lambda source, reading: sessions(source, split=reading.split),
    "citations": lambda source, reading: citations(source, split=reading.split),
    "json": _records("json"),
    "obsidian": _plain("obsidian", templates=True),
    "serena": _serena,
    "claude": _claude,
    "basic-memory": _plain("basic-memory", categories=True),
    "markdown": _plain("markdown"),
}
"""The reader of each kind, in the order in which a source is tried."""

KINDS = {
    "aiaml": "a memory directory, or its files; also as a zip",
    "jsonl": "JSON Lines that `aiaml export` wrote",
    "okf": "a bundle of the Open Knowledge Format; also as a zip",
    "mcp-memory": "the official MCP memory server's memory.jsonl",
    "chatgpt": "ChatGPT's export, or its conversations.json",
    "claude-ai": "Claude.ai's export, or one of its files",
    "mem0": "memories of mem0, or OpenMemory's export",
    "compartments": "the file of the toolset compartments",
    "semantic": "the database of the toolset semantic, or its .memory",
    "mcp-memory-service": "the sqlite_vec.db of mcp-memory-service, or its folder",
    "claude-mem": "the database of claude-mem, or ~/.claude-mem",
    "sessions": "session logs of the toolset sessions",
    "citations": "a code base's memories of the toolset citations",
    "json": "other JSON or JSON Lines; `--map` says which field is what",
    "obsidian": "an Obsidian vault",
    "serena": "Serena's .serena/memories",
    "claude": "CLAUDE.md, a memory folder of Claude Code, or ~/.claude",
    "basic-memory": "notes of Basic Memory",
    "markdown": "any markdown file or folder",
}
"""What each kind is, in a few words."""

# --- telling them apart -----------------------------------------------------------------------


def detect(source: Path) -> str | None:
    """Return the kind of a source, or None where it cannot be told."""
    if source.is_dir():
        return next((kind for kind, is_so in _FOLDERS.items() if is_so(source)), None)
    if source.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        return _detect_lines(source)
    if beginning(source, 15) == "SQLite format 3":
        return kind_of(source) or "semantic"  # whose reader says that it is none
    return _detect_note(source) if source.suffix.lower() in MARKDOWN else None


def others(source: Path, kind: str, without: Path | None = None) -> Iterator[Skip]:
    """Name what else a folder has than what is read as `kind`.

    Args:
        source: the folder; of a file there is nothing else.
        kind: what it was found to be.
        without: a folder to leave out: the own memories.
    """
    if not source.is_dir():
        return
    where = label(source)
    # Of a vault every note is read, also those that have another meaning in a project.
    seen = {kind, *(("claude", "citations") if kind == "obsidian" else ())}
    also = [each for each in _OF_PROJECTS if each not in seen and _FOLDERS[each](source)]
    yield from (Skip(where, f"it also has what `--from {each}` takes") for each in also)
    own = _PARTS[kind](source) if kind in _PARTS else [source]
    if source in own:
        return
    rest = list(markdown_below(source, without, besides=own))
    named = _CLAUDE_FILES if "claude" in also else ()
    notes = [path for path in rest if isinstance(path, Path) and path.name not in named]
    if notes:
        other = "basic-memory" if any(map(_has_permalink, notes[:_LOOKED_AT])) else "markdown"
        yield Skip(where, f"other markdown files, which `--from {other}` takes: {len(notes):,}")
    yield from (each for each in rest if isinstance(each, Skip))


def _below(source: Path) -> list[Path]:
    found = islice(markdown_below(source), _LOOKED_AT)
    return [path for path in found if isinstance(path, Path)]


def _detect_export(source: Path) -> str | None:
    """Tell an unpacked export by the files that it has."""
    kinds = ("chatgpt", "claude-ai", "mem0")
    for pattern in ("conversations*.json", "memories*.json", "projects*.json", "memories/*.json"):
        for path in sorted(source.glob(pattern))[:1]:
            if (kind := _detect_lines(path)) in kinds:
                return kind
    return None


def _detect_note(source: Path) -> str:
    if _is_memory(source):
        return "aiaml"
    if ".serena" in source.parts:
        return "serena"
    if source.name in (*_CLAUDE_FILES, "MEMORY.md"):
        return "claude"
    return "basic-memory" if _has_permalink(source) else "markdown"


_SIGNS = {
    "chatgpt": ('"mapping"',),
    "claude-ai": ('"chat_messages"', '"conversations_memory"', '"prompt_template"', '"is_private"'),
}
_SIGNS_OF_CLAUDE = ("MEMORY.md", *_CLAUDE_FILES, ".claude/CLAUDE.md", ".claude/rules")
_BEGINNING = 256 * 1024  # bytes of a document that may be large


def _detect_lines(source: Path) -> str | None:
    if source.suffix.lower() == ".json":
        begins = beginning(source, _BEGINNING)
        for kind, signs in _SIGNS.items():
            if any(sign in begins for sign in signs):
                return kind
        with suppress(ValueError):
            if is_compartments(document(source)):
                return "compartments"
    if is_mem0(source):
        return "mem0"
    lines = islice(records_in(source), _LOOKED_AT)
    found = [each.value for each in lines if isinstance(each, Record)]
    # A file that is called a document may have one on each line.
    also = islice(records(source) if source.suffix.lower() == ".json" else (), _LOOKED_AT)
    for value in [*found, *(each.value for each in also if isinstance(each, Record))]:
        if value.get("type") in ("entity", "relation"):
            return "mcp-memory"
        if {"id", "timestamp", "agent", "user", "topics", "content"} <= value.keys():
            return "jsonl"
    return "json" if any(found) else None


def _some(folder: Path) -> list[Path]:
    with suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))  # noqa: PTH208
        return [folder / name for name in names[:_LOOKED_AT]]
    return []


def _is_memory(path: Path) -> bool:
    with suppress(ValueError, MalformedFile):
        parse(read_text(path, MAX_FILE))
        return True
    return False


def _has_permalink(path: Path) -> bool:
    with suppress(ValueError):
        head, closing, _ = read_text(path).removeprefix("\ufeff")[:8192].partition("\n---")
        return bool(closing and head.startswith("---") and re.search(r"(?m)^permalink:", head))
    return False


_FOLDERS: dict[str, Callable[[Path], object]] = {
    "okf": is_bundle,
    "aiaml": lambda source: any(map(_is_memory, (*_some(source / "files"), *_some(source)))),
    "obsidian": lambda source: (source / ".obsidian").is_dir(),
    "chatgpt": lambda source: _detect_export(source) == "chatgpt",
    "claude-ai": lambda source: _detect_export(source) == "claude-ai",
    "mem0": lambda source: _detect_export(source) == "mem0",
    "sessions": sessions_below,
    "semantic": partial(database_below, kind="semantic"),
    "mcp-memory-service": partial(database_below, kind="mcp-memory-service"),
    "claude-mem": partial(database_below, kind="claude-mem"),
    "serena": lambda source: (
        ".serena" in source.parts or (source / ".serena" / "memories").is_dir()
    ),
    "claude": lambda source: (
        any((source / name).exists() for name in _SIGNS_OF_CLAUDE)
        or any(source.glob("projects/*/memory"))
    ),
    "citations": citations_below,
    "mcp-memory": lambda source: (
        _graph(source) != source and _detect_lines(_graph(source)) == "mcp-memory"
    ),
    "basic-memory": lambda source: any(map(_has_permalink, _below(source))),
    "markdown": _below,
}
"""What makes a folder a source of each kind, in the order in which they are tried."""

_PARTS: dict[str, Callable[[Path], list[Path]]] = {
    "aiaml": lambda source: [_own_folder(source)],
    "chatgpt": chatgpt_files,
    "claude-ai": claude_ai_files,
    "mem0": lambda source: [source / "memories.json"],
    "sessions": lambda source: [sessions_below(source) or source],
    "semantic": lambda source: [(database_below(source, "semantic") or source / "db").parent],
    "mcp-memory-service": lambda source: [source],
    "claude-mem": lambda source: [source],
    "serena": lambda source: [_serena_folder(source)],
    "claude": lambda source: _claude_home(source) if _is_claude_home(source) else [source],
    "citations": lambda source: [citations_below(source) or source],
    "mcp-memory": lambda source: [_graph(source)],
}
"""What is read of a folder of each kind that is not read as a whole."""

_OF_PROJECTS = ("sessions", "semantic", "serena", "claude", "citations", "mcp-memory")
