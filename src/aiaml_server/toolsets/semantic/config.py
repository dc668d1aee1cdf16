"""`~/.memory/config.json`: how a person wants their memories kept and found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import UnsafePath
from aiaml_server.files import make_own_directory, read_own, replace_atomic
from aiaml_server.toolsets.keyed import Key, Keys, bool_key, int_key, number_key
from aiaml_server.toolsets.semantic.failures import DiskError, InvalidConfig

NAME = "config.json"
MODEL = "BAAI/bge-small-en-v1.5"
_MOST = 64 * 1024  # bytes
_MOST_DIGITS = 30  # of a number; Python reads at most 4,300, and says so in words of its own


class Thresholds(NamedTuple):
    """What cosines mean, which each model says in its own way.

    Attributes:
        weak: a hit below this is marked as weak.
        same: what is above this resembles.
    """

    weak: float
    same: float


THRESHOLDS = {"sentence-transformers/all-MiniLM-L6-v2": Thresholds(0.3, 0.9)}
"""Of known models; the specification's are those of its own."""
_SPECIFIED = Thresholds(0.7, 0.9)


@dataclass(frozen=True)
class Config:
    """The settings; each is a key of the file, with a dot for each level.

    Attributes:
        model: the model's name, one that fastembed knows.
        path: a folder that holds the model; empty where it is downloaded.
        dimension: the numbers in one of its vectors.
        query_prefix, document_prefix: what stands before a question or a text; None for what the
            model's family wants.
        device: what it runs on: `cpu`, or `cuda` where onnxruntime has it.
        download: whether the model is downloaded where it is missing.
        limit: how many memories a search gives that does not say.
        session_start_limit: how many memories a session begins with.
        reranker: a cross-encoder that orders the best hits anew, one that fastembed knows or a
            folder; empty for none.
        weak: a hit whose cosine is below this is marked as weak; None for the model's own.
        similarity, recency, priority, usage: what each counts in a score.
        half_life: days after which recency counts half.
        project_boost: added to the score of the active project's memories.
        session_start, session_end, decisions, errors: which hooks do something.
        check: whether storing looks for what resembles.
        same: cosine above which two texts resemble each other; None for the model's own.
    """

    model: str = MODEL
    path: str = ""
    dimension: int = 384
    query_prefix: str | None = None
    document_prefix: str | None = None
    device: str = "cpu"
    download: bool = True
    limit: int = 10
    session_start_limit: int = 8
    reranker: str = ""
    weak: float | None = None
    similarity: float = 0.4
    recency: float = 0.2
    priority: float = 0.2
    usage: float = 0.2
    half_life: float = 365.0
    project_boost: float = 0.1
    session_start: bool = True
    session_end: bool = True
    decisions: bool = True
    errors: bool = True
    check: bool = True
    same: float | None = None

    def thresholds(self, measured: Thresholds | None = None) -> Thresholds:
        """Return what cosines mean: as set, else as measured, or as the model's name has it."""
        own = measured or THRESHOLDS.get(self.model, _SPECIFIED)
        return Thresholds(
            own.weak if self.weak is None else self.weak,
            own.same if self.same is None else self.same,
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _is_folder(value: Any) -> bool:
    return value == "" or (isinstance(value, str) and Path(value).is_absolute())


def _is_prefix(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 200


def _weight(attribute: str) -> Key:
    return number_key(attribute, 0, 1, "a number from 0 to 1")


KEYS = {
    "embedding.model": Key("model", _is_text, "a model that fastembed knows, as text"),
    "embedding.path": Key("path", _is_folder, "an absolute path of a folder, or empty"),
    "embedding.dimension": int_key("dimension", 1, 8192),
    "embedding.query_prefix": Key("query_prefix", _is_prefix, "text of at most 200 characters"),
    "embedding.document_prefix": Key(
        "document_prefix", _is_prefix, "text of at most 200 characters"
    ),
    "embedding.device": Key("device", lambda value: value in ("cpu", "cuda"), "cpu or cuda"),
    "embedding.download": bool_key("download"),
    "retrieval.default_limit": int_key("limit", 1, 50, "a whole number from 1 to 50"),
    "retrieval.session_start_limit": int_key(
        "session_start_limit", 1, 20, "a whole number from 1 to 20"
    ),
    "retrieval.reranker": Key(
        "reranker",
        lambda value: value == "" or _is_text(value),
        "a cross-encoder that fastembed knows, an absolute path, or empty",
    ),
    "retrieval.similarity_threshold": _weight("weak"),
    "retrieval.scoring_weights.similarity": _weight("similarity"),
    "retrieval.scoring_weights.recency": _weight("recency"),
    "retrieval.scoring_weights.priority": _weight("priority"),
    "retrieval.scoring_weights.usage": _weight("usage"),
    "retrieval.half_life_days": number_key("half_life", 1, 100_000, "a number of days from 1"),
    "retrieval.project_boost": _weight("project_boost"),
    "auto_triggers.session_start": bool_key("session_start"),
    "auto_triggers.session_end": bool_key("session_end"),
    "auto_triggers.decision_detection": bool_key("decisions"),
    "auto_triggers.error_resolution": bool_key("errors"),
    "deduplication.auto_check": bool_key("check"),
    "deduplication.similarity_threshold": _weight("same"),
}
_KEYS = Keys(KEYS)


def load(home: Path) -> Config:
    """Return the settings in a person's directory `~/.memory`; the defaults where there are none.

    Raises:
        InvalidConfig: the file is not as it must be; the sentence names the key.
    """
    path = home / NAME
    return parse(_read(path), path)


def change(home: Path, **values: Any) -> Config:
    """Set some keys of the file, given as `section_key="…"` by attribute; the others stay.

    Raises:
        InvalidConfig: the file is not as it must be, or would not be.
        DiskError: it cannot be written.
    """
    path = home / NAME
    held = _read(path)
    for attribute, value in values.items():
        (key,) = (name for name, each in KEYS.items() if each.attribute == attribute)
        *sections, last = key.split(".")
        within = held
        for section in sections:
            within = within.setdefault(section, {})
        within[last] = value
    config = parse(held, path)
    data = json.dumps(held, ensure_ascii=False, indent=2).encode() + b"\n"
    try:
        make_own_directory(home)
        replace_atomic(path, data, 0o600)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror or error}") from error
    return config


def parse(given: Mapping[str, Any], path: Path | str = NAME) -> Config:
    """Read the settings; what is not given is as by default.

    Raises:
        InvalidConfig: a key is not known, or its value is not what it must be.
    """
    found: dict[str, Any] = {}
    _collect("", given, found, path)
    return Config(**found)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_own(path, _MOST), object_pairs_hook=_once, parse_int=_number)
    except InvalidConfig as error:
        raise InvalidConfig(f"{path}: {error}") from None
    except FileNotFoundError:
        return {}
    except UnsafePath as error:
        raise InvalidConfig(str(error)) from error
    except OSError as error:
        raise InvalidConfig(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidConfig(f"{path} must hold an object")
    return value


def _number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise InvalidConfig(f"it holds a number of {len(digits):,} digits")
    return int(digits)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of the file.

    Raises:
        InvalidConfig: it says a key twice, of which one would be dropped in silence.
    """
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidConfig(f"{name[:200]} is there twice")
        found[name] = value
    return found


def _collect(above: str, given: Mapping[str, Any], found: dict[str, Any], path: Path | str) -> None:
    for name, value in given.items():
        key = above + name
        if not _KEYS.is_map(key):
            try:
                found[_KEYS.attribute(key, value)] = value
            except ValueError as error:
                raise InvalidConfig(f"{path}: {error}") from None
        elif isinstance(value, dict):
            _collect(f"{key}.", value, found, path)
        else:
            raise InvalidConfig(f"{path}: {key} must be an object")
