"""What answers a question in a person's words best, from the postings and as few texts as possible.

Why this is exact: the points of `bm25` depend on how often terms stand in a memory, which the
postings say, in how many memories they stand, and on lengths, for which each memory has postings of
its own (see `tokens.about`). Which share of the question's rarity each memory has is added up for a
whole segment at once, a byte for each. No word adds more than its rarity times K1 + 1, so a score
takes a certain share: scored are the memories with the highest shares, and then others as long as
theirs can bring them among the best (after MaxScore: Turtle and Flood, "Query Evaluation:
Strategies and Optimizations", 1995). What is ranked so, `bm25` itself scores.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from math import ceil, sqrt
from typing import NamedTuple, TypeAlias

from aiaml_server.format import bm25
from aiaml_server.format.bm25 import CONTENT, K1, NAME, Collection, Counts, Question
from aiaml_server.format.scorer import Hit
from aiaml_server.index import selection
from aiaml_server.index.records import Row
from aiaml_server.index.selection import BySegment
from aiaml_server.index.tokens import (
    LENGTH,
    Scores,
    added_up,
    at_least,
    histogram,
    keep,
    matching,
    name_of,
    number_of,
    present,
)
from aiaml_server.index.tuning import SEGMENT
from aiaml_server.index.view import View


class Ranked(NamedTuple):
    """The memories that answer a question.

    Attributes:
        total: how many there are.
        scores: of those that were wanted, by their numbers, the best first.
        question: what was looked for, and where.
        collection: what their scores depend on.
        apart: where no memory says the phrases, how many hold all of the words.
        words: of the same memories, the words of the question that each has.
    """

    total: int
    scores: dict[int, int]
    question: Question
    collection: Collection
    apart: int
    words: dict[int, tuple[str, ...]]

    def hit(self, row: Row) -> Hit:
        """Make a hit of a memory."""
        number = row.id
        return Hit(row.name, row.memory_id, row.timestamp, self.scores[number], self.words[number])


class _Times(NamedTuple):
    """How often a word stands in memories, in the topics twice; and how often in the names."""

    all: BySegment
    names: BySegment

    def of(self, number: int) -> int:
        """Return how often it stands in one memory."""
        segment, local_id = divmod(number, SEGMENT)
        return self.all[segment][local_id] if segment in self.all else 0


Texts: TypeAlias = Mapping[int, tuple[int, Counts]]
"""Of memories without postings, the length and how often each word of the question stands there."""


def ranked(view: View, question: Question, marks: bytes | None, most: int | None) -> Ranked:
    """Return the memories that answer a question best.

    Args:
        view: where to look.
        question: what is asked.
        marks: a byte for each number, 255 where the memory is meant and 0 elsewhere; None for all.
        most: how many numbers are returned at most; None for all.
    """
    asked, found, texts = _found(view, question)
    levels = _added_up(view, dict(view.equal(LENGTH)))
    collection = _collection(found, levels, texts)
    if question.phrases:
        marks = _saying(view, question, marks)
    if not question.words:
        scores = {number: 1 for number, mark in enumerate(marks or b"") if mark}
        best = _newest(view, scores, most)
        return Ranked(len(scores), best, asked, collection, 0, dict.fromkeys(best, ()))
    meant = [_Times(_kept(each.all, marks), each.names) for each in found]
    recent = {number: each for number, each in texts.items() if marks is None or marks[number]}
    shares = _Shares(collection, meant)
    total = shares.total + sum(any(counts) for _, counts in recent.values())
    best = _newest(view, _best(shares, levels, recent, most), most)
    words = {
        number: tuple(
            word.text
            for position, word in enumerate(asked.words)
            if (recent[number][1][position] if number in recent else meant[position].of(number))
        )
        for number in best
    }
    apart = 0
    if question.phrases and not total:
        holding = [_holding(each, texts, number) for number, each in enumerate(found)]
        apart = len(holding[0].intersection(*holding))
    return Ranked(total, best, asked, collection, apart, words)


def rarest(view: View, question: Question, room: int) -> Question:
    """Return a question with the rarest of its words, two at least, as many as there is room for.

    Args:
        view: where it is to be asked.
        question: what is asked.
        room: in how many places the words stand together, as one segment lets expect.
    """
    segments = view.end // SEGMENT + 1
    if segments * SEGMENT * len(question.words) <= room:
        return question
    terms = [_terms(view, question, number) for number in range(len(question.words))]
    some = view.postings.some({*chain.from_iterable(terms)})
    sizes = {term: min(len(totals) // 2, SEGMENT) for _, term, totals, _ in some}
    places = [segments * sum([sizes.get(term, 0) for term in each]) for each in terms]
    kept: list[int] = []
    for number in sorted(range(len(places)), key=places.__getitem__):
        room -= places[number]
        if room >= 0 or len(kept) < 2:
            kept.append(number)
    words = [(question.words[each], question.inside[each]) for each in sorted(kept)]
    return question._replace(
        words=tuple(word for word, _ in words), inside=tuple(inside for _, inside in words)
    )


def answering(view: View, question: Question) -> set[int]:
    """Return all memories that answer a question, as `ranked` finds them, in no order."""
    _, found, texts = _found(view, question)
    holding = [_holding(each, texts, number) for number, each in enumerate(found)]
    if not question.phrases:
        return set().union(*holding)
    saying = {number for number, mark in enumerate(_saying(view, question, None)) if mark}
    return saying.intersection(set().union(*holding)) if question.words else saying


def _found(view: View, question: Question) -> tuple[Question, list[_Times], Texts]:
    """Look the words of a question up; also inside of others, where no memory has them."""
    numbers = range(len(question.words))
    within = question.with_fragments(numbers)
    texts: dict[int, tuple[int, Counts]] = {}
    inside: dict[int, Counts] = {}
    for number, searched in view.texts(view.unindexed):
        texts[number] = bm25.length(searched), question.counts(searched)
        inside[number] = within.counts(searched)
    found = [_times(view, question, each) for each in numbers]
    held = [any(counts[each] for _, counts in texts.values()) for each in numbers]
    unknown = {each for each in numbers if not (found[each].all or held[each])}
    asked = question.with_fragments(unknown)
    for each in unknown:
        if asked.inside[each]:
            found[each] = _times(view, asked, each)
    for number, (level, counts) in texts.items() if unknown else ():
        both = (inside[number], counts)
        texts[number] = level, tuple(both[each not in unknown][each] for each in numbers)
    return asked, found, texts


# --- reading the postings -------------------------------------------------------------------------


def _terms(view: View, question: Question, number: int) -> dict[int, bytes]:
    """Return the terms that are a word of the question, or a form of it, by their numbers."""
    word = question.words[number]
    if question.inside[number]:
        return dict(matching(view.vocabulary, word.text))
    terms: dict[int, bytes] = {}
    if word.bends:
        starting = view.beginning(word.start)
        terms.update((term, text) for term, text in starting if word.is_form(text.decode()))
    for other in word.others:
        if not (word.bends and other.startswith(word.start)):
            terms.update(view.equal(other.encode()))
    return terms


def _times(view: View, question: Question, number: int) -> _Times:
    """Return where a word of the question stands, and how often."""
    terms = _terms(view, question, number)
    names = [each for text in terms.values() for each, _ in view.equal(name_of(text))]
    return _Times(_added_up(view, terms), _added_up(view, names))


def _added_up(view: View, terms: Iterable[int]) -> BySegment:
    """Return how often terms stand in memories, those of the topics once more."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    for segment, _, totals, topics in view.postings.find(set(terms)):
        found[segment] += [totals, topics] if topics else [totals]
    return {segment: added_up(each) for segment, each in found.items()}


