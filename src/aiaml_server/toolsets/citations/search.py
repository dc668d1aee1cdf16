"""Which memories a question is about: the words that they share with it, the rarer the better."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from aiaml_server.toolsets.citations.model import Memory
from aiaml_server.toolsets.citations.thesaurus import groups
from aiaml_server.toolsets.citations.words import sharing, terms


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


_ENOUGH = 0.7  # a score at which what was asked is found in its own words
_CITED = 0.7  # what a word counts that is only in what a memory cites
_NEARLY = 0.5  # what a word of nearly the same meaning counts
_LEAST = 0.1  # the score below which a memory shares with a question what any other might


def rank(memories: Iterable[Memory], query: str, shortest: int = 3) -> list[tuple[Memory, float]]:
    """Return the memories that share words with a question, best first, with their scores.

    A word's weight is log(1 + memories / memories that have it), and that of a word in half a
    memory where none has it. Where no memory has most of the weight, words that mean nearly the
    same, and longer ones that begin with one, count as a half. What has the same score is ordered
    by the words that it shares in its subject, then newest first, then by id.
    """
    asked = set(terms(query, shortest))
    every = list(memories)
    texts = list(map(_searched, every))
    shares = sharing(asked, shortest)
    shared = [
        {**dict.fromkeys(shares(cited), _CITED), **dict.fromkeys(shares(text), 1.0)}
        for text, cited in texts
    ]
    found = _scored(every, shared, asked)
    if max((score for _, score in found), default=0.0) < _ENOUGH:
        near = {word: groups().get(word, frozenset()) for word in asked}
        nearly = sharing({each for others in near.values() for each in others}, shortest)
        for words, both in zip(shared, texts, strict=True):
            text = "\n".join(both)
            others, lower = nearly(text), text.lower()
            for word in asked - words.keys():
                if near[word] & others or _begins_a_word(word, lower):
                    words[word] = _NEARLY
        found = _scored(every, shared, asked)
    found.sort(key=lambda hit: hit[0].id)
    found.sort(
        key=lambda hit: (round(hit[1], 9), len(shares(hit[0].subject)), hit[0].created),
        reverse=True,
    )
    return found


def _scored(
    memories: Sequence[Memory], shared: Sequence[Mapping[str, float]], asked: Iterable[str]
) -> list[tuple[Memory, float]]:
    """Return the memories that share enough with a question, with their part of its weight."""
    having = {word: sum(word in words for words in shared) for word in asked}
    weight = {word: log(1 + len(memories) / (count or 0.5)) for word, count in having.items()}
    total = sum(weight[word] for word in sorted(weight))
    scores = [sum(weight[word] * words[word] for word in sorted(words)) for words in shared]
    return [
        (each, score / total)
        for each, score in zip(memories, scores, strict=True)
        if score > total * _LEAST
    ]


def _begins_a_word(stem: str, text: str) -> bool:
    """Say whether a word of a text begins with a stem of some letters."""
    at = text.find(stem) if len(stem) >= _TELLING else -1
    while at > 0 and text[at - 1].isalnum():
        at = text.find(stem, at + 1)
    return at >= 0


_TELLING = 4  # letters


def _searched(memory: Memory) -> tuple[str, str]:
    """Return what a memory says, and what it cites."""
    cited = [text for each in memory.citations for text in (each.path, each.snippet or "")]
    return "\n".join([memory.subject, memory.content, *memory.tags]), "\n".join(cited)


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
                    if by in hits and by not in seen and by not in done
                ),
                None,
            )
            if newer is None:
                done.setdefault(waiting.pop(), hits[top])
            else:
                waiting.append(newer)
                seen.add(newer)
    return list(done.values())
