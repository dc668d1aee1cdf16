"""How long the operations of `citations` take, in the processor's time, and its limits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from printed import completed

BENCHMARK = Path(__file__).parent.parent / "benchmarks" / "citations.py"
SPECIFIED = {
    "search of 1,000 in a new process": 0.5,
    "save, with two citations": 0.1,
    "verify one, with two citations": 0.2,
    "depth 3 among 100 memories": 0.5,
}
"""Seconds that the specification allows."""
TICK = 1 / 64 if sys.platform == "win32" else 0
"""Seconds in which Windows counts the processor's time."""


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    """What the benchmark measures: medians of seven, by turns with their yardsticks."""
    done = completed([sys.executable, BENCHMARK, "--json"], timeout=300)
    assert done.returncode == 0, done.stderr
    return {each["what"]: each for each in json.loads(done.stdout)}


def test_no_operation_takes_longer_than_its_limit(measured: dict[str, dict[str, Any]]) -> None:
    """Each is at most so many times its yardstick: reading the files, or a bare write."""
    assert len(measured) == 7
    beyond = [
        each for each in measured.values() if each["ours"] > each["limit"] * each["bare"] + TICK
    ]
    assert not beyond


def test_each_is_as_quick_as_specified(measured: dict[str, dict[str, Any]]) -> None:
    """In seconds of the processor, which other work on the machine changes little."""
    taken = {what.partition(" : ")[0]: each["ours"] for what, each in measured.items()}
    for what, seconds in SPECIFIED.items():
        assert taken[what] <= seconds, what
