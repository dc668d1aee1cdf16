"""Measure speed: python benchmarks/speed.py [SERVER …] [--sizes 0,4999,10000] [--against PYTHON].

Each figure is the median of this checkout beside that of a yardstick, measured by turns. So the
ratio means something on another machine. The yardstick is a server of plain files on the same SDK,
or with `--against` another installation of aiaml, by the path of its Python. SERVER adds others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

import corpus
from aiaml_server.format.scorer import rank
from aiaml_server.storage.store import Store
from mcp_client import Client, texts
from servers import Aiaml, Files, Server, installed

WORDS = corpus.vocabulary()
QUESTIONS = {
    "a rare word": [WORDS[12_000]],
    "a common word": ["project"],
    "two words": ["dinner", "kitchen"],
    "eight words": ["dinner", "food", "diet", "kitchen", WORDS[2_000], "marco", "friday", "budget"],
    "`the`": ["the"],
    "a phrase": ["san francisco"],
    "no match": ["xylqzv"],
    "a letter": ["e"],
}
MAKE_INDEX = """import sys; from pathlib import Path; from aiaml_server.index.index import Index
from aiaml_server.storage.store import Store; Index(Store(Path(sys.argv[1]))).think(["project"])"""
HOOK = ("-m", "aiaml_server.server.hooks", "--host", "claude-code", "--event")
PROMPT = b'{"prompt": "What did we decide about the dinner menu and the budget for Marco?"}'
FEW = 3  # repeats of what takes long
MANY = 10_000  # memories, above which making an index takes long
Rows = dict[str, dict[str, list[float]]]  # by what is measured and the server's name


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


def start_and_end(server: Server, place: Path, rows: Rows, suffix: str = "") -> None:
    """Start a process, ask it once and end it."""
    with server.start(place) as client:
        server.search(client, QUESTIONS["a rare word"])
        first = perf_counter() - client.started
        seconds = (client.start_seconds, first, client.close())
    for what, taken in zip(
        ("answers `initialize`", "answers a search", "ends"), seconds, strict=True
    ):
        rows[f"a process {what}{suffix}"][server.name].append(taken)


def ask(server: Server, client: Client, rows: Rows, key: str, text: str) -> None:
    """Store a text twice in a running server, and ask it for everything."""
    search = partial(server.search, client, ["warm"])
    for number, what in enumerate(("search", "read")):
        begun = perf_counter()
        answer = client.answer(server.store(client, f"{key}{number}", text[: server.largest]))
        rows["store a memory"][server.name].append(perf_counter() - begun)
        read = partial(server.read, client, server.handle(f"{key}{number}", texts(answer)))
        seconds = timed(read if what == "read" else search)
        rows[f"{what}, right after storing"][server.name].append(seconds)
        sleep(0.1)  # until a later change of the directory is certain to show
        search()
    rows["read a memory"][server.name].append(timed(read))
    for kind, words in QUESTIONS.items():
        seconds = timed(partial(server.search, client, words))
        rows[f"search for {kind}"][server.name].append(seconds)


def run(server: Server, place: Path, *arguments: str) -> tuple[float, float]:
    """Run a Python to its end; return the seconds that passed, and those of a processor."""
    home = str(place / "home")
    environ = {"PATH": os.environ["PATH"], "HOME": home, **server.environ(place)}
    environ["XDG_CACHE_HOME"] = f"{home}/cache"
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    command = [server.command()[0], "-I", *arguments]
    subprocess.run(command, env=environ, input=PROMPT, capture_output=True, check=False)
    seconds, after = perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def use_aiaml(server: Server, place: Path, rows: Rows) -> None:
    """Run commands, and the hooks of this checkout."""
    for words in ("list", "search dinner kitchen"):
        seconds, _ = run(server, place, "-m", "aiaml_server", *words.split())
        rows[f"`aiaml {words}`"][server.name].append(seconds)
    for event in ("prompt", "session_start") if server.name == Aiaml.name else ():
        ratio = run(server, place, *HOOK, event)[1] / run(server, place, "-c", "pass")[1]
        rows[f"hook `{event}` : `python -c pass`, processor time"][server.name].append(ratio)


def delete_index(place: Path) -> list[Path]:
    """Delete an index, and return where it is: now, and in the version before the rebuild."""
    places = [place / "home" / "cache", place / "base" / ".index"]
    for each in places:
        shutil.rmtree(each, ignore_errors=True)
    return places


def make_index(server: Server, place: Path, rows: Rows) -> None:
    """Make the index anew in a process."""
    places = delete_index(place)
    _, processor = run(server, place, "-c", MAKE_INDEX, str(place / "base"))
    rows["the index made anew, processor time"][server.name].append(processor)
    files = [path for each in places for path in each.rglob("*.*")]
    memories = (place / "base" / "files").iterdir()
    sizes = [sum(path.stat().st_size for path in some) for some in (files, memories)]
    rows["size of the index : of the files"][server.name].append(sizes[0] / sizes[1])


def find_new(server: Server, place: Path, rows: Rows, word: str) -> None:
    """Ask a server that has no index, and one while a word is written into a file by hand."""
    delete_index(place)
    start_and_end(server, place, rows, ", without an index")
    with server.start(place) as client:
        server.search(client, [word])
        with min((place / "base" / "files").iterdir()).open("a", encoding="utf-8") as file:
            file.write(f"\n{word}\n")
        begun = perf_counter()
        while server.search(client, [word]) == "[]":
            continue
        rows["an edit by hand until it is found"][server.name].append(perf_counter() - begun)


def check_answers(place: Path) -> None:
    """Compare the answers of a server with the definition: fast and wrong is worth nothing."""
    server = Aiaml()
    memories = list(Store(place / "base").scan())
    with server.start(place) as client:
        for words in QUESTIONS.values():
            found = json.loads(f"[{server.search(client, words)}]")
            found = found[0] if found and isinstance(found[0], list) else found
            if [each["id"] for each in found] != [hit.id for hit in rank(memories, words)]:
                raise SystemExit(f"the answer to {words} is not that of the definition")


def fill(server: Server, place: Path, size: int) -> None:
    """Store memories with a server's own tool; write those of our own directly."""
    if isinstance(server, Aiaml):
        corpus.generate(place / "base", size)
        return
    place.mkdir(parents=True)
    with server.start(place) as client:
        for memory in corpus.memories(size):
            text = memory.content[: server.largest]
            server.handle(memory.id, texts(client.answer(server.store(client, memory.id, text))))


