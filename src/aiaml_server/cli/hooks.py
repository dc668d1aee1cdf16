"""`install --hooks`, `uninstall --hooks`: what a client starts by itself, in its settings."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aiaml_server import clients, toolsets
from aiaml_server.clients import Change, Client, ConfigError, Machine, launch

_NAME = "aiaml-hooks"  # of the copies of the files
_PROGRAM = "aiaml_server.server.hooks"
SECONDS = 5  # that a client waits at most; the program itself ends much sooner


class Host(NamedTuple):
    """A client that starts hooks.

    Attributes:
        directory: where its settings lie.
        file: their name; a file that is all ours has `{}` in it for the toolset's part.
        events: by our names, the host's, and the tools to which that is limited.
        form: `groups` of hooks in a file of the person's, `plain` hooks in one, all of a file that
            is `ours`, or a `module` of JavaScript.
        timeout: `SECONDS` in its unit.
    """

    directory: Callable[[Machine], Path]
    file: str
    events: Mapping[str, tuple[str, str]]
    form: Literal["groups", "plain", "ours", "module"] = "groups"
    timeout: int = SECONDS


def _in(variable: str, name: str) -> Callable[[Machine], Path]:
    return lambda machine: Path(machine.directory(variable, machine.home / name))


_ALIKE = {"session_start": ("SessionStart", ""), "prompt": ("UserPromptSubmit", "")}
_EDITS = {name: (event, "Edit|Write|MultiEdit") for name, event in
          (("before_edit", "PreToolUse"), ("after_edit", "PostToolUse"))}  # fmt: skip
HOSTS = {
    "claude-code": Host(_in("CLAUDE_CONFIG_DIR", ".claude"), "settings.json", {**_ALIKE, **_EDITS}),
    "codex": Host(_in("CODEX_HOME", ".codex"), "hooks.json", _ALIKE),
    "gemini": Host(
        lambda machine: Path(machine.directory("GEMINI_CLI_HOME", machine.home) / ".gemini"),
        "settings.json",
        {"session_start": ("SessionStart", ""), "prompt": ("BeforeAgent", "")},
        timeout=1000 * SECONDS,
    ),
    "cursor": Host(
        _in("", ".cursor"), "hooks.json", {"session_start": ("sessionStart", "")}, "plain"
    ),
    "copilot": Host(_in("COPILOT_HOME", ".copilot"), "hooks/aiaml{}.json", _ALIKE, "ours"),
    "opencode": Host(
        lambda machine: Path(machine.xdg / "opencode"),
        "plugins/aiaml{}.js",
        _ALIKE,
        "module",
    ),
}
"""By the client's name; docs/hooks.md has the sources."""

_BESIDES: dict[str, dict[str, int]] = {"groups": {}, "plain": {"version": 1}}


def hooked(client: Client, machine: Machine, base: str, toolset: str) -> Change:
    """Work out a client's settings with the hooks of a toolset; no `base` is the usual directory.

    Raises:
        ConfigError: the file cannot be edited safely; the program is not installed to stay; or the
            client starts no hooks at what the toolset tells something.
    """
    host = HOSTS[client.name]
    path = _file(host, machine, toolset)
    words = _words(path, base, client.name, toolset)
    default = toolset == toolsets.DEFAULT
    told = ("session_start", "prompt") if default else toolsets.manifest(toolset).hooks
    events = {name: host.events[name] for name in told if name in host.events}
    if not events:
        raise ConfigError(path, f"{toolset} tells nothing at what {client.title} starts hooks for")
    if host.form == "module":
        module = _MODULE.replace("WORDS", json.dumps(words))
        made = clients.whole(_NAME, path, module.replace("EVENTS", json.dumps([*events])))
    elif host.form == "ours":
        hooks = {
            event: [{"type": "command", "command": _line(words), "timeoutSec": host.timeout}]
            for event, _ in events.values()
        }
        made = clients.whole(_NAME, path, json.dumps({"version": 1, "hooks": hooks}, indent=2))
    else:
        groups = [_group(host, event, tools, _line(words)) for event, tools in events.values()]
        ours = partial(_is_ours, toolset=toolset)
        made = clients.hook(_NAME, path, groups, ours, _BESIDES[host.form])
    return made._replace(client=client)


