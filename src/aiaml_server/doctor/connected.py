"""The clients: what their configurations start, and whether that is there."""

from __future__ import annotations

from collections.abc import Iterator

from aiaml_server.programs import find

from .context import Context
from .finding import Finding, Level


def clients(_: Context) -> Iterator[Finding]:
    """Look into every client's configuration."""
    from aiaml_server.clients import connections  # noqa: PLC0415 (only this check reads them)
    from aiaml_server.entry import ENTRY, machine  # noqa: PLC0415

    good = []
    for each in (found := connections(ENTRY, machine())):
        starts = each.command and find(each.command[0])
        for problem in each.problems:
            level: Level = "error" if each.connected and not starts else "warning"
            remedy = problem.remedy or f"correct it, or run `aiaml install {each.client.name}`"
            yield Finding("clients", level, f"{each.client.title}: {problem.what}", remedy)
        if each.connected and not each.problems:
            good.append(f"{each.client.title} ({each.path})")
    if good:
        yield Finding("clients", "ok", f"connected: {', '.join(good)}")
    elif not any(each.problems for each in found):
        yield Finding("clients", "ok", "none is connected; `aiaml install --list` shows them")
