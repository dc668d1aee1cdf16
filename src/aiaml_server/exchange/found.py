"""What a reader finds in a source: notes, memories of our own format, and what it skips."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from aiaml_server.format.memory import Memory


@dataclass(frozen=True)
class Note:
    """Something that another program or a person wrote down.

    Attributes:
        kind: the kind of its source, such as "obsidian".
        agent: who is taken to have written it.
        place: where it stands, told so that it means something on another machine too.
        content: markdown.
        topics: words for it, the best ones first; not yet checked.
        timestamp: when it was made, ISO 8601.
        extra: lines to keep in the memory's frontmatter.
        said: what it is known again by, without its name; empty where that is the content.
        former: the content as earlier versions of this program made it; empty for the same.
        below: the folder that the place is told from; None where there is none to look into.
        user: the person it is about; empty where the source does not say.
        lost: what of it is not taken, a phrase each.
    """

    kind: str
    agent: str
    place: str
    content: str
    topics: tuple[str, ...]
    timestamp: str
    extra: tuple[str, ...] = ()
    said: str = ""
    former: str = ""
    below: Path | None = None
    user: str = ""
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A memory in our own format, which is imported with its id, its time and its head."""

    place: str
    memory: Memory


@dataclass(frozen=True)
class Skip:
    """Something that cannot become a memory, and why."""

    place: str
    reason: str


Found = Note | Kept | Skip

PIPED = "stdin/text.md"
"""The place of a text that came through a pipe, and has no name."""

_COMMON = frozenset({"memory", "memories", "files", "notes", "docs", ".serena", ".claude"})


@lru_cache(maxsize=64)
def label(source: Path) -> str:
    """Return the end of a path that tells it from others: `shop/.serena/memories`."""
    parts = source.parts
    first = len(parts) - 1
    while first > 1 and parts[first] in _COMMON:
        first -= 1
    return printable("/".join(part.strip(os.sep) for part in parts[first:]))


def printable(name: str) -> str:
    """Return the name of a file as text, also where its bytes are none."""
    return name.encode("utf-8", "replace").decode()
