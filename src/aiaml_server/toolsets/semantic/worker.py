"""Makes vectors: at once where the model is loaded, otherwise in one background thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from aiaml_server.toolsets.semantic import text
from aiaml_server.toolsets.semantic.db import Database, EmbeddingModel, serialize_float32
from aiaml_server.toolsets.semantic.embedding import LazyModel
from aiaml_server.toolsets.semantic.errors import SemanticError
from aiaml_server.toolsets.semantic.logs import log_error

POLL_SECONDS = 0.25
QUERY_SECONDS = 2.0

Item = tuple[Database, int]
"""A memory: its database and its number."""


class Embedded(NamedTuple):
    """Vectors of a text.

    Attributes:
        model: the model; None if it is not loaded.
        vectors: one for each chunk; none if the model failed.
        warnings: why there are no vectors.
    """

    model: EmbeddingModel | None
    vectors: Sequence[bytes]
    warnings: list[str]


class EmbeddingWorker:
    """Embeds texts, and those memories that have no current vectors."""

    def __init__(self, home: Path, model: LazyModel | None, *, background: bool) -> None:
        """Remember the model.

        Args:
            home: the person's `~/.memory`, for the log.
            model: makes vectors; None for search by words only.
            background: whether memories are embedded in a thread, and while the model is loading.
        """
        self.model = model
        self.background = background
        self._home = home
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(1, "semantic")

    def close(self) -> None:
        """End the thread. What is still queued is found again as memories without vectors."""
        self._closing.set()
        self._pool.shutdown(cancel_futures=True)

    def wait(self) -> None:
        """Wait until the thread has handled what is queued."""
        self._pool.submit(int).result()

    def current_model(self, seconds: float = 0.0) -> Embedded:
        """Return the model if it is loaded within some seconds, else the warning that says why."""
        return self.embed([], seconds=seconds)

    def embed(
        self, chunks: Sequence[str], *, is_query: bool = False, seconds: float = 0.0
    ) -> Embedded:
        """Return the vectors of chunks of text, if the model is loaded within some seconds.

        A query waits for a model that is on this machine.
        """
        if self.model is None:
            return Embedded(None, (), [])
        if is_query and self.model.state().status == "loading":
            seconds = QUERY_SECONDS
        embedder = self.model.ready(seconds)
        if embedder is None:
            warning = self.model.state().warning
            return Embedded(None, (), [warning] if warning else [])
        model = EmbeddingModel(embedder.name, embedder.version, embedder.dimension)
        try:
            made = embedder.embed(chunks, is_query=is_query) if chunks else []
            vectors = [serialize_float32(vector, model.dimension) for vector in made]
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            log_error(self._home, "embed", error)
            failed = f"words only: the model failed on this text ({type(error).__name__})"
            return Embedded(model, (), [failed])
        return Embedded(model, vectors, [])

    def embed_memories(self, items: Iterable[Item]) -> int:
        """Give memories their vectors; return how many got some."""
        done = 0
        for database, number in items:
            content = database.row(number).get("content")
            if content is None or database.vector_problem:
                continue
            model, vectors, _ = self.embed(text.chunk_text(content))
            with database.writing():
                if model and vectors and database.row(number).get("content") == content:
                    database.set_vectors(number, model, vectors)
                    done += 1
        return done

    def embed_later(self, items: Sequence[Item]) -> None:
        """Embed memories in the background; without one, now, if the model is loaded."""
        if self.model is None or not items:
            return
        if not self.background:
            if self.model.ready() is not None:
                self.embed_memories(items)
            return
        for item in items:
            if not self._closing.is_set():
                self._pool.submit(self._embed_when_ready, self.model, item)

    def _embed_when_ready(self, model: LazyModel, item: Item) -> None:
        while model.ready() is None:
            is_coming = model.state().status in ("loading", "downloading")
            if not is_coming or self._closing.wait(POLL_SECONDS):
                return
        try:
            self.embed_memories([item])
        except SemanticError as error:
            log_error(self._home, "embed", error)
