"""Promises of time, on machines that others use as well."""

from __future__ import annotations

import time

LOOP = (
    0.008  # s of a processor that `loop` takes where the promises were made: benchmarks/RESULTS.md
)
MOST_SLOWER = 3.0


class TooSlow(AssertionError):  # noqa: N818 (what is wrong is the time)
    """A test that ends so is made again, twice at most: the machine may have been busy.

    pyproject.toml says so, and the closing line counts it. No other failure is tried again.
    """


def quick(took: float, most: float) -> None:
    """Fail unless what `took` so many seconds took fewer than `most`.

    Where a processor is slower now than the one on which the promise was made, by its kind or by
    what else it does, that many times more are allowed, up to `MOST_SLOWER`.
    """
    if took >= most and took >= (allowed := most * slower()):
        raise TooSlow(f"took {took:.3f} s, and less than {allowed:.3f} s is promised")


def slower() -> float:
    """Say how many times as long as where the promises were made some work takes; 1 at least."""
    return min(max(sorted(loop() for _ in range(9))[4] / LOOP, 1.0), MOST_SLOWER)


def loop() -> float:
    """Return the seconds of a processor that some work takes."""
    begun = time.process_time()
    for number in range(100_000):
        number * number % 7
    return time.process_time() - begun
