"""Measure `semantic`: benchmarks/semantic.py [--quick] [--quality DIRECTORY [LISTS]] [SIZE].

Without options, search and size for 1,000 memories (or SIZE) with vectors drawn by chance, against
the limits of the specification. The model is that of the tests.

With `--quality DIRECTORY`, how often one of the first five hits answers a question: the directory
holds `observations.json`, `turns.json` and `devbench.json`, each a list of stores {memories:
[{id, timestamp, user, topics, content}], questions: [{id, text, relevant: [id]}]}. LISTS is a JSON
file {question's id: [word, ...]} such as `benchmarks/keywords/ten.json`: what an agent writes after
each question. R@25 is the share of right memories among 25.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import corpus
from aiaml_server.toolsets.semantic.config import Config, Deduplication, Embedding
from aiaml_server.toolsets.semantic.db import EmbeddingModel, serialize_float32
from aiaml_server.toolsets.semantic.models import NewMemory, iso_to_sql
from aiaml_server.toolsets.semantic.store import MemoryStore
from semantic_model import NAME, Ready, real

CONFIG = Config(embedding=Embedding(model=NAME), deduplication=Deduplication(auto_check=False))
WORDS = corpus.vocabulary()
SETS = ("observations", "turns", "devbench")


def milliseconds(seconds: float) -> str:
    """Return a time as text."""
    return f"{seconds * 1000:.1f} ms"


def judged(text: str, value: float, limit: float) -> str:
    """Return a figure, in bold if it is above its limit."""
    return f"**{text}**" if value > limit else text


def filled(place: Path, size: int) -> MemoryStore:
    """Return a store whose vectors are drawn by chance."""
    chance = random.Random(1)
    store = MemoryStore(place / ".memory", None, None, CONFIG)
    texts = [
        " ".join(chance.choices(WORDS[:5000], k=chance.randrange(20, 40))) for _ in range(size)
    ]
    ids = store.store_many([NewMemory(f"{text} {number}") for number, text in enumerate(texts)])
    model = EmbeddingModel(NAME, real().version, real().dimension)
    database = store.databases["global"]
    with database.writing():
        for memory_id in ids:
            vector = [chance.gauss(0, 1) for _ in range(model.dimension)]
            number = int(memory_id.partition(":")[2])
            database.set_vectors(number, model, [serialize_float32(vector, model.dimension)])
    store.worker.model = Ready(real())
    return store


def speed(place: Path, size: int, repeats: int) -> Iterator[tuple[str, str, str]]:
    """Measure searches, and the size of the database."""
    store = filled(place, size)
    chance = random.Random(2)
    times = []
    for _ in range(repeats):
        query = " ".join(chance.choices(WORDS[:5000], k=8))
        begun = perf_counter()
        store.search(query)
        times.append(perf_counter() - begun)
    middle = median(times)
    slowest = quantiles(times, n=20)[-1]
    limit = "100 ms" if size <= 1_000 else "-"
    yield f"search of {size:,}", limit, judged(milliseconds(middle), middle, 0.1)
    yield "the same, the slowest of 20", limit, judged(milliseconds(slowest), slowest, 0.1)
    megabytes = store.databases["global"].path.stat().st_size / 1e6
    limit = "10 MB" if size <= 1_000 else "-"
    yield f"database of {size:,}", limit, judged(f"{megabytes:.1f} MB", megabytes, 10)
    store.close()


def quality(
    place: Path, directory: Path, name: str, lists: dict[str, list[str]] | None
) -> dict[str, float]:
    """Return how often one of the first five hits is right, and the share found among 25."""
    hits = recalled = asked = 0.0
    for number, data in enumerate(json.loads((directory / f"{name}.json").read_text("utf-8"))):
        store = MemoryStore(place / f"{name}{number}" / ".memory", None, Ready(real()), CONFIG)
        found: dict[str, str] = {}
        for memory in data["memories"]:
            (new,) = store.store_many([of_set(memory, len(found))])
            found[new] = memory["id"]
        for question in data["questions"]:
            if lists is not None and question["id"] not in lists:
                continue
            asked += 1
            query = " ".join([question["text"], *(lists[question["id"]] if lists else ())])
            ids = [found[hit.memory.id] for hit in store.search(query, 25).hits]
            relevant = set(question["relevant"])
            hits += bool(relevant & set(ids[:5]))
            recalled += len(relevant & set(ids)) / len(relevant)
        store.close()
    return {"hit@5": hits / asked, "R@25": recalled / asked, "questions": asked}


def of_set(memory: dict[str, Any], number: int) -> NewMemory:
    """Return a memory of a set; a number of spaces keeps equal texts apart."""
    content = f"{memory['user']}: {memory['content']}{' ' * number}"
    created = iso_to_sql(memory["timestamp"])
    return NewMemory(content, tags=memory["topics"], created_at=created)


def main() -> int:
    """Print a table."""
    words = sys.argv[1:]
    quick = "--quick" in words
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        if "--quality" in words:
            data, *rest = map(Path, words[words.index("--quality") + 1 :])
            lists = json.loads(rest[0].read_text("utf-8")) if rest else None
            for name in SETS:
                found = quality(place, data, name, lists)
                print(f"{name}: {', '.join(f'{key} {value:.3f}' for key, value in found.items())}")
            return 0
        sizes = [int(each) for each in words if each.isdigit()] or [50 if quick else 1_000]
        print("| | limit | |\n|---|---|--:|")
        for size in sizes:
            for row in speed(place / str(size), size, 20 if quick else 60):
                print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
