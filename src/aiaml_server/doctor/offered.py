"""The toolsets: which are served here, and what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from aiaml_server import toolsets
from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import at

from .context import Context
from .finding import Finding, guarded


def served(context: Context) -> Iterator[Finding]:
    """Name the toolsets that a server with this environment serves, and make their checks."""
    try:
        doors = toolsets.chosen([], context.environ)
    except InvalidSetting as error:
        yield Finding("toolsets", "error", str(error), f"correct {error.variable}, or remove it")
        return
    for door in doors:
        yield Finding("toolsets", "ok", f"{door.name}: {', '.join(door.tools)}")
        if door.checks:
            yield from guarded(door.name, at(door.checks), context.environ)
