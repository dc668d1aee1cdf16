"""Where memories are: a person's directory `~/.memory`, and a project's `.memory`."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import UnsafePath
from aiaml_server.files import check_own, make_own_directory, write_atomic
from aiaml_server.storage.journal import BESIDE
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.semantic.failures import DiskError, InvalidProject

NAME = ".memory"
BACKUPS = "backups"  # beside a database
DATABASE = "db"
_BACKUP = re.compile(r"db-(\d{4}-\d\d-\d\d)")
_MOVE = "Move it away, or look at who put it there."


def home() -> Path:
    """Return the person's directory, which need not be there; where it is a link, what is behind.

    Raises:
        InvalidProject: nothing says where the person's files are, or something else is there.
    """
    path = person() / NAME
    real = _real(path) if path.is_symlink() else path
    if real != path and not os.path.lexists(real):
        raise InvalidProject(f"{path} is a link to {real}, which is not there", _MOVE)
    if os.path.lexists(real) and not real.is_dir():
        raise InvalidProject(f"{path} is no directory; memories are kept in one", _MOVE)
    return real


def person() -> Path:
    """Return the person's home directory.

    Raises:
        InvalidProject: nothing says where it is.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise InvalidProject(
            "there is no home directory to keep memories in", "Set HOME (on Windows USERPROFILE)."
        ) from error


def here() -> Path:
    """Return the working directory; the root, which is no project, where it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


def find_project(start: Path, given: str = "", by: str = "the project") -> Path | None:
    """Return a project's top directory; None where there is none.

    It is the one that is named, else the nearest one upwards with a directory `.memory`. The home
    directory is never one, though `.memory` lies in it, nor is the root of all directories.

    Args:
        start: where to look from.
        given: what names it, absolute or beginning with ~; empty for nothing.
        by: what has named it, for the sentence.

    Raises:
        InvalidProject: what is named is no directory, or one that is no project; or what is found
            belongs to another user.
    """
    own = _real(person())
    if given:
        named = Path(os.path.expanduser(given))  # noqa: PTH111 (never raises)
        if not named.is_absolute() or "\0" in given:
            raise InvalidProject(f"{by} is {given!r}; it must be an absolute path")
        real = _real(named)
        if not real.is_dir():
            raise InvalidProject(f"{by} is {given!r}, which is no directory")
        if real in (own, real.parent):
            what = "home" if real == own else "root"
            raise InvalidProject(f"{by} is {given!r}, the {what} directory, which is no project")
        if real.name == NAME:
            raise InvalidProject(
                f"{by} is {given!r}, where memories are kept; the project is {str(real.parent)!r}",
                "Name the directory that .memory lies in.",
            )
        return real
    for each in (real := _real(start), *real.parents):
        if each not in (own, each.parent) and (each / NAME).is_dir():
            opened = (f"{NAME}/{DATABASE}{suffix}" for suffix in ("", *BESIDE))
            if whose := foreign_owner(each, (NAME, *opened)):
                raise InvalidProject(whose, "Have the person trust it, or work elsewhere.")
            return each
    return None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def backups(directory: Path) -> list[Path]:
    """Return the backups in a directory of them, the newest first; none where it is not there."""
    with suppress(OSError):
        names = sorted(filter(_BACKUP.fullmatch, os.listdir(directory)), reverse=True)  # noqa: PTH208
        return [directory / name for name in names]
    return []


def make(directory: Path, *, ignored: bool) -> None:
    """Create a directory of memories, for the owner alone.

    Args:
        directory: `.memory`.
        ignored: whether a `.gitignore` keeps it out of every commit.

    Raises:
        InvalidProject: something else has the name.
        DiskError: it cannot be made.
    """
    ignore = directory / ".gitignore"
    try:
        make_own_directory(directory)
        if ignored and not check_own(ignore):
            write_atomic(ignore, b"*\n")
    except UnsafePath as error:
        raise InvalidProject(str(error), _MOVE) from error
    except OSError as error:
        raise DiskError(f"cannot make {directory}: {error.strerror or error}") from error
