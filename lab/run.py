"""Servers times measures, in rounds: bounded, from a seed, and taken up where they stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from . import results
from .adapter import Adapter, known
from .environments import CHECKOUT, MissingError, ready
from .rounds import brief, modules, one

QUICK = 14 * 60.0  # seconds for all, environments not counted
LATE = 45.0  # seconds that what is under way has then, before it is ended


@dataclass(frozen=True)
class Plan:
    """What to do.

    Attributes:
        servers: names of adapters.
        measures: names of measures.
        seed: for all chance.
        rounds: of each measure on each server, at most.
        seconds: for all together; 0 for no limit.
        lanes: how many rounds are under way at once.
        folder: for the results.
        say: gets a line for each round.
    """

    servers: Sequence[str]
    measures: Sequence[str]
    seed: int
    rounds: int
    seconds: float
    lanes: int
    folder: Path
    say: Callable[[str], None]


class _Stop:
    """Ctrl-C: the first lets the round end, the second does not."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = False
        self._say = say

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        with suppress(RuntimeError):  # it came while a line was being printed
            self._say("stopping after this round; Ctrl-C again stops at once")


def run(plan: Plan) -> bool:
    """Carry out a plan; return whether it came to its end."""
    stop = _Stop(plan.say)
    before = signal.signal(signal.SIGINT, stop)
    try:
        _run(plan, stop)
    except KeyboardInterrupt:
        stop.asked = True
    finally:
        signal.signal(signal.SIGINT, before)
    if stop.asked:
        plan.say(f"stopped; the same command goes on from here: {plan.folder}")
    return not stop.asked


def _run(plan: Plan, stop: _Stop) -> None:
    servers = []
    for name in plan.servers:
        try:
            servers.append(ready(known()[name]))
        except MissingError as error:
            plan.say(f"{name}: not here: {error}")
        if stop.asked:
            return
    found = modules()
    order = sorted(plan.measures, key=lambda name: hasattr(found[name], "ALONE"))  # those last
    lanes = _Lanes(plan, stop)
    try:
        for number in range(plan.rounds):  # one round of everything, then a second one
            left = [(server, measure) for measure in order for server in servers]
            while left:
                cell = min(left, key=lambda cell: lanes.taken(cell[0].name))
                left.remove(cell)
                if not lanes.begin(*cell, number, len(left)):
                    return
        lanes.wait(0)
    finally:
        lanes.stop()


class _Lanes:
    """Rounds that are under way, each in a process of its own, and how long earlier ones took."""

    def __init__(self, plan: Plan, stop: _Stop) -> None:
        self._plan, self._stop = plan, stop
        before = results.read(plan.folder)
        self._done = {each.key for each in before}
        self._last = {(each.server, each.measure): each.seconds for each in before}
        self._ends = time.monotonic() + plan.seconds if plan.seconds else float("inf")
        self._running: dict[subprocess.Popen[str], str] = {}
        self._others = 0
        self._taken: dict[str, float] = defaultdict(float)

    def taken(self, server: str) -> tuple[bool, float]:
        """Return whether a server is at work, and for how long it was, in seconds.

        Who had least is next: a slow one does not keep the others from being measured.
        """
        return server in self._running.values(), self._taken[server]

    def begin(self, server: Adapter, measure: str, number: int, others: int) -> bool:
        """Begin a round when there is room for it, if it is wanted; return whether to go on.

        What measures times is alone.
        """
        plan, cell, self._others = self._plan, (server.name, measure), others + 1
        if (server.name, server.version, measure, number, plan.seed) in self._done:
            return True
        is_alone = hasattr(modules()[measure], "ALONE")
        self.wait(0 if is_alone else plan.lanes - 1)
        left = self._ends - time.monotonic()
        if self._stop.asked or left < 0:
            self.wait(0)
            if not (number or self._stop.asked):
                plan.say(f"the time is over; the same command does the other {others + 1}")
            return False
        dear = 4 if number and measure == "together" else 1  # it has four times the servers
        if dear * self._last.get(cell, 0.0) >= left:
            if not number:
                plan.say(f"{server.name} {measure}: a round took longer than what is left")
            return True
        words = ["round", server.name, measure, str(number), str(plan.seed)]
        process = subprocess.Popen(
            [sys.executable, "-m", "lab", *words], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
        )
        self._running[process], self._others = server.name, others
        self.wait(0 if is_alone else plan.lanes)
        return True

    def wait(self, most: int) -> None:
        """Wait until no more than so many rounds are under way."""
        while len(self._running) > most:
            ended = [process for process in self._running if process.poll() is not None]
            for process in ended:
                del self._running[process]
                self._take(process)
            if not ended and time.monotonic() > self._ends + LATE:
                self._plan.say(f"ended since the time is over: {', '.join(self._running.values())}")
                self.stop()
            elif not ended:
                time.sleep(0.02)

    def _take(self, process: subprocess.Popen[str]) -> None:
        each = results.Round(**json.loads(process.communicate()[0]))
        results.add(self._plan.folder, each)
        not_again = "not measured" in each.figures
        self._last[each.server, each.measure] = float("inf") if not_again else each.seconds
        self._taken[each.server] += each.seconds
        which = f"{each.server} {each.measure} {each.number}"
        self._plan.say(f"{which}: {brief(each)}; {self._others + len(self._running)} to go")

    def stop(self) -> None:
        """End at once what is under way."""
        while self._running:
            process, _ = self._running.popitem()
            process.terminate()
            process.communicate()


def show(name: str, measure: str, number: int, seed: int) -> None:
    """Do one round and print it as JSON; the first Ctrl-C is for whoever asked for it."""
    signal.signal(signal.SIGINT, _Stop(lambda _: None))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the server ends, and its folder goes
    with suppress(KeyboardInterrupt):
        print(json.dumps(asdict(one(ready(known()[name]), measure, number, seed))))
