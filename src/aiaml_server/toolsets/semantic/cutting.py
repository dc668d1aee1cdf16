"""How texts are cut: a memory into the parts that a model reads, a question into words."""

from __future__ import annotations

import re

LONG = 190
"""Words above which a text has several parts, since a model reads some 256 pieces of words."""
PART = 120
_WIDE = 1_600  # characters that count as `LONG` words where there are no blanks
_PART_WIDE = 1_000
MOST_WORDS = 64  # of a question

_STOP = """
    a about above after again against all also am an and any are as at be because been before
    being below between both but by can could did do does doing don down during each few for
    from further had has have having he her here hers herself him himself his how i if in into
    is it its itself just let me more most my myself no nor not now of off on once only or
    other our ours ourselves out over own same she should so some such than that the their
    theirs them themselves then there these they this those through to too under until up very
    was we were what when where which while who whom why will with would you your yours
    yourself yourselves s t d ll m re ve
"""
STOP = frozenset(_STOP.split())
"""Words of a question that say nothing of what it is about."""


def parts(content: str) -> list[str]:
    """Return what a model reads of a text one after the other: the whole, unless it is long."""
    words = [each.span() for each in re.finditer(r"\S+", content)]
    if len(words) <= LONG and len(content) <= _WIDE:
        return [content]
    found: list[str] = []
    start, count = 0, 0
    for first, last in words:
        while last - start > _PART_WIDE:
            end = first if first > start else start + _PART_WIDE
            found.append(content[start:end].strip())
            start, count = end, 0
        count += 1
        if count == PART:
            found.append(content[start:last].strip())
            start, count = last, 0
    found.append(content[start:].strip())
    return [each for each in found if each]


def match(query: str) -> str:
    """Return a question as FTS5 has it: any of its words, without those that say nothing.

    Where the question has no word, it is what no text has.
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    telling = [each for each in words if each not in STOP] or words
    return " OR ".join(f'"{each}"' for each in telling[:MOST_WORDS]) or '""'
