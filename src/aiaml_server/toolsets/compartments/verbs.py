"""`aiaml compartments …`: what the compartments hold, for people."""

from __future__ import annotations

import json as json_
import os
from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import InvalidInput, MalformedFile, StoreError
from aiaml_server.files import read_regular, write_atomic
from aiaml_server.format.invisible import marked_line
from aiaml_server.terminal import (
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_rows,
    format_size,
    notify,
    plural,
    rows_options,
    wrap,
    yes_option,
)
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.compartments import MANIFEST
from aiaml_server.toolsets.compartments.entries import (
    COMPARTMENTS,
    Entry,
    check_entry,
    fitting,
    is_session,
)
from aiaml_server.toolsets.compartments.failures import DiskError
from aiaml_server.toolsets.compartments.file import MAX_FILE, Content, Damaged, File, Place, load
from aiaml_server.toolsets.owners import leaves_directory
from aiaml_server.toolsets.warning import find_leak

FULL = 0.9  # share of a limit from which doctor says so


def _said(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
    """Refuse an empty text, such as of a shell's variable that is not set: it would mean all."""
    for each in value if isinstance(value, tuple) else (value,):
        if each is not None and not each.strip():
            raise click.BadParameter("must not be empty; leave it out to mean all")
    return value


compartment = click.argument("compartment", required=False, type=click.Choice(COMPARTMENTS))
session_option = click.option(
    "--session", metavar="NAME", callback=_said, help="Only of this session."
)
id_option = click.option("--id", "id", metavar="ID", callback=_said, help="The entry with this id.")
category_option = click.option(
    "--category", metavar="WORD", callback=_said, help="Entries of this category."
)
tag_option = click.option(
    "--tag",
    "-t",
    "tags",
    metavar="TAG",
    multiple=True,
    callback=_said,
    help="With this tag; with all of several.",
)


@click.group("compartments")
@click.option(
    "--file",
    metavar="PATH",
    help="The file, instead of AIAML_COMPARTMENTS_FILE or .aiaml-compartments.json here.",
)
@click.pass_context
def compartments(context: click.Context, file: str | None) -> None:
    """Read and clear what agents keep of runs, sessions and plans.

    \b
    Examples:
      aiaml compartments show
      aiaml compartments stats
      aiaml compartments --file ~/agent/memory.json clear plan
    """
    file = os.path.expanduser(file) if file else ""  # noqa: PTH111 (a missing home is no traceback)
    if file and not os.path.isabs(file) and (found := leaves_directory(file)):  # noqa: PTH117
        raise Exit(f"`--file {file}`: {found}", EXIT_USAGE)
    given = {"AIAML_COMPARTMENTS_FILE": os.path.abspath(file)} if file else {}  # noqa: PTH100
    context.obj = {**os.environ, **given}


@compartments.command("show")
@compartment
@session_option
@id_option
@category_option
@tag_option
@rows_options
@click.pass_obj
def show(
    environ: Mapping[str, str],
    /,
    compartment: str | None,
    session: str | None,
    data: str,
    **filters: Any,
) -> int:
    """Show entries: of all runs, sessions and plans, or of one compartment.

    \b
    Examples:
      aiaml compartments show
      aiaml compartments show plan --session invoices
      aiaml compartments show session --tag euro --json
    """
    found = [
        (place, entry)
        for place, entries in _places(_opened(environ), compartment, session)
        for entry in fitting(entries, **filters)
    ]
    if data:
        echo_rows([_fields(place, entry) for place, entry in found], data)
        return EXIT_OK
    before = None
    for place, entry in found:
        if place != before:
            echo(wrap(bold(_name(place)), 4))
        before = place
        echo(wrap(f"  {_line(entry)}".replace("\n", "\n    "), 2))
    if not found:
        notify("There are no such entries.")
        return EXIT_NOTHING
    return EXIT_OK


@compartments.command("export")
@session_option
@click.option("--to", metavar="FILE", help="A new file, readable by you alone.")
@click.pass_obj
def export(environ: Mapping[str, str], session: str | None, to: str | None) -> None:
    """Print every entry as a line of JSON, with its compartment; or put it into a file.

    \b
    Examples:
      aiaml compartments export | jq .content
      aiaml compartments export --to archive.jsonl
    """
    places = _places(_opened(environ), None, session)
    rows = [_fields(place, entry) for place, entries in places for entry in entries]
    if to is None:
        for row in rows:
            echo(json_.dumps(row))
        return
    target = Path(to)
    if os.path.lexists(target):
        raise Exit(f"{target} exists; name a new file", EXIT_USAGE)
    lines = "".join(json_.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    try:
        write_atomic(target, lines.encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError("write", target, error) from error
    notify(f"{plural(len(rows), 'entry', 'entries')} in {target}.")


@compartments.command("import")
@click.argument("path", type=click.Path())
@click.pass_obj
def import_(environ: Mapping[str, str], path: str) -> None:
    """Bring back what `export` has written: entries of sessions and plans, with their ids.

    An entry whose id is there already is left as it is, and what a run had is passed over: it has
    ended. Nothing is changed where a line is none that agents could save, or has no room.

    \b
    Examples:
      aiaml compartments import archive.jsonl
    """
    rows, of_runs = _rows_of(Path(path))
    values = MANIFEST.read_settings(environ)
    with File(values["AIAML_COMPARTMENTS_FILE"]).changing() as content:
        content.forget_expired()
        before = content.ids()
        known = set(before)
        changed: dict[Place, dict[str, Entry]] = {}
        sizes = {place: figures["characters"] for place, figures in _counted(content, values)}
        for number, place, entry in rows:
            if entry.id in known:
                continue
            known.add(entry.id)
            changed[place] = content.entries.setdefault(place, {})
            changed[place][entry.id] = entry
            sizes[place] = sizes.get(place, 0) + entry.size
            if sizes[place] > (limit := _limit(values, place)):
                raise Exit(
                    f"{path}, line {number}: content: with it the {place[2]} memory would hold "
                    f"{sizes[place]:,} characters, and it may hold {limit:,}; clear what is no "
                    "longer needed, or raise AIAML_COMPARTMENT_LIMIT",
                    EXIT_USAGE,
                )
        for place, entries in changed.items():
            content.put(place, entries)
        added = len(known) - len(before)
    echo(f"{plural(added, 'entry', 'entries')} brought back.")
    if there := len(rows) - added:
        notify(f"{plural(there, 'entry', 'entries')} there already, by id.")
    if of_runs:
        notify(f"{plural(of_runs, 'entry', 'entries')} of runs passed over: these have ended.")


def _rows_of(path: Path) -> tuple[list[tuple[int, Place, Entry]], int]:
    """Return what a file of `export` holds, by line, and how many entries in it were of runs.

    Raises:
        Ended: the file, or a line of it, cannot be read.
    """
    try:
        lines = read_regular(str(path), MAX_FILE).splitlines()
    except (OSError, MalformedFile) as error:
        raise Exit(f"{path}: {error}", EXIT_USAGE) from error
    rows: list[tuple[int, Place, Entry]] = []
    of_runs = 0
    for number, line in enumerate(lines, 1):
        try:
            value = json_.loads(line)
            compartment, run = value.pop("compartment", None), value.pop("run", None)
            session = value.pop("session", None)
            entry = check_entry(value)
        except InvalidInput as error:
            raise Exit(f"{path}, line {number}: {error}", EXIT_USAGE) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise Exit(f"{path}, line {number}, is no entry: {error}", EXIT_USAGE) from error
        if compartment in COMPARTMENTS and is_session(session):
            rows.append((number, ("sessions", session, compartment), entry))
        elif compartment in COMPARTMENTS and run:
            of_runs += 1
        else:
            raise Exit(f"{path}, line {number}, names no compartment, or no session", EXIT_USAGE)
    return rows, of_runs


@compartments.command("clear")
@click.argument("compartment", type=click.Choice(COMPARTMENTS))
@click.option(
    "--session", metavar="NAME", callback=_said, help="Of this session; else AIAML_SESSION's."
)
@id_option
@category_option
@tag_option
@yes_option
@click.pass_obj
def clear(
    environ: Mapping[str, str],
    /,
    compartment: str,
    session: str | None,
    yes: bool,
    **filters: Any,
) -> int:
    """Delete entries of a compartment, or all of them, after asking.

    `run` stands for the memory of every run in the file, also of one that goes on.

    \b
    Examples:
      aiaml compartments clear plan
      aiaml compartments clear session --session invoices --tag euro --yes
    """
    values = MANIFEST.read_settings(environ)
    file = File(values["AIAML_COMPARTMENTS_FILE"])
    owner = session or values["AIAML_SESSION"]
    of_runs = compartment == "run" or (
        compartment == "plan" and values["AIAML_PLAN_SCOPE"] == "run"
    )

    def chosen(content: Content) -> dict[Place, list[Entry]]:
        found = {
            place: fitting(entries.values(), **filters)
            for place, entries in content.entries.items()
            if place[2] == compartment
            and (place[0] == "runs" if of_runs else place[:2] == ("sessions", owner))
        }
        return {place: entries for place, entries in found.items() if entries}

    count = sum(map(len, chosen(_opened(environ)).values()))
    if not count:
        notify("There are no such entries.")
        return EXIT_NOTHING
    if not yes:
        whose = "of all runs" if of_runs else f"of the session {owner}"
        confirm(f"Delete {plural(count, 'entry', 'entries')} of {compartment} memory {whose}?")
    with file.changing() as content:
        found = chosen(content)
        for place, gone in found.items():
            ids = {each.id for each in gone}
            kept = {name: each for name, each in content.entries[place].items() if name not in ids}
            content.put(place, kept)
    echo(f"Deleted {plural(sum(map(len, found.values())), 'entry', 'entries')}.")
    return EXIT_OK


@compartments.command("stats")
@rows_options
@click.pass_obj
def stats(environ: Mapping[str, str], data: str) -> None:
    """Count entries, their sizes against the limits, and how often they were read.

    \b
    Examples:
      aiaml compartments stats
      aiaml compartments stats --json
    """
    rows = list(_counted(_opened(environ), MANIFEST.read_settings(environ)))
    if data:
        echo_rows([{**_owner(place), **figures} for place, figures in rows], data)
        return
    wide = max((len(_name(place)) for place, _ in rows), default=0)
    for place, figures in rows:
        count = plural(figures["entries"], "entry", "entries")
        used = f"{figures['characters']:,} of {figures['limit']:,} characters"
        read = f"read {plural(figures['accesses'], 'time')}, {figures['unread']:,} never"
        echo(wrap(f"{bold(f'{_name(place):{wide}}')}  {count}, {used}, {read}", 4))
    if not rows:
        notify("There are no entries.")


# --- what the verbs share -------------------------------------------------------------------------


def _counted(content: Content, values: Mapping[str, Any]) -> Iterator[tuple[Place, dict[str, int]]]:
    """Yield each compartment's figures."""
    for place, entries in _places(content, None, None):
        yield (
            place,
            {
                "entries": len(entries),
                "characters": sum(each.size for each in entries),
                "limit": _limit(values, place),
                "accesses": sum(each.access_count for each in entries),  # returned so often
                "unread": sum(not each.access_count for each in entries),
            },
        )


def _limit(values: Mapping[str, Any], place: Place) -> int:
    """Return how many characters a compartment may hold."""
    own = values[f"AIAML_COMPARTMENT_LIMIT_{place[2].upper()}"]
    return own or values["AIAML_COMPARTMENT_LIMIT"]  # type: ignore[no-any-return]


def _opened(environ: Mapping[str, str]) -> Content:
    """Return what the file holds; nothing is changed, also where it is damaged.

    Raises:
        Ended: there is no file, or it is damaged.
        DiskError: it cannot be read.
    """
    path = MANIFEST.read_settings(environ)["AIAML_COMPARTMENTS_FILE"]
    try:
        return load(path)
    except FileNotFoundError as error:
        raise Exit(f"there is no {path}; `--file` names another") from error
    except Damaged as error:
        raise DiskError(
            f"{path} is damaged ({error}); correct it, or let the next run set it aside"
        ) from error
    except OSError as error:
        raise StoreError("read", path, error) from error


def _places(
    content: Content, compartment: str | None, session: str | None
) -> Iterator[tuple[Place, list[Entry]]]:
    """Return the compartments that hold something: the runs' first, then each session's."""
    content.forget_expired()
    for place in sorted(content.entries, key=lambda each: (*each[:2], COMPARTMENTS.index(each[2]))):
        kind, owner, name = place
        wanted = session is None or (kind, owner) == ("sessions", session)
        if (entries := content.entries[place]) and wanted and compartment in (None, name):
            yield place, list(entries.values())


def _name(place: Place) -> str:
    kind, owner, name = place
    whose = f"{kind.removesuffix('s')} {marked_line(owner)}"
    return f"plan of {whose}" if name == "plan" else whose


def _owner(place: Place) -> dict[str, str]:
    kind, owner, name = place
    return {"compartment": name, kind.removesuffix("s"): owner}


def _fields(place: Place, entry: Entry) -> dict[str, Any]:
    return {**_owner(place), **entry.extra, **entry.as_json()}


def _line(entry: Entry) -> str:
    label = f"{marked_line(entry.category)}: " if entry.category else ""
    metadata = [f"{name}={value}" for name, value in entry.metadata.items()]
    more = marked_line(", ".join((f"priority {entry.priority}", *entry.tags, *metadata)))
    return f"{bold(marked_line(entry.id))}  {label}{entry.content}  {dim(f'({more})')}"


# --- doctor ---------------------------------------------------------------------------------------


def checks(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Say where the file is, whether it can be read, and what is nearly full."""
    values = MANIFEST.read_settings(environ)
    path: Path = values["AIAML_COMPARTMENTS_FILE"]
    try:
        content = load(path)
    except FileNotFoundError:
        yield Finding(MANIFEST.name, "ok", f"{path}, which the first entry makes")
    except Damaged as error:
        remedy = "correct it; else the next run keeps it under another name, and begins anew"
        yield Finding(MANIFEST.name, "warning", f"{path} is damaged: {error}", remedy)
    except DiskError as error:
        yield Finding(
            MANIFEST.name, "error", str(error), "name another file, or move this one away"
        )
    except OSError as error:
        sentence = str(StoreError("read", path, error))
        yield Finding(MANIFEST.name, "error", sentence, "make it readable, or name another file")
    else:
        size = format_size(path.stat().st_size)
        version = f"format {content.value['format']}"
        yield Finding(MANIFEST.name, "ok", f"{path}, {size}, {version}")
        for place, figures in _counted(content, values):
            characters, limit = figures["characters"], figures["limit"]
            if characters >= FULL * limit:
                remedy = "clear what is no longer needed, or raise AIAML_COMPARTMENT_LIMIT"
                found = f"{_name(place)} holds {characters:,} of {limit:,} characters"
                yield Finding(MANIFEST.name, "warning", found, remedy)
        yield from _secrets(path, values["AIAML_CHECK_SECRETS"])
    aside = path.parent.glob(f"{escape(path.name)}.damaged-*")
    for name in sorted(each.name for each in aside):
        remedy = "take out what you need, then delete it"
        yield Finding(MANIFEST.name, "warning", f"{name} was damaged, and is kept", remedy)


def _secrets(path: Path, check: bool) -> Iterator[Finding]:
    """Say on which line the file seems to hold a secret."""
    if leak := find_leak(path.read_bytes(), check=check):
        found = f"{path}, line {leak.line}, seems to hold {leak.kind}"
        remedy = "`aiaml compartments clear` deletes the entry; change it if it was a real one"
        yield Finding(MANIFEST.name, "warning", found, remedy)
