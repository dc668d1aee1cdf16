"""`undo`: the last change of a person's, taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from aiaml_server.cli.context import opened, settings, text_in
from aiaml_server.errors import AiamlError, MalformedFile
from aiaml_server.format.memory import parse
from aiaml_server.moments import age
from aiaml_server.rendering import title
from aiaml_server.storage.operations import Operation, blob, drop, operations
from aiaml_server.storage.store import id_in
from aiaml_server.terminal import (
    NOTHING,
    REFUSED,
    Ended,
    as_rows,
    bold,
    confirm,
    dim,
    note,
    one_line,
    out,
    out_json,
    out_rows,
    plural,
    wrapped,
    yes,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_NAMED = 6  # ids on one line
_LONG = 60  # characters of what a memory is called


@click.command("undo")
@click.option("--list", "listed", is_flag=True, help="Only show what can be taken back.")
@yes
@as_rows
def undo(listed: bool, yes: bool, data: str) -> int | None:
    """Take back your last change; again, the one before.

    That is a remember, edit, forget, restore or import, or what you did on the page. A memory that
    something else has changed since then stays as it is. What comes back is from git's history;
    with sync off there is none.

    \b
    Examples:
      aiaml undo
      aiaml undo --list
    """
    base = settings().base
    done = operations(base)
    if listed:
        return _list(done, data)
    if data == "csv":
        raise click.UsageError("--csv goes with --list")
    if not done:
        raise Ended("there is nothing to undo")
    last = done[0]
    gone = sum(1 for before, _ in last.files.values() if not before)
    if gone and not settings().sync and not yes:
        confirm(f"Sync is off, so {plural(gone, 'memory')} would be gone for good. Undo?")
    with opened(record=False) as bank:
        problems = _undone(bank, last)
        drop(base, last)
    count = len(last.files) - len(problems)
    if data:
        out_json({**_fields(last), "undone": count, "problems": problems})
    else:
        if count:
            out(wrapped(f"Undid {last.verb} ({_told(last)})."))
        for name, why in problems.items():
            note(f"{name} is as it was: {why}")
        if len(done) > 1:
            note(dim(f"`aiaml undo` now takes back {done[1].verb} ({_told(done[1])})."))
    return None if count else REFUSED


def _list(done: Sequence[Operation], data: str) -> int | None:
    if data:
        out_rows([_fields(each) for each in done], data)
    if not done:
        note("There is nothing to undo.")
        return NOTHING
    for each, words in () if data else zip(done, _words(done), strict=True):
        told = _told(each) + (f": {words}" if words else "")
        out(wrapped(f"{age(each.at):>10}  {bold(f'{each.verb:8}')}  {told}", 22))
    return None


def _words(done: Sequence[Operation]) -> list[str]:
    """Return what each operation's memory is called; nothing where it had more than one."""
    alone = [[*each.files.items()] if len(each.files) == 1 else [] for each in done]
    with opened(record=False) as bank:
        texts = bank.history().blobs(oid for one in alone for _, pair in one for oid in pair)
        return [
            "".join(
                _called(texts.get(after or before) or text_in(bank, name) or "")
                for name, (before, after) in one
            )
            for one in alone
        ]


def _called(text: str) -> str:
    try:
        return one_line(title(parse(text).content), _LONG)
    except MalformedFile:
        return ""


def _fields(done: Operation) -> dict[str, object]:
    return {"time": done.at, "verb": done.verb, "files": list(done.files)}


def _told(done: Operation) -> str:
    """Return what an operation did, by the ids of the memories."""
    kinds: dict[str, list[str]] = {}
    for name, (before, after) in done.files.items():
        what = "changed" if before and after else "added" if after else "forgotten"
        kinds.setdefault(what, []).append(id_in(name))
    return "; ".join(
        f"{', '.join(ids)} {what}" if len(ids) <= _NAMED else f"{plural(len(ids), 'memory')} {what}"
        for what, ids in kinds.items()
    )


def _undone(bank: MemoryBank, done: Operation) -> Mapping[str, str]:
    """Give files what they held before; return of those where that cannot be the reason why."""
    known = bank.history()
    texts = known.blobs(each for pair in done.files.values() for each in pair)
    problems: dict[str, str] = {}
    gone: dict[str, str] = {}
    for name, (before, after) in done.files.items():
        present = text_in(bank, name)
        if blob(present) != after:
            problems[name] = f"it has changed since; `aiaml history {id_in(name)}` has what it was"
        elif before and before not in texts:
            problems[name] = "the history does not have what it held"
        elif not before and present is not None:
            gone[name] = present
        elif before:
            try:
                bank.restore(name, present, texts[before], [texts.get(after, "")])
            except AiamlError as error:
                problems[name] = str(error)
    if gone:
        bank.forget(gone)
    return problems
