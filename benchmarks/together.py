"""Measure servers that find no index, all at once: python benchmarks/together.py [OTHER ...].

Each runs already and has answered before, when the index is deleted and all are asked the same
question at once: none is to wait for more than 1.5 times as long as one alone. Measured in turn,
so that noise hits both. OTHER is the `src` of another version, as in `versions.py`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import corpus
from aiaml_server.index import delete_index
from run import AGENTS, settled
from versions import NEW, server


def answers(source: Path, base: Path, servers: int, question: list[str]) -> list[float]:
    """Ask servers at once while there is no index; return the seconds until each has answered."""
    with ExitStack() as stack:
        running = [stack.enter_context(server(source, base)) for _ in range(servers)]
        for each in running:
            each.think(question)
        settled(base)
        with ThreadPoolExecutor(servers) as pool:
            delete_index(base)
            answered = list(pool.map(lambda each: each.think(question), running))
        if any(hits != answered[0][1] for _, hits in answered):
            raise RuntimeError("the servers' answers differ")
        settled(base)
    return sorted(seconds for seconds, _ in answered)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("others", type=Path, nargs="*", metavar="OTHER")
    parser.add_argument("--memories", type=int, default=20_000)
    parser.add_argument("--servers", type=int, default=16)
    parser.add_argument("--words", type=int, default=8, help="of a question")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sources = [*(each.resolve() for each in given.others), NEW]
    last: defaultdict[tuple[Path, int], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="aiaml-together-") as place:
        base = Path(place) / "base"
        corpus.generate(base, given.memories)
        for number in range(given.rounds):
            question = AGENTS[number % len(AGENTS)][: given.words]
            for servers in (1, given.servers):
                for source in sources:
                    seconds = answers(source, base, servers, question)
                    last[source, servers].append(seconds[-1])
                    told = f"{seconds[0]:.2f} s, median {median(seconds):.2f}, {seconds[-1]:.2f}"
                    print(f"{source}: {servers} at once, first {told} last", flush=True)
    for source in sources:
        alone, together = (last[source, servers] for servers in (1, given.servers))
        ratio = median(b / a for a, b in zip(alone, together, strict=True))
        print(
            f"{source}: the last of {given.servers} on {given.memories:,} memories "
            f"{median(together):.2f} s : one alone {median(alone):.2f} s = {ratio:.2f} x"
        )


if __name__ == "__main__":
    main()
