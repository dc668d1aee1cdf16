"""`toolsets`: what there is to serve."""

from __future__ import annotations

import os
from typing import Any

import click

from aiaml_server import toolsets as known
from aiaml_server.terminal import as_rows, bold, dim, note, out, out_rows, wrapped
from aiaml_server.toolset import Manifest


@click.command("toolsets")
@as_rows
def toolsets(data: str) -> None:
    """List the toolsets that can be served, each with its tools.

    `aiaml-server` serves the first one, unless `--toolset NAME` (several times for several) or
    AIAML_TOOLSETS names others. Installed packages can offer more.

    \b
    Examples:
      aiaml toolsets
      aiaml install cursor --toolset aiaml
      aiaml toolsets --json
    """
    served = known.VARIABLE.value(os.environ)
    others = known.others()
    manifests = [*map(known.manifest, known.OWN), *others.manifests]
    for sentence in others.unusable:
        note(wrapped(sentence, 2, err=True))
    if data:
        out_rows([_fields(manifest, served) for manifest in manifests], data)
        return
    for manifest in manifests:
        mark = "  (served when nothing else is asked for)" if manifest.name in served else ""
        out(wrapped(f"{bold(manifest.name)}  {manifest.summary}{dim(mark)}", 4))
        out(wrapped(f"    {', '.join(manifest.tools)}"))
        if manifest.install:
            state = "not installed" if known.missing(manifest) else "installed"
            out(wrapped(f"    needs {manifest.install}: {state}"))


def _fields(manifest: Manifest, served: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "summary": manifest.summary,
        "tools": list(manifest.tools),
        "variables": [each.name for each in manifest.variables],
        "install": manifest.install,
        "installed": not known.missing(manifest),
        "served": manifest.name in served,
    }
