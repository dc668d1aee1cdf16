"""`list`, `show`, `search`: memories, as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened, reading
from aiaml_server.cli.filtering import Part, filtered, paged
from aiaml_server.cli.rows import NARROW, Layout, csv_of, filled, print_lines
from aiaml_server.errors import AiamlError, InvalidInput
from aiaml_server.format.filters import Filter
from aiaml_server.format.invisible import marked_line
from aiaml_server.format.memory import SHORTEST_ID, Memory
from aiaml_server.format.scorer import Hit, Points, clean, explained
from aiaml_server.moments import minute, present
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    USAGE,
    Ended,
    as_json,
    bold,
    broken,
    dim,
    is_terminal,
    note,
    one_line,
    out,
    out_bytes,
    out_json,
    plural,
    progress,
    styled,
    width,
    wrapped,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank
    from aiaml_server.cli.directories import Directory


@click.command("list")
@click.argument("said", nargs=-1, metavar="[FIELD:VALUE]...")
@filtered
@click.option("--new", is_flag=True, help="Only what you have not marked as `aiaml seen`.")
@paged
@click.option("--csv", is_flag=True, help="Print CSV, for a spreadsheet.")
@click.option(
    "--format",
    "template",
    metavar="TEXT",
    help="Print TEXT of each, with {id}, {title} and others in it filled in.",
)
@as_json
def list_(
    said: Sequence[str],
    limit: int,
    page: int,
    everything: bool,
    csv: bool,
    template: str | None,
    json: bool,
    new: bool,
    **options: Any,
) -> None:
    """List memories, newest first.

    What the options say can also be written as in a search: agent:claude topic:food since:7d.
    A pipe gets a line for each memory, with tabs between its fields and the whole text.

    \b
    Examples:
      aiaml list
      aiaml list --agent claude --topic food --since 7d
      aiaml list agent:claude topic:food since:7d
      aiaml list --all | grep allergic
      aiaml list --all --json
      aiaml list --all --csv > memories.csv
      aiaml list --format "{id} {user}: {title}"
    """
    wanted, words = Filter.of(**options).and_said(said)
    if words:
        raise InvalidInput(words[0], "is no field; `aiaml search` looks for words")
    _check_one_form(json, csv, template is not None)
    part = Part(limit, page, everything)
    unseen: set[str] = set()
    with opened() as bank:
        names = [name for _, name in bank.dated(wanted)]
        if new:
            there = bool(names)
            names = [
                name
                for name, memory in bank.read(progress(names, "Reading"))
                if bank.inbox.is_new(memory)
            ]
            if there and not names:
                raise Ended("none of these is new to you")
        total = len(names)
        shown: Iterable[tuple[str, Memory]] = bank.read(names[part.first : part.last])
        if telling := _tells_new(bank):
            shown = _noting_new(bank, shown, unseen)
        if json:
            found = [_listed(*each, unseen if telling else None) for each in shown]
            out_json(found)
            count = len(found)
        else:
            count = _printed(shown, template, csv=csv)
        if not count:
            raise Ended(nothing(bank, wanted, beyond=total > 0))
    if told := part.told(count, total):
        note(dim(told))
    if unseen and not new:
        note(dim(f"New to you: {len(unseen):,} of these; `aiaml list --new` shows what is."))


def _check_one_form(*forms: bool) -> None:
    if sum(forms) > 1:
        raise Ended("--json, --csv and --format exclude each other", USAGE)


def _printed(shown: Iterable[tuple[str, Memory]], template: str | None, *, csv: bool) -> int:
    """Print memories as CSV, through a template, or in rows; return how many there were."""
    if not csv and template is None:
        return print_lines(memory for _, memory in shown)
    found = list(shown)
    if template is not None:
        for name, memory in found:
            out(filled(template, memory, name))
    else:
        for line in csv_of(found):
            out(line)
    return len(found)


def _tells_new(bank: MemoryBank) -> bool:
    """Say whether the person is to be told what is new; why they cannot be, is told."""
    if not bank.inbox.kept:
        return False
    if problem := bank.inbox.problem:
        note(f"What is new to you cannot be told: {problem}")
    return not problem


def _noting_new(
    bank: MemoryBank, shown: Iterable[tuple[str, Memory]], unseen: set[str]
) -> Iterator[tuple[str, Memory]]:
    """Pass memories through, and note the files of those that the person has not seen."""
    for name, memory in shown:
        if bank.inbox.is_new(memory):
            unseen.add(name)
        yield name, memory


def _listed(name: str, memory: Memory, unseen: AbstractSet[str] | None) -> dict[str, Any]:
    said = fields(memory, name)
    return said if unseen is None else {**said, "new": name in unseen}


def fields(memory: Memory, name: str) -> dict[str, Any]:
    """Return a memory as `recall` has it, the file that it stands in, and until when it holds."""
    return {
        **memory.fields(),
        "file": name,
        **({"until": memory.until, "expired": memory.expired(present())} if memory.until else {}),
    }


def nothing(bank: MemoryBank, wanted: Filter, *, beyond: bool = False) -> str:
    """Say why there is nothing to show; `beyond`: because there is no such page."""
    if beyond:
        return "there is no such page"
    if wanted:
        return "no memory is like that"
    if bank.names():
        return "no file there can be read as a memory; `aiaml doctor` says why"
    return "there are no memories yet: an agent stores them, or you with `aiaml remember`"


# --- show -----------------------------------------------------------------------------------------


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--raw", is_flag=True, help="Print the file exactly as it stands.")
@as_json
def show(ids: Sequence[str], raw: bool, json: bool) -> None:
    """Show memories whole, their markdown rendered.

    The first four characters of an id do, where no other begins so. Every word of a memory is
    shown: links with their addresses, invisible characters as code points (U+202E), and as it
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
            out_bytes(bank.text(name).encode() for name, _ in found)
        else:
            for number, (name, memory) in enumerate(found):
                _render(name, memory, rule=number > 0)


