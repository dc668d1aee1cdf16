"""`history`, `restore` and `log`: what git remembers of memories."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from aiaml_server.cli.context import opened, quoted, settings, text_in
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.format.filters import Filter
from aiaml_server.format.invisible import marked, marked_line
from aiaml_server.format.memory import SHORTEST_ID, Memory, parse, parsed
from aiaml_server.rendering import title, visible
from aiaml_server.storage.store import id_in
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    display_width,
    echo,
    echo_json,
    echo_rows,
    is_terminal,
    json_option,
    notify,
    pad,
    plural,
    rows_options,
    styled,
    terminal_width,
    truncate,
    unstyled,
    wrap_line,
    yes_option,
)
from aiaml_server.timestamps import format_minute

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank
    from aiaml_server.sync.history import Change, Entry, History

_TITLED = 3  # of many, that are named
_MANY = 10  # more changes than this in one commit are told as one
_SHORT = 8  # digits of a revision
_SHOWN_LINES = 20
_LONGEST_NAME = 20
_ID = "[0-9a-z]{8}"  # as `remember` draws them
_WORDS = 20  # columns that a change's words have at least


# --- history ------------------------------------------------------------------------------------


@click.command("history")
@click.argument("memory_id", metavar="ID")
@click.option("--diff", "-d", "differences", is_flag=True, help="Show what each change was.")
@rows_options
def history(memory_id: str, differences: bool, data: str) -> None:
    """Show every version that a memory has had, newest first.

    It works for a forgotten memory too. What stands first in a line is the revision, for
    `aiaml restore ID --at REV`.

    \b
    Examples:
      aiaml history 4e5f6a7b
      aiaml history 4e5f6a7b --diff
    """
    with opened() as bank:
        past = Past.of(memory_id, bank, git_history())
        present = {name: text_in(bank, name) for name in past.names}
    if data:
        rows = []
        for change in past.changes:
            text = past.text(change.after)
            is_present = text is not None and present[change.name] == text
            rows.append({**_fields(change), "present": is_present, "text": text})
        echo_rows(rows, data)
        return
    who = max(display_width(_who(change)) for change in past.changes)
    for change in past.changes:
        words = _first_words(past.text(change.after or change.before))
        head = f"{_when(change)}  {change.what:9}", pad(_who(change), who)
        _out_row([(change.commit.oid[:_SHORT], bold), *((each, dim) for each in head)], words)
        if differences:
            for line in _difference(past.text(change.before), past.text(change.after)):
                echo(f"    {line}".rstrip())
    for name, text in present.items():
        if text is not None and text not in past.texts.values():
            told = f"files/{name} has changed since then; its version is not in the history yet."
            notify(dim(told))


# --- restore ------------------------------------------------------------------------------------


@click.command("restore")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--at", metavar="REV", help="The version of this revision, as `history` has it.")
@click.option("--since", metavar="TIME", help="All that was forgotten since a date, or 2h, 7d ago.")
@yes_option
@json_option
def restore(ids: Sequence[str], at: str | None, since: str | None, yes: bool, json: bool) -> None:
    """Bring back an earlier version, or a forgotten memory.

    Without --at, it is the last version which a forgotten memory had; of a memory that is there,
    the version before its last change. The present version stays in git's history, so the same verb
    undoes it. Several ids are of forgotten memories, which come back. With --since, all memories
    that were forgotten since then do. What is there is replaced only after a yes.

    \b
    Examples:
      aiaml restore 4e5f6a7b
      aiaml restore 4e5f6a7b --at 9c760da6
      aiaml restore 4e5f6a7b 1b2c3d4e
      aiaml restore --since 2h
    """
    if bool(ids) == (since is not None) or (at and len(ids) != 1):
        raise Exit("it takes IDs, or --since TIME; --at goes with one ID", EXIT_USAGE)
    if since is not None or len(ids) > 1:
        _restore_forgotten(since, ids, json=json)
        return
    (memory_id,) = ids
    with opened() as bank:
        known = bank.history()
        past = Past.of(memory_id, bank, known)
        there = past.name(bank)
        if not there and at is None and len(past.last()) > 1:
            _restored(_last_texts(known, ids, bank), bank, json=json)
            return
        before = _text(bank, there) if there else None
        version = _version_before(past, before) if at is None else _version_at(past, known, at)
        text, of = version.text, version.of
        memory = visible(_parsed(text, of))
        name = there or _free(bank, version.name, memory)
        if text == before:
            if json:
                echo_json([])
            else:
                echo(f"Memory {memory.id} is already as it was {of}; nothing was changed.")
            return
        if not json:
            _show(memory, before, text, of)
        if there and not yes:
            confirm("Bring this version back?")
        bank.restore(name, before, text, past.texts.values())
        held_back = bank.commit()
    if json:
        _print_restored({name: text})
    else:
        echo(f"Restored memory {memory.id} as it was {of}.")
        undo = "restore" if there else "forget"
        echo(f"`aiaml {undo} {quoted([memory.id])}` takes it back.")
    if why := (held_back or {}).get(name):
        notify(f"It is kept here, because {why.sentence}.")


def _print_restored(texts: Mapping[str, str]) -> None:
    from aiaml_server.cli.show import fields  # noqa: PLC0415 (nothing else here shows whole memories)

    echo_json([fields(parse(text), name) for name, text in texts.items()])


def _restore_forgotten(since: str | None, ids: Sequence[str], *, json: bool) -> None:
    """Bring back the memories of the ids, or all that were forgotten since, on any machine."""
    start = _start(since)
    with opened() as bank:
        known = bank.history()
        texts = _last_texts(known, ids, bank) if ids else _forgotten_texts(known, start, bank)
        if not texts:
            since_then = "no memory was forgotten since then, or all are there again"
            raise Exit("none of these memories is forgotten" if ids else since_then)
        _restored(texts, bank, json=json)


def _restored(texts: Mapping[str, str], bank: MemoryBank, *, json: bool) -> None:
    """Give files that are not there their texts, after showing them."""
    from aiaml_server.cli.rows import print_lines  # noqa: PLC0415 (nothing else here lists memories)

    if not json:
        print_lines(parse(text) for text in texts.values())
    for name, text in texts.items():
        bank.restore(name, None, text)
    if json:
        _print_restored(texts)
    else:
        echo(f"Restored {plural(len(texts), 'memory')}.")
        ids = quoted(parse(text).id for text in texts.values())
        if len(texts) <= _MANY:
            echo(f"`aiaml forget {ids}` takes it back.")


def _last_texts(known: History, ids: Sequence[str], bank: MemoryBank) -> dict[str, str]:
    """Return the last texts of each forgotten memory, by the files that are to hold them."""
    texts: dict[str, str] = {}
    for memory_id in ids:
        past = Past.of(memory_id, bank, known)
        if past.name(bank):
            continue
        gone = [
            Version(change.name, text, _moment(change))
            for change in past.last()
            if (text := past.text(change.before)) is not None
        ]
        for name, text, of in gone or [_version_before(past, None)]:
            texts[_free(bank, name, _parsed(text, of), texts)] = text
    return texts


def _free(bank: MemoryBank, name: str, memory: Memory, taken: Collection[str] = ()) -> str:
    """Return a name for a memory's file: the one it had, or, where another is there, a new one."""
    ours = [memory.file_name] if re.fullmatch(_ID, memory.id) else []
    numbered = (f"{name.removesuffix('.md')} ({number}).md" for number in count(2))
    names = chain([name, *ours], numbered)
    return next(each for each in names if each not in taken and not bank.stamp(each))


