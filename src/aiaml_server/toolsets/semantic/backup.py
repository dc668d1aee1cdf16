"""Daily backups of a database, in its directory; the last three remain."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path

from aiaml_server.files import make_own_directory, open_own, remove_own, rename_over
from aiaml_server.toolsets.semantic import paths
from aiaml_server.toolsets.semantic.db import Database, translated_errors
from aiaml_server.toolsets.semantic.errors import NotFound

MAX_BACKUPS = 3
MAX_AUTOMATIC_BYTES = 256 * 1024 * 1024  # of a database that a server copies by itself
_REPLACED = "db-replaced-"  # and a number
_UNFINISHED = "db-unfinished"
_PATTERN = "db-[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"


def list_backups(database: Database) -> list[Path]:
    """Return a database's backups, newest first.

    Raises:
        SemanticError: they may not be used, as `Database.check_access` says.
    """
    backups = sorted((database.path.parent / paths.BACKUPS).glob(_PATTERN), reverse=True)
    if backups or database.exists:
        database.check_access()
    return backups


def count_memories(backup: Path) -> int:
    """Return how many memories a backup holds.

    Raises:
        CorruptDatabase: it is damaged.
    """
    with closing(Database(backup, "backup")) as database:
        return int(database.fetch("SELECT count(*) FROM memories")[0][0])


def make_backup(database: Database, *, again: bool = False) -> None:
    """Copy a database, unless nothing was changed since the last copy.

    Args:
        database: its file need not exist.
        again: whether a copy of today is replaced.
    """
    backups = list_backups(database)
    today = database.path.parent / paths.BACKUPS / f"db-{datetime.now():%Y-%m-%d}"  # noqa: DTZ005
    if not database.exists or (today in backups and not again):
        return
    if backups and backups[0].stat().st_mtime > database.path.stat().st_mtime:
        return
    with translated_errors(today):
        make_own_directory(today.parent)
        rename_over(_copy(database, today.parent), today)
        for old in list_backups(database)[MAX_BACKUPS:]:
            remove_own(old)


def replace_all(database: Database) -> None:
    """Delete all copies and make a new backup, so that none holds what was forgotten."""
    backups = list_backups(database)
    directory = database.path.parent
    copies = [
        *directory.glob(f"{_REPLACED}*"),
        directory / _UNFINISHED,
        directory / paths.BACKUPS / _UNFINISHED,
    ]
    with translated_errors(database.path):
        for copy in [*backups, *copies]:
            remove_own(copy)
    if backups:
        make_backup(database)


def restore(database: Database) -> tuple[Path, Path]:
    """Put the newest backup in the place of a database.

    The copy is complete before the database is touched. It is then renamed together with the
    journal of a write that a crash interrupted, and replaces nothing that was set aside before.

    Returns:
        The backup, and the new path of the replaced database.

    Raises:
        NotFound: there is no such backup.
        CorruptDatabase: the backup is damaged.
    """
    backups = list_backups(database)
    if not backups:
        message = f"there is no backup of {database.path}"
        raise NotFound(message, "`aiaml semantic backup` lists them.")
    database.close()
    with translated_errors(database.path), closing(Database(backups[0], database.scope)) as backup:
        backup.check()
        copy = _copy(backup, database.path.parent)
        replaced = _unused_path(database.path.parent)
        for suffix in ("", "-journal"):
            source = database.path.with_name(f"{paths.DATABASE}{suffix}")
            if os.path.lexists(source):
                rename_over(source, replaced.with_name(f"{replaced.name}{suffix}"))
        rename_over(copy, database.path)
    return backups[0], replaced


def _unused_path(directory: Path) -> Path:
    """Return a path for a replaced database at which there is nothing."""
    number = 1
    while list(directory.glob(f"{_REPLACED}{number}*")):
        number += 1
    return directory / f"{_REPLACED}{number}"


def _copy(database: Database, directory: Path) -> Path:
    """Write a compact copy that only the owner can read, under a passing name; return its path."""
    unfinished = directory / _UNFINISHED
    remove_own(unfinished)
    os.close(open_own(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    database.fetch("VACUUM INTO ?", (os.fspath(unfinished),))
    return unfinished
