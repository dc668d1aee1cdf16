"""Checks of the program: its version, its packages, its settings and toolsets."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name

from aiaml_server import __version__, toolsets
from aiaml_server.doctor.context import PREFIX, Context, guarded, wrong_setting
from aiaml_server.settings import SETTINGS
from aiaml_server.toolset import Finding


def version(_: Context) -> Iterator[Finding]:
    """Report the program, where it is installed, and what it runs on."""
    place = Path(__file__).parents[2]
    system = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    found = f"aiaml-server {__version__} in {place}, {system}, {platform.platform()}"
    yield Finding("version", "ok", found)


def settings(context: Context) -> Iterator[Finding]:
    """Report settings that cannot be used, and variables that are no settings."""
    for error in context.wrong.values():
        yield wrong_setting("settings", error)
    known = [setting.name for setting in (*SETTINGS, *toolsets.SETTINGS)]
    for name in toolsets.OWN:
        known += [setting.name for setting in toolsets.manifest(name).settings]
    given = sorted(name for name in context.environ if name.upper().startswith(PREFIX))
    for name in given:
        if name not in (*known, "AIAML_LAUNCHER"):
            near = get_close_matches(name.upper(), known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield Finding("settings", "warning", f"{name} is set, but is not a setting", remedy)
    good = [name for name in given if name in known and name not in context.wrong]
    yield Finding("settings", "ok", f"set: {', '.join(good) or 'none'}")


def served_toolsets(context: Context) -> Iterator[Finding]:
    """Report the toolsets that a server with this environment serves, with their own checks."""
    for manifest in toolsets.chosen([], context.environ):
        manifest.read_settings(context.environ)
        yield Finding("toolsets", "ok", f"{manifest.name}: {', '.join(manifest.tools)}")
        if manifest.checks:
            yield from guarded(manifest.name, resolve_name(manifest.checks), context.environ)
