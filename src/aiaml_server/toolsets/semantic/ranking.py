"""What is best: one statement over vectors and words for each database, and the score.

The nearest by meaning and the best by words of all databases are joined before anything is scaled:
scaled each by itself, the best of a poor database would count as much as the best of a good one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, log1p

from aiaml_server.timestamps import parse_timestamp
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.memory import COLUMNS, Memory
from aiaml_server.toolsets.semantic.periods import Period

CANDIDATES = 50
"""The nearest, the best by words, and what is left of both for the score."""
PRIORITY = {"CORE": 1.0, "HIGH": 0.75, "NORMAL": 0.5, "LOW": 0.25}
USES = 100
"""Uses after which more count no more."""
MEANING = 0.55
"""What meaning counts in how well a memory fits; its words count the rest."""
NEIGHBOUR = 0.1
"""What counts of the memory that was stored just before or after, within an hour."""
NAMED = 0.4
"""What is added where a memory was stored in a time that the question names."""
_HOUR = 3_600_000_000  # microseconds
_OF_THE_PERSON = re.compile(
    r"\b(?:i|i'm|me|my|mine|myself|(?:the|this) (?:user|person)|user's|person's"
    r"|prefers?|likes?|favou?rites?)\b",
    re.IGNORECASE,
)

_NEAREST = """
    SELECT vectors.memory_id AS id, min(near.distance) AS distance
    FROM (
        SELECT vector_id, distance FROM vec_memories
        WHERE embedding MATCH :vector AND k = {count} AND author = :author {only}
    ) AS near JOIN vectors ON vectors.id = near.vector_id
    GROUP BY vectors.memory_id
"""
_NO_NEAREST = "SELECT 0 AS id, 0.0 AS distance WHERE 0"
_COSINE = """
    coalesce(1 - nearest.distance, (
        SELECT max(1 - vec_distance_cosine(vec_memories.embedding, :vector))
        FROM vectors CROSS JOIN vec_memories ON vec_memories.vector_id = vectors.id
        WHERE vectors.memory_id = memories.id AND +vectors.author = :author -- + has no index used
    ))
"""
_BEST = """
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


def statement(where: str = "", *, meaning: bool = True) -> str:
    """Return the one statement.

    Args:
        where: which memories may be found, a condition on the table; empty for all.
        meaning: whether there are vectors to compare with; else by words alone.
    """
    among = f"SELECT id FROM memories WHERE {where}"
    by_vector = f"AND vector_id IN (SELECT id FROM vectors WHERE memory_id IN ({among}))"
    nearest = _NEAREST.format(count=CANDIDATES, only=by_vector if where else "")
    return _BEST.format(
        nearest=nearest if meaning else _NO_NEAREST,
        only=f"AND rowid IN ({among})" if where else "",
        count=CANDIDATES,
        columns=COLUMNS,
        cosine=_COSINE if meaning else "NULL",
    )


@dataclass(frozen=True)
class Candidate:
    """What may be a hit.

    Attributes:
        memory: the memory.
        cosine: how near it is by meaning, from -1 to 1; None without a vector to compare.
        bm25: how well its words fit; 0 where none does.
    """

    memory: Memory
    cosine: float | None
    bm25: float


@dataclass(frozen=True)
class Hit:
    """A memory in an answer, with what its score is made of.

    Attributes:
        memory: the memory.
        score: what orders the hits.
        similarity: how well it fits among the candidates, from 0 to 1, by meaning and words.
        cosine: the raw likeness by meaning; None without a vector to compare.
        bm25: the raw fit of the words.
        recency, priority, usage: each from 0 to 1.
        boost: what is added for the active project's memories, or for the person's own where the
            question is about them; a share of the rest.
        weak: whether the cosine is below the model's threshold.
    """

    memory: Memory
    score: float
    similarity: float
    cosine: float | None
    bm25: float
    recency: float
    priority: float
    usage: float
    boost: float
    weak: bool


def candidate(memory: Memory, cosine: float | None, bm25: float | None) -> Candidate:
    """Return what the statement gave, but for a likeness that is no number."""
    near = cosine if cosine is not None and isfinite(cosine) else None
    return Candidate(memory, near, bm25 if bm25 is not None and isfinite(bm25) else 0.0)


def about_the_person(question: str) -> bool:
    """Say whether a question is about whoever asks; seen in English alone."""
    return bool(_OF_THE_PERSON.search(question))


