"""Measure speed: python benchmarks/speed.py [SERVER …] [--sizes 0,1000,10000] [--other PYTHON].

Each figure is the median of this checkout beside that of a server of plain files on the same SDK,
measured by turns. So the ratio means something on another machine. SERVER adds others to compare
with, and `--other` another installation of aiaml by the path of its Python.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import corpus
from aiaml_server.format.scorer import rank
from aiaml_server.index import delete_index, index_file
from aiaml_server.storage.store import Store
from mcp_client import Client, texts
from servers import Aiaml, Files, Server, installed

WORDS = corpus.vocabulary()
QUESTIONS = {
    "a rare word": [WORDS[12_000]],
    "a common word": ["project"],
    "eight words": ["dinner", "food", "diet", "kitchen", WORDS[2_000], "marco", "friday", "budget"],
    "a part of a word": [WORDS[3_000][1:4]],
    "a phrase": ["san francisco"],
    "no match": ["xylqzv"],
    "a letter": ["e"],
}


class Other(Aiaml):
    """Another installation of aiaml."""

    name = "other"

    def __init__(self, python: str) -> None:
        super().__init__()
        self._python = python

    def command(self) -> list[str]:
        """Run its package."""
        return [self._python, "-m", "aiaml_server"]


def ms(seconds: float) -> str:
    """Format a duration."""
    return f"{seconds * 1000:,.{0 if seconds >= 1 else 1 if seconds >= 0.1 else 2}f} ms"


def beside(ours: float, other: float) -> str:
    """Format a duration, its yardstick and the ratio."""
    return f"{ms(ours)} : {ms(other)} = {ours / other:.2f} x"


def judged(text: str, value: float, limit: float) -> str:
    """Return a figure, in bold if it is above its limit."""
    return f"**{text}**" if value > limit else text


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    begun = perf_counter()
    action()
    return perf_counter() - begun


def in_turn(
    repeats: int, *actions: Callable[[], object], clock: Callable[[], float] = perf_counter
) -> list[float]:
    """Do things by turns; return the median of each, in seconds."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats):
        for action, taken in zip(actions, times, strict=True):
            begun = clock()
            action()
            taken.append(clock() - begun)
    return [median(each) for each in times]


def start_and_ask(server: Server, place: Path, words: Sequence[str]) -> tuple[float, ...]:
    """Start a process, ask it once and end it; return the seconds to each of the three."""
    with server.start(place) as client:
        server.search(client, words)
        first = perf_counter() - client.started
        return client.start_seconds, first, client.close()


def megabytes(client: Client) -> float:
    """Return the memory of the process, shared pages in part; 0 if the system does not tell."""
    try:
        text = Path(f"/proc/{client.process.pid}/smaps_rollup").read_text(encoding="ascii")
    except OSError:
        return 0.0
    found = re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def store(server: Server, client: Client, key: str, text: str) -> float:
    """Store a text; return the seconds until it was acknowledged."""
    begun = perf_counter()
    answer = client.answer(server.store(client, key, text))
    seconds = perf_counter() - begun
    server.handle(key, texts(answer))
    return seconds


Row = dict[str, list[float]]


def starting(servers: Sequence[Server], root: Path, repeats: int) -> Iterator[tuple[str, Row]]:
    """Measure starts, the first answers and ends."""
    rows: list[Row] = [{}, {}, {}]
    for _ in range(repeats):
        for server in servers:
            taken = start_and_ask(server, root / server.name, QUESTIONS["a rare word"])
            for row, seconds in zip(rows, taken, strict=True):
                row.setdefault(server.name, []).append(seconds)
    names = ("start until `initialize` is answered", "start until the first search is answered")
    yield from zip((*names, "end of input until the process is gone"), rows, strict=True)