def _forgotten_texts(known: History, start: float, bank: MemoryBank) -> dict[str, str]:
    """Return the last text of each file that was deleted since `start` and is not there."""
    changes = [change for changes in known.latest(start) for change in changes]
    names = {change.name for change in changes if not change.after}
    moments = {change.commit.time for change in changes if not change.after}
    meant = [  # with all that was added at the same time, and may be a deleted one's new name
        change
        for change in changes
        if change.name in names or (not change.before and _is_near(change.commit.time, moments))
    ]
    held = known.texts(change.after or change.before for change in meant)
    of_id: defaultdict[str, list[Change]] = defaultdict(list)
    newest: dict[tuple[str, str], tuple[Change, Memory]] = {}
    for change in meant:
        if memory := _told(change, held):
            of_id[memory.id].append(change)
            newest.setdefault((change.name, memory.id), (change, memory))
    there = bank.recall({memory_id for _, memory_id in newest})
    texts: dict[str, str] = {}
    for (name, memory_id), (change, memory) in newest.items():
        if change.after or not change.before or _went_on(change, of_id[memory_id]):
            continue
        if any(not each.before for each in _later(change, of_id[memory_id])):  # it came back
            continue
        files: set[str] = set()
        with suppress(InvalidInput):  # there is none, and several begin so
            found = bank.find(memory_id) if there[memory_id] else []
            files = {file for file, each in found if each.id == memory_id}
        if files and any(
            not each.before and each.name in files for each in _later(change, changes)
        ):
            continue
        if not bank.stamp(name) or not _holds(bank, name, memory_id):
            texts[_free(bank, name, memory, texts)] = held[change.before]
    return texts


