"""`uses`: what agents asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened, settings
from aiaml_server.cli.rows import print_lines
from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import WHEN
from aiaml_server.format.memory import Memory
from aiaml_server.moments import instant_or_ago, minute
from aiaml_server.rendering import title, visible
from aiaml_server.storage.uses import Summary, Use, since
from aiaml_server.terminal import (
    Ended,
    as_rows,
    bold,
    confirm,
    dim,
    joined,
    note,
    one_line,
    out,
    out_rows,
    width,
    wrapped,
    yes,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_MOST = 10  # rows of a table


@click.command("uses")
@click.option("--since", "time", metavar="TIME", help=f"Only from then on: {WHEN}.")
@click.option("--log", "each", is_flag=True, help="Each question by itself, oldest first.")
@click.option("--clear", is_flag=True, help="Delete what is noted, after asking.")
@yes
@as_rows
def uses(time: str | None, each: bool, clear: bool, yes: bool, data: str) -> None:
    """Tell what agents asked for: which memories help, and which never come up.

    Servers note when a client used `think` or `recall`, with which keywords, and the ids of what
    it got, and hooks what they showed; your own `aiaml search` is not noted. That stays on this
    computer, in a folder in .index that is yours alone, is never in git, and goes back some 10,000
    questions. AIAML_LOG_USES=false turns it off.

    \b
    Examples:
      aiaml stats uses
      aiaml stats uses --since 7d --log
      aiaml stats uses --clear
    """
    moment = None if time is None else instant_or_ago(time)
    if time is not None and moment is None:
        raise InvalidInput("--since", f"{time!r} is no time; it must be {WHEN}")
    with opened() as bank:
        if clear:
            if not yes:
                confirm("Delete what is noted of the questions of agents?")
            bank.uses.clear()
            if data:
                out_rows([{"cleared": True}], data, {"cleared": True})
            else:
                out("Deleted.")
            return
        noted = list(since(bank.uses.read(), moment))
        if each:
            _tell_each(noted, data)
        else:
            _tell(Summary.of(noted), bank, data)
    if not settings().log_uses:
        note("AIAML_LOG_USES is false here: servers that are told so note nothing.")
    if not noted:
        when = "since then" if moment is not None else "yet"
        why = bank.uses.problem or "a server notes what agents ask for"
        raise Ended(f"nothing is noted {when}: {why}")


def _tell_each(noted: Iterable[Use], data: str) -> None:
    if data:
        out_rows([vars(use) for use in noted], data)
        return
    for use in noted:
        got = ", ".join(use.ids) or "nothing"
        asked = f"{' '.join(use.keywords)} → " if use.keywords else ""
        line = f"{use.client or 'unknown'} {use.tool}  {asked}{got}"
        out(f"{dim(minute(use.at))}  {one_line(line, max(width() - 18, 20))}")


def _tell(total: Summary, bank: MemoryBank, data: str) -> None:
    memories = [memory for _, memory in bank.newest()]
    never = [each for each in memories if each.id not in total.last]
    if data:
        said = _as_json(total, memories, never)
        out_rows(said["recalled"], data, said)
        return
    if not total.tools:
        return
    tools = joined([f"{count:,} {tool}" for tool, count in sorted(total.tools.items())])
    clients = [
        f"{one_line(name, 40) or 'unknown'} ({count:,})"
        for name, count in total.clients.most_common(_MOST)
    ]
    out(wrapped(f"{bold(tools)} since {minute(total.since)}, by {joined(clients)}"))
    words = {each.id: title(visible(each).content) for each in memories}
    for heading, counted in (("Recalled most", total.recalled), ("Shown by hooks", total.shown)):
        rows = counted.most_common()
        _table(
            heading, [(count, f"{each}  {words.get(each, '(forgotten)')}") for each, count in rows]
        )
    asked = [(count, " ".join(keywords)) for keywords, count in total.nothing.most_common()]
    _table("Found nothing", asked)
    if never:
        _heading("Never came up", len(never))
        print_lines(islice(never, _MOST))


def _table(title: str, rows: Sequence[tuple[int, str]]) -> None:
    if rows:
        _heading(title, len(rows))
    for count, text in rows[:_MOST]:
        out(f"{count:>5,}  {one_line(text, max(width() - 7, 20))}")


def _heading(title: str, count: int) -> None:
    of_all = " " + dim(f"(the first {_MOST} of {count:,})") if count > _MOST else ""
    out(f"\n{bold(title)}{of_all}")


def _as_json(total: Summary, memories: Sequence[Memory], never: Sequence[Memory]) -> dict[str, Any]:
    kept = {memory.id for memory in memories}
    return {
        "since": total.since or None,
        "asked": dict(total.tools),
        "clients": dict(total.clients),
        "recalled": [
            {"id": each, **total.uses_of(each), "forgotten": each not in kept}
            for each, _ in total.recalled.most_common()
        ],
        "shown": dict(total.shown),
        "never": [{"id": each.id, "timestamp": each.timestamp} for each in never],
        "nothing": [
            {"keywords": list(keywords), "times": count}
            for keywords, count in total.nothing.most_common()
        ],
    }
