"""How long until the first answers, what is installed, and what every conversation pays."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..environments import MissingError
from .texts import Kept, ask, key

ABOUT = (
    "from spawn to the first answer and to the first search among 100 texts; *cold* is with the "
    "program's files out of the system's memory"
)
ZERO = ()
ALONE = True  # times are measured
TEXTS = 100
WARM = 3


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Start once cold, then some times warm."""
    if not hasattr(os, "posix_fadvise"):
        raise MissingError("this system does not forget files when it is asked to")
    kept = Kept()
    server.largest = 300  # type: ignore[misc]
    with server.start(place) as client:
        for _ in range(TEXTS):
            ask(server, client, kept, random, 60)
        told = [json.dumps(each) for each in client.tools()]
        instructions = client.greeting.get("result", {}).get("instructions") or ""
    del server.largest
    installed = _forget(server.home)
    cold = _started(server, place, random)
    warm = [_started(server, place, random) for _ in range(WARM)]
    return {
        "cold": cold[0],
        "cold search": cold[1],
        "warm": [each[0] for each in warm],
        "warm search": [each[1] for each in warm],
        "tools": len(told),
        "characters of tools and instructions": sum(map(len, told)) + len(instructions),
        "megabytes installed": installed,
    }


def _started(server: Adapter, place: Path, random: Random) -> tuple[float, float | None]:
    begun = time.monotonic()
    with server.start(place) as client:
        first = time.monotonic() - begun
        try:
            server.search(client, key(random), ["amber"])
            searched = time.monotonic() - begun
        except NotImplementedError:
            return round(first, 3), None
    return round(first, 3), round(searched, 3)


def _forget(home: Path) -> int:
    """Ask the system to forget the files of a program; return how many megabytes they have."""
    size = 0
    for path in home.rglob("*"):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink():
                size += path.stat().st_size
                with path.open("rb") as stream:
                    os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return round(size / 1e6)
