"""The command forget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import found_by, opened, quoted, settings, why_nothing
from aiaml_server.cli.filtering import MemoryId, filtered
from aiaml_server.cli.show import memory_lines
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.sync import sync_once
from aiaml_server.sync.purge import plan_forgetting
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    confirm,
    dim,
    echo,
    notify,
    plural,
    wrap,
    yes_option,
)
from aiaml_server.timestamps import format_timestamp, now_micros

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_PREVIEWED = 25  # memories that are shown
_NAMED = 8  # ids in the command that restores them
_LOCK_SECONDS = 60.0
_NO_HISTORY = "sync is off, so there is no history. Set AIAML_ENABLE_SYNC to true for this command"
_BEYOND = (
    "This does not reach backups, exports and clones, and a host may keep old objects for a while. "
    "Change every secret that was sent."
)


@click.command("forget")
@click.argument("words", nargs=-1, metavar="[ID|FIELD:VALUE]...", type=MemoryId())
@filtered
@click.option("--everywhere", is_flag=True, help="Remove all versions, on all computers, for good.")
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@yes_option
def forget(
    words: Sequence[str], everywhere: bool, dry_run: bool, yes: bool, **options: Any
) -> None:
    """Delete memories by ID or filter.

    No agent finds them any more, on any of your computers. The git history keeps them, and `aiaml
    restore` brings them back. With --everywhere they leave the history as well, also at the remote
    and on your other computers. That cannot be undone.

    \b
    Examples:
      aiaml forget 1b2c3d4e 4e5f6a7b
      aiaml forget 1b2c --yes
      aiaml forget --topic work --before 90d --dry-run
      aiaml forget --everywhere 1b2c
    """
    wanted, ids = Filter.of(**options).with_fields(words)
    if bool(wanted) == bool(ids) or (everywhere and wanted):
        raise Exit("name IDs, or use a filter such as topic:food (not with --everywhere)", EXIT_USAGE)  # fmt: skip  # noqa: E501
    if everywhere:
        _forget_everywhere(ids, yes=yes, dry_run=dry_run)
        return
    with opened() as bank:
        found = dict(found_by(bank, ids) if ids else bank.newest(wanted))
        if not found:
            notify(why_nothing(bank, wanted))
        elif dry_run:
            _preview(found.values())
            echo(f"{plural(len(found), 'memory')} would be forgotten. Nothing was changed.")
        else:
            forget_found(bank, found, yes=yes)


def forget_found(bank: MemoryBank, found: Mapping[str, Memory], *, yes: bool) -> None:
    """Forget memories after asking, and print the command that restores them.

    The question says first how many cannot be restored.

    Args:
        bank: the memories.
        found: those to forget, by the names of their files.
        yes: do not show them, and do not ask.
    """
    number = plural(len(found), "memory")
    if not yes:
        _preview(found.values())
    held_back = bank.commit()
    if lost := found if held_back is None else found.keys() & held_back:
        echo(f"There is no undo for {plural(len(lost), 'memory')}: git does not have the text.")
    if not yes:
        confirm(f"Forget {number}?")
    began = format_timestamp(now_micros(), "seconds")
    kept = bank.forget({name: bank.text(name) for name in found}) or ()
    ids = [memory.id for name, memory in found.items() if name in kept]
    echo(f"Forgot {number}.")
    if ids:
        words = quoted(ids) if len(ids) <= _NAMED else f"--since {began}"
        echo(f"Undo: aiaml restore {words}")


def _preview(memories: Collection[Memory]) -> None:
    """List the memories that would be forgotten."""
    for memory in islice(memories, _PREVIEWED):
        for line in memory_lines(memory):
            echo(line)
    if len(memories) > _PREVIEWED:
        echo(dim(f"… and {len(memories) - _PREVIEWED:,} more."))


def _forget_everywhere(ids: Sequence[str], *, yes: bool, dry_run: bool) -> None:
    """Forget memories in the history too.

    Raises:
        Exit: sync is off, no such memory was ever committed, or the remote still has it.
        AiamlError: nothing was done, because git cannot.
    """
    setting = settings()
    if not setting.sync:
        raise Exit(_NO_HISTORY, EXIT_USAGE)
    with opened() as bank:
        bank.commit()
        found = [row for memory_id in ids for row in bank.find(memory_id)]
        whole_ids = {*ids, *(memory.id for _, memory in found)}
        plan = plan_forgetting(setting.base, [name for name, _ in found], whole_ids)
        if not plan.versions:
            raise Exit(f"no memory {', '.join(ids)} is in the history")
        takes = f"{plural(plan.versions, 'version')} in {plural(len(plan.paths), 'file')}"
        echo(wrap(f"{takes} will be removed from the history on all computers. {_BEYOND}"))
        if dry_run:
            return
        if not yes:
            confirm("Forget this everywhere, for good?")
        status, _ = sync_once(setting, forget=plan.sums, lock_seconds=_LOCK_SECONDS)
        bank.erase([path.removeprefix("files/") for path in plan.paths])
    if status.problem:
        raise Exit(f"the remote still has them: {status.problem.sentence}")
    echo(f"Forgot {takes} everywhere. This cannot be undone.")