def _later(change: Change, changes: Iterable[Change]) -> Iterator[Change]:
    return takewhile(lambda each: each is not change, changes)  # they are newest first


def _is_near(time: int | None, moments: Container[int | None]) -> bool:
    from aiaml_server.sync.history import TOGETHER_SECONDS  # noqa: PLC0415

    seconds = range(-TOGETHER_SECONDS, TOGETHER_SECONDS + 1)
    return time is not None and any(time + each in moments for each in seconds)


def _went_on(gone: Change, changes: Sequence[Change]) -> bool:
    """Say whether a file was renamed, not forgotten: another was added at the same time.

    Where that one was deleted at once as well, both may have been there; then it stands for both
    only if it held the same.

    Args:
        gone: the deletion of the file.
        changes: what happened to the memory, newest first, with all that was near that.
    """
    near = [each for each in changes if each.near(gone)]
    deleted = {each.name for each in near if not each.after}
    older = iter(near)
    for each in older:
        if each is gone:
            break
    same = [each for each in near if each.commit.oid == gone.commit.oid]
    for each in (*same, *older):
        if each.name == gone.name and not each.before:  # what was added earlier came before it
            return False
        if each.name != gone.name and not each.before:
            return each.after == gone.before or each.name not in deleted
    return False


def _holds(bank: MemoryBank, name: str, memory_id: str) -> bool:
    """Say whether a file that is there holds a memory, as far as it can be read."""
    memory = parsed(text_in(bank, name))
    return not memory or memory.id == memory_id


class Version(NamedTuple):
    """A text that a memory had, its file's name, and when that was, in words."""

    name: str
    text: str
    of: str


def _version_at(past: Past, known: History, revision: str) -> Version:
    commit = known.commit(revision)
    if not commit:
        raise InvalidInput("--at", f"there is no revision {revision!r}; `history` lists them")
    changed = [change.name for change in past.changes if change.commit.oid == commit]
    unread: Version | None = None
    for name in dict.fromkeys([*changed, *past.names]):
        entry = known.entry(commit, name)
        text = known.texts([entry]).get(entry) if entry else None
        if text is not None:
            version = Version(name, text, f"at revision {commit[:_SHORT]}")
            if not (memory := parsed(text)):
                unread = unread or version
            elif memory.id == past.id:
                return version
    if unread:
        return unread
    raise InvalidInput("--at", f"there was no memory {past.id} at revision {revision}")


def _version_before(past: Past, present: str | None) -> Version:
    """Return the newest version that comes before the present one, or the last before none."""
    texts = [past.text(change.after) for change in past.changes]
    start = texts.index(present) if present and present in texts else 0
    for change, text in zip(past.changes[start:], texts[start:], strict=True):
        if text is not None and text != present:
            return Version(change.name, text, _moment(change))
    raise Exit(f"there is no other version of memory {past.id}")


def _moment(change: Change) -> str:
    return f"on {_when(change).rstrip()} (revision {change.commit.oid[:_SHORT]})"


