"""What answers a question in a person's words best, from the postings and as few texts as possible.

Why this is exact: the points of `bm25` depend on how often terms stand in a memory, which the
postings say, in how many memories they stand, and on lengths, for which each memory has postings of
its own (see `tokens.about`). The rarest words are looked at first; once what is left of the
question cannot bring a memory among the best, no others are added (MaxScore: Turtle and Flood,
"Query Evaluation: Strategies and Optimizations", 1995). What is ranked so, `bm25` itself scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeAlias

from aiaml_server.format import bm25
from aiaml_server.format.bm25 import CONTENT, K1, NAME, Collection, Counts, Question
from aiaml_server.format.scorer import Hit
from aiaml_server.index import selection
from aiaml_server.index.records import Row
from aiaml_server.index.selection import BySegment
from aiaml_server.index.tokens import (
    LENGTH,
    Accumulator,
    Scores,
    at_least,
    keep,
    matching,
    name_of,
    number_of,
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
    levels = _added_up(view, _known(view, LENGTH))
    collection = _collection(found, levels, texts)
    if question.phrases:
        marks = _saying(view, question, marks)
    if not question.words:
        scores = {number: 1 for number, mark in enumerate(marks or b"") if mark}
        best = _newest(view, scores, most)
        return Ranked(len(scores), best, asked, collection, 0, dict.fromkeys(best, ()))
    meant = [_Times(_kept(each.all, marks), each.names) for each in found]
    recent = {number: each for number, each in texts.items() if marks is None or marks[number]}
    total = _number_of_any(meant) + sum(any(counts) for _, counts in recent.values())
    best = _newest(view, _best(collection, meant, levels, recent, most), most)
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
    places = []
    for number in range(len(question.words)):
        packed = [totals for _, _, totals, _ in view.some_postings(_terms(view, question, number))]
        places.append(segments * sum([min(len(each) // 2, SEGMENT) for each in packed]))
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
    vocabulary = view.vocabulary
    word = question.words[number]
    if question.inside[number]:
        return dict(matching(vocabulary, word.text))
    terms: dict[int, bytes] = {}
    if word.bends:
        starting = matching(vocabulary, word.start, begins=True)
        terms.update((term, text) for term, text in starting if word.is_form(text.decode()))
    for other in word.others:
        if not (word.bends and other.startswith(word.start)):
            terms.update(matching(vocabulary, other, begins=True, ends=True))
    return terms


def _times(view: View, question: Question, number: int) -> _Times:
    """Return where a word of the question stands, and how often."""
    terms = _terms(view, question, number)
    names = [each for text in terms.values() for each in _known(view, name_of(text))]
    return _Times(_added_up(view, terms), _added_up(view, names))


def _known(view: View, term: bytes) -> list[int]:
    """Return the number of a term that is no text; none where no memory has it."""
    vocabulary = view.vocabulary
    return [number for number, text in matching(vocabulary, term) if text == term]


def _added_up(view: View, terms: Iterable[int]) -> BySegment:
    """Return how often terms stand in memories, those of the topics once more."""
    sums: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    for segment, _, totals, topics in view.postings(set(terms)):
        sums[segment].add(totals, 1)
        if topics:
            sums[segment].add(topics, 1)
    return {segment: each.scores() for segment, each in sums.items()}


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


def _number_of_any(found: Iterable[_Times]) -> int:
    """Return how many memories have any of some words."""
    few: defaultdict[int, set[int]] = defaultdict(set)
    many: defaultdict[int, int] = defaultdict(int)
    for each in found:
        for segment, scores in each.all.items():
            if isinstance(scores, Counter):
                few[segment].update(scores)
            else:
                many[segment] |= int.from_bytes(scores, "little")
    total = 0
    for segment in {*few, *many}:
        plane = many[segment].to_bytes(SEGMENT, "little")
        total += SEGMENT - plane.count(0)
        total += sum([not plane[local_id] for local_id in few[segment]])
    return total


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


def _best(
    collection: Collection,
    found: list[_Times],
    levels: BySegment,
    texts: Texts,
    most: int | None,
) -> dict[int, int]:
    """Return the scores of memories, of the `most` best at least; of all where it is None."""
    rarities = [collection.rarity(number) for number in range(len(found))]
    whole = rest = max(sum(rarities), 1)
    # Of each memory its points and, above them, the rarity of its words.
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0] * SEGMENT)
    candidates: dict[int, list[int]] | None = None  # by segment, once there will be no others
    for word in sorted(range(len(found)), key=rarities.__getitem__, reverse=True):
        if candidates is None and most and 4 * rest < whole:  # before, it hardly ever pays
            candidates = _closed(sums, rest, whole, len(found), most)
        points = _Points(collection, word, levels)
        for segment, times in found[word].all.items():
            if candidates is None:
                its = times.items() if isinstance(times, Counter) else at_least(times, 1)
            else:
                some = candidates.get(segment, ())
                its = iter([(each, times[each]) for each in some if times[each]])
            points.add(sums[segment], segment, its, found[word].names.get(segment))
        rest -= rarities[word]
    for number, (level, counts) in texts.items():
        held = [word for word, quarters in enumerate(counts) if quarters]
        if held and candidates is not None:
            candidates.setdefault(number // SEGMENT, []).append(number % SEGMENT)
        for word in held:
            summed = collection.points(word, counts[word], level) + (rarities[word] << _POINTS)
            sums[number // SEGMENT][number % SEGMENT] += summed
    scores: dict[int, int] = {}
    for segment, row in sums.items():
        ids = candidates.get(segment, ()) if candidates else range(SEGMENT)
        numbers = [segment * SEGMENT + each for each in ids if row[each]]
        its_scores = _scored([row[each] for each in ids], whole)
        scores.update(zip(numbers, its_scores, strict=True))
    lowest = _lowest(list(scores.values()), most)
    return {number: max(1, each) for number, each in scores.items() if each >= lowest}


def _closed(
    sums: Mapping[int, list[int]], rest: int, whole: int, words: int, most: int
) -> dict[int, list[int]] | None:
    """Return which memories can still be among the best; None while others can be as well.

    Args:
        sums: of each memory that has a word, by segment.
        rest: the rarity of the words to come.
        whole: the rarity of all words, of which there are `words`.
        words: see there.
        most: how many the best are.
    """
    lowest = _lowest(_scored(chain.from_iterable(sums.values()), whole), most)
    more = int(rest * (K1 + 1)) + words + (rest << _POINTS)
    if _scored([more], whole)[0] >= lowest:
        return None
    candidates = {}
    for segment, row in sums.items():
        ids = [local_id for local_id, each in enumerate(row) if each]
        able = zip(ids, _scored([row[each] + more for each in ids], whole), strict=True)
        candidates[segment] = [each for each, score in able if score >= lowest]
    return candidates


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
        row: list[int],
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


def _scored(sums: Iterable[int], whole: int) -> list[int]:
    """Return the scores of points with the rarity of the words above them; none of what is 0.

    Args:
        sums: of each memory, both as one number.
        whole: the rarity of all words of the question.
    """
    low = (1 << _POINTS) - 1
    return [(each & low) * (each >> _POINTS) // whole for each in sums if each]


def _lowest(scores: list[int], most: int | None) -> int:
    """Return the lowest of the `most` highest scores; 0 where there are no more, or all count."""
    return sorted(scores)[-most] if most and len(scores) >= most else 0


def _newest(view: View, scores: Mapping[int, int], most: int | None) -> dict[int, int]:
    """Return scores by numbers, the highest first, then the newest."""
    by_segment: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for number, value in scores.items():
        by_segment[number // SEGMENT][number % SEGMENT] = value
    top = selection.highest(view, [*by_segment.items()], most)
    ages = sorted(view.tie_breaks(top), key=lambda each: (top[each[2]], *each), reverse=True)
    return {number: top[number] for *_, number in ages}
