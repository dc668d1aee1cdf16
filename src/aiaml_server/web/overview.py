"""What a filter lets through, counted: by agent, user, topic and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from aiaml_server.filters import Filter
from aiaml_server.index import Index
from aiaml_server.moments import in_local, instant

_Begin = Callable[[date], date]


def overview(index: Index, wanted: Filter) -> dict[str, Any]:
    """Count what a filter lets through.

    Agents are counted as if none were chosen, so that the choice can be changed; likewise users,
    and the bars over time: by day, week, month or year, whichever gives a picture that can be read.

    Raises:
        StoreError: the directory cannot be read.
    """
    days: list[date] = []
    unit = "day"

    def spans(first: int, last: int) -> Sequence[int]:
        nonlocal unit
        begin_day, end_day = _day(first), _day(last)
        length = (end_day - begin_day).days
        unit, begin = next(step for most, step in _STEPS if length <= most)
        days[:] = _beginnings(begin, begin_day, end_day)
        return [instant(each.isoformat()) or 0 for each in days]

    counts = index.counts(wanted, spans)
    if counts is None:
        return {"all": 0, "count": 0, "malformed": 0, "agents": [], "users": [], "topics": [],
                "pairs": [], "time": {"unit": unit, "bars": []}}  # fmt: skip
    bars = [
        (str(start), str(end), count)
        for (start, end), (_, count) in zip(pairwise(days), counts.times, strict=True)
    ]
    told = counts._asdict()
    return {
        **told,
        "count": told.pop("meant"),
        "malformed": index.malformed(),
        "time": {"unit": unit, "bars": bars},
    }


def _day(moment: int) -> date:
    local = in_local(moment)
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
