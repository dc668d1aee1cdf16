"""The table of clients: where each keeps its configuration, and what an entry looks like there.

The places come from the clients' own documentation or, where that is silent, from what their users
found: Claude Desktop in the MSIX package, https://github.com/anthropics/claude-code/issues/26073;
which of its two files counts, https://github.com/neon-solutions/add-mcp/pull/114;
CLAUDE_CONFIG_DIR, https://github.com/microsoft/apm/pull/2096; GEMINI_CLI_HOME,
https://github.com/google-gemini/gemini-cli/issues/23622; Windsurf's new name and file,
https://vaadin.com/docs/latest/building-apps/agentic-development/mcp/supported-tools/devin-desktop;
its project file and XDG_CONFIG_HOME, https://github.com/upstash/context7/pull/3090; Zed,
crates/paths/src/paths.rs in its source, and https://zed.dev/docs/worktree-trust; Codex in a
project, what `codex mcp list` of 0.169 reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from glob import glob
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple


class Machine(NamedTuple):
    """The system, home and environment that file locations depend on.

    Attributes:
        system: as `sys.platform` has it. What is neither Windows nor macOS counts as Linux.
        home: the person's home directory.
        environ: the environment variables.
    """

    system: str
    home: PurePath
    environ: Mapping[str, str]

    def expand(self, pattern: str) -> str:
        """Replace the directories in a pattern of the table below by those of this machine."""
        home, is_windows = self.home, self.system == "win32"
        xdg = self._directory("XDG_CONFIG_HOME", home / ".config")
        appdata = self._directory("APPDATA", home / "AppData" / "Roaming")
        config = appdata if is_windows else xdg
        return pattern.format(
            home=home,
            config=config,
            support=home / "Library/Application Support" if self.system == "darwin" else config,
            packages=self._directory("LOCALAPPDATA", home / "AppData" / "Local") / "Packages",
            claude_json=self._directory("CLAUDE_CONFIG_DIR", home),
            claude=self._directory("CLAUDE_CONFIG_DIR", home / ".claude"),
            codex=self._directory("CODEX_HOME", home / ".codex"),
            gemini=self._directory("GEMINI_CLI_HOME", home) / ".gemini",
            zed=appdata / "Zed" if is_windows else xdg / "zed",
        )

    def _directory(self, variable: str, default: PurePath) -> PurePath:
        """Return the directory that a variable names, or a default. Blank counts as not set."""
        value = self.environ.get(variable, "").strip()
        return self.home / value if value else default


def this_machine() -> Machine:
    """Return the machine that this program runs on."""
    return Machine(sys.platform, Path.home(), os.environ)


class Client(NamedTuple):
    """A program that starts MCP servers.

    Attributes:
        name: the word on the command line.
        title: the name that its makers gave it.
        patterns: its files, the preferred one first; see `Machine.expand`. A `*` stands for a part
            of a name that differs between machines.
        next_step: what a person has to do for a new entry to take effect.
        servers_key: the key of the file under which the servers stand.
        is_toml: whether the file is TOML; else it is JSON with comments.
        extras: what a new entry has besides the command and the environment.
        sign: a directory that has files if the client is installed; empty for that of its file.
        project_file: the file that it reads in a project; empty if it reads none.
        project: the project whose file is meant; None for the person's own file.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    next_step: str
    servers_key: str = "mcpServers"
    is_toml: bool = False
    extras: Mapping[str, Any] = MappingProxyType({})
    sign: str = ""
    project_file: str = ""
    project: Path | None = None

    def in_project(self, directory: Path) -> Client:
        """Return the client as it is configured in one project."""
        return self._replace(project=directory)

    def existing(self, machine: Machine) -> list[Path]:
        """Return the files of the client that exist."""
        return [path for path in self._paths(machine) if path.exists()]

    def find(self, machine: Machine) -> tuple[Path, bool]:
        """Return the file that the client reads, or would read, and whether it is installed."""
        paths = self._paths(machine)
        sign = Path(machine.expand(self.sign)) if self.sign else None
        found = self.existing(machine) or [
            path for path in paths if self.project or any((sign or path.parent).glob("*"))
        ]
        return (found or [path for path in paths if "*" not in str(path)])[0], bool(found)

    def _paths(self, machine: Machine) -> list[Path]:
        """Return the files that the patterns match on this machine."""
        if self.project:
            return [self.project / self.project_file]
        expanded = [machine.expand(pattern) for pattern in self.patterns]
        return [Path(file) for name in expanded for file in glob(name) or [name]]  # noqa: PTH207


_STDIO = {"type": "stdio"}

CLIENTS = (
    Client(
        "claude-desktop",
        "Claude Desktop",
        (
            "{packages}/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "{support}/Claude/claude_desktop_config.json",
        ),
        "Quit Claude Desktop completely (closing its window is not enough) and start it again.",
    ),
    Client(
        "claude-code",
        "Claude Code",
        ("{claude_json}/.claude.json",),
        "Start a new session; /mcp shows aiaml. In a project, approve it there first.",
        extras=_STDIO,
        sign="{claude}",
        project_file=".mcp.json",
    ),
    Client(
        "cursor",
        "Cursor",
        ("{home}/.cursor/mcp.json",),
        "Restart Cursor; its settings show aiaml under MCP.",
        project_file=".cursor/mcp.json",
    ),
    Client(
        "vscode",
        "VS Code",
        ("{support}/Code/User/mcp.json",),
        "Run the command MCP: List Servers and start aiaml, or restart VS Code.",
        servers_key="servers",
        extras=_STDIO,
        project_file=".vscode/mcp.json",
    ),
    Client(
        "vscode-insiders",
        "VS Code Insiders",
        ("{support}/Code - Insiders/User/mcp.json",),
        "Run the command MCP: List Servers and start aiaml, or restart VS Code.",
        servers_key="servers",
        extras=_STDIO,
        project_file=".vscode/mcp.json",
    ),
    Client(
        "codex",
        "Codex",
        ("{codex}/config.toml",),
        "Restart Codex; /mcp shows aiaml. In a project, trust the project first.",
        servers_key="mcp_servers",
        is_toml=True,
        extras={"startup_timeout_sec": 60},  # uvx may have to download; the default is 10
        project_file=".codex/config.toml",
    ),
    Client(
        "gemini",
        "Gemini CLI",
        ("{gemini}/settings.json",),
        "Restart gemini; /mcp shows aiaml.",
        project_file=".gemini/settings.json",
    ),
    Client(
        "windsurf",
        "Windsurf (Devin Desktop)",
        ("{config}/devin/mcp_config.json", "{home}/.codeium/windsurf/mcp_config.json"),
        "Restart it, or press refresh in its MCP settings.",
        project_file=".devin/mcp_config.json",
    ),
    Client(
        "zed",
        "Zed",
        ("{zed}/settings.json",),
        "The agent panel's settings show aiaml. In a project, trust the project first.",
        servers_key="context_servers",
        project_file=".zed/settings.json",
    ),
)
"""Every client whose configuration `aiaml install` writes."""

BY_NAME = {client.name: client for client in CLIENTS}
