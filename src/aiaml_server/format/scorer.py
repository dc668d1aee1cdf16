r"""The relevance formula of the specification. The index must give the same answer.

The four fields are the topics joined by single spaces, the content, the user and the agent, all in
lower case. A keyword scores, in each field, the number of times it occurs (`str.count`) plus the
number of matches of `\b` + the keyword, escaped + `\b`. An occurrence in the topics counts twice:

    score = 2 x topics + content + user + agent + whole words in all four

A memory's score is the sum over the keywords. A keyword that occurs in no memory is searched in
its other Unicode forms instead: `café` finds what another system wrote as `cafe` and an accent.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.format.memory import Memory
from aiaml_server.timestamps import parse_timestamp

MAX_HITS = 25
MAX_KEYWORDS = 1000
MAX_KEYWORD = 1000  # characters
MAX_QUESTION = 64 * 1024  # characters of all keywords together

WANTED = (
    'a list of words to look for, such as ["dinner", "restaurant", "vegetarian", "marco"]; '
    f"at most {MAX_KEYWORDS:,}, of {MAX_KEYWORD:,} characters each and {MAX_QUESTION:,} together"
)
"""What is right for the keywords of a question: the sentence that follows "must be"."""

Fields = tuple[tuple[int, str], ...]


class Hit(NamedTuple):
    """One memory that matches.

    Attributes:
        file_name: the file that holds it.
        id: the memory's id.
        timestamp: as its file states it.
        relevance_score: the sum over the keywords, above 0.
        matching_keywords: those that occur in it, in the order of the question.
    """

    file_name: str
    id: str
    timestamp: str
    relevance_score: int
    matching_keywords: tuple[str, ...]


class Found(NamedTuple):
    """The result of a search with a filter.

    Attributes:
        total: the number of matching memories.
        hits: the requested part of them, sorted as `ordered` does.
    """

    total: int
    hits: list[Hit]


def clean(keywords: Iterable[str]) -> list[str]:
    """Lower-case and strip the keywords; drop empties and repeats, keep the order.

    Raises:
        InvalidInput: they are too many, or too long.
    """
    words = dict.fromkeys(word for word in (raw.lower().strip() for raw in keywords) if word)
    lengths = [len(word) for word in words]
    if len(words) > MAX_KEYWORDS or max(lengths, default=0) > MAX_KEYWORD:
        raise InvalidInput("keywords", f"must be {WANTED}")
    if sum(lengths) > MAX_QUESTION:
        raise InvalidInput("keywords", f"must be {WANTED}")
    return list(words)


def fields(memory: Memory) -> Fields:
    """Return the text that is searched, in lower case, and the weight of an occurrence in it."""
    return (
        (2, " ".join(memory.topics).lower()),
        (1, memory.content.lower()),
        (1, memory.user.lower()),
        (1, memory.agent.lower()),
    )


def score(searched: Fields, keyword: str) -> int:
    """Score one cleaned keyword."""
    total = 0
    for weight, text in searched:
        if count := text.count(keyword):  # without one, no whole word matches either
            total += weight * count + len(_whole_word(keyword).findall(text))
    return total


_patterns: dict[str, re.Pattern[str]] = {}  # the keywords of one question, at the most


def _whole_word(keyword: str) -> re.Pattern[str]:
    r"""Return `\b` keyword `\b` as a pattern that searches for the letters first.

    After the letters it looks back for the boundary before them. This finds the same matches ten
    times as fast, and never compares the letters twice.
    """
    if (pattern := _patterns.get(keyword)) is None:
        letters = re.escape(keyword)
        pattern = re.compile(rf"{letters}(?<=\b(?s:.{{{len(keyword)}}}))\b")
        size = sum(map(len, tuple(_patterns)))
        if len(_patterns) >= MAX_KEYWORDS or size + len(keyword) > MAX_QUESTION:
            _patterns.clear()
        _patterns[keyword] = pattern
    return pattern


def hit(
    file_name: str,
    memory_id: str,
    timestamp: str,
    searched: Fields,
    keywords: Sequence[str],
    forms: Mapping[str, str] | None = None,
) -> Hit | None:
    """Score a memory for cleaned keywords; None when none of them occurs in it.

    Args:
        file_name: the file that holds it.
        memory_id: its id.
        timestamp: as its file states it.
        searched: its fields.
        keywords: the cleaned keywords.
        forms: the form in which a keyword is searched, if it is another.
    """
    forms = forms or {}
    scores = {
        keyword: value
        for keyword in keywords
        if (value := score(searched, forms.get(keyword, keyword)))
    }
    if not scores:
        return None
    return Hit(file_name, memory_id, timestamp, sum(scores.values()), tuple(scores))


def rank(memories: Iterable[tuple[str, Memory]], keywords: Iterable[str]) -> list[Hit]:
    """Return the best hits among (file name, memory) pairs: the literal answer to `think`.

    Sorted by score, then newest first (a timestamp that is no date last), then by file name,
    descending. So two answers to the same question are the same.
    """
    return every_hit(memories, clean(keywords))[:MAX_HITS]


def every_hit(memories: Iterable[tuple[str, Memory]], keywords: Sequence[str]) -> list[Hit]:
    """Return all hits for cleaned keywords, in the order of an answer."""
    forms: dict[str, str] = {}
    if not "".join(keywords).isascii():
        memories = list(memories)
        texts = [text for _, memory in memories for _, text in fields(memory)]
        forms = {keyword: _form_that_occurs(keyword, texts) for keyword in keywords}
    hits = (hit(name, m.id, m.timestamp, fields(m), keywords, forms) for name, m in memories)
    return ordered(found for found in hits if found)


def _form_that_occurs(keyword: str, texts: Sequence[str]) -> str:
    """Return the keyword, or the first of its other forms if only that occurs in a text."""
    for form in (keyword, *other_forms(keyword)):
        if any(form in text for text in texts):
            return form
    return keyword


def other_forms(keyword: str) -> list[str]:
    """Return the other Unicode forms of a keyword, NFC before NFD."""
    if keyword.isascii():
        return []
    forms = [unicodedata.normalize(form, keyword) for form in ("NFC", "NFD")]
    return [form for form in dict.fromkeys(forms) if form != keyword]


def ordered(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits in the order of an answer."""
    by_name = sorted(hits, key=lambda found: found.file_name, reverse=True)
    return sorted(by_name, key=lambda f: (-f.relevance_score, newest_first(f.timestamp)))


def newest_first(timestamp: str) -> float:
    """Return a sort key: the later the smaller; infinite for a timestamp that is no date."""
    instant = parse_timestamp(timestamp)
    return float("inf") if instant is None else -instant
