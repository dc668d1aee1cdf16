"""What resembles: groups of memories, and what becomes of those that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import memory
from .memory import Memory

EQUAL = "equal but for case and white space"
SIMILAR = "similar or contradicting"


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
        kind: `EQUAL` or `SIMILAR`.
        memories: newest first.
        pairs: which of them resemble which.
    """

    kind: str
    memories: tuple[Memory, ...]
    pairs: tuple[Pair, ...]


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
    members: dict[str, list[Memory]] = {}
    for name in leader:
        members.setdefault(find(name), []).append(known[name])
    groups = []
    for top, found in members.items():
        found.sort(key=newer, reverse=True)
        kind = EQUAL if len({memory.folded(each.content) for each in found}) == 1 else SIMILAR
        inside = tuple(each for each in pairs if find(each.first) == top)
        groups.append(Group(kind, tuple(found), inside))
    return sorted(groups, key=lambda each: (-len(each.memories), each.memories[0].id))


def newer(one: Memory) -> tuple[str, int]:
    """Return what the newest of some memories has the most of."""
    return one.updated_at, one.number


@dataclass(frozen=True)
class Merged:
    """What one memory has of several: the newest's text and metadata, and what all have."""

    priority: str
    category: str | None
    tags: tuple[str, ...]
    access_count: int
    usage_contexts: tuple[str, ...]


def merged(memories: Sequence[Memory]) -> Merged:
    """Return what becomes of memories, given newest first.

    The highest priority wins, tags are united, uses are added up, and of the rest the newest has
    the say.
    """
    tags: dict[str, str] = {}
    for each in memories:
        for tag in each.tags:
            tags.setdefault(tag.casefold(), tag)
    contexts = [one for each in reversed(memories) for one in each.usage_contexts]
    return Merged(
        memory.highest([each.priority for each in memories]),
        next((each.category for each in memories if each.category), None),
        tuple(tags.values())[: memory.MOST_TAGS],
        sum(each.access_count for each in memories),
        tuple(contexts[-memory.MOST_CONTEXTS :]),
    )
