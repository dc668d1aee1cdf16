"""`~/.memory/logs`: which calls failed, without a word of what memories say."""

from __future__ import annotations

import os
import traceback
from contextlib import suppress
from io import FileIO
from pathlib import Path

from aiaml_server.errors import AiamlError
from aiaml_server.files import check_own, make_own_directory, open_own, read_own, rename_over
from aiaml_server.timestamps import format_timestamp, now_micros

NAME = "semantic.log"
MOST = 256 * 1024  # bytes of a file; there is one before it


def record(home: Path, doing: str, error: BaseException) -> None:
    """Note that something failed; where that cannot be noted, nothing happens.

    Args:
        home: the person's directory, `~/.memory`; not made for this.
        doing: the tool or the hook.
        error: its kind and its places in the code are noted, never its words.
    """
    if not home.is_dir():
        return
    kind = type(error).__name__
    if not isinstance(error, AiamlError):
        places = traceback.extract_tb(error.__traceback__)[-8:]
        kind += "".join(f" {Path(each.filename).name}:{each.lineno}" for each in places)
    moment = format_timestamp(now_micros(), "seconds")
    line = f"{moment} {os.getpid()} {doing} {kind}\n".encode("ascii", "backslashreplace")
    with suppress(OSError):
        directory = home / "logs"
        make_own_directory(directory)
        path = directory / NAME
        if check_own(path) and path.stat().st_size + len(line) > MOST:
            rename_over(path, path.with_name(f"{NAME}.1"))
        descriptor = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with FileIO(descriptor, "a") as stream:
            stream.write(line)


def last(home: Path, doing: str) -> str:
    """Return when something failed last, and by what kind of failure; empty where it never has."""
    with suppress(OSError, AiamlError):
        told = read_own(home / "logs" / NAME, 2 * MOST).decode("ascii", "replace")
        for line in reversed(told.splitlines()):
            moment, _, rest = line.partition(" ")
            words = rest.split()
            if len(words) > 2 and words[1] == doing:
                return f"{moment}, {words[2]}"
    return ""
