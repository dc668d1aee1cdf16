"""Killed at any moment: what was acknowledged is there afterwards, whole."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client, GoneError
from .texts import Kept, ask, key, settle, text

ABOUT = (
    "of five texts that are sent at once, kill -9 comes while one is stored, at random, again and "
    "again on one store; everything is read back after each 25 kills and at the end"
)
ZERO = ("lost", "torn", "not started again")
KILLS = int(os.environ.get("LAB_KILLS") or 3)  # in a round
BURST = 5  # texts in flight
BETWEEN = 25  # kills between two looks at everything


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Kill a server some times on one store."""
    figures: Counter[str] = Counter()
    found: Counter[str] = Counter()
    kept = Kept()
    one = 0.05  # seconds that one of the texts takes
    while figures["kills"] < KILLS and not found:  # what is lost is counted once
        try:
            client = server.start(place)
        except GoneError:
            found["not started again"] += 1
            break
        with client:
            ask(server, client, kept, random, 60)
            begun = time.monotonic()
            sent = [_send(server, client, kept, random) for _ in range(BURST)]
            before = random.randrange(BURST)
            for each in sent[:before]:
                settle(server, client, kept, each, 60)
            one = (time.monotonic() - begun) / before if before else one
            time.sleep(random.uniform(0, 2 * one))
            client.process.kill()
            for each in sent[before:]:
                settle(server, client, kept, each, 60)
        figures["kills"] += 1
        if figures["kills"] in (KILLS, *range(BETWEEN, KILLS, BETWEEN)):
            found = +again(server, place, kept)
    figures["acknowledged"] = kept.count()
    return {**figures, **found}


def _send(server: Adapter, client: Client, kept: Kept, random: Random) -> tuple[str, str, int]:
    """Send a text of any size to be stored; nobody knows yet whether it is."""
    name = key(random)
    whole = text(random, name, random.randint(60, server.largest))
    kept.doubtful[name] = whole
    return name, whole, client.start(*server.store(name, whole))


def again(server: Adapter, place: Path, kept: Kept) -> Counter[str]:
    """Start once more and check all that was kept."""
    try:
        with server.start(place) as client:
            return kept.check(server, client)
    except GoneError:
        return Counter({"not started again": 1, "lost": kept.count()})
