"""The toolsets: which are served here, and what each says of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pkgutil import resolve_name

from aiaml_server import toolsets
from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, guarded


def served(context: Context) -> Iterator[Finding]:
    """Name the toolsets that a server with this environment serves, and make their checks."""
    for finding in guarded("toolsets", _served, context.environ):
        if finding.found not in context.told:  # by the check of the settings
            yield finding


def _served(environ: Mapping[str, str]) -> Iterator[Finding]:
    for manifest in toolsets.chosen([], environ):
        yield Finding("toolsets", "ok", f"{manifest.name}: {', '.join(manifest.tools)}")
        if manifest.checks:
            yield from guarded(manifest.name, resolve_name(manifest.checks), environ)
