"""What an agent is told around an edit: which memories cite the file, and which hold no more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.citations import REPOSITORY
from aiaml_server.toolsets.citations.memories import MOST, Memories, find_root
from aiaml_server.toolsets.citations.model import Citation, Memory
from aiaml_server.toolsets.failures import shorten

_CONTENT = 200  # characters


def before(given: HookInput) -> Iterator[str]:
    """Yield the memories that cite a file, which is about to be edited."""
    _, cited = _citing(given.directory, given.path)
    for memory, lines in cited:
        content = shorten(" ".join(memory.content.split()), _CONTENT)
        yield f"{memory.id} cites this file ({lines}): {memory.subject}: {content}"


def after(given: HookInput) -> Iterator[str]:
    """Yield the memories whose citation of a file, which was edited, no longer holds."""
    memories, cited = _citing(given.directory, given.path)
    results, _ = memories.verify_all([memory.id for memory, _ in cited[:MOST]])
    for result in results:
        wrong = [
            f"{'line ' if each.citation.line else ''}{_line(each.citation)}: {each.verdict}"
            for each in result.stale
            if (memories.root / each.citation.path) == _absolute(given.directory, given.path)
        ]
        if wrong:
            remedy = "memory_get shows it; where it is no longer true, memory_save puts it right"
            yield f"{result.memory.id} is stale ({'; '.join(wrong)}): {remedy}"


def _absolute(place: str, file: str) -> Path:
    return Path(os.path.realpath(Path(place) / file))


def _citing(place: str, file: str) -> tuple[Memories, list[tuple[Memory, str]]]:
    """Return the repository's memories, and those that cite a file, each with the lines."""
    given = os.environ.get(REPOSITORY)
    root = find_root(given, None if given else Path(place))
    memories = Memories(root, check_secrets=False)
    wanted = _absolute(place, file)
    found = []
    for memory in memories.list().memories.values():
        lines = [_line(each) for each in memory.citations if (root / each.path) == wanted]
        if file and lines:
            found.append((memory, ", ".join(lines)))
    return memories, found


def _line(citation: Citation) -> str:
    return str(citation.line or "the whole file")