def asking(servers: Sequence[Server], root: Path, repeats: int) -> Iterator[tuple[str, Row]]:
    """Measure searches and stores of running servers."""
    clients = {server: server.start(root / server.name) for server in servers}
    try:
        for server, client in clients.items():
            server.search(client, ["warm"])
        for kind, words in QUESTIONS.items():
            searches: Row = {}
            for _ in range(repeats):
                for server, client in clients.items():
                    seconds = timed(partial(server.search, client, words))
                    searches.setdefault(server.name, []).append(seconds)
            yield f"search for {kind}", searches
        stores: Row = {}
        for memory in corpus.memories(repeats, seed=1):
            for server, client in clients.items():
                text = memory.content[: server.largest]
                stores.setdefault(server.name, []).append(store(server, client, memory.id, text))
        yield "store a memory", stores
        yield "MB of memory", {each.name: [megabytes(client)] for each, client in clients.items()}
    finally:
        for client in clients.values():
            client.close()


def check_answers(base: Path) -> None:
    """Compare the answers of a server with the definition: fast and wrong is worth nothing."""
    server = Aiaml()
    with server.start(base.parent) as client:
        for words in QUESTIONS.values():
            found = json.loads(f"[{server.search(client, words)}]")
            found = found[0] if found and isinstance(found[0], list) else found
            wanted = [hit.id for hit in rank(Store(base).scan(), words)]
            if [each["id"] for each in found] != wanted:
                raise SystemExit(f"the answer to {words} is not that of the definition")


def indexing(base: Path) -> Iterator[tuple[str, str]]:
    """Measure the first search without an index, and its size."""
    count = len(list((base / "files").iterdir()))
    delete_index(base)
    _, first, _ = start_and_ask(Aiaml(), base.parent, ["project"])
    yield "start until the first search is answered, without an index", ms(first)
    yield "memories indexed in a second", f"{count / first:,.0f}"
    sizes = [
        sum(path.stat().st_size for path in place.iterdir())
        for place in (index_file(base).parent, base / "files")
    ]
    yield "size of the index : of the files", f"{sizes[0] / sizes[1]:.2f} x"


def fill(server: Server, place: Path, size: int) -> None:
    """Store memories with a server's own tool; write those of our own directly."""
    if isinstance(server, Aiaml):
        corpus.generate(place / "base", size)
        return
    place.mkdir(parents=True)
    with server.start(place) as client:
        for memory in corpus.memories(size):
            store(server, client, memory.id, memory.content[: server.largest])


def measure(servers: Sequence[Server], size: int, root: Path, repeats: int) -> None:
    """Print a table for one size."""
    for server in servers:
        fill(server, root / server.name, size)
    base = root / "aiaml" / "base"
    os.environ |= {"XDG_CACHE_HOME": str(root / "aiaml" / "home" / "cache")}
    if size:
        check_answers(base)
    names = [server.name for server in servers]
    print(f"\n| {size:,} memories | {' | '.join(names)} | aiaml : files |")
    print("|---|" + "--:|" * (len(names) + 1), flush=True)
    for way in (starting, asking):
        for what, row in way(servers, root, repeats):
            middle = {name: median(samples) for name, samples in row.items()}
            show = (lambda value: f"{value:.1f}") if what.startswith("MB") else ms
            cells = [show(middle[name]) for name in names]
            ratio = middle["aiaml"] / middle["files"] if middle["files"] else 0.0
            print(f"| {what} | {' | '.join(cells)} | {ratio:.2f} x |", flush=True)
    for what, figure in indexing(base) if size else ():
        print(f"| {what} | {figure} |" + " - |" * len(names), flush=True)
    command = [sys.executable, "-m", "aiaml_server", "--dir", str(base), "list"]
    (listing,) = in_turn(repeats, lambda: subprocess.run(command, capture_output=True, check=False))
    print(f"| `aiaml list` | {ms(listing)} |" + " - |" * len(names), flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("servers", nargs="*", metavar="SERVER")
    parser.add_argument("--sizes", default="0,1000,10000", help="numbers of memories")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--other", metavar="PYTHON", help="the Python of another installation")
    given = parser.parse_args()
    servers: list[Server] = [Aiaml(), Files(), *map(installed, given.servers)]
    if given.other:
        servers.append(Other(given.other))
    python = platform.python_version()
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs, Python {python}")
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="aiaml-speed-") as root:
            measure(servers, size, Path(root).resolve(), given.repeats)


if __name__ == "__main__":
    main()
