"""A memory as people see it: whatever it holds is shown, and nothing of it is obeyed.

__init__    its fields, on a line each; its lines, paragraphs and title without markup
commonmark  markdown parsed so that nothing is hidden, and checked for it
html        markdown as safe HTML
terminal    markdown as lines of text
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from aiaml_server.format.invisible import marked, marked_line
from aiaml_server.format.memory import Memory

MAX_RENDERED = 32 * 1024  # characters …
MOST_PARTS = 4000  # … and lines and brackets; the worst text takes half a second to parse


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


# A line that begins no block, has no span and does not break hard.
_UNMARKED = re.compile(r"[^\W_0-9]([^*_`~<&\\\[\]]*[^*_`~<&\\\[\] ])?")


def paragraphs(source: str) -> list[list[str]] | None:
    """Return the lines of each paragraph of a text that has no markup; None where it may have.

    So prose need not wait for the parser, which takes a tenth of the start of `aiaml show`.
    """
    found: list[list[str]] = [[]]
    for line in source.strip("\n").split("\n"):
        if not line:
            found.append([])
        elif _UNMARKED.fullmatch(line) and line.isprintable():
            found[-1].append(line)
        else:
            return None
    return [each for each in found if each]


_TITLED = 4096  # characters in which a title is looked for
_BEFORE = re.compile(r"(?:(?:[-*+>|]|#{1,6}|\[[ xX]\]|[0-9]{1,9}[.)])(?:[ \t]+|$))+")
_BETWEEN = re.compile(r"[ \t]*(?:[-*_=|:+][ \t]*){3,}|[ \t]*(?:```|~~~).*")  # rules, fences
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_EMPHASIS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|__|~~|`")
_CELLS = re.compile(r" ?\| ?")  # blanks are single there
_WORD = re.compile(r"\w")


def read_aloud(markdown: str) -> Iterator[str]:
    """Yield the lines that say something, without their markup."""
    for line in markdown.splitlines():
        if not _BETWEEN.fullmatch(line):
            words = line.strip()
            lead = _BEFORE.match(words)
            plain = _EMPHASIS.sub("", _LINK.sub(r"\1", words[lead.end() :] if lead else words))
            if said := _CELLS.sub(" · ", " ".join(plain.split())).strip(" ·#"):
                yield said


def title(content: str) -> str:
    """Return what a text is called by: its first heading or line with a word, without markup."""
    beginning = content[:_TITLED]
    return next(filter(_WORD.search, read_aloud(beginning)), beginning.strip())
