"""An index in Chroma. It is derived from the files and can be rebuilt at any time.

A Chroma database can make its reader act: a journal beside it names a file that SQLite deletes, and
a collection names the model that its client loads (chromadb 1.5.9, `build_from_config`). So the
database is in the user's state directory, and none in a repository is ever opened.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiaml_server.files import make_directory
from aiaml_server.identity import state_directory
from aiaml_server.toolsets.citations.errors import Unavailable
from aiaml_server.toolsets.citations.index import Likeness, MemoryIndex, text_digest
from aiaml_server.toolsets.citations.models import Memory

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Turns texts into vectors of one length."""


class ChromaIndex(MemoryIndex):
    """A collection of vectors in a directory of its own."""

    name = "chroma"

    def __init__(self, directory: Path, collection: str, embed: Embed | None = None) -> None:
        """Set where it is. Nothing is imported or created before it is used.

        Args:
            directory: where the configuration keeps it.
            collection: the collection's name.
            embed: makes vectors; None for Chroma's own model, if it is on this machine.
        """
        self._directory = directory
        self._name = collection
        self._embed = embed

    def add(self, memories: Sequence[Memory]) -> None:
        """Add memories, or replace their texts."""
        collection = self._open()
        for memory in memories:
            collection.upsert(
                ids=[memory.id],
                embeddings=self._vectors(f"{memory.subject}\n\n{memory.content}"),
                metadatas=[{"digest": text_digest(memory)}],
            )

    def remove(self, ids: Sequence[str]) -> None:
        """Remove memories if they are there."""
        if ids:
            self._open().delete(ids=list(ids))

    def digests(self) -> Mapping[str, str]:
        """Return the digest of each memory that it holds, by id."""
        held = self._open().get(include=["metadatas"])
        return {key: m["digest"] for key, m in zip(held["ids"], held["metadatas"], strict=True)}

    def search(self, query: str, limit: int) -> Likeness:
        """Return ids with a likeness from 0 to 1, best first."""
        found = self._open().query(
            query_embeddings=self._vectors(query), n_results=limit, include=["distances"]
        )
        likeness = [max(1 - distance, 0.0) for distance in found["distances"][0]]
        return list(zip(found["ids"][0], likeness, strict=True))

    def _open(self) -> Any:
        """Return the collection as it is now, also if another process has written to it.

        Raises:
            Unavailable: Chroma is not installed, or cannot open it.
        """
        try:
            os.environ["ORT_DISABLE_TELEMETRY"] = "1"
            import chromadb  # noqa: PLC0415 (an extra; takes a second)
            from chromadb.api.shared_system_client import SharedSystemClient  # noqa: PLC0415
        except ImportError as error:
            message = "index.type is chroma; install it: pip install 'aiaml-server[chroma]'"
            raise Unavailable(message) from error
        try:
            digest = hashlib.sha256(os.fsencode(os.path.realpath(self._directory))).hexdigest()
            place = state_directory() / "chroma" / digest[:32]
            make_directory(place)
            SharedSystemClient.clear_system_cache()  # an open client does not see what others add
            settings = chromadb.Settings(anonymized_telemetry=False)
            client = chromadb.PersistentClient(str(place), settings)
            return client.get_or_create_collection(
                self._name, embedding_function=None, metadata={"hnsw:space": "cosine"}
            )
        except Exception as error:  # its errors are of many kinds
            raise Unavailable(f"Chroma cannot open {self._directory.name}: {error}") from error

    def _vectors(self, text: str) -> list[list[float]]:
        embed = self._embed or _default_model()
        return [list(map(float, vector)) for vector in embed([text])]


def _default_model() -> Embed:
    """Return Chroma's own model if it was fetched before. Nothing is fetched here.

    Raises:
        Unavailable: it was not.
    """
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # noqa: PLC0415

    model = ONNXMiniLM_L6_V2()
    if not (Path(model.DOWNLOAD_PATH) / model.EXTRACTED_FOLDER_NAME / "model.onnx").is_file():
        raise Unavailable(
            "Chroma's model (80 MB) is not on this machine; to fetch it: python -c "
            "'from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2 as M; M()([\"a\"])'"
        )
    return lambda texts: model(list(texts))
