"""Clients are connected and disconnected: their files change where we are named, nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path, PurePosixPath

import pytest

from aiaml_server import clients
from aiaml_server.clients import BY_NAME, CLIENTS, Client, ConfigError, Machine
from paths import TESTS

FIXTURES = TESTS / "fixtures" / "clients"
COMMAND = {
    "linux": ["/home/ada/.local/bin/aiaml-server"],
    "darwin": ["/opt/homebrew/bin/uvx", "aiaml-server"],
    "win32": ["C:\\Users\\ada\\.local\\bin\\aiaml-server.exe"],
}
VARIABLES = {"AIAML_MEMORY_DIR": "/home/ada/Erinnerungen für später"}
CURSOR = BY_NAME["cursor"]


def connected(client: Client, machine: Machine, **variables: str) -> Path:
    """Connect a client; return its file."""
    change = clients.connect(client, machine, ["/x/aiaml-server"], variables)
    clients.save(change)
    return change.path


def disconnected(client: Client, machine: Machine) -> None:
    """Disconnect a client."""
    for change in clients.disconnect(client, machine):
        clients.save(change)


@pytest.fixture
def home(tmp_path: Path) -> Machine:
    """A Linux home with Cursor in it."""
    (tmp_path / ".cursor").mkdir()
    return Machine("linux", tmp_path, {})


def config(machine: Machine) -> Path:
    """Return Cursor's file."""
    return Path(machine.home) / ".cursor" / "mcp.json"


@pytest.mark.parametrize("system", COMMAND)
def test_each_client_gets_the_recorded_file(system: str, tmp_path: Path) -> None:
    """Files before and after are recorded. Disconnected, a file is what it was, to the byte."""
    for client in CLIENTS:
        home = tmp_path / client.name
        shutil.copytree(FIXTURES / system, home, ignore=shutil.ignore_patterns("*.after"))
        machine = Machine(system, home, {})
        change = clients.connect(client, machine, COMMAND[system], VARIABLES)
        clients.save(change)
        recorded = FIXTURES / system / change.path.relative_to(home)
        after = recorded.with_name(f"{recorded.name}.after")
        if os.environ.get("AIAML_TRANSCRIPTS") == "write":
            shutil.copy(change.path, after)
        assert change.path.read_bytes() == after.read_bytes()
        again = clients.connect(client, machine, COMMAND[system], VARIABLES)
        assert again.before == again.after
        for other in (FIXTURES / system).rglob("*"):
            if other.is_file() and other.suffix != ".after" and other != recorded:
                same = home / other.relative_to(FIXTURES / system)
                assert same.read_bytes() == other.read_bytes()
        disconnected(client, machine)
        if change.is_new:
            assert change.path.read_bytes() == recorded.read_bytes()
        assert not [each for each in clients.connections(machine, [client]) if each.name]


