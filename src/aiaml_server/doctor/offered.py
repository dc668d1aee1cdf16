"""The toolsets: which are served here, and what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from aiaml_server import toolsets
from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, guarded
from aiaml_server.errors import InvalidSetting
from aiaml_server.toolset import at


def served(context: Context) -> Iterator[Finding]:
    """Name the toolsets that a server with this environment serves, and make their checks."""
    try:
        manifests = toolsets.chosen([], context.environ)
    except InvalidSetting as error:
        yield Finding("toolsets", "error", str(error), f"correct {error.variable}, or remove it")
        return
    for manifest in manifests:
        yield Finding("toolsets", "ok", f"{manifest.name}: {', '.join(manifest.tools)}")
        if manifest.checks:
            yield from guarded(manifest.name, at(manifest.checks), context.environ)
