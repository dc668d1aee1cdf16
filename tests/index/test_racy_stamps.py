"""File systems count time in ticks: two changes within one tick leave the same stamp."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.index.index import Index
from aiaml_server.storage.store import Stamp, Store

now = 1
"""The tick that the file system is in. The test advances it."""


class Tick(Stamp):
    """A stamp that holds the tick of the last change, and nothing else."""

    @property
    def settled(self) -> bool:
        """Whether its tick is over."""
        return self.changed < now


@pytest.fixture(autouse=True)
def changed(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The ticks of the last changes by inode, on a clock that stands still until it is advanced."""
    ticks: dict[int, int] = {}

    def tick(status: os.stat_result) -> Tick:
        last = ticks.get(status.st_ino, 1)
        return Tick(last, last, 0, 0)

    monkeypatch.setattr(Stamp, "of", tick)
    return ticks


def write(path: Path, content: str, changed: dict[int, int]) -> None:
    """Write a memory in this tick, as an editor would."""
    memory = Memory("1b2c3d4e", "2026-01-01", "claude", "marco", ("x",), content)
    path.write_text(format(memory), encoding="utf-8")
    changed[path.stat().st_ino] = now


def test_an_edit_in_the_tick_of_the_last_reading_is_found(
    tmp_path: Path, changed: dict[int, int]
) -> None:
    """The stamp is the same, so it is not trusted until its tick is over."""
    global now  # noqa: PLW0603
    now = 1
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "a.md"
    index = Index(Store(tmp_path))

    def score() -> int:
        (hit,) = index.think(["word"])
        return hit.relevance_score

    write(file, "word", changed)
    once = score()
    write(file, "word word", changed)
    twice = score()
    assert twice > once
    now = 2
    assert score() == twice
    write(file, "word", changed)
    assert score() == once
    index.close()


def test_a_half_written_file_is_read_again_at_the_next_question(
    tmp_path: Path, changed: dict[int, int]
) -> None:
    """Without waiting for the next scan: its stamp was not trusted."""
    global now  # noqa: PLW0603
    now = 1
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "a.md"
    index = Index(Store(tmp_path), rescan_seconds=3600)
    file.write_text("-")
    assert index.think(["word"]) == []
    write(file, "word", changed)
    assert [hit.file_name for hit in index.think(["word"])] == ["a.md"]
    index.close()
