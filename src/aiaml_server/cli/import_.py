"""`import`: memories and notes from other systems."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.show import fields
from aiaml_server.exchange.found import Skip
from aiaml_server.exchange.kinds import KINDS, READERS, Reading, detect, others
from aiaml_server.exchange.records import Fields, fields_of
from aiaml_server.format.memory import Memory, checked_user, usual_user
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    confirm,
    counted,
    dim,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    progress,
    truncate,
    wrap,
    yes_option,
)
from aiaml_server.timestamps import format_minute

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank
    from aiaml_server.exchange.plan import Addition, Plan

_SHOWN = 20  # lines of each sort in a preview
_COMPARED = 200  # new memories that are looked for among those that are there: a second or two
_NEAREST = 3  # memories that each is compared with
_ASKED = 24  # of its words that are looked for
_READ = 4_000  # characters of a text whose words are compared
_FEW = 4  # words, below which texts are alike by chance
_ALIKE = 0.8  # of all words of two texts, in both
_TOGETHER = 256  # memories, durable in one step
_TOGETHER_SIZE = 16 * 1024 * 1024  # characters of them


@click.command(
    "import",
    epilog="\b\nKinds:\n" + "\n".join(f"  {kind:13} {what}" for kind, what in KINDS.items()),
)
@click.argument(
    "sources",
    metavar="SOURCE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
)
@click.option(
    "--from", "kind", metavar="KIND", type=click.Choice(list(KINDS)), help="What SOURCE is."
)
@click.option(
    "--split", type=click.Choice(["heading"]), help="Make a memory of each section of a note."
)
@click.option(
    "--map",
    "fields",
    metavar="NAME=FIELD,...",
    help="Which fields of JSON are content, title, topics, timestamp, agent, user.",
)
@click.option(
    "--user", "-u", metavar="NAME", help="Whom the notes are about; else as in most memories."
)
@click.option("--changed", is_flag=True, help="Also add notes that changed since an import.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@yes_option
@json_option
def import_(
    sources: Sequence[Path],
    kind: str | None,
    split: str | None,
    fields: str | None,
    user: str | None,
    changed: bool,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> int:
    """Bring in memories and notes from other systems.

    First says what becomes of each, then asks. The source is never changed, and what was imported
    once is not imported again. With --json nobody is asked: it takes --yes to add. Zips are
    read as well, and `-` is the standard input.

    \b
    Examples:
      aiaml import ~/vault
      aiaml import ~/.claude --user marco --dry-run
      aiaml import notes.md --split heading
      aiaml import memories.jsonl --yes
      aiaml import chatgpt-export.zip --dry-run
      aiaml import facts.jsonl --map content=text,topics=tags+area
    """
    from aiaml_server.exchange.archives import work_directory  # noqa: PLC0415 (not for `--help`)
    from aiaml_server.exchange.plan import Planner  # noqa: PLC0415 (nor this)

    given = Fields.parse(fields) if fields else None
    with opened() as bank, work_directory() as scratch:
        own = bank.base.resolve()
        for source in (each.resolve() for each in sources if each != Path("-")):
            if own.exists() and any(map(own.samefile, (source, *source.parents))):
                raise Exit(f"{source} lies in your own memory directory, {own}", EXIT_USAGE)
        shown = [
            "the standard input" if each == Path("-") else str(each.resolve()) for each in sources
        ]
        sources, left_out = _reachable(sources, Path(scratch))
        pairs = zip(sources, shown, strict=True)
        kinds = [kind or _kind(source, given, name) for source, name in pairs]
        reading = Reading(split=bool(split), without=own, fields=given, named=bool(kind))
        names = progress(bank.names(), "Reading your memories")
        known = [memory for _, memory in bank.read(names)]
        about = checked_user(user) if user else usual_user(known)
        planner = Planner(known, about, changed=changed)
        planner.consider(left_out)
        for source, its_kind in zip(sources, kinds, strict=True):
            planner.consider([] if kind else others(source, its_kind, own))
        for source, its_kind in zip(sources, kinds, strict=True):
            planner.consider(counted(READERS[its_kind](source, reading), f"Reading {source.name}"))
        plan = planner.plan
        if known:
            _remark_likely(bank, plan)
        if not json:
            _preview(shown, sources, kinds, plan, given)
        wanted = bool(plan.additions) and not dry_run and (yes or (not json and _agreed()))
        added = _add(bank, plan.additions) if wanted else []
    if json:
        echo_json(_as_json(plan, added, done=wanted))
    elif wanted:
        echo(f"Added {plural(len(added), 'memory')}.")
    return EXIT_OK if wanted or dry_run or (plan.there and not plan.additions) else EXIT_NOTHING


def _remark_likely(bank: MemoryBank, plan: Plan) -> None:
    """Say of the first additions which memory says nearly the same, as the ranking finds it."""
    from aiaml_server.format.bm25 import Question  # noqa: PLC0415 (not for `--help`)

    for number, each in enumerate(plan.additions[:_COMPARED]):
        words = _words(each.memory.content)
        if len(words) < _FEW:
            continue
        hits = bank.ask(Question.of(list(words)[:_ASKED]), part=slice(_NEAREST)).found.hits
        near = [one for found in bank.recall(hit.id for hit in hits).values() for one in found]
        for memory in near:
            theirs = _words(memory.content)
            if len(words.keys() & theirs.keys()) >= _ALIKE * len(words | theirs):
                remarks = [each.remark, f"perhaps there already: {visible(memory).id}"]
                remark = "; ".join(filter(None, remarks))
                plan.additions[number] = replace(each, remark=remark)
                break


def _words(text: str) -> dict[str, None]:
    """Return the different words of a text's beginning."""
    return dict.fromkeys(re.findall(r"\w\w+", text[:_READ].casefold()))


