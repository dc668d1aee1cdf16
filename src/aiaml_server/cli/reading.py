"""`list` …: what is stored."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import click

from aiaml_server.memory import Memory, instant

from . import filters
from .filters import Filter
from .terminal import as_json, bold, dim, note, one_line, opened, out, out_json, width

AT_LEAST_1 = click.IntRange(1)


@click.command("list")
@filters.options
@click.option(
    "--limit",
    "-n",
    metavar="N",
    default=25,
    type=click.IntRange(1),
    show_default=True,
    help="How many on a page.",
)
@click.option("--page", "-p", metavar="N", default=1, type=click.IntRange(1), help="Which page.")
@click.option("--all", "everything", is_flag=True, help="All of them, without pages.")
@as_json
def list_(limit: int, page: int, everything: bool, json: bool, **options: Any) -> None:
    """List memories, newest first.

    \b
    Examples:
      aiaml list
      aiaml list --agent claude --topic food --since 7d
      aiaml list --all --json
    """
    wanted = Filter.of(**options)
    first = 0 if everything else (page - 1) * limit
    with opened() as bank:
        found = wanted.among(bank.newest())
        shown = islice(found, first, None if everything else first + limit)
        if json:
            out_json([fields(memory, name) for name, memory in shown])
            return
        count = print_lines(memory for _, memory in shown)
        more = next(found, None)
    if more:
        note(dim(f"There are more: `--page {page + 1}` shows the next, `--all` all of them."))
    if not count:
        note(_nothing(wanted, page))


def print_lines(memories: Iterable[Memory]) -> int:
    """Print one line for each memory; return how many there were."""
    count = 0
    for count, memory in enumerate(memories, 1):  # noqa: B007
        head = f"{memory.id:8}  {when(memory.timestamp):16}  "
        topics = f"[{', '.join(memory.topics)}] "
        text = one_line(memory.content, max(width() - len(head) - len(topics), 20))
        out(f"{bold(f'{memory.id:8}')}  {dim(f'{when(memory.timestamp):16}')}  {dim(topics)}{text}")
    return count


def when(timestamp: str) -> str:
    """Return a memory's time to the minute, in local time."""
    from datetime import datetime, timezone  # noqa: PLC0415

    moment = instant(timestamp)
    if moment is None:
        return timestamp[:16]
    local = datetime.fromtimestamp(moment / 1e6, timezone.utc).astimezone()
    return f"{local:%Y-%m-%d %H:%M}"


def fields(memory: Memory, name: str) -> dict[str, Any]:
    """Return a memory as `recall` has it, and the file that it stands in."""
    return {
        "id": memory.id,
        "timestamp": memory.timestamp,
        "agent": memory.agent,
        "user": memory.user,
        "topics": list(memory.topics),
        "content": memory.content,
        "file": name,
    }


def _nothing(wanted: Filter, page: int) -> str:
    if page > 1:
        return "There is no such page."
    if wanted:
        return "No memory is like that."
    return "There are no memories yet: an agent stores them, or you with `aiaml remember`."
