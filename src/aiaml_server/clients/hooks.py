"""Hooks in the settings of clients: programs that they start at certain events.

`docs/hooks.md` has the sources of this table.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.clients import files, jsonc, launch
from aiaml_server.clients.edit import Change, backup_of
from aiaml_server.clients.registry import Client, Machine
from aiaml_server.clients.text import ConfigError, RefusedEdit, dig, has_content

_PURPOSE = "aiaml-hooks"
_PROGRAM = "aiaml_server.server.hooks"


class Host(NamedTuple):
    """A client that starts hooks.

    Attributes:
        pattern: its settings file; see `Machine.expand`.
        events: for each of our events, the client's event, then the tools to which it is limited.
        timeout: ten seconds in the client's unit.
        is_flat: whether an event's list holds the hooks themselves instead of groups of them.
    """

    pattern: str
    events: Mapping[str, str]
    timeout: int = 10
    is_flat: bool = False


HOSTS = {
    "claude-code": Host(
        "{claude}/settings.json",
        {
            "session_start": "SessionStart",
            "session_end": "SessionEnd",
            "prompt": "UserPromptSubmit",
            "before_edit": "PreToolUse Edit|Write|MultiEdit",
            "after_edit": "PostToolUse Edit|Write|MultiEdit",
            "tool_succeeded": "PostToolUse Bash|Edit|Write|MultiEdit",
            "tool_failed": "PostToolUseFailure Bash",
        },
    ),
    "codex": Host(
        "{codex}/hooks.json",
        {"session_start": "SessionStart", "prompt": "UserPromptSubmit"},
    ),
    "gemini": Host(
        "{gemini}/settings.json",
        {"session_start": "SessionStart", "prompt": "BeforeAgent"},
        timeout=10_000,
    ),
    "cursor": Host("{home}/.cursor/hooks.json", {"session_start": "sessionStart"}, is_flat=True),
}
"""The clients that start hooks, by their names."""

_Hook = tuple[str, Mapping[str, Any]]
"""A client's event, and one item of its list."""


def add_hooks(
    name: str, machine: Machine, toolset: str, events: Iterable[str], base: str = ""
) -> Change:
    """Return the change that adds a toolset's hooks to a client, in place of its older ones.

    Args:
        name: the client's.
        machine: this machine.
        toolset: the name of the toolset.
        events: our names of the events at which it has something to say.
        base: the memory directory; empty for the usual one.

    Raises:
        ConfigError: the client has none of the events; this installation may be deleted at any
            time; or the file cannot be read, or not be edited safely.
    """
    host = HOSTS[name]
    path = Path(machine.expand(host.pattern))
    wanted = [_hook(name, event, toolset, base) for event in events if event in host.events]
    if not wanted:
        raise ConfigError(f"{name} has no hooks for the events of {toolset}")
    if Path(launch.command()[0]).stem == "uvx":
        raise ConfigError("a hook needs a program that stays; run `uv tool install aiaml-server`")
    with files.opened(path) as (before, text):
        present = _ours(text)
        replaced = [hook for hook in present if f" --toolset {toolset} " in str(hook)]
        after = text if replaced == wanted else _add(host, _remove(text, replaced), wanted)
    return Change(path, before, after.encode(), _PURPOSE, is_new=not present)


def remove_hooks(client: Client, machine: Machine) -> list[Change]:
    """Return the changes that remove all our hooks from a client's settings.

    A file that nobody has edited since gets back its original bytes. A file that `add_hooks` made
    is deleted.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely.
    """
    host = HOSTS[client.name]
    path = Path(machine.expand(host.pattern))
    first = files.read(backup_of(path, _PURPOSE))
    with files.opened(path) as (before, text):
        ours = _ours(text)
        left = _remove(text, ours)
        with suppress(RefusedEdit, UnicodeDecodeError):  # the original file may be another by now
            if ours and _add(host, (first or b"").decode(), ours) == text:
                return [Change(path, before, first, _PURPOSE)]
    after = left.encode() if has_content(left) else None
    return [Change(path, before, after, _PURPOSE)] if ours else []


def _hook(name: str, event: str, toolset: str, base: str) -> _Hook:
    """Return the hook of one event, in the format of a client."""
    host = HOSTS[name]
    words = [Path(sys.executable).as_posix(), "-I", "-m", _PROGRAM, "--host", name]
    words += ["--event", event, "--toolset", toolset, "--dir", base]
    hook: dict[str, Any] = {"command": shlex.join(words), "timeout": host.timeout}
    client_event, _, tools = host.events[event].partition(" ")
    if not host.is_flat:
        hook = {"hooks": [{"type": "command", **hook}]}
    return client_event, {"matcher": tools, **hook} if tools else hook


def _ours(text: str) -> list[_Hook]:
    """Return our hooks in a settings file; a group with a hook of somebody else is not ours."""
    events = dig(jsonc.load(text), ("hooks",)) or {}
    hooks = [(event, item) for event in events for item in events[event]]
    return [hook for hook in hooks if _PROGRAM in str(hook) and str(hook).count("'command':") == 1]


def _add(host: Host, text: str, hooks: Iterable[_Hook]) -> str:
    if host.is_flat and dig(jsonc.load(text), ("version",)) is None:
        text = jsonc.put(text, ("version",), 1)
    for event, item in hooks:
        items = dig(jsonc.load(text), ("hooks", event)) or ()
        text = jsonc.put(text, ("hooks", event, len(items)), item)
    return text


def _remove(text: str, hooks: Iterable[_Hook]) -> str:
    """Return the text without these hooks, and without events that have none then."""
    for event, item in hooks:
        items = dig(jsonc.load(text), ("hooks", event))
        index = (items.index(item),) if len(items) > 1 else ()
        text = jsonc.remove(text, ("hooks", event, *index))
    return text
