"""Measure the toolsets: python benchmarks/toolsets.py [--quick].

The times and sizes that their specifications promise. Each figure stands beside a yardstick that
was measured by turns with it: a bare server on the same SDK, a dictionary with the same entries, a
bare write, or reading the same files. `semantic` uses the model of the tests; without it, or with
`--quick`, its rows are left out.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import corpus
from aiaml_server.files import replace_atomic
from aiaml_server.toolsets.citations import Citation, Link, MemoryService
from aiaml_server.toolsets.compartments import Compartments
from quality import semantic_store
from servers import Aiaml, Files, Server
from speed import beside, in_turn, judged, ms, timed

ENTRIES = 10_000
WORDS = corpus.vocabulary()
Row = tuple[str, str, str]  # what is measured, the limit of its specification, and the figures
Call = Callable[[], object]
FILTERS: dict[str, dict[str, Any]] = {
    "a rare word": {"query": WORDS[12_000]},
    "a common word": {"query": "the"},
    "two words": {"query": f"{WORDS[300]} {WORDS[400]}"},
    "by tags": {"tags": ["tag 3", "tag 14"]},
}


class Toolset(Aiaml):
    """A server of one toolset."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._options = ["--toolset", name]

    def command(self) -> list[str]:
        return [*super().command(), *self._options]

    def environ(self, place: Path) -> dict[str, str]:
        file = {"AIAML_COMPARTMENTS_FILE": str(place / "starts.json")}
        return {**super().environ(place), **file}


def starts(place: Path, repeats: int) -> Iterator[Row]:
    """Compare how soon each toolset answers the first message."""

    def start(server: Server) -> None:
        server.start(place).close()

    for name in ("aiaml", "sessions", "compartments", "citations", "semantic"):
        ours, bare = in_turn(repeats, partial(start, Toolset(name)), partial(start, Files()))
        text = judged(beside(ours, bare), ours, 1.15 * bare)
        yield f"`{name}`: start and end : a bare server", "1.15 x", text


def entries() -> dict[str, dict[str, Any]]:
    """Make entries of 10 to 60 words, always the same."""
    chance = random.Random(1)
    found = {}
    for number in range(ENTRIES):
        text = " ".join(chance.choices(WORDS[:2_000], k=chance.randrange(10, 60)))
        found[f"{number:08x}"] = {
            "id": f"{number:08x}",
            "content": text if number % 100 else f"{text} {WORDS[12_000]}",
            "category": f"kind {number % 20}",
            "tags": [f"tag {number % 10}", f"tag {number % 11 + 10}"],
            "metadata": {"source": "benchmark"},
            "created_at": f"2026-01-01T00:00:00.{number:06}+00:00",
            "updated_at": f"2026-01-01T00:00:00.{number:06}+00:00",
            "access_count": 0,
            "priority": number % 10 + 1,
        }
    return found


