"""`install --hooks`, `uninstall --hooks`: what a client starts by itself, in its settings."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server import clients
from aiaml_server.clients import Change, Client, ConfigError, Machine, launch
from aiaml_server.settings import BASE

_NAME = "aiaml-hooks"  # of the copies of the files
_PROGRAM = "aiaml_server.server.hooks"
SECONDS = 5  # that a client waits at most; the program itself ends much sooner


class Host(NamedTuple):
    """A client that starts hooks.

    Attributes:
        directory: where its settings lie.
        file: their name.
        events: at which we are started: a start, a prompt, and an agent that has finished.
        timeout: `SECONDS` in its unit.
    """

    directory: Callable[[Machine], Path]
    file: str
    events: tuple[str, ...]
    timeout: int


def _in(variable: str, name: str) -> Callable[[Machine], Path]:
    return lambda machine: Path(machine.directory(variable, machine.home / name))


_ALIKE = ("SessionStart", "UserPromptSubmit", "Stop")
HOSTS = {
    "claude-code": Host(_in("CLAUDE_CONFIG_DIR", ".claude"), "settings.json", _ALIKE, SECONDS),
    "codex": Host(_in("CODEX_HOME", ".codex"), "hooks.json", _ALIKE, SECONDS),
    "gemini": Host(
        lambda machine: Path(machine.directory("GEMINI_CLI_HOME", machine.home) / ".gemini"),
        "settings.json",
        ("SessionStart", "BeforeAgent", "AfterAgent"),
        1000 * SECONDS,
    ),
}
"""By the client's name; docs/hooks.md has the sources."""


def hooked(client: Client, machine: Machine, environ: Mapping[str, str]) -> Change:
    """Work out a client's settings with our hooks.

    Raises:
        ConfigError: the file cannot be edited safely; or the program is not installed to stay.
    """
    host, path = _host(client, machine)
    group = {
        "hooks": [{"type": "command", "command": _line(path, environ), "timeout": host.timeout}]
    }
    made = clients.hook(_NAME, path, [(event, group) for event in host.events], _is_ours)
    return made._replace(client=client)


def unhooked(client: Client, machine: Machine) -> Change:
    """Work out a client's settings without our hooks.

    Raises:
        ConfigError: the file cannot be edited safely.
    """
    _, path = _host(client, machine)
    return clients.unhook(_NAME, path, _is_ours)._replace(client=client)


def _host(client: Client, machine: Machine) -> tuple[Host, Path]:
    host = HOSTS[client.name]
    return host, host.directory(machine) / host.file


def _line(path: Path, environ: Mapping[str, str]) -> str:
    """Return what a shell is given: this Python, so that a prompt does not wait for a launcher.

    Raises:
        ConfigError: uv or pipx may delete this Python at any time.
    """
    if Path(launch.command()[0]).stem in ("uv", "uvx", "pipx"):
        raise ConfigError(
            path,
            "is to start a program that stays, and this one is in a cache; "
            "`uv tool install aiaml-server`, then `aiaml install CLIENT --hooks`",
        )
    words: list[Any] = [sys.executable, "-I", "-m", _PROGRAM]
    if base := environ.get(BASE):
        words += ["--dir", os.path.abspath(os.path.expanduser(base))]  # noqa: PTH100, PTH111
    if sys.platform == "win32":
        words = [word.replace("\\", "/") for word in words]
    return shlex.join(words)


def _is_ours(command: str) -> bool:
    return f" -m {_PROGRAM}" in command
