"""What a filter lets through, counted: by agent, user, topic and time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from aiaml_server.bank import MemoryBank
from aiaml_server.format.filters import Filter
from aiaml_server.index import Question
from aiaml_server.timestamps import parse_timestamp, to_local

_FAR = 4_102_444_800_000_000  # the year 2100: what claims to be of then would flatten a picture
_Begin = Callable[[date], date]


def overview(bank: MemoryBank, wanted: Filter, asked: Question | None = None) -> dict[str, Any]:
    """Count what a filter lets through and a question finds.

    Agents are counted as if none were chosen, so that the choice can be changed; likewise users,
    and the bars over time: by day, week, month or year, whichever gives a picture that can be read.

    Raises:
        StoreError: the directory cannot be read.
    """
    counts = bank.counts(wanted, asked)
    every = bank.counts(wanted._replace(since=None, before=None), asked).moments
    moments = [each for each in every if 0 <= each < _FAR]
    unit, days = _spans((moments[0], moments[-1]) if moments else None)
    places = [bisect_left(moments, parse_timestamp(each.isoformat()) or 0) for each in days]
    numbers = [end - start for start, end in pairwise(places)]
    bars = zip(pairwise(days), numbers, strict=True)
    return {
        "all": counts.total,
        "count": counts.matching,
        "malformed": counts.malformed,
        "agents": counts.agents,
        "users": counts.users,
        "topics": counts.topics,
        "pairs": [],
        "time": {
            "unit": unit,
            "bars": [(str(start), str(end), count) for (start, end), count in bars],
        },
    }


def _spans(extent: tuple[int, int] | None) -> tuple[str, list[date]]:
    """Return by what the time is divided, where each span begins, and where the last one ends."""
    if not extent:
        return "day", []
    first, last = map(_day, extent)
    length = (last - first).days
    unit, begin = next(step for most, step in _STEPS if length <= most)
    return unit, list(_beginnings(begin, first, last))


def _day(moment: int) -> date:
    local = to_local(moment)
    assert local  # noqa: S101 (between 1970 and 2100)
    return local.date()


_STEPS: list[tuple[float, tuple[str, _Begin]]] = [
    (31, ("day", lambda day: day)),
    (31 * 7, ("week", lambda day: day - timedelta(day.weekday()))),
    (31 * 90, ("month", lambda day: day.replace(day=1))),
    (float("inf"), ("year", lambda day: day.replace(month=1, day=1))),
]


def _beginnings(begin: _Begin, first: date, last: date) -> Iterator[date]:
    """Return the first day of each span, without a gap, and the day after the last span."""
    start = begin(first)
    while start <= last:
        yield start
        end = start + timedelta(1)
        while begin(end) == start:
            end += timedelta(1)
        start = end
    yield start