def unhooked(client: Client, machine: Machine) -> list[Change]:
    """Work out a client's settings without our hooks, of whatever toolset.

    Raises:
        ConfigError: the file cannot be edited safely.
    """
    host = HOSTS[client.name]
    if host.form in ("groups", "plain"):
        path = _file(host, machine, "")
        made = clients.unhook(_NAME, path, _is_ours, _BESIDES[host.form])
        return [made._replace(client=client)]
    paths = [_file(host, machine, name) for name in toolsets.OWN]
    changes = [clients.whole(_NAME, path, None)._replace(client=client) for path in paths]
    return [
        each._replace(after=None) if _is_all_ours(each.after) else each
        for each in changes
        if _is_all_ours(each.before)
    ]


def _is_all_ours(text: bytes | None) -> bool:
    """Say whether a file that is written whole is of these hooks, or of earlier ones."""
    return text is not None and _PROGRAM.encode() in text


def _file(host: Host, machine: Machine, toolset: str) -> Path:
    part = "" if toolset in ("", toolsets.DEFAULT) else f"-{toolset}"
    return host.directory(machine) / host.file.format(part)


def _group(host: Host, event: str, tools: str, line: str) -> tuple[str, Mapping[str, Any]]:
    """Return what an event's list is to have."""
    if host.form == "plain":
        return event, {"command": line, "timeout": host.timeout}
    hook = {"type": "command", "command": line, "timeout": host.timeout}
    return event, {**({"matcher": tools} if tools else {}), "hooks": [hook]}


def _words(path: Path, base: str, name: str, toolset: str) -> list[str]:
    """Return what starts the program: this Python, so that a prompt does not wait for a launcher.

    Raises:
        ConfigError: uv or pipx may delete this Python at any time.
    """
    if Path(launch.command()[0]).stem in ("uv", "uvx", "pipx"):
        raise ConfigError(
            path,
            "is to start a program that stays, and this one is in a cache; "
            "`uv tool install aiaml-server`, then `aiaml install CLIENT --hooks`",
        )
    words = [sys.executable, "-I", "-m", _PROGRAM]
    if base:
        words += ["--dir", os.path.abspath(os.path.expanduser(base))]  # noqa: PTH100, PTH111
    if HOSTS[name].form in ("ours", "module"):
        words += ["--host", name]
    return words if toolset == toolsets.DEFAULT else [*words, "--toolset", toolset]


def _line(words: Sequence[str]) -> str:
    if sys.platform == "win32":
        words = [word.replace("\\", "/") for word in words]
    return shlex.join(words)


def _is_ours(command: str, toolset: str = "") -> bool:
    """Say whether a command starts our program; for a toolset, if one is named."""
    _, ours, options = command.partition(f" -m {_PROGRAM}")
    chosen = options.partition(" --toolset ")[2] or toolsets.DEFAULT
    return bool(ours) and toolset in ("", chosen)


# A plugin of OpenCode, which has hooks inside it alone.
_MODULE = """\
// Written by `aiaml install opencode --hooks`; `aiaml uninstall opencode --hooks` takes it out.
import { spawn } from "node:child_process"

const words = WORDS
const events = EVENTS

function told(said) {
  return new Promise((done) => {
    const hook = spawn(words[0], words.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    let text = ""
    hook.stdout.on("data", (part) => { text += part })
    hook.stdin.on("error", () => {})
    hook.on("error", () => done(""))
    hook.on("close", () => {
      try { done(JSON.parse(text).additionalContext) } catch { done("") }
    })
    hook.stdin.end(JSON.stringify(said))
  })
}

export const Aiaml = async ({ directory }) => {
  const begun = new Set()
  return {
    "chat.message": async (input, output) => {
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      if (!typed.length) return
      const said = { session_id: input.sessionID, cwd: directory }
      const texts = []
      if (events.includes("session_start") && !begun.has(input.sessionID)) {
        texts.push(await told({ ...said, hook_event_name: "SessionStart", source: "startup" }))
      }
      begun.add(input.sessionID)
      if (events.includes("prompt")) {
        const prompt = typed.map((part) => part.text).join("\\n")
        texts.push(await told({ ...said, hook_event_name: "UserPromptSubmit", prompt }))
      }
      texts.filter(Boolean).forEach((text, number) => {
        output.parts.push({ ...typed[0], id: `${typed[0].id}${number}`, text, synthetic: true })
      })
    },
  }
}
"""
