"""Where a client has the program by a package of its own besides an entry: it would start twice.

Claude Code's plugins are switched on in `enabledPlugins` of its settings, as "name@marketplace";
Gemini CLI has each extension in a directory of its name; Claude Desktop has each bundle in one that
ends with the bundle's name (what each of them wrote here, 2026-11-25).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from aiaml_server.clients import file, jsonc
from aiaml_server.clients.places import Client, Machine
from aiaml_server.clients.text import Refused


def packages(name: str, client: Client, machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield each package by which a client has the program, and what takes it out.

    Args:
        name: the plugin's and the extension's name.
        client: one of the clients.
        machine: where it is looked for.
    """
    if client.name == "claude-code":
        own = machine.directory("CLAUDE_CONFIG_DIR", machine.home / ".claude")
        for plugin in _switched_on(own / "settings.json"):
            if plugin.partition("@")[0] == name:
                yield f"the plugin {plugin}", f"`claude plugin uninstall {plugin}` takes it out"
    if client.name == "gemini":
        own = machine.directory("GEMINI_CLI_HOME", machine.home) / ".gemini"
        if Path(own / "extensions" / name / "gemini-extension.json").is_file():
            yield f"the extension {name}", f"`gemini extensions uninstall {name}` takes it out"
    if client.name == "claude-desktop":
        bundles = Path(machine.roaming / "Claude" / "Claude Extensions")
        for each in sorted(bundles.glob(f"*{name}-server")):
            yield f"the bundle {each.name}", "Claude Desktop takes it out in Settings, Extensions"


def _switched_on(settings: PurePath) -> list[str]:
    """Return the plugins that Claude Code's settings switch on; none where they cannot be read."""
    try:
        text = (file.read(Path(settings), file.MOST) or b"").decode("utf-8")
        found = jsonc.entry(text, ("enabledPlugins",))
    except (file.ConfigError, Refused, UnicodeDecodeError):
        return []
    return [plugin for plugin, on in found.items() if on] if isinstance(found, dict) else []
