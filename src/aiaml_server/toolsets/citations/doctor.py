"""What `aiaml doctor` says of a repository's memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiaml_server.toolset import Finding
from aiaml_server.toolsets.citations import MANIFEST
from aiaml_server.toolsets.citations.errors import ToolError
from aiaml_server.toolsets.citations.report import report_rows
from aiaml_server.toolsets.citations.service import MemoryService, find_repository

_MAX_NAMED = 5


def check(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the memories can be read, are valid and hold no secret."""
    settings = MANIFEST.read_settings(environ)
    root, check_secrets = settings["AIAML_CITATIONS_REPO"], settings["AIAML_CHECK_SECRETS"]
    try:
        memories = MemoryService(find_repository(root), check_secrets=check_secrets)
        results, scan = memories.verify_all()
    except ToolError as error:
        remedy = "correct it, or set AIAML_CITATIONS_REPO to a repository of yours"
        yield Finding("citations", "warning", str(error), remedy)
        return
    rows = [row for row in report_rows(results, scan.unread) if row.level != "notice"]
    found = [f"{memories.root}: {len(results)} memories", *(row.text for row in rows[:_MAX_NAMED])]
    remedy = "`aiaml citations verify` says more" if rows else ""
    yield Finding("citations", "warning" if rows else "ok", "; ".join(found), remedy)
