"""Search by meaning: what an index of memories is, and the one that finds nothing."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiaml_server.toolsets.citations.model import Memory


@dataclass(frozen=True)
class Synced:
    """What bringing an index up to date has changed.

    Attributes:
        index: its name.
        memories: how many it holds now.
        added: how many are new in it, or were changed.
        removed: how many were taken out.
    """

    index: str
    memories: int
    added: int
    removed: int


def digest(memory: Memory) -> str:
    """Return what changes when a memory's text does."""
    text = f"{memory.subject}\n{memory.content}\n{' '.join(memory.tags)}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class MemoryIndex(ABC):
    """Finds memories by what they mean; derived from the files, which alone are believed.

    Every method may raise `Unavailable`: what it stands on is not installed or does not answer.
    """

    name: str

    @abstractmethod
    def add(self, memory: Memory) -> None:
        """Take in a memory, or its new text."""

    @abstractmethod
    def remove(self, memory_id: str) -> None:
        """Take out a memory, if it is there."""

    @abstractmethod
    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return the ids of the nearest memories, nearest first, with a likeness from 0 to 1."""

    @abstractmethod
    def health_check(self) -> bool:
        """Say whether it answers."""

    @abstractmethod
    def sync(self, memories: Mapping[str, Memory]) -> Synced:
        """Hold exactly these memories, as they are."""


class NullIndex(MemoryIndex):
    """The default: search is by words alone."""

    name = "none"

    def add(self, memory: Memory) -> None:
        """Take in nothing."""

    def remove(self, memory_id: str) -> None:
        """Take out nothing."""

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """Find nothing."""
        return []

    def health_check(self) -> bool:
        """Be well."""
        return True

    def sync(self, memories: Mapping[str, Memory]) -> Synced:
        """Hold nothing."""
        return Synced(self.name, len(memories), 0, 0)
