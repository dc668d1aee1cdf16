"""When each client last searched and stored something: counts and times, never any text.

Each client has two files for each base, in the user's state directory: `CLIENT.asked` and
`CLIENT.stored`. A byte is appended each time, so the size is the count and the time of the last
change is the time. On Windows, two at the same time may count as one. An activity that cannot be
recorded is dropped.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote

from aiaml_server.files import make_directory, open_own
from aiaml_server.identity import state_directory

_MAX_NAME = 200  # characters of a client's name, quoted


class Activity(NamedTuple):
    """The recorded activity of a client.

    Attributes:
        client: its name, as the client gave it.
        asked: when it last asked, in microseconds since 1970; None for never.
        stored: when it last stored.
        asked_count: how often it has asked.
        stored_count: how often it has stored.
    """

    client: str
    asked: int | None = None
    stored: int | None = None
    asked_count: int = 0
    stored_count: int = 0


def record_activity(base: Path, client: str, what: Literal["asked", "stored"]) -> None:
    """Record that a client asked or stored something now."""
    line = " ".join(client.split()) or "unnamed"
    name = quote(line, safe="", errors="replace")[:_MAX_NAME]
    with suppress(OSError):
        file = _directory(base) / f"{name}.{what}"
        make_directory(file.parent)
        with FileIO(open_own(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as stream:
            stream.write(b".")


def read_activity(base: Path) -> list[Activity]:
    """Return the activity of each client of a base, sorted by name."""
    found: dict[str, Activity] = {}
    with suppress(OSError):
        for path in _directory(base).iterdir():
            status = path.lstat()
            name, _, what = path.name.rpartition(".")
            client = unquote(name)
            if what in ("asked", "stored") and stat.S_ISREG(status.st_mode):
                changed: Any = {what: status.st_mtime_ns // 1000, f"{what}_count": status.st_size}
                found[client] = found.get(client, Activity(client))._replace(**changed)
    return sorted(found.values(), key=lambda each: each.client)


def _directory(base: Path) -> Path:
    return state_directory() / "activity" / _digest(base)


@lru_cache
def _digest(base: Path) -> str:
    return hashlib.blake2b(os.fsencode(base.resolve()), digest_size=16).hexdigest()
