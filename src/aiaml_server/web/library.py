"""Every memory, for filters and pictures: counted for who asks, in a time that typing can bear.

The files are read once, and afterwards only those that `freshness` finds to have changed.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import combinations
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.filters import Filter
from aiaml_server.freshness import Freshness
from aiaml_server.memory import Memory
from aiaml_server.moments import instant
from aiaml_server.scorer import newest_first
from aiaml_server.store import NEVER, Stamp, Store

MOST_NAMES = 200  # agents, users, topics that are offered
MOST_LINKED = 18  # topics in the picture: more cannot be read
_FAR = 4_102_444_800_000_000  # the year 2100: what claims to be of then would flatten the picture


class _Known(NamedTuple):
    stamp: Stamp  # `NEVER` where it is too young to be trusted
    memory: Memory | None  # None: no memory


class _Held:
    """What is held of a directory: the record that `Freshness` asks."""

    def __init__(self) -> None:
        self.files: dict[str, _Known] = {}
        self._directory = NEVER

    def directory(self) -> Stamp:
        return self._directory

    def set_directory(self, stamp: Stamp) -> None:
        self._directory = stamp

    def known(self, after: str = "", most: int = -1) -> Iterator[tuple[str, Stamp]]:
        names = sorted(name for name in self.files if name > after)
        return ((name, self.files[name].stamp) for name in names[: most if most >= 0 else None])

    def any_name(self, few: int) -> str:
        return random.choice(list(self.files)) if len(self.files) > few else ""  # noqa: S311

    def newest(self) -> list[tuple[str, Memory]]:
        found = [(name, each.memory) for name, each in self.files.items() if each.memory]
        found.sort(key=lambda each: each[0], reverse=True)
        return sorted(found, key=lambda each: newest_first(each[1].timestamp))


class Library:
    """What a store holds, kept up to date by asking. Safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._freshness = Freshness(store)
        self._held = _Held()
        self._newest: list[tuple[str, Memory]] = []

    def newest(self) -> list[tuple[str, Memory]]:
        """Return every memory with its file's name, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        with self._lock:
            if directory := self._store.stamp():
                changed = 0
                for names in self._freshness.changes(self._held, directory):
                    changed += len(names)
                    for name in names:
                        self._read(name)
                if changed:
                    self._newest = self._held.newest()
            else:
                self._held, self._newest = _Held(), []
            return self._newest

    def _read(self, name: str) -> None:
        self._held.files.pop(name, None)
        if stamp := self._store.stamp(name):
            memory = None
            with suppress(FileNotFoundError, MalformedFile):
                memory = self._store.read(name)
            self._held.files[name] = _Known(stamp if stamp.settled else NEVER, memory)

    def overview(self, wanted: Filter) -> dict[str, Any]:
        """Count what a filter lets through.

        Agents are counted as if none were chosen, so that the choice can be changed; likewise
        users, and the bars over time.

        Raises:
            StoreError: the directory cannot be read.
        """
        everything = self.newest()

        def meant(**unset: Any) -> list[Memory]:
            some = replace(wanted, **unset)
            return [m for _, m in (some.among(everything) if some else everything)]

        chosen = meant()
        return {
            "all": len(everything),
            "count": len(chosen),
            "malformed": len(self._held.files) - len(everything),
            "agents": _counted([m.agent] for m in meant(agent="")),
            "users": _counted([m.user] for m in meant(user="")),
            "topics": _counted(m.topics for m in chosen),
            "pairs": _pairs(chosen),
            "time": _bars(meant(since=None, until=None)),
        }


def _counted(names: Iterable[Iterable[str]]) -> list[tuple[str, int]]:
    """Count names in any case, the most frequent first, each as it is first written."""
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for some in names:
        folded = {each.casefold(): each for each in some}
        counts.update(folded.keys())
        written = folded | written
    return [(written[each], count) for each, count in counts.most_common(MOST_NAMES)]


def _pairs(memories: list[Memory]) -> list[tuple[str, str, int]]:
    """Count how often two of the most frequent topics stand together."""
    most = [topic for topic, _ in _counted(m.topics for m in memories)[:MOST_LINKED]]
    place = {topic.casefold(): number for number, topic in enumerate(most)}
    counts: Counter[tuple[int, int]] = Counter()
    for memory in memories:
        places = {place.get(topic.casefold(), -1) for topic in memory.topics} - {-1}
        counts.update(combinations(sorted(places), 2))
    return [(most[a], most[b], count) for (a, b), count in counts.most_common()]


# --- over time ------------------------------------------------------------------------------------


def _bars(memories: Iterable[Memory]) -> dict[str, Any]:
    """Count by day, week, month or year, whichever gives a picture that can be read."""
    moments = (instant(memory.timestamp) for memory in memories)
    days: Counter[date] = Counter()
    for moment in filter(None, moments):
        if 0 < moment < _FAR:
            days[datetime.fromtimestamp(moment / 1e6).date()] += 1  # noqa: DTZ006 (local, as shown)
    if not days:
        return {"unit": "day", "bars": []}
    first, last = min(days), max(days)
    unit, begin = next(step for most, step in _STEPS if (last - first).days <= most)
    counts: Counter[date] = Counter()
    for day, count in days.items():
        counts[begin(day)] += count
    bars = [(str(start), str(end), counts[start]) for start, end in _spans(begin, first, last)]
    return {"unit": unit, "bars": bars}


_STEPS: list[tuple[float, tuple[str, Callable[[date], date]]]] = [
    (31, ("day", lambda day: day)),
    (31 * 7, ("week", lambda day: day - timedelta(day.weekday()))),
    (31 * 90, ("month", lambda day: day.replace(day=1))),
    (float("inf"), ("year", lambda day: day.replace(month=1, day=1))),
]


def _spans(begin: Callable[[date], date], first: date, last: date) -> Iterator[tuple[date, date]]:
    """Return the first day of each span, and the day after its last, without a gap."""
    start = begin(first)
    while start <= last:
        end = start + timedelta(1)
        while begin(end) == start:
            end += timedelta(1)
        yield start, end
        start = end
