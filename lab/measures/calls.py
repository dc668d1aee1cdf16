"""Killed at every system call by which it changes its store, one after another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from .. import trace
from ..adapter import Adapter
from ..client import GoneError
from .kill import again
from .texts import Kept, ask

ABOUT = "kill -9 as each system call that changes the store is entered (strace), in any order"
ZERO = ("lost", "torn", "not started again")
AT_ONCE = 3
_learned: dict[tuple[str, str], list[tuple[str, int]]] = {}


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Kill at a few of the calls; later rounds go on with others."""
    trace.need()
    figures: Counter[str] = Counter()
    kept = Kept()
    order = learned(server, place.with_name(f"{place.name}-learning"))
    for each in range(AT_ONCE):
        name, which = order[(number * AT_ONCE + each) % len(order)]
        try:
            client = server.start(place)
        except GoneError:
            break
        with client:
            ask(server, client, kept, random, 60)
            inject = f"inject={name}:signal=KILL:when={which}"
            log = place.with_name(f"{place.name}.trace")
            with trace.attached(client.process.pid, log, name, "-e", inject):
                figures["killed"] += not ask(server, client, kept, random, 60, server.largest)
        figures["calls"] += 1
    figures["acknowledged"] = kept.count()
    figures += again(server, place, kept)
    return {**figures, "of": len(order)}


def learned(server: Adapter, place: Path) -> list[tuple[str, int]]:
    """Return the calls that storing makes on the store, as (name, which of that name), shuffled."""
    which = (server.name, getattr(server, "fault", ""))
    if which not in _learned:
        place.mkdir(parents=True)
        log = place.with_name(f"{place.name}.trace")
        with server.start(place) as client:
            kept, random = Kept(), Random(0)
            ask(server, client, kept, random, 60)
            with trace.attached(client.process.pid, log, trace.CHANGES):
                ask(server, client, kept, random, 60, server.largest)
        counts: Counter[tuple[str, str]] = Counter()
        found: set[tuple[str, int]] = set()
        for call in trace.calls(log):
            counts[call.thread, call.name] += 1
            if str(place) in call.text:
                found.add((call.name, counts[call.thread, call.name]))
        _learned[which] = sorted(found)
        Random(0).shuffle(_learned[which])
    return _learned[which]
