"""The person's ranking: BM25 over the forms of each word, with the share of the question matched.

For each word of the question,

    points = rarity x tf x (K1 + 1) / (tf + K1 x (1 - B + B x length / mean length))

where `tf` is how often a form of it occurs in the memory, twice as much in the topics, and `rarity`
is ln(1 + (N - n + 0.5) / (n + 0.5)), with the word in n of N memories. A memory's score is the sum
of the points times the share of the question's rarity that its words have, in thousandths.

K1 and B are those of Trotman, Puurula and Burgess, "Improvements to BM25 and Language Models
Examined" (ADCS 2014). The share is what Lucene once called "coord", by rarity instead of by number.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

from aiaml_server.format.filters import Filter
from aiaml_server.format.languages import Word
from aiaml_server.format.scorer import Found, Hit
from aiaml_server.index.counting import scores_of
from aiaml_server.index.database import IN, Database, listed
from aiaml_server.index.listing import Stamps, best_hits, keep_matching
from aiaml_server.index.question import Question, terms_of_word
from aiaml_server.index.terms import split_counts

K1, B = 0.9, 0.4
TOPIC_WEIGHT = 2


class WordMatch(NamedTuple):
    """Where a word of the question was found.

    Attributes:
        text: the word as it was asked.
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
        apart: where no memory has the phrases, how many have all of the words.
    """

    found: Found
    question: Question
    words: tuple[WordMatch, ...]
    apart: int

    def share(self, hit: Hit) -> float:
        """Return the share of the question's rarity that a hit's words have, from 0 to 1."""
        rarity = {word.text: word.rarity for word in self.words}
        return sum(rarity[text] for text in hit.matching_keywords) / (sum(rarity.values()) or 1)


def answer(
    database: Database, question: Question, wanted: Filter | None, part: slice
) -> tuple[Answer, Stamps]:
    """Return a part of the answer to a question, and the stamps of its files."""
    scores, words = rank_files(database, question, wanted)
    found, stamps = best_hits(database, scores, {word.text: word.files for word in words}, part)
    apart = 0
    if question.phrases and words and not scores:
        together = set(words[0].files).intersection(*[word.files for word in words])
        apart = len(keep_matching(database, together, wanted))
    return Answer(found, question, words, apart), stamps


def rank_files(
    database: Database, question: Question, wanted: Filter | None
) -> tuple[dict[int, int], tuple[WordMatch, ...]]:
    """Score the matching files that answer a question; also return its words."""
    ((count, mean),) = database.rows("SELECT count(length), avg(length) FROM files")
    words = tuple(_find_word(database, word, count) for word in question.words)
    meant: set[int] = set().union(*[word.files for word in words])
    for phrase in question.phrases:
        saying = scores_of(database, phrase, composed=True).keys()
        meant = meant & saying if words else set(saying)
    meant = keep_matching(database, meant, wanted)
    total = sum(word.rarity for word in words) or 1
    scores: dict[int, int] = {}
    lengths = database.rows(f"SELECT id, length FROM files WHERE id {IN}", [listed(meant)])
    for file, length in lengths:
        weight = K1 * (1 - B + B * length / mean)
        points = matched = 0.0
        for word in words:
            if tf := word.files.get(file):
                points += word.rarity * tf * (K1 + 1) / (tf + weight)
                matched += word.rarity
        scores[file] = max(1, round(1000 * points * matched / total))
    return scores, words


def _find_word(database: Database, word: Word, count: int) -> WordMatch:
    """Find a word in a database of so many memories."""
    terms = terms_of_word(database.vocabulary, word, database.most_terms)
    forms: set[str] = set()
    files: dict[int, int] = {}
    for term, ids in database.files_of(terms):
        form, in_topics, elsewhere = split_counts(term)
        forms.add(form)
        for file in ids:
            files[file] = files.get(file, 0) + TOPIC_WEIGHT * in_topics + elsewhere
    rarity = log(1 + (count - len(files) + 0.5) / (len(files) + 0.5))
    return WordMatch(word.text, frozenset(forms), rarity, files)
