"""What changed in a text, line by line."""

from __future__ import annotations

from difflib import unified_diff
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


def _same(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are the same."""
    pairs = zip(one, other)  # noqa: B905 (the longer one's rest has no partner)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
