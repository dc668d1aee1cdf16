"""Several servers on one store, as several clients start them."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client
from . import texts
from .kill import again
from .texts import Kept, ask

ABOUT = "2, 4, 16 servers on one store write at once; each must then see what the others stored"
ZERO = ("lost", "torn", "not seen by another", "not started again")
SERVERS = (2, 4, 16)
TEXTS = int(os.environ.get("LAB_TEXTS") or 5)  # by each server


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Let as many servers write as this round's number says."""
    count = SERVERS[number % len(SERVERS)]
    figures: Counter[str] = Counter({"servers": count})
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        first = stack.enter_context(server.start(place))
        others = list(pool.map(lambda _: server.start(place), range(count - 1)))
        clients = [first, *(stack.enter_context(each) for each in others)]
        stores = [Kept() for _ in clients]
        ours = Kept()
        ask(server, first, ours, random, 60)
        for client in clients:  # so that each has read the store before the others write
            _unseen(server, client, ours)
        seeds = [Random(random.random()) for _ in clients]
        begun = time.monotonic()
        list(pool.map(_write, clients, stores, seeds, [server] * count))
        took = time.monotonic() - begun
        for each in stores:
            ours.doubtful |= each.doubtful
            for handle, wholes in each.acknowledged.items():
                for whole in wholes:
                    ours.add(handle, whole)
        figures["acknowledged"] = ours.count()
        figures["refused"] = 1 + count * TEXTS - ours.count()
        until = time.monotonic() + texts.PATIENCE
        while (unseen := _unseen(server, first, ours)) and time.monotonic() < until:
            time.sleep(0.2)
        figures["not seen by another"] = unseen
    found = again(server, place, ours)
    figures += found
    figures["not seen by another"] -= min(found["lost"], unseen)
    return {**figures, "seconds": round(took, 3)}


def _write(client: Client, kept: Kept, random: Random, server: Adapter) -> None:
    for _ in range(TEXTS):
        ask(server, client, kept, random, 60)


def _unseen(server: Adapter, client: Client, kept: Kept) -> int:
    """Count what a search in this server does not find of what any of them stored."""
    missing = 0
    for wholes in kept.acknowledged.values():
        for whole in wholes:
            try:
                missing += whole not in server.find(client, whole.split()[1])
            except NotImplementedError:
                return 0
    return missing