def _elsewhere(memory_id: str) -> Directory | None:
    """Return the first of the person's other directories in which a memory has this id."""
    from aiaml_server.cli.dirs import known  # noqa: PLC0415 (reads the files of all clients)

    for directory in known()[1:]:
        with reading(directory.path) as bank, suppress(AiamlError):
            if bank.find(memory_id):
                return directory
    return None


def found_by(bank: MemoryBank, memory_id: str) -> list[tuple[str, Memory]]:
    """Return every memory that a person's (shortened) id names, with its file's name.

    Raises:
        Ended: there is none; where one is in another directory, the sentence says so.
    """
    if found := bank.find(memory_id):
        return found
    raise Ended(told_elsewhere(memory_id) or _unknown(memory_id))


def told_elsewhere(memory_id: str) -> str:
    """Say in which other directory a memory is, and what to type; empty where it is in none."""
    if not (place := _elsewhere(memory_id)):
        return ""
    program, _, verb = click.get_current_context().command_path.partition(" ")
    command = f"{program} --dir {quote(place.name)} {verb} {memory_id}"
    return f"memory {memory_id} is in {place.name}: `{command}`"


def _unknown(memory_id: str) -> str:
    short = f"; an id is shortened to {SHORTEST_ID} characters at least"
    return f"no memory has the id {memory_id}{short if len(memory_id) < SHORTEST_ID else ''}"


def _render(name: str, memory: Memory, *, rule: bool) -> None:
    from aiaml_server.rendering.terminal import rendered  # noqa: PLC0415 (for this alone)

    content, memory = memory.content, visible(memory)
    if rule:
        out(dim("─" * width()))
    time = minute(memory.timestamp)
    out(wrapped(f"{bold(memory.id)}  {time}  {memory.agent}, about {memory.user}"))
    file = marked_line(f"files/{name}")
    out(dim(wrapped(f"{', '.join(memory.topics)}  ·  {file}")))
    if memory.until:
        out(dim(wrapped(marked_line(_end(memory)))))
    out()
    out(rendered(content))


