"""Copies of a database in `backups` beside it, by SQLite's own means: one a day, the last three.

They are made by a server behind its first answers, where something was changed since the last one,
and by a person. What is forgotten is in none of them: they are made anew then.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path

from aiaml_server.files import make_own_directory, open_own, remove_own, rename_over
from aiaml_server.toolsets.semantic import place
from aiaml_server.toolsets.semantic.database import Database, rows
from aiaml_server.toolsets.semantic.failures import Damaged, DiskError, NotFound

GENERATIONS = 3
MOST_UNASKED = 256 * 1024 * 1024  # bytes of a database that a server backs up by itself
_UNFINISHED = "db-unfinished"


def directory(database: Database) -> Path:
    """Return where a database's backups are."""
    return database.path.parent / place.BACKUPS


def made(database: Database) -> list[Path]:
    """Return a database's backups, the newest first."""
    return place.backups(directory(database))


def make(database: Database, *, anew: bool = False) -> Path | None:
    """Make a backup, unless there is one of today or nothing was changed since the last one.

    Args:
        database: which.
        anew: also then; the others are deleted.

    Returns:
        The file; None where none was made.

    Raises:
        Busy, Damaged, DiskError, Unavailable: see `Database.reading`.
    """
    held = made(database)
    today = directory(database) / f"db-{datetime.now():%Y-%m-%d}"  # noqa: DTZ005 (the person's day)
    if not database.there:
        return None
    if held and not anew:
        is_newer = held[0].stat().st_mtime > database.path.stat().st_mtime
        if is_newer or held[0] >= today:
            return None
    target = directory(database) / _UNFINISHED
    try:
        make_own_directory(target.parent)
        remove_own(target)
        _copy(database, target)
        rename_over(target, today)
        keep = 1 if anew else GENERATIONS
        for each in made(database)[keep:]:
            remove_own(each)
    except OSError as error:
        raise DiskError(f"cannot write {target}: {error.strerror or error}") from error
    return today


def restore(database: Database, day: str = "") -> tuple[Path, Path | None]:
    """Put a backup in the place of a database, which is moved aside.

    Args:
        database: which.
        day: of the backup, such as 2026-11-24; without, the newest.

    Returns:
        The backup, and where the database is now that was there.

    Raises:
        NotFound: there is no such backup.
        Damaged: it cannot be read.
        DiskError: the disk refused.
    """
    held = [each for each in made(database) if not day or each.name == f"db-{day.strip()}"]
    if not held:
        what = f"of {day.strip()}" if day else "of it yet"
        raise NotFound(
            f"there is no backup {what} in {directory(database)}",
            "`aiaml semantic backup --list` tells those that there are.",
        )
    backup = held[0]
    with closing(Database(backup, database.name, database.project)) as copy, copy.reading() as sql:
        if rows(sql, "PRAGMA integrity_check(1)") != [("ok",)]:
            raise Damaged(f"{backup} is damaged")
    aside = None
    target = directory(database) / _UNFINISHED
    database.close()
    try:
        remove_own(target)
        with closing(Database(backup, database.name, database.project)) as copy:
            _copy(copy, target)
        if database.path.exists():
            aside = database.path.with_name(f"db-replaced-{datetime.now():%Y%m%d-%H%M%S}")  # noqa: DTZ005
            rename_over(database.path, aside)
        for journal in ("-journal", "-wal", "-shm"):
            remove_own(database.path.with_name(database.path.name + journal))
        rename_over(target, database.path)
    except OSError as error:
        raise DiskError(f"cannot restore {database.path}: {error.strerror or error}") from error
    return backup, aside


def _copy(database: Database, target: Path) -> None:
    import apsw  # noqa: PLC0415 (an extra)

    os.close(open_own(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    with database.reading() as sql, closing(apsw.Connection(os.fspath(target))) as copy:
        copy.execute("PRAGMA journal_mode = OFF").fetchall()
        with copy.backup("main", sql, "main") as step:
            step.step(-1)
