"""Hooks in the settings of clients come and go; all else in the file stays."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from aiaml_server import clients
from aiaml_server.clients import HOSTS, ConfigError, Machine

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
    clients.save(clients.remove_hooks(name, Machine("linux", home, {})))


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
    told = json.loads(settings("cursor", tmp_path).read_text())
    assert told["version"] == 1 and "--event session_start" in str(told["hooks"]["sessionStart"])


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