def _end(memory: Memory) -> str:
    """Say until when a memory holds."""
    if memory.ends is None:
        return f"until {memory.until!r}, which is no time: it holds without end"
    over = "expired: it was to hold " if memory.expired(present()) else ""
    return f"{over}until {memory.until}"


# --- search ---------------------------------------------------------------------------------------


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@filtered
@paged
@click.option("--lines", "-l", metavar="N", default=2, type=click.IntRange(0),
              help="Matching lines to show of each memory; 2 if not said.")  # fmt: skip
@click.option("--explain", "-e", is_flag=True, help="Say of what each score is the sum.")
@as_json
def search(
    words: Sequence[str],
    limit: int,
    page: int,
    everything: bool,
    lines: int,
    explain: bool,
    json: bool,
    **options: Any,
) -> None:
    """Find memories as agents do: in the order of `think`, the best first.

    Each word is looked for as it is written, in any case, also inside words; quotes make several
    words one. A word such as agent:claude, user:ann, topic:food, since:7d or until:2026-01-01 says
    which memories are meant, as the options do.

    \b
    Examples:
      aiaml search dinner restaurant vegetarian
      aiaml search "san francisco" agent:claude since:30d
      aiaml search dinner --explain
    """
    wanted, rest = Filter.of(**options).and_said(words)
    keywords = clean(rest)
    if not keywords:
        hint = "; `aiaml list` lists without one" if wanted else ""
        raise InvalidInput("WORD", f"must be a word to look for{hint}")
    part = Part(limit, page, everything)
    with opened() as bank:
        found = bank.search(keywords, wanted, part.first, part.last)
        total = found.total
        hits = [(hit, memory) for hit in found.hits for _, memory in bank.read([hit.file_name])]
    if json:
        out_json([_hit_fields(hit, memory, explain=explain) for hit, memory in hits])
    else:
        _print_hits(hits, lines, explain=explain)
    if not hits:
        like = "memory that is like that" if wanted else "memory"
        raise Ended("there is no such page" if total else f"no {like} holds any of these words")
    if told := part.told(len(hits), total):
        note(dim(told))


def _hit_fields(hit: Hit, memory: Memory, *, explain: bool) -> dict[str, Any]:
    said = {
        **fields(memory, hit.file_name),
        "relevance_score": hit.relevance_score,
        "matching_keywords": list(hit.matching_keywords),
    }
    if explain:
        said["explanation"] = [each._asdict() for each in explained(memory, hit.matching_keywords)]
    return said


def _print_hits(hits: Sequence[tuple[Hit, Memory]], lines: int, *, explain: bool) -> None:
    layout = Layout.of([memory for _, memory in hits])
    indent = " " * (10 if width() >= NARROW else 2)
    for hit, memory in hits:
        why = _why(explained(memory, hit.matching_keywords)) if explain else []
        if not is_terminal():
            out("\t".join([*layout.lines(memory, score=str(hit.relevance_score)), *why]))
            continue
        mark = marker(hit.matching_keywords)
        score = f"{hit.relevance_score:>4}  "
        text = visible(memory).content.splitlines() if lines else []
        matching = [line for line in text if mark(line) != line][:lines]
        for line in layout.lines(memory, mark, score, titled=not matching):
            out(line)
        for line in matching:
            around = _around(line, hit.matching_keywords, width() - len(indent))
            out(f"{indent}{mark(around)}")
        for line in why:
            for each in broken(f"{indent}{line}", width(), 2):
                out(dim(each))


def _why(parts: Sequence[Points]) -> list[str]:
    """Say for each keyword of what its points are the sum."""
    said: dict[str, list[Points]] = {}
    for part in parts:
        said.setdefault(part.keyword, []).append(part)
    return [
        f"{marked_line(keyword)} {sum(each.points for each in its)}: {', '.join(map(_sum, its))}"
        for keyword, its in said.items()
    ]


def _sum(part: Points) -> str:
    times = f"2 x {part.times}" if part.field == "topics" else f"{part.times}"
    whole = f" + {plural(part.whole_words, 'whole word')}" if part.whole_words else ""
    return f"{part.field} {times}{whole}"


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
