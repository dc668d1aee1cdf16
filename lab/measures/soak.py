"""Used for long: memory, descriptors and times stay what they were."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from ..adapter import Adapter
from ..client import Client, RefusedError
from ..environments import MissingError
from .kill import again
from .texts import Kept, key, text

ABOUT = "stores, searches and reads without pause; memory, descriptors and times by the way"
ZERO = ("lost", "torn", "descriptors more", "not started again")
ALONE = True  # times are measured
SAMPLES = 20
KIND = 300  # characters of a text: what agents store
LENGTH = float(os.environ.get("LAB_SOAK") or 10)  # seconds


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Use one server for some time."""
    if not Path("/proc/self/fd").exists():
        raise MissingError("no /proc, which tells memory and descriptors")
    kept = Kept()
    samples: list[dict[str, Any]] = []
    stored = 0
    with server.start(place) as client:
        for _ in range(5):
            _turn(server, client, kept, random)
        begun = time.monotonic()
        for each in range(1, SAMPLES + 1):
            times = [_turn(server, client, kept, random)]
            while time.monotonic() - begun < LENGTH * each / SAMPLES:
                times.append(_turn(server, client, kept, random))
            stored += len(times)
            samples.append(
                {
                    "after": round(time.monotonic() - begun, 1),
                    "texts": stored,
                    "memory": _memory(client.process.pid),
                    "descriptors": _descriptors(client.process.pid),
                    "store": round(median(took[0] for took in times) * 1000, 2),
                    "search": round(median(took[1] for took in times) * 1000, 2),
                }
            )
    figures: dict[str, Any] = {"turns": stored, "acknowledged": kept.count()}
    settled = max(each["descriptors"] for each in samples[: SAMPLES // 2])
    last = min(each["descriptors"] for each in samples[-3:])
    figures["descriptors more"] = max(0, last - settled)
    for name in ("memory", "store", "search"):
        figures[f"{name} at first"] = samples[1][name]
        figures[f"{name} at last"] = samples[-1][name]
    return {**figures, **again(server, place, kept), "samples": samples}


def _turn(server: Adapter, client: Client, kept: Kept, random: Random) -> tuple[float, float]:
    """Store a text and search it; return how long each took."""
    name = key(random)
    whole = text(random, name, min(KIND, server.largest))
    begun = time.monotonic()
    handle = server.keep(client, name, whole)
    between = time.monotonic()
    try:
        server.search(client, name, [name])
    except (NotImplementedError, RefusedError):
        server.read(client, handle)
    if kept.count() < 200:
        kept.add(handle, whole)
    return between - begun, time.monotonic() - between


def _memory(pid: int) -> float:
    """Return the resident megabytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
