"""What changed in a text: line by line, or in words."""

from __future__ import annotations

import re
from difflib import SequenceMatcher, unified_diff
from itertools import islice, takewhile

_COMPARED = 250_000  # pairs of lines; with more, difflib's time grows with the cube of their number
_AROUND = 2  # lines


def difference(before: str, after: str) -> list[str]:
    """Return the lines of a unified difference, without its head.

    In long texts, all between the first and the last line that differ is told as replaced.
    """
    old, new = before.splitlines(), after.splitlines()
    if len(old) * len(new) <= _COMPARED:
        return list(islice(unified_diff(old, new, lineterm="", n=_AROUND), 2, None))
    same = _same(old, new)
    if same == len(old) == len(new):
        return []
    ending = _same(old[same:][::-1], new[same:][::-1])
    first = max(same - _AROUND, 0)
    gone, come = old[same : len(old) - ending], new[same : len(new) - ending]
    above, below = old[first:same], old[len(old) - ending :][:_AROUND]
    around = len(above) + len(below)
    place = f"@@ -{first + 1},{len(gone) + around} +{first + 1},{len(come) + around} @@"
    return [
        place,
        *(f" {line}" for line in above),
        *(f"-{line}" for line in gone),
        *(f"+{line}" for line in come),
        *(f" {line}" for line in below),
    ]


def changed_words(before: str, after: str) -> list[tuple[str, str]]:
    """Return a text piece by piece: what stood there, and what stands there now.

    Two pieces that are the same did not change. The pieces are words, in long texts lines.

    >>> changed_words("It has number 77.", "It has number 78, too.")
    [('It has number ', 'It has number '), ('77.', '78, too.')]
    """
    for pieces in (_WORDS, _LINES):
        old, new = pieces.split(before), pieces.split(after)
        if len(old) * len(new) <= _COMPARED:
            break
    else:
        return [(before, after)]
    found: list[tuple[str, str]] = []
    for kind, *at in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = "".join(old[at[0] : at[1]]), "".join(new[at[2] : at[3]])
        blank = kind == "equal" and not gone.strip()
        changes = found and found[-1][0] != found[-1][1]
        if changes and (blank or kind != "equal"):  # between two words that changed
            gone, come = (found[-1][0] + gone, found.pop()[1] + come)
        found.append((gone, come))
    return [each for each in found if any(each)]


_WORDS = re.compile(r"(\s+)")
_LINES = re.compile(r"(\n+)")


def _same(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are the same."""
    pairs = zip(one, other)  # noqa: B905 (the longer one's rest has no partner)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
