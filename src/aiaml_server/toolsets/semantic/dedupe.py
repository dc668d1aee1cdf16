"""Groups of memories that resemble each other, and what they become when they are merged."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

from aiaml_server.toolsets.semantic.db import Database, EmbeddingModel
from aiaml_server.toolsets.semantic.errors import InvalidInput
from aiaml_server.toolsets.semantic.models import (
    COLUMNS,
    MAX_CONTEXTS,
    PRIORITIES,
    Memory,
    from_row,
    merge_tags,
    normalized_hash,
    to_json,
)

EQUAL = "equal but for case and white space"
SIMILAR = "similar or contradicting"
DEFAULT_THRESHOLD = 0.95
MAX_GROUPS = 50  # of an answer
_BLOCK = 256  # memories that are compared with all others at once
_ROUNDING = 1e-6  # of a cosine in single precision

_EQUAL_PAIRS = """
SELECT first, id FROM
    (SELECT min(id) OVER (PARTITION BY normalized_hash) AS first, id FROM memories)
WHERE first != id
"""
_FIRST_VECTORS = """
SELECT vectors.memory_id, vec_memories.embedding
FROM vectors JOIN vec_memories ON vec_memories.vector_id = vectors.id
WHERE vectors.part = 0 AND vec_memories.model = ? ORDER BY vectors.memory_id
"""


class Group(NamedTuple):
    """Memories that resemble each other.

    Attributes:
        kind: `EQUAL` or `SIMILAR`.
        memories: newest first.
    """

    kind: str
    memories: Sequence[Memory]


def check_threshold(threshold: float) -> None:
    """Check a threshold.

    Raises:
        InvalidInput: it is out of range.
    """
    if not 0 < threshold <= 1:
        raise InvalidInput("similarity_threshold: must be a number above 0, at most 1")


def find_groups(
    database: Database, model: EmbeddingModel | None = None, threshold: float = 1.0
) -> list[Group]:
    """Return the groups within a database, the largest first.

    Args:
        database: it must exist.
        model: whose vectors are compared; None for texts only.
        threshold: the cosine from which on two memories resemble each other.
    """
    pairs = database.fetch(_EQUAL_PAIRS)
    if model and database.has_vectors(model) and find_spec("numpy"):
        pairs += similar_pairs(database.fetch(_FIRST_VECTORS, (model.key,)), threshold)
    groups = []
    for numbers in connected(pairs):
        query = f"SELECT {COLUMNS} FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        rows = database.fetch(query, (to_json(numbers),))
        memories = sorted((from_row(database.scope, row) for row in rows), key=newest_key)
        hashes = {normalized_hash(memory.content) for memory in memories}
        groups.append(Group(EQUAL if len(hashes) == 1 else SIMILAR, memories[::-1]))
    return sorted(groups, key=lambda group: len(group.memories), reverse=True)


def similar_pairs(vectors: Sequence[tuple[int, bytes]], threshold: float) -> list[tuple[int, int]]:
    """Return the pairs of memories whose vectors are similar; this needs numpy.

    Args:
        vectors: the number and the vector of each memory.
        threshold: the cosine from which on two are similar.
    """
    import numpy as np  # noqa: PLC0415 (heavy, and an extra)

    if not vectors:
        return []
    numbers = [number for number, _ in vectors]
    matrix = np.frombuffer(b"".join(vector for _, vector in vectors), "<f4")
    matrix = matrix.reshape(len(numbers), -1)
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    pairs = []
    for start in range(0, len(numbers), _BLOCK):
        cosines = matrix[start : start + _BLOCK] @ matrix[start:].T
        near = np.triu(cosines >= threshold - _ROUNDING, k=1)  # each pair once
        for row, column in np.argwhere(near).tolist():
            pairs.append((numbers[start + row], numbers[start + column]))
    return pairs


def connected(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the groups of numbers that pairs connect."""
    groups: dict[int, list[int]] = {}
    for first, second in pairs:
        one = groups.setdefault(first, [first])
        other = groups.setdefault(second, [second])
        if one is not other:
            one += other
            for number in other:
                groups[number] = one
    return [group for number, group in groups.items() if group[0] == number]


def newest_key(memory: Memory) -> tuple[str, int]:
    """Return what the newest of some memories has the most of."""
    return memory.updated_at, memory.number


def merge_memories(memories: Sequence[Memory]) -> dict[str, Any]:
    """Return what becomes of memories, newest first: the columns that change on the newest.

    The newest keeps its text, the highest priority wins, tags are combined, uses are added up.
    """
    contexts = [context for memory in reversed(memories) for context in memory.usage_contexts]
    return {
        "priority": min((memory.priority for memory in memories), key=PRIORITIES.index),
        "category": next((memory.category for memory in memories if memory.category), None),
        "tags": to_json(merge_tags(*(memory.tags for memory in memories))),
        "access_count": sum(memory.access_count for memory in memories),
        "usage_contexts": to_json(contexts[-MAX_CONTEXTS:]),
    }
