"""Hooks in the settings of clients come and go; all else in the file stays."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server import clients
from aiaml_server.bank import MemoryBank
from aiaml_server.clients import HOSTS, ConfigError, Machine
from aiaml_server.settings import Settings

EVENTS = ("session_start", "prompt")
TYPED = """{
\t// my own
\t"model": "opus",
\t"hooks": {
\t\t"SessionStart": [ {"matcher": "x", "hooks": [{"type": "command", "command": "fmt"}]}, ],
\t\t"Stop": []
\t},
\t"permissions": {"allow": ["Bash(ls:*)"]}, /* last */
}
"""


def settings(name: str, home: Path) -> Path:
    """Return the settings file of a client."""
    return Path(Machine("linux", home, {}).expand(HOSTS[name].pattern))


def add(name: str, home: Path, toolset: str = "aiaml", *events: str, base: str = "") -> None:
    """Install a toolset's hooks."""
    machine = Machine("linux", home, {})
    clients.save(clients.add_hooks(name, machine, toolset, events or EVENTS, base))


def remove(name: str, home: Path) -> None:
    """Uninstall all hooks."""
    for change in clients.remove_hooks(clients.BY_NAME[name], Machine("linux", home, {})):
        clients.save(change)


@pytest.mark.parametrize("name", HOSTS)
def test_a_settings_file_gets_back_its_bytes(name: str, tmp_path: Path) -> None:
    """Whatever it was like; a second install changes nothing, another toolset stands beside."""
    path = settings(name, tmp_path)
    path.parent.mkdir()
    originals = ["", "{}\n", TYPED, TYPED.replace("\n", "\r\n"), "\ufeff" + TYPED, '{"hooks": {}}']
    for before in [*originals, None]:
        if before is not None:
            path.write_bytes(before.encode())
        add(name, tmp_path)
        installed = path.read_bytes()
        add(name, tmp_path)
        assert path.read_bytes() == installed
        add(name, tmp_path, "sessions", "session_start")
        assert path.read_text(encoding="utf-8").count("--toolset sessions ") == 1
        remove(name, tmp_path)
        assert (path.read_bytes().decode() if path.exists() else None) == before
        path.unlink(missing_ok=True)
        assert list(path.parent.iterdir()) == []


def test_what_a_person_changed_meanwhile_stays(tmp_path: Path) -> None:
    """Only our own hooks go, and not the person's beside them."""
    path = settings("claude-code", tmp_path)
    path.parent.mkdir()
    path.write_text(TYPED, encoding="utf-8")
    add("claude-code", tmp_path)
    path.write_text(path.read_text().replace('"opus"', '"sonnet"'), encoding="utf-8")
    remove("claude-code", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "aiaml" not in text and "// my own" in text and '"sonnet"' in text
    assert '{"matcher": "x", "hooks": [{"type": "command", "command": "fmt"}]}' in text


def test_a_hook_starts_this_python(tmp_path: Path) -> None:
    """It says which host, event and toolset it is for, and which memory directory."""
    add("claude-code", tmp_path, "aiaml", base="/m m")
    events = json.loads(settings("claude-code", tmp_path).read_text())["hooks"]
    assert list(events) == ["SessionStart", "UserPromptSubmit"]
    command = events["UserPromptSubmit"][0]["hooks"][0]["command"]
    assert shlex.split(command) == [
        *(sys.executable, "-I", "-m", "aiaml_server.server.hooks", "--host", "claude-code"),
        *("--event", "prompt", "--toolset", "aiaml", "--dir", "/m m"),
    ]
    add("claude-code", tmp_path, "citations", "before_edit", "after_edit")
    events = json.loads(settings("claude-code", tmp_path).read_text())["hooks"]
    assert events["PreToolUse"][0]["matcher"] == "Edit|Write|MultiEdit"
    add("claude-code", tmp_path, "aiaml", base="/other")
    text = settings("claude-code", tmp_path).read_text()
    assert "/m m" not in text and text.count("--dir /other") == 2
    add("gemini", tmp_path)
    events = json.loads(settings("gemini", tmp_path).read_text())["hooks"]
    assert events["BeforeAgent"][0]["hooks"][0]["timeout"] == 10_000
    add("cursor", tmp_path)
    written = json.loads(settings("cursor", tmp_path).read_text())
    assert written["version"] == 1 and "--event session_start" in str(
        written["hooks"]["sessionStart"]
    )


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    """A client without the event, and settings that are none."""
    with pytest.raises(ConfigError, match="cursor has no hooks for the events of citations"):
        add("cursor", tmp_path, "citations", "before_edit")
    path = settings("claude-code", tmp_path)
    path.parent.mkdir()
    for broken in ("{", "[1]", '{"hooks": [1]}', '{"hooks": {"SessionStart": {"a": 1}}}'):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(ConfigError):
            add("claude-code", tmp_path)
        assert path.read_text(encoding="utf-8") == broken


PATIENT = (  # a hook ends early on a busy machine
    "import aiaml_server.server.hooks.__main__ as hook\n"
    "hook.SECONDS = hook.MORE_SECONDS = 60\nhook.main()"
)


def hook_output(home: Path, directory: Path) -> str:
    """Run the installed prompt hook of Claude Code in a directory; return what it prints."""
    events = json.loads(settings("claude-code", home).read_text())["hooks"]
    words = shlex.split(events["UserPromptSubmit"][0]["hooks"][0]["command"])
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "1",
        "cwd": str(directory),
        "prompt": "when does the choir rehearse on thursdays?",
    }
    done = subprocess.run(
        [sys.executable, "-c", PATIENT, *words[4:]],
        input=json.dumps(event).encode(),
        capture_output=True,
        env={**os.environ, "HOME": str(home), "USERPROFILE": str(home)},
        check=True,
    )
    return done.stdout.decode()


def test_a_private_memory_never_appears_at_work(tmp_path: Path) -> None:
    """Hooks use the memory directory of a project's own entry, also below the project's top.

    They use no other variable of it but the one that silences them.
    """
    own, work = tmp_path / "own", tmp_path / "work"
    for base, content in (
        (own, "The choir rehearses on Thursdays in the old school, in private."),
        (work, "The choir of the company rehearses on Thursdays at work."),
    ):
        with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
            bank.remember("claude", "ann", ["choir"], content)
            bank.think(["choir"])
    project = tmp_path / "home" / "shop"
    (project / "src").mkdir(parents=True)
    home = tmp_path / "home"
    machine = Machine("linux", home, {})
    add("claude-code", home, base=str(own))
    assert "in private" in hook_output(home, project / "src")
    client = clients.BY_NAME["claude-code"].in_project(project)
    for variables, expected in (
        ({"AIAML_MEMORY_DIR": str(work), "AIAML_LOG_LEVEL": "anything"}, "at work"),
        ({"AIAML_MEMORY_DIR": str(work), "AIAML_HOOKS": "false"}, ""),
    ):
        clients.save(clients.connect(client, machine, ["aiaml-server"], variables))
        for directory in (project, project / "src"):
            shown = hook_output(home, directory)
            assert expected in shown and "in private" not in shown
    assert shown == ""
    assert "in private" in hook_output(home, home)
