"""How well a memory answers a question in a person's words: BM25, with the share that matches.

For each word of the question that is no common one,

    points = 1000 x rarity x tf x (K1 + 1) / (tf + K1 x (1 - B + B x length))

where `tf` is how often the word or a form of it stands in the memory, twice as much in the topics
and three quarters in the names (user and agent); `length` is the memory's in relation to the usual
one; and `rarity` is ln(1 + (N - n + 0.5) / (n + 0.5)), with the word in n of N memories. A memory's
score is the sum of the points times the share of the question's rarity that its words have.

K1 and B are those of Trotman, Puurula and Burgess, "Improvements to BM25 and Language Models
Examined" (ADCS 2014), which Anserini takes for short texts; the rarity is Lucene's, which is never
negative; the share is Lucene's former "coord", by rarity instead of by number. A topic counts as in
`think`. All is rounded so that the order of adding makes no difference: the same on any machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import log, log2
from typing import NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.format.languages import Language, Word, common, language_of
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import FIELDS, MAX_QUESTION, Fields, Found, Hit, fields, ordered

K1, B = 0.9, 0.4
TOPIC, CONTENT, NAME = 8, 4, 3  # quarters of an occurrence
WEIGHTS = (TOPIC, CONTENT, NAME, NAME)  # in the order of `Fields`
MOST_WORDS = 64  # that are looked for, of a question with more
FRAGMENT = 4  # letters of a word that is also looked for inside others, where none is equal to it
_STEPS = 8  # of a length, from one to the double

_WORD = re.compile(r"\w+")
_ENDED = re.compile(r"[.!?:\n]\W*$")

Counts = tuple[int, ...]
"""How often each word of a question stands in a memory, in quarters."""


class Question(NamedTuple):
    """What is asked in a person's words.

    Attributes:
        words: what is looked for.
        inside: for each of them, whether it is looked for inside of words.
        phrases: what must stand so, in lower case.
    """

    words: tuple[Word, ...]
    inside: tuple[bool, ...]
    phrases: tuple[str, ...]

    @classmethod
    def of(cls, said: Iterable[str]) -> Question:
        """Understand a question, divided at its blanks; what has some inside is a phrase.

        Common words are left out, unless there are no others. A word that begins with a capital
        inside of a sentence is a name and has no forms, except in German.

        Raises:
            InvalidInput: there is nothing to look for, or too much.
        """
        said = [each.strip() for each in said if each.strip()]
        if sum(map(len, said)) > MAX_QUESTION:
            raise InvalidInput("question", f"must have at most {MAX_QUESTION:,} characters")
        phrases = [each.lower() for each in said if len(each.split()) > 1]
        spelled = _spelled(" ".join(said))
        if not spelled:  # signs alone
            phrases = [each.lower() for each in said]
            if not phrases:
                raise InvalidInput("question", "must be words to look for")
        language = language_of(spelled)
        telling = [each for each in spelled if each not in common(language)]
        bending = Language(language)
        words: list[Word] = []
        for each in (telling or [*spelled])[:MOST_WORDS]:
            if not any(word.is_form(each) for word in words):
                bends = spelled[each] or language == "german"
                words.append(Word(each, bending if bends else None))
        inside = tuple(_is_unspaced(each.text) for each in words)
        return cls(tuple(words), inside, tuple(dict.fromkeys(phrases)))

    def with_fragments(self, numbers: Iterable[int]) -> Question:
        """Return the question that looks for some words, by number, inside of others as well.

        They are those that no memory has as a word.
        """
        wanted = {each for each in numbers if len(self.words[each].text) >= FRAGMENT}
        inside = [each or number in wanted for number, each in enumerate(self.inside)]
        return self._replace(inside=tuple(inside))

    def holds(self, number: int, term: str) -> bool:
        """Say whether a term is, or contains, a word of the question."""
        word = self.words[number]
        return word.text in term if self.inside[number] else word.is_form(term)

    def says(self, searched: Fields) -> bool:
        """Say whether all phrases stand so in a memory."""
        return all(any(each in text for _, text in searched) for each in self.phrases)

    def terms(self, text: str) -> list[tuple[str, int]]:
        """Return the terms of a lower-cased text that the question asks for, and of which word."""
        found = []
        for number, word in enumerate(self.words):
            if self.inside[number]:
                parts, before = [word.text], r"\w*"
            else:
                parts, before = sorted({word.start, *word.others}), ""
            there = "|".join([re.escape(each) for each in parts if each in text])
            if there:
                terms = re.findall(rf"(?<!\w){before}(?:{there})\w*", text)
                found += [(each, number) for each in terms if self.holds(number, each)]
        return found

    def counts(self, searched: Fields) -> Counts:
        """Count the question's words in a memory."""
        counted = [0] * len(self.words)
        for weight, (_, text) in zip(WEIGHTS, searched, strict=True):
            for _, number in self.terms(text):
                counted[number] += weight
        return tuple(counted)


def _is_unspaced(word: str) -> bool:
    """Say whether it is written without spaces: then words stand inside runs of letters."""
    return not word.isascii() and bool(  # compiled where one is asked for: 3 ms
        re.search(
            r"[\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf"
            r"\u4e00-\u9fff\uf900-\ufaff]",
            word,
        )
    )


