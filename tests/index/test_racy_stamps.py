"""File systems count time in ticks: two changes within one tick leave the same stamp."""

from __future__ import annotations

from pathlib import Path

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


class TickingStore(Store):
    """A store on a file system whose clock stands still until the test advances it."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self._changed: dict[str, int] = {}

    def write(self, name: str, content: str) -> None:
        """Write a memory in this tick, as an editor would."""
        memory = Memory("1b2c3d4e", "2026-01-01", "claude", "marco", ("x",), content)
        (self.directory / name).write_text(format(memory), encoding="utf-8")
        self._changed[name] = now

    def stamp(self, name: str = "") -> Stamp | None:
        """Return the tick of the last change."""
        tick = self._changed.get(name, 1)
        return super().stamp(name) and Tick(tick, tick, 0, 0)


def test_an_edit_in_the_tick_of_the_last_reading_is_found(tmp_path: Path) -> None:
    """The stamp is the same, so it is not trusted until its tick is over."""
    global now  # noqa: PLW0603
    now = 1
    (tmp_path / "files").mkdir()
    store = TickingStore(tmp_path)
    index = Index(store)

    def score() -> int:
        (hit,) = index.think(["word"])
        return hit.relevance_score

    store.write("a.md", "word")
    once = score()
    store.write("a.md", "word word")
    twice = score()
    assert twice > once
    now = 2
    assert score() == twice
    store.write("a.md", "word")
    assert score() == once
    index.close()


def test_a_half_written_file_is_read_again_at_the_next_question(tmp_path: Path) -> None:
    """Without waiting for the next scan: its stamp was not trusted."""
    global now  # noqa: PLW0603
    now = 1
    (tmp_path / "files").mkdir()
    store = TickingStore(tmp_path)
    index = Index(store, rescan_seconds=3600)
    (tmp_path / "files" / "a.md").write_text("-")
    assert index.think(["word"]) == []
    store.write("a.md", "word")
    assert [hit.file_name for hit in index.think(["word"])] == ["a.md"]
    index.close()
