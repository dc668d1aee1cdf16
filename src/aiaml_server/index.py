"""Answers about the memories of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .memory import Memory
from .scorer import Hit, newest_first, rank
from .store import Store


class Index:
    """Finds memories by keyword and by id, by reading every file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the best hits, in the order that `scorer.rank` defines."""
        return rank(self._store.scan(), keywords)

    def recall(self, ids: Collection[str]) -> dict[str, list[Memory]]:
        """Return, for each id that any file carries, its memories, newest first."""
        found = [(name, memory) for name, memory in self._store.scan() if memory.id in ids]
        found.sort(key=lambda pair: pair[0], reverse=True)
        found.sort(key=lambda pair: newest_first(pair[1].timestamp))
        memories: dict[str, list[Memory]] = {}
        for _, memory in found:
            memories.setdefault(memory.id, []).append(memory)
        return memories
