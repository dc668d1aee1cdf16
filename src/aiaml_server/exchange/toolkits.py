"""The memories of this package's other toolsets, read as the files that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiaml_server.exchange.found import Note, Skip, label
from aiaml_server.exchange.jsonl import Record
from aiaml_server.exchange.notes import Style, notes_in
from aiaml_server.exchange.records import Fields, document, note_of
from aiaml_server.exchange.walk import markdown_below, place, read_text

_SESSIONS = Path(".github", "agent-memory")
_ENTRY = Fields("content", "", "tags+category", "created_at")
_CITING = re.compile(r"mem-[\w-]{1,200}\.(?:md|markdown)")


# --- sessions ---------------------------------------------------------------------------------


def sessions_below(source: Path) -> Path | None:
    """Return the folder of a repository's session logs; None where there is none."""
    if source.name == "agent-memory" and source.is_dir():
        return source
    return source / _SESSIONS if (source / _SESSIONS).is_dir() else None


def sessions(source: Path, *, split: bool) -> Iterator[Note | Skip]:
    """Read the logs and summaries of each agent; what has no entry is skipped."""
    top = sessions_below(source) or source
    repository = [] if top == source else [label(source).rpartition("/")[2]]
    for path in markdown_below(top):
        if isinstance(path, Skip):
            yield path
        elif path.name == "_schema.md":
            yield Skip(place(top, path), "it says how the others are written, and is no memory")
        else:
            with suppress(ValueError):  # told below
                if not any(map(_is_entry, read_text(path).splitlines())):
                    yield Skip(place(top, path), "it has no entry")
                    continue
            agent = path.relative_to(top).parts[0] if path.parent != top else "sessions"
            style = Style("sessions", agent, split)
            yield from notes_in(top, path, style, [*repository, agent])


def _is_entry(line: str) -> bool:
    header = ("- Agent Name:", "- Date:", "- Session ID:")
    return bool(line.strip()) and not line.startswith(("#", *header))


# --- compartments -----------------------------------------------------------------------------


def is_compartments(value: object) -> bool:
    """Say whether a JSON document is the file of the toolset `compartments`."""
    return isinstance(value, dict) and "format" in value and bool({"runs", "sessions"} & {*value})


def compartments(path: Path) -> Iterator[Note | Skip]:
    """Read the entries of all runs, sessions and plans."""
    where = place(path, path)
    try:
        value = document(path)
    except ValueError as error:
        yield Skip(where, str(error))
        return
    for kind in ("runs", "sessions"):
        for owner, parts in _items(value.get(kind) if isinstance(value, dict) else None):
            for name, entries in _items(parts):
                for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
                    at = f"{where}:{owner}/{name}/{number}"
                    if isinstance(entry, dict):
                        told = {**entry, "compartment": name, kind[:-1]: owner}
                        record = Record(f"{where}:{number}", told)
                        yield note_of(record, path, "compartments", _ENTRY)
                    else:
                        yield Skip(at, "it is no entry")


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


# --- citations --------------------------------------------------------------------------------


def citations_below(source: Path) -> Path | None:
    """Return the folder of a repository's cited memories; None where there is none."""
    for folder in (source, source / "memories"):
        if folder.is_dir() and any(_CITING.fullmatch(path.name) for path in folder.glob("mem-*")):
            return folder
    return None


def citations(source: Path, *, split: bool) -> Iterator[Note | Skip]:
    """Read the memories of a code base; what they cite stays in the frontmatter."""
    top = citations_below(source) or source
    style = Style("citations", "citations", split)
    about = [label(top).split("/")[0]]
    for path in markdown_below(top) if top.is_dir() else [top]:
        yield from [path] if isinstance(path, Skip) else notes_in(top, path, style, about)