def ranked(
    found: Sequence[Candidate],
    config: Config,
    now: int,
    *,
    weak: float,
    preferred: str | None,
    named: Sequence[Period] = (),
) -> list[Hit]:
    """Return candidates best first: by score, then newest, then id.

    Args:
        found: of all databases.
        config: the weights.
        now: the moment that recency counts from.
        weak: the cosine below which a hit is marked.
        preferred: the database whose memories get the boost; None for neither.
        named: the times that the question names.
    """
    similar = similarities(found, named)
    hits = []
    best = sorted(found, key=lambda one: (-similar[one.memory.id], one.memory.id))
    for each in best[:CANDIDATES]:
        memory = each.memory
        similarity = similar[memory.id]
        recent = recency(memory, now, config.half_life)
        priority = PRIORITY[memory.priority]
        usage = min(log1p(memory.access_count) / log1p(USES), 1.0)
        score = (
            config.similarity * similarity
            + config.recency * recent
            + config.priority * priority
            + config.usage * usage
        )
        boost = score * config.project_boost if memory.scope == preferred else 0.0
        is_weak = each.cosine is not None and each.cosine < weak
        hits.append(
            Hit(memory, score + boost, similarity, each.cosine, each.bm25, recent, priority, usage,
                boost, is_weak)
        )  # fmt: skip
    return _best_first(hits)


def reranked(hits: Sequence[Hit], scores: Sequence[float], config: Config) -> list[Hit]:
    """Return hits with another similarity, best first.

    Args:
        hits: those that `ranked` gave.
        scores: how well each answers the question, on whatever scale.
        config: the weights.
    """
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    found = []
    for hit, given in zip(hits, scores, strict=True):
        similarity = _scaled(given, low, high)
        score = hit.score - hit.boost + config.similarity * (similarity - hit.similarity)
        boost = score * config.project_boost if hit.boost else 0.0
        found.append(replace(hit, score=score + boost, similarity=similarity, boost=boost))
    return _best_first(found)


def _best_first(hits: Sequence[Hit]) -> list[Hit]:
    """Return hits by score, then newest, then id."""
    named = sorted(hits, key=lambda hit: (hit.memory.scope, hit.memory.number))
    return sorted(named, key=lambda hit: (hit.score, hit.memory.created_at), reverse=True)


def similarities(found: Sequence[Candidate], named: Sequence[Period] = ()) -> Mapping[str, float]:
    """Return how well each fits, by id: the best 50 on 0 to 1.

    Meaning and words count by `MEANING`; what was stored beside something that fits, and in a time
    that the question names, fits somewhat better.
    """
    cosines = [each.cosine for each in found if each.cosine is not None]
    low, high = min(cosines, default=0.0), max(cosines, default=0.0)
    most = max((each.bm25 for each in found), default=0.0)
    blend: dict[str, float] = {}
    for each in found:
        meaning = _scaled(low if each.cosine is None else each.cosine, low, high)
        words = each.bm25 / most if most > 0 else 0.0
        blend[each.memory.id] = MEANING * meaning + (1 - MEANING) * words
    created = {each.memory.id: each.memory.created_at for each in found}

    def made(name: str) -> int:
        return parse_timestamp(created[name]) or 0

    fits: dict[str, float] = {}
    for name, value in blend.items():
        scope, _, number = name.partition(":")
        beside = (f"{scope}:{int(number) + step}" for step in (-1, 1))
        near = [
            blend[one] for one in beside if one in blend and abs(made(one) - made(name)) < _HOUR
        ]
        is_named = bool(named) and any(first <= made(name) <= last for first, last in named)
        fits[name] = value + NEIGHBOUR * max(near, default=0.0) + NAMED * is_named
    best = sorted(fits.values(), reverse=True)[:CANDIDATES]
    return {name: _scaled(value, best[-1], best[0]) for name, value in fits.items()}


def _scaled(value: float, low: float, high: float) -> float:
    """Return where a value lies between two, 1 where they are one."""
    return (value - low) / (high - low) if high > low else 1.0


def recency(memory: Memory, now: int, half_life: float) -> float:
    """Return how new a memory is: 1 now, half of it after each `half_life` days."""
    made = parse_timestamp(memory.created_at)
    if made is None:
        return 1.0
    days = max((now - made) / 86_400e6, 0.0)
    return float(0.5 ** (days / half_life))