def _spelled(text: str) -> dict[str, bool]:
    """Return the words of a question in lower case, and whether they can be other than names."""
    spelled: dict[str, bool] = {}
    for found in _WORD.finditer(text):
        begins = found.start() == 0 or _ENDED.search(text[: found.start()][-8:]) is not None
        plain = begins or not found[0][:1].isupper()
        lower = found[0].lower()
        spelled[lower] = spelled.get(lower, False) or plain
    return spelled


def length(searched: Fields) -> int:
    """Return a memory's length on a scale of eight steps from one to the double, below 200."""
    return round(_STEPS * log2(1 + sum(len(text) for _, text in searched)))


class Answer(NamedTuple):
    """What was found for a question.

    Attributes:
        found: the part of the hits that was asked for, and how many there are.
        question: what was looked for, and where.
        collection: what the scores depend on beside the memories that have them.
        apart: where no memory says the phrases, how many hold all of the words.
    """

    found: Found
    question: Question
    collection: Collection
    apart: int = 0


class Collection(NamedTuple):
    """What the points depend on beside the memory: all others.

    Attributes:
        memories: how many there are.
        usual: the mean of their levels, rounded.
        holding: of each word of the question, how many have it.
    """

    memories: int
    usual: int
    holding: tuple[int, ...]

    def rarity(self, number: int) -> int:
        """Return the rarity of a word, in thousandths."""
        holding = self.holding[number]
        return round(1000 * log(1 + (self.memories - holding + 0.5) / (holding + 0.5)))

    def points(self, number: int, quarters: int, level: int) -> int:
        """Return what a word adds to a memory's score before the share is taken.

        Args:
            number: the word's in the question.
            quarters: how often it stands there, times four.
            level: the memory's length.
        """
        relative = 2 ** ((level - self.usual) / _STEPS)
        saturated = quarters * (K1 + 1) / (quarters + 4 * K1 * (1 - B + B * relative))
        return round(self.rarity(number) * saturated)

    def score(self, counts: Counts, level: int) -> int:
        """Return a memory's score: 1 at least where it holds a word, or only phrases were asked."""
        total = sum(map(self.rarity, range(len(counts))))
        points = matched = 0
        for number, quarters in enumerate(counts):
            if quarters:
                points += self.points(number, quarters, level)
                matched += self.rarity(number)
        return max(points * matched // max(total, 1), int(any(counts) or not counts))


def collected(question: Question, memories: Iterable[Fields]) -> tuple[Question, Collection]:
    """Look through all memories: return what is known of them, and where words are looked for."""
    levels: list[int] = []
    held = [Counter[int](), Counter[int]()]  # as words, and inside of words
    within = question.with_fragments(range(len(question.words)))
    for searched in memories:
        levels.append(length(searched))
        for counted, asked in zip(held, (question, within), strict=True):
            counted.update(number for number, each in enumerate(asked.counts(searched)) if each)
    numbers = range(len(question.words))
    asked = question.with_fragments(each for each in numbers if not held[0][each])
    holding = tuple(held[asked.inside[each]][each] for each in numbers)
    usual = round(sum(levels) / len(levels)) if levels else 0
    return asked, Collection(len(levels), usual, holding)


def hit(
    question: Question, collection: Collection, searched: Fields, named: tuple[str, str, str]
) -> Hit | None:
    """Return the hit of a memory; None where it holds no word, or not all phrases.

    It is `named` by its file's name, its id and its timestamp.
    """
    counts = question.counts(searched)
    if not (any(counts) or not counts) or not question.says(searched):
        return None
    words = [word.text for word, quarters in zip(question.words, counts, strict=True) if quarters]
    return Hit(*named, collection.score(counts, length(searched)), tuple(words))


class Part(NamedTuple):
    """What a word of the question adds to a memory's score.

    Attributes:
        word: as it is asked for.
        forms: those that stand in the memory.
        fields: how often they stand in each field that has any.
        memories: in how many memories they stand.
        points: what is added, before the share of the question is taken.
    """

    word: str
    forms: tuple[str, ...]
    fields: dict[str, int]
    memories: int
    points: int


def explained(answer: Answer, memory: Memory) -> list[Part]:
    """Return of what a memory's score is the sum."""
    searched = fields(memory)
    counts = answer.question.counts(searched)
    forms: list[dict[str, None]] = [{} for _ in counts]
    times: list[Counter[str]] = [Counter() for _ in counts]
    for field, (_, text) in zip(FIELDS, searched, strict=True):
        for term, number in answer.question.terms(text):
            forms[number][term] = None
            times[number][field] += 1
    return [
        Part(
            answer.question.words[number].text,
            tuple(forms[number]),
            dict(times[number]),
            answer.collection.holding[number],
            answer.collection.points(number, quarters, length(searched)),
        )
        for number, quarters in enumerate(counts)
        if quarters
    ]


def rank(
    pairs: Sequence[tuple[str, Memory]],
    question: Question,
    meant: Callable[[Memory], bool] = lambda _: True,
) -> Answer:
    """Answer a question literally, from all (file name, memory) pairs: what the index is judged by.

    By score, then newest first, then by file name from the end of the alphabet.
    """
    asked, collection = collected(question, (fields(memory) for _, memory in pairs))
    wanted = [(name, each) for name, each in pairs if meant(each)]
    hits = [
        hit(asked, collection, fields(each), (name, each.id, each.timestamp))
        for name, each in wanted
    ]
    found = ordered(filter(None, hits))
    apart = 0
    if asked.phrases and not found:
        apart = sum(all(counts) for counts in (asked.counts(fields(each)) for _, each in wanted))
    return Answer(Found(len(found), found), asked, collection, apart if asked.words else 0)
