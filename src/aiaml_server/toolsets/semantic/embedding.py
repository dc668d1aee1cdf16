"""The embedding model: fastembed downloads and loads it in a background thread.

Heavy libraries are imported only in that thread. While the model is not ready, callers get None,
and `state` gives the reason.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiaml_server.files import make_own_directory
from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.semantic.config import Embedding
from aiaml_server.toolsets.semantic.errors import Unavailable

LOAD_SECONDS = 30.0  # that loading may delay the end of the process
RETRY_SECONDS = 300.0  # between two attempts to download
BATCH = 16  # texts at once
DOWNLOAD_COMMAND = "aiaml semantic model download"
REMEDY = (
    f"if it is not on this machine yet, check the network before `{DOWNLOAD_COMMAND}` tries again,"
    " or name a folder with its files as embedding.path"
)
PREFIXES = {
    r"(?:^|[-/])e5-": ("query: ", "passage: "),
    r"nomic-embed": ("search_query: ", "search_document: "),
    r"bge-(?:small|base|large)-en$": (
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
}
"""By a pattern of the model's name: the prefixes of queries and of texts."""


class Embedder(Protocol):
    """A loaded model.

    Attributes:
        name, version: identify its vectors.
        dimension: the numbers in a vector.
    """

    name: str
    version: str
    dimension: int

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:
        """Return a vector for each text; with `is_query`, for each question."""


class ModelState(NamedTuple):
    """The state of the model.

    Attributes:
        status: ready, loading, downloading, missing, failed, or off.
        reason: why it cannot be used; empty if it can.
        remedy: what to do.
    """

    status: str
    reason: str = ""
    remedy: str = ""

    @property
    def warning(self) -> str:
        """The warning for an answer; empty if the model can be used."""
        return f"words only: {self.reason}; {self.remedy}" if self.reason else ""


class LazyModel(Protocol):
    """A model that may still be loading."""

    def ready(self, seconds: float = 0.0) -> Embedder | None:
        """Return the model if it is loaded within some seconds; begin to load it otherwise."""

    def state(self) -> ModelState:
        """Return its state."""


