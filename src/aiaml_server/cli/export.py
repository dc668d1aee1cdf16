"""`export`: memories in one file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered
from aiaml_server.errors import MalformedFile, StoreError
from aiaml_server.files import write_atomic
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_USAGE,
    Exit,
    echo_bytes,
    echo_json,
    json_option,
    notify,
    plural,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

FORMATS = {"jsonl": ".jsonl", "okf": ".okf.zip", "zip": ".zip", "book": ".md", "site": ".html"}
"""Each format, and the ending that stands for it."""


@click.command("export")
@click.option("--to", "target", required=True, metavar="FILE", help="Where to; `-` is the output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="Else by FILE's ending: .jsonl, .zip, .okf.zip, .md (a book) or .html (a page).",
)
@click.option(
    "--by",
    type=click.Choice(["month", "topic"]),
    default="month",
    show_default=True,
    help="The chapters of a book.",
)
@click.option("--force", "-f", is_flag=True, help="Replace FILE if it exists.")
@filtered
@json_option
def export(target: str, form: str | None, by: str, force: bool, json: bool, **options: Any) -> None:
    """Write memories to one file, to keep, to read or to take along.

    jsonl is what `aiaml import` takes back exactly; zip holds the files byte for byte; okf is a
    bundle of the Open Knowledge Format, for other programs, that `aiaml import` takes back exactly
    as well; book is one markdown document; site is one web page with a search, which needs nothing
    else.

    \b
    Examples:
      aiaml export --to memories.jsonl
      aiaml export --to food.html --topic food --since 2026-01-01
      aiaml export --to - --format book --by topic
    """
    form = form or _format(target)
    if json and target == "-":
        raise Exit("--json tells of a file; `--to -` writes the memories themselves", EXIT_USAGE)
    path = None if target == "-" else Path(target).resolve()
    wanted = Filter.of(**options)
    with opened() as bank:
        _check_target(path, form, bank, remedy="" if force else "`--force` replaces it")
        found = list(wanted.among(bank.newest()))
        if not found:
            why = "no memory is like that" if wanted else "there are no memories yet"
            raise Exit(f"{why}; nothing was written")
        data = _data(form, bank, found, by_topic=by == "topic")
        _write(path, data)
    if json:
        echo_json({"memories": len(found), "format": form, "file": str(path)})
    elif path:
        notify(f"Wrote {plural(len(found), 'memory')} to {target}.")


def write_before(target: str, bank: MemoryBank, found: Sequence[tuple[str, Memory]]) -> None:
    """Write memories to a file that `import` takes back, before they are forgotten.

    Raises:
        Ended: the file is there already, or of another format; nothing was written.
        StoreError: it cannot be written.
    """
    form = Path(target).suffix.lower().removeprefix(".")
    if form not in ("jsonl", "zip"):
        raise Exit(f"{target} must be a file that ends in .jsonl or .zip", EXIT_USAGE)
    path = Path(target).resolve()
    _check_target(path, form, bank, remedy="name another")
    _write(path, _data(form, bank, found, by_topic=False))


def _format(target: str) -> str:
    if target == "-":
        return "jsonl"
    for form, ending in FORMATS.items():
        if Path(target).name.lower().endswith(ending):
            return form
    endings = ", ".join(FORMATS.values())
    raise Exit(f"{target} ends in none of {endings}; `--format` says what it is to be", EXIT_USAGE)


def _check_target(path: Path | None, form: str, bank: MemoryBank, *, remedy: str) -> None:
    """See that a file can be written; one that is there, only where there is no `remedy` for it."""
    own = bank.base.resolve()
    if path is None:
        if form in ("zip", "okf") and sys.stdout.isatty():
            raise Exit("a zip is nothing for a terminal; `--to FILE` names a file", EXIT_USAGE)
    elif own in path.parents:
        raise Exit(f"{path} lies in your memory directory; name a file elsewhere", EXIT_USAGE)
    elif path.exists() and not path.is_file():
        raise Exit(f"{path} is there and is no file; name another", EXIT_FAILED)
    elif path.exists() and remedy:
        raise Exit(f"{path} is there already; {remedy}", EXIT_FAILED)


def _data(
    form: str, bank: MemoryBank, found: Sequence[tuple[str, Memory]], *, by_topic: bool
) -> Iterable[bytes]:
    from aiaml_server.exchange import shapes  # noqa: PLC0415 (only this verb's)

    newest = [memory for _, memory in found]
    if form == "zip":
        try:
            return [shapes.archive(bank.directory, [name for name, _ in found])]
        except (OSError, MalformedFile) as error:
            raise Exit(f"a memory changed meanwhile ({error}); try again", EXIT_FAILED) from error
    if form == "okf":
        try:
            return [shapes.bundle(found)]
        except MalformedFile as error:
            raise Exit(f"{error}; nothing was written", EXIT_FAILED) from error
    if form == "site":
        from aiaml_server.exchange import page  # noqa: PLC0415 (only this form's)

        return page.page(newest)
    if form == "book":
        return shapes.book(newest[::-1], by_topic=by_topic)
    return shapes.lines(newest[::-1])


def _write(path: Path | None, data: Iterable[bytes]) -> None:
    if path is None:
        echo_bytes(data)
        return
    try:
        write_atomic(path, b"".join(data))
    except OSError as error:
        raise StoreError("write", path, error) from error
