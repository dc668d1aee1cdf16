"""What the tests allow a slower processor."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import clock


@pytest.mark.parametrize(
    ("took", "slower", "fails"), [(0.9, 1, False), (1.1, 1, True), (1.9, 2, False), (2.1, 2, True)]
)
def test_quick_allows_as_many_times_more_as_a_processor_is_slower(
    took: float, slower: float, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no less than is promised where it is faster."""
    monkeypatch.setattr(clock, "loop", lambda: slower * clock.LOOP)
    with pytest.raises(clock.TooSlow) if fails else nullcontext():
        clock.quick(took, 1)


def test_quick_allows_at_most_three_times_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow a processor is."""
    monkeypatch.setattr(clock, "loop", lambda: 100 * clock.LOOP)
    with pytest.raises(clock.TooSlow):
        clock.quick(3.1, 1)
