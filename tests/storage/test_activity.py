"""What `status` says of each client: when it last asked and stored, and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiaml_server.identity import state_directory
from aiaml_server.storage.activity import note, read_activity


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_activity_is_counted_for_each_client_and_base(tmp_path: Path) -> None:
    """Names are kept as given; a base of which nothing is known has none."""
    base = tmp_path / "base"
    for _ in range(2):
        note(base, "cursor", "asked")
    note(base, "claude \ud800", "stored")
    note(tmp_path / "other", "codex", "asked")
    claude, cursor = read_activity(base)
    assert (cursor.client, cursor.asked_count, cursor.stored_count) == ("cursor", 2, 0)
    assert cursor.asked is not None and cursor.stored is None
    assert (claude.client, claude.asked, claude.stored_count) == ("claude \ud800", None, 1)
    assert read_activity(tmp_path / "new") == []
    assert not base.exists()


def test_a_damaged_file_or_no_place_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read counts as never, and what cannot be written is lost."""
    note(tmp_path, "cursor", "asked")
    (file,) = state_directory().rglob("*.json")
    for data in (b"", b"[]", b"[1, 2]", b'["x", "soon"]', b"\xff" * 9000):
        file.write_bytes(data)
        read_activity(tmp_path)
        note(tmp_path, "cursor", "asked")
        assert [each.client for each in read_activity(tmp_path)] == ["cursor"]
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    note(tmp_path, "cursor", "asked")
    assert read_activity(tmp_path) == []
