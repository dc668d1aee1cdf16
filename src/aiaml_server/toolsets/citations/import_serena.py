"""Import Serena's memories: each file's text stays byte for byte, and the originals stay."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.errors import NoRepository
from aiaml_server.toolsets.citations.models import MAX_SUBJECT, Link, Memory, current_time
from aiaml_server.toolsets.citations.service import MemoryService
from aiaml_server.toolsets.citations.store import MAX_BYTES, MAX_HEAD

SERENA_DIRECTORY = ".serena/memories"
_REFERENCE = re.compile(r"\bmem:([A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)")


class ImportedFile(NamedTuple):
    """What became of one of Serena's memories.

    Attributes:
        source: its path.
        id: the id of the memory that it became.
        is_new: whether there was no memory of that id.
        problem: why it was skipped, or which of its references lead nowhere.
    """

    source: str
    id: str
    is_new: bool
    problem: str


def import_serena(
    memories: MemoryService, directory: Path | None = None, *, dry_run: bool = False
) -> list[ImportedFile]:
    """Import all memories of Serena that are not there yet.

    Args:
        memories: where they go.
        directory: where they are; None for `.serena/memories` in the repository.
        dry_run: write nothing.

    Raises:
        NoRepository: there is no such directory.
        Busy, DiskError: a memory cannot be written; the next run goes on.
    """
    top = directory or memories.root / SERENA_DIRECTORY
    if not top.is_dir():
        raise NoRepository(f"{top} is not a directory; name the one with Serena's memories")
    files = dict(_read_files(top))
    existing = memories.store.ids()
    results = []
    for name, text in files.items():
        source, new_id = f"{name}.md", _memory_id(name)
        if isinstance(text, Exception):
            results.append(ImportedFile(source, new_id, False, str(text)))
            continue
        targets = list(dict.fromkeys(_REFERENCE.findall(text)))
        dead = [target for target in targets if target not in files]
        problem = f"nothing is called {', '.join(dead)}" if dead else ""
        is_new = new_id not in existing
        results.append(ImportedFile(source, new_id, is_new, problem))
        if is_new and not dry_run:
            links = [Link("references", _memory_id(each)) for each in targets if each in files]
            memory = Memory(
                id=new_id,
                subject=_subject(text) or name[-MAX_SUBJECT:],
                content=text,
                created=current_time(),
                links=tuple(links),
                tags=tuple(name.split("/")[:-1]),
            )
            with memories.store.writing():
                memories.store.add(memory, {"source": f"{SERENA_DIRECTORY}/{source}"})
    return results


def _read_files(top: Path) -> Iterator[tuple[str, str | Exception]]:
    """Yield each file's name without extension, and its text or why it cannot be read."""
    for path in sorted(top.rglob("*.md")):
        name = path.relative_to(top).with_suffix("").as_posix()
        try:
            yield name, read_regular(os.fspath(path), MAX_BYTES - MAX_HEAD).decode("utf-8")
        except (OSError, ValueError, MalformedFile) as error:
            yield name, error


def _memory_id(name: str) -> str:
    """Return `mem-topic.name` for `topic/name`; with a hash if other characters were replaced."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_/-]{0,100}", name):
        return f"mem-{name.replace('/', '.')}"
    letters = re.sub(r"[^A-Za-z0-9]+", "-", name)[:80].strip("-") or "serena"
    return f"mem-{letters}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _subject(text: str) -> str:
    """Return the first line with a word in it, without the signs of a heading."""
    line = next((line for line in text.splitlines() if re.search(r"\w", line)), "")
    words = re.sub(r"[\ufeff\x00-\x1f\x7f-\x9f]", " ", line).lstrip("# ").split()
    return " ".join(words)[:MAX_SUBJECT].strip()
