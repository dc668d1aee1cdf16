"""Judge what hooks show at a prompt: python benchmarks/hooks.py DATA.

DATA is a directory as in `keywords.py`. *Precision*: 500 prompts of ordinary coding and talk
(`prompts.py`) against one store of the first 2,000 memories of the sets that have 1,000 and
more: how many are silent.
*Recall*: each question of a set as a prompt in its own store: for how many is a right memory among
the three that are shown. *Time*: a process for each of 20 prompts, beside stores of 10,000 and
100,000 memories (`corpus.py`), by the clock and by its processor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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


def times(base: Path, count: int) -> tuple[float, float]:
    """Return the medians of seconds by the clock and of a processor, beside so many memories."""
    import os  # noqa: PLC0415 (the environment of a process)
    import resource  # noqa: PLC0415 (not on Windows)

    corpus.generate(base, count)
    with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
        bank.think(["x"])
    clock, processor = [], []
    for prompt in (
        *prompts(10),
        *(" ".join(corpus.ENGLISH[at : at + 12]) for at in range(90, 210, 12)),
    ):
        said = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        command = [sys.executable, "-I", "-m", "aiaml_server.server.hooks", "--dir", str(base)]
        subprocess.run(command, input=json.dumps(said).encode(), env=os.environ, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        clock.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(clock), median(processor)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--no-times", action="store_true")
    given = parser.parse_args()
    found = sets(given.data)
    of_sets = [[each for one in stores for each in one["memories"]] for stores in found.values()]
    everything = [each for some in of_sets if len(some) >= 1_000 for each in some]
    with tempfile.TemporaryDirectory() as made:
        print(f"silent at other prompts: {silent(everything, Path(made) / 'others'):.1%}")
        for name, stores in found.items():
            print(f"{name}: right among the three: {shown(stores, Path(made) / name):.1%}")
        for size in () if given.no_times else SIZES:
            clock, processor = times(Path(made) / str(size), size)
            print(f"{size:,}: {1000 * clock:.0f} ms, {1000 * processor:.0f} ms of a processor")


if __name__ == "__main__":
    main()
