"""Where memories are: the person's `~/.memory`, and the `.memory` of a project."""

from __future__ import annotations

import os
from pathlib import Path

from aiaml_server.files import check_own, make_own_directory, replace_atomic
from aiaml_server.toolsets.semantic.errors import InvalidProject

DIRECTORY = ".memory"
DATABASE = "db"
BACKUPS = "backups"
MODELS = "models"


def global_directory() -> Path:
    """Return the person's `~/.memory`, which need not exist; a link of the person's is followed.

    Raises:
        InvalidProject: there is no home directory, or something else has the name.
    """
    try:
        path = Path.home() / DIRECTORY
    except RuntimeError as error:
        raise InvalidProject("there is no home directory", "Set HOME (USERPROFILE).") from error
    real = Path(os.path.realpath(path))
    if os.path.lexists(path) and not real.is_dir():
        message = f"{path} is not a directory; memories are stored in one"
        raise InvalidProject(message, "Move it away, or find out who put it there.")
    return real


def working_directory() -> Path:
    """Return the working directory; the root, which is never a project, if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep)


def find_project(start: Path, named: str = "", setting: str = "the project") -> Path | None:
    """Return the top directory of a project, or None.

    It is the named one, else the nearest directory upwards that has a `.memory`. The home
    directory and the root are never projects.

    Args:
        start: where the search begins.
        named: an absolute path, which may begin with `~`; empty for none.
        setting: what named it, for the message.

    Raises:
        InvalidProject: the named directory cannot be a project.
    """
    home = Path(os.path.realpath(Path.home()))
    top = Path(os.path.realpath(os.path.expanduser(named) if named else start))  # noqa: PTH111
    if named:
        is_absolute = named.startswith("~") or Path(named).is_absolute()
        if is_absolute and top.is_dir() and top not in (home, top.parent):
            return top
        raise InvalidProject(
            f"{setting} is {named!r}; it must be an absolute path of a project's directory",
            "Name the directory that contains .memory; it cannot be the home directory.",
        )
    for directory in (top, *top.parents):
        is_project = directory not in (home, directory.parent)
        if is_project and (directory / DIRECTORY).is_dir():
            return directory
    return None


def make_memory_directory(directory: Path, *, ignored_by_git: bool) -> None:
    """Create a `.memory` for the owner alone.

    Args:
        directory: its path.
        ignored_by_git: whether it gets a `.gitignore` that keeps it out of commits.

    Raises:
        UnsafePath: something else has the name.
        OSError: it cannot be created.
    """
    ignore = directory / ".gitignore"
    make_own_directory(directory)
    if ignored_by_git and not check_own(ignore):
        replace_atomic(ignore, b"*\n")
