"""The benchmarks run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import strace
from paths import ROOT
from printed import completed

pytestmark = pytest.mark.slow


def run(script: str, *arguments: str | Path) -> str:
    """Run a script to its end; return what it printed."""
    done = completed([sys.executable, ROOT / "benchmarks" / script, *arguments], timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_generated_memories_depend_only_on_the_seed(tmp_path: Path) -> None:
    """Two runs with one seed write the same files, and another seed writes others."""
    found = []
    for name, seed in (("one", "1"), ("two", "1"), ("three", "2")):
        run("corpus.py", tmp_path / name, "30", "--seed", seed)
        found.append(
            {path.name: path.read_bytes() for path in (tmp_path / name / "files").iterdir()}
        )
    assert found[0] == found[1]
    assert len(found[0]) == 30
    assert not set(found[0].values()) & set(found[2].values())


def test_speed_is_measured_and_answers_are_checked() -> None:
    """Each row has a figure of each server."""
    rows = run("speed.py", "--sizes", "50", "--repeats", "1").splitlines()
    figures = [row for row in rows if row.startswith("| ") and row.endswith(" x |")]
    assert len(figures) == 15
    assert any(row.startswith("| size of the index") for row in rows)


def test_sync_is_measured_and_survives_kills() -> None:
    """Both computers have every memory in the end."""
    assert "problem: None" in run("sync_kills.py", "import", "20")
    assert "0 different, 0 failed cycles, 0 lost" in run("sync_kills.py", "kills", "3")


@strace.needed
@pytest.mark.parametrize("fault", ["kill", "power", "disk", "together"])
def test_no_fault_loses_a_memory(fault: str) -> None:
    """One round of each."""
    assert "{'lost': 0, 'torn': 0, 'not started again': 0}" in run(
        "faults.py", fault, "--rounds", "1"
    )


def test_quality_is_the_share_of_right_memories(tmp_path: Path) -> None:
    """The first question finds its memory; the second finds one of two."""
    head = {"timestamp": "2026-01-01T00:00:00", "agent": "claude", "user": "ada", "topics": []}
    texts = {"a": "I drink green tea", "b": "The car is blue", "c": "Nothing"}
    store = {
        "name": "one",
        "memories": [{"id": name, "content": text, **head} for name, text in texts.items()],
        "questions": [
            {"id": "q1", "text": "tea", "relevant": ["a"]},
            {"id": "q2", "text": "car", "relevant": ["b", "c"]},
        ],
    }
    (tmp_path / "set.json").write_text(json.dumps([store]), encoding="utf-8")
    row = run("quality.py", tmp_path).splitlines()[-1]
    assert row.startswith("| set | 2 | 1.000 (1.000 to 1.000) | 0.750 (")


def test_toolsets_are_measured() -> None:
    """Without the rows that need the model."""
    assert "`memory_graph_traverse`" in run("toolsets.py", "--quick")
