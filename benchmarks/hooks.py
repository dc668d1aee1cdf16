"""Judge what hooks show at a prompt: python benchmarks/hooks.py DATA.

DATA is a directory as in `keywords.py`. *Precision*: 500 prompts of ordinary coding and talk
(`prompts.py`) against one store of the first 2,000 memories of the sets that have 1,000 and
more: how many are silent.
*Recall*: each question of a set as a prompt in its own store: for how many is a right memory among
the three that are shown. *Time*: a process for each of 20 prompts, beside stores of 10,000 and
100,000 memories (`corpus.py`), by the clock and by its processor, and by turns an empty Python.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import corpus
from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.server.hooks import telling
from aiaml_server.settings import Settings
from aiaml_server.storage.store import Store
from keywords import sets
from prompts import prompts

OTHERS = 2_000
SIZES = (10_000, 100_000)


def store_of(memories: Sequence[Mapping[str, Any]], base: Path) -> tuple[Store, dict[str, str]]:
    """Write memories and index them; return the store, and each one's id there."""
    files = base / "files"
    files.mkdir(parents=True)
    ids = {}
    for number, each in enumerate(memories):
        ids[f"{number:08x}"] = str(each["id"])
        values = (each["timestamp"], each["agent"], each["user"], tuple(each["topics"]))
        memory = Memory(f"{number:08x}", *values, each["content"])
        path = files / f"20260101_000000_{number:08x}.md"
        path.write_text(format(memory), encoding="utf-8")
    with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
        bank.think(["x"])
    return Store(base), ids


def silent(everything: Sequence[Mapping[str, Any]], base: Path) -> float:
    """Return the share of other prompts at which nothing is shown."""
    store, _ = store_of(everything[:OTHERS], base)
    asked = prompts()
    return sum(not telling.at_prompt(store, each).text for each in asked) / len(asked)


def shown(stores: Sequence[Mapping[str, Any]], base: Path) -> float:
    """Return the share of questions at which a right memory is shown."""
    right = asked = 0
    for number, each in enumerate(stores):
        store, ids = store_of(each["memories"], base / str(number))
        for question in each["questions"]:
            told = telling.at_prompt(store, question["text"])
            right += bool({ids[one] for one in told.ids} & set(question["relevant"]))
            asked += 1
    return right / asked


def times(
    base: Path, count: int, first: Sequence[str]
) -> Iterator[tuple[str, float, float, float]]:
    """Yield for what, and the medians of seconds by the clock, of a processor, and of no program.

    Beside so many memories: as the index has them, and once one is there that it does not have.
    """
    corpus.generate(base, count)
    with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
        bank.think(["x"])
    time.sleep(0.5)  # the directory's stamp is believed from then on
    with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
        bank.think(["x"])
    yield f"{count:,}", *asked(base, first)
    Store(base).add(Memory.new("claude", "ann", ["music"], "The tuba is at the repairer's."))
    yield f"{count:,} and one that is not indexed", *asked(base, first)


def asked(base: Path, first: Sequence[str]) -> tuple[float, float, float]:
    """Return the medians of 20 prompts; `first` are the words that start each process."""
    clock, processor, nothing = [], [], []
    others = (" ".join(corpus.ENGLISH[at : at + 12]) for at in range(90, 210, 12))
    for prompt in (*prompts(10), *others):
        said = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        words = [sys.executable, "-I", "-m", "aiaml_server.server.hooks", "--dir", str(base)]
        subprocess.run([*first, *words], input=json.dumps(said).encode(), env=os.environ,
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        clock.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        started = time.perf_counter()
        subprocess.run([*first, sys.executable, "-I", "-c", "pass"], check=True)
        nothing.append(time.perf_counter() - started)
    return median(clock), median(processor), median(nothing)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--only-times", action="store_true")
    parser.add_argument("--first", default="", help="what starts each process: `chrt -f 1`, say")
    given = parser.parse_args()
    data = sets(given.data)
    of_sets = [[each for one in stores for each in one["memories"]] for stores in data.values()]
    everything = [each for some in of_sets if len(some) >= 1_000 for each in some]
    with tempfile.TemporaryDirectory() as made:
        if not given.only_times:
            print(f"silent at other prompts: {silent(everything, Path(made) / 'others'):.1%}")
        for name, stores in () if given.only_times else data.items():
            print(f"{name}: right among the three: {shown(stores, Path(made) / name):.1%}")
        for size in () if given.no_times else SIZES:
            for what, *found in times(Path(made) / str(size), size, given.first.split()):
                clock, processor, nothing = (f"{1000 * each:.0f}" for each in found)
                load = f"an empty Python {nothing} ms, load {os.getloadavg()[0]:.0f}"
                print(f"{what}: {clock} ms, {processor} ms of a processor; {load}", flush=True)


if __name__ == "__main__":
    main()
