"""`toolsets`: what there is to serve."""

from __future__ import annotations

import os
from typing import Any

import click

from aiaml_server import toolsets as known
from aiaml_server.terminal import as_json, bold, dim, out, out_json, wrapped
from aiaml_server.toolset import Door


@click.command("toolsets")
@as_json
def toolsets(json: bool) -> None:
    """List the toolsets that can be served, each with its tools.

    `aiaml-server` serves the first one, unless `--toolset NAME` (several times for several) or
    AIAML_TOOLSETS names others.

    \b
    Examples:
      aiaml toolsets
      aiaml install cursor --toolset aiaml
      aiaml toolsets --json
    """
    served = known.VARIABLE.value(os.environ)
    doors = [known.door(name) for name in known.NAMES]
    if json:
        out_json([_fields(door, served) for door in doors])
        return
    for door in doors:
        mark = "  (served when nothing else is asked for)" if door.name in served else ""
        out(wrapped(f"{bold(door.name)}  {door.summary}{dim(mark)}", 4))
        out(wrapped(f"    {', '.join(door.tools)}"))
        if door.extra:
            state = "not installed" if known.missing(door) else "installed"
            out(wrapped(f"    needs aiaml-server[{door.extra}]: {state}"))


def _fields(door: Door, served: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": door.name,
        "summary": door.summary,
        "tools": list(door.tools),
        "variables": [each.name for each in door.variables],
        "extra": door.extra,
        "installed": not known.missing(door),
        "served": door.name in served,
    }