@pytest.mark.parametrize(
    ("name", "system", "variable", "expected"),
    [
        ("claude-desktop", "linux", "XDG_CONFIG_HOME", "/d/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "APPDATA", "/d/Claude/claude_desktop_config.json"),
        ("claude-code", "darwin", "CLAUDE_CONFIG_DIR", "/d/.claude.json"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "/d/Code/User/mcp.json"),
        ("vscode-insiders", "win32", "APPDATA", "/d/Code - Insiders/User/mcp.json"),
        ("codex", "linux", "CODEX_HOME", "/d/config.toml"),
        ("gemini", "win32", "GEMINI_CLI_HOME", "/d/.gemini/settings.json"),
        ("zed", "linux", "XDG_CONFIG_HOME", "/d/zed/settings.json"),
        ("zed", "win32", "APPDATA", "/d/Zed/settings.json"),
        ("windsurf", "win32", "APPDATA", "/d/devin/mcp_config.json"),
    ],
)
def test_a_variable_moves_what_its_client_moves(
    name: str, system: str, variable: str, expected: str
) -> None:
    """Blank counts as not set."""
    home, client = PurePosixPath("/home/ada"), BY_NAME[name]
    found, _ = client.find(Machine(system, home, {variable: "/d"}))
    assert found.as_posix() == expected
    unset = client.find(Machine(system, home, {}))
    assert client.find(Machine(system, home, {variable: " "})) == unset
    assert unset[0].as_posix().startswith("/home/ada/")


def test_claude_desktop_in_its_windows_package_is_found(tmp_path: Path) -> None:
    """The file in the package counts before the classic one, and a file before a directory."""
    client, machine = BY_NAME["claude-desktop"], Machine("win32", tmp_path, {})
    classic = tmp_path / "AppData/Roaming/Claude/claude_desktop_config.json"
    inside = tmp_path / "AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude"
    assert client.find(machine) == (classic, False)
    classic.parent.mkdir(parents=True)
    assert client.find(machine) == (classic, False)  # as after `aiaml uninstall`
    (classic.parent / "state").touch()
    assert client.find(machine) == (classic, True)
    inside.mkdir(parents=True)
    (inside / classic.name).write_text("{}")
    assert client.find(machine) == (inside / classic.name, True)


def test_an_entry_in_an_older_file_is_removed_too(tmp_path: Path) -> None:
    """Windsurf was renamed, and may have left its old file behind, with our entry in it."""
    client, machine = BY_NAME["windsurf"], Machine("linux", tmp_path, {})
    old = tmp_path / ".codeium/windsurf/mcp_config.json"
    old.parent.mkdir(parents=True)
    old.write_text('{"mcpServers": {}, "a": 1}')
    assert connected(client, machine) == old
    new = tmp_path / ".config/devin/mcp_config.json"
    new.parent.mkdir(parents=True)
    shutil.copy(old, new)
    disconnected(client, machine)
    assert b"aiaml" not in old.read_bytes() + new.read_bytes()


WRONG = {
    '{"a": 1 "b"}': "line 1: ",
    '{\n  "a" 1}': "line 2: ",
    "{'a': 1}": "line 1: ",
    '{"a": /* x': "line 1: ",
    "{} {}": "line 1: ",
    "[" * 100_000: "expected structure",
    "[1]": "structure",
    "[]": "edited safely",
    '{"mcpServers": 3}': "structure",
    '{"mcpServers": "x", "b": 1}': "structure",
    '{"mcpServers": ["x"]}': "structure",
    '{"mcpServers": {"aiaml": 3}}': "structure",
    '{"mcpServers": {"aiaml": {"env": [1]}}}': "structure",
    '{"mcpServers": {"a": 1}, "mcpServers": {}}': "edited safely",
}


def test_a_file_that_cannot_be_edited_is_refused(home: Machine) -> None:
    """The message says where, and the file stays."""
    for text, reason in WRONG.items():
        config(home).write_text(text)
        with pytest.raises(ConfigError, match=reason):
            connected(CURSOR, home, AIAML_LOG_LEVEL="DEBUG")
        assert config(home).read_text() == text
    for data in ("{}".encode("utf-16"), b'{"a": "\xff"}'):
        config(home).write_bytes(data)
        with pytest.raises(ConfigError, match="UTF-8"):
            connected(CURSOR, home)
    assert os.listdir(config(home).parent) == ["mcp.json"]  # noqa: PTH208
    config(home).unlink()
    config(home).mkdir()
    with pytest.raises(ConfigError, match="directory"):
        connected(CURSOR, home)


def test_an_empty_file_is_filled(home: Machine) -> None:
    """Nothing, blanks or a comment are as good as an empty object."""
    for text in ("", " \r\n", "\ufeff", "// nothing yet\n"):
        config(home).write_bytes(text.encode())
        connected(CURSOR, home)
        assert config(home).read_bytes().decode().startswith(text.rstrip())
        (found,) = clients.connections(home, [CURSOR])
        assert found.command == ("/x/aiaml-server",)
        disconnected(CURSOR, home)
        assert config(home).read_bytes() == text.encode()


def test_what_a_person_added_to_the_entry_stays(home: Machine) -> None:
    """Command, args and our variables are brought up to date."""
    entry = {"timeout": 9, "command": "uvx", "env": {"MINE": "1", "AIAML_LOG_LEVEL": "INFO"}}
    config(home).write_text(json.dumps({"mcpServers": {"aiaml": entry, "other": {}}}))
    connected(CURSOR, home, AIAML_LOG_LEVEL="DEBUG")
    assert json.loads(config(home).read_text()) == {
        "mcpServers": {
            "aiaml": {
                "timeout": 9,
                "command": "/x/aiaml-server",
                "env": {"MINE": "1", "AIAML_LOG_LEVEL": "DEBUG"},
                "args": [],
            },
            "other": {},
        }
    }


def test_extras_are_only_a_start(tmp_path: Path) -> None:
    """A person's own value stays."""
    machine = Machine("linux", tmp_path, {"CODEX_HOME": str(tmp_path)})
    path = connected(BY_NAME["codex"], machine)
    assert "startup_timeout_sec = 60\n" in path.read_text()
    path.write_text("[mcp_servers.aiaml]\nstartup_timeout_sec = 5\n")
    connected(BY_NAME["codex"], machine)
    assert "startup_timeout_sec = 5\n" in path.read_text()
    assert "command" in path.read_text()


def test_a_new_file_is_private_and_goes_again(tmp_path: Path) -> None:
    """Entries of MCP servers hold keys."""
    machine = Machine("linux", tmp_path, {})
    path = connected(BY_NAME["zed"], machine)
    assert path == tmp_path / ".config/zed/settings.json"
    assert os.name != "posix" or stat.S_IMODE(path.stat().st_mode) == 0o600
    disconnected(BY_NAME["zed"], machine)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes, and links need a right")
def test_modes_and_links_stay(home: Machine, tmp_path: Path) -> None:
    """The backup has the mode too. Dotfile managers keep the file elsewhere.

    Whoever has just opened the file reads the old one to its end.
    """
    for mode in (0o600, 0o644, 0o664):
        config(home).write_text('{"a": 1}')
        config(home).chmod(mode)
        with config(home).open() as reader:
            connected(CURSOR, home)
            assert reader.read() == '{"a": 1}'
        for path in (config(home), config(home).with_name("mcp.json.aiaml-backup")):
            assert stat.S_IMODE(path.stat().st_mode) == mode
        disconnected(CURSOR, home)
    real = tmp_path / "dotfiles.json"
    config(home).replace(real)
    config(home).symlink_to(real)
    connected(CURSOR, home)
    assert config(home).is_symlink() and "aiaml" in real.read_text()
    disconnected(CURSOR, home)
    assert config(home).is_symlink() and real.read_text() == '{"a": 1}'


def test_the_backup_holds_the_file_before_our_entry(home: Machine) -> None:
    """Updates leave it alone; what a person changed meanwhile is not restored over."""
    path, backup = config(home), config(home).with_name("mcp.json.aiaml-backup")
    path.write_text('{"a": 1}')
    connected(CURSOR, home)
    connected(CURSOR, home, AIAML_SYNC_INTERVAL="9")
    assert backup.read_text() == '{"a": 1}'
    path.write_text(path.read_text().replace('"a": 1', '"a": 2'))
    disconnected(CURSOR, home)
    assert json.loads(path.read_text()) == {"a": 2, "mcpServers": {}}
    path.write_text('{"b": 1}')
    connected(CURSOR, home)
    assert backup.read_text() == '{"b": 1}'
    disconnected(CURSOR, home)
    assert path.read_text() == '{"b": 1}' and not backup.exists()


def test_a_file_that_another_program_changed_meanwhile_is_left(home: Machine) -> None:
    """What was worked out from an old state is not written over a new one."""
    config(home).write_text("{}")
    change = clients.connect(CURSOR, home, ["/x"], {})
    config(home).write_text('{"new": 1}')
    with pytest.raises(ConfigError, match="another program has just changed it"):
        clients.save(change)
    assert config(home).read_text() == '{"new": 1}'
    assert os.listdir(config(home).parent) == ["mcp.json"]  # noqa: PTH208


def test_connections_say_what_is_wrong(home: Machine, tmp_path: Path) -> None:
    """A command that is gone, an entry without one, a damaged file: each is a sentence."""

    def problem() -> str:
        (found,) = clients.connections(home, [CURSOR])
        return found.problem

    assert clients.save(clients.connect(CURSOR, home, [sys.executable, "-m", "x"], {})) is None
    assert problem() == ""
    gone = str(tmp_path / "gone")
    for entry, what in [
        ({"command": gone}, f"starts {gone}, which was not found"),
        ({"command": "no-such-uvx"}, "starts no-such-uvx, which was not found"),
        ({"url": "http://x"}, "starts nothing, which was not found"),
    ]:
        config(home).write_text(json.dumps({"mcpServers": {"aiaml": entry}}))
        assert problem() == (
            f"{config(home)}: the entry aiaml {what}; `aiaml install cursor` repairs it."
        )
    config(home).write_text("{")
    assert problem().startswith(f"{config(home)}: line 1: ")


def test_a_snippet_is_what_goes_into_the_file() -> None:
    """It is printed for whoever edits the file by hand."""
    text = clients.snippet(BY_NAME["vscode"], ["x"], {"AIAML_X": "1"})
    entry = {"type": "stdio", "command": "x", "args": [], "env": {"AIAML_X": "1"}}
    assert json.loads(text) == {"servers": {"aiaml": entry}}
    assert clients.snippet(BY_NAME["codex"], ["x"], {}).startswith("[mcp_servers.aiaml]\n")


def test_a_project_has_an_entry_of_its_own(tmp_path: Path) -> None:
    """It goes into the file of the project, and leaves the person's alone."""
    machine = Machine("linux", tmp_path / "home", {})
    for client in CLIENTS:
        if client.project_file:
            project = tmp_path / client.name
            project.mkdir()
            path = connected(client.in_project(project), machine, AIAML_MEMORY_DIR="~/work")
            assert path == project / client.project_file
            assert clients.project_variables(project) == {"AIAML_MEMORY_DIR": "~/work"}
            disconnected(client.in_project(project), machine)
            assert not path.exists() and not (tmp_path / "home").exists()
    assert clients.project_variables(tmp_path) == {}
