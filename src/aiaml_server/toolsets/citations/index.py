"""Optional search by meaning: the interface of an index, and the index that finds nothing."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from aiaml_server.toolsets.citations.models import JsonObject, Memory

Likeness = Sequence[tuple[str, float]]
"""Ids of memories, each with a likeness from 0 to 1."""


class MemoryIndex(ABC):
    """Finds memories by meaning. It is derived from the files, which alone are the truth.

    A method may raise anything, and its caller goes on without the index. `Unavailable` says what
    to do.
    """

    name: str

    @abstractmethod
    def add(self, memories: Sequence[Memory]) -> None:
        """Add memories, or replace their texts."""

    @abstractmethod
    def remove(self, ids: Sequence[str]) -> None:
        """Remove memories if they are there."""

    @abstractmethod
    def digests(self) -> Mapping[str, str]:
        """Return the `text_digest` of each memory that it holds, by id."""

    @abstractmethod
    def search(self, query: str, limit: int) -> Likeness:
        """Return the most alike memories, best first."""

    def health_check(self) -> bool:
        """Return whether the index answers."""
        try:
            self.search("health", 1)
        except Exception:  # noqa: BLE001 (Chroma's errors are of many kinds)
            return False
        return True

    def sync(self, memories: Iterable[Memory]) -> JsonObject:
        """Make the index hold exactly these memories.

        Returns:
            The index's name, and how many memories it holds, were added or changed, and removed.
        """
        wanted = {memory.id: memory for memory in memories}
        held = self.digests()
        new = [each for each in wanted.values() if held.get(each.id) != text_digest(each)]
        gone = [memory_id for memory_id in held if memory_id not in wanted]
        self.add(new)
        self.remove(gone)
        return {
            "index": self.name,
            "memories": len(wanted),
            "added": len(new),
            "removed": len(gone),
        }


class NullIndex(MemoryIndex):
    """The default index, which holds nothing: search is by words alone."""

    name = "none"

    def add(self, memories: Sequence[Memory]) -> None:
        """Do nothing."""

    def remove(self, ids: Sequence[str]) -> None:
        """Do nothing."""

    def digests(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    def sync(self, memories: Iterable[Memory]) -> JsonObject:
        """Do nothing."""
        return {"index": self.name, "memories": len(list(memories)), "added": 0, "removed": 0}

    def search(self, query: str, limit: int) -> Likeness:  # noqa: ARG002
        """Return no result."""
        return []


def text_digest(memory: Memory) -> str:
    """Return a digest of what an index knows of a memory."""
    text = f"{memory.subject}\n{memory.content}\n{' '.join(memory.tags)}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]
