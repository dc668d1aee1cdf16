"""A memory as people see it: whatever it holds is shown, and nothing of it is obeyed.

__init__    its fields, on a line each; its title
commonmark  markdown parsed so that nothing is hidden, and checked for it
html        markdown as safe HTML
terminal    markdown as lines of text
"""

from __future__ import annotations

import re
from dataclasses import replace

from aiaml_server.invisible import marked, marked_line
from aiaml_server.memory import Memory


def visible(memory: Memory) -> Memory:
    """Return a memory as it may be shown: `marked`, and on one line what has to be."""
    return replace(
        memory,
        id=marked_line(memory.id),
        timestamp=marked_line(memory.timestamp),
        agent=marked_line(memory.agent),
        user=marked_line(memory.user),
        topics=tuple(map(marked_line, memory.topics)),
        content=marked(memory.content),
    )


_TITLED = 4096  # characters in which a title is looked for
_BEFORE = re.compile(r"(?:(?:[-*+>|]|#{1,6}|\[[ xX]\]|[0-9]{1,9}[.)])(?:[ \t]+|$))+")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_EMPHASIS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|__|~~|`")
_WORD = re.compile(r"\w")


def title(content: str) -> str:
    """Return what a text is called by: its first heading or line with a word, without markup."""
    for line in content[:_TITLED].splitlines():
        text = _BEFORE.sub("", line.strip(), count=1) if _BEFORE.match(line.strip()) else line
        text = _EMPHASIS.sub("", _LINK.sub(r"\1", text)).strip(" \t#|")
        if _WORD.search(text) and not line.lstrip().startswith(("```", "~~~")):
            return text.replace(" | ", " · ")
    return content[:_TITLED].strip()
