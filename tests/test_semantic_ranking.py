"""Search by `semantic`: the same ids, order and scores as a literal reference, and its quality."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from aiaml_server.moments import instant
from aiaml_server.toolsets.semantic import cutting, ranking
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Memory
from semantic_model import NAME, Ready, model_folder, real

WIDTH = 12
WORDS = [f"w{number}x" for number in range(60)]
"""Which no stemmer changes."""
PRIORITIES = {"CORE": 1.0, "HIGH": 0.75, "NORMAL": 0.5, "LOW": 0.25}


class Chance:
    """A model whose vectors are drawn by chance, the same for the same text."""

    name = "chance"
    version = "1"
    dimension = WIDTH

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors as the database rounds them."""
        return [self.vector(each) for each in texts]

    def vector(self, text: str) -> list[float]:
        """Return one."""
        chance = random.Random(text)
        return single([chance.gauss(0, 1) for _ in range(WIDTH)])


def single(vector: Sequence[float]) -> list[float]:
    """Return numbers as 32 bits hold them."""
    return list(struct.unpack(f"<{len(vector)}f", struct.pack(f"<{len(vector)}f", *vector)))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


def bm25(query: list[str], texts: list[list[str]]) -> list[float]:
    """Return how well each text fits, as FTS5 has it."""
    length = sum(map(len, texts)) / len(texts)
    scores = [0.0] * len(texts)
    for word in query:
        there = sum(word in each for each in texts)
        idf = math.log((len(texts) - there + 0.5) / (there + 0.5))
        for number, each in enumerate(texts):
            count = each.count(word)
            norm = count + 1.2 * (1 - 0.75 + 0.75 * len(each) / length)
            scores[number] += max(idf, 1e-6) * count * 2.2 / norm
    return scores


def reference(memories: Memories, query: str, now: datetime) -> list[tuple[str, float]]:
    """Rank literally, as the specification and its page say it."""
    model = Chance()
    asked = model.vector(query)
    words = list(dict.fromkeys(query.split()))
    candidates: dict[str, tuple[Memory, float, float]] = {}
    everything = memories.list(limit=200).memories
    for scope in ("project", "global"):
        held = [each for each in everything if each.scope == scope]
        held.sort(key=lambda each: each.number)  # decides where the 50th and the 51st fit equally
        texts = [[*re.findall(r"\w+", each.content), *each.tags] for each in held]
        near = {each.id: cosine(asked, model.vector(each.content)) for each in held}
        fit = dict(zip((each.id for each in held), bm25(words, texts), strict=True))
        nearest = sorted(near, key=lambda name: -near[name])[:50]
        best = sorted((name for name in fit if fit[name]), key=lambda name: -fit[name])[:50]
        for each in held:
            if each.id in nearest or each.id in best:
                candidates[each.id] = (each, near[each.id], fit[each.id] if each.id in best else 0)
    low = min(near for _, near, _ in candidates.values())
    high = max(near for _, near, _ in candidates.values())
    most = max(fit for _, _, fit in candidates.values())
    blend = {
        name: 0.5 * (near - low) / (high - low) + 0.5 * (fit / most if most else 0)
        for name, (_, near, fit) in candidates.items()
    }
    top = sorted(blend, key=lambda name: -blend[name])[:50]
    first, last = blend[top[0]], blend[top[-1]]
    ranked = []
    for name in top:
        one = candidates[name][0]
        age = now - datetime.fromisoformat(one.created_at.replace("Z", "+00:00"))
        score = (
            0.4 * (blend[name] - last) / (first - last)
            + 0.2 * 0.5 ** (age.total_seconds() / 86400 / 365)
            + 0.2 * PRIORITIES[one.priority]
            + 0.2 * min(math.log(1 + one.access_count) / math.log(101), 1)
            + (0.1 if name.startswith("project") else 0)
        )
        ranked.append((score, one.created_at, name))
    ranked.sort(reverse=True)
    return [(name, score) for score, _, name in ranked]


def test_ranking_is_that_of_the_reference(tmp_path: Path) -> None:
    """For 60 questions over two databases of 150 memories each, by ids, order and scores."""
    chance = random.Random(1)
    memories = Memories(
        tmp_path / ".memory",
        tmp_path / "shop",
        Ready(Chance()),
        Config(dimension=WIDTH, check=False),
    )
    for scope in ("project", "global"):
        for number in range(90):
            content = " ".join(chance.choices(WORDS, k=chance.randrange(2, 20))) + f" n{number}y"
            memories.store(
                f"{content} {scope}", chance.sample(WORDS, 2), chance.choice(list(PRIORITIES)),
                scope=scope,
            )  # fmt: skip
        with memories.databases[scope].writing() as sql:
            for number in range(1, 91):
                moment = datetime.now(timezone.utc) - timedelta(days=chance.randrange(1500))
                values = (moment.strftime("%Y-%m-%d %H:%M:%S.%f"), chance.randrange(200), number)
                sql.execute(
                    "UPDATE memories SET created_at = ?, access_count = ? WHERE id = ?", values
                )
    for _ in range(60):
        query = " ".join(chance.choices(WORDS, k=chance.randrange(1, 6)))
        hits = memories.search(query, 50).hits
        expected = reference(memories, query, datetime.now(timezone.utc))
        assert len(hits) == 50
        for hit, (name, score) in zip(hits, expected, strict=True):
            assert hit.memory.id == name, query
            assert hit.score == pytest.approx(score, abs=1e-6)
    memories.close()


