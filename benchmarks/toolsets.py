"""Measure the opt-in toolsets: python benchmarks/toolsets.py [--quick].

Serving each is timed beside a bare server on the same SDK, in turn; finding among 10,000 entries
of working memory beside a dictionary of the same entries (the processor's time, since nothing waits
for a disk), and writing beside a bare write.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import corpus
from aiaml_server.files import replace_atomic
from aiaml_server.toolsets.compartments import Compartments
from aiaml_server.toolsets.sessions.service import AgentMemory
from servers import Aiaml, Files, Server
from speed import beside, in_turn, judged, ms, timed

ENTRIES = 10_000
DAY = "2025-01-20"
WORDS = corpus.vocabulary()
FILTERS: dict[str, dict[str, Any]] = {
    "a rare word": {"query": WORDS[12_000]},
    "a common word": {"query": "the"},
    "two words": {"query": f"{WORDS[300]} {WORDS[400]}"},
    "no match": {"query": "xylqzv"},
    "by category": {"category": "kind 7"},
    "by tags": {"tags": ["tag 3", "tag 14"]},
    "a page of all": {"limit": 25, "offset": 5_000},
}


class Toolset(Aiaml):
    """A server of one toolset."""

    def __init__(self, name: str, **environ: str) -> None:
        super().__init__()
        self._options = ["--toolset", name]
        self._environ = environ

    def command(self) -> list[str]:
        """Serve the toolset."""
        return [*super().command(), *self._options]

    def environ(self, place: Path) -> dict[str, str]:
        """Keep compartments in `place`, too."""
        file = {"AIAML_COMPARTMENTS_FILE": str(place / "starts.json")}
        return {**super().environ(place), **file, **self._environ}


def starts(place: Path, repeats: int) -> Iterator[tuple[str, str, str]]:
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
    """Find in a dictionary, as somebody would write it in ten lines."""
    words = wanted.get("query", "").lower().split()
    ranked = []
    for each in known.values():
        text = f"{each['content']} {each['category']} {each['tags']} {each['metadata']}".lower()
        score = sum(text.count(word) for word in words)
        if (
            (not words or any(word in text for word in words))
            and wanted.get("category", each["category"]) == each["category"]
            and set(wanted.get("tags", ())) <= set(each["tags"])
        ):
            ranked.append((-score, -each["priority"], each["updated_at"], each))
    ranked.sort(key=lambda row: row[2], reverse=True)
    ranked.sort(key=lambda row: row[:2])
    first = wanted.get("offset", 0)
    return [row[3] for row in ranked[first : first + wanted.get("limit", ENTRIES)]]


def finding(place: Path, repeats: int) -> Iterator[tuple[str, str, str]]:
    """Compare finding with a dictionary; and time the same through a server, and saving."""
    path = place / "memory.json"
    known = entries()
    held = {"session": list(known.values())}
    path.write_text(json.dumps({"format": 1, "sessions": {"default": held}}), encoding="utf-8")
    limit = {"AIAML_COMPARTMENT_LIMIT": "100000000", "AIAML_COMPARTMENTS_FILE": str(path)}
    with Compartments(path, limit=100_000_000) as memory:
        for name, wanted in FILTERS.items():
            found = {each.id for each in memory.get("session", **wanted).entries}
            assert found == {each["id"] for each in find(known, wanted)}, name
            ours, bare = in_turn(
                repeats,
                partial(memory.get, "session", **wanted),
                partial(find, known, wanted),
                clock=process_time,
            )
            text = judged(beside(ours, bare), ours, 0.1)
            yield f"`get_memory`, {name} : a dictionary", "100 ms", text
        saved, written = in_turn(
            max(repeats // 3, 1),
            lambda: memory.save("session", "one more"),
            lambda: replace_atomic(place / "bare.json", path.read_bytes(), 0o600),
        )
        yield "`save_memory` : a bare write of the same file", "", beside(saved, written)
    with Toolset("compartments", **limit).start(place) as client:
        given = {"compartment": "session", "limit": 25, **FILTERS["two words"]}
        client.call("get_memory", **given)
        times = [timed(partial(client.call, "get_memory", **given)) for _ in range(repeats)]
        yield "`get_memory` through a server, two words, 25 entries", "100 ms", ms(median(times))


def appending(place: Path, repeats: int) -> Iterator[tuple[str, str, str]]:
    """Compare appending to a log, when it is new and when it has 1,000 entries, with a write."""
    (place / ".git").mkdir()
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    memory = AgentMemory(str(place), "aristotle")
    log = Path(memory.start_session(DAY)["session_file"])
    for count in (0, 1_000):
        if count:
            lines = "".join(f"\n- Entry {number} of many.\n" for number in range(count))
            text = log.read_text(encoding="utf-8").replace(
                "## Decisions\n", f"## Decisions\n{lines}"
            )
            log.write_text(text, encoding="utf-8")
        ours, bare = in_turn(
            repeats,
            lambda: memory.append_entry("Decisions", "- Prices are kept in cents.", DAY),
            lambda: replace_atomic(place / "bare.md", log.read_bytes(), 0o644),
        )
        yield f"`append_entry`, {count:,} entries there : a bare write", "", beside(ours, bare)


def searching(place: Path, repeats: int) -> Iterator[tuple[str, str, str]]:
    """Measure searches by meaning among 1,000 memories with random vectors."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from aiaml_server.toolsets.semantic import config, models  # noqa: PLC0415
    from aiaml_server.toolsets.semantic.db import EmbeddingModel, serialize_float32  # noqa: PLC0415
    from aiaml_server.toolsets.semantic.store import MemoryStore  # noqa: PLC0415
    from semantic_model import NAME, Ready, real  # noqa: PLC0415

    off = config.Deduplication(auto_check=False)
    settings = config.Config(embedding=config.Embedding(model=NAME), deduplication=off)
    store = MemoryStore(place / ".memory", None, None, settings)
    chance = random.Random(1)
    texts = [" ".join(chance.choices(WORDS[:5_000], k=30)) for _ in range(1_000)]
    ids = store.store_many([models.NewMemory(f"{text} {at}") for at, text in enumerate(texts)])
    model = EmbeddingModel(NAME, real().version, real().dimension)
    database = store.databases["global"]
    with database.writing():
        for memory_id in ids:
            vector = [chance.gauss(0, 1) for _ in range(model.dimension)]
            number = int(memory_id.partition(":")[2])
            database.set_vectors(number, model, [serialize_float32(vector, model.dimension)])
    store.worker.model = Ready(real())
    queries = [" ".join(chance.choices(WORDS[:5_000], k=8)) for _ in range(4 * repeats)]
    seconds = median(timed(partial(store.search, query)) for query in queries)
    yield "`search_memory` among 1,000", "100 ms", judged(ms(seconds), seconds, 0.1)
    size = database.path.stat().st_size / 1e6
    yield "database of 1,000 memories", "10 MB", judged(f"{size:.1f} MB", size, 10)
    store.close()


def main() -> None:
    """Print the table."""
    repeats = 1 if "--quick" in sys.argv[1:] else 15
    print("| | limit | |\n|---|---|--:|")
    ways = (starts, finding, appending, searching)
    for measure in ways[:3] if repeats == 1 else ways:  # the last needs a model
        with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as place:
            for row in measure(Path(place).resolve(), repeats):
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
