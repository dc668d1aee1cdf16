"""A disk that refuses: an error is told, and nothing that was acknowledged is missing."""

from __future__ import annotations

import signal
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from .. import trace
from ..adapter import Adapter
from ..client import Client, GoneError
from .calls import learned
from .kill import again
from .texts import Kept, ask

ABOUT = "ENOSPC, EIO, EROFS, EMFILE at the calls that change the store, and writes cut short"
ZERO = ("lost", "torn", "no answer", "refuses afterwards", "not started again")
AT_ONCE = 4
SLOW = 20.0
ERRORS = {"openat": ("ENOSPC", "EIO", "EROFS", "EMFILE"), "write": ("ENOSPC", "EIO")}
USUAL = ("ENOSPC", "EIO", "EROFS")


def measure(server: Adapter, place: Path, random: Random, number: int) -> dict[str, Any]:
    """Let some calls fail, one at a time, in one server; then look what it has."""
    trace.need()
    import resource  # noqa: PLC0415 (where strace is, this is)

    figures: Counter[str] = Counter()
    kept = Kept()
    order = learned(server, place.with_name(f"{place.name}-learning"))
    client = server.start(place)
    ask(server, client, kept, random, 60)
    for each in range(AT_ONCE):
        name, which = order[(number * AT_ONCE + each) % len(order)]
        error = random.choice(ERRORS.get(name, USUAL))
        inject = f"inject={name}:error={error}:when={which}"
        log = place.with_name(f"{place.name}.trace")
        found: Counter[str] = Counter()
        with trace.attached(client.process.pid, log, name, "-e", inject):
            _one(server, client, kept, random, found)
        hit = [call.text for call in trace.calls(log) if "(INJECTED)" in call.text]
        figures["errors"] += sum(str(place) in text for text in hit)
        if all(str(place) in text for text in hit):  # not the pipe to the client as well
            figures += found
        client = _afterwards(server, client, kept, random, figures, place)
    for room in (0, _largest(place)):
        limit = room + random.randint(50, max(100, server.largest // 10))
        unlimited = resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, (limit, unlimited[1]))
        for _ in range(3):
            _one(server, client, kept, random, figures)
        if client.process.poll() is None:
            resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, unlimited)
        figures["limits on a file's size"] += 1
        client = _afterwards(server, client, kept, random, figures, place)
    client.__exit__(None, None, None)
    figures["acknowledged"] = kept.count()
    figures += again(server, place, kept)
    return dict(figures)


def _one(
    server: Adapter, client: Client, kept: Kept, random: Random, figures: Counter[str]
) -> None:
    """Store one text while something is wrong; count how it ended."""
    before = kept.count()
    try:
        answered = ask(server, client, kept, random, SLOW)
    except GoneError:
        answered = False
    if not answered and _ended(client):
        figures["died"] += 1
    elif not answered:
        figures["no answer"] += 1
    else:
        figures["refused"] += kept.count() == before


def _ended(client: Client) -> bool:
    until = time.monotonic() + 1
    while client.process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    return client.process.poll() is not None


def _afterwards(
    server: Adapter,
    client: Client,
    kept: Kept,
    random: Random,
    figures: Counter[str],
    place: Path,
) -> Client:
    """Return the server, which must store again now; a dead or silent one is started again."""
    before = kept.count()
    try:
        stored = ask(server, client, kept, random, SLOW) and kept.count() > before
    except GoneError:
        stored = False
    if stored:
        return client
    figures["refuses afterwards"] += client.process.poll() is None
    if client.process.poll() is None:
        client.process.send_signal(signal.SIGKILL)
    client.__exit__(None, None, None)
    return server.start(place)


def _largest(place: Path) -> int:
    return max((path.stat().st_size for path in place.rglob("*") if path.is_file()), default=0)
