"""Measure `semantic`: benchmarks/semantic.py [--quick] [--quality DIRECTORY [LISTS]] [SIZE …].

Without words, times for 1,000 memories (or the sizes that are named): a whole search beside what it
cannot do without, the question's embedding, a bare search among the vectors and a bare one among
the words, in alternation and in the processor's time. The vectors are drawn by chance, the texts
are of 20 to 40 words, the model is the tests' (`tests/semantic_model.py`).

With `--quality DIRECTORY`, how often one of the first five hits answers a question: the directory
holds `observations.json`, `turns.json` and `devbench.json`, each a list of stores {memories:
[{id, timestamp, user, topics, content}], questions: [{id, text, relevant: [id]}]}. LISTS is a JSON
file {question's id: [word, …]} such as `benchmarks/keywords/ten.json`: what an agent writes behind
each question; those without a list are left out. R@25 is the share of right memories among 25.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from time import process_time
from typing import Any

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import corpus
from aiaml_server.toolsets.semantic import cutting, journal, memory
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.database import Author, Database, author_of, packed, rows
from aiaml_server.toolsets.semantic.memories import Memories
from run import beside, judged, ms
from semantic_model import NAME, Ready, Real, real
from toolsets import in_turn

SETTINGS = Config(model=NAME, check=False)
WORDS = corpus.vocabulary()
SETS = ("observations", "turns", "devbench")


def add(database: Database, texts: Sequence[tuple[str, list[str], str]]) -> list[int]:
    """Add memories of a text, tags and a time, without vectors; return their numbers."""
    with database.writing() as sql:
        return [
            database.add(
                sql,
                {
                    **journal.row_of(memory.Draft(text, tags, created=moment)),
                    "content_hash": f"{number} {memory.digest(text)}",
                    "folded": "",
                },
            )
            for number, (text, tags, moment) in enumerate(texts)
        ]


def filled(place: Path, size: int, author: Author) -> Memories:
    """Return memories of which the vectors are drawn by chance."""
    chance = random.Random(1)
    memories = Memories(place / ".memory", None, Ready(real()), SETTINGS)
    database = memories.databases["global"]
    texts: list[tuple[str, list[str], str]] = [
        (" ".join(chance.choices(WORDS[:5000], k=chance.randrange(20, 40))), [], memory.now())
        for _ in range(size)
    ]
    numbers = add(database, texts)
    with database.writing() as sql:
        for number in numbers:
            vector = [chance.gauss(0, 1) for _ in range(author.dimension)]
            database.set_vectors(sql, number, author, [packed(vector, author.dimension)])
    return memories


def speed(place: Path, size: int, repeats: int) -> Iterator[tuple[str, str, str]]:
    """Compare a whole search with its parts, and storing with embedding."""
    model: Real = real()
    memories = filled(place, size, author_of(model))
    chance = random.Random(2)
    questions = [" ".join(chance.choices(WORDS[:5000], k=8)) for _ in range(repeats)]
    asked, other = iter(questions * 2), iter(questions * 2)

    def search() -> None:
        memories.search(next(asked))

    def bare() -> None:
        query = next(other)
        vector = packed(model.embed([query])[0], model.dimension)
        with memories.databases["global"].reading() as sql:
            rows(
                sql,
                "SELECT vector_id, distance FROM vec_memories"
                " WHERE embedding MATCH ? AND k = 50 AND author = 1",
                (vector,),
            )
            rows(
                sql,
                "SELECT rowid, bm25(words) FROM words WHERE words MATCH ?"
                " ORDER BY bm25(words) LIMIT 50",
                (cutting.match(query),),
            )

    search()
    asked = iter(questions * 2)
    whole, parts = in_turn(repeats, search, bare, clock=process_time)
    name = f"search of {size:,} : embedding, vectors and words alone"
    yield name, "2 x", judged(beside(whole, parts), whole, 2 * parts)
    times = []
    for question in questions:
        begun = process_time()
        memories.search(question)
        times.append(process_time() - begun)
    most = quantiles(times, n=20)[-1]
    if size <= 1_000:
        yield "the same, the slowest of 20", "50 ms", judged(ms(most), most, 0.05)
    else:
        yield "the same, the slowest of 20", "-", ms(most)
    text = iter(f"{each} {number}" for number, each in enumerate(questions * 2))
    stored, embedded = in_turn(
        repeats, lambda: memories.store(next(text)), partial(model.embed, [questions[0]]),
        clock=process_time,
    )  # fmt: skip
    yield "store : embedding alone", "-", beside(stored, embedded)
    held = (place / ".memory" / "db").stat().st_size / 1e6
    yield f"database of {size:,}", "-", f"{held:.1f} MB"
    memories.close()


def quality(
    place: Path, directory: Path, name: str, lists: dict[str, list[str]] | None = None
) -> dict[str, float]:
    """Return how often one of the first five hits is right, by similarity alone and by score."""
    alone = replace(SETTINGS, similarity=1.0, recency=0.0, priority=0.0, usage=0.0)
    right = dict.fromkeys(("similarity", "score", "R@25"), 0.0)
    asked = 0
    for number, each in enumerate(json.loads((directory / f"{name}.json").read_text("utf-8"))):
        home = place / f"{name}{number}" / ".memory"
        memories = Memories(home, None, Ready(real()), SETTINGS)
        numbers = add(memories.databases["global"], [of_set(one) for one in each["memories"]])
        ids = dict(zip(numbers, (one["id"] for one in each["memories"]), strict=True))
        for _ in memories.embed():
            pass
        for question in each["questions"]:
            if lists is not None and question["id"] not in lists:
                continue
            asked += 1
            more = lists[question["id"]] if lists else ()
            query = " ".join([question["text"], *more])
            relevant = set(question["relevant"])
            for kind, settings in (("similarity", alone), ("score", SETTINGS)):
                memories.config = memories._opened.config = settings
                hits = memories.search(query, 25).hits
                found = [ids[hit.memory.number] for hit in hits]
                right[kind] += bool(relevant & set(found[:5]))
            right["R@25"] += len(relevant & set(found)) / len(relevant)
        memories.close()
    return {kind: count / max(asked, 1) for kind, count in right.items()} | {"questions": asked}


def of_set(one: dict[str, Any]) -> tuple[str, list[str], str]:
    """Return a memory of a set: who said it stands in its text."""
    moment = one["timestamp"].replace("T", " ")[:19]
    return f"{one['user']}: {one['content']}", one["topics"], moment


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
            for row in speed(place / str(size), size, 5 if quick else 60):
                print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
