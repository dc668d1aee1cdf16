"""Importing markdown files and JSON lines, and exporting JSON lines.

Files are not changed. They are read below allowed directories only, and never through a link.
What was imported once is not imported again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.files import read_regular
from aiaml_server.toolsets.semantic.errors import InvalidInput, InvalidProject
from aiaml_server.toolsets.semantic.markdown import split_markdown
from aiaml_server.toolsets.semantic.models import (
    Memory,
    NewMemory,
    iso_to_sql,
    normalized_hash,
    to_json,
)
from aiaml_server.toolsets.semantic.rules import suggest_priority
from aiaml_server.toolsets.semantic.store import MemoryStore
from aiaml_server.toolsets.warning import IN_DATABASE, secret_warning

PATTERNS = ("memory.md", "notes.md", "adr-*.md", "claude.md", "agents.md")
"""Files that a scan finds, in any case; beside them `.claude/*.md`."""
MAX_BYTES = 4 * 1024 * 1024  # of a file
MAX_FILES = 500  # of a scan
MAX_DIRECTORIES = 5_000  # of a scan
BATCH = 100  # memories in one transaction
_SKIPPED = {"node_modules", "venv", "site-packages", "dist", "build", "target"}
_OWN_FIELDS = ("content", "priority", "category", "source", "path")
_OWN_KEYS = {"timestamp", "topics", *_OWN_FIELDS}


class Candidate(NamedTuple):
    """What would become a memory.

    Attributes:
        memory: what would be stored.
        line: where it begins in its file.
        is_new: whether it is neither stored nor was imported before.
    """

    memory: NewMemory
    line: int
    is_new: bool


class Preview(NamedTuple):
    """What an import would do; `skipped` has the path and the reason of what cannot be read."""

    candidates: list[Candidate]
    skipped: list[tuple[str, str]]
    warnings: list[str]


def scan_project(project: Path) -> list[Path]:
    """Return the files of a project that look like memories."""
    found: list[Path] = sorted((project / ".claude").glob("*.md"))
    for number, (directory, below, names) in enumerate(os.walk(project)):
        below[:] = sorted(each for each in below if each[0] != "." and each not in _SKIPPED)
        found += [
            Path(directory, name)
            for name in sorted(names)
            if any(fnmatch(name.lower(), pattern) for pattern in PATTERNS)
        ]
        if number >= MAX_DIRECTORIES or len(found) >= MAX_FILES:
            break
    return [file for file in found[:MAX_FILES] if not file.is_symlink()]


def preview_import(
    store: MemoryStore, paths: Sequence[str] | None = None, *, anywhere: bool = False
) -> Preview:
    """Return what an import would store; nothing is changed.

    Args:
        store: where it would go.
        paths: files or directories of the project; None for what a scan finds.
        anywhere: whether they may be outside the project, because a person names them.

    Raises:
        InvalidProject: no project is active.
        InvalidInput: a path is missing, outside the project, or reached through a link.
    """
    if paths and anywhere:
        found = [Path(os.path.realpath(name)) for name in paths]
    elif store.project is None:
        raise InvalidProject("file_paths: no project is active whose files could be read")
    elif paths:
        found = [_below(store.project, name) for name in paths]
    else:
        found = scan_project(store.project)
    files: list[Path] = []
    for path in found:
        files += sorted(path.glob("*.md")) if path.is_dir() else [path]
    return _preview(store, files)


def _preview(store: MemoryStore, files: Sequence[Path]) -> Preview:
    """Return what an import of files would store: `.jsonl` as lines of JSON, others as markdown."""
    known = store.existing_keys()
    preview = Preview([], [], [])
    for file in dict.fromkeys(files):
        shown = os.fspath(file)
        if store.project and file.is_relative_to(store.project):
            shown = file.relative_to(store.project).as_posix()
        pieces: list[tuple[NewMemory, int]] = []
        try:
            pieces += _read(file, shown, preview.skipped)
        except OSError as error:
            preview.skipped.append((shown, os_reason(error)))
        except UnicodeDecodeError:
            preview.skipped.append((shown, "it is not UTF-8"))
        except (ValueError, MalformedFile) as error:
            preview.skipped.append((shown, str(error)))
        for memory, line in pieces:
            keys = {normalized_hash(memory.content), memory.import_key or memory.content}
            try:
                candidate = Candidate(memory.validated(), line, not keys & known)
            except InvalidInput as error:
                preview.skipped.append((f"{shown}:{line}", str(error)))
                continue
            preview.candidates.append(candidate)
            known |= keys
    texts = [each.memory.content for each in preview.candidates if each.is_new]
    preview.warnings.extend(secret_warning(*texts, check=store.check_secrets, advice=IN_DATABASE))
    return preview


def run_import(store: MemoryStore, preview: Preview) -> list[str]:
    """Store what a preview shows as new, in batches; return the ids."""
    new = [each.memory for each in preview.candidates if each.is_new]
    ids: list[str] = []
    for start in range(0, len(new), BATCH):
        ids += store.store_many(new[start : start + BATCH])
    return ids


def _below(project: Path, name: str) -> Path:
    """Return the path of a file below the project."""
    path = Path(os.path.normpath(project / name))
    if "\0" in name or not path.is_relative_to(project):
        raise InvalidInput(f"file_paths: {name!r:.200} is not in {project}")
    if os.path.realpath(path) != os.fspath(path):
        raise InvalidInput(f"file_paths: {name} is a link, or is reached through one")
    if not path.exists():
        raise InvalidInput(f"file_paths: {name} does not exist")
    return path


def _read(
    file: Path, shown: str, skipped: list[tuple[str, str]]
) -> Iterator[tuple[NewMemory, int]]:
    """Yield the memories in a file, each with its line; add lines that are none to `skipped`.

    Raises:
        ValueError: it is reached through a link, too large, or not UTF-8.
    """
    if os.path.realpath(file) != os.fspath(file):
        raise ValueError("it is a link, or is reached through one")
    if file.stat().st_size > MAX_BYTES:
        limit = MAX_BYTES // 1024 // 1024
        raise ValueError(f"it is larger than {limit} MiB; split it into several files")
    text = read_regular(os.fspath(file), MAX_BYTES).decode("utf-8-sig")
    if file.suffix.lower() == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            try:
                if line.strip():
                    yield from_json_line(line, shown), number
            except InvalidInput as error:
                skipped.append((f"{shown}:{number}", str(error)))
            except (LookupError, AttributeError, ValueError, RecursionError):
                reason = "it is not a JSON object with a content, or not valid Unicode"
                skipped.append((f"{shown}:{number}", reason))
        return
    for piece in split_markdown(text, file):
        new = NewMemory(
            piece.content,
            tags=piece.tags,
            category=piece.category,
            source="import",
            path=shown,
            created_at=piece.created_at,
            import_key=normalized_hash(piece.content),
        )
        suggestion = suggest_priority(new)
        yield new._replace(priority=suggestion.priority if suggestion else "NORMAL"), piece.line


# --- JSON lines -----------------------------------------------------------------------------------


def to_json_line(memory: Memory, unknown_keys: str) -> str:
    """Return a memory as a line of JSON, as the default toolset writes and reads them.

    Args:
        memory: the memory.
        unknown_keys: a JSON object of keys that an import brought.
    """
    values: dict[str, Any] = {
        "id": memory.content_hash[:8],
        "timestamp": memory.created_at,
        "agent": "semantic",
        "user": memory.project_id or "me",
        "topics": list(memory.tags) or [memory.category or "memory"],
    }
    own = {name: getattr(memory, name) for name in _OWN_FIELDS}
    return to_json({**values, **own, **json.loads(unknown_keys)}) + "\n"


def from_json_line(line: str, shown: str) -> NewMemory:
    """Return the memory in a line of JSON; unknown keys go into `extra`.

    Raises:
        InvalidInput: a known key has a value of the wrong type.
        LookupError, AttributeError, ValueError: it is no object with a text `content`, or holds
            half a surrogate pair.
        RecursionError: it is nested too deeply.
    """
    values = json.loads(line)
    to_json(values).encode()
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    unknown = {name: value for name, value in values.items() if name not in _OWN_KEYS}
    for name in ("priority", "category", "source", "path"):
        if values.get(name) is not None and name not in texts:
            raise InvalidInput(f"{name}: must be text")
    topics = values.get("topics")
    return NewMemory(
        texts["content"],
        tags=[str(topic) for topic in topics] if isinstance(topics, list) else [],
        priority=texts.get("priority"),
        category=texts.get("category"),
        source=texts.get("source", "import"),
        path=texts.get("path", shown),
        created_at=iso_to_sql(texts.get("timestamp", "")),
        import_key=f"id:{values['id']}" if "id" in values else None,
        extra=to_json(unknown),
    )
