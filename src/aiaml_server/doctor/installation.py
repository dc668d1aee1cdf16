"""Checks of the program, its settings and toolsets, the clients, and a server as they start it."""

from __future__ import annotations

import json
import platform
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name

from aiaml_server import __version__, clients, toolsets
from aiaml_server.clients import launch
from aiaml_server.doctor.context import REPORT, Context, guarded, warning, wrong_setting
from aiaml_server.errors import InvalidSetting
from aiaml_server.server.hooks.timeouts import count_timeouts
from aiaml_server.settings import SETTINGS
from aiaml_server.storage.programs import find
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Level

_SERVER_SECONDS = 30.0
_CLIENT = {"name": "aiaml doctor", "version": "1"}
_PARAMS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _PARAMS}


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
    given = sorted(name for name in context.environ if name.upper().startswith("AIAML_"))
    for name in given:
        if name not in (*known, "AIAML_LAUNCHER"):
            near = get_close_matches(name.upper(), known, 1)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            yield warning("settings", f"{name} is set, but is not a setting", remedy)
    good = [name for name in given if name in known and name not in context.wrong]
    yield Finding("settings", "ok", f"set: {', '.join(good) or 'none'}")


def served_toolsets(context: Context) -> Iterator[Finding]:
    """Report the toolsets that a server with this environment serves, with their own checks."""
    for manifest in toolsets.chosen([], context.environ):
        manifest.read_settings(context.environ)
        yield Finding("toolsets", "ok", f"{manifest.name}: {', '.join(manifest.tools)}")
        if manifest.checks:
            yield from guarded(manifest.name, resolve_name(manifest.checks), context.environ)


def connections(_: Context) -> Iterator[Finding]:
    """Check what each client's configuration starts, and whether hooks ran out of time."""
    good = []
    found = list(clients.connections(clients.this_machine()))
    for connection in found:
        title = connection.client.title
        remedy = f"`aiaml install {connection.client.name}` repairs it"
        if connection.problem:
            can_start = not connection.name or find(connection.command[0])
            level: Level = "warning" if can_start else "error"
            yield Finding("clients", level, f"{title}: {connection.problem}", remedy)
        elif connection.name:
            try:
                names = [m.name for m in toolsets.chosen([], connection.variables)]
            except InvalidSetting as error:
                yield Finding("clients", "error", f"{title}: {connection.path}: {error}", remedy)
                continue
            good.append(f"{title} ({connection.path}, serves {' and '.join(names)})")
    if good:
        yield Finding("clients", "ok", f"connected: {', '.join(good)}")
    elif not any(connection.name or connection.problem for connection in found):
        yield Finding("clients", "ok", "none is connected; `aiaml install --list` shows them")
    if count := count_timeouts():
        remedy = "memories are not shown then; hooks are quicker on a computer that is less busy"
        yield warning("clients", f"hooks ran out of time {plural(count, 'time')}", remedy)


def server(context: Context) -> Iterator[Finding]:
    """Start a server on an empty directory, as clients do, and wait for its first answer.

    Raises:
        InvalidSetting: it cannot serve the toolsets of the environment.
    """
    toolsets.chosen([], context.environ)
    environ = {name: value for name, value in context.environ.items() if "AIAML_" not in name}
    with tempfile.TemporaryDirectory(prefix="aiaml-doctor-") as directory:
        environ |= {"AIAML_MEMORY_DIR": directory, "AIAML_ENABLE_SYNC": "false"}
        try:
            done = subprocess.run(  # noqa: S603 (this installation)
                launch.command(),
                input=json.dumps(_HELLO).encode() + b"\n",
                capture_output=True,
                timeout=_SERVER_SECONDS,
                cwd=directory,
                env=environ,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            yield Finding("server", "error", f"the server does not start: {error}", REPORT)
            return
    with suppress(ValueError, LookupError, TypeError):
        answer = json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]
        yield Finding("server", "ok", f"version {answer['version']} starts and answers")
        return
    log = " / ".join(done.stderr.decode("utf-8", "replace").splitlines()[-3:])
    yield Finding("server", "error", f"the server does not answer; its log: {log}", REPORT)