def _parsed(text: str, of: str) -> Memory:
    try:
        text.encode()
        return parse(text)
    except (MalformedFile, UnicodeEncodeError) as error:
        raise Exit(f"what stood there {of} is no memory: {error}", EXIT_FAILED) from error


def _show(memory: Memory, before: str | None, text: str, of: str) -> None:
    echo(f"Memory {bold(memory.id)} as it was {of}:")
    echo()
    lines = marked(text).splitlines() if before is None else _difference(before, text)
    for line in lines[:_SHOWN_LINES]:
        echo(f"    {line}".rstrip())
    if len(lines) > _SHOWN_LINES:
        echo(dim(f"    … and {plural(len(lines) - _SHOWN_LINES, 'more line')}"))
    echo()


# --- log ----------------------------------------------------------------------------------------


@click.command("log")
@click.option(
    "--limit",
    "-n",
    metavar="N",
    type=click.IntRange(1),
    default=25,
    help="How many; 25 if not said.",
)
@click.option("--since", metavar="TIME", help="Only from then on: a date, or 90m, 12h, 7d, 2w ago.")
@rows_options
def log(limit: int, since: str | None, data: str) -> int:
    """Show what came, changed and went lately, and from where.

    "here" is what was committed on this computer; what came from another one bears the name that
    its git commits under.

    \b
    Examples:
      aiaml log
      aiaml log --since 7d -n 100
    """
    start = _start(since)
    known = git_history()
    rows = list(islice(known.rows(start, many=_MANY, together=not data), limit + 1))
    shown = rows[:limit]
    titled = [each for row in shown for each in row[:_TITLED]]
    texts = known.texts(each.after or each.before for each in titled)
    if data:
        echo_rows([_row_fields(row, texts) for row in shown], data)
    else:
        _print_rows(shown, texts)
        if len(rows) > limit:
            notify(dim(f"There is more: `-n {limit * 4}` shows more of it."))
        if not rows:
            notify("Nothing has come or gone since then." if since else "Nothing was stored yet.")
    return EXIT_OK if rows else EXIT_NOTHING


def _start(since: str | None) -> float:
    """Return a time that a person gave, in seconds since 1970; 0 for none."""
    return (Filter.of(since=since).since or 0) / 1e6


Row = Sequence["Change"]
"""One change; or all those of a commit that has many."""


def _print_rows(rows: Sequence[Row], texts: dict[Entry, str]) -> None:
    who = max((display_width(_who(row[0])) for row in rows), default=0)
    for row in rows:
        change = row[0]
        head = f"{_when(change)}  {change.what:9}", dim
        by = pad(_who(change), who), dim
        if len(row) > 1:
            told = [memory for each in row[:_TITLED] if (memory := _told(each, texts))]
            titles = " · ".join(filter(None, (title(memory.content) for memory in told)))
            words = ": ".join(filter(None, (_many(row), titles)))
            _out_row([head, (" " * 8, dim), by], words)
            continue
        memory = _told(change, texts)
        identity = marked_line(f"{memory.id if memory else id_in(change.name):8}")
        words = f"{memory.agent}: {memory.content}" if memory else change.name
        _out_row([head, (identity, bold), by], words)


def _out_row(head: Sequence[tuple[str, Callable[[str], str]]], words: str) -> None:
    """Print what is known of a change, and behind it, or on a narrow terminal below, its words."""
    line = "  ".join(style(text) for text, style in head)
    room = terminal_width() - display_width(unstyled(line)) - 2
    if room < _WORDS and is_terminal():
        line = "  ".join(style(text.rstrip()) for text, style in head if text.strip())
        echo("\n".join(wrap_line(line, terminal_width(), hang=2)))
        echo(f"  {truncate(words, terminal_width() - 2)}".rstrip())
    else:
        echo(f"{line}  {truncate(words, max(room, _WORDS))}".rstrip())


def _told(change: Change, texts: dict[Entry, str]) -> Memory | None:
    entry = change.after or change.before
    return parsed(texts.get(entry) if entry else None)


