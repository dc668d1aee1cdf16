"""Machines with one remote, which is away for a while; their clocks differ, servers are killed."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from .. import skew
from ..adapter import Adapter
from ..client import Client, GoneError
from ..environments import MissingError
from .texts import Kept, ask

ABOUT = (
    "two machines, then five, store; the remote comes and goes, servers are killed, clocks are "
    "wrong by up to a day (where a C compiler is; else zones differ); then each has all"
)
ZERO = ("lost", "torn", "not on all machines", "not started again")
MACHINES = (2, 5)
STEPS = 6
LONGEST = 60.0  # seconds until all has to be everywhere
SOON = 1.0
DAY = 24 * 60 * 60


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Let machines store for some steps."""
    remote, away = place / "remote", place / "away"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    environ = server.syncing(place, remote)
    if environ is None:
        raise MissingError("it does not exchange anything with another machine")
    count = MACHINES[number % len(MACHINES)]
    figures: Counter[str] = Counter({"machines": count})
    machines = [place / f"machine-{which}" for which in range(count)]
    environs = [{**environ, **_clock(random, figures)} for _ in machines]
    kept = [Kept() for _ in machines]
    clients = []
    for each, its in zip(machines, environs, strict=True):
        each.mkdir()
        clients.append(server.start(each, environ=its))
    for _ in range(STEPS):
        _move(random, remote, away, figures)
        for which, client in enumerate(clients):
            ask(server, client, kept[which], random, 60)
            if random.random() < 0.2:
                client.kill()
                client.__exit__(None, None, None)
                figures["kills"] += 1
                clients[which] = server.start(machines[which], environ=environs[which])
        time.sleep(random.uniform(0, SOON))
    if away.exists():
        away.replace(remote)
    figures["acknowledged"] = sum(each.count() for each in kept)
    begun = time.monotonic()
    figures["not on all machines"] = _missing(server, clients, kept, LONGEST * count / 2)
    took = round(time.monotonic() - begun, 1)
    for which, client in enumerate(clients):
        figures += kept[which].check(server, client)
        client.__exit__(None, None, None)
    return {**figures, "seconds until all had all": took}


def _clock(random: Random, figures: Counter[str]) -> Mapping[str, str]:
    """Return an environment in which a machine's clock is wrong, and its zone another."""
    moved = skew.by(random.randint(-DAY, DAY))
    figures["clocks moved"] += bool(moved)
    return {**moved, "TZ": f"LAB{random.randint(-11, 11)}"}


def _move(random: Random, remote: Path, away: Path, figures: Counter[str]) -> None:
    """Take the remote away, or bring it back."""
    if away.exists() and random.random() < 0.6:
        away.replace(remote)
    elif remote.exists() and random.random() < 0.6:
        remote.replace(away)
        figures["outages"] += 1


def _missing(
    server: Adapter, clients: Sequence[Client], kept: Sequence[Kept], seconds: float
) -> int:
    """Wait until each machine has what the others stored; count what they still have not."""
    until = time.monotonic() + seconds
    wanted = [
        (client, whole)
        for mine, client in enumerate(clients)
        for theirs, each in enumerate(kept)
        if mine != theirs
        for texts in each.acknowledged.values()
        for whole in texts
    ]
    while True:
        wanted = [(client, whole) for client, whole in wanted if not _has(server, client, whole)]
        if not wanted or time.monotonic() > until:
            return len(wanted)
        time.sleep(0.3)


def _has(server: Adapter, client: Client, whole: str) -> bool:
    try:
        return whole in server.find(client, whole.split()[1])
    except GoneError:
        return False
