"""What turns texts into vectors, as the rest of the toolset sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol


class Embedder(Protocol):
    """A model that is loaded.

    Attributes:
        name: such as "BAAI/bge-small-en-v1.5".
        version: what tells two builds of it apart.
        dimension: the numbers in a vector.
    """

    name: str
    version: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text; it may raise anything where the model fails."""


class State(NamedTuple):
    """How the model stands.

    Attributes:
        kind: what it is doing.
        sentence: that in words, for an answer's `warnings`; empty when it is ready.
        done: bytes that have been downloaded.
        total: bytes in all; 0 where that is not known.
    """

    kind: Literal["ready", "loading", "missing", "downloading", "failed", "off"]
    sentence: str = ""
    done: int = 0
    total: int = 0


class Provider(Protocol):
    """Has a model, or will have one; nobody waits for it unless they say so."""

    def ready(self, wait: float = 0.0) -> Embedder | None:
        """Return the model if it is loaded within `wait` seconds; begin to load it otherwise."""

    def state(self) -> State:
        """Say how the model stands."""
