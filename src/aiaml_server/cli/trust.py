"""`trust`: list the directories that the person trusts, or trust one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from aiaml_server.cli.context import settings
from aiaml_server.errors import NoStateDirectory, StoreError
from aiaml_server.identity import (
    is_trusted,
    is_trusted_base,
    state_directory,
    trust,
    trusted_directories,
)
from aiaml_server.terminal import (
    EXIT_USAGE,
    Exit,
    dim,
    echo,
    echo_json,
    json_option,
    notify,
)

_DATABASE = ".memory"


@click.command("trust")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@json_option
def trust_command(directory: Path | None, json: bool) -> None:
    """List the directories that you trust, or trust one.

    A directory that was copied, unpacked or restored from a backup may hold a repository or a
    database that somebody else made. It is not opened before you trust the directory. Memories in
    it are found in any case.

    DIRECTORY is a memory directory, a project with a `.memory` directory, or a directory of
    another user. Where there is no person to ask, set AIAML_SAFE_DIRECTORIES.

    \b
    Examples:
      aiaml trust
      aiaml trust ~/.aiaml
      aiaml trust ~/work/shop
    """
    if directory is None:
        _list(json=json)
        return
    if not directory.is_dir():
        raise Exit(f"{directory} is not a directory", EXIT_USAGE)
    paths = _paths(directory.resolve())
    for path in paths:
        try:
            trust(path)
        except NoStateDirectory:  # its sentence has a remedy
            raise
        except OSError as error:
            raise StoreError("trust", path, error) from error
        echo(f"Trusted {path}.")
    echo(f"To undo this, delete its line from {state_directory() / 'trusted.jsonl'}.")


def _paths(directory: Path) -> list[Path]:
    """Return the paths to trust for a directory: its database, itself, or both.

    A project of this user needs no trust itself; its database does.
    """
    database = directory / _DATABASE
    if not database.is_dir():
        return [directory]
    is_own = sys.platform == "win32" or directory.stat().st_uid == os.geteuid()
    return [database] if is_own else [directory, database]


def _list(*, json: bool) -> None:
    base = settings().base
    if base.is_dir() and not is_trusted_base(base, settings().remote):
        notify(f"{base} is not trusted, so it is not synced. Trust it with: aiaml trust {base}")
    rows = trusted_directories()
    if json:
        echo_json(
            [{"path": str(row.path), "id": row.id, "trusted": is_trusted(row.path)} for row in rows]
        )
        return
    if not rows:
        notify("No directory is trusted yet.")
    for row in rows:
        echo(str(row.path) if is_trusted(row.path) else f"{row.path}  {dim('(not there now)')}")
