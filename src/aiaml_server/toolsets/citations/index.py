"""Optional search by meaning: the interface of an index, and the index that finds nothing."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aiaml_server.toolsets.citations.errors import Unavailable
from aiaml_server.toolsets.citations.models import Memory


@dataclass(frozen=True)
class SyncResult:
    """What synchronizing an index has changed.

    Attributes:
        index: the name of the index.
        memories: how many memories it holds now.
        added: how many are new or changed.
        removed: how many were removed.
    """

    index: str
    memories: int
    added: int
    removed: int


class MemoryIndex(ABC):
    """Finds memories by meaning. It is derived from the files, which alone are the truth.

    Every method may raise `Unavailable`.
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
    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return ids with a likeness from 0 to 1, best first."""

    def health_check(self) -> bool:
        """Return whether the index answers."""
        try:
            self.search("health", 1)
        except Unavailable:
            return False
        return True

    def sync(self, memories: Iterable[Memory]) -> SyncResult:
        """Make the index hold exactly these memories."""
        wanted = {memory.id: memory for memory in memories}
        held = self.digests()
        new = [each for each in wanted.values() if held.get(each.id) != text_digest(each)]
        gone = [memory_id for memory_id in held if memory_id not in wanted]
        self.add(new)
        self.remove(gone)
        return SyncResult(self.name, len(wanted), len(new), len(gone))


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

    def sync(self, memories: Iterable[Memory]) -> SyncResult:
        """Do nothing."""
        return SyncResult(self.name, len(list(memories)), 0, 0)

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """Return no result."""
        return []


def text_digest(memory: Memory) -> str:
    """Return a digest of what an index knows of a memory."""
    text = f"{memory.subject}\n{memory.content}\n{' '.join(memory.tags)}"
    return hashlib.sha256(text.encode()).hexdigest()[:40]
