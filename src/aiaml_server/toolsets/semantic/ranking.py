"""The search statement of a database, and the score of the specification.

Candidates of both databases are joined before any value is scaled. Scaled separately, the best of a
poor database would count as much as the best of a good one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

from aiaml_server.timestamps import parse_timestamp
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.models import COLUMNS, Memory

MAX_CANDIDATES = 50
"""The limit for candidates by meaning, and for those by words."""
PRIORITY_SCORES = {"CORE": 1.0, "HIGH": 0.75, "NORMAL": 0.5, "LOW": 0.25}
FULL_USAGE = 100
"""Uses above which more do not count."""
MEANING_SHARE = 0.5
"""The share of meaning in `similarity`; words have the rest."""

_NEAREST = """
    SELECT vectors.memory_id AS id, min(near.distance) AS distance
    FROM (
        SELECT vector_id, distance FROM vec_memories
        WHERE embedding MATCH :vector AND k = {count} AND model = :model {only}
    ) AS near JOIN vectors ON vectors.id = near.vector_id
    GROUP BY vectors.memory_id
"""
_NO_NEAREST = "SELECT 0 AS id, 0.0 AS distance WHERE 0"
_COSINE = """
    coalesce(1 - nearest.distance, (
        SELECT max(1 - vec_distance_cosine(vec_memories.embedding, :vector))
        FROM vectors CROSS JOIN vec_memories ON vec_memories.vector_id = vectors.id
        WHERE vectors.memory_id = memories.id AND vec_memories.model = :model
    ))
"""
_CANDIDATES = """
WITH nearest AS ({nearest}),
best AS (
    SELECT rowid AS id, -bm25(words) AS bm25 FROM words
    WHERE words MATCH :words {only}
    ORDER BY bm25(words), rowid LIMIT {count}
),
either AS (SELECT id FROM nearest UNION SELECT id FROM best)
SELECT {columns}, {cosine} AS cosine, coalesce(best.bm25, 0.0) AS bm25
FROM either JOIN memories USING (id) LEFT JOIN nearest USING (id) LEFT JOIN best USING (id)
"""


def candidates_statement(where: str = "", *, with_vectors: bool = True) -> str:
    """Return the statement that finds a database's candidates.

    Args:
        where: an SQL condition that memories must meet; empty for none.
        with_vectors: whether meanings are compared; otherwise words only.
    """
    allowed = f"SELECT id FROM memories WHERE {where}"
    allowed_vectors = f"AND vector_id IN (SELECT id FROM vectors WHERE memory_id IN ({allowed}))"
    nearest = _NEAREST.format(count=MAX_CANDIDATES, only=allowed_vectors if where else "")
    return _CANDIDATES.format(
        nearest=nearest if with_vectors else _NO_NEAREST,
        only=f"AND rowid IN ({allowed})" if where else "",
        count=MAX_CANDIDATES,
        columns=COLUMNS,
        cosine=_COSINE if with_vectors else "NULL",
    )


@dataclass(frozen=True)
class Candidate:
    """A memory that may be a hit.

    Attributes:
        memory: the memory.
        cosine: similarity of meaning, from -1 to 1; None without comparable vectors.
        bm25: how well its words match; 0 if none does.
    """

    memory: Memory
    cosine: float | None
    bm25: float


@dataclass(frozen=True)
class SearchHit:
    """A memory in an answer, with the parts of its score.

    Attributes:
        memory: the memory.
        score: what hits are ordered by.
        parts: similarity (of meaning and words), recency, priority and usage,
            each from 0 to 1; the project's boost; and the cosine and bm25 of the candidate.
        is_weak: whether the cosine is below the threshold.
    """

    memory: Memory
    score: float
    parts: Mapping[str, float | None]
    is_weak: bool


def rank(candidates: Sequence[Candidate], config: Config, now: int) -> list[SearchHit]:
    """Return the hits, best first: by score, then newest, then id.

    Similarity is meaning and words, each scaled over the candidates; without cosines, words alone.

    Args:
        candidates: of all databases.
        config: weights and thresholds.
        now: the instant from which recency is counted, in microseconds.
    """
    cosines = [each.cosine for each in candidates if each.cosine is not None]
    lowest = min(cosines, default=0.0)
    span = max(cosines, default=0.0) - lowest
    best_words = max((each.bm25 for each in candidates), default=0.0) or 1.0
    share = MEANING_SHARE if cosines else 0.0
    hits = []
    for each in candidates:
        distance = 0.0 if each.cosine is None else each.cosine - lowest
        meaning = distance / span if span else 1.0
        similarity = share * meaning + (1 - share) * each.bm25 / best_words
        hits.append(_score(each, similarity, config, now))
    hits.sort(key=lambda hit: (hit.score, hit.memory.created_at, hit.memory.number), reverse=True)
    return hits


def _score(candidate: Candidate, similarity: float, config: Config, now: int) -> SearchHit:
    memory = candidate.memory
    factors = {
        "similarity": similarity,
        "recency": recency_score(memory, now, config.retrieval.half_life_days),
        "priority": priority_score(memory),
        "usage": min(log1p(memory.access_count) / log1p(FULL_USAGE), 1.0),
    }
    weights = vars(config.retrieval.scoring_weights)
    is_preferred = memory.scope == "project" and memory.is_reviewed
    boost = config.retrieval.project_boost if is_preferred else 0.0
    score = sum(weights[name] * factor for name, factor in factors.items()) + boost
    cosine = candidate.cosine
    raw = {"project_boost": boost, "cosine": cosine, "bm25": candidate.bm25}
    is_weak = cosine is not None and cosine < config.weak_below
    return SearchHit(memory, score, {**factors, **raw}, is_weak)


def recency_score(memory: Memory, now: int, half_life_days: float) -> float:
    """Return 1 for a new memory, and half of that after each half-life."""
    created = parse_timestamp(memory.created_at)
    if created is None:
        return 1.0
    days = max((now - created) / 86_400e6, 0.0)
    return float(0.5 ** (days / half_life_days))


def priority_score(memory: Memory) -> float:
    """Return the score of a priority; that of the next lower one for what a hook stored."""
    score = PRIORITY_SCORES[memory.priority]
    return score if memory.is_reviewed else score - 0.25
