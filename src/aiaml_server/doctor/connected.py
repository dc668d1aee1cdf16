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
    from aiaml_server.clients import connections, this_machine  # noqa: PLC0415 (only this check reads them)

    good = []
    found = list(connections(this_machine()))
    for each in found:
        remedy = f"`aiaml install {each.client.name}` repairs it"
        if each.problem:
            starts = each.command and find(each.command[0])
            level: Level = "error" if each.name and not starts else "warning"
            yield Finding("clients", level, f"{each.client.title}: {each.problem}", remedy)
        if not each.name:
            continue
        try:
            names = [manifest.name for manifest in toolsets.chosen([], each.variables)]
        except InvalidSetting as error:
            what = f"{each.client.title}: {each.path}: the entry does not start, since {error}"
            yield Finding("clients", "error", what, remedy)
            continue
        if not each.problem:
            serves = "" if names == [toolsets.DEFAULT] else f", serves {' and '.join(names)}"
            good.append(f"{each.client.title} ({each.path}{serves})")
    if good:
        yield Finding("clients", "ok", f"connected: {', '.join(good)}")
    elif not any(each.name or each.problem for each in found):
        yield Finding("clients", "ok", "none is connected; `aiaml install --list` shows them")
