"""What the person has seen, and what is new."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server.cli import app
from aiaml_server.errors import NotOurs
from aiaml_server.format.memory import Memory
from aiaml_server.storage.derived import folder
from aiaml_server.storage.inbox import Inbox

MEMORY = Memory.new("claude", "marco", ["dog"], "Max eats no chicken")


def test_what_was_seen_is_new_again_once_it_says_something_else(tmp_path: Path) -> None:
    """Every field counts, and what is noted outlives a torn line and another process."""
    assert Inbox(tmp_path).is_new(MEMORY)
    one, other = Inbox(tmp_path), Inbox(tmp_path)
    second = replace(MEMORY, content="Max eats all")
    assert [one.see([MEMORY, MEMORY]), one.see([MEMORY]), other.see([second])] == [1, 0, 1]
    with (folder(tmp_path) / "inbox").open("ab") as file:
        file.write(b"0123")
    third = replace(MEMORY, topics=("cat",))
    Inbox(tmp_path).see([third])
    later = Inbox(tmp_path)
    assert [later.is_new(each) for each in (MEMORY, second, third)] == [False] * 3
    for changed in ({"user": "anna"}, {"agent": "x"}, {"extra": ("more: 1",)}):
        assert later.is_new(replace(MEMORY, **changed))


def test_a_link_under_its_name_is_not_followed(tmp_path: Path) -> None:
    """A base may come from elsewhere."""
    folder(tmp_path, make=True)
    target = tmp_path / "target"
    target.write_text("", encoding="utf-8")
    try:
        (folder(tmp_path) / "inbox").symlink_to(target)
    except OSError:
        pytest.skip("there are no links here")
    with pytest.raises(NotOurs):
        Inbox(tmp_path).see([MEMORY])
    assert target.read_text(encoding="utf-8") == ""


def pipe(path: Path) -> None:
    """Make a pipe that nobody writes to."""
    if sys.platform == "win32":
        pytest.skip("a directory has no pipes here")
    os.mkfifo(path)


def large(path: Path) -> None:
    """Make a file that is larger than what is read."""
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)


PLANTED: dict[str, Callable[[Path], object]] = {
    "directory": Path.mkdir,
    "pipe": pipe,
    "large": large,
}


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_among_the_notes_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Memories are listed, stored once and tidied; what cannot be told is said."""
    for name, value in (("MEMORY_DIR", str(tmp_path)), ("ENABLE_SYNC", "false"), ("INBOX", "true")):
        monkeypatch.setenv(f"AIAML_{name}", value)
    folder(tmp_path, make=True)
    for name in ("inbox", "uses.jsonl"):
        PLANTED[kind](folder(tmp_path) / name)
    assert app.run(["remember", "Max eats no chicken", "-t", "dog", "-u", "marco"]) == 0
    assert "Not noted as seen by you" in capsys.readouterr().err
    assert app.run(["list"]) == 0
    listed = capsys.readouterr()
    assert listed.out.count("Max eats no chicken") == 1
    assert "cannot be told" in listed.err
    assert app.run(["tidy"]) == 1
    assert "there is nothing to tidy" in capsys.readouterr().err
    assert app.run(["list", "--new"]) == 3
