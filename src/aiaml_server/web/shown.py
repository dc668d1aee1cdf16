"""A memory as the page shows it: whole, or in few words, its title and some of its text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiaml_server import rendering
from aiaml_server.format.memory import Memory, parse
from aiaml_server.rendering.html import safe_html

if TYPE_CHECKING:
    from aiaml_server.web.places import File

TITLE = 120  # characters
EXCERPT = 240  # characters
_BEFORE = 20  # characters that stand before a match, so that it is seen in a narrow list
_LOOKED_AT = 4 * EXCERPT  # characters of the markdown; what is marked up has more than it shows


def head(file: File, memory: Memory) -> dict[str, Any]:
    """Return what is said of a memory beside its text."""
    said = {"file": file.name, **memory.fields(), "title": title(memory.content)}
    del said["content"]  # of a list, it would be too much
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
    found = [place for each in keywords if (place := _place(lower, each)) >= 0]
    first = min(found, default=0)
    start = content.rfind(" ", 0, max(first - _BEFORE, 0)) + 1 if first > 2 * _BEFORE else 0
    words = " · ".join(content[start : start + _LOOKED_AT].split("\n"))
    if not start:
        words = words.removeprefix(title(content)).removeprefix(" · ")
    return f"{'…' * bool(start)}{_cut(words, EXCERPT)}"


def _place(lower: str, keyword: str) -> int:
    """Return where a keyword stands as a word, or else inside of one; -1 where it does not."""
    place = first = lower.find(keyword)
    while place >= 0:
        end = place + len(keyword)
        if not (lower[max(place - 1, 0) : place].isalnum() or lower[end : end + 1].isalnum()):
            return place
        place = lower.find(keyword, place + 1)
    return first


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"
