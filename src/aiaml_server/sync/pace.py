"""When the remote is asked again: arithmetic, with chance in it so that machines part ways."""

from __future__ import annotations

import random
import time
from collections import deque

FIRST_PAUSE = 10.0  # seconds at most from the first failure to the next try
LONGEST_PAUSE = 600.0
_BURST = 5  # pushes that may follow each other at once …
_BURST_SECONDS = 20.0  # … within this time; then they are gathered
_GATHER = (1.0, 8.0)


class Pace:
    """How long one process leaves the remote alone; all in seconds.

    Attributes:
        failures: tries that failed since the last that did not.
        outrun: tries since then in which other machines were faster at every push.
    """

    def __init__(self, interval: float) -> None:
        """Begin with no failure.

        Args:
            interval: seconds between two looks at the remote.
        """
        self._interval = interval
        self.failures = 0
        self.outrun = 0
        self._pushes: deque[float] = deque(maxlen=_BURST)

    def look(self) -> float:
        """Return the time until the next look, when all is well."""
        return self._interval * random.uniform(0.9, 1.0)  # noqa: S311

    def failed(self) -> float:
        """Note a failure; return the pause after it: soon at first, then less and less often."""
        self.failures += 1
        first = min(FIRST_PAUSE, 2 * self._interval)
        longest = max(self._interval, LONGEST_PAUSE)
        pause = min(first * 2.0 ** min(self.failures - 1, 60), longest)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311

    def lost(self, seconds: float, tries: int) -> float:
        """Return the pause after a push that another machine's was faster than.

        The more have lost, the wider the tries are spread: as senders on one wire do it.

        Args:
            seconds: what the try took, from the look at the remote to the answer to the push.
            tries: how many were lost before it in a row.
        """
        widest = min(seconds * 2.0 ** min(tries, 60), FIRST_PAUSE)
        return random.uniform(0, widest)  # noqa: S311

    def done(self, *, pushed: bool) -> float:
        """Note that all went well; return the pause that lets slower machines have their turn."""
        self.failures = self.outrun = 0
        if not pushed:
            return 0.0
        self._pushes.append(time.monotonic())
        if len(self._pushes) < _BURST or time.monotonic() - self._pushes[0] > _BURST_SECONDS:
            return 0.0
        return random.uniform(*_GATHER)  # noqa: S311
