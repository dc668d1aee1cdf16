"""What `aiaml doctor` says of a repository's memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiaml_server.toolset import Finding
from aiaml_server.toolsets.citations import MANIFEST
from aiaml_server.toolsets.citations.cli import report
from aiaml_server.toolsets.citations.errors import ToolError
from aiaml_server.toolsets.citations.service import MemoryService

_MAX_NAMED = 5


def check(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the memories can be read, are valid and hold no secret."""
    try:
        memories = MemoryService.from_settings(MANIFEST.read_settings(environ))
        results, unread = memories.verify_all()
    except ToolError as error:
        remedy = "correct it, or set AIAML_CITATIONS_REPO to a repository of yours"
        yield Finding("citations", "warning", str(error), remedy)
        return
    rows = [text for level, _, text in report(results, unread) if level != "notice"]
    found = "; ".join([f"{memories.root}: {len(results)} memories", *rows[:_MAX_NAMED]])
    remedy = "`aiaml citations verify` says more" if rows else ""
    yield Finding("citations", "warning" if rows else "ok", found, remedy)
