"""Killed at any moment: what was acknowledged is there afterwards, whole."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import GoneError
from .texts import Kept, ask, key, note, settle, text

ABOUT = "kill -9 at a random moment of writing, start again, read everything back"
ZERO = ("lost", "torn", "not started again")
LIVES = 4


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Kill a server some times on one store."""
    figures: Counter[str] = Counter()
    kept = Kept()
    for _ in range(LIVES):
        try:
            client = server.start(place)
        except GoneError:
            figures["not started again"] += 1
            break
        with client:
            begun = time.monotonic()
            ask(server, client, kept, random, 60)
            once = time.monotonic() - begun
            until = time.monotonic() + random.uniform(0, max(0.05, 6 * once))
            while True:
                name = key(random)
                whole = text(random, name, random.randint(60, server.largest))
                sent = (name, whole, client.start(*server.store(name, whole)))
                if not settle(server, client, kept, sent, max(0.0, until - time.monotonic())):
                    break
            late = client.kill()
            if sent[2] in late:
                note(server, kept, sent, late[sent[2]])
        figures["kills"] += 1
    figures["acknowledged"] = kept.count()
    figures += Counter(again(server, place, kept))
    return dict(figures)


def again(server: Adapter, place: Path, kept: Kept) -> Counter[str]:
    """Start once more and check all that was kept."""
    try:
        with server.start(place) as client:
            return kept.check(server, client)
    except GoneError:
        return Counter({"not started again": 1, "lost": kept.count()})
