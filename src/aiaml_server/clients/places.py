"""The clients: where each keeps its configuration, and what an entry looks like there.

Where comes from the clients' own documents, or where these are silent from what their users found:
Claude Desktop in the MSIX package, https://github.com/anthropics/claude-code/issues/26073; the
choice between its two files, https://github.com/neon-solutions/add-mcp/pull/114; CLAUDE_CONFIG_DIR,
https://github.com/microsoft/apm/pull/2096; GEMINI_CLI_HOME,
https://github.com/google-gemini/gemini-cli/issues/23622; Windsurf's new name and file,
https://vaadin.com/docs/latest/building-apps/agentic-development/mcp/supported-tools/devin-desktop;
Zed, crates/paths/src/paths.rs in its source, in a project "Zed and trusted worktrees",
https://zed.dev/docs/worktree-trust; Antigravity, which has moved its file,
https://github.com/CoplayDev/unity-mcp/pull/1151; Copilot CLI, "Adding MCP servers for GitHub
Copilot CLI" in GitHub's documents; Cline, "Configuration", https://docs.cline.bot/cli/configuration;
Junie, https://github.com/dagger/container-use/pull/235, in a project "Junie CLI MCP configuration",
https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html; JetBrains AI Assistant, whose
documents name no file, https://github.com/dyoshikawa/rulesync/pull/3004, which read the plugin;
Kiro, "Configuration",
https://kiro.dev/docs/mcp/configuration; LM Studio, "Use MCP Servers", https://lmstudio.ai/mcp;
Goose, "Configuration Overview", https://block.github.io/goose/docs/guides/config-files, and
crates/goose/src/config/extensions.rs in its source; Devin's file in a project and XDG_CONFIG_HOME,
https://github.com/upstash/context7/pull/3090, https://github.com/herdrdev/herdr/pull/3595;
OpenCode, what its own `mcp add` writes and `mcp list` reads; Codex in a project, what `mcp list` of
its 0.169 reads (its 0.141 did not, https://github.com/styly-dev/STYLY-MDM/pull/25).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple


class Place(NamedTuple):
    """A file that a client reads, if it is installed.

    Attributes:
        file: the file; a `*` stands for a part of a name that differs between machines.
        sign: a directory that is there when the client is installed.
    """

    file: PurePath
    sign: PurePath


@dataclass(frozen=True)
class Machine:
    """What places depend on.

    Attributes:
        system: as `sys.platform` has it; what is not Windows or macOS is taken for Linux.
        home: the person's home directory.
        environ: the environment variables.
    """

    system: str
    home: PurePath
    environ: Mapping[str, str] = field(repr=False)

    def directory(self, variable: str, default: PurePath) -> PurePath:
        """Return the directory that a variable names, or a default; blank counts as not set."""
        value = self.environ.get(variable, "").strip()
        return self.home / value if value else default

    @property
    def roaming(self) -> PurePath:
        """Where programs of this system keep a person's settings."""
        if self.system == "win32":
            return self.directory("APPDATA", self.home / "AppData" / "Roaming")
        if self.system == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg

    @property
    def xdg(self) -> PurePath:
        """Where programs of Linux keep a person's settings."""
        return self.directory("XDG_CONFIG_HOME", self.home / ".config")


@dataclass(frozen=True)
class Client:
    """A program that starts MCP servers, as its configuration file wants to hear it.

    Attributes:
        name: the word on the command line.
        title: the name that its makers gave it.
        places: its files on a machine, the one it would rather read first.
        keys: where in the file the servers are.
        form: the file's format.
        extras: what an entry has besides the command and the environment.
        program: the name that the command has in an entry.
        named: whether an entry says its own name once more.
        one_list: whether an entry has the command and its arguments in one list.
        environment: the name that the environment variables have in an entry.
        then: what a person has to do for an entry `{name}` to take effect.
        project: the file that it reads of the project it is opened in, where it does, with the same
            keys; empty where it reads none.
    """

    name: str
    title: str
    places: Callable[[Machine], list[Place]]
    then: str
    keys: tuple[str, ...] = ("mcpServers",)
    form: Literal["json", "toml", "yaml"] = "json"
    extras: Mapping[str, Any] = field(default_factory=dict)
    program: str = "command"
    named: bool = False
    one_list: bool = False
    environment: str = "env"
    project: str = ""

    def within(self, directory: PurePath) -> Client:
        """Return the client as it is in one project."""
        return replace(self, places=lambda _: [Place(directory / self.project, directory)])


def _in(directory: PurePath, file: str) -> Place:
    return Place(directory / file, directory)


def _at_home(
    directory: str, file: str = "mcp.json", variable: str = ""
) -> Callable[[Machine], list[Place]]:
    return lambda machine: [_in(machine.directory(variable, machine.home / directory), file)]


def _vscode(name: str, title: str, directory: str) -> Client:
    return Client(
        name,
        title,
        lambda machine: [_in(machine.roaming / directory, "User/mcp.json")],
        f"Run the command MCP: List Servers and start {{name}}, or start {title} again.",
        keys=("servers",),
        extras=_STDIO,
        project=".vscode/mcp.json",
    )


def _claude_desktop(machine: Machine) -> list[Place]:
    file = "claude_desktop_config.json"
    places = [_in(machine.roaming / "Claude", file)]
    if machine.system == "win32":
        local = machine.directory("LOCALAPPDATA", machine.home / "AppData" / "Local")
        package = local / "Packages" / "Claude_*"
        inside = package / "LocalCache" / "Roaming" / "Claude" / file
        places.insert(0, Place(inside, package))
    return places


