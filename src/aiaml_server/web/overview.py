"""What a filter lets through, counted: by agent, user, topic and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

from aiaml_server.bank import MemoryBank
from aiaml_server.filters import Filter
from aiaml_server.labels import MOST_NAMES, MOST_PAIRS
from aiaml_server.moments import in_local, instant

_Begin = Callable[[date], date]


def overview(banks: Sequence[MemoryBank], wanted: Filter) -> dict[str, Any]:
    """Count what a filter lets through in one directory, or in several together.

    Agents are counted as if none were chosen, so that the choice can be changed; likewise users,
    and the bars over time: by day, week, month or year, whichever gives a picture that can be read.

    Raises:
        StoreError: a directory cannot be read.
    """
    extents = [found for bank in banks if (found := bank.extent(wanted))]
    unit, days = _spans(extents)
    borders = [instant(each.isoformat()) or 0 for each in days]
    counts = [each for bank in banks if (each := bank.counts(wanted, borders))]
    topics = _together([each.topics for each in counts])
    return {
        "all": sum(each.all for each in counts),
        "count": sum(each.meant for each in counts),
        "malformed": sum(each.malformed for each in counts),
        "agents": _together([each.agents for each in counts]),
        "users": _together([each.users for each in counts]),
        "topics": topics,
        "pairs": _linked([each.pairs for each in counts], topics),
        "time": {
            "unit": unit,
            "bars": [
                (str(start), str(end), sum(count for _, count in its))
                for (start, end), its in zip(
                    pairwise(days), zip(*(each.times for each in counts), strict=True), strict=True
                )
            ],
        },
    }


def _together(counts: Sequence[list[tuple[str, int]]]) -> list[tuple[str, int]]:
    """Return names in any case with their numbers in all directories, the most frequent first."""
    if len(counts) == 1:
        return counts[0]
    total: Counter[str] = Counter()
    written: dict[str, str] = {}
    for name, count in (each for its in counts for each in its):
        total[name.casefold()] += count
        written.setdefault(name.casefold(), name)
    return [(written[each], count) for each, count in total.most_common(MOST_NAMES)]


def _linked(
    pairs: Sequence[list[tuple[str, str, int]]], topics: Iterable[tuple[str, int]]
) -> list[tuple[str, str, int]]:
    """Return the pairs of topics of all directories, spelled as these, the most frequent first."""
    if len(pairs) == 1:
        return pairs[0]
    total: Counter[tuple[str, ...]] = Counter()
    for one, other, count in (each for its in pairs for each in its):
        total[tuple(sorted((one.casefold(), other.casefold())))] += count
    written = {name.casefold(): name for name, _ in topics}
    return [(written[a], written[b], count) for (a, b), count in total.most_common(MOST_PAIRS)]


def _spans(extents: Sequence[tuple[int, int]]) -> tuple[str, list[date]]:
    """Return by what the time is divided, where each span begins, and where the last one ends."""
    if not extents:
        return "day", []
    first, last = _day(min(start for start, _ in extents)), _day(max(end for _, end in extents))
    length = (last - first).days
    unit, begin = next(step for most, step in _STEPS if length <= most)
    return unit, list(_beginnings(begin, first, last))


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