def _kept(scores: BySegment, marks: bytes | None) -> BySegment:
    """Return the scores of those that are meant."""
    if marks is None:
        return scores
    whole = marks.ljust(-(-len(marks) // SEGMENT) * SEGMENT, b"\0")
    parts = {each: whole[each * SEGMENT : (each + 1) * SEGMENT] for each in scores}
    return {segment: keep(each, parts[segment]) for segment, each in scores.items()}


def _saying(view: View, question: Question, marks: bytes | None) -> bytes:
    """Return the marks of those memories, of the ones that are meant, that say all phrases."""
    for phrase in question.phrases:
        _, numbers = selection.every(view, selection.Question.of([phrase]), marks)
        marked = bytearray(view.end)
        for number in numbers:
            marked[number] = 255
        marks = bytes(marked)
    return marks or b""


def _holding(times: _Times, texts: Texts, number: int) -> set[int]:
    """Return the memories that have a word."""
    holding = {each for each, (_, counts) in texts.items() if counts[number]}
    for segment, scores in times.all.items():
        first = segment * SEGMENT
        holding.update([first + local_id for local_id, _ in at_least(scores, 1)])
    return holding


def _collection(found: Iterable[_Times], levels: BySegment, texts: Texts) -> Collection:
    """Return what is known of all memories."""
    memories, total = len(texts), sum(level for level, _ in texts.values())
    for scores in levels.values():
        memories += number_of(scores)
        total += sum(scores.values() if isinstance(scores, Counter) else scores)
    holding = tuple(
        sum(map(number_of, each.all.values())) + sum(bool(its[number]) for _, its in texts.values())
        for number, each in enumerate(found)
    )
    return Collection(memories, round(total / memories) if memories else 0, holding)


# --- the best -------------------------------------------------------------------------------------


class _Shares:
    """The share of the question that each memory has: a byte for each, by segment, rounded up.

    Attributes:
        total: how many memories have any word.
    """

    def __init__(self, collection: Collection, found: list[_Times]) -> None:
        self.collection = collection
        self.found = found
        self.rarities = [collection.rarity(number) for number in range(len(found))]
        held = [rarity for rarity, times in zip(self.rarities, found, strict=True) if times.all]
        self._scale = (255 - len(held)) / max(sum(held), 1)  # so that all together are below 256
        sums: defaultdict[int, int] = defaultdict(int)
        for rarity, times in zip(self.rarities, found, strict=True):
            share = max(ceil(rarity * self._scale), 1)
            for segment, scores in times.all.items():
                sums[segment] += share * int.from_bytes(present(scores), "little")
        self._planes = {each: its.to_bytes(SEGMENT, "little") for each, its in sums.items()}
        self.total = sum([SEGMENT - plane.count(0) for plane in self._planes.values()])

    def highest(self, most: int) -> int:
        """Return the share that so many memories have at least; 1 where there are fewer."""
        counted = 0
        for share, number in histogram([*self._planes.values()], most):
            counted += number
            if counted >= most:
                return share
        return 1

    def of_score(self, score: int) -> int:
        """Return the least share with which a memory can have a score.

        Each word adds less than its rarity times K1 + 1, and half for rounding. So at least is
        matched x (matched x (K1 + 1) + words) >= score x whole, solved for what is matched.
        """
        if score <= 1:  # which is also that of less
            return 1
        words, twice = len(self.found), 2 * (K1 + 1)
        whole = max(sum(self.rarities), 1)
        matched = (sqrt(words**2 + 2 * twice * score * whole) - words) / twice
        return max(int((matched - 1) * self._scale), 1)

    def between(self, least: int, end: int) -> dict[int, list[int]]:
        """Return the local ids that have such a share, or more below an end, by segment."""
        wanted = re.compile(b"[\\x%02x-\\x%02x]" % (least, end - 1))
        return {
            segment: [found.start() for found in wanted.finditer(plane)]
            for segment, plane in self._planes.items()
        }


_MORE = 16
"""How many times as many are scored in each step: 4 makes more steps, 64 scores too many."""


def _best(shares: _Shares, levels: BySegment, texts: Texts, most: int | None) -> dict[int, int]:
    """Return the scores of memories, of the `most` best at least; of all where it is None.

    Those with the highest shares are scored first, then more and more. What these have says which
    share is too little.
    """
    scores = _scores_of_texts(shares, texts)
    wanted, end, lowest = most, 256, 0
    while (enough := shares.of_score(lowest)) < end:
        least = min(max(shares.highest(wanted), enough), end - 1) if wanted else 1
        scores.update(_scores(shares, levels, shares.between(least, end)))
        if most and len(scores) >= most:
            lowest = sorted(scores.values())[-most]
        end = least
        wanted = most and max(len(scores), most) * _MORE
    return {number: each for number, each in scores.items() if each >= lowest}


def _scores(
    shares: _Shares, levels: BySegment, candidates: Mapping[int, list[int]]
) -> dict[int, int]:
    """Return the scores of memories, which are given by segment and local id."""
    whole = max(sum(shares.rarities), 1)
    rows = {segment: dict.fromkeys(ids, 0) for segment, ids in candidates.items()}
    for word, times in enumerate(shares.found):
        points = _Points(shares.collection, word, levels)
        for segment, its in times.all.items():
            count = its.get if isinstance(its, Counter) else its.__getitem__
            some = [(each, number) for each in candidates[segment] if (number := count(each))]
            points.add(rows[segment], segment, some, times.names.get(segment))
    return {
        segment * SEGMENT + local_id: max(1, _scored(each, whole))
        for segment, row in rows.items()
        for local_id, each in row.items()
    }


def _scores_of_texts(shares: _Shares, texts: Texts) -> dict[int, int]:
    """Return the scores of the memories without postings that have a word."""
    collection, rarities = shares.collection, shares.rarities
    whole = max(sum(rarities), 1)
    scores = {}
    for number, (level, counts) in texts.items():
        if held := [word for word, quarters in enumerate(counts) if quarters]:
            points = sum([collection.points(word, counts[word], level) for word in held])
            scores[number] = max(1, points * sum([rarities[word] for word in held]) // whole)
    return scores


class _Points(dict[int, int]):
    """What a word adds to a memory, by how often it stands there and the length, as one number."""

    def __init__(self, collection: Collection, word: int, levels: BySegment) -> None:
        super().__init__()
        self._collection = collection
        self._word = word
        self._levels = levels
        self._matched = collection.rarity(word) << _POINTS

    def __missing__(self, key: int) -> int:
        self[key] = self._matched + self._collection.points(self._word, key >> 8, key & 0xFF)
        return self[key]

    def add(
        self,
        row: dict[int, int],
        segment: int,
        times: Iterable[tuple[int, int]],
        names: Scores | None,
    ) -> None:
        """Add to the sums of a segment's memories where the word stands so many times in all."""
        levels = self._levels[segment]
        if names is None:
            for local_id, count in times:
                row[local_id] += self[CONTENT * count << 8 | levels[local_id]]
        else:
            for local_id, count in times:
                quarters = CONTENT * count - (CONTENT - NAME) * names[local_id]
                row[local_id] += self[quarters << 8 | levels[local_id]]


_POINTS = 40  # bits
_LOW = (1 << _POINTS) - 1


def _scored(both: int, whole: int) -> int:
    """Return the score of points with the rarity of the words above them, as one number."""
    return (both & _LOW) * (both >> _POINTS) // whole


def _newest(view: View, scores: Mapping[int, int], most: int | None) -> dict[int, int]:
    """Return scores by numbers, the highest first, then the newest."""
    by_segment: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for number, value in scores.items():
        by_segment[number // SEGMENT][number % SEGMENT] = value
    top = selection.highest(view, [*by_segment.items()], most)
    ages = sorted(view.tie_breaks(top), key=lambda each: (top[each[2]], *each), reverse=True)
    return {number: top[number] for *_, number in ages}
