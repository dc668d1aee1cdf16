"""Measure two versions beside each other: python benchmarks/versions.py OLD [--sizes 1000,10000].

OLD is the `src` of another version, such as `git archive COMMIT src | tar -x -C DIR` leaves in DIR.
Each question is asked of both in turn, each in a directory of its own with the same memories, so
that noise hits both; a figure is the median, and a ratio the median of the ratios of pairs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median

import corpus
from run import MIX, Server, ms, remember, say, settled

HERE = Path(__file__).parent
NEW = HERE.parent / "src"
_RUN = (
    "import sys, runpy; sys.path.insert(0, sys.argv.pop(1));"
    "runpy.run_module('aiaml_server', run_name='__main__')"
)

Pairs = defaultdict[str, list[tuple[float, float]]]


def server(src: Path, base: Path) -> Server:
    """Start the server of one version."""
    return Server((sys.executable, "-c", _RUN, str(src)), base)


def measure(sources: tuple[Path, Path], place: Path, rounds: int) -> Pairs:
    """Start, think and remember with both, in turn."""
    pairs: Pairs = defaultdict(list)
    bases = [place / name for name in ("old", "new")]
    for source, base in zip(sources, bases, strict=True):  # the index is made here
        with server(source, base) as one:
            one.think(["warm"])
            settled(base)
            one.close()
    for _ in range(max(1, rounds // 4)):
        starts, firsts = [], []
        for source, base in zip(sources, bases, strict=True):
            with server(source, base) as one:
                starts.append(one.start)
                firsts.append(one.start + one.think(MIX["rare word"][0])[0])
                one.close()
        pairs["from spawn to `initialize`"].append((starts[0], starts[1]))
        pairs["from spawn to the first `think`"].append((firsts[0], firsts[1]))
    with ExitStack() as stack:
        old, new = (
            stack.enter_context(server(source, base))
            for source, base in zip(sources, bases, strict=True)
        )
        for number, memory in enumerate(islice(corpus.memories(rounds * 3, seed=4), rounds)):
            for kind, questions in MIX.items():
                question = questions[number % len(questions)]
                pairs[f"`think`, {kind}"].append((old.think(question)[0], new.think(question)[0]))
            pairs["`remember`"].append((remember(old, memory), remember(new, memory)))
            question = MIX["rare word"][0]
            after = old.think(question)[0], new.think(question)[0]
            pairs["`think`, rare word, right after"].append(after)
    return pairs


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    found: dict[int, Pairs] = {}
    for size in map(int, given.sizes.split(",")):
        say(f"{size:,} memories")
        with tempfile.TemporaryDirectory(prefix="aiaml-versions-") as place:
            for name in ("old", "new"):
                corpus.generate(Path(place) / name, size)
            found[size] = measure((given.old.resolve(), NEW), Path(place), given.rounds)
    sizes = "".join(f" {size:,} memories |" for size in found)
    print(f"| after : before |{sizes}\n|---|{'--:|' * len(found)}")
    for row in next(iter(found.values())):
        cells = []
        for pairs in found.values():
            old, new = (median(each) for each in zip(*pairs[row], strict=True))
            ratio = median(after / before for before, after in pairs[row])
            cells.append(f" {ms(new)} : {ms(old)} = {ratio:.2f} x |")
        print(f"| {row} |{''.join(cells)}")


if __name__ == "__main__":
    main()
