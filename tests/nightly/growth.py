"""How the time that a call takes grows with its input, on a machine that does other things as well.

Processor time is counted, not the clock, so that neighbours matter little. What is bounded is the
growth: the time at twice the size, divided by the time at the size.
"""

from __future__ import annotations

import time
from collections.abc import Callable

FLOOR = 0.02  # seconds; what takes less is too short to be measured
STEEP = 3.0  # a linear call has 2, a quadratic one 4
TRIES = 4
LONGEST = 10.0  # seconds; what takes more grows whatever its factor


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call in this thread."""
    start = time.thread_time()
    call()
    return time.thread_time() - start


def steep(call: Callable[[int], object], smallest: int, largest: int) -> str:
    """Say at which size a call's time grows faster than its size; empty when it does nowhere.

    Args:
        call: does the work for a size, in a time that its input's making does not dominate.
        smallest: the first size.
        largest: the last one; each is twice the one before.
    """
    size, before = smallest, seconds(lambda: call(smallest))
    while size < largest:
        size *= 2
        now = seconds(lambda size=size: call(size))  # type: ignore[misc]
        for _ in range(TRIES):
            if now < FLOOR or now < STEEP * before:
                break
            before = max(before, seconds(lambda size=size: call(size // 2)))  # type: ignore[misc]
            now = min(now, seconds(lambda size=size: call(size)))  # type: ignore[misc]
        if now >= FLOOR and now >= STEEP * before:
            times = [seconds(lambda size=size: call(size * 2)) for _ in range(TRIES)]  # type: ignore[misc]
            then = min(times)
            if then >= STEEP * now:  # not only where some cache of the processor ends
                sizes = f"{size // 2:,}, {size:,} and {size * 2:,}"
                return f"{before:.3f}, {now:.3f} and {then:.3f} s at {sizes}"
        if now > LONGEST:
            return f"{now:.3f} s at {size:,}"
        before = now
    return ""