def _many(row: Row) -> str:
    kinds = [change.what for change in row]
    if len(set(kinds)) == 1:
        return plural(len(row), "memory")
    counts = (f"{kinds.count(kind):,} {kind.lower()}" for kind in dict.fromkeys(kinds))
    return f"{plural(len(row), 'memory')}: {', '.join(counts)}"


def _row_fields(row: Row, texts: dict[Entry, str]) -> dict[str, Any]:
    change = row[0]
    if len(row) > 1:
        nothing = {"file": None, "id": None, "agent": None, "content": None}
        return {**_fields(change), **nothing, "memories": len(row)}
    memory = _told(change, texts)
    return {
        **_fields(change),
        "id": memory.id if memory else id_in(change.name),
        "agent": memory.agent if memory else None,
        "content": truncate(memory.content, 200) if memory else None,
        "memories": 1,
    }


# --- what git knows -----------------------------------------------------------------------------


class Past(NamedTuple):
    """What happened to one memory.

    Attributes:
        id: its id.
        names: the names that its files have, or had.
        changes: what happened, newest first; at least one thing.
        texts: what the files held.
    """

    id: str
    names: Sequence[str]
    changes: Sequence[Change]
    texts: dict[Entry, str]

    @classmethod
    def of(cls, memory_id: str, bank: MemoryBank, known: History) -> Past:
        """Find a memory, there or forgotten, by its id or the beginning of it, or its file's name.

        The id in each version of a file counts; the file's name only where none can be read.

        Raises:
            InvalidInput: several ids begin so.
            Ended: there never was one, or git does not know it.
        """
        found = bank.find(memory_id)
        changes: list[Change] = []
        for files_of in (_files_of_any_form, _files_forgotten):  # most have a name of our own form
            names = {*(name for name, _ in found), *files_of(memory_id, known)}
            changes = known.of(
                lambda name: name in (memory_id, *names) or _begins(id_in(name), memory_id)  # noqa: B023 (at once)
            )
            texts = known.texts(
                each for change in changes for each in (change.before, change.after)
            )
            ids = _ids(changes, texts)
            if not found and memory_id in (change.name for change in changes):
                changes = [change for change in changes if change.name == memory_id]
                identity = ids[changes[0]]
            else:
                all_ids = {*ids.values(), *(memory.id for _, memory in found)}
                identity = _one_id(memory_id, sorted(all_ids))
            if changes := [change for change in changes if ids[change] == identity]:
                there = [name for name, memory in found if memory.id == identity]
                every = dict.fromkeys([*there, *(each.name for each in changes)])
                return cls(identity, list(every), changes, texts)
        raise Exit(_unknown(memory_id, known, there=bool(found)))

    def text(self, entry: Entry | None) -> str | None:
        """Return what a file held."""
        return self.texts.get(entry) if entry else None

    def words(self) -> str:
        """Return the text that it had last."""
        texts = (self.text(change.after or change.before) for change in self.changes)
        return _first_words(next((text for text in texts if text), None))

    def name(self, bank: MemoryBank) -> str:
        """Return the name of the file that holds it now; empty where it is forgotten.

        Raises:
            InvalidInput: several do.
        """
        there = [name for name in self.names if bank.stamp(name) and _holds(bank, name, self.id)]
        if len(there) > 1:
            names = ", ".join(there)
            raise InvalidInput("id", f"{self.id} is in several files; name one of them: {names}")
        return there[0] if there else ""

    def last(self) -> list[Change]:
        """Return how it was forgotten: a deletion; of each of its files, where it had several."""
        found: list[Change] = []
        for change in self.changes:
            if change.after or (found and not change.together_with(found[-1])):
                break
            if not _went_on(change, self.changes):
                found.append(change)
        return found


def revisions(past: Past) -> Iterator[tuple[str, str]]:
    """Yield each version's revision, as it is shortened, and what it was."""
    for change in past.changes:
        if change.after:
            what = f"{_when(change)}  {change.what}"
            yield change.commit.oid[:_SHORT], what


def _begins(memory_id: str, said: str) -> bool:
    """Say whether what is said may be an id, in any case, or the beginning of it."""
    own, said = memory_id.lower(), said.lower()
    return own == said or (len(said) >= SHORTEST_ID and own.startswith(said))


