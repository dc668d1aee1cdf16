"""Find memories by words: the words that a question shares with them, the rarer the better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from math import log

from aiaml_server.toolsets.citations.index import Likeness
from aiaml_server.toolsets.citations.models import Memory

_CITED_WEIGHT = 0.7  # of a word that is only in what a memory cites
_CONTENT_WEIGHT = 0.98  # of a word that is not in the subject
_SYNONYM_WEIGHT = 0.5
_MIN_SCORE = 0.1  # below which a memory shares what any other might
_MIN_PREFIX = 4  # letters of a word that longer words may begin with
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUFFIX = re.compile(
    r"(?<=.{4})(?:ization|ations?|ingly|ments?|ions?)$"
    r"|(?<=.{3})(?:ings?|edly|ies|ied|ers?|es|ed|ly|(?<!s)s|e|y)$"
)
_DOUBLED = re.compile(r"(?<=..)([^ls])\1$")


Ranking = list[tuple[Memory, float]]


def tokenize(text: str, min_length: int = 3) -> list[str]:
    """Return the stems of a text's words, without stop words and shorter words.

    With the default length, words of two letters count as well: CI, db, v2.
    """
    shortest = 2 if min_length == 3 else min_length
    parts: list[str] = []
    for word in dict.fromkeys(_WORD.findall(text)):
        parts += [word] if word.islower() else {word, *_HUMP.split(word)}
    lower = [part.lower() for part in parts if len(part) >= shortest]
    return [stem(word) for word in lower if word not in _stop_words()]


@lru_cache(100_000)
def stem(word: str) -> str:
    """Return a word without its English ending, so that its forms count as one."""
    return _DOUBLED.sub(r"\1", _SUFFIX.sub("", word))


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(files(__package__).joinpath("stop_words.txt").read_text("utf-8").split())


@cache
def _synonym_groups() -> list[set[str]]:
    text = files(__package__).joinpath("synonyms.txt").read_text("utf-8")
    return [{stem(word) for word in line.split()} for line in text.splitlines()]


@cache
def synonyms(word: str) -> set[str]:
    """Return the stems that mean nearly the same to people who write software."""
    return set().union(*(group for group in _synonym_groups() if word in group))


def rank(memories: Iterable[Memory], query: str, min_length: int = 3) -> Ranking:
    """Return the memories that share words with a question, best first, with scores.

    A score is the share of the question's weight that a memory has, from 0 to 1. A word weighs
    log(1 + memories / memories with the word). Synonyms, and words that begin with the word, count
    half. Of equal scores, the newest memory is first.
    """
    words = {memory: _weighted_words(memory, min_length) for memory in memories}
    weights = {}
    for word in sorted(set(tokenize(query, min_length))):
        count = sum(word in found for found in words.values()) or 0.5
        weights[word] = log(1 + len(words) / count)
    total = sum(weights.values())
    hits = []
    for memory, found in words.items():
        score = sum(weight * _share(word, found) for word, weight in weights.items())
        if score > total * _MIN_SCORE:
            hits.append((memory, score / total))
    hits.sort(key=lambda hit: (round(hit[1], 9), hit[0].created or "", hit[0].id), reverse=True)
    return hits


def _weighted_words(memory: Memory, min_length: int) -> dict[str, float]:
    cited = [f"{citation.path} {citation.snippet or ''}" for citation in memory.citations]
    own = [memory.content, *memory.tags]
    words: dict[str, float] = {}
    for texts, weight in ((cited, _CITED_WEIGHT), (own, _CONTENT_WEIGHT), ([memory.subject], 1.0)):
        words |= dict.fromkeys(tokenize(" ".join(texts), min_length), weight)
    return words


def _share(word: str, words: Mapping[str, float]) -> float:
    """Return how much of a word's weight a text with some words has."""
    if word in words:
        return words[word]
    is_similar = not words.keys().isdisjoint(synonyms(word))
    is_prefix = len(word) >= _MIN_PREFIX and any(other.startswith(word) for other in words)
    return _SYNONYM_WEIGHT if is_similar or is_prefix else 0.0


def merge(ranked: Ranking, semantic: Likeness, memories: Iterable[Memory]) -> Ranking:
    """Return what was found by words and by meaning, each text once, best first.

    If anything was found by meaning, a score is the mean of both.
    """
    if not semantic:
        return ranked
    scores = {memory.id: score / 2 for memory, score in ranked}
    for memory_id, likeness in semantic:
        scores[memory_id] = scores.get(memory_id, 0.0) + likeness / 2
    merged: dict[str, tuple[Memory, float]] = {}
    for memory in sorted(memories, key=lambda memory: -scores.get(memory.id, 0.0)):
        if memory.id in scores:
            merged.setdefault(memory.subject + memory.content, (memory, scores[memory.id]))
    return list(merged.values())
