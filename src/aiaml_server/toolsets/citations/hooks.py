"""Hooks around an edit: which memories cite the file, and which of them became stale."""

from __future__ import annotations

import os

from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.citations.citing import relative_path
from aiaml_server.toolsets.citations.service import MemoryService, find_repository
from aiaml_server.toolsets.requests import Request

_MAX_MEMORIES = 20
_CORRECT = Request(
    "Read these memories with memory_get, and correct with memory_save what is no longer true."
)


def before_edit(event: HookInput) -> list[str]:
    """Return a line for each memory that cites the file that is about to be edited."""
    memories, path = _open(event)
    scan = memories.store.scan()
    citing = [memory for memory in scan.memories.values() if memory.cites_any([path])]
    return [f"{each.id} ({each.subject}): {each.fact}" for each in citing[:_MAX_MEMORIES]]


def after_edit(event: HookInput) -> list[str]:
    """Return a line for each citation of the edited file that no longer holds."""
    memories, path = _open(event)
    results, _ = memories.verify_all(files=[path])
    lines = []
    for result in results:
        name = f"{result.memory.id} ({result.memory.subject})"
        stale = [entry for entry in result.stale if entry.citation.path == path]
        lines += [f"{name} cites {each.citation} {each.verdict}" for each in stale]
    return [*lines, _CORRECT] if lines else []


def _open(event: HookInput) -> tuple[MemoryService, str]:
    """Return the repository's memories and the path of the edited file in it."""
    root = find_repository(os.environ.get("AIAML_CITATIONS_REPO"), event.directory)
    path = relative_path(event.path, root, event.directory)
    return MemoryService(root, check_secrets=False), path
