"""What `aiaml doctor` says of a repository's memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiaml_server.toolset import Finding
from aiaml_server.toolsets.citations import MANIFEST
from aiaml_server.toolsets.citations.errors import NoRepository, ToolError
from aiaml_server.toolsets.citations.service import MemoryService, find_repository


def check(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the memories can be read, are valid and hold no secret."""
    settings = MANIFEST.read_settings(environ)
    given = settings["AIAML_CITATIONS_REPO"]
    try:
        memories = MemoryService(
            find_repository(given), check_secrets=settings["AIAML_CHECK_SECRETS"]
        )
        results, scan = memories.verify_all()
    except NoRepository as error:
        remedy = "start the client in a repository of yours, or set AIAML_CITATIONS_REPO"
        yield Finding("citations", "error" if given else "warning", str(error), remedy)
        return
    except ToolError as error:
        yield Finding("citations", "error", str(error), "correct the file, or make it readable")
        return
    for sentence in scan.unread.values():
        yield Finding("citations", "error", sentence, "correct the file, or delete it")
    problems = [f"{result.path} {result.problem}" for result in results if result.problem]
    stale = sum(bool(result.stale) for result in results)
    found = "; ".join([f"{memories.root}: {len(results)} memories, {stale} stale", *problems[:5]])
    remedy = "`aiaml citations verify` names each line" if stale or problems else ""
    yield Finding("citations", "warning" if remedy else "ok", found, remedy)
    if not memories.index.health_check():
        remedy = "`aiaml citations sync-index` says why; search is by words until then"
        found = f"the index {memories.index.name} does not answer"
        yield Finding("citations", "warning", found, remedy)
