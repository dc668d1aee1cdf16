"""The command stats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from aiaml_server.cli.context import opened, why_nothing
from aiaml_server.cli.filtering import filtered
from aiaml_server.format.filters import Filter, fold
from aiaml_server.terminal import (
    bold,
    echo_json,
    echo_paged,
    json_option,
    notify,
    plural,
    terminal_width,
    truncate,
)
from aiaml_server.timestamps import format_minute, format_timestamp

_SHOWN = 10  # rows of a table


@click.command("stats")
@filtered
@json_option
def stats(json: bool, **options: Any) -> None:
    """Count memories by agent, user, topic and month.

    Names that differ by case count as one. Months are in local time.

    \b
    Examples:
      aiaml stats
      aiaml stats --agent claude --since 52w --json
    """
    wanted = Filter.of(**options)
    with opened() as bank:
        counts = bank.index.counts(wanted)
        if not counts.matching:
            notify(why_nothing(bank, wanted))
    months = [format_minute(format_timestamp(micros))[:7] for micros in counts.times]
    tables = {
        "agents": _fold_case(counts.agents, wanted.agent),
        "users": _fold_case(counts.users, wanted.user),
        "topics": _fold_case(counts.topics),
        "months": sorted(Counter(months).items(), reverse=True),
    }
    if json:
        rows = {title: dict(table) for title, table in tables.items()}
        echo_json({"memories": counts.matching, **rows})
    elif counts.matching:
        echo_paged([bold(plural(counts.matching, "memory")), *_lines(tables)])


def _fold_case(counted: Iterable[tuple[str, int]], chosen: str = "") -> list[tuple[str, int]]:
    """Count names that differ only in case together, under the most frequent spelling.

    Args:
        counted: the names and how often each occurs, the most frequent first.
        chosen: the only name to return, in lower case; all names if it is empty.
    """
    spelling: dict[str, str] = {}
    sums: Counter[str] = Counter()
    for name, count in counted:
        if not chosen or fold(name) == chosen:
            sums[spelling.setdefault(fold(name), name)] += count
    return sorted(sums.items(), key=lambda row: (-row[1], row[0]))


def _lines(tables: Mapping[str, Sequence[tuple[str, int]]]) -> Iterator[str]:
    for title, table in tables.items():
        yield ""
        yield bold(f"{title.capitalize()} ({len(table):,})")
        for name, count in table[:_SHOWN]:
            yield f"{count:>7,}  {truncate(name, terminal_width() - 10)}"
