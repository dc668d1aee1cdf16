"""The person's ranking: BM25 over the forms of each word, with the share of the question matched.

A memory's score is the sum of the points of the question's words (`format/bm25.py`) times the share
of the question's rarity that its words have, in thousandths. The share is what Lucene once called
"coord", by rarity instead of by number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from aiaml_server.format.bm25 import TOPIC_WEIGHT, rarity, saturation
from aiaml_server.format.filters import Filter
from aiaml_server.format.languages import Word
from aiaml_server.format.question import Question
from aiaml_server.format.scorer import Found
from aiaml_server.index.counting import scores_of
from aiaml_server.index.database import BEGINS, IN, Database, listed
from aiaml_server.index.listing import Stamps, best_hits, keep_matching, select
from aiaml_server.index.terms import IN_TOPICS

# Characters of a word that is also looked for inside of others, if no memory has it as a word.
MIN_FRAGMENT = 4

_UNSPACED = (  # scripts that put no spaces between words
    r"[\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)


class WordMatch(NamedTuple):
    """Where a word of the question was found.

    Attributes:
        text: the word as it was typed.
        forms: the terms that were found for it.
        rarity: the weight of the word, above 0.
        files: how often a form occurs in each file that has any.
    """

    text: str
    forms: frozenset[str]
    rarity: float
    files: Mapping[int, int]


class Answer(NamedTuple):
    """What was found for a question.

    Attributes:
        found: the hits that were asked for, and how many there are.
        question: what was asked.
        words: of each word of the question, where it was found.
        without_phrase: where no memory has the phrases, how many have all of the words.
    """

    found: Found
    question: Question
    words: tuple[WordMatch, ...]
    without_phrase: int


def answer(
    database: Database, question: Question, wanted: Filter, part: slice, least_share: float
) -> tuple[Answer, Stamps]:
    """Return a part of the answer to a question, and the stamps of its files."""
    scores, words = rank_files(database, question, wanted, least_share)
    found, stamps = best_hits(database, scores, {word.text: word.files for word in words}, part)
    without_phrase = 0
    if question.phrases and words and not scores:
        together = set(words[0].files).intersection(*[word.files for word in words])
        without_phrase = len(keep_matching(database, together, wanted))
    return Answer(found, question, words, without_phrase), stamps


def rank_files(
    database: Database, question: Question, wanted: Filter, least_share: float = 0.0
) -> tuple[dict[int, int], tuple[WordMatch, ...]]:
    """Score the matching files that answer a question; also return its words.

    Args:
        database: the index, inside of one transaction.
        question: what is looked for.
        wanted: which memories.
        least_share: the share of the question's rarity that the words of a file must have.
    """
    ((count, mean),) = database.rows("SELECT count(length), avg(length) FROM files")
    words = tuple(_find_word(database, word, count) for word in question.words)
    total = sum(word.rarity for word in words) or 1
    matched: dict[int, float] = {}
    for word in words:
        for file in word.files:
            matched[file] = matched.get(file, 0.0) + word.rarity
    together = [set(scores_of(database, each, composed=True)) for each in question.phrases]
    if words:
        together.append({file for file in matched if matched[file] >= least_share * total})
    candidates = set.intersection(*together) if together else set()
    lengths = dict(select(database, "id, length", wanted, candidates))
    points = dict.fromkeys(lengths, 0.0)
    for word in words:
        for file in word.files.keys() & lengths.keys():
            points[file] += word.rarity * saturation(word.files[file], lengths[file] / mean)
    scores = {
        file: max(1, round(1000 * points[file] * matched.get(file, 0.0) / total))
        for file in lengths
    }
    return scores, words


def _find_word(database: Database, word: Word, count: int) -> WordMatch:
    """Find a word in a database of so many memories.

    It is found in its forms. Where there are none, and in scripts without spaces, it is found in
    all terms that contain it.
    """
    starts = {word.start, *word.irregular_forms} if word.is_inflected else word.irregular_forms
    begun = {term for start in starts for term, _ in database.postings(BEGINS, start)}
    found = {term for term in begun if word.is_form(term.rstrip(IN_TOPICS))}
    is_unspaced = not word.text.isascii() and re.search(_UNSPACED, word.text)
    if is_unspaced or (not found and len(word.text) >= MIN_FRAGMENT):
        found.update(database.terms_with(word.text))
    forms: set[str] = set()
    times: Counter[int] = Counter()
    for term, files in database.postings(f"term {IN}", listed(found)):
        forms.add(term.rstrip(IN_TOPICS))
        weight = TOPIC_WEIGHT if term.endswith(IN_TOPICS) else 1
        times.update([*files] * weight)
    return WordMatch(word.text, frozenset(forms), rarity(count, len(times)), times)