def _files_of_any_form(memory_id: str, known: History) -> set[str]:
    """Return the files that ever held a memory, of those whose names need not have its id."""
    ours = re.compile(rf"\d{{8}}_\d{{6}}_{_ID}\.md")
    changes = known.of(lambda name: not ours.fullmatch(name))
    texts = known.texts(change.after for change in changes)
    return _files_with(memory_id, ((change.name, change.after) for change in changes), texts)


def _files_forgotten(memory_id: str, known: History) -> set[str]:
    """Return the files that held a memory before they were deleted, whatever their names."""
    gone = known.forgotten()
    texts = known.texts(change.before for change in gone)
    return _files_with(memory_id, ((change.name, change.before) for change in gone), texts)


def _files_with(
    said: str, files: Iterable[tuple[str, Entry | None]], texts: Mapping[Entry, str]
) -> set[str]:
    ids = {entry: memory.id for entry, text in texts.items() if (memory := parsed(text))}
    return {name for name, entry in files if entry and _begins(ids.get(entry, ""), said)}


def _ids(changes: Sequence[Change], texts: Mapping[Entry, str]) -> dict[Change, str]:
    """Return the id of each version: what cannot be read has that of its file's other versions."""
    memories = {}
    for change in changes:
        entry = change.after or change.before
        memories[change] = parsed(texts.get(entry)) if entry else None
    usual: dict[str, str] = {}
    for change, memory in memories.items():
        if memory:
            usual.setdefault(change.name, memory.id)
    return {
        change: memory.id if memory else usual.get(change.name, id_in(change.name))
        for change, memory in memories.items()
    }


def _one_id(said: str, ids: Sequence[str]) -> str:
    """Return the id that is meant: what is said, or what alone begins so; else what is said."""
    for each in (said, said.lower()):
        if each in ids:
            return each
    begin = [each for each in ids if each.lower().startswith(said.lower())]
    if len(begin) > 1 and len(said) >= SHORTEST_ID:
        raise InvalidInput("id", f"{said} is the beginning of {', '.join(begin[:5])}")
    return begin[0] if begin and len(said) >= SHORTEST_ID else said


def _unknown(memory_id: str, known: History, *, there: bool) -> str:
    if there:
        how = "`aiaml sync` puts it there" if settings().sync else "AIAML_ENABLE_SYNC is false"
        return f"memory {memory_id} is there, but not in the history yet: {how}"
    if not known.head:
        return f"no memory has the id {memory_id}, and there is no history here"
    return f"no memory has or had the id {memory_id}"


def git_history() -> History:
    """Return what git knows of the memory directory's past."""
    from aiaml_server.sync.history import History  # noqa: PLC0415

    return History(settings().base)


def _text(bank: MemoryBank, name: str) -> str | None:
    try:
        return bank.text(name)
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise Exit(f"files/{name} is no text ({error}): move it away first", EXIT_FAILED) from error


# --- how it is shown ----------------------------------------------------------------------------


def _when(change: Change) -> str:
    when = change.commit.when
    return format_minute(when) if when else f"{'unknown time':16}"


def _who(change: Change) -> str:
    if change.arrived is False:
        return "here"
    name = truncate(change.machine or "", _LONGEST_NAME)
    return ", ".join(filter(None, [name, "elsewhere" if change.arrived else ""]))


def _fields(change: Change) -> dict[str, Any]:
    return {
        "revision": change.commit.oid,
        "time": change.commit.when,
        "what": change.what.lower(),
        "author": change.commit.author,
        "arrived": change.arrived,
        "file": change.name,
    }


def _first_words(text: str | None) -> str:
    memory = parsed(text)
    return memory.content if memory else text or ""


_COLOURS = {"+": "green", "-": "red", "@": "dim"}


def _difference(before: str | None, after: str | None) -> list[str]:
    """Return what changed, line by line."""
    from aiaml_server.rendering.differences import difference  # noqa: PLC0415

    lines = difference(marked(before or ""), marked(after or ""))
    return [styled(line, _COLOURS.get(line[:1])) for line in lines]
