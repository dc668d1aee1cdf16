"""Show memories to people: titles, visible text, and differences of two texts."""

from __future__ import annotations

import difflib
import re

from aiaml_server.format.invisible import marked, marked_line
from aiaml_server.format.memory import Memory

_TITLE_CHARACTERS = 4096  # in which a title is looked for
_BLOCK_MARK = re.compile(r"(?:(?:[-*+>|]|#{1,6}|\[[ xX]\]|\d{1,9}[.)])(?:\s+|$))+")
_RULE_OR_FENCE = re.compile(r"(?:[-*_=|:+]\s*){3,}|(?:```|~~~).*")
LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
"""A link or picture in markdown; its text is group 1."""
_EMPHASIS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|__|~~|`")
_WORD = re.compile(r"\w")


def title(content: str) -> str:
    """Return the first line of a markdown text that has a word, without its markup."""
    beginning = content[:_TITLE_CHARACTERS]
    for line in map(str.strip, beginning.splitlines()):
        if not _RULE_OR_FENCE.fullmatch(line):
            text = _plain(line)
            if _WORD.search(text):
                return text
    return beginning.strip()


def _plain(line: str) -> str:
    """Remove the markup of one line."""
    mark = _BLOCK_MARK.match(line)
    text = LINK.sub(r"\1", line[mark.end() :] if mark else line)
    text = " ".join(_EMPHASIS.sub("", text).split())
    return re.sub(r" ?\| ?", " · ", text).strip(" ·#")


def visible(memory: Memory) -> Memory:
    """Return a memory with its invisible characters marked, and its fields on one line each."""
    return memory._replace(
        id=marked_line(memory.id),
        timestamp=marked_line(memory.timestamp),
        agent=marked_line(memory.agent),
        user=marked_line(memory.user),
        topics=tuple(map(marked_line, memory.topics)),
        content=marked(memory.content),
    )


def unified_diff(before: str, after: str) -> list[str]:
    """Return what changed from one text to another, as `diff -u` shows it, without file names."""
    old, new = before.splitlines(), after.splitlines()
    return list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
