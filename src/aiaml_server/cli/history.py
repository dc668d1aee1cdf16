"""The commands history, restore and log: what git remembers of memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from typing import Any

import click

from aiaml_server.bank import MemoryBank
from aiaml_server.cli.context import opened, quoted, settings, text_in
from aiaml_server.cli.rows import print_lines
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.format.filters import Filter
from aiaml_server.format.invisible import marked
from aiaml_server.format.memory import Memory, parse, parsed
from aiaml_server.rendering import title, visible
from aiaml_server.rendering.differences import difference
from aiaml_server.storage.store import id_in
from aiaml_server.sync import History, Version
from aiaml_server.terminal import (
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_json,
    echo_rows,
    json_option,
    notify,
    plural,
    rows_options,
    styled,
    terminal_width,
    truncate,
    yes_option,
)
from aiaml_server.timestamps import format_minute, format_timestamp

_SHORT = 8  # digits of a revision
_SHOWN_LINES = 20
_TOGETHER = 10  # more changes than this in one commit are one line
_COLOURS = {"+": "green", "-": "red", "@": "dim"}


@click.command("history")
@click.argument("memory_id", metavar="ID")
@click.option("--diff", "-d", "differences", is_flag=True, help="Show what each change was.")
@rows_options
def history(memory_id: str, differences: bool, data: str) -> None:
    """Show every version that a memory has had, newest first.

    It works for a forgotten memory too. A line begins with the revision, for `aiaml restore ID
    --at REV`.

    \b
    Examples:
      aiaml history 4e5f6a7b
      aiaml history 4e5f6a7b --diff
    """
    with opened() as bank:
        known = bank.history()
        versions = _versions(known, bank, memory_id)
    texts = _texts(known, versions)
    if data:
        rows = [{**_fields(each), "text": texts.get(each.after)} for each in versions]
        echo_rows(rows, data)
        return
    for version in versions:
        text = texts.get(version.after or version.before, "")
        echo(f"{bold(version.commit[:_SHORT])}  {_line(version, text)}")
        if differences:
            for line in _difference(texts.get(version.before), texts.get(version.after)):
                echo(f"    {line}".rstrip())


@click.command("restore")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--at", metavar="REV", help="The version of this revision, as `history` has it.")
@click.option("--since", metavar="TIME", help="All that was forgotten since a date, or 2h, 7d ago.")
@yes_option
@json_option
def restore(ids: Sequence[str], at: str | None, since: str | None, yes: bool, json: bool) -> None:
    """Bring back an earlier version, or a forgotten memory.

    A forgotten memory comes back as it was last. Of one that is there, the version before its last
    change does, or that of --at. The present version stays in the history.

    \b
    Examples:
      aiaml restore 4e5f6a7b
      aiaml restore 4e5f6a7b --at 9c760da6
      aiaml restore --since 2h
    """
    if bool(ids) == (since is not None) or (at and len(ids) != 1):
        raise Exit("it takes IDs, or --since TIME; --at goes with one ID", EXIT_USAGE)
    restored: dict[str, str] = {}
    with opened() as bank:
        known = bank.history()
        if since is not None:
            restored = _forgotten_since(known, bank, _start(since))
        for memory_id in ids:
            restored |= _earlier(known, bank, memory_id, at)
        if not restored:
            raise Exit("there is nothing to bring back")
        replaced = [name for name in restored if bank.stamp(name)]
        for name, text in restored.items():
            if not json:
                _show(text_in(bank, name), text)
        if replaced and not yes:
            confirm(f"Replace {plural(len(replaced), 'memory')}?")
        for name, text in restored.items():
            before = text_in(bank, name)
            texts = _texts(known, known.versions([name])).values() if before is not None else ()
            bank.restore(name, before, text, list(texts))
    if json:
        from aiaml_server.cli.show import fields  # noqa: PLC0415 (nothing else shows whole ones)

        echo_json([fields(parse(text), name) for name, text in restored.items()])
        return
    echo(f"Restored {plural(len(restored), 'memory')}.")
    undo = "restore" if replaced else "forget"
    echo(f"`aiaml {undo} {quoted(parse(text).id for text in restored.values())}` takes it back.")


@click.command("log")
@click.option(
    "--limit",
    "-n",
    metavar="N",
    type=click.IntRange(1),
    default=25,
    help="How many; 25 by default.",
)
@click.option("--since", metavar="TIME", help="Only from then on: a date, or 90m, 12h, 7d, 2w ago.")
@rows_options
def log(limit: int, since: str | None, data: str) -> int:
    """Show which memories were added, edited and deleted lately, on all computers.

    \b
    Examples:
      aiaml log
      aiaml log --since 7d -n 100
    """
    start = _start(since)
    known = History(settings().base)
    recent = (each for each in known.versions() if each.time >= start)
    rows = [list(group) for _, group in islice(groupby(recent, lambda each: each.commit), limit)]
    single = [row[0] for row in rows if len(row) <= _TOGETHER]
    texts = _texts(known, single)
    if data:
        echo_rows([_row_fields(row, texts) for row in rows], data)
    for row in () if data else rows:
        if len(row) > _TOGETHER:
            echo(f"{_when(row[0])}  {row[0].action:8}  {plural(len(row), 'memory')}")
            continue
        for version in row:
            texts |= _texts(known, [version])
            text = texts.get(version.after or version.before, "")
            echo(f"{_line(version, text, id_in(version.name))}")
    if not rows and not data:
        notify("Nothing has changed since then." if since else "Nothing was stored yet.")
    return EXIT_OK if rows else EXIT_NOTHING


def _start(since: str | None) -> float:
    """Return a time that a person gave, in seconds since 1970; 0 for none."""
    return (Filter.of(since=since).since or 0) / 1e6


def _versions(known: History, bank: MemoryBank, memory_id: str) -> list[Version]:
    """Return what happened to a memory, there or forgotten, newest first.

    Raises:
        Exit: the history does not know it.
    """
    found = bank.find(memory_id)
    whole_id = found[0][1].id if found else memory_id
    versions = known.of_memory(whole_id, [name for name, _ in found])
    ids = {id_in(version.name) for version in versions} - {whole_id}
    if len(ids) > 1:
        raise InvalidInput("id", f"{memory_id} is the beginning of {', '.join(sorted(ids)[:5])}")
    if not versions and found:
        raise Exit(f"memory {memory_id} is not in the history yet: `aiaml sync` puts it there")
    if not versions:
        raise Exit(f"no memory has or had the id {memory_id}")
    return versions


def _texts(known: History, versions: Iterable[Version]) -> dict[str, str]:
    return known.texts(name for each in versions for name in (each.before, each.after))


def _earlier(known: History, bank: MemoryBank, memory_id: str, at: str | None) -> dict[str, str]:
    """Return the version of a memory to bring back, by the name of its file."""
    versions = _versions(known, bank, memory_id)
    texts = _texts(known, versions)
    if at is not None:
        commit = known.resolve(at)
        files = known.files_at(commit) if commit else {}
        for version in versions:
            text = texts.get(files.get(version.name, ""))
            if text is not None:
                return {version.name: _checked(text)}
        raise InvalidInput("--at", f"memory {memory_id} has no version {at!r}; see `aiaml history`")
    for version in versions:
        present = text_in(bank, version.name)
        for name in (version.after, version.before):
            text = texts.get(name)
            if text is not None and text != present:
                return {version.name: _checked(text)}
    raise Exit(f"there is no other version of memory {memory_id}")


def _forgotten_since(known: History, bank: MemoryBank, start: float) -> dict[str, str]:
    """Return the last texts of the memories that were forgotten since a time."""
    gone: dict[str, str] = {}
    for version in known.versions():
        if version.time < start:
            break
        if version.action == "deleted" and not bank.stamp(version.name):
            gone.setdefault(version.name, version.before)
    texts = known.texts(gone.values())
    return {name: texts[version] for name, version in gone.items() if parsed(texts.get(version))}


def _checked(text: str) -> str:
    try:
        parse(text)
    except MalformedFile as error:
        raise Exit(f"that version is not a valid memory: {error}") from error
    return text


def _show(before: str | None, text: str) -> None:
    memory = visible(parse(text))
    if before is None:
        print_lines([memory])
        return
    echo(f"Memory {bold(memory.id)}:")
    lines = _difference(before, text)
    for line in lines[:_SHOWN_LINES]:
        echo(f"    {line}".rstrip())
    if len(lines) > _SHOWN_LINES:
        echo(dim(f"    … and {plural(len(lines) - _SHOWN_LINES, 'more line')}"))


def _when(version: Version) -> str:
    return format_minute(format_timestamp(version.time * 1_000_000, "seconds"))


def _line(version: Version, text: str, memory_id: str = "") -> str:
    memory = parsed(text)
    words = f"{memory.agent}: {title(memory.content)}" if memory else version.name
    author = truncate(version.author, 20)
    head = "  ".join(filter(None, [_when(version), f"{version.action:8}", memory_id, author]))
    return f"{head}  {truncate(words, max(terminal_width() - len(head) - _SHORT - 4, 20))}"


def _fields(version: Version) -> dict[str, Any]:
    return {
        "revision": version.commit,
        "time": format_timestamp(version.time * 1_000_000, "seconds"),
        "what": version.action,
        "author": version.author,
        "file": version.name,
    }


def _row_fields(row: Sequence[Version], texts: Mapping[str, str]) -> dict[str, Any]:
    version = row[0]
    if len(row) > _TOGETHER:
        return {**_fields(version), "id": None, "content": None, "memories": len(row)}
    memory: Memory | None = parsed(texts.get(version.after or version.before))
    return {
        **_fields(version),
        "id": memory.id if memory else id_in(version.name),
        "content": truncate(memory.content, 200) if memory else None,
        "memories": len(row),
    }


def _difference(before: str | None, after: str | None) -> list[str]:
    """Return what changed, line by line."""
    lines = difference(marked(before or ""), marked(after or ""))
    return [styled(line, _COLOURS.get(line[:1])) for line in lines]
