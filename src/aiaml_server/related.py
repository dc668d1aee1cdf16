"""Memories that belong together: similar ones, and those that a newer one replaces.

Both are for a person who tidies up, and never change what agents find.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import InvalidInput
from aiaml_server.format.memory import Memory
from aiaml_server.index import Question
from aiaml_server.timestamps import parse_timestamp

MIN_SHARE = 0.25
"""How much of a memory's words, weighted by rarity, a similar one must have at least."""

_COMPARED_CHARACTERS = 2000
_MAX_REPLACING = 1000  # memories that are looked at for the sentence
_REPLACES = re.compile(r"\breplaces:? ([0-9a-f]{8})\b", re.IGNORECASE)


class Replaced(NamedTuple):
    """A memory that a newer one says it replaces.

    Attributes:
        name: the name of its file.
        memory: the memory.
        by: the id of the newer one.
    """

    name: str
    memory: Memory
    by: str


def similar_memories(bank: MemoryBank, memory: Memory, limit: int = 3) -> list[tuple[str, Memory]]:
    """Return the most similar memories with the names of their files, the best first.

    Raises:
        StoreError: the directory cannot be read.
    """
    words = memory.content[:_COMPARED_CHARACTERS].split()
    try:
        answer = bank.ask(Question.parse(words), part=slice(limit + 1))
    except InvalidInput:  # it has no words
        return []
    names = [hit.file_name for hit in answer.found.hits if answer.share(hit) >= MIN_SHARE]
    rows = [(name, other) for name, other in bank.read(names) if other.id != memory.id]
    return rows[:limit]


def replaced_memories(bank: MemoryBank) -> list[Replaced]:
    """Return the memories that a newer one replaces ("Replaces ID").

    Raises:
        StoreError: the directory cannot be read.
    """
    hits = bank.search(["replaces"], part=slice(_MAX_REPLACING)).hits
    replaced: dict[str, Replaced] = {}
    for _, newer in bank.read(hit.file_name for hit in hits):
        for memory_id in _REPLACES.findall(newer.content):
            for name, older in bank.find(memory_id):
                if older.id != newer.id and _instant(older) <= _instant(newer):
                    replaced.setdefault(name, Replaced(name, older, newer.id))
    return list(replaced.values())


def _instant(memory: Memory) -> int:
    return parse_timestamp(memory.timestamp) or 0
