"""The commands log and restore, which read the git history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import changed_lines, opened, quoted, text_in
from aiaml_server.cli.filtering import MemoryId, limited
from aiaml_server.format.filters import Filter
from aiaml_server.format.invisible import marked_line
from aiaml_server.format.memory import parse, parsed
from aiaml_server.rendering import title
from aiaml_server.storage.store import id_in
from aiaml_server.sync.history import History, Version
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    echo,
    echo_json,
    echo_paged,
    json_option,
    notify,
    plural,
    terminal_width,
    truncate,
    yes_option,
)
from aiaml_server.timestamps import format_minute, format_timestamp

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_HEAD_COLUMNS = 38  # of revision, time, action

# --- log ------------------------------------------------------------------------------------------


@click.command("log")
@click.argument("memory_id", metavar="[ID]", required=False, type=MemoryId())
@limited
@click.option("--since", metavar="TIME", help="Only since then: a date, or 90m, 12h, 7d, 2w ago.")
@json_option
def log(memory_id: str | None, limit: int, since: str | None, json: bool) -> None:
    """Show recent changes, or the versions of one memory.

    A line begins with the revision, for `aiaml restore ID --at REVISION`. With an ID the changes of
    the text are shown as well. Forgotten memories have versions too.

    \b
    Examples:
      aiaml log
      aiaml log --since 7d -n 100
      aiaml log 4e5f6a7b
    """
    start = _start(since)
    with opened() as bank:
        known = bank.history()
        versions = _versions(known, bank, memory_id) if memory_id else known.versions()
        recent = list(islice((version for version in versions if version.time >= start), limit))
    texts = _texts(known, recent)
    if json:
        echo_json([_fields(version, texts) for version in recent])
    else:
        echo_paged(_log_lines(recent, texts, with_changes=memory_id is not None))
    if not recent:
        notify("Nothing has changed since then." if since else "There is no history yet.")


def _log_lines(
    versions: Iterable[Version], texts: Mapping[str, str], *, with_changes: bool
) -> Iterator[str]:
    for version in versions:
        row = _fields(version, texts)
        words = title(row.get("content", version.name))
        line = f"{marked_line(row['id'])} by {truncate(version.author, 20)}: {words}"
        head = f"{bold(version.commit[:8])}  {format_minute(row['time'])}  {version.action:8}"
        yield f"{head}  {truncate(line, terminal_width() - _HEAD_COLUMNS)}"
        if with_changes:
            yield from changed_lines(texts.get(version.before), texts.get(version.after))


def _fields(version: Version, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a version as `--json` prints it: the change, and the memory as it was then."""
    memory = parsed(texts.get(version.after or version.before))
    return {
        "revision": version.commit,
        "time": format_timestamp(version.time * 1_000_000, "seconds"),
        "action": version.action,
        "author": version.author,
        **(memory.fields() if memory else {"id": id_in(version.name)}),
        "file": version.name,
    }


# --- restore --------------------------------------------------------------------------------------


@click.command("restore")
@click.argument("ids", metavar="[ID]...", nargs=-1, type=MemoryId())
@click.option("--at", metavar="REVISION", help="The version of this revision in `aiaml log ID`.")
@click.option("--since", metavar="TIME", help="All forgotten since then: a date, or 2h, 7d ago.")
@yes_option
def restore(ids: Sequence[str], at: str | None, since: str | None, yes: bool) -> None:
    """Restore earlier versions or forgotten memories.

    A forgotten memory gets its last version. An existing one gets the version before its last
    change, or that of --at. The present version stays in the history.

    \b
    Examples:
      aiaml restore 4e5f6a7b
      aiaml restore 4e5f6a7b --at 9c760da6
      aiaml restore --since 2h
    """
    if bool(ids) == (since is not None) or (at and len(ids) != 1):
        raise Exit("name IDs, or use --since TIME; --at takes one ID", EXIT_USAGE)
    with opened() as bank:
        known = bank.history()
        gone = bank.forgotten(known, _start(since)) if since else []
        texts = {version.name: text for version, text in gone}
        for memory_id in ids:
            texts |= _earlier(known, bank, memory_id, at)
        if not texts:
            no_version = "there is no earlier version, or no such revision; `aiaml log` lists them"
            raise Exit("nothing was forgotten since then" if since else no_version)
        replaced = {name for name in texts if bank.stamp(name)}
        for name, text in texts.items():
            echo(f"Memory {bold(marked_line(parse(text).id))}:")
            echo("\n".join(changed_lines(text_in(bank, name), text)))
        if replaced and not yes:
            confirm(f"Replace {plural(len(replaced), 'memory')}?")
        for name, text in texts.items():
            history = _texts(known, known.versions([name])) if name in replaced else {}
            bank.restore(name, text_in(bank, name), text, history.values())
    echo(f"Restored {plural(len(texts), 'memory')}.")
    for command, names in (("restore", replaced), ("forget", texts.keys() - replaced)):
        if names:
            echo(f"Undo: aiaml {command} {quoted(parse(texts[name]).id for name in sorted(names))}")


def _start(since: str | None) -> float:
    """Parse the option `--since`; return seconds since 1970, 0 for none."""
    return (Filter.of(since=since).since or 0) / 1e6


def _versions(known: History, bank: MemoryBank, memory_id: str) -> list[Version]:
    """Return the versions of an existing or forgotten memory, newest first.

    Name it by its id, by the beginning of the id, or by the name of its file.

    Raises:
        Exit: the history does not know it.
    """
    versions = list(known.versions())
    gone = [row for row in versions if not bank.stamp(row.name)]
    texts = _texts(known, gone)
    ids = {name: memory.id for name, memory in bank.find(memory_id)}
    ids |= {row.name: _fields(row, texts)["id"] for row in gone}
    fitting = (each for each in ids.values() if each.startswith(memory_id))
    whole_id = min(fitting, key=len, default=memory_id)
    found = [row for row in versions if whole_id in (row.name, ids.get(row.name))]
    if not found:
        raise Exit(f"the history has no memory {memory_id}; `aiaml sync` commits new ones")
    return found


def _texts(known: History, versions: Iterable[Version]) -> dict[str, str]:
    return known.texts(blob for version in versions for blob in (version.before, version.after))


def _earlier(known: History, bank: MemoryBank, memory_id: str, at: str | None) -> dict[str, str]:
    """Return the version of a memory to restore, by the name of its file; empty if there is none.

    Args:
        known: the history.
        bank: the memories.
        memory_id: the id.
        at: a revision; None for the newest version that differs from the present one.
    """
    versions = _versions(known, bank, memory_id)
    texts = _texts(known, versions)
    target = min((row.name for row in versions), key=lambda name: not bank.stamp(name))
    present = text_in(bank, target)
    for version in versions:
        if version.commit.startswith(at or ""):
            for blob in [version.after, version.before][: 1 if at else 2]:
                if texts.get(blob, present) != present:
                    return {target: texts[blob]}
    return {}
