"""Which memories a question is about: the words that they share with it, the rarer the better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from .model import Memory
from .words import sharing, terms


class Hit(NamedTuple):
    """A memory that was found.

    Attributes:
        memory: the memory.
        score: from 0 to 1: the part of the question's weight that it shares.
        superseded_by: the ids of the memories that supersede it.
    """

    memory: Memory
    score: float
    superseded_by: tuple[str, ...] = ()


def rank(memories: Iterable[Memory], query: str, shortest: int = 3) -> list[tuple[Memory, float]]:
    """Return the memories that share words with a question, best first, with their scores.

    A word's weight is log(1 + memories / memories that have it). What has the same score is
    ordered by the words that it shares in its subject, then newest first, then by id.
    """
    asked = set(terms(query, shortest))
    shares = sharing(asked, shortest)
    texts = [(each, shares(_searched(each))) for each in memories]
    having = {word: sum(word in shared for _, shared in texts) for word in asked}
    weight = {word: log(1 + len(texts) / count) for word, count in having.items() if count}
    total = sum(weight.values())
    found = [
        (each, sum(weight[word] for word in sorted(shared)) / total)
        for each, shared in texts
        if shared
    ]
    found.sort(key=lambda hit: hit[0].id)
    found.sort(key=lambda hit: hit[0].created, reverse=True)
    found.sort(
        key=lambda hit: (round(hit[1], 9), len(shares(hit[0].subject))),
        reverse=True,
    )
    return found


def _searched(memory: Memory) -> str:
    """Return all that is searched of a memory."""
    cited = [text for each in memory.citations for text in (each.path, each.snippet or "")]
    return "\n".join([memory.subject, memory.content, *memory.tags, *cited])


def merged(
    ranked: list[tuple[Memory, float]],
    near: Sequence[tuple[str, float]],
    memories: Mapping[str, Memory],
) -> list[tuple[Memory, float]]:
    """Return what was found by words and by meaning, each memory and each text once, best first.

    A score is the mean of both: the likeness counts from the least to the greatest that was found.
    Where nothing was found by meaning, the order is that of the words.
    """
    near = [(name, likeness) for name, likeness in near if name in memories]
    if not near:
        return ranked
    least, most = (pick(likeness for _, likeness in near) for pick in (min, max))
    scores = {each.id: score / 2 for each, score in ranked}
    for name, likeness in near:
        part = (likeness - least) / (most - least) if most > least else 1.0
        scores[name] = scores.get(name, 0.0) + part / 2
    found: dict[tuple[str, str], tuple[Memory, float]] = {}
    for name, score in sorted(scores.items(), key=lambda each: (-each[1], each[0])):
        found.setdefault((memories[name].subject, memories[name].content), (memories[name], score))
    return list(found.values())


def successors(memories: Mapping[str, Memory]) -> dict[str, tuple[str, ...]]:
    """Return for each superseded memory the ids of those that supersede it."""
    found: dict[str, list[str]] = {}
    for each in memories.values():
        for link in each.links:
            if link.type == "supersedes" and link.target != each.id:
                found.setdefault(link.target, []).append(each.id)
    return {target: tuple(sorted(set(by))) for target, by in found.items()}


def arranged(
    found: Iterable[tuple[Memory, float]], superseded: Mapping[str, tuple[str, ...]]
) -> list[Hit]:
    """Return hits in order, each superseded memory behind those of its successors that are hits."""
    hits = {each.id: Hit(each, score, superseded.get(each.id, ())) for each, score in found}
    done: dict[str, Hit] = {}
    for first in hits:
        waiting, seen = [first], {first}
        while waiting:
            top = waiting[-1]
            newer = next(
                (
                    by
                    for by in hits[top].superseded_by
                    if by in hits and by not in seen | done.keys()
                ),
                None,
            )
            if newer is None:
                done.setdefault(waiting.pop(), hits[top])
            else:
                waiting.append(newer)
                seen.add(newer)
    return list(done.values())
