"""`dirs` and `--dir`: the memory directories of one person, and the one that is acted on."""

from __future__ import annotations

import os
from pathlib import Path

import click

from aiaml_server.cli import directories
from aiaml_server.cli.context import REMOTE
from aiaml_server.errors import StoreError
from aiaml_server.format.invisible import marked_line
from aiaml_server.settings import BASE, Settings
from aiaml_server.storage.store import Store
from aiaml_server.terminal import as_json, bold, columns, dim, note, out, out_json, padded, plural

_USUAL = "aiaml.usual"  # the environment's directory, where another one is chosen


@click.command("dirs")
@as_json
def dirs(json: bool) -> None:
    """List your memory directories, and which clients use them.

    They are those that the entries of your clients name (`aiaml install CLIENT --dir DIR` makes
    them), the usual one, and first the one that is in use here. `aiaml --dir NAME VERB` has any
    verb act on one, by its name here or its path.

    \b
    Examples:
      aiaml dirs
      aiaml --dir work list
      aiaml --dir work search dinner
    """
    found = known()
    counts, problems = zip(*(_counted(each.path) for each in found), strict=True)
    if json:
        out_json(
            [
                {
                    "name": each.name,
                    "path": str(each.path),
                    "in_use": number == 0,
                    "memories": counts[number],
                    **({"problem": problems[number]} if problems[number] else {}),
                    "clients": list(each.clients),
                }
                for number, each in enumerate(found)
            ]
        )
        return
    wide = max(columns(each.name) for each in found)
    for number, each in enumerate(found):
        used = f"  {', '.join(each.clients)}" if each.clients else ""
        mark = "*" if number == 0 else " "
        out(f"{mark} {bold(padded(each.name, wide))}  {shown(each.path)}")
        held = marked_line(problems[number]) or plural(counts[number], "memory")
        out(dim(f"  {' ' * wide}  {held}{used}"))


def _counted(path: Path) -> tuple[int | None, str]:
    """Return how many memories a directory may hold, and why that cannot be told."""
    try:
        return len(Store(path).names()), ""
    except StoreError as error:
        return None, str(error)


def known() -> list[directories.Directory]:
    """Return the person's directories, the one in use first."""
    in_use = Settings.from_environ(os.environ).base
    context = click.get_current_context(silent=True)  # none at the Tab key
    usual = context.meta.get(_USUAL) if context else None
    return directories.known(in_use, *([usual] if usual else []))


def shown(path: Path) -> str:
    """Return a path as a person writes it: from their home, where it is in there."""
    home = Path.home()
    inside = home != path and path.is_relative_to(home)
    return marked_line(f"~{os.sep}{path.relative_to(home)}" if inside else str(path))


def choose(word: str) -> None:
    """Have all that follows act on the directory that a person names.

    A remote that the environment names is that of the environment's directory; another one is never
    exchanged with it.
    """
    base = Settings.from_environ(os.environ).base
    path = directories.found(word, known())
    click.get_current_context().meta[_USUAL] = base
    os.environ[BASE] = str(path)
    if os.environ.get(REMOTE) and path.resolve() != base.resolve():
        del os.environ[REMOTE]
        note(f"{REMOTE} is for {shown(base)}, so it is not used for {shown(path)}.")


def tell() -> None:
    """Say which directory is acted on, where there are several."""
    first, *others = known()
    if others:
        note(dim(f"In {first.name} ({shown(first.path)})."))
