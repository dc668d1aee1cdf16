"""The laboratory can find faults: each of these, put into its own server, is caught by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .adapters.files import Server
from .measures import soak, sync, texts
from .rounds import modules, one

FAULTS = {
    "no sync": "power",
    "name not synced": "power",
    "name before content": "calls",
    "no lock": "together",
    "cache not compared": "together",
    "id unchecked": "hostile",
    "push result ignored": "sync",
    "error swallowed": "faults",
    "short write believed": "faults",
    "answer before write": "kill",
    "descriptor left open": "soak",
    "words on standard output": "protocol",
}
"""A fault of `baseline.py`, and the measure that catches it."""
ROUNDS = 5
AT_ONCE = 2
SHORT = 1.0  # seconds where a measure would wait or go on for longer


def caught(fault: str, measure: str) -> str:
    """Return which figures that ought to be 0 are not, in the first round in which one is not."""
    server = Server(Path(), "")
    server.fault = fault
    for number in range(ROUNDS if fault else 1):
        figures = one(server, measure, number, seed=1).figures
        wrong = {name: value for name, value in figures.items() if _is_wrong(measure, name, value)}
        if wrong:
            return ", ".join(f"{name} {value}" for name, value in wrong.items())
    return ""


def _is_wrong(measure: str, name: str, value: object) -> bool:
    if name in ("broke", "not measured"):
        return True
    return bool(value) and name in modules()[measure].ZERO


def play(names: Sequence[str], say: Callable[[str], None]) -> bool:
    """Try faults, all where none is named, and the server without any; return whether all is well.

    A fault that nothing catches, and a sound server that something catches, are not well.
    """
    texts.PATIENCE = soak.LENGTH = SHORT
    sync.LONGEST, sync.SOON = 2 * SHORT, SHORT / 10
    chosen = {name: FAULTS.get(name, "kill") for name in names or FAULTS}
    sound = sorted(set(chosen.values()))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(caught, chosen, chosen.values()))
        clean = list(pool.map(lambda measure: caught("", measure), sound))
    for name, what in zip(chosen, found, strict=True):
        say(f"{'caught' if what else 'MISSED'}: {name} (by {chosen[name]}: {what or 'nothing'})")
    for measure, what in zip(sound, clean, strict=True):
        say(
            f"{'WRONGLY caught' if what else 'sound'}: no fault (by {measure}: {what or 'nothing'})"
        )
    say(f"{sum(map(bool, found))} of {len(found)} faults caught")
    return all(found) and not any(clean)
