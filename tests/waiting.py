"""The one place where tests look at a clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PAUSE_SECONDS = 0.02

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float = 60) -> T:
    """Return the first true value of a condition.

    Args:
        condition: called again and again, with a short pause in between.
        timeout: seconds after which the test fails.

    Raises:
        AssertionError: the condition did not become true in time.
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"no {condition} within {timeout} s"
        time.sleep(PAUSE_SECONDS)
    return value
