"""Servers times measures, in rounds: bounded, from a seed, and taken up where they stopped."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from types import FrameType, ModuleType
from typing import Any

from . import measures, results
from .adapter import Adapter, known
from .client import GoneError, RefusedError
from .disk import remove
from .environments import MissingError, ready

QUICK = 14 * 60.0  # seconds for all, environments not counted
LENGTHS = ("LAB_CUTS", "LAB_KILLS", "LAB_SOAK", "LAB_TEXTS")  # how much a round does
HELPERS = {"person", "texts"}


def modules() -> dict[str, ModuleType]:
    """Return every measure by its name."""
    names = [each.name for each in pkgutil.iter_modules(measures.__path__)]
    return {
        name: importlib.import_module(f"{measures.__name__}.{name}")
        for name in names
        if name not in HELPERS
    }


@dataclass(frozen=True)
class Plan:
    """What to do.

    Attributes:
        servers: names of adapters.
        measures: names of measures.
        seed: for all chance.
        rounds: of each measure on each server, at most.
        seconds: for all together, shared evenly; 0 for no limit.
        folder: for the results.
        say: gets a line for each round.
    """

    servers: Sequence[str]
    measures: Sequence[str]
    seed: int
    rounds: int
    seconds: float
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
    before = results.read(plan.folder)
    done = {each.key for each in before}
    last = {(each.server, each.measure): each.seconds for each in before}
    cells = [(server, measure) for measure in plan.measures for server in servers]
    ends = time.monotonic() + plan.seconds
    for at, (server, measure) in enumerate(cells):
        share = (ends - time.monotonic()) / (len(cells) - at) if plan.seconds else float("inf")
        if share < 0:
            plan.say(f"the time is over; the same command does the other {len(cells) - at}")
            return
        if plan.seconds and last.get((server.name, measure), 0.0) > ends - time.monotonic():
            plan.say(f"{server.name} {measure}: a round took longer than what is left of the time")
            continue
        _cell(plan, stop, server, measure, (share, done, f"{at + 1}/{len(cells)}"))
        if stop.asked:
            return


def _cell(
    plan: Plan,
    stop: _Stop,
    server: Adapter,
    measure: str,
    told: tuple[float, set[tuple[str, str, str, int, int]], str],
) -> None:
    """Do rounds of one measure on one server while its share of the time lasts."""
    share, done, where = told
    begun = time.monotonic()
    for number in range(plan.rounds):
        key = (server.name, server.version, measure, number, plan.seed)
        if key in done:
            continue
        each = one(server, measure, number, plan.seed)
        results.add(plan.folder, each)
        plan.say(f"[{where}] {server.name} {measure} {number}: {brief(each)}")
        took = time.monotonic() - begun
        dear = 4 if measure == "together" else 1  # the next one has four times as many servers
        if stop.asked or "not measured" in each.figures or took + dear * each.seconds > share:
            return


def one(server: Adapter, measure: str, number: int, seed: int) -> results.Round:
    """Do one round in a folder of its own, whatever happens in it."""
    module = modules()[measure]
    root = Path(tempfile.mkdtemp(prefix="lab-"))
    place = root / "place"
    place.mkdir()
    begun, worked = time.monotonic(), _worked()
    random = Random(f"{seed} {measure} {number}")  # the same for all servers
    figures: dict[str, Any]
    try:
        figures = module.measure(server, place, random, number)
    except MissingError as error:
        figures = {"not measured": str(error)}
    except NotImplementedError:
        figures = {"not measured": "the server does not offer it, or the adapter says why not"}
    except (GoneError, RefusedError, OSError, ValueError) as error:
        figures = {"broke": f"{type(error).__name__}: {error}"[:500]}
    seconds = round(time.monotonic() - begun, 1)
    machine = results.machine(root)
    remove(root)
    set_by = [f"{name}={os.environ[name]}" for name in LENGTHS if os.environ.get(name)]
    words = [*set_by, f"python -m lab run --servers {server.name} --measures {measure}"]
    words += [f"--seed {seed} --rounds {number + 1}"]
    return results.Round(
        server=server.name,
        version=server.version,
        measure=measure,
        number=number,
        seed=seed,
        figures=figures,
        seconds=seconds,
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M"),
        load=round(os.getloadavg()[0], 1),
        machine=machine,
        command=" ".join(words),
        processor=round(_worked() - worked, 1),
    )


def _worked() -> float:
    """Return the seconds of processor that this and all that it started and saw end have taken."""
    return sum(os.times()[:4])


def brief(each: results.Round) -> str:
    """Return a round's figures in a line."""
    shown = {name: value for name, value in each.figures.items() if name != "samples"}
    return f"{', '.join(f'{name} {value}' for name, value in shown.items())} ({each.seconds} s)"
