"""`~/.memory/config.json`: the settings, their defaults and their validation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from aiaml_server.files import read_own
from aiaml_server.toolsets.semantic.errors import InvalidConfig

FILE_NAME = "config.json"
DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
MAX_BYTES = 64 * 1024
THRESHOLDS = {"sentence-transformers/all-MiniLM-L6-v2": 0.3}
"""Cosines below which a hit is weak, for models whose cosines are lower than the default's."""

LIMITS = {
    "embedding.dimension": (1, 8192),
    "retrieval.default_limit": (1, 50),
    "retrieval.session_start_limit": (1, 20),
    "retrieval.half_life_days": (1, 100_000),
}
"""The range of numbers that are not between 0 and 1."""

Section = TypeVar("Section")


@dataclass(frozen=True)
class Embedding:
    """The model.

    Attributes:
        model: a name that fastembed knows.
        path: the path of a directory that holds the model; empty if it is downloaded.
        dimension: the numbers in a vector.
        device: `cpu`, or `cuda` where onnxruntime supports it.
        download: whether a missing model is downloaded.
        query_prefix, document_prefix: text before a question or a memory; empty for the default of
            the model's family.
    """

    model: str = DEFAULT_MODEL
    path: str = ""
    dimension: int = 384
    device: str = "cpu"
    download: bool = True
    query_prefix: str = ""
    document_prefix: str = ""


@dataclass(frozen=True)
class ScoringWeights:
    """What each factor contributes to a score."""

    similarity: float = 0.4
    recency: float = 0.2
    priority: float = 0.2
    usage: float = 0.2


@dataclass(frozen=True)
class Retrieval:
    """Search.

    Attributes:
        default_limit: hits of a search without a limit.
        session_start_limit: memories at the start of a session.
        similarity_threshold: hits with a lower cosine are marked as weak.
        scoring_weights: the weights of the score.
        half_life_days: days after which recency is half.
        project_boost: added to the score of the project's memories.
    """

    default_limit: int = 10
    session_start_limit: int = 8
    similarity_threshold: float = 0.7
    scoring_weights: ScoringWeights = ScoringWeights()
    half_life_days: float = 365.0
    project_boost: float = 0.1


@dataclass(frozen=True)
class AutoTriggers:
    """Which hooks do something."""

    session_start: bool = True
    session_end: bool = True
    decision_detection: bool = True
    error_resolution: bool = True


@dataclass(frozen=True)
class Deduplication:
    """Whether storing looks for similar memories, and from which cosine on they are similar."""

    auto_check: bool = True
    similarity_threshold: float = 0.9


@dataclass(frozen=True)
class Config:
    """All settings, by section."""

    embedding: Embedding = Embedding()
    retrieval: Retrieval = Retrieval()
    auto_triggers: AutoTriggers = AutoTriggers()
    deduplication: Deduplication = Deduplication()

    @property
    def weak_below(self) -> float:
        """The cosine below which a hit is weak: the configured one, else the model's own."""
        given = self.retrieval.similarity_threshold
        return THRESHOLDS.get(self.embedding.model, given) if given == 0.7 else given


def load_config(home: Path) -> Config:
    """Return the settings in a person's `~/.memory`; the defaults if there is no file.

    Raises:
        InvalidConfig: the file is not valid; the message names the key.
    """
    path = home / FILE_NAME
    return parse_config(_read(path), str(path))


def parse_config(values: Mapping[str, Any], name: str = FILE_NAME) -> Config:
    """Validate settings.

    Raises:
        InvalidConfig: a key is unknown, or its value is not allowed.
    """
    return _parse_section(Config, values, name)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_own(path, MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path} is not JSON, or cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise InvalidConfig(f"{path} must hold an object")
    return value


def _parse_section(section: type[Section], values: Any, name: str, prefix: str = "") -> Section:
    """Return a section; `prefix` is its own key with a dot."""
    if not isinstance(values, Mapping):
        raise InvalidConfig(f"{name}: {prefix.rstrip('.')} must be an object")
    defaults = {each.name: each.default for each in fields(section)}  # type: ignore[arg-type]
    result: dict[str, Any] = {}
    for key, value in values.items():
        full = f"{prefix}{key}"
        default = defaults.get(key)
        if default is None:
            raise InvalidConfig(f"{name}: {full[:200]} is unknown; known: {', '.join(defaults)}")
        if is_dataclass(default):
            result[key] = _parse_section(type(default), value, name, f"{full}.")
        else:
            if not _is_valid(full, value, default):
                limits = LIMITS.get(full, (0, 1))
                rule = f"like {default!r}; numbers are limited to {limits}"
                raise InvalidConfig(f"{name}: {full} is {value!r:.200}; it must be {rule}")
            result[key] = value
    return section(**result)


def _is_valid(key: str, value: Any, default: Any) -> bool:
    """Return whether a value has the type of its default, and is in range."""
    number: Any = float(value) if isinstance(default, float) and type(value) is int else value
    if type(number) is not type(default):
        return False
    if isinstance(default, str):
        return len(number) <= 200
    least, most = LIMITS.get(key, (0, 1))
    return bool(least <= number <= most)