def _reachable(sources: Sequence[Path], scratch: Path) -> tuple[list[Path], list[Skip]]:
    """Return where sources can be read, having unpacked zips and kept what comes by a pipe."""
    from aiaml_server.exchange.archives import piped, unpacked  # noqa: PLC0415 (not for `--help`)

    found: list[Path] = []
    skips: list[Skip] = []
    for number, given in enumerate(sources):
        below = scratch / str(number)
        below.mkdir()
        try:
            source = piped(sys.stdin.buffer, below) if given == Path("-") else given.resolve()
            if source.suffix.lower() == ".zip" and source.is_file():
                source, left_out = unpacked(source, below)
                skips += left_out
        except ValueError as error:
            raise Exit(f"{given}: {error}", EXIT_FAILED) from error
        found.append(source)
    return found, skips


def _kind(source: Path, fields: Fields | None, shown: str) -> str:
    kind = detect(source)
    if fields and kind in (None, "jsonl", "mcp-memory", "mem0"):
        return "json"
    if kind is None:
        known = ", ".join(KINDS)
        raise Exit(f"{shown}: cannot tell what this is; `--from KIND` says it: {known}", EXIT_USAGE)
    return kind


def _agreed() -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        notify("Nothing was added: there is no terminal to ask on, and `--yes` says yes.")
        return False
    confirm("Add them?")
    return True


def _add(bank: MemoryBank, additions: Sequence[Addition]) -> list[Memory]:
    """Store all, some hundreds durable in one step; each is whole, whatever happens to the rest."""
    added: list[Memory] = []
    waiting: list[Memory] = []
    size = 0
    try:
        for each in progress(additions, "Adding", 1):
            waiting.append(each.memory)
            size += len(each.memory.content)
            if len(waiting) >= _TOGETHER or size >= _TOGETHER_SIZE:
                batch, waiting, size = waiting, [], 0
                bank.add_all(batch, added.append)
        if waiting:
            bank.add_all(waiting, added.append)
    except BaseException:
        said = (
            f"Stopped before the end: {len(added):,} of {plural(len(additions), 'memory')} were "
            "added, each whole. Run it again, and it brings the rest."
        )
        notify(wrap(said, err=True))
        raise
    return added


# --- what an import says ----------------------------------------------------------------------


def _preview(
    shown: Sequence[str],
    sources: Sequence[Path],
    kinds: Sequence[str],
    plan: Plan,
    given: Fields | None,
) -> None:
    for name, source, kind in zip(shown, sources, kinds, strict=True):
        echo(wrap(f"{name}: {KINDS[kind]}", 2))
        if kind == "json":
            echo(wrap(f"  {fields_of(source, given)}; other fields are kept as properties", 2))
    _some("New:", [_line(addition) for addition in plan.additions[:_SHOWN]], len(plan.additions))
    _some("Changed since they were imported (`--changed` adds them as new):", plan.changed)
    _some("Known under another name:", [f"{now}, before {then}" for now, then in plan.renamed])
    _some("Taken in part:", [f"{part.place}: {part.reason}" for part in plan.partly])
    _some("Skipped:", [f"{skip.place}: {skip.reason}" for skip in plan.skips])
    if plan.additions:
        agents = sorted({addition.memory.agent for addition in plan.additions})
        users = sorted({addition.memory.user for addition in plan.additions})
        echo(wrap(f"\nBy {_names(agents)}, about {_names(users)}."))
    partly = len({part.place for part in plan.partly})
    counts = (
        f"{'' if plan.additions else chr(10)}{plural(len(plan.additions), 'new memory')}, "
        f"{f'{partly:,} of them in part, ' if partly else ''}"
        f"{len(plan.there):,} already there, {len(plan.changed):,} changed, "
        f"{len(plan.skips):,} skipped."
    )
    echo(wrap(counts))


def _line(addition: Addition) -> str:
    memory = visible(addition.memory)
    remark = f" ({addition.remark})" if addition.remark else ""
    topics = ", ".join(memory.topics)
    return f"{format_minute(memory.timestamp)[:10]:10} {addition.place} [{topics}]{remark}"


def _some(title: str, lines: Sequence[str], number: int = 0) -> None:
    number = number or len(lines)
    if not lines:
        return
    echo(wrap(f"\n{title}"))
    for line in lines[:_SHOWN]:
        echo(wrap(f"  {truncate(line, 200)}", 2))
    if number > _SHOWN:
        echo(dim(f"  … and {number - _SHOWN:,} more; `--json` has all"))


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"


def _as_json(plan: Plan, added: Sequence[Memory], *, done: bool) -> dict[str, Any]:
    memories = added or [addition.memory for addition in plan.additions]
    pairs = zip(plan.additions, memories, strict=True)
    return {
        "done": done,
        "new": [
            {"place": each.place, "remark": each.remark} | fields(memory, memory.file_name)
            for each, memory in pairs
        ],
        "there": plan.there,
        "changed": plan.changed,
        "renamed": [{"place": now, "before": then} for now, then in plan.renamed],
        "partly": [{"place": part.place, "reason": part.reason} for part in plan.partly],
        "skipped": [{"place": skip.place, "reason": skip.reason} for skip in plan.skips],
    }
