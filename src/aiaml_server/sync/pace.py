"""All patience of one process: when the remote is asked again, and how long an answer may take.

Arithmetic, with chance in it so that machines part ways.
"""

from __future__ import annotations

import time
from collections import deque

FIRST_PAUSE = 10.0  # seconds at most from the first failure to the next try
LONGEST_PAUSE = 600.0
CALL_SECONDS = 60.0
_LONGEST_CALL = 900.0
_OCCUPIED = 2.0  # while another process synchronises
_BURST = 5  # pushes that may follow each other at once …
_BURST_SECONDS = 60.0  # … within this time; then they are gathered
_GATHER = (1.0, 10.0)
_QUIET = 10.0  # of every 20 seconds of the clock, whoever gathers leaves the first to others


class Pace:
    """How long one process leaves the remote alone; all in seconds.

    Attributes:
        not_before: the moment, as `time.monotonic` has it, until which the remote is left alone.
        call: what one call to the remote may take.
        outrun: rounds since the last success in which other machines were faster at every push.
    """

    def __init__(self, interval: float) -> None:
        """Begin with nothing gone wrong.

        Args:
            interval: seconds between two looks at the remote.
        """
        self._interval = interval
        self.not_before = 0.0
        self.call = CALL_SECONDS
        self.outrun = 0
        self._failures = 0
        self._occupied = 0  # looks in a row at which another process synchronised
        self._pushes: deque[float] = deque(maxlen=_BURST)

    def is_due(self) -> bool:
        """Whether the remote may be asked now."""
        return time.monotonic() >= self.not_before

    def hurry(self) -> None:
        """Have it asked in the next round."""
        self.not_before = 0.0

    def next_round(self, *, done: bool) -> float:
        """Return the time until the next round, if nothing is remembered before.

        Args:
            done: whether the last one was done; not while another process synchronises.
        """
        if not done:
            pause = min(_OCCUPIED * 2.0 ** min(self._occupied, 60), self._interval)
            self._occupied += 1
            return pause
        self._occupied = 0
        pause = self.not_before - time.monotonic()
        usual = self._interval * _chance(0.9, 1.0)
        return min(pause, self._interval) if pause > 0 else usual

    def failed(self) -> None:
        """Note a failure: pauses are short at first, then longer; calls may take longer, too."""
        self._failures += 1
        first = min(FIRST_PAUSE, 2 * self._interval)
        longest = max(self._interval, LONGEST_PAUSE)
        pause = min(first * 2.0 ** min(self._failures - 1, 60), longest)
        self.not_before = time.monotonic() + pause * _chance(0.5, 1.0)
        self.call = min(self.call * 2, _LONGEST_CALL)

    def lost(self, seconds: float, tries: int) -> float:
        """Return the pause after a push that another machine's was faster than.

        The more have lost, the wider the tries are spread: as senders on one wire do it. But on a
        slow line a whole try must fit between two of those who gather.

        Args:
            seconds: what the try took, from the look at the remote to the answer to the push.
            tries: how many were lost before it in a row.
        """
        longest = min(max(_QUIET - 2 * seconds, seconds), FIRST_PAUSE)
        return _chance(0, min(seconds * 2.0 ** min(tries, 60), longest))

    def gave_up(self, seconds: float, tries: int) -> None:
        """Note that the last push of a round was lost, too; for the numbers see `lost`."""
        self.outrun += 1
        self.not_before = time.monotonic() + self.lost(seconds, tries + self.outrun)

    def succeeded(self, *, pushed: bool) -> None:
        """Note that all went well; who has pushed often lets slower machines have their turn."""
        self._failures = self.outrun = 0
        self.not_before = 0.0
        if pushed:
            self._pushes.append(time.monotonic())
            if len(self._pushes) == _BURST and self._pushes[-1] - self._pushes[0] <= _BURST_SECONDS:
                pause = _chance(*_GATHER)
                if (time.time() + pause) % (2 * _QUIET) < _QUIET:
                    pause += _QUIET
                self.not_before = time.monotonic() + pause


def _chance(least: float, most: float) -> float:
    import random  # noqa: PLC0415 (a verb that only commits leaves nothing to chance)

    return random.uniform(least, most)  # noqa: S311
