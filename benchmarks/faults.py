"""What is lost: python benchmarks/faults.py {kill,power,disk,together} [SERVER …] [--rounds N].

- kill: `kill -9` while five texts are being stored.
- power: the recorded system calls are replayed up to a random moment, without what was not synced.
- disk: ENOSPC and EIO at system calls that write; needs strace, as `power` does.
- together: sixteen servers store on one directory at once.

*Lost* is a text that was acknowledged and that a new server does not return whole. *Torn* is one
that it returns in part.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import sleep

import trace_calls as trace
from mcp_client import Client, ServerError, ServerGone, texts
from replayed_disk import Disk, read_tree
from servers import Server, installed

AT_ONCE = 5
SERVERS = 16
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty")
Figures = Counter[str]


@dataclass
class Stored:
    """What a server was given.

    Attributes:
        acknowledged: texts that must be there, by their handle.
        sent: texts that may be there, by their key, but not in part.
    """

    acknowledged: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)

    def send(self, server: Server, client: Client, random: Random) -> tuple[str, int]:
        """Send a text of random length; return its key and the request."""
        key = f"key{random.getrandbits(40):010x}"
        words = " ".join(random.choices(WORDS, k=random.randint(4, server.largest // 8)))
        self.sent[key] = f"begin {key} {words} end {key}"
        return key, server.store(client, key, self.sent[key])

    def settle(self, server: Server, client: Client, sent: tuple[str, int]) -> bool:
        """Wait for the answer; return whether the text was acknowledged."""
        key, request = sent
        try:
            handle = server.handle(key, texts(client.answer(request)))
        except ServerError:
            return False
        self.acknowledged[handle] = self.sent[key]
        return True

    def check(self, server: Server, place: Path) -> Figures:
        """Start a new server and read everything."""
        found: Figures = Counter(acknowledged=len(self.acknowledged))
        try:
            with server.start(place) as client:
                for handle, text in self.acknowledged.items():
                    answer = ""
                    with suppress(ServerError):
                        answer = server.read(client, handle)
                    if text not in answer:
                        found["torn" if text[:30] in answer else "lost"] += 1
        except ServerGone:
            found["not started again"] += 1
        return found


def kill(server: Server, place: Path, random: Random) -> Figures:
    """Kill a server three times while it stores."""
    stored = Stored()
    for _ in range(3):
        with server.start(place) as client:
            sent = [stored.send(server, client, random) for _ in range(AT_ONCE)]
            answered = random.randrange(AT_ONCE)
            for request in sent[:answered]:
                stored.settle(server, client, request)
            sleep(random.uniform(0, 0.02))
            client.process.kill()
            with suppress(ServerGone):
                for request in sent[answered:]:  # the answers that were already written
                    stored.settle(server, client, request)
    return Counter(kills=3) + stored.check(server, place)


def power(server: Server, place: Path, random: Random) -> Figures:
    """Record six stores, and let the power fail at four moments."""
    log = place.with_suffix(".trace")
    before = read_tree(place)
    stored, keys = Stored(), {}
    with server.start(place, trace.recording(log)) as client:
        for _ in range(6):
            sent = stored.send(server, client, random)
            stored.settle(server, client, sent)
            keys[sent[1]] = sent[0]
    calls = trace.read_calls(log)
    answered: dict[str, int] = {}  # the key of a text, and the call that wrote the answer
    for number, call in enumerate(calls):
        if call.name == "write":
            for request in re.findall(r'\\"id\\": ?(\d+)[,}]', call.text):
                if int(request) in keys:
                    answered[keys[int(request)]] = number
    figures: Figures = Counter()
    first, last = min(answered.values()), max(answered.values())
    for _ in range(4):
        end = random.randint(first, last) + 1
        disk = Disk(place, before)
        disk.replay(calls[:end])
        disk.restore(disk.after_power_failure(random if random.random() < 0.5 else None))
        promised = {stored.sent[key] for key, number in answered.items() if number < end}
        texts = {name: text for name, text in stored.acknowledged.items() if text in promised}
        figures += Counter({"power cuts": 1}) + Stored(texts).check(server, place)
    return figures


def disk(server: Server, place: Path, random: Random) -> Figures:
    """Let system calls fail while texts are stored; afterwards the server must store again."""
    stored = Stored()
    figures: Figures = Counter()
    client = server.start(place)
    for name in ("write", "fsync", "openat", "rename", "pwrite64"):
        error = f"error={random.choice(('ENOSPC', 'EIO'))}:when={random.randint(1, 3)}"
        with suppress(ServerGone):
            with trace.injected_error(client.process.pid, place.with_suffix(".trace"), name, error):
                sent = stored.send(server, client, random)
                figures["refused"] += not stored.settle(server, client, sent)
            if stored.settle(server, client, stored.send(server, client, random)):
                continue
        figures["did not store afterwards"] += 1
        client.process.kill()
        client.close()
        client = server.start(place)
    client.close()
    return figures + stored.check(server, place)


def together(server: Server, place: Path, random: Random) -> Figures:
    """Let sixteen servers store twenty texts each, and search for each text right after."""
    every = [Stored() for _ in range(SERVERS)]
    seeds = [Random(random.random()) for _ in range(SERVERS)]
    figures: Figures = Counter(servers=SERVERS)
    with ExitStack() as stack, ThreadPoolExecutor(SERVERS) as pool:
        clients = [
            stack.enter_context(client)
            for client in pool.map(lambda _: server.start(place), range(SERVERS))
        ]

        def work(number: int) -> int:
            missing = 0
            for _ in range(20):
                sent = every[number].send(server, clients[number], seeds[number])
                if every[number].settle(server, clients[number], sent):
                    handle = list(every[number].acknowledged)[-1]
                    missing += handle not in server.search(clients[number], [sent[0]])
            return missing

        figures["not found by its own server"] = sum(pool.map(work, range(SERVERS)))
    whole = Stored({h: t for each in every for h, t in each.acknowledged.items()})
    return figures + whole.check(server, place)


FAULTS: dict[str, Callable[[Server, Path, Random], Figures]] = {
    each.__name__: each for each in (kill, power, disk, together)
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("fault", choices=FAULTS)
    parser.add_argument("servers", nargs="*", default=["aiaml"], metavar="SERVER")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name in given.servers:
        server = installed(name)
        figures: Figures = Counter()
        for number in range(given.rounds):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
                place = Path(root).resolve() / "data"
                place.mkdir()
                random = Random(f"{given.seed} {number}")
                figures += FAULTS[given.fault](server, place, random)
                shutil.rmtree(place, ignore_errors=True)
        seen = ", ".join(f"{what} {count:,}" for what, count in figures.items())
        losses = {what: figures[what] for what in ("lost", "torn", "not started again")}
        print(f"{name}: {given.fault}: {seen}; {losses}", flush=True)


if __name__ == "__main__":
    main()
