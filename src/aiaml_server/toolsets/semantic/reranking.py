"""A cross-encoder, off unless a person names one: it reads each question with what was found.

It is fetched and loaded as the model is. Where it is not there (yet), the order stays as it was,
and a warning says so.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from aiaml_server.toolset import replace_surrogates
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.model import (
    FETCH,
    Kept,
    State,
    Unusable,
    fastembed,
    reason_of,
    weights_in,
)

BEST = 25
"""How many memories are read, at least."""
_LONGEST = 2_000  # characters of a memory that are read
_BATCH = 16
_KEY = "retrieval.reranker"


class Scorer(Protocol):
    """A cross-encoder that is loaded."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers a question; the higher the better."""


class Scores(Protocol):
    """Has a cross-encoder, or will have one."""

    def ready(self, wait: float = 0.0) -> Scorer | None:
        """Return it if it is loaded within `wait` seconds; begin to load it otherwise."""

    def state(self) -> State:
        """Say how it stands."""


class _CrossEncoder(NamedTuple):
    encoder: Any
    lock: threading.Lock

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        asked = replace_surrogates(question)
        read = [replace_surrogates(each[:_LONGEST]) for each in texts]
        with self.lock:
            return [float(each) for each in self.encoder.rerank(asked, read, batch_size=_BATCH)]


class Reranker(Kept[Scorer]):
    """The cross-encoder of a configuration: one that fastembed knows, or one in a folder."""

    _key_of_name = _key_of_path = _KEY
    _takes_a_folder = f"{_KEY} can name"

    def _named(self) -> tuple[str, str]:
        given = self._wanted.reranker
        return given, given if Path(given).is_absolute() else ""

    def _fastembed(self) -> Any:
        fastembed()
        from fastembed.rerank.cross_encoder import TextCrossEncoder  # noqa: PLC0415 (heavy)

        return TextCrossEncoder

    def _load(self) -> Scorer:
        encoders = self._fastembed()
        described_as = self.described() if self._fetched else None
        weights = weights_in(self.folder, described_as)
        name = self.name if described_as else _registered(encoders, self.folder, weights)
        try:
            encoder = encoders(
                name,
                specific_model_path=os.fspath(self.folder),
                cuda=self._wanted.device != "cpu",
            )
            loaded = _CrossEncoder(encoder, threading.Lock())
            loaded.scores("question", ["text"])
        except Exception as error:
            what = f"the reranker in {self.folder} cannot be loaded: {reason_of(error)}"
            remedy = f"`{FETCH} --anew` fetches it anew" if self._fetched else ""
            raise Unusable(what, remedy) from error
        return loaded


def of(
    settings: Config, cache: Path, noted: Callable[[Exception], None] = lambda _: None
) -> Reranker | None:
    """Return the cross-encoder that the settings name; None where they name none."""
    return Reranker(settings, cache, noted=noted) if settings.reranker else None


def _registered(encoders: Any, folder: Path, weights: Path) -> str:
    """Return the name by which fastembed knows the cross-encoder of a folder."""
    from fastembed.common.model_description import ModelSource  # noqa: PLC0415 (heavy)

    file = weights.relative_to(folder).as_posix()
    whole = f"{folder}:{file}".encode("utf-8", "replace")
    name = f"local/{hashlib.sha256(whole).hexdigest()[:16]}"
    with suppress(ValueError):  # it is registered already
        encoders.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)
    return name
