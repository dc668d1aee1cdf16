"""Texts that can be told from each other, and whether they are all still there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any

from ..adapter import Adapter
from ..client import Client, GoneError, RefusedError, texts

PATIENCE = 5.0  # seconds that a server may take until it has read its store again
WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heath",
    "inlet",
    "jetty",
    "knoll",
    "ledge",
    "marsh",
]


def key(random: Random) -> str:
    """Return a name that no other text has."""
    return f"key{random.getrandbits(40):010x}"


def text(random: Random, name: str, size: int) -> str:
    """Return a text of about that many characters which shows whether it is whole."""
    middle = " ".join(random.choices(WORDS, k=max(1, (size - 40) // 6)))
    return f"begin {name} {middle} end {name}"


@dataclass
class Kept:
    """What a server was told to keep.

    Attributes:
        acknowledged: what it said it has, by handle: all of it must be there.
        doubtful: what it was told and did not answer: it may be there, but whole.
    """

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)

    def add(self, handle: str, text: str) -> None:
        """Note what was acknowledged; several texts may have one handle."""
        self.acknowledged.setdefault(handle, []).append(text)

    def count(self) -> int:
        """Return how many texts were acknowledged."""
        return sum(len(texts) for texts in self.acknowledged.values())

    def wholes(self) -> Iterator[str]:
        """Return every text that was acknowledged."""
        return chain.from_iterable(self.acknowledged.values())

    def take(self, other: Kept, deleted: set[str]) -> None:
        """Take what another was told to keep, without the texts whose keys are in `deleted`."""
        for handle, wholes in other.acknowledged.items():
            for whole in wholes:
                if whole.split()[1] not in deleted:
                    self.add(handle, whole)
        for name in set(other.doubtful) - deleted:
            self.doubtful[name] = other.doubtful[name]

    def check(self, server: Adapter, client: Client) -> Counter[str]:
        """Ask for everything; count what is lost, and what is torn."""
        found: Counter[str] = Counter()
        waiting = dict(self.acknowledged)
        until = time.monotonic() + PATIENCE
        while waiting:
            for handle in list(waiting):
                answer = read(server, client, handle)
                waiting[handle] = [each for each in waiting[handle] if each not in answer]
                if not waiting[handle]:
                    del waiting[handle]
            if time.monotonic() > until:
                break
        found["lost"] += sum(len(texts) for texts in waiting.values())
        for name, whole in self.doubtful.items():
            with suppress(NotImplementedError):
                answer = find(server, client, name)
                found["torn"] += f"begin {name}" in answer and whole not in answer
        return found


def read(server: Adapter, client: Client, handle: str) -> str:
    """Return what a server answers; nothing where it refuses."""
    try:
        return server.read(client, handle)
    except RefusedError:
        return ""


def find(server: Adapter, client: Client, name: str) -> str:
    """Return what a server finds by a text's key; nothing where it refuses."""
    try:
        return server.find(client, name)
    except RefusedError:
        return ""


def ask(
    server: Adapter, client: Client, kept: Kept, random: Random, seconds: float, size: int = 0
) -> bool:
    """Store one text, of any size or of this; return whether the server answered in time."""
    name = key(random)
    whole = text(random, name, size or random.randint(60, server.largest))
    request = client.start(*server.store(name, whole))
    return settle(server, client, kept, (name, whole, request), seconds)


def settle(
    server: Adapter, client: Client, kept: Kept, sent: tuple[str, str, int], seconds: float
) -> bool:
    """Wait for the answer to what was sent, and note it; return whether it came."""
    name, whole, request = sent
    kept.doubtful[name] = whole
    try:
        note(server, kept, sent, client.answer(request, seconds))
    except GoneError:
        return False
    return True


def note(server: Adapter, kept: Kept, sent: tuple[str, str, int], answer: dict[str, Any]) -> bool:
    """Note an answer: acknowledged, or refused; return which."""
    name, whole, _ = sent
    try:
        handle = server.stored(name, texts(answer))
    except RefusedError:
        return False
    kept.doubtful.pop(name, None)
    kept.add(handle, whole)
    return True