def find(known: dict[str, dict[str, Any]], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Find entries in a dictionary, in the simplest way."""
    words = wanted.get("query", "").lower().split()
    ranked = []
    for entry in known.values():
        text = f"{entry['content']} {entry['category']} {entry['tags']} {entry['metadata']}".lower()
        score = sum(text.count(word) for word in words)
        if (score or not words) and set(wanted.get("tags", ())) <= set(entry["tags"]):
            ranked.append((-score, -entry["priority"], entry["updated_at"], entry))
    ranked.sort(key=lambda row: row[2], reverse=True)
    ranked.sort(key=lambda row: row[:2])
    return [row[3] for row in ranked]


def finding(place: Path, repeats: int) -> Iterator[Row]:
    """Compare `get_memory` with a dictionary."""
    path = place / "memory.json"
    known = entries()
    sessions = {"default": {"session": list(known.values())}}
    path.write_text(json.dumps({"format": 1, "sessions": sessions}), encoding="utf-8")
    with Compartments(path, limit=100_000_000) as memory:
        for name, wanted in FILTERS.items():
            found = {entry.id for entry in memory.get("session", **wanted).entries}
            assert found == {entry["id"] for entry in find(known, wanted)}, name
            ours, bare = in_turn(
                repeats,
                partial(memory.get, "session", **wanted),
                partial(find, known, wanted),
                clock=process_time,
            )
            text = judged(beside(ours, bare), ours, 0.1)
            yield f"`get_memory`, {name} : a dictionary", "100 ms", text


def citing(place: Path, repeats: int) -> Iterator[Row]:
    """Measure `citations` on 1,000 memories with two citations and three links each."""
    count = 1_000 if repeats > 1 else 100
    first = fill_repository(place, count).store.get("mem-0")
    memory_file = place / "memories" / "mem-0.md"
    question = f"what about the {WORDS[300]} and {WORDS[1_500]}?"

    def new() -> MemoryService:  # nothing is cached, as in a new process
        return MemoryService(place)

    def read_memories() -> int:
        return sum(len(path.read_bytes()) for path in place.glob("memories/*.md"))

    def save() -> object:
        content = f"{first.content} "
        return new().save(first.subject, content, first.citations, id="mem-0")

    def row(what: str, seconds: float, ours: Call, bare: Call) -> Row:
        taken, yardstick = in_turn(repeats, ours, bare, clock=process_time)
        text = judged(beside(taken, max(yardstick, 1e-6)), taken, seconds)
        return what, ms(seconds), text

    sources = [place / citation.path for citation in first.citations]
    what = f"`memory_search` among {count:,} : reading the files"
    yield row(what, 0.5, lambda: new().search(question), read_memories)
    text = memory_file.read_bytes()
    what = "`memory_save`, with two citations : a bare write"
    yield row(what, 0.1, save, lambda: replace_atomic(place / "bare.md", text, 0o644))
    what = "`memory_verify`, with two citations : reading its three files"
    verify = partial(new().verify, "mem-0", update_timestamp=False)
    yield row(what, 0.2, verify, lambda: [path.read_bytes() for path in (memory_file, *sources)])
    small = place / "small"
    fill_repository(small, 100)
    what = "`memory_graph_traverse`, depth 3 among 100 : reading and parsing them"
    walk = partial(MemoryService(small).traverse, "mem-0", 3)
    yield row(what, 0.5, walk, lambda: MemoryService(small).list_memories())


def fill_repository(place: Path, count: int) -> MemoryService:
    """Make a repository with memories that cite two lines each and link to others."""
    chance = random.Random(1)
    subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    for number in range(50):
        lines = [f"line_{number}_{line} = {chance.random()}" for line in range(400)]
        (place / f"file_{number}.py").write_text("\n".join(lines), encoding="utf-8")
    memories = MemoryService(place)
    for number in range(count):
        text = " ".join(chance.choices(WORDS[:2_000], k=chance.randrange(40, 160)))
        files = [f"file_{chance.randrange(50)}.py" for _ in range(2)]
        citations = [Citation(file, chance.randint(1, 400)) for file in files]
        links = [Link("related", f"mem-{chance.randrange(count)}") for _ in range(3)]
        content = f"**Fact**: {text}\n\n**Reasoning**: r\n\n**Action**: a"
        memories.save(f"Memory {number}", content, citations, links, ["a"], f"mem-{number}")
    return memories


def searching(place: Path, repeats: int) -> Iterator[Row]:
    """Measure searches by meaning among 1,000 memories."""
    from aiaml_server.toolsets.semantic.models import NewMemory  # noqa: PLC0415

    store = semantic_store(place)
    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS[:5_000], k=30)) for _ in range(1_000)]
    store.store_many([NewMemory(f"{text} {number}") for number, text in enumerate(texts)])
    queries = [" ".join(chance.choices(WORDS[:5_000], k=8)) for _ in range(4 * repeats)]
    seconds = median(timed(partial(store.search, query)) for query in queries)
    yield "`search_memory` among 1,000", "100 ms", judged(ms(seconds), seconds, 0.1)
    size = store.databases["global"].path.stat().st_size / 1e6
    yield "database of 1,000 memories", "10 MB", judged(f"{size:.1f} MB", size, 10)
    store.close()


def main() -> None:
    """Print the table."""
    repeats = 1 if "--quick" in sys.argv[1:] else 15
    print("| | limit | |\n|---|---|--:|")
    ways = (starts, finding, citing, searching)
    for measure in ways[:-1] if repeats == 1 else ways:  # the last needs a model
        with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as place:
            for row in measure(Path(place).resolve(), repeats):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
