"""Several servers on one store, as several clients start them."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client
from . import person, texts
from .kill import again
from .texts import Kept, ask

ABOUT = (
    "2, 4, 16 servers on one store write at once; after each text, each finds and reads one of its "
    "own, and in the end what the others stored; where each text is a file, a person edits, "
    "deletes and adds some meanwhile (*by hand*), with git"
)
ZERO = (
    "lost", "torn", "own text not found", "not seen by another", *person.ZERO, "not started again",
)  # fmt: skip
SERVERS = (2, 4, 16)
TEXTS = int(os.environ.get("LAB_TEXTS") or 5)  # by each server
SIZE = 0 if TEXTS < 100 else 300  # characters of a text; 0 for any
LOOKED_FOR = 1000  # texts that a server is asked to find, at most


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Let as many servers write as this round's number says."""
    count = SERVERS[number % len(SERVERS)]
    figures: Counter[str] = Counter({"servers": count})
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        first = stack.enter_context(server.start(place))
        others = list(pool.map(lambda _: server.start(place), range(count - 1)))
        clients = [first, *(stack.enter_context(each) for each in others)]
        stores = [Kept() for _ in clients]
        ask(server, first, stores[0], random, 60)
        for client in clients:  # so that each has read the store before the others write
            _unseen(server, client, list(stores[0].wholes()))
        seeds = [Random(random.random()) for _ in clients]
        hand = person.Person(place / server.files, Random(random.random()))
        if server.files:
            hand.start()
        begun = time.monotonic()
        writing = pool.map(_write, clients, stores, seeds, [server] * count, [hand] * count)
        figures["own text not found"] = sum(writing)
        took = time.monotonic() - begun
        hand.over.set()
        if server.files:
            hand.join()
        figures["acknowledged"] = sum(each.count() for each in stores)
        figures["refused"] = 1 + count * TEXTS - figures["acknowledged"]
        figures["requests"] = sum(each.requests for each in clients)
        figures["by hand"] = len(hand.deleted) + len(hand.edited) + len(hand.added)
        ours = Kept()
        for each in stores:
            ours.take(each, hand.deleted)
        wholes = list(ours.wholes())
        some = random.sample(wholes, min(LOOKED_FOR, len(wholes)))
        until = time.monotonic() + texts.PATIENCE
        while unseen := _unseen(server, first, some) + hand.wrong(server, first):
            if time.monotonic() > until:
                break
            time.sleep(0.2)
    found = again(server, place, ours)
    unseen["not seen by another"] -= min(found["lost"], unseen["not seen by another"])
    return {**(figures + unseen + found), "seconds": round(took, 3)}


def _write(client: Client, kept: Kept, random: Random, server: Adapter, hand: person.Person) -> int:
    """Store texts, and ask for one of them after each; count those that are not found."""
    missing = 0
    for _ in range(TEXTS):
        ask(server, client, kept, random, 60, SIZE)
        if kept.acknowledged:
            handle, wholes = random.choice(list(kept.acknowledged.items()))
            missing += not is_there(server, client, handle, random.choice(wholes), hand)
    return missing


def is_there(server: Adapter, client: Client, handle: str, whole: str, hand: person.Person) -> bool:
    """Whether a text is found and read, and that soon, unless it was deleted by hand."""
    name = whole.split()[1]
    until = time.monotonic() + texts.PATIENCE
    while name not in hand.deleted:
        if not _unseen(server, client, [whole]) and whole in texts.read(server, client, handle):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _unseen(server: Adapter, client: Client, wholes: list[str]) -> Counter[str]:
    """Count what of these a search in this server does not find."""
    missing: Counter[str] = Counter()
    with suppress(NotImplementedError):
        for whole in wholes:
            missing["not seen by another"] += whole not in texts.find(
                server, client, whole.split()[1]
            )
    return +missing