class ModelLoader:
    """Loads the configured model in a daemon thread, and downloads it if the settings allow that.

    Attributes:
        folder: where the model is, or will be.
    """

    def __init__(
        self,
        settings: Embedding,
        cache: Path,
        on_error: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """Remember what to load.

        Args:
            settings: the section `embedding` of the configuration.
            cache: the directory for downloads.
            on_error: called with the error when loading fails.
        """
        self.settings = settings
        self.folder = Path(settings.path or cache / settings.model.replace("/", "--"))
        self._on_error = on_error
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._embedder: Embedder | None = None
        self._failure: ModelState | None = None
        self._retry_at = 0.0

    def ready(self, seconds: float = 0.0) -> Embedder | None:
        """Return the model if it is loaded within some seconds; begin to load it otherwise."""
        with self._lock:
            status = self.state().status
            can_download = self.settings.download and status in ("missing", "failed")
            is_running = self._thread is not None and self._thread.is_alive()
            is_due = not is_running and time.monotonic() >= self._retry_at
            if is_due and (can_download or status == "loading"):
                if self._thread is None:
                    # onnxruntime registers with this module, which an ending process refuses.
                    import concurrent.futures.thread  # noqa: PLC0415, F401

                    atexit.register(self._wait_at_exit)
                self._failure = None
                self._thread = threading.Thread(
                    target=self._run, name="semantic-model", daemon=True
                )
                self._thread.start()
        if self._thread is not None:
            self._thread.join(seconds)
        return self._embedder

    def state(self) -> ModelState:
        """Return the state of the model, without loading it."""
        if self._embedder is not None:
            return ModelState("ready")
        name = self.settings.model
        if find_spec("fastembed") is None:
            install = "pip install 'aiaml-server[semantic]'"
            return ModelState("off", "fastembed is not installed", install)
        is_here = any(self.folder.rglob("*.onnx"))
        if self._thread is not None and self._thread.is_alive() and not is_here:
            reason = f"the model {name} is being downloaded into {self.folder}"
            return ModelState("downloading", reason, "ask again in a minute")
        if self._failure is not None:
            return self._failure
        if is_here:
            return ModelState("loading", f"the model {name} is being loaded", "ask again soon")
        reason = f"the model {name} is not on this machine"
        return ModelState("missing", reason, f"`{DOWNLOAD_COMMAND}` downloads it")

    def _run(self) -> None:
        try:
            self._embedder = load_model(self.settings, self.folder)
        except Exception as error:  # noqa: BLE001 (fastembed and onnxruntime raise anything)
            cause = str(error).strip().rstrip(".")[:200]
            reason = f"the model {self.settings.model} cannot be loaded: {cause}"
            self._failure = ModelState("failed", reason, getattr(error, "suggestion", REMEDY))
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._on_error(error)

    def _wait_at_exit(self) -> None:
        """Wait until onnxruntime is loaded; it aborts a process that ends before."""
        if self._thread is not None and self.state().status == "loading":
            self._thread.join(LOAD_SECONDS)


class FastEmbedModel:
    """A model loaded by fastembed."""

    def __init__(self, settings: Embedding, version: str, model: Any) -> None:
        """Wrap the model.

        Args:
            settings: name, dimension and prefixes.
            version: identifies its weights.
            model: fastembed's `TextEmbedding`.
        """
        self._question_prefix, self._document_prefix = prefixes(settings)
        self.name = settings.model
        self.version = f"{version}{self._document_prefix}"
        self.dimension = settings.dimension
        self._model = model
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:
        """Return a vector for each text; those of questions are compared with those of texts."""
        prefix = self._question_prefix if is_query else self._document_prefix
        whole = [prefix + replace_surrogates(text) for text in texts]
        with self._lock:
            return [vector.tolist() for vector in self._model.embed(whole, batch_size=BATCH)]


def prefixes(settings: Embedding) -> tuple[str, str]:
    """Return the prefixes of queries and texts: the configured ones, or the model family's."""
    found = [each for sign, each in PREFIXES.items() if re.search(sign, settings.model.lower())]
    question, document = found[0] if found else ("", "")
    return settings.query_prefix or question, settings.document_prefix or document


def load_model(settings: Embedding, folder: Path) -> FastEmbedModel:
    """Load a model from its folder; fastembed downloads it into the folder if it is missing.

    Raises:
        Unavailable: the model is unknown, or has another dimension than configured.
        Exception: whatever fastembed, huggingface_hub and onnxruntime raise.
    """
    fastembed = import_fastembed()
    known = [each["model"].lower() for each in fastembed.TextEmbedding.list_supported_models()]
    if settings.model.lower() not in known:
        raise Unavailable(
            f"embedding.model is {settings.model}, which fastembed does not know",
            "take one of https://qdrant.github.io/fastembed/examples/Supported_Models/",
        )
    if not settings.path:
        make_own_directory(folder.parent)
        make_own_directory(folder)
    model = fastembed.TextEmbedding(
        settings.model,
        cache_dir=os.fspath(folder),
        specific_model_path=settings.path or None,
        cuda=settings.device == "cuda",
    )
    (vector,) = model.embed(["dimension"])
    if len(vector) != settings.dimension:
        raise Unavailable(
            f"embedding.dimension is {settings.dimension}, and {settings.model} makes vectors of"
            f" {len(vector)}",
            f"set embedding.dimension to {len(vector)} in config.json.",
        )
    return FastEmbedModel(settings, _weights_version(folder), model)


def import_fastembed() -> Any:
    """Import fastembed, with telemetry, tokens and progress output switched off.

    Raises:
        Unavailable: it is not installed.
    """
    for name in (
        "HF_HUB_DISABLE_TELEMETRY",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DISABLE_XET",  # it would write outside the folder
    ):
        os.environ.setdefault(name, "1")
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    warnings.filterwarnings("ignore", "Cannot enable progress bars")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        import fastembed  # noqa: PLC0415 (heavy, and an extra)
        from loguru import logger  # noqa: PLC0415 (fastembed's)
    except ImportError as error:
        raise Unavailable("fastembed is not installed") from error
    logger.disable("fastembed")
    return fastembed


def _weights_version(folder: Path) -> str:
    """Return a hash of a model's weights."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.onnx")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
