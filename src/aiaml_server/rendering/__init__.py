"""A memory as people see it: whatever it holds is shown, and nothing of it is obeyed.

__init__    its fields, on a line each
commonmark  markdown parsed so that nothing is hidden, and checked for it
html        markdown as safe HTML
terminal    markdown as lines of text
"""

from __future__ import annotations

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