def test_databases_are_joined_before_anything_is_scaled(tmp_path: Path) -> None:
    """The best of a database that has nothing near is not as good as the best of one that has."""
    memories = Memories(
        tmp_path / ".memory",
        tmp_path / "shop",
        Ready(real()),
        Config(model=NAME, project_boost=0.0),
    )
    memories.store("The cat sleeps on the sofa")
    memories.store("Bread is baked at six")
    memories.store("Authentication uses OAuth with short-lived tokens", scope="global")
    memories.store("Sessions of users end after an hour", scope="global")
    hits = memories.search("how do users log in?").hits
    assert [each.memory.scope for each in hits] == ["global", "global", "project", "project"]
    assert hits[0].similarity == 1 and hits[-1].similarity == 0
    assert hits[0].cosine and not hits[0].weak and hits[-1].weak
    memories.close()


def test_what_only_words_find_has_its_cosine(tmp_path: Path) -> None:
    """It is compared as well, though it is not among the nearest."""
    memories = Memories(
        tmp_path / ".memory", None, Ready(Chance()), Config(dimension=WIDTH, check=False)
    )
    for number in range(80):
        memories.store(f"n{number}y")
    query = "n7y n1y n2y n3y n4y n5y n6y n8y n9y n10y"
    for hit in memories.search(query, 50).hits:
        assert hit.cosine is not None
        expected = cosine(Chance().vector(query), Chance().vector(hit.memory.content))
        assert hit.cosine == pytest.approx(expected, abs=1e-6)
    memories.close()


def test_a_long_memory_is_found_by_each_of_its_parts(tmp_path: Path) -> None:
    """A model reads the beginning of a text alone, so it is given in parts."""
    memories = Memories(tmp_path / ".memory", None, Ready(real()), Config(model=NAME))
    filler = "The weather in the valley was mild and the road was dry that day. " * 40
    memories.store(f"{filler} The password policy demands sixteen characters. {filler}")
    memories.store("Rivers carry sand to the sea.")
    assert memories.search("how long must a secret login phrase be?").hits[0].memory.number == 1
    memories.close()


@pytest.mark.parametrize(
    "text", ["word " * 1000, "x" * 5000, "日本語" * 2000, "a\n\n" * 700, "x" * 1599 + " y" * 300]
)
def test_parts_are_the_whole_text(text: str) -> None:
    """Nothing is lost, and none is longer than a model reads."""
    parts = cutting.parts(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(each) <= 1000 and len(each.split()) <= cutting.PART for each in parts)
    assert cutting.parts("a short one") == ["a short one"]


def test_a_score_says_what_it_is_made_of(tmp_path: Path) -> None:
    """The parts add up, with the weights of the settings."""
    weights = {"similarity": 0.1, "recency": 0.2, "priority": 0.3, "usage": 0.4}
    settings = Config(model=NAME, similarity=0.1, recency=0.2, priority=0.3, usage=0.4)
    memories = Memories(tmp_path / ".memory", None, Ready(real()), settings)
    memories.store("Tea is green", priority="CORE")
    memories.update("global:1", used=True)
    (hit,) = memories.search("tea").hits
    parts = {name: getattr(hit, name) for name in weights}
    assert hit.score == pytest.approx(sum(weights[name] * parts[name] for name in weights))
    assert parts["priority"] == 1 and parts["usage"] == pytest.approx(0.1502, abs=1e-3)
    assert parts["recency"] == pytest.approx(1, abs=1e-4)
    memories.close()


def test_half_lives() -> None:
    """Half after 365 days, whatever else."""
    now = instant("2026-11-22T00:00Z") or 0
    fields = ["x"] * 8 + ["2025-11-22T00:00:00.000000Z"] + ["x"] * 8
    assert ranking.recency(Memory(*fields), now, 365) == pytest.approx(0.5)  # type: ignore[arg-type]


def test_the_real_model_is_there() -> None:
    """Where the Python index can be reached, nothing of this file is skipped."""
    assert (model_folder() / "model.onnx").stat().st_size > 20_000_000
