"""The power fails: what was acknowledged had been brought to the disk."""

from __future__ import annotations

import os
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
    "the system calls of a server are replayed to random moments, without what was not synced, or "
    "with some of it (first all of them, which must give all texts); where *power cuts* leave the "
    "same on the *disks*, the server is started once for them; *lost on ext4* counts as synced "
    "what the journal of ext4 brings along"
)
ZERO = ("lost", "lost on ext4", "torn", "not started again")
TEXTS = 6
CUTS = int(os.environ.get("LAB_CUTS") or 3)  # in a round


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
    disk = Disk(place, before, like_ext4=False)
    disk.play(calls)
    disk.restore(disk.seen())
    if again(server, place, _kept(server, sent, answers))["lost"]:
        raise MissingError("it writes in ways that its system calls do not show")
    told = {number: place for place, number in _answered(calls)}
    begin = told.get(first, 0)
    moments = [at for at, call in enumerate(calls) if at >= begin and str(place) in call.text]
    moments += [told[each[2]] for each in sent if each[2] in told] * 4
    cuts = sorted(
        (random.choice(moments) + 1, random.random() if (number + cut) % 2 else 0.0)
        for cut in range(CUTS)
    )
    disk = Disk(place, before, like_ext4=False)
    played = 0
    left = {}  # on the disk, each with the last cut that leaves it: most was acknowledged then
    for moment, chance in cuts:
        disk.play(calls[played:moment])
        played = moment
        there = disk.after(Random(chance) if chance else None)
        left[frozenset(there.items())] = moment, chance
    figures = Counter({"power cuts": len(cuts), "disks": len(left)})
    for held, (moment, chance) in left.items():
        known = {each: answers[each] for each in answers if told.get(each, moment) < moment}
        kept = _kept(server, sent, known)
        disk.restore(dict(held))
        found = again(server, place, kept)
        figures += found
        if found["lost"]:
            plain = Disk(place, before, like_ext4=True)
            plain.play(calls[:moment])
            plain.restore(plain.after(Random(chance) if chance else None))
            figures["lost on ext4"] += again(server, place, kept)["lost"]
        figures["acknowledged"] += kept.count()
    return dict(figures)


def _kept(
    server: Adapter, sent: list[tuple[str, str, int]], answers: dict[int, dict[str, Any]]
) -> Kept:
    """Return what was promised when these answers were given."""
    kept = Kept()
    for each in sent:
        kept.doubtful[each[0]] = each[1]
        if each[2] in answers:
            noted(server, kept, each, answers[each[2]])
    return kept


def _answered(calls: list[trace.Call]) -> list[tuple[int, int]]:
    """Return where each request was answered: the place of the call, and the request."""
    found = []
    for place, call in enumerate(calls):
        if call.name in ("write", "writev") and re.match(r"\d+<(pipe|socket)", call.text):
            for match in re.finditer(r'\\"id\\": ?(\d+)[,}]', call.text):
                found.append((place, int(match[1])))
    return found
