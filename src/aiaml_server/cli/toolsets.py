"""`toolsets`: what there is to serve."""

from __future__ import annotations

import os
from typing import Any

import click

from aiaml_server import toolsets as known
from aiaml_server.terminal import bold, dim, echo, echo_rows, rows_options, wrap
from aiaml_server.toolset import Manifest


@click.command("toolsets")
@rows_options
def toolsets(data: str) -> None:
    """List the toolsets that can be served, each with its tools.

    `aiaml-server` serves the first one, unless `--toolset NAME` (several times for several) or
    AIAML_TOOLSETS names others.

    \b
    Examples:
      aiaml toolsets
      aiaml install cursor --toolset aiaml
      aiaml toolsets --json
    """
    served = known.TOOLSETS.value(os.environ)
    manifests = [known.manifest(name) for name in known.OWN]
    if data:
        echo_rows([_fields(manifest, served) for manifest in manifests], data)
        return
    for manifest in manifests:
        mark = "  (served when nothing else is asked for)" if manifest.name in served else ""
        echo(wrap(f"{bold(manifest.name)}  {manifest.summary}{dim(mark)}", 4))
        echo(wrap(f"    {', '.join(manifest.tools)}"))
        if manifest.install:
            state = "not installed" if known.missing(manifest) else "installed"
            echo(wrap(f"    needs {manifest.install}: {state}"))


def _fields(manifest: Manifest, served: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "summary": manifest.summary,
        "tools": list(manifest.tools),
        "variables": [each.name for each in manifest.settings],
        "install": manifest.install,
        "installed": not known.missing(manifest),
        "served": manifest.name in served,
    }
