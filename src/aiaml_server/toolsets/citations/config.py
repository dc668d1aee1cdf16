"""`.memory-config.yaml`: the settings of one repository."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.errors import InvalidConfig, MalformedMemory
from aiaml_server.toolsets.citations.frontmatter import parse
from aiaml_server.toolsets.citations.models import JsonObject

CONFIG_NAME = ".memory-config.yaml"
DEFAULT_DIRECTORY = "memories"
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class Config:
    """The settings of one repository, each by the last part of its key.

    Attributes:
        directory: where the memories are, relative to the repository's top.
        file_extension: the extension of memory files.
        default_limit: the number of search results if the caller gives none.
        min_keyword_length: the shortest word that a search compares, in characters.
        type: the search index: null for none, `chroma` or `forgetful`.
        persist_dir: the directory that stands for Chroma's files; see `chroma`.
        collection: the name of the Chroma collection.
        endpoint: the address of the Forgetful server.
        on_retrieval: whether `memory_get` verifies what it returns.
        stale_threshold_days: days after which a memory that was not verified is overdue.
        max_traversal_depth: the depth limit of graph traversals.
    """

    directory: str = DEFAULT_DIRECTORY
    file_extension: str = ".md"
    default_limit: int = 10
    min_keyword_length: int = 3
    type: str = "null"
    persist_dir: str = ".chroma"
    collection: str = "memories"
    endpoint: str = "http://localhost:8020"
    on_retrieval: bool = False
    stale_threshold_days: int = 30
    max_traversal_depth: int = 5


# Programs run what hidden directories hold, such as .github/workflows, so they are refused.
_FOLDER = r"[^\\:*?\"<>|\x00-\x1f./ ][^\\:*?\"<>|\x00-\x1f/]*"
_DIRECTORY = rf"{_FOLDER}(?:/{_FOLDER})*"
_NUMBER = r"[1-9][0-9]{0,3}|10000"
_SWITCH = {"true": True, "false": False}
_COUNT = (_NUMBER, "a whole number from 1 to 10000")
# Each key with the pattern of its values, and the pattern in words.
_KEYS = {
    "storage.directory": (_DIRECTORY, "a directory in the repository, not hidden"),
    "storage.file_extension": (r"\.md|\.markdown", ".md or .markdown"),
    "search.default_limit": _COUNT,
    "search.min_keyword_length": _COUNT,
    "index.type": ("null|chroma|forgetful", "null, chroma or forgetful"),
    "index.chroma.persist_dir": (r"[^\x00]+", "the name of a directory"),
    "index.chroma.collection": (
        "[A-Za-z0-9][A-Za-z0-9._-]{1,510}[A-Za-z0-9]",
        "a name of 3 or more letters",
    ),
    "index.forgetful.endpoint": (
        r"https?://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?/?",
        "an address on this machine, such as http://localhost:8020",
    ),
    "verification.on_retrieval": ("true|false", "true or false"),
    "verification.stale_threshold_days": _COUNT,
    "graph.max_traversal_depth": (f"0|{_NUMBER}", "a whole number from 0"),
}


def load_config(root: Path) -> Config:
    """Return the settings of the repository with this top directory.

    The file is looked for at the top, then in the directory `memories`.

    Raises:
        InvalidConfig: it cannot be read, or has a wrong key or value.
    """
    for name in (CONFIG_NAME, f"{DEFAULT_DIRECTORY}/{CONFIG_NAME}"):
        try:
            text = read_regular(os.fspath(root / name), _MAX_BYTES).decode("utf-8-sig")
            return parse_config(text)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, MalformedFile, MalformedMemory) as error:
            raise InvalidConfig(f"{name}: {error}".replace("frontmatter", "file")) from error
    return Config()


def parse_config(text: str) -> Config:
    """Return the settings that a file's text gives.

    Raises:
        ValueError: a key or a value is wrong.
        MalformedMemory: it is not a YAML map.
    """
    settings: JsonObject = {}
    for key, value in _flatten(parse(text)):
        if key not in _KEYS:
            if not value:  # an empty section
                continue
            raise ValueError(f"{key[:200]} is not a known key; there are {', '.join(_KEYS)}")
        pattern, rule = _KEYS[key]
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"{key} must be {rule}")
        settings[key.rpartition(".")[2]] = _SWITCH.get(
            value, int(value) if value.isdigit() else value
        )
    return Config(**settings)


def _flatten(fields: JsonObject, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what nested maps hold, with dots in the keys."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
