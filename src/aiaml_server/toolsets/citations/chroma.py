"""An index in Chroma: derived from the files, made anew from them at any time.

What a Chroma database says is obeyed: SQLite deletes a file that a journal beside it names, and a
collection names the model that its client loads, from the network and with code of its own
(chromadb 1.5.9, `build_from_config`). So it lies below a name that nobody else can have made, and
what came with a repository is never opened (see `storage.derived`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from aiaml_server.errors import AiamlError
from aiaml_server.files import write_atomic
from aiaml_server.storage.derived import folder
from aiaml_server.toolset import Embedder
from aiaml_server.toolsets.citations.failures import Unavailable
from aiaml_server.toolsets.citations.indexes import MemoryIndex, Synced, digest
from aiaml_server.toolsets.citations.model import Memory

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Turns texts into vectors, all of one length."""

_MODEL = "model"  # key of what a collection's vectors were made by

_BATCH = 500


class ChromaIndex(MemoryIndex):
    """A collection of vectors in a directory of its own."""

    name = "chroma"

    def __init__(self, directory: Path, collection: str, embed: Embed | None = None) -> None:
        """Take where it lies; nothing is imported or made before it is used.

        Args:
            directory: where it is kept, in a folder of this user's that git does not show.
            collection: the collection's name.
            embed: makes vectors; where None, the model of the toolset that has one, else Chroma's
                own, if it is on this machine.
        """
        self._directory, self._named, self._embed = directory, collection, embed
        self._model = "given" if embed else ""
        self._stamp: object = None
        self._held: Any = None

    def add(self, memory: Memory) -> None:
        """Take in a memory, or its new text."""
        self._upsert([memory])

    def remove(self, memory_id: str) -> None:
        """Take out a memory, if it is there."""
        self._collection().delete(ids=[memory_id])

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return the ids of the nearest memories, nearest first, with a likeness from 0 to 1."""
        collection = self._collection()
        count = min(limit, collection.count())
        if not count:
            return []
        found = collection.query(
            query_embeddings=self._vectors([query]), n_results=count, include=["distances"]
        )
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [(name, min(max(1 - distance, 0.0), 1.0)) for name, distance in pairs]

    def health_check(self) -> bool:
        """Say whether it answers."""
        try:
            self._collection().count()
        except Unavailable:
            return False
        return True

    def sync(self, memories: Mapping[str, Memory]) -> Synced:
        """Hold exactly these memories, as they are."""
        collection = self._collection()
        every = collection.get(include=["metadatas"])
        held = {
            name: (meta or {}).get("digest")
            for name, meta in zip(every["ids"], every["metadatas"], strict=True)
        }
        new = [each for each in memories.values() if held.get(each.id) != digest(each)]
        gone = [each for each in held if each not in memories]
        for start in range(0, len(new), _BATCH):
            self._upsert(new[start : start + _BATCH])
        if gone:
            collection.delete(ids=gone)
        return Synced(self.name, len(memories), len(new), len(gone))

    def _upsert(self, memories: Sequence[Memory]) -> None:
        vectors = self._vectors([f"{each.subject}\n\n{each.content}" for each in memories])
        self._collection().upsert(
            ids=[each.id for each in memories],
            embeddings=vectors,
            metadatas=[{"digest": digest(each)} for each in memories],
        )

    def _collection(self) -> Any:
        """Return the collection as it is now, also if another process has written to it.

        Raises:
            Unavailable: Chroma is not installed, or cannot open it.
        """
        try:
            os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # of what runs its own model
            import chromadb  # noqa: PLC0415 (an extra; takes a second)
            from chromadb.api.shared_system_client import SharedSystemClient  # noqa: PLC0415
        except ImportError as error:
            raise Unavailable(
                "index.type is chroma, which is not installed: pip install 'aiaml-server[chroma]'"
            ) from error
        self._load()
        if self._directory.resolve() != self._directory:
            raise Unavailable(
                f"{self._directory} is, or lies behind, a link; it could lead outside"
            )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            place = folder(self._directory, make=True)
            database = place / "chroma.sqlite3"
            if self._held is None or _stamp_of(database) != self._stamp:
                # A client that is open does not see what others add.
                SharedSystemClient.clear_system_cache()
                if not (place / ".gitignore").exists():
                    write_atomic(place / ".gitignore", b"*\n")
                settings = chromadb.Settings(anonymized_telemetry=False)
                client = chromadb.PersistentClient(str(place), settings)
                self._held = self._opened(client)
                self._stamp = _stamp_of(database)
        except Exception as error:  # its errors are of many kinds
            raise Unavailable(f"Chroma cannot open {self._directory.name}: {error}") from error
        return self._held

    def _opened(self, client: Any) -> Any:
        """Return the collection; one whose vectors another model has made is emptied."""
        wanted = {"hnsw:space": "cosine", _MODEL: self._model}
        for _ in range(2):
            held = client.get_or_create_collection(
                self._named, embedding_function=None, metadata=wanted
            )
            if (held.metadata or {}).get(_MODEL) == self._model:
                break
            client.delete_collection(self._named)
        return held

    def _load(self) -> Embed:
        """Return what makes vectors.

        Raises:
            Unavailable: there is no model on this machine.
        """
        if self._embed is None:
            model = embedder()
            self._embed = model.embed if model else _own_model()
            self._model = f"{model.name} {model.version}" if model else "chroma"
        return self._embed

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the texts' vectors.

        Raises:
            Unavailable: there is no model on this machine.
        """
        embed = self._load()
        return [[float(each) for each in vector] for vector in embed(texts)]


def _stamp_of(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def embedder() -> Embedder | None:
    """Return the model that a person has for another toolset on this machine; nothing is fetched.

    Raises:
        Unavailable: its settings are not as they must be.
    """
    for offered in entry_points(group="aiaml.embedders"):
        try:
            found: Embedder | None = offered.load()()
        except ImportError:  # what it needs is not installed
            continue
        except AiamlError as error:
            raise Unavailable(f"the model of search by meaning: {error}") from error
        except Exception as error:  # whatever another package does
            what = f"{offered.value} failed: {type(error).__name__}: {error}"
            raise Unavailable(f"the model of search by meaning: {what}") from error
        if found:
            return found
    return None


def _own_model() -> Embed:
    """Return Chroma's own model, if it has been fetched; nothing is fetched here.

    Raises:
        Unavailable: it has not.
    """
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # noqa: PLC0415

    model = ONNXMiniLM_L6_V2()
    folder = Path(model.DOWNLOAD_PATH) / model.EXTRACTED_FOLDER_NAME
    if not (folder / "model.onnx").is_file():
        raise Unavailable(
            "Chroma's model (80 MB) is not on this machine; to fetch it: python -c "
            "'from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2 as M; M()([\"a\"])'"
        )
    return lambda texts: [list(map(float, each)) for each in model(list(texts))]
