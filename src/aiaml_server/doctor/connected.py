"""The clients: what their configurations start, and whether that is there."""

from __future__ import annotations

from collections.abc import Iterator

from aiaml_server import toolsets
from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, Level
from aiaml_server.errors import InvalidSetting
from aiaml_server.storage.programs import find


def clients(_: Context) -> Iterator[Finding]:
    """Look into every client's configuration."""
    from aiaml_server.clients import besides, connections  # noqa: PLC0415 (only this check reads them)
    from aiaml_server.clients.entry import ENTRY, machine  # noqa: PLC0415

    good = []
    for each in (found := connections(machine())):
        starts = each.command and find(each.command[0])
        for problem in each.problems:
            level: Level = "error" if each.connected and not starts else "warning"
            remedy = problem.remedy or f"correct it, or run `aiaml install {each.client.name}`"
            yield Finding("clients", level, f"{each.client.title}: {problem.what}", remedy)
        if not each.connected:
            continue
        is_first = each.name == ENTRY
        for other in besides(each.client, machine()) if is_first else ():
            what = f"{each.client.title} {other.what}"
            yield Finding("clients", "warning", what, other.remedy)
        try:
            names = [manifest.name for manifest in toolsets.chosen([], each.variables)]
        except InvalidSetting as error:
            remedy = f"`aiaml install {each.client.name} --toolset NAME` puts it right"
            what = f"{each.client.title}: {each.path}: the entry does not start, since {error}"
            yield Finding("clients", "error", what, remedy)
            continue
        if not each.problems:
            which = "" if is_first else f", as {each.name}"
            serves = "" if names == [toolsets.DEFAULT] else f", serves {' and '.join(names)}"
            good.append(f"{each.client.title} ({each.path}{which}{serves})")
    if good:
        yield Finding("clients", "ok", f"connected: {', '.join(good)}")
    elif not any(each.connected or each.problems for each in found):
        yield Finding("clients", "ok", "none is connected; `aiaml install --list` shows them")