def _claude_code(machine: Machine) -> list[Place]:
    own = machine.directory("CLAUDE_CONFIG_DIR", machine.home)
    sign = machine.home / ".claude" if own == machine.home else own
    return [Place(own / ".claude.json", sign)]


def _windsurf(machine: Machine) -> list[Place]:
    parent = machine.roaming if machine.system == "win32" else machine.home / ".config"
    new = _in(machine.directory("XDG_CONFIG_HOME", parent) / "devin", "mcp_config.json")
    return [new, _in(machine.home / ".codeium" / "windsurf", "mcp_config.json")]


def _zed(machine: Machine) -> list[Place]:
    parent = {"win32": machine.roaming, "darwin": machine.home / ".config"}
    name = "Zed" if machine.system == "win32" else "zed"
    return [_in(parent.get(machine.system, machine.xdg) / name, "settings.json")]


def _goose(machine: Machine) -> list[Place]:
    own = machine.xdg / "goose"
    if machine.system == "win32":
        own = machine.roaming / "Block" / "goose" / "config"
    return [_in(own, "config.yaml")]


_STDIO = {"type": "stdio"}

CLIENTS = (
    Client(
        "claude-desktop",
        "Claude Desktop",
        _claude_desktop,
        "Quit Claude Desktop completely (closing its window is not enough) and start it again.",
    ),
    Client(
        "claude-code",
        "Claude Code",
        _claude_code,
        "Start a new session; /mcp shows {name} in it.",
        extras=_STDIO,
        project=".mcp.json",
    ),
    Client(
        "cursor",
        "Cursor",
        _at_home(".cursor"),
        "Start Cursor again; its settings show {name} under MCP.",
        project=".cursor/mcp.json",
    ),
    _vscode("vscode", "VS Code", "Code"),
    _vscode("vscode-insiders", "VS Code Insiders", "Code - Insiders"),
    Client(
        "codex",
        "Codex",
        _at_home(".codex", "config.toml", "CODEX_HOME"),
        "Start Codex again, in a project once you trust it; /mcp shows {name} in it.",
        keys=("mcp_servers",),
        form="toml",
        extras={"startup_timeout_sec": 60},  # uvx may have to download; the default is 10
        project=".codex/config.toml",
    ),
    Client(
        "gemini",
        "Gemini CLI",
        lambda machine: [
            _in(machine.directory("GEMINI_CLI_HOME", machine.home) / ".gemini", "settings.json")
        ],
        "Start gemini again; /mcp shows {name} in it.",
        project=".gemini/settings.json",
    ),
    Client(
        "windsurf",
        "Windsurf (Devin Desktop)",
        _windsurf,
        "Start it again, or press refresh in its MCP settings.",
        project=".devin/mcp_config.json",
    ),
    Client(
        "zed",
        "Zed",
        _zed,
        "Zed starts {name} at once, in a project once you trust it; the agent panel's settings "
        "show it.",
        keys=("context_servers",),
        project=".zed/settings.json",
    ),
    Client(
        "antigravity",
        "Antigravity",
        lambda machine: [
            _in(machine.home / ".gemini" / each, "mcp_config.json")
            for each in ("config", "antigravity")
        ],
        "Press refresh under Manage MCP Servers, or start it again.",
    ),
    Client(
        "copilot",
        "Copilot CLI",
        _at_home(".copilot", "mcp-config.json"),
        "Start copilot again; /mcp show has {name} in it.",
        extras={**_STDIO, "tools": ["*"]},
    ),
    Client(
        "cline",
        "Cline",
        _at_home(".cline", "data/settings/cline_mcp_settings.json"),
        "Open the list of MCP servers in Cline; {name} is there.",
    ),
    Client(
        "junie",
        "Junie",
        _at_home(".junie", "mcp/mcp.json"),
        "Open the MCP settings of Junie in your JetBrains IDE; {name} is there.",
        project=".junie/mcp/mcp.json",
    ),
    Client(
        "jetbrains",
        "JetBrains AI Assistant",
        _at_home(".ai", "mcp/mcp.json"),
        "Open Settings, Tools, AI Assistant, Model Context Protocol in your IDE; {name} is there.",
        project=".ai/mcp/mcp.json",
    ),
    Client(
        "kiro",
        "Kiro",
        _at_home(".kiro", "settings/mcp.json"),
        "Kiro starts {name} at once; its panel of MCP servers shows it.",
        project=".kiro/settings/mcp.json",
    ),
    Client(
        "goose",
        "Goose",
        _goose,
        "Start a new session of goose; `goose info -v` shows {name}.",
        keys=("extensions",),
        form="yaml",
        extras={"enabled": True, "type": "stdio", "timeout": 300},
        program="cmd",
        named=True,
        environment="envs",
    ),
    Client(
        "lm-studio",
        "LM Studio",
        _at_home(".lmstudio"),
        "Switch {name} on in the Program tab of LM Studio.",
    ),
    Client(
        "opencode",
        "OpenCode",
        lambda machine: [  # on every system
            _in(machine.xdg / "opencode", each) for each in ("opencode.jsonc", "opencode.json")
        ],
        "Start opencode again; `opencode mcp list` shows {name}.",
        keys=("mcp",),
        extras={"type": "local"},
        one_list=True,
        environment="environment",
        project="opencode.json",
    ),
)
