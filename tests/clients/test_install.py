"""`aiaml install` and `aiaml uninstall`, as a person types them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from aiaml_server.cli.app import run
from client import PYTHON


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with Cursor and Gemini CLI, and memories of one's own."""
    for name in os.environ:
        if name.startswith(("AIAML_", "XDG_", "CLAUDE_", "CODEX_", "GEMINI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in (".cursor", ".gemini"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").touch()
    return tmp_path


def typed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run a command line; return what it prints."""
    assert run(words) == code
    done = capsys.readouterr()
    return done.out + done.err


def entry(path: Path, name: str = "aiaml") -> dict[str, object]:
    """Return an entry of a JSON file."""
    found: dict[str, object] = json.loads(path.read_text("utf-8"))["mcpServers"][name]
    return found


def test_an_uninstalled_hook_leaves_no_client(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The directory that its file was in is empty, and so does not count as a client."""
    (home / ".gemini" / "state").unlink()
    (home / ".gemini").rmdir()
    for words in (("install",), ("uninstall",)):
        typed(capsys, *words, "gemini", "--hooks")
    rows = json.loads(typed(capsys, "install", "--list", "--json"))
    assert {row["client"]: row["state"] for row in rows}["gemini"] == "not found"


def test_all_that_are_found_are_connected(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variables of the shell go in, and what is named; it is undone by the printed command."""
    monkeypatch.setenv("AIAML_LOG_LEVEL", "DEBUG")
    output = typed(capsys, "install", "--all", "--env", "MINE=1", "--dir", "~/work")
    env = {"AIAML_LOG_LEVEL": "DEBUG", "MINE": "1", "AIAML_MEMORY_DIR": str(home / "work")}
    assert entry(home / ".cursor" / "mcp.json")["env"] == env
    assert entry(home / ".gemini" / "settings.json")["env"] == env
    assert "Cursor is connected" in output and "Undo: aiaml uninstall cursor\n" in output
    assert "already connected" in typed(capsys, "install", "cursor")
    rows = json.loads(typed(capsys, "install", "--list", "--json"))
    assert {row["client"]: row["state"] for row in rows}["cursor"] == "connected"
    typed(capsys, "uninstall", "--all")
    assert not (home / ".cursor" / "mcp.json").exists()
    assert not (home / ".gemini" / "settings.json").exists()


def test_all_hooks_and_all_entries_of_a_project_are_removed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`uninstall --all` reaches whatever `install` has written."""
    typed(capsys, "install", "cursor", "--hooks")
    assert (home / ".cursor" / "hooks.json").exists()
    typed(capsys, "uninstall", "--all", "--hooks")
    assert not (home / ".cursor" / "hooks.json").exists()
    (home / "shop").mkdir()
    typed(capsys, "install", "cursor", "--project", "shop")
    assert (home / "shop" / ".cursor" / "mcp.json").exists()
    typed(capsys, "uninstall", "--all", "--project", "shop")
    assert not (home / "shop" / ".cursor" / "mcp.json").exists()


def test_what_uninstall_removed_comes_back_by_the_printed_commands(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its variables, its toolsets and its project; hooks with theirs."""
    typed(
        capsys, "install", "cursor", "--dir", "~/my work", "--env", "A=1", "--toolset", "citations"
    )
    (home / "shop").mkdir()
    for words in ((), ("--toolset", "citations"), ("--toolset", "sessions", "--env", "B=2")):
        typed(capsys, "install", "gemini", "--project", "shop", *words)
    typed(capsys, "install", "claude-code", "--hooks", "--dir", "~/my work")
    typed(capsys, "install", "claude-code", "--hooks", "--toolset", "citations")
    paths = [".cursor/mcp.json", "shop/.gemini/settings.json", ".claude/settings.json"]
    before = [(home / path).read_bytes() for path in paths]
    output = typed(capsys, "uninstall", "cursor")
    output += typed(capsys, "uninstall", "gemini", "--project", "shop")
    output += typed(capsys, "uninstall", "claude-code", "--hooks")
    assert not any((home / path).exists() for path in paths)
    commands = re.findall("Undo: aiaml (.*)", output)
    assert len(commands) == 6, commands
    for command in commands:
        typed(capsys, *shlex.split(command))
    assert [(home / path).read_bytes() for path in paths] == before


def test_an_update_is_undone_to_what_was_there(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`install` of a connected client does not print that it is to be disconnected alone."""
    typed(capsys, "install", "cursor", "--env", "A=1")
    before = (home / ".cursor" / "mcp.json").read_bytes()
    output = typed(capsys, "install", "cursor", "gemini", "--toolset", "citations", "--env", "B=2")
    undo = re.findall("Undo: (.*)", output)
    assert undo == [
        "aiaml uninstall cursor && aiaml install cursor --env A=1",
        "aiaml uninstall gemini",
    ]
    for command in " && ".join(undo).split(" && "):
        typed(capsys, *shlex.split(command)[1:])
    assert (home / ".cursor" / "mcp.json").read_bytes() == before
    assert not (home / ".gemini" / "settings.json").exists()


def test_the_undo_line_holds_no_password(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor a mask, which would be written. What is left out is named so that no shell takes it."""
    remote = "AIAML_GITHUB_REMOTE=https://ada:swordfish@example.org/m.git"
    secrets = ("--env", remote, "--env", "MY_TOKEN=t0p secret")
    typed(capsys, "install", "cursor", *secrets, "--env", 'A="1"')
    before = entry(home / ".cursor" / "mcp.json")
    outputs = [
        typed(capsys, "install", "cursor", "--env", "B=2"),
        typed(capsys, "uninstall", "cursor"),
    ]
    for output, options in zip(outputs, ("", " --env B=2"), strict=True):
        assert "swordfish" not in output and "secret" not in output
        (undo,) = re.findall("Undo: (.*)", output)
        command, _, remark = undo.partition(" (")
        assert command.endswith(f"aiaml install cursor --env 'A=\"1\"'{options}")
        assert "AIAML_GITHUB_REMOTE, MY_TOKEN" in remark and "***" not in undo
        check = subprocess.run(["/bin/sh", "-n", "-c", undo], check=False, capture_output=True)
        assert check.returncode
    typed(capsys, "install", "cursor", *secrets, "--env", 'A="1"')
    assert entry(home / ".cursor" / "mcp.json") == before


def test_a_project_lists_its_own_files(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing of this user."""
    typed(capsys, "install", "cursor")
    (home / "shop").mkdir()
    typed(capsys, "install", "gemini", "--project", "shop")
    rows = json.loads(typed(capsys, "install", "--list", "--project", "shop", "--json"))
    assert {row["client"] for row in rows if row["state"] == "connected"} == {"gemini"}
    assert all(row["file"].startswith(str(home / "shop")) for row in rows)


def test_a_toolset_is_added_to_what_the_entry_serves(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--env` sets just what is to be served."""
    path = home / ".cursor" / "mcp.json"
    typed(capsys, "install", "cursor")
    typed(capsys, "install", "cursor", "--toolset", "citations")
    assert entry(path)["env"] == {"AIAML_TOOLSETS": "aiaml,citations"}
    typed(capsys, "install", "cursor", "--env", "AIAML_TOOLSETS=citations")
    assert entry(path)["env"] == {"AIAML_TOOLSETS": "citations"}


def test_a_project_gets_nothing_of_this_computer(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is named. Toolsets have an entry of their own, and all are removed together."""
    monkeypatch.setenv("AIAML_LOG_LEVEL", "DEBUG")
    words = ("claude-code", "--project", "--dir", "~/work/memory")
    output = typed(capsys, "install", *words)
    typed(capsys, "install", *words, "--toolset", "citations")
    path = home / ".mcp.json"
    ours = {"AIAML_MEMORY_DIR": "~/work/memory"}
    assert entry(path)["env"] == ours
    assert entry(path, "aiaml-citations")["env"] == {**ours, "AIAML_TOOLSETS": "citations"}
    assert entry(path)["command"] in ("uvx", "aiaml-server")
    assert sys.prefix not in path.read_text("utf-8")
    assert "approve it" in output and "Backup" not in output
    typed(capsys, "uninstall", "claude-code", "--project")
    assert not path.exists()
    path.write_text('{"mcpServers": {}}')
    assert "-backup; do not commit it\n" in typed(capsys, "install", *words)
    typed(capsys, "install", "claude-desktop", "--project", code=2)


def test_passwords_are_written_and_not_shown(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of other servers neither; a dry run writes nothing."""
    path = home / ".cursor" / "mcp.json"
    before = '{"mcpServers": {"x": {"env": {"API_KEY": "hunter2"}}}}'
    path.write_text(before.replace(": {", ": {\n"))
    remote = "AIAML_GITHUB_REMOTE=https://ada:swordfish@example.org/m.git"
    output = typed(capsys, "install", "cursor", "--env", remote, "--dry-run")
    assert "+" in output and "swordfish" not in output and "hunter2" not in output
    assert "swordfish" not in path.read_text()
    output = typed(capsys, "install", "cursor", "--env", remote, "--env", "MY_TOKEN=t0psecret")
    assert "swordfish" not in output and "t0psecret" not in output
    assert "swordfish" in path.read_text()
    output = typed(capsys, "install", "--print", "codex", "--env", remote)
    assert "https://***@example.org" in output and "*** stands for a password" in output


def test_a_file_that_is_refused_prints_the_text_to_paste(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its toolsets, without passwords. The other clients are connected all the same."""
    (home / ".cursor" / "mcp.json").write_text("{")
    options = ("--toolset", "citations", "--env", "MY_TOKEN=t0psecret")
    output = typed(capsys, "install", "cursor", "gemini", *options, code=1)
    assert "Add this by hand:" in output and '"mcpServers": {' in output
    printed = typed(capsys, "install", "--print", "generic", *options)
    for text in (output, printed):
        assert '"AIAML_TOOLSETS": "aiaml,citations"' in text and "t0psecret" not in text
    assert entry(home / ".gemini" / "settings.json")


def test_whoever_reads_may_go_away(home: Path) -> None:
    """`aiaml install a b | head -1` connects both."""
    command = f'"{PYTHON}" -m aiaml_server install cursor gemini | head -1'
    subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True)
    assert entry(home / ".cursor" / "mcp.json") and entry(home / ".gemini" / "settings.json")


def test_a_memory_directory_from_elsewhere_needs_confirmation(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, on a terminal; without one the command is named. A remote of one's own confirms it."""
    asked: list[str] = []

    def agree(question: str, **_: object) -> bool:
        asked.append(question)
        return True

    (home / ".aiaml" / ".git").mkdir(parents=True)
    assert "`aiaml trust`" in typed(capsys, "install", "cursor")
    remote = "AIAML_GITHUB_REMOTE=https://example.org/m.git"
    assert "`aiaml trust`" not in typed(capsys, "install", "cursor", "--env", remote)
    with monkeypatch.context() as terminal:
        terminal.setattr("sys.stdin.isatty", lambda: True)
        terminal.setattr("click.confirm", agree)
        typed(capsys, "install", "cursor")
        if os.name == "posix":
            (home / "a\x1bb" / ".git").mkdir(parents=True)
            typed(capsys, "install", "cursor", "--dir", str(home / "a\x1bb"))
            assert "a‹U+001B›b was made" in asked[1]
    assert "`aiaml trust`" not in typed(capsys, "install", "cursor")


def test_hooks_are_for_the_directory_of_the_entry(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or for one that is named; they come and go apart from the entry."""
    path = home / ".claude" / "settings.json"
    typed(capsys, "install", "claude-code", "--dir", "~/work")
    typed(capsys, "install", "claude-code", "--hooks")
    assert path.read_text("utf-8").count(f"--dir {home / 'work'}") == 2
    typed(capsys, "install", "claude-code", "--hooks", "--dir", "~/other")
    assert path.read_text("utf-8").count(f"--dir {home / 'other'}") == 2
    typed(capsys, "uninstall", "claude-code", "--hooks")
    assert not path.exists() and (home / ".claude.json").exists()
    typed(capsys, "install", "zed", "--hooks", code=2)
    typed(capsys, "install", "claude-code", "--hooks", "--project", code=2)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("cursor", "--all"),
        ("cursor", "--env", "x"),
        ("cursor", "--dir", "relative"),
        ("curser",),
    ],
)
def test_wrong_words(
    words: tuple[str, ...], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are a usage error, and nothing is written."""
    output = typed(capsys, "install", *words, code=2)
    assert [path.name for path in (home / ".cursor").iterdir()] == ["state"]
    assert "relative" not in words or output.startswith("aiaml: --dir is 'relative'; it must be")
