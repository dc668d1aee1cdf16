"""`stats`: all memories at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered
from aiaml_server.cli.show import nothing
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    Exit,
    bold,
    dim,
    display_width,
    echo,
    echo_rows,
    format_size,
    pad,
    plural,
    progress,
    rows_options,
    terminal_width,
    wrap,
)
from aiaml_server.timestamps import format_minute, parse_timestamp, to_local

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_MOST = 10  # rows of a table in `stats`
_MONTHS = 24  # in the picture over time
_BLOCKS = " ▏▎▍▌▋▊▉█"


@click.command("stats")
@filtered
@rows_options
def stats(data: str, **options: Any) -> None:
    """Count memories by agent, user, topic and month.

    \b
    Examples:
      aiaml stats
      aiaml stats --agent claude --since 52w --json
    """
    wanted = Filter.of(**options)
    counts = Counts()
    with opened() as bank:
        for name, size, memory in _all(bank, wanted):
            counts.add(name, size, memory)
        why = "" if counts.memories else nothing(bank, wanted)
    if data:
        echo_rows(counts.rows(), data, counts.as_json())
    if why:
        raise Exit(why)
    if not data:
        _print_stats(counts)


@dataclass
class Counts:
    """What is counted. Sizes are in bytes of file, months in local time."""

    memories: int = 0
    size: int = 0
    largest: tuple[int, str] = (0, "")
    oldest: tuple[int, str] = (1 << 63, "")
    newest: tuple[int, str] = (-(1 << 63), "")
    agents: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, size: int, memory: Memory) -> None:
        """Count one memory."""
        self.memories += 1
        self.size += size
        self.largest = max(self.largest, (size, name))
        self.agents[memory.agent] += 1
        self.users[memory.user] += 1
        self.topics.update(dict.fromkeys(memory.topics, 1))
        if (moment := parse_timestamp(memory.timestamp)) is not None:
            self.oldest = min(self.oldest, (moment, memory.timestamp))
            self.newest = max(self.newest, (moment, memory.timestamp))
            if local := to_local(moment):
                self.months[local.isoformat()[:7]] += 1

    def as_json(self) -> dict[str, Any]:
        """Return all of it."""
        size, file = self.largest
        return {
            "memories": self.memories,
            "bytes": self.size,
            "largest": {"file": file, "bytes": size} if self.memories else None,
            "oldest": self.oldest[1] or None,
            "newest": self.newest[1] or None,
            "agents": dict(ranked(self.agents)),
            "users": dict(ranked(self.users)),
            "topics": dict(ranked(self.topics)),
            "months": dict(sorted(self.months.items())),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the tables as one."""
        counted = {"agent": self.agents, "user": self.users, "topic": self.topics}
        tables = {of: ranked(each) for of, each in counted.items()}
        tables["month"] = sorted(self.months.items())
        rows = [(of, *row) for of, table in tables.items() for row in table]
        return [{"of": of, "name": name, "memories": count} for of, name, count in rows]


def ranked(counted: Counter[str]) -> list[tuple[str, int]]:
    """Return names with their counts, the most frequent first, then by the alphabet."""
    return sorted(counted.items(), key=lambda row: (-row[1], row[0]))


def _all(bank: MemoryBank, wanted: Filter) -> Iterator[tuple[str, int, Memory]]:
    """Return file name, size in bytes and memory of each that is wanted."""
    for name, memory in wanted.among(bank.read(progress(bank.names(), "Reading"))):
        stamp = bank.stamp(name)
        yield name, stamp.size if stamp else 0, visible(memory)


def _print_stats(counts: Counts) -> None:
    size, file = counts.largest
    mean = format_size(counts.size // counts.memories)
    memories = bold(plural(counts.memories, "memory"))
    echo(wrap(f"{memories}, {format_size(counts.size)} in all, {mean} each"))
    echo(wrap(f"the largest: {file}, {format_size(size)}"))
    if counts.months:
        echo(wrap(f"from {format_minute(counts.oldest[1])} to {format_minute(counts.newest[1])}"))
    sections = {
        f"Agents{_of_all(counts.agents)}": ranked(counts.agents)[:_MOST],
        f"Users{_of_all(counts.users)}": ranked(counts.users)[:_MOST],
        f"Topics{_of_all(counts.topics)}": ranked(counts.topics)[:_MOST],
        "Months": _months(counts.months) if counts.months else [],
    }
    wide = _widest(row for rows in sections.values() for row in rows)
    for title, rows in sections.items():
        echo(f"\n{bold(title)}")
        _print_table(rows, wide)


def _of_all(counted: Counter[str]) -> str:
    return f" (the first {_MOST} of {len(counted):,})" if len(counted) > _MOST else ""


def _months(found: Counter[str]) -> list[tuple[str, int]]:
    """Return the last months up to the newest memory, empty ones among them."""
    year, month = map(int, max(found).split("-"))
    last = 12 * year + month - 1
    first = max(last - _MONTHS + 1, min(12 * int(each[:4]) + int(each[5:]) - 1 for each in found))
    names = [f"{each // 12:04}-{each % 12 + 1:02}" for each in range(first, last + 1)]
    return [(name, found[name]) for name in names]


def _print_table(rows: Sequence[tuple[str, int]], wide: int) -> None:
    most = max((count for _, count in rows), default=0)
    figures = len(f"{most:,}")
    room = min(terminal_width() - wide - figures - 4, 40)
    for name, count in rows:
        line = dim(bar(count / most, room)) if count else ""
        echo(f"{pad(name, wide)}  {count:>{figures},}  {line}".rstrip())


def _widest(rows: Iterable[tuple[str, int]]) -> int:
    return min(max((display_width(name) for name, _ in rows), default=0), terminal_width() // 2)


def bar(share: float, columns: int) -> str:
    """Return a bar of up to `columns` columns for a share of 1."""
    eighths = round(share * columns * 8)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
