"""The commands `aiaml compartments …`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from aiaml_server.errors import AiamlError
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    dim,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    wrap,
    yes_option,
)
from aiaml_server.toolset import Finding
from aiaml_server.toolsets.compartments.settings import COMPARTMENTS, FILE, LIMIT, SESSION

STORED = click.Choice([name for name in COMPARTMENTS if name != "run"])
session_option = click.option("--session", metavar="NAME", help="The session; default: all.")


@click.group("compartments")
@click.option("--file", metavar="PATH", help=f"The file, instead of {FILE.name}.")
@click.pass_context
def compartments(context: click.Context, file: str | None) -> None:
    """Show and clear the entries of sessions and plans.

    \b
    Examples:
      aiaml compartments show
      aiaml compartments --file ~/agent/memory.json clear plan --session invoices
    """
    context.obj = Path(file).expanduser().absolute() if file else FILE.value(os.environ)


@compartments.command("show")
@click.argument("compartment", required=False, type=STORED)
@session_option
@json_option
@click.pass_obj
def show_command(path: Path, compartment: str | None, session: str | None, json: bool) -> None:
    """Show the entries of all sessions and plans.

    \b
    Examples:
      aiaml compartments show
      aiaml compartments show plan --session invoices --json
    """
    rows = _rows(path, compartment, session)
    if json:
        echo_json(rows)
        return
    for row in rows:
        updated = row.get("updated_at", "")
        echo(bold(f"{row['session']} / {row['compartment']}  {row['id']}  {updated}".rstrip()))
        facts = [row.get("category", ""), " ".join(row.get("tags", ()))]
        facts += [f"priority {row['priority']}", f"read {plural(row['access_count'], 'time')}"]
        echo(dim("  ".join(filter(None, facts))))
        echo(f"{wrap(row['content'], 0)}\n")
    if not rows:
        notify(f"There are no entries in {path}.")


@compartments.command("clear")
@click.argument("compartment", type=STORED)
@click.option(
    "--session",
    metavar="NAME",
    envvar=SESSION.name,
    required=True,
    help=f"The session; default: {SESSION.name}.",
)
@yes_option
@click.pass_obj
def clear_command(path: Path, compartment: str, session: str, yes: bool) -> None:
    """Delete all entries of one compartment of a session.

    \b
    Example:
      aiaml compartments clear plan --session invoices
    """
    from aiaml_server.toolsets.compartments.memory import Compartments  # noqa: PLC0415

    count = len(_rows(path, compartment, session))
    if not count:
        notify("There is nothing to clear.")
        return
    if not yes:
        confirm(f"Delete {plural(count, 'entry')}? This cannot be undone.")
    try:
        with Compartments(path, session=session) as memory:
            notify(f"Deleted {len(memory.clear(compartment))}.")
    except AiamlError as error:
        raise Exit(str(error), EXIT_USAGE) from error


def doctor_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what `aiaml doctor` reports of this toolset."""
    from aiaml_server.toolsets.compartments.memory import Compartments  # noqa: PLC0415

    try:
        path = FILE.value(environ)
        limits = LIMIT.value(environ)
        with Compartments(path, session=SESSION.value(environ), limit=limits) as memory:
            usage = memory.usage()
            notices = memory.notices()
    except AiamlError as error:
        yield Finding("compartments", "error", str(error), f"correct it, or change {FILE.name}")
        return
    for notice in notices:
        yield Finding("compartments", "error", notice, "put a copy of the file in its place")
    full = [name for name, part in usage.items() if part.characters > 0.9 * part.limit]
    if full:
        remedy = "clear entries with `aiaml compartments clear`, or raise AIAML_COMPARTMENT_LIMIT"
        yield Finding("compartments", "warning", f"{path}: nearly full: {', '.join(full)}", remedy)
    elif not notices:
        yield Finding("compartments", "ok", f"{path} can be used")


def _rows(path: Path, compartment: str | None, session: str | None) -> list[dict[str, Any]]:
    """Return the entries as JSON, each with its session and compartment."""
    from aiaml_server.toolsets.compartments.file import MemoryFile  # noqa: PLC0415 (pydantic)

    file = MemoryFile(path)
    try:
        sessions = file.read()
    except AiamlError as error:
        raise Exit(str(error), EXIT_USAGE) from error
    if file.notices:
        raise Exit(file.notices[0], EXIT_FAILED)
    rows = []
    for name, parts in sessions.items():
        for part, entries in parts.items():
            if session in (None, name) and compartment in (None, part):
                place = {"session": name, "compartment": part}
                rows += [{**place, **entry.to_json()} for entry in entries.values()]
    return rows
