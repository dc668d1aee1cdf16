"""A memory as the page shows it: whole, or in few words, its title and some of its text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiaml_server import rendering
from aiaml_server.format.memory import Memory, parse
from aiaml_server.moments import present
from aiaml_server.rendering.html import safe_html

if TYPE_CHECKING:
    from aiaml_server.web.places import File

TITLE = 120  # characters
EXCERPT = 240  # characters
_LOOKED_AT = 4 * EXCERPT  # characters of the markdown; what is marked up has more than it shows


def head(file: File, memory: Memory) -> dict[str, Any]:
    """Return what is said of a memory beside its text."""
    said = {**file.told, **memory.fields(), "title": title(memory.content)}
    del said["content"]  # of a list, it would be too much
    if memory.until:
        said |= {"until": memory.until, "expired": memory.expired(present())}
    return said


def whole(file: File, text: str) -> dict[str, Any]:
    """Return a memory rendered, and as its file's text.

    Raises:
        MalformedFile: the text is no memory's.
    """
    memory = parse(text)
    return {
        **head(file, memory),
        "content": memory.content,
        "html": safe_html(memory.content),
        "text": text,
        "version": version_of(text),
    }


def version_of(text: str) -> str:
    """Return what a file's text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


# --- in few words ---------------------------------------------------------------------------------


def title(content: str) -> str:
    """Return what a list calls a memory."""
    return _cut(rendering.title(content), TITLE)


def excerpt(content: str, keywords: Sequence[str]) -> str:
    """Return some words of a memory: those below its title, or those around the first match."""
    lower = content.lower()
    places = (place for each in keywords if (place := lower.find(each)) >= 0)
    first = min(places, default=0)
    start = first - EXCERPT // 4 if first > EXCERPT // 2 else 0
    words = " · ".join(rendering.read_aloud(content[start : start + _LOOKED_AT]))
    if not start:
        words = words.removeprefix(title(content)).removeprefix(" · ")
    return f"{'…' * bool(start)}{_cut(words, EXCERPT)}"


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"
