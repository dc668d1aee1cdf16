"""`list`, `show`, `search`: memories, as a person reads them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import click

from aiaml_server.bank import SHORTEST_ID, MemoryBank
from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.filters import Filter
from aiaml_server.invisible import marked_line
from aiaml_server.memory import Memory
from aiaml_server.moments import minute
from aiaml_server.rendering import visible
from aiaml_server.scorer import Hit, clean
from aiaml_server.terminal import (
    Ended,
    as_json,
    bold,
    columns,
    dim,
    note,
    one_line,
    out,
    out_bytes,
    out_json,
    styled,
    width,
)


@click.command("list")
@click.argument("said", nargs=-1, metavar="[FIELD:VALUE]...")
@filtered
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
def list_(
    said: Sequence[str], limit: int, page: int, everything: bool, json: bool, **options: Any
) -> None:
    """List memories, newest first.

    What the options say can also be written as in a search: agent:claude topic:food since:7d.

    \b
    Examples:
      aiaml list
      aiaml list --agent claude --topic food --since 7d
      aiaml list agent:claude topic:food since:7d
      aiaml list --all --json
    """
    wanted, words = Filter.of(**options).and_said(said)
    if words:
        raise InvalidInput(words[0], "is no field; `aiaml search` looks for words")
    first = 0 if everything else min((page - 1) * limit, sys.maxsize)
    last = None if everything else min(first + limit, sys.maxsize)
    with opened() as bank:
        found = wanted.among(bank.newest())
        shown = islice(found, first, last)
        if json:
            out_json([fields(memory, name) for name, memory in shown])
            return
        count = print_lines(memory for _, memory in shown)
        more = next(found, None)
    if more:
        note(dim(f"There are more: `--page {page + 1}` shows the next, `--all` all of them."))
    if not count:
        note(nothing(wanted, page))


def print_lines(memories: Iterable[Memory]) -> int:
    """Print one line for each memory; return how many there were."""
    count = 0
    for count, memory in enumerate(map(visible, memories), 1):  # noqa: B007
        topics = one_line(f"[{', '.join(memory.topics)}]", max(width() - 48, 8)) + " "
        text = one_line(memory.content, max(width() - 28 - columns(topics), 20))
        made = dim(f"{minute(memory.timestamp):16.16}")
        out(f"{bold(f'{memory.id:8}')}  {made}  {dim(topics)}{text}")
    return count


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


def nothing(wanted: Filter, page: int = 1) -> str:
    """Say why there is nothing to show."""
    if page > 1:
        return "There is no such page."
    if wanted:
        return "No memory is like that."
    return "There are no memories yet: an agent stores them, or you with `aiaml remember`."


# --- show -----------------------------------------------------------------------------------------


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--raw", is_flag=True, help="Print the file exactly as it stands.")
@as_json
def show(ids: Sequence[str], raw: bool, json: bool) -> None:
    """Show memories whole, their markdown rendered.

    The first four characters of an id do, where no other begins so. Every word of a memory is
    shown: links with their addresses, invisible characters as code points (‹U+202E›), and as it
    stands what would be hidden by rendering or is longer than 64 KiB.

    \b
    Examples:
      aiaml show 1b2c3d4e 4e5f
      aiaml show 1b2c --raw > memory.md
    """
    with opened() as bank:
        found = [each for memory_id in ids for each in found_by(bank, memory_id)]
        if json:
            out_json([fields(memory, name) for name, memory in found])
        elif raw:
            out_bytes(bank.store.text(name).encode() for name, _ in found)
        else:
            for number, (name, memory) in enumerate(found):
                _render(name, memory, rule=number > 0)


def found_by(bank: MemoryBank, memory_id: str) -> list[tuple[str, Memory]]:
    """Return every memory that a person's (shortened) id names, with its file's name.

    Raises:
        Ended: there is none.
    """
    if found := bank.find(memory_id.lower()) or bank.find(memory_id):
        return found
    short = f"; an id is shortened to {SHORTEST_ID} characters at least"
    raise Ended(f"no memory has the id {memory_id}{short if len(memory_id) < SHORTEST_ID else ''}")


def _render(name: str, memory: Memory, *, rule: bool) -> None:
    from aiaml_server.rendering.terminal import rendered  # noqa: PLC0415 (the parser: a twentieth of a second)

    content, memory = memory.content, visible(memory)
    if rule:
        out(dim("─" * width()))
    time = minute(memory.timestamp)
    out(f"{bold(memory.id)}  {time}  {memory.agent}, about {memory.user}")
    out(dim(f"{', '.join(memory.topics)}  ·  files/{marked_line(name)}"))
    out()
    out(rendered(content))


# --- search ---------------------------------------------------------------------------------------


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--lines", "-l", metavar="N", default=2, type=click.IntRange(0),
              help="Matching lines to show of each memory; 2 if not said.")  # fmt: skip
@as_json
def search(words: Sequence[str], lines: int, json: bool) -> None:
    """Find memories as agents do: with the answer of `think`.

    That is at most 25, the best first. Each word is looked for as it is written, in any case, also
    inside words; quotes make several words one.

    \b
    Examples:
      aiaml search dinner restaurant vegetarian
      aiaml search "san francisco"
    """
    keywords = clean(words)
    if not keywords:
        raise InvalidInput("WORD", "must be a word to look for")
    with opened() as bank:
        hits = [(hit, memory) for hit in bank.think(keywords) if (memory := _of(bank, hit))]
    if json:
        out_json(
            [
                {
                    **fields(memory, hit.file_name),
                    "relevance_score": hit.relevance_score,
                    "matching_keywords": list(hit.matching_keywords),
                }
                for hit, memory in hits
            ]
        )
    else:
        for hit, memory in hits:
            _print_hit(hit, memory, lines)
    if not hits:
        raise Ended("no memory holds any of these words")


def _of(bank: MemoryBank, hit: Hit) -> Memory | None:
    with suppress(FileNotFoundError, MalformedFile):
        return bank.store.read(hit.file_name)
    return None


def _print_hit(hit: Hit, memory: Memory, lines: int) -> None:
    memory = visible(memory)
    mark = marker(hit.matching_keywords)
    score = dim(f"{hit.relevance_score:>4}")
    people = mark(f"{memory.agent}, about {memory.user}")
    topics = mark(f"[{', '.join(memory.topics)}]")
    out(f"{bold(hit.id)}  {dim(minute(hit.timestamp)[:16])} {score}  {topics} {people}")
    matching = [line for line in memory.content.splitlines() if mark(line) != line]
    for line in matching[:lines]:
        out(f"          {mark(_around(line, hit.matching_keywords, width() - 10))}")


def marker(keywords: Iterable[str]) -> Callable[[str], str]:
    """Return what makes the keywords in a text stand out."""
    longest = sorted(keywords, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest)), re.IGNORECASE)
    return lambda text: pattern.sub(lambda found: styled(found[0], "yellow"), text)


def _around(line: str, keywords: Iterable[str], most: int) -> str:
    """Return the part of a line in which a keyword first occurs."""
    line = " ".join(line.split())
    if len(line) <= most:
        return line
    lower = line.lower()
    first = min((at for word in keywords if (at := lower.find(word)) >= 0), default=0)
    start = max(0, min(first - most // 3, len(line) - most + 1))
    return ("…" if start else "") + one_line(line[start:], most - bool(start))
