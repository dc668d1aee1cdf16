"""What resembles: groups of memories, and what becomes of those that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from aiaml_server.toolsets.semantic import memory
from aiaml_server.toolsets.semantic.failures import InvalidInput
from aiaml_server.toolsets.semantic.filters import behind, cursor_of
from aiaml_server.toolsets.semantic.memory import Memory

EQUAL = "equal but for case and white space"
ALIKE = "equal but for case, blanks and punctuation"
SIMILAR = "similar or contradicting"
THRESHOLD = 0.95
"""The cosine from which on two resemble each other, unless another is asked for."""
MOST_NEAR = 20
"""Pairs that are noted of a memory with later ones; enough to connect any number of equals."""
MOST_SHOWN = 100
"""Memories in groups after which a page ends."""
_BLOCK = 256  # memories that are compared with all later ones at once: 10 MB for 10,000
_ROUNDED = 1e-6  # of a cosine in single precision


@dataclass(frozen=True)
class Pair:
    """Two memories that resemble each other.

    Attributes:
        first, second: their ids.
        cosine: how near they are by meaning; None where only the text was compared.
    """

    first: str
    second: str
    cosine: float | None


@dataclass(frozen=True)
class Group:
    """Memories that resemble each other.

    Attributes:
        kind: `EQUAL`, `ALIKE` or `SIMILAR`.
        memories: newest first.
        pairs: which of them resemble which.
    """

    kind: str
    memories: tuple[Memory, ...]
    pairs: tuple[Pair, ...]


def check_threshold(threshold: float) -> float:
    """Return a threshold of likeness.

    Raises:
        InvalidInput: it is none.
    """
    if not 0 < threshold <= 1:
        raise InvalidInput("similarity_threshold: must be a number above 0, at most 1")
    return threshold


def near(names: Sequence[str], vectors: Sequence[bytes], threshold: float) -> list[Pair]:
    """Return the pairs whose vectors are near; needs numpy, and takes 2 s for 10,000.

    Args:
        names: the memories' ids.
        vectors: of each, as the database has it.
        threshold: the cosine from which on two are near.
    """
    import numpy as np  # noqa: PLC0415 (comes with the extra, and is heavy)

    if not names:
        return []
    unit = np.frombuffer(b"".join(vectors), "<f4").reshape(len(names), -1)
    with np.errstate(all="ignore"):  # one that somebody planted has no length, and is near nothing
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    unit = np.where(np.isfinite(unit), unit, 0)
    pairs = []
    for start in range(0, len(names), _BLOCK):
        cosines = unit[start : start + _BLOCK] @ unit[start:].T
        cosines[np.tril_indices_from(cosines)] = -2.0  # itself, and those that came before
        for row in np.flatnonzero(cosines.max(axis=1) >= threshold - _ROUNDED).tolist():
            order = np.argsort(-cosines[row], kind="stable")[:MOST_NEAR].tolist()
            pairs += [
                Pair(names[start + row], names[start + other], min(float(cosines[row, other]), 1.0))
                for other in order
                if cosines[row, other] >= threshold - _ROUNDED
            ]
    return pairs


def grouped(pairs: Iterable[Pair], known: dict[str, Memory]) -> list[Group]:
    """Return memories that are connected by pairs, each in one group; the largest first."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    pairs = list(pairs)
    for each in pairs:
        leader[find(each.second)] = find(each.first)
    inside: dict[str, list[Pair]] = {}
    for each in pairs:
        inside.setdefault(find(each.first), []).append(each)
    members: dict[str, list[Memory]] = {}
    for name in leader:
        members.setdefault(find(name), []).append(known[name])
    groups = []
    for top, found in members.items():
        found.sort(key=newer, reverse=True)
        contents = [each.content for each in found]
        is_alike = len(set(map(memory.bare, contents))) == 1
        kind = ALIKE if is_alike else SIMILAR
        kind = EQUAL if len(set(map(memory.folded, contents))) == 1 else kind
        groups.append(Group(kind, tuple(found), tuple(inside[top])))
    return sorted(groups, key=_order)


class After(NamedTuple):
    """Where a page of groups begins: behind the one of this (negative) size and first memory."""

    size: int
    first: str


def after(cursor: str | None, threshold: float = THRESHOLD) -> After | None:
    """Return what a cursor says.

    Raises:
        InvalidInput: it is no cursor of groups, or of those above another threshold.
    """
    return None if cursor is None else After(*behind(cursor, f"groups {threshold}", (int, str)))


def page(
    groups: Sequence[Group], begun: After | None, threshold: float = THRESHOLD
) -> tuple[Sequence[Group], str | None]:
    """Return groups until they have 100 memories, and the cursor of the next ones, if there are.

    Args:
        groups: of all databases.
        begun: what the cursor of the page before said; None for the first.
        threshold: the cosine that they were made with.
    """
    left = sorted((each for each in groups if begun is None or _order(each) > begun), key=_order)
    count = shown = 0
    while shown < len(left) and count < MOST_SHOWN:
        count += len(left[shown].memories)
        shown += 1
    if shown == len(left):
        return left, None
    return left[:shown], cursor_of(f"groups {threshold}", _order(left[shown - 1]))


def _order(group: Group) -> After:
    return After(-len(group.memories), group.memories[0].id)


def newer(one: Memory) -> tuple[str, int]:
    """Return what the newest of some memories has the most of."""
    return one.updated_at, one.number


def merged(memories: Sequence[Memory]) -> Memory:
    """Return what becomes of memories, given newest first.

    The highest priority wins, tags are united, uses are added up, and of the rest the newest has
    the say.
    """
    contexts = [one for each in reversed(memories) for one in each.usage_contexts]
    return replace(
        memories[0],
        priority=memory.highest([each.priority for each in memories]),
        category=next((each.category for each in memories if each.category), None),
        tags=memory.united(*(each.tags for each in memories)),
        access_count=sum(each.access_count for each in memories),
        usage_contexts=tuple(contexts[-memory.MOST_CONTEXTS :]),
    )
