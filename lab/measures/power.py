"""The power fails: what was acknowledged had been brought to the disk."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from .. import trace
from ..adapter import Adapter
from ..disk import Disk, tree
from ..environments import MissingError
from .kill import again
from .texts import Kept, key, text
from .texts import note as noted

ABOUT = (
    "the system calls of a server are replayed to a random moment, without what was not synced "
    "(first all of them, which must give all texts); *lost on ext4* counts as synced what the "
    "journal of ext4 brings along"
)
ZERO = ("lost", "lost on ext4", "torn", "not started again")
TEXTS = 6
CUTS = 3


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Record some stores, and let the power fail at some moments of them."""
    trace.need()
    log = place.with_name(f"{place.name}.trace")
    sent: list[tuple[str, str, int]] = []
    answers: dict[int, dict[str, Any]] = {}
    server.lay(place)
    before = tree(place)
    with server.start(place, trace.words(log, f"{trace.CHANGES},lseek")) as client:
        first = client.request("ping")
        for _ in range(TEXTS):
            name = key(random)
            whole = text(random, name, random.randint(60, server.largest))
            request = client.start(*server.store(name, whole))
            sent.append((name, whole, request))
            answers[request] = client.answer(request)
    calls = trace.calls(log)
    _prove(server, Disk(place, before, like_ext4=False), calls, sent, answers)
    told = {number: place for place, number in _answered(calls)}
    begin = told.get(first, 0)
    figures: Counter[str] = Counter()
    for cut in range(CUTS):
        moments = [at for at, call in enumerate(calls) if at >= begin and str(place) in call.text]
        moments += [told[each[2]] for each in sent if each[2] in told] * 4
        moment = random.choice(sorted(moments)) + 1
        kept = Kept()
        for each in sent:
            kept.doubtful[each[0]] = each[1]
            if told.get(each[2], len(calls)) < moment:
                noted(server, kept, each, answers[each[2]])
        chance = random.random() if (number + cut) % 2 else None
        disks = [Disk(place, before, like_ext4=each) for each in (False, True)]
        found = _restored(server, disks[0], calls[:moment], chance, kept)
        figures += found
        if found["lost"]:
            plain = _restored(server, disks[1], calls[:moment], chance, kept)
            figures["lost on ext4"] += plain["lost"]
        figures["acknowledged"] += kept.count()
        figures["power cuts"] += 1
    return dict(figures)


def _prove(
    server: Adapter,
    disk: Disk,
    calls: list[trace.Call],
    sent: list[tuple[str, str, int]],
    answers: dict[int, dict[str, Any]],
) -> None:
    """See that all calls together give a store in which nothing is missing.

    Raises:
        MissingError: they do not: what this finds would be the laboratory's fault.
    """
    kept = Kept()
    for each in sent:
        noted(server, kept, each, answers[each[2]])
    disk.play(calls)
    disk.restore(disk.seen())
    if again(server, disk.place, kept)["lost"]:
        raise MissingError("it writes in ways that its system calls do not show")


def _answered(calls: list[trace.Call]) -> list[tuple[int, int]]:
    """Return where each request was answered: the place of the call, and the request."""
    found = []
    for place, call in enumerate(calls):
        if call.name in ("write", "writev") and re.match(r"\d+<(pipe|socket)", call.text):
            for match in re.finditer(r'\\"id\\": ?(\d+)[,}]', call.text):
                found.append((place, int(match[1])))
    return found


def _restored(
    server: Adapter, disk: Disk, calls: list[trace.Call], chance: float | None, kept: Kept
) -> Counter[str]:
    """Start the server on what the disk has after these calls; count what is missing."""
    disk.play(calls)
    disk.restore(disk.after(None if chance is None else Random(chance)))
    return again(server, disk.place, kept)
