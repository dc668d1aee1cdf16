"""How long the operations of `citations` take, in the processor's time, and its limits."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from clock import TooSlow
from paths import ROOT
from printed import completed

BENCHMARK = ROOT / "benchmarks" / "citations.py"
SPECIFIED = {
    "search of 1,000 in a new process": 0.5,
    "save, with two citations": 0.1,
    "verify one, with two citations": 0.2,
    "depth 3 among 100 memories": 0.5,
}
"""Seconds that the specification allows."""
TICK = 1 / 64 if sys.platform == "win32" else 0
"""Seconds in which Windows counts the processor's time."""


@pytest.mark.slow
def test_every_operation_is_within_its_limits() -> None:
    """So many times its yardstick, reading the files or a bare write, and the specified seconds.

    Both in the processor's time, the medians of seven, by turns with their yardsticks.
    """
    done = completed([sys.executable, BENCHMARK, "--json"], timeout=300)
    assert done.returncode == 0, done.stderr
    measured: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(measured) == 7
    assert {name_of(each) for each in measured} >= set(SPECIFIED)
    for each in measured:
        limit = each["limit"] * each["bare"] + TICK
        if each["ours"] > min(limit, SPECIFIED.get(name_of(each), limit)):
            raise TooSlow(str(each))


def name_of(measured: dict[str, Any]) -> str:
    """Return what was measured, without its yardstick."""
    return str(measured["what"]).partition(" : ")[0]
