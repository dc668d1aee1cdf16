"""`dirs` and `--dir`: the memory directories of one person, and the one that is acted on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from aiaml_server.cli import directories
from aiaml_server.cli.context import REMOTE
from aiaml_server.errors import StoreError
from aiaml_server.format.invisible import marked_line
from aiaml_server.settings import BASE, Settings
from aiaml_server.storage.store import Store
from aiaml_server.terminal import as_rows, bold, columns, dim, note, out, out_rows, padded, plural

_USUAL = "aiaml.usual"  # the environment's directory, where another one is chosen


@click.command("dirs")
@as_rows
def dirs(data: str) -> None:
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
    if data:
        out_rows(described(), data)
    else:
        tell_all()


def described() -> list[dict[str, Any]]:
    """Return the person's directories as programs read them, the one in use first."""
    found = []
    for number, each in enumerate(known()):
        said: dict[str, Any] = {"name": each.name, "path": str(each.path), "in_use": number == 0}
        try:
            said["memories"] = len(Store(each.path).names())
        except StoreError as error:
            said |= {"memories": None, "problem": str(error)}
        found.append({**said, "clients": list(each.clients)})
    return found


def tell_all() -> None:
    """Print the person's directories, the one in use first."""
    found = described()
    wide = max(columns(each["name"]) for each in found)
    for each in found:
        used = f"  {', '.join(each['clients'])}" if each["clients"] else ""
        mark = "*" if each["in_use"] else " "
        out(f"{mark} {bold(padded(each['name'], wide))}  {shown(Path(each['path']))}")
        held = marked_line(each.get("problem", "")) or plural(each["memories"], "memory")
        out(dim(f"  {' ' * wide}  {held}{used}"))


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
