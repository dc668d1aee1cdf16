"""Which memories a person has asked, through a verb of ours, to forget.

Their deletion needs no second word, however many they are. The names stand in a file from the
moment of the deletion to its commit.
"""

from __future__ import annotations

import os
from contextlib import suppress
from io import FileIO
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import open_own, read_regular

_NAME = ".sync-forget"
_MOST = 8 * 1024 * 1024


def record(base: Path, name: str) -> None:
    """Note that the file `name` in `files/` was deleted on a person's word."""
    with suppress(OSError):  # then the deletion may have to be confirmed, and nothing is lost
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with FileIO(open_own(base / _NAME, flags), "a") as file:
            file.write(os.fsencode(name) + b"\0")


def recorded(base: Path) -> set[bytes]:
    """Return the paths of the files that were deleted on a person's word."""
    try:
        names = read_regular(str(base / _NAME), _MOST).split(b"\0")
    except (OSError, MalformedFile):
        return set()
    return {b"files/" + name for name in names if name}


def clear(base: Path, paths: set[bytes]) -> None:
    """Note that the deletion of these is committed; where more were asked for since, later."""
    if paths == recorded(base):
        with suppress(OSError):
            (base / _NAME).unlink()
