"""A long memory cut round the words of a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from aiaml_server.toolsets.semantic.cutting import STOP

ROOM = 600  # characters that hits have together at least
EACH = 185  # and for each of them
LOOKED = 400_000  # characters in which words are looked for, of all hits together
_EDGE = 20  # characters of a word that is not cut: it is left out instead
_STEM = 5  # letters by which forms of a word are known again


def excerpts(contents: Sequence[str], question: str) -> list[str]:
    """Return texts, of which the long ones are cut so that all have room.

    Short ones leave what they do not need to the others; what is cut begins or ends with "…".
    """
    room = max(ROOM, EACH * len(contents))
    allowed = dict.fromkeys(range(len(contents)), 0)
    waiting = sorted(allowed, key=lambda number: len(contents[number]))
    for place, number in enumerate(waiting):
        allowed[number] = min(len(contents[number]), room // (len(waiting) - place))
        room -= allowed[number]
    looked = LOOKED // max(1, len(contents))
    return [
        excerpt(each, question, allowed[number], looked) for number, each in enumerate(contents)
    ]


def excerpt(content: str, question: str, most: int, looked: int = LOOKED) -> str:
    """Return the part of a text, of at most so many characters, that has most of the words.

    "… the cache is emptied at each commit …" of a long text, asked for "commit". The words are
    looked for in so many characters at its beginning.
    """
    if len(content) <= most:
        return content
    asked = (word for word in re.findall(r"\w+", question.lower()) if word not in STOP)
    stems = {word[:_STEM] for word in asked if len(word) > 2}
    found = [
        (match.start(), match[0].lower()[:_STEM])
        for match in re.finditer(r"\w+", content[:looked])
        if match[0].lower()[:_STEM] in stems
    ]
    width = most - 2  # for the signs
    before = width // 6  # that is shown ahead of the first of them
    best = begin = first = 0
    inside: Counter[str] = Counter()  # of the words from found[first] on that are shown with it
    for place, stem in found:
        inside[stem] += 1
        while place - found[first][0] >= max(1, width - before - _EDGE):
            gone = found[first][1]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            first += 1
        if len(inside) > best:
            best, begin = len(inside), found[first][0]
    begin = max(0, min(begin - before, len(content) - width))
    return _whole_words(content, begin, begin + width)


def _whole_words(content: str, begin: int, end: int) -> str:
    """Return a part that begins and ends between words, where one ends soon."""
    if begin and (space := content.find(" ", begin, begin + _EDGE)) > 0:
        begin = space + 1
    if end < len(content) and (space := content.rfind(" ", end - _EDGE, end)) > begin:
        end = space
    return f"{'…' if begin else ''}{content[begin:end].strip()}{'…' if end < len(content) else ''}"
