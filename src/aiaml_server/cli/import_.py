"""`aiaml import`: memories and notes from other programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiaml_server.cli.context import opened, quoted
from aiaml_server.cli.forget import forget_found
from aiaml_server.exchange import RUN, Item, Plan, make_plan, mark, read_source, with_marks
from aiaml_server.format.memory import (
    Memory,
    checked_user,
    format,  # noqa: A004 (the word for it)
    usual_user,
)
from aiaml_server.rendering import title
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    confirm,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    truncate,
    yes_option,
)
from aiaml_server.timestamps import now

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_SHOWN = 20  # lines of each sort in a preview
_WHY = {
    "changed": "changed at the source; --update replaces the memory",
    "edited": "changed at the source and edited here; it stays as it is",
}
_BATCH = 256  # memories that are made durable in one step


@click.command("import")
@click.argument(
    "sources",
    metavar="SOURCE...",
    nargs=-1,
    type=click.Path(exists=True, resolve_path=True, path_type=Path),
)
@click.option("--user", "-u", metavar="NAME", help="The person whom the notes are about.")
@click.option(
    "--update",
    is_flag=True,
    help="Replace memories whose source changed and that you did not edit.",
)
@click.option("--undo", metavar="RUN", help="Forget what this run of import added.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@yes_option
@json_option
def import_(
    sources: Sequence[Path],
    user: str | None,
    update: bool,
    undo: str | None,
    dry_run: bool,
    yes: bool,
    json: bool,
) -> None:
    """Import memories and notes from other programs.

    SOURCE is a folder of markdown (Obsidian, Logseq, Basic Memory, Serena, Claude's files), one
    markdown file, JSON lines that `aiaml export` wrote, or the file of the official MCP memory
    server. It is only read. What was imported once is not imported again.

    \b
    Examples:
      aiaml import ~/vault --dry-run
      aiaml import ~/vault
      aiaml import ~/vault --update
      aiaml import memories.jsonl --yes
      aiaml import ~/.claude --user marco
      aiaml import --undo 20261127T211005
    """
    if bool(sources) == bool(undo):
        raise Exit("name a SOURCE, or use --undo RUN", EXIT_USAGE)
    with opened() as bank:
        if undo:
            found = {name: memory for name, memory in bank.scan() if mark(memory, RUN) == undo}
            if not found:
                raise Exit(f"no memory was added by the run {undo}")
            forget_found(bank, found, yes=yes)
            return
        plan = _plan(bank, sources, user)
        places = _places(plan)
        if not json:
            _preview(places, len(plan.unchanged))
        run = ""
        if (plan.new or (update and plan.changed)) and not dry_run:
            if not yes:
                confirm("Import them?")
            run = f"{now():%Y%m%dT%H%M%S%f}"
            changed = plan.changed if update else []
            _store(bank, plan.new, changed, run, json=json)
    if json:
        echo_json({"run": run, "unchanged": len(plan.unchanged), **places})


def _plan(bank: MemoryBank, sources: Sequence[Path], user: str | None) -> Plan:
    """Return what an import of the sources would do.

    Raises:
        Exit: a source is in the memory directory.
        MalformedFile, OSError: a source cannot be read.
    """
    own = bank.base.resolve()
    if any(own in (source, *source.parents) for source in sources):
        raise Exit("the source is in your own memory directory", EXIT_USAGE)
    existing = [memory for _, memory in bank.scan()]
    about = checked_user(user) if user else usual_user(existing)
    found = [read_source(source, about, own) for source in sources]
    return make_plan(chain.from_iterable(found), existing)


def _store(
    bank: MemoryBank,
    new: Sequence[Item],
    changed: Sequence[tuple[Memory, Item]],
    run: str,
    *,
    json: bool,
) -> None:
    """Store new memories in batches, and replace changed ones.

    A replaced memory keeps its id, its time and its run. What was done is printed in any case, also
    after an error or Ctrl-C.
    """
    say = notify if json else echo
    stored: list[Memory] = []
    restorable: list[str] = []
    replaced = 0
    try:
        memories = [with_marks(item, run) for item in new]
        for at in range(0, len(memories), _BATCH):
            bank.add_all(memories[at : at + _BATCH], stored.append)
        for before, item in changed:
            memory = with_marks(item, mark(before, RUN))
            memory = memory._replace(id=before.id, timestamp=before.timestamp)
            name, _ = bank.find(before.id)[0]
            if bank.edit(name, bank.text(name), format(memory)):
                restorable.append(before.id)
            replaced += 1
    except KeyboardInterrupt:
        notify("Interrupted. Run the same command again to import the rest.")
        raise
    finally:
        say(f"Imported {plural(len(stored) + replaced, 'memory')}.")
        if stored:
            say(f"Undo: aiaml import --undo {run}")
        if restorable:
            say(f"Undo: aiaml restore {quoted(restorable)}")


def _places(plan: Plan) -> dict[str, list[dict[str, object]]]:
    """Return the rows of the plan, as `--json` prints them."""
    new = [
        {"place": item.place, "remark": item.remark, **item.memory.fields()} for item in plan.new
    ]
    return {
        "new": new,
        "changed": [{"place": item.place} for _, item in plan.changed],
        "edited": [{"place": item.place} for item in plan.edited],
        "skipped": [skipped._asdict() for skipped in plan.skipped],
    }


def _preview(places: dict[str, list[dict[str, object]]], unchanged: int) -> None:
    """Print the rows of the plan, and how many there are of each sort."""
    for sort, rows in places.items():
        for row in rows[:_SHOWN]:
            why = row.get("reason") or row.get("remark") or _WHY.get(sort)
            line = f"{row['place']}: {why or title(str(row['content']))}"
            echo(f"{sort:8} {truncate(line, 200)}")
        if len(rows) > _SHOWN:
            echo(f"{sort:8} … and {len(rows) - _SHOWN:,} more; --json has all")
    counts = [f"{len(rows):,} {sort}" for sort, rows in places.items()]
    echo(f"{', '.join(counts)}, {unchanged:,} unchanged.")
