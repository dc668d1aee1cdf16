"""What `status` says of each client: when it last asked and stored, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiaml_server.identity import state_directory
from aiaml_server.storage.activity import read_activity, record_activity


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_activity_is_counted_for_each_client_and_base(tmp_path: Path) -> None:
    """Of a base of which nothing is known, there is none."""
    base = tmp_path / "base"
    for _ in range(2):
        record_activity(base, "cursor", "asked")
    record_activity(base, "claude \ud800", "stored")
    record_activity(tmp_path / "other", "codex", "asked")
    claude, cursor = read_activity(base)
    assert (cursor.client, cursor.asked_count, cursor.stored_count) == ("cursor", 2, 0)
    assert cursor.asked is not None and cursor.stored is None
    assert (claude.client, claude.asked, claude.stored_count) == ("claude ?", None, 1)
    assert read_activity(tmp_path / "new") == []
    assert not base.exists()


def test_any_name_is_kept_and_other_files_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written is lost, and stops nobody."""
    names = [".", "..", "a b", "a.asked", "a/b\\c", "cursor", "unnamed", "日本"]
    for name in [*names, "", "a\nb\t"]:
        record_activity(tmp_path, name, "asked")
    (directory,) = {path.parent for path in state_directory().rglob("*.asked")}
    assert [each.client for each in read_activity(tmp_path)] == names
    (directory / "folder.asked").mkdir()
    (directory / "other.json").write_text("x")
    (directory / "%ff.asked").write_text("x")
    assert [each.client for each in read_activity(tmp_path)] == sorted([*names, "\ufffd"])
    record_activity(tmp_path / "long", "日" * 300, "asked")
    assert read_activity(tmp_path / "long")[0].client.startswith("日" * 22)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    record_activity(tmp_path, "cursor", "asked")
    assert read_activity(tmp_path) == []
