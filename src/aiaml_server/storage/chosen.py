"""The remote that a person has chosen for a directory, once for the servers of all clients.

It is in the user's state directory, under the name that only this user can give the directory, so
that nobody who hands a directory over can choose where its memories go.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import NoStateDirectory
from aiaml_server.files import check_own, make_directory, read_own, replace_atomic
from aiaml_server.identity import state_directory
from aiaml_server.storage.derived import name_of

_MOST = 1 << 16  # bytes
_DIRECTORY = "remotes"


def chosen_remote(base: Path) -> str:
    """Return the address that was chosen for a base directory; empty where none was."""
    with suppress(OSError, NoStateDirectory, UnicodeDecodeError):
        path = state_directory() / _DIRECTORY / name_of(base)
        if check_own(path, strict=True):
            return read_own(path, _MOST).decode("utf-8")
    return ""


def choose_remote(base: Path, address: str) -> None:
    """Note the address that all servers of this user exchange a base directory with.

    Raises:
        Nowhere: this user has no place for it.
        OSError: the disk refuses, or there is no such directory.
    """
    place = state_directory() / _DIRECTORY
    make_directory(place)
    replace_atomic(place / name_of(base), address.encode(), 0o600)
