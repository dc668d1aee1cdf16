"""Import Serena's memories: each file's text stays byte for byte, and the originals stay."""

from __future__ import annotations

import os
import re
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.errors import NoRepository
from aiaml_server.toolsets.citations.models import (
    MAX_SUBJECT,
    Link,
    Memory,
    current_time,
    is_memory_id,
)
from aiaml_server.toolsets.citations.service import MemoryService

SERENA_DIRECTORY = ".serena/memories"
_MAX_BYTES = 960 * 1024
_REFERENCE = re.compile(r"\bmem:([A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)")


def import_serena(memories: MemoryService, directory: Path | None = None) -> dict[str, str]:
    """Import all memories of Serena that are not there yet.

    Args:
        memories: where they go.
        directory: where they are; None for `.serena/memories` in the repository.

    Returns:
        What became of each file: the id of the new memory, or why it was skipped.

    Raises:
        NoRepository: there is no such directory.
        Busy, DiskError: a memory cannot be written; the next run goes on.
    """
    top = directory or memories.root / SERENA_DIRECTORY
    if not top.is_dir():
        raise NoRepository(f"{top} is not a directory; name the one with Serena's memories")
    results = {}
    ids = {}
    for path in sorted(top.rglob("*.md")):
        name = path.relative_to(top).with_suffix("").as_posix()
        ids[name] = f"mem-{name.replace('/', '.')}"
    for name, new_id in ids.items():
        source = f"{name}.md"
        results[source] = new_id
        if new_id in memories.store.ids():
            results[source] = f"{new_id} is there already"
            continue
        if not is_memory_id(new_id):
            results[source] = "skipped: rename it to letters, digits, - and _"
            continue
        try:
            text = read_regular(os.fspath(top / source), _MAX_BYTES).decode("utf-8")
        except (OSError, ValueError, MalformedFile) as error:
            results[source] = f"skipped: {error}"
            continue
        targets = dict.fromkeys(_REFERENCE.findall(text))
        memory = Memory(
            id=new_id,
            subject=_subject(text) or name[-MAX_SUBJECT:],
            content=text,
            created=current_time(),
            links=tuple(Link("references", ids[target]) for target in targets if target in ids),
            tags=tuple(name.split("/")[:-1]),
        )
        with memories.store.writing():
            memories.store.add(memory, {"source": f"{SERENA_DIRECTORY}/{source}"})
    return results


def _subject(text: str) -> str:
    """Return the first line with a word in it, without the signs of a heading."""
    line = next((line for line in text.splitlines() if re.search(r"\w", line)), "")
    words = re.sub(r"[\ufeff\x00-\x1f\x7f-\x9f]", " ", line).lstrip("# ").split()
    return " ".join(words)[:MAX_SUBJECT].strip()
