"""`~/.memory/config.json`: the settings, their defaults and their validation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Interval, Len

from aiaml_server.files import read_own
from aiaml_server.toolsets.semantic.errors import InvalidConfig

FILE_NAME = "config.json"
DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"
MAX_BYTES = 64 * 1024
THRESHOLDS = {"sentence-transformers/all-MiniLM-L6-v2": 0.3}
"""Cosines below which a hit is weak, for models whose cosines are lower than the default's."""

Text = Annotated[str, Len(0, 200)]
Share = Annotated[float, Interval(ge=0, le=1)]


class Section:
    """A part of the file, which pydantic checks: no other keys, and no other types."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True}


@dataclass(frozen=True)
class Embedding(Section):
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

    model: Text = DEFAULT_MODEL
    path: Text = ""
    dimension: Annotated[int, Interval(ge=1, le=8192)] = 384
    device: Text = "cpu"
    download: bool = True
    query_prefix: Text = ""
    document_prefix: Text = ""


@dataclass(frozen=True)
class ScoringWeights(Section):
    """What each factor contributes to a score."""

    similarity: Share = 0.4
    recency: Share = 0.2
    priority: Share = 0.2
    usage: Share = 0.2


@dataclass(frozen=True)
class Retrieval(Section):
    """Search.

    Attributes:
        default_limit: hits of a search without a limit.
        session_start_limit: memories at the start of a session.
        similarity_threshold: hits with a lower cosine are marked as weak.
        scoring_weights: the weights of the score.
        half_life_days: days after which recency is half.
        project_boost: added to the score of the project's memories.
    """

    default_limit: Annotated[int, Interval(ge=1, le=50)] = 10
    session_start_limit: Annotated[int, Interval(ge=1, le=20)] = 8
    similarity_threshold: Share = 0.7
    scoring_weights: ScoringWeights = ScoringWeights()
    half_life_days: Annotated[float, Interval(ge=1, le=100_000)] = 365.0
    project_boost: Share = 0.1


@dataclass(frozen=True)
class AutoTriggers(Section):
    """Which hooks do something."""

    session_start: bool = True
    session_end: bool = True
    decision_detection: bool = True
    error_resolution: bool = True


@dataclass(frozen=True)
class Deduplication(Section):
    """Whether storing looks for similar memories, and from which cosine on they are similar."""

    auto_check: bool = True
    similarity_threshold: Share = 0.9


@dataclass(frozen=True)
class Config(Section):
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
        InvalidConfig: the file cannot be read, a key is unknown, or a value is not allowed.
    """
    path = home / FILE_NAME
    try:
        text = read_own(path, MAX_BYTES)
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"{path} cannot be read: {error}") from error
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 (slow, and hooks wait for it)

    try:
        return TypeAdapter(Config).validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"])) or "the file"
        if problem["type"] == "unexpected_keyword_argument":
            raise InvalidConfig(f"{path}: {key:.200} is unknown") from error
        reason = f"{problem['msg']}; it is {problem['input']!r:.200}"
        raise InvalidConfig(f"{path}: {key}: {reason}") from error
