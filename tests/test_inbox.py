"""What the person has seen, and what is new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server.errors import NotOurs
from aiaml_server.inbox import Inbox
from aiaml_server.memory import Memory

MEMORY = Memory.new("claude", "marco", ["dog"], "Max eats no chicken")


def test_what_was_seen_is_new_again_once_it_says_something_else(tmp_path: Path) -> None:
    """Every field counts, and what is noted outlives a torn line and another process."""
    assert Inbox(tmp_path).is_new(MEMORY)
    one, other = Inbox(tmp_path), Inbox(tmp_path)
    second = replace(MEMORY, content="Max eats all")
    assert [one.see([MEMORY, MEMORY]), one.see([MEMORY]), other.see([second])] == [1, 0, 1]
    with (tmp_path / ".index" / "inbox").open("ab") as file:
        file.write(b"0123")
    third = replace(MEMORY, topics=("cat",))
    Inbox(tmp_path).see([third])
    later = Inbox(tmp_path)
    assert [later.is_new(each) for each in (MEMORY, second, third)] == [False] * 3
    for changed in ({"user": "anna"}, {"agent": "x"}, {"extra": ("more: 1",)}):
        assert later.is_new(replace(MEMORY, **changed))


def test_a_link_under_its_name_is_not_followed(tmp_path: Path) -> None:
    """A base may come from elsewhere."""
    (tmp_path / ".index").mkdir()
    target = tmp_path / "target"
    target.write_text("", encoding="utf-8")
    try:
        (tmp_path / ".index" / "inbox").symlink_to(target)
    except OSError:
        pytest.skip("there are no links here")
    with pytest.raises(NotOurs):
        Inbox(tmp_path).see([MEMORY])
    assert target.read_text(encoding="utf-8") == ""
