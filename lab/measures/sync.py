"""Two machines with one remote, which is away for a while; servers are killed meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client, GoneError
from ..environments import MissingError
from .texts import Kept, ask

ABOUT = "two machines store, the remote comes and goes, servers are killed; then both have all"
ZERO = ("lost", "torn", "not on both machines", "not started again")
STEPS = 6
LONGEST = 60.0  # seconds until all has to be everywhere
SOON = 1.0


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Let two machines store for some steps."""
    remote, away = place / "remote", place / "away"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    environ = server.syncing(place, remote)
    if environ is None:
        raise MissingError("it does not exchange anything with another machine")
    machines = [place / "one", place / "two"]
    for each in machines:
        each.mkdir()
    figures: Counter[str] = Counter()
    kept = [Kept(), Kept()]
    clients = [server.start(each, environ=environ) for each in machines]
    for _ in range(STEPS):
        _move(random, remote, away, figures)
        for which, client in enumerate(clients):
            ask(server, client, kept[which], random, 60)
            if random.random() < 0.2:
                client.kill()
                client.__exit__(None, None, None)
                figures["kills"] += 1
                clients[which] = server.start(machines[which], environ=environ)
        time.sleep(random.uniform(0, SOON))
    if away.exists():
        away.replace(remote)
    figures["acknowledged"] = sum(each.count() for each in kept)
    begun = time.monotonic()
    figures["not on both machines"] = _missing(server, clients, kept)
    took = round(time.monotonic() - begun, 1)
    for which, client in enumerate(clients):
        figures += kept[which].check(server, client)
        client.__exit__(None, None, None)
    return {**figures, "seconds until both had all": took}


def _move(random: Random, remote: Path, away: Path, figures: Counter[str]) -> None:
    """Take the remote away, or bring it back."""
    if away.exists() and random.random() < 0.6:
        away.replace(remote)
    elif remote.exists() and random.random() < 0.6:
        remote.replace(away)
        figures["outages"] += 1


def _missing(server: Adapter, clients: list[Client], kept: list[Kept]) -> int:
    """Wait until each machine has what the other stored; count what it still has not."""
    missing = 0
    until = time.monotonic() + LONGEST
    while True:
        missing = 0
        for client, theirs in ((clients[0], kept[1]), (clients[1], kept[0])):
            for texts in theirs.acknowledged.values():
                for whole in texts:
                    try:
                        missing += whole not in server.find(client, whole.split()[1])
                    except GoneError:
                        missing += 1
        if not missing or time.monotonic() > until:
            return missing
        time.sleep(0.3)
