"""`.memory-config.yaml`: how a repository wants its memories kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.failures import InvalidConfig, MalformedMemory
from aiaml_server.toolsets.citations.frontmatter import read_map
from aiaml_server.toolsets.citations.nodes import Node
from aiaml_server.toolsets.keyed import Key, Keys, bool_key, int_key

NAME = ".memory-config.yaml"
DIRECTORY = "memories"
CHROMA = ".chroma"
_MAX_FILE = 64 * 1024  # bytes
_MOST = 10_000


@dataclass(frozen=True)
class Config:
    """The settings; each is a key of the file, with a dot for each level.

    Attributes:
        directory: where the memories are, below the repository's top.
        extension: what their files' names end with.
        limit: how many memories a search gives that does not say.
        shortest: the shortest word that a search compares, in characters.
        index: what searches by meaning: nothing, `chroma` or `forgetful`.
        chroma_directory: where Chroma keeps its files, below the repository's top.
        chroma_collection: the collection's name.
        forgetful: the address of the index server.
        on_retrieval: whether citations are verified whenever a memory is given out.
        stale_days: days after which a memory that was not verified is flagged.
        depth: the most that a walk through the graph goes down.
    """

    directory: str = DIRECTORY
    extension: str = ".md"
    limit: int = 10
    shortest: int = 3
    index: str | None = None
    chroma_directory: str = CHROMA
    chroma_collection: str = "memories"
    forgetful: str = "http://localhost:8020"
    on_retrieval: bool = False
    stale_days: int = 30
    depth: int = 5


def _below(value: Any) -> bool:
    """Say whether a value names a directory below the repository's top."""
    if not isinstance(value, str) or re.search(r'[\\:*?"<>|\x00-\x1f]', value):
        return False
    # In hidden ones, such as `.github/workflows`, programs look for what they run.
    parts = value.removeprefix(f"{CHROMA}/").split("/") if value != CHROMA else ()
    return all(part and not part.lstrip(" ").startswith(".") for part in parts)


def _matches(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


_FOLDER = (_below, f"a directory below the repository's top, with slashes; not hidden but {CHROMA}")
_KEYS = Keys(
    {
        "storage.directory": Key("directory", *_FOLDER),
        "storage.file_extension": Key(
            "extension", lambda value: value in (".md", ".markdown"), ".md or .markdown"
        ),
        "search.default_limit": int_key("limit", 1, _MOST),
        "search.min_keyword_length": int_key("shortest", 1, _MOST),
        "index.type": Key(
            "index",
            lambda value: value in (None, "chroma", "forgetful"),
            "null, chroma or forgetful",
        ),
        "index.chroma.persist_dir": Key("chroma_directory", *_FOLDER),
        "index.chroma.collection": Key(
            "chroma_collection",
            _matches(re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,510}[A-Za-z0-9]")),
            "a name of 3 letters and more",
        ),
        "index.forgetful.endpoint": Key(
            "forgetful",
            _matches(
                re.compile(r"https?://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?/?")
            ),
            "an address on this machine without a path, such as http://localhost:8020",
        ),
        "verification.on_retrieval": bool_key("on_retrieval"),
        "verification.stale_threshold_days": int_key("stale_days", 1, _MOST),
        "graph.max_traversal_depth": int_key("depth", 0, _MOST),
    }
)


def load(root: Path) -> Config:
    """Return the settings of the repository with this top directory.

    The file is looked for at the top, then among the memories.

    Raises:
        InvalidConfig: it is not as it must be; the sentence has the line.
    """
    for place in (NAME, f"{DIRECTORY}/{NAME}"):
        try:
            data = read_regular(os.path.join(root, place), _MAX_FILE)  # noqa: PTH118
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, MalformedFile) as error:
            raise InvalidConfig(f"{place}: {error}") from error
        try:
            return parse(data.decode("utf-8"))
        except (MalformedMemory, UnicodeDecodeError) as error:
            raise InvalidConfig(f"{place}: {error}") from error
    return Config()


def parse(text: str) -> Config:
    """Read the settings.

    Raises:
        MalformedMemory: they are not as they must be; the sentence has the line.
    """
    found: dict[str, Any] = {}
    _collect("", read_map(text.removeprefix("\ufeff")), found)
    return Config(**found)


def _collect(above: str, node: Node, found: dict[str, Any]) -> None:
    for name, part in node.entries.items():
        key = above + name
        value = part.node.value
        if not _KEYS.is_map(key):
            try:
                found[_KEYS.attribute(key, value)] = value
            except ValueError as error:
                raise MalformedMemory(f"line {part.node.line}: {error}") from None
        elif isinstance(value, dict):
            _collect(f"{key}.", part.node, found)
        elif value is not None:
            raise MalformedMemory(f"line {part.node.line}: {key} must be a map")
