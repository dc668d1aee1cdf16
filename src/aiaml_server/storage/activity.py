"""When each client last searched and stored something: counts and times, never any text.

Each client and base has one small file in the user's state directory. An activity that cannot be
recorded is dropped. Two at the same time may count as one.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from aiaml_server.files import make_directory, open_own, read_own
from aiaml_server.identity import state_directory
from aiaml_server.timestamps import now_micros

_MAX_BYTES = 4096
_MAX_NAME = 200  # characters of a client's name


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


def note(base: Path, client: str, what: Literal["asked", "stored"]) -> None:
    """Record that a client asked or stored something now."""
    with suppress(OSError):
        name = client[:_MAX_NAME]
        file = _directory(base) / f"{_digest(name)}.json"
        known = _read(file) or Activity(name)
        count = f"{what}_count"
        changed: Any = {what: now_micros(), count: getattr(known, count) + 1}
        _write(file, known._replace(**changed, client=name))


def read_activity(base: Path) -> list[Activity]:
    """Return the activity of each client of a base, sorted by name."""
    found = []
    with suppress(OSError):
        found = [_read(path) for path in _directory(base).glob("*.json")]
    return sorted((activity for activity in found if activity), key=lambda each: each.client)


def _directory(base: Path) -> Path:
    return state_directory() / "activity" / _base_digest(base)


@lru_cache
def _base_digest(base: Path) -> str:
    return _digest(str(base.resolve()))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _read(path: Path) -> Activity | None:
    """Return the content of a file; None if it is missing or damaged."""
    with suppress(OSError, ValueError, TypeError):
        client, *numbers = json.loads(read_own(path, _MAX_BYTES))
        if all(number is None or isinstance(number, int) for number in numbers):
            return Activity(str(client), *numbers)
    return None


def _write(file: Path, activity: Activity) -> None:
    """Overwrite the file: to rename another over it takes ten times as long on ext4."""
    make_directory(file.parent)
    with FileIO(open_own(file, os.O_WRONLY | os.O_CREAT), "w") as stream:
        stream.write(json.dumps(activity).ljust(_MAX_BYTES).encode())
        stream.truncate()
