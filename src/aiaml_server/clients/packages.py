"""Where a client has the program by a package of its own besides an entry.

Claude Code's plugins are switched on in `enabledPlugins` of its settings, as "name@marketplace";
Gemini CLI has each extension in a directory of its name; Claude Desktop has each bundle in one that
ends with the bundle's name (what each of them wrote here, 2026-11-25). An entry of an extension's
name has Gemini CLI leave the extension's server out (0.61 did, `gemini mcp list`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from aiaml_server.clients import file, jsonc
from aiaml_server.clients.entry import ENTRY
from aiaml_server.clients.places import Client, Machine
from aiaml_server.clients.text import Refused


class Other(NamedTuple):
    """How else a client has the program that its entry starts.

    Attributes:
        what: says that, after the client's name.
        remedy: what takes it out.
        is_replaced: whether the entry stands in its place.
    """

    what: str
    remedy: str
    is_replaced: bool = False


def packages(client: Client, machine: Machine) -> Iterator[Other]:
    """Yield each package by which a client has the program."""
    if client.name == "claude-code":
        own = machine.directory("CLAUDE_CONFIG_DIR", machine.home / ".claude")
        for plugin in _switched_on(own / "settings.json"):
            if plugin.partition("@")[0] == ENTRY:
                what = f"has it by the plugin {plugin} as well, and starts both"
                yield Other(what, f"`claude plugin uninstall {plugin}` takes it out")
    if client.name == "gemini":
        own = machine.directory("GEMINI_CLI_HOME", machine.home) / ".gemini"
        if Path(own / "extensions" / ENTRY / "gemini-extension.json").is_file():
            what = f"has it by the extension {ENTRY}, in whose place an entry stands"
            remedy = (
                f"`gemini extensions config {ENTRY}` sets what it serves, `uninstall` takes it out"
            )
            yield Other(what, remedy, is_replaced=True)
    if client.name == "claude-desktop":
        bundles = Path(machine.roaming / "Claude" / "Claude Extensions")
        for each in sorted(bundles.glob(f"*{ENTRY}-server")):
            what = f"has it by the bundle {each.name} as well, and starts both"
            yield Other(what, "Claude Desktop takes it out in Settings, Extensions")


def _switched_on(settings: PurePath) -> list[str]:
    """Return the plugins that Claude Code's settings switch on; none where they cannot be read."""
    try:
        text = (file.read(Path(settings), file.MOST) or b"").decode("utf-8")
        found = jsonc.entry(text, ("enabledPlugins",))
    except (file.ConfigError, Refused, UnicodeDecodeError):
        return []
    return [plugin for plugin, on in found.items() if on] if isinstance(found, dict) else []
