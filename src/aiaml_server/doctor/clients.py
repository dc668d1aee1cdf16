"""Checks of the clients' configuration, of hooks, and of a server as clients start it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aiaml_server import toolsets
from aiaml_server.doctor.context import REPORT, Context
from aiaml_server.errors import InvalidSetting
from aiaml_server.server.hooks.timeouts import count_timeouts
from aiaml_server.storage.programs import find
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Level

_SERVER_SECONDS = 30.0
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "aiaml doctor", "version": "1"},
    },
}


def connections(_: Context) -> Iterator[Finding]:
    """Check what each client's configuration starts."""
    from aiaml_server import clients  # noqa: PLC0415 (only this check reads them)

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
        yield Finding(
            "clients", "warning", f"hooks ran out of time {plural(count, 'time')}", remedy
        )


def server(context: Context) -> Iterator[Finding]:
    """Start a server on an empty directory, as clients do, and wait for its first answer.

    Raises:
        InvalidSetting: it cannot serve the toolsets of the environment.
    """
    from aiaml_server.clients import launch  # noqa: PLC0415 (only this check needs it)

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
                cwd=Path(directory),
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
