"""`forget`: memories deleted, by their ids or by a filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened, quoted
from aiaml_server.cli.filtering import filtered
from aiaml_server.cli.rows import print_lines
from aiaml_server.cli.show import fields, found_by, nothing
from aiaml_server.errors import MalformedFile
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory, parse
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    confirm,
    dim,
    display_width,
    echo,
    echo_json,
    is_terminal,
    join_words,
    json_option,
    plural,
    terminal_width,
    wrap,
    wrap_line,
    yes_option,
)
from aiaml_server.timestamps import format_timestamp, now_micros

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_PREVIEWED = 25  # memories that are shown of what a filter means
_SHOWN_LINES = 10  # of the text of each that is named
_NAMED = 8  # ids, or files, in one sentence


@click.command("forget")
@click.argument("said", nargs=-1, metavar="[ID|FIELD:VALUE]...")
@filtered
@click.option(
    "--export", "target", metavar="FILE", help="First write them to FILE, which ends in .jsonl."
)
@click.option("--everywhere", is_flag=True, help="Out of the history too, on all machines.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@yes_option
@json_option
def forget(
    said: Sequence[str],
    target: str | None,
    everywhere: bool,
    dry_run: bool,
    yes: bool,
    json: bool,
    **options: Any,
) -> int | None:
    """Delete memories, after showing them and asking: by their ids, or all that a filter means.

    The files are gone at once, and no agent finds them any more, on any of your machines. The
    history, here and in your copy, still has them: `aiaml restore` brings them back.

    With --everywhere the history is rewritten without them, here, in the copy and, when they next
    hear of it, on your other machines; also those that were forgotten before. That cannot be
    undone. docs/sync.md ("Removing something for good") says how far it reaches.

    \b
    Examples:
      aiaml forget 1b2c3d4e 4e5f6a7b
      aiaml forget 1b2c --yes
      aiaml forget --topic work --until 90d --dry-run
      aiaml forget agent:claude since:2h --export gone.jsonl
      aiaml forget --everywhere 1b2c --dry-run
    """
    wanted, ids = Filter.of(**options).and_said(said)
    if everywhere and not (wanted or target):
        from aiaml_server.cli.everywhere import everywhere as forget_everywhere  # noqa: PLC0415

        return forget_everywhere(ids, yes=yes, dry_run=dry_run, json=json)
    if everywhere or bool(wanted) == bool(ids):
        other = (
            "and neither a filter nor --export" if everywhere else "or a filter such as topic:food"
        )
        raise Exit(f"it takes IDs, {other}; `aiaml forget --help` tells more", EXIT_USAGE)
    with opened() as bank:
        texts = _texts_of(bank, wanted, ids)
        found = {name: parse(text) for name, text in texts.items()}
        if not found:
            raise Exit(nothing(bank, wanted))
        if not json and (dry_run or not yes):
            _preview(list(found.values()), whole=bool(ids))
        if dry_run:
            if json:
                memories = [fields(memory, name) for name, memory in found.items()]
                echo_json({"forgotten": 0, "memories": memories})
            else:
                told = f"{plural(len(found), 'memory')} would be forgotten; nothing was changed."
                echo(wrap(told))
            return None
        if not yes:
            confirm(f"Forget {plural(len(found), 'memory')}?")
        if target:
            from aiaml_server.cli.export import write_memories  # noqa: PLC0415

            write_memories(Path(target).resolve(), list(found.values()), force=False)
        if len(texts) > _NAMED and bank.commit() is not None:  # deletions by hand come before it
            sleep(1 - now_micros() % 1_000_000 / 1e6)
        began = format_timestamp(now_micros(), "seconds")
        kept = bank.forget(texts)
        there = bank.recall(memory.id for memory in found.values())
    twins = {memory_id for memory_id, memories in there.items() if memories}
    undo = _undo_of({name: found[name] for name in found if name in (kept or ())}, twins, began)
    _answer(found, kept, target, undo, json=json)
    return None


def _texts_of(bank: MemoryBank, wanted: Filter, ids: Sequence[str]) -> dict[str, str]:
    """Return the files that are meant, with what stands in them at this moment."""
    if ids:
        names = [name for each in ids for name, _ in found_by(bank, each)]
        return {name: bank.text(name) for name in names}
    texts = {}
    for _, name in bank.dated(wanted):
        with suppress(FileNotFoundError, MalformedFile):  # changed in this very moment
            text = bank.text(name)
            if wanted.matches(parse(text)):
                texts[name] = text
    return texts


def _preview(found: Sequence[Memory], *, whole: bool) -> None:
    """Show what is meant: the first of many in a row each, or of each the text."""
    if not whole:
        print_lines(found[:_PREVIEWED])
        if len(found) > _PREVIEWED:
            echo(f"… and {len(found) - _PREVIEWED:,} more.")
        return
    for memory in found:
        print_lines([memory])
        lines = [line for line in visible(memory).content.splitlines() if line.strip()]
        if len(lines) > 1 or display_width(memory.content) > terminal_width() // 3:
            for line in lines[:_SHOWN_LINES]:
                for each in (
                    wrap_line(f"    {line}".rstrip(), terminal_width()) if is_terminal() else [line]
                ):
                    echo(each)
        if len(lines) > _SHOWN_LINES:
            echo(dim(f"    … and {plural(len(lines) - _SHOWN_LINES, 'more line')}"))


def _undo_of(kept: Mapping[str, Memory], twins: Collection[str], began: str) -> str:
    """Return the command that brings back what git has; empty where that is nothing.

    Args:
        kept: what it has, by the names of the files.
        twins: the ids that other files still have.
        began: a moment before they were forgotten.
    """
    ids = {name if memory.id in twins else memory.id: None for name, memory in kept.items()}
    if not ids:
        return ""
    return f"aiaml restore {quoted(ids) if len(kept) <= _NAMED else f'--since {began}'}"


def _answer(
    found: Mapping[str, Memory], kept: set[str] | None, target: str | None, undo: str, *, json: bool
) -> None:
    """Tell what was forgotten; `kept` is None where git took nothing."""
    missing = [name for name in found if name not in (kept or ())]
    if json:
        echo_json(
            {
                "forgotten": len(found),
                "memories": [fields(memory, name) for name, memory in found.items()],
                "not_in_history": missing,
                "exported": target,
                "undo": undo or None,
            }
        )
        return
    echo(f"Forgot {plural(len(found), 'memory')}.")
    if target:
        again = f"aiaml import {quoted([target])}"
        echo(wrap(f"{target} has what they were: `{again}` adds it again."))
    if undo:
        back = "it" if len(found) - len(missing) == 1 else "them"
        echo(wrap(f"`{undo}` brings {back} back."))
    gone = "" if target else ": gone for good"
    if missing and kept is not None:
        names = join_words(missing[:_NAMED]) + (" and others" if len(missing) > _NAMED else "")
        echo(wrap(f"The history does not have the last version of {names}{gone}."))
    elif missing and not target:
        echo(wrap("What the history does not have from before is gone for good."))