def measure(servers: Sequence[Server], size: int, root: Path, repeats: int) -> Rows:
    """Return what is measured for one size, by turns."""
    rows: Rows = defaultdict(lambda: defaultdict(list))
    for server in servers:
        fill(server, root / server.name, size)
    if size:
        check_answers(root / Aiaml.name)
        for server in (each for each in servers if isinstance(each, Aiaml)):
            run(server, root / server.name, "-c", MAKE_INDEX, str(root / server.name / "base"))
    for _ in range(repeats):
        for server in servers:
            start_and_end(server, root / server.name, rows)
    clients = [(server, server.start(root / server.name)) for server in servers]
    for memory in corpus.memories(repeats, seed=1):
        for server, client in clients:
            ask(server, client, rows, memory.id, memory.content)
    for _, client in clients:
        client.close()
    return rows


def measure_aiaml(
    servers: Sequence[Server], size: int, root: Path, repeats: int, rows: Rows
) -> None:
    """Add what only installations of aiaml have."""
    for number in range(repeats):
        for server in servers:
            use_aiaml(server, root / server.name, rows)
        if number < FEW or size <= MANY:
            for server in servers:
                make_index(server, root / server.name, rows)
        for server in servers if number < FEW else ():
            find_new(server, root / server.name, rows, f"zuvmbq{number}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("servers", nargs="*", metavar="SERVER")
    parser.add_argument("--sizes", default="0,4999,10000", help="numbers of memories")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--against", metavar="PYTHON", help="the Python of another installation")
    given = parser.parse_args()
    yardstick = Aiaml(given.against, "other") if given.against else Files()
    servers = [Aiaml(), yardstick, *map(installed, given.servers)]
    names = [server.name for server in servers]
    python = platform.python_version()
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs, Python {python}")
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="aiaml-speed-") as root:
            rows = measure(servers, size, Path(root).resolve(), given.repeats)
            ours = [server for server in servers if isinstance(server, Aiaml)] if size else []
            measure_aiaml(ours, size, Path(root).resolve(), given.repeats, rows)
        print(f"\n| {size:,} memories | {' | '.join(names)} | aiaml : {yardstick.name} |")
        print("|---|" + "--:|" * (len(names) + 1))
        for what, row in rows.items():
            middle = {name: median(samples) for name, samples in row.items()}
            show = (lambda value: f"{value:.2f}") if " : " in what else ms
            cells = [show(middle[name]) if name in middle else "-" for name in names]
            both = len(middle) > 1 and middle[yardstick.name]
            ratio = f"{middle[Aiaml.name] / middle[yardstick.name]:.2f} x" if both else "-"
            print(f"| {what} | {' | '.join(cells)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
