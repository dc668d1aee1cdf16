"""Find memories by words: the words that a question shares with them, the rarer the better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from math import log
from typing import NamedTuple

from aiaml_server.toolsets.citations.models import Memory

_CITED_WEIGHT = 0.7  # of a word that is only in what a memory cites
_CONTENT_WEIGHT = 0.98  # of a word that is not in the subject
_SYNONYM_WEIGHT = 0.5
_ENOUGH = 0.7  # a score at which the question is answered in its own words
_MIN_SCORE = 0.1  # below which a memory shares what any other might
_MIN_PREFIX = 4  # letters of a word that longer words may begin with
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUFFIX = re.compile(
    r"(?<=.{4})(?:ization|ations?|ingly|ments?|ions?)$"
    r"|(?<=.{3})(?:ings?|edly|ies|ied|ers?|es|ed|ly|(?<!s)s|e|y)$"
)


class Hit(NamedTuple):
    """A memory that was found.

    Attributes:
        memory: the memory.
        score: from 0 to 1: the share of the question's weight that it has.
        superseded_by: the ids of the memories that supersede it.
    """

    memory: Memory
    score: float
    superseded_by: tuple[str, ...] = ()


def tokenize(text: str, min_length: int = 3) -> list[str]:
    """Return the stems of a text's words, without stop words and shorter words.

    With the default length, words of two letters count as well: CI, db, v2.
    """
    shortest = 2 if min_length == 3 else min_length
    stems = []
    for word in _WORD.findall(text):
        for part in {word, *_HUMP.split(word)}:
            lower = part.lower()
            if len(part) >= shortest and lower not in _stop_words():
                stems.append(stem(lower))
    return stems


@lru_cache(100_000)
def stem(word: str) -> str:
    """Return a word without its English ending, so that its forms count as one."""
    short = _SUFFIX.sub("", word)
    is_doubled = len(short) > 3 and short[-1] == short[-2] and short[-1] not in "ls"
    return short[:-1] if is_doubled else short


def _read_data(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_read_data("stop_words.txt").split())


@cache
def synonyms() -> dict[str, set[str]]:
    """Return for each stem the stems that mean nearly the same to people who write software."""
    found: dict[str, set[str]] = {}
    for line in _read_data("synonyms.txt").splitlines():
        stems = {stem(word) for word in line.split()}
        for word in stems:
            found.setdefault(word, set()).update(stems)
    return found


def rank(memories: Iterable[Memory], query: str, min_length: int = 3) -> list[tuple[Memory, float]]:
    """Return the memories that share words with a question, best first, with scores.

    A word weighs log(1 + memories / memories with the word). If no memory has most of the weight,
    synonyms and words that begin with the word count half. Of equal scores, the newest is first.
    """
    asked = sorted(set(tokenize(query, min_length)))
    candidates = sorted(memories, key=lambda memory: (memory.created, memory.id), reverse=True)
    words = [_weighted_words(memory, min_length) for memory in candidates]
    shared = [{word: found[word] for word in asked if word in found} for found in words]
    scores = _scores(shared, asked)
    if max(scores, default=0.0) < _ENOUGH:
        for own, found in zip(shared, words, strict=True):
            similar = [word for word in asked if word not in own and _has_similar(word, found)]
            own.update(dict.fromkeys(similar, _SYNONYM_WEIGHT))
        scores = _scores(shared, asked)
    hits = [hit for hit in zip(candidates, scores, strict=True) if hit[1] > _MIN_SCORE]
    return sorted(hits, key=lambda hit: -round(hit[1], 9))


def _weighted_words(memory: Memory, min_length: int) -> dict[str, float]:
    cited = [f"{citation.path} {citation.snippet or ''}" for citation in memory.citations]
    words: dict[str, float] = {}
    for text, weight in (
        (" ".join(cited), _CITED_WEIGHT),
        (" ".join([memory.content, *memory.tags]), _CONTENT_WEIGHT),
        (memory.subject, 1.0),
    ):
        words |= dict.fromkeys(tokenize(text, min_length), weight)
    return words


def _scores(shared: Sequence[Mapping[str, float]], asked: Sequence[str]) -> list[float]:
    weights = {}
    for word in asked:
        count = sum(word in words for words in shared)
        weights[word] = log(1 + len(shared) / (count or 0.5))
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] * words[word] for word in sorted(words)) / total for words in shared]


def _has_similar(word: str, words: Mapping[str, float]) -> bool:
    if not words.keys().isdisjoint(synonyms().get(word, ())):
        return True
    return len(word) >= _MIN_PREFIX and any(other.startswith(word) for other in words)


def merge(
    ranked: Sequence[tuple[Memory, float]],
    semantic: Sequence[tuple[str, float]],
    memories: Mapping[str, Memory],
) -> list[tuple[Memory, float]]:
    """Return what was found by words and by meaning, each text once, best first.

    If anything was found by meaning, a score is the mean of both.
    """
    scores = {memory.id: score / 2 for memory, score in ranked}
    for memory_id, likeness in semantic:
        if memory_id in memories:
            scores[memory_id] = scores.get(memory_id, 0.0) + likeness / 2
    merged: dict[str, tuple[Memory, float]] = {}
    for memory_id in sorted(scores, key=lambda key: -scores[key]):
        memory = memories[memory_id]
        merged.setdefault(memory.subject + memory.content, (memory, scores[memory_id]))
    return list(merged.values()) if semantic else list(ranked)


def mark_superseded(found: Iterable[tuple[Memory, float]], memories: Iterable[Memory]) -> list[Hit]:
    """Return hits in order, with those last that another hit supersedes."""
    newer: dict[str, list[str]] = {}
    for memory in memories:
        for link in memory.links:
            if link.type == "supersedes" and link.target != memory.id:
                newer.setdefault(link.target, []).append(memory.id)
    hits = [Hit(memory, score, tuple(newer.get(memory.id, ()))) for memory, score in found]
    ids = {hit.memory.id for hit in hits}
    return sorted(hits, key=lambda hit: not ids.isdisjoint(hit.superseded_by))
