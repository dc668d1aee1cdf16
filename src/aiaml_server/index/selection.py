"""What is best: which memories belong into an answer, read from as few of them as possible.

Why this is exact: `tokens` shows that a keyword of word characters has its score in the postings,
and that any other can occur only in certain texts and only so often. `scorer` scores these,
beginning with those that can have most, until none that is left can be among the best. What is
selected so, `scorer` itself turns into hits; there is no second formula.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple, TypeAlias

from aiaml_server.format.scorer import MAX_HITS, Hit, clean, hit, score
from aiaml_server.index import tuning
from aiaml_server.index.records import Row
from aiaml_server.index.tokens import (
    Accumulator,
    Scores,
    at_least,
    drop,
    histogram,
    is_word,
    keep,
    least,
    matching,
    number_of,
    planes,
    terms_of,
)
from aiaml_server.index.tuning import SEGMENT
from aiaml_server.index.view import View

BySegment: TypeAlias = Mapping[int, Scores]


class Question(NamedTuple):
    """Keywords, cleaned and divided once.

    Attributes:
        keywords: all that a memory may hold.
        words: those of word characters alone, whose scores are in the postings.
        others: the rest, which are counted in the texts.
    """

    keywords: tuple[str, ...]
    words: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, keywords: Iterable[str]) -> Question:
        """Make a question of keywords as they are given.

        Raises:
            InvalidInput: they are too many, or too long.
        """
        able = tuple(each for each in clean(keywords) if can_occur(each))
        words = tuple(filter(is_word, able))
        others = tuple(each for each in able if not is_word(each))
        return cls(able, words, others)

    def hit(self, row: Row) -> Hit | None:
        """Make a hit of a memory; None when no keyword occurs in it."""
        return hit(row.name, row.memory_id, row.timestamp, row.searched, self.keywords)


def can_occur(text: str) -> bool:
    """Say whether a file can hold a text: none holds half of a surrogate pair."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def best(view: View, question: Question, without: AbstractSet[int] = frozenset()) -> list[int]:
    """Return the numbers of the memories that belong into the answer, in no order.

    Args:
        view: where to look.
        question: the keywords.
        without: documents that are left out.
    """
    accumulators = _accumulated(view, question.words)
    scores: BySegment = {segment: each.scores() for segment, each in accumulators.items()}
    if question.others:
        bounds = [_bounds(view, keyword) for keyword in question.others]
        scores = _counted(view, scores, bounds, question.others, without)
    some = _without([*scores.items()], without)
    scored: Iterable[int] = view.skipped
    if len(view.waiting) * tuning.DEARER > max(tuning.SCANNED, view.passed_over):
        most = _most_in_all_texts(view, question.keywords, waiting=True)
        some += _counted(view, {}, [(most, False)], question.keywords, without).items()
    else:
        scored = view.unindexed
    recent = [number for number in scored if number not in without]
    some.append((0, +Counter(dict(_in_texts(view, recent, question.keywords)))))
    return [*highest(view, some, MAX_HITS)]


def _without(
    scores: list[tuple[int, Scores]], numbers: AbstractSet[int]
) -> list[tuple[int, Scores]]:
    """Take some memories out of scores, by segment."""
    if not numbers:
        return scores
    gone: defaultdict[int, set[int]] = defaultdict(set)
    for number in numbers:
        gone[number // SEGMENT].add(number % SEGMENT)
    return [
        (segment, drop(each, gone[segment]) if segment in gone else each)
        for segment, each in scores
    ]


def every(
    view: View, question: Question, marks: bytes | None = None, most: int | None = None
) -> tuple[int, list[int]]:
    """Return in how many memories a keyword occurs, and their numbers, the best first.

    Args:
        view: where to look.
        question: the keywords.
        marks: a byte for each number, 255 where the memory is meant and 0 elsewhere; None for all.
        most: how many numbers are returned at most; None for all.
    """
    accumulators = _accumulated(view, question.words)
    candidates = {
        number
        for keyword in question.others
        for _, number in _from([*_bounds(view, keyword)[0].items()], 1)
        if marks is None or marks[number]
    }
    for number, value in _in_texts(view, sorted(candidates), question.others):
        if value:
            segment, local_id = divmod(number, SEGMENT)
            accumulators[segment].add_scores(Counter({local_id: value}))
    scores = [(segment, each.scores()) for segment, each in accumulators.items()]
    recent = view.unindexed
    if marks is not None:
        scores = [
            (segment, keep(each, marks[segment * SEGMENT : (segment + 1) * SEGMENT]))
            for segment, each in scores
        ]
        recent = [number for number in recent if marks[number]]
    scores.append((0, +Counter(dict(_in_texts(view, recent, question.keywords)))))
    top = highest(view, scores, most)
    newest = sorted(view.tie_breaks(top), key=lambda each: (top[each[2]], *each), reverse=True)
    return sum(number_of(each) for _, each in scores), [number for *_, number in newest]


def _in_texts(
    view: View, numbers: Iterable[int], keywords: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Return some memories with the scores of keywords in their texts."""
    for number, searched in view.texts(numbers):
        value = 0
        for keyword in keywords:
            value += score(searched, keyword)
        yield number, value


def _accumulated(view: View, words: Iterable[str]) -> defaultdict[int, Accumulator]:
    """Return the scores for keywords of word characters, by segment."""
    accumulators: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    wide = []
    for number, keyword in enumerate(words, 1):
        times, whole = _times(view, keyword)
        if len(times) == tuning.WIDE:
            wide.append(keyword)
            vocabulary = view.vocabulary
            times = {term: 0 for term, _ in matching(vocabulary, keyword, begins=True, ends=True)}
            whole = next(iter(times), None)
        for segment, term, totals, topics in view.postings.find(times):
            accumulators[segment].add(totals, times[term] + (term == whole))
            if topics:
                accumulators[segment].add(topics, times[term])
        if number % tuning.KEYWORDS == 0:
            for each in accumulators.values():
                each.counts()
    for segment, counted in _in_all_texts(view, wide):
        accumulators[segment].add(counted, 1)
    return accumulators


def _times(view: View, keyword: str) -> tuple[dict[int, int], int | None]:
    """Return how often a word occurs in each term that contains it, and the term that it is.

    There are `WIDE` at most, of more than which it makes no difference what they are.
    """
    part, times, whole = keyword.encode(), {}, None
    for term, text in islice(matching(view.vocabulary, keyword), tuning.WIDE):
        times[term] = text.count(part)
        if text == part:
            whole = term
    return times, whole


def _in_all_texts(
    view: View, keywords: Sequence[str], *, waiting: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Return how often keywords occur in the texts, in the topics twice, packed as postings are.

    By segment, of all memories that are indexed, or else of all that wait for it.
    """
    if not keywords:
        return
    parts = [keyword.encode() for keyword in keywords]
    first = view.first_waiting // SEGMENT * SEGMENT if waiting else 0
    values = array("I", bytes(4 * SEGMENT * -(-(view.end - first) // SEGMENT)))
    others = () if waiting else frozenset(view.unindexed)
    for number, text in view.waiting_texts() if waiting else view.encoded():
        if number not in others:
            times = 0
            for part in parts:
                times += text.count(part)
            values[number - first] = times
    for at in range(0, len(values), SEGMENT):
        yield (first + at) // SEGMENT, planes(values[at : at + SEGMENT])


def _most_in_all_texts(view: View, keywords: Sequence[str], *, waiting: bool = False) -> BySegment:
    """Return the most that keywords can score in the same texts: were each a whole word."""
    found: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    for segment, counted in _in_all_texts(view, keywords, waiting=waiting):
        found[segment].add(counted, 2)
    return {segment: each.scores() for segment, each in found.items()}


def _bounds(view: View, keyword: str) -> tuple[BySegment, bool]:
    """Return the memories in which a keyword of any other kind may occur.

    Its score is at most what is returned: it occurs not more often than the rarest of its terms.
    Say also whether counting it in the texts would tell more.
    """
    vocabulary = view.vocabulary
    parts = terms_of(keyword)
    last = len(parts) - 1
    found: BySegment | None = None
    for position, part in sorted(enumerate(parts), key=lambda each: -len(each[1])):
        first = tuning.WIDE_PHRASE if last else tuning.WIDE
        most = first if found is None else tuning.COMMON_PART + 1
        terms = matching(vocabulary, part, begins=position > 0, ends=position < last)
        times = {
            number: 1 if last else term.count(part.encode()) for number, term in islice(terms, most)
        }
        if len(times) < most:
            its = _most(view, times)
            found = its if found is None else _both(found, its)
        elif found is None:
            return _most_in_all_texts(view, [keyword]), False
        if sum(map(number_of, found.values())) <= tuning.FEW:
            break
    return found or {}, last > 0


def _most(view: View, times: Mapping[int, int]) -> BySegment:
    """Return the most that terms can score, each so many times: were all of it whole words."""
    accumulators: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    for segment, term, totals, topics in view.postings.find(times):
        accumulators[segment].add(totals, 2 * times[term])
        if topics:
            accumulators[segment].add(topics, times[term])
    return {segment: each.scores() for segment, each in accumulators.items()}


def _both(ones: BySegment, others: BySegment) -> BySegment:
    """Return the lower of two bounds for each memory."""
    return {segment: least(ones[segment], others[segment]) for segment in ones if segment in others}


def _counted(
    view: View,
    counts: BySegment,
    bounds: Sequence[tuple[BySegment, bool]],
    keywords: Sequence[str],
    without: AbstractSet[int],
) -> BySegment:
    """Return the scores of all that can be among the best, counted in their texts.

    Args:
        view: where the texts are.
        counts: the scores for all other keywords.
        bounds: the most that each of the keywords can add, and whether it is less by its count.
        keywords: what is to be counted.
        without: documents that are left out.
    """
    scored: defaultdict[int, Counter[int]] = defaultdict(Counter)
    top: list[int] = []
    sums = _without(_added_up([counts, *(most for most, _ in bounds)]), without)
    ranked, size, done = _falling(sums), tuning.FIRST, set[int]()
    many = sum(number_of(each) for _, each in sums) * tuning.DEARER > view.end
    most_scored = tuning.SCANNED if many and any(less for _, less in bounds) else math.inf
    while some := list(islice(ranked, size)):
        if len(top) == MAX_HITS and some[0][0] < top[-1]:
            break
        if len(done) + len(some) > most_scored:
            most = _added_up([counts, _most_in_all_texts(view, keywords)])
            sums = _without(most, without)
            ranked = (each for each in _falling(sums) if each[1] not in done)
            size, most_scored = tuning.FIRST, math.inf
            continue
        done.update([number for _, number in some])
        values = {number: _value(counts, number) for _, number in some}
        for number, value in _in_texts(view, sorted(values), keywords):
            values[number] += value
        for number, value in values.items():
            if value:
                scored[number // SEGMENT][number % SEGMENT] = value
        top = sorted([*top, *filter(None, values.values())], reverse=True)[:MAX_HITS]
        size *= 2
    return scored


def _value(counts: BySegment, number: int) -> int:
    segment, local_id = divmod(number, SEGMENT)
    return counts[segment][local_id] if segment in counts else 0


def _added_up(addends: Iterable[BySegment]) -> list[tuple[int, Scores]]:
    accumulators: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    for each in addends:
        for segment, scores in each.items():
            accumulators[segment].add_scores(scores)
    return [(segment, each.scores()) for segment, each in accumulators.items()]


def _falling(scores: Sequence[tuple[int, Scores]]) -> Iterator[tuple[int, int]]:
    """Return falling scores with the numbers of the memories.

    Seldom are more than `SCANNED` looked at, so only about as many are sorted at first.
    """
    lowest, found = 1, 0
    for value, number in histogram([each for _, each in scores], tuning.SCANNED):
        lowest, found = value, found + number
        if found >= tuning.SCANNED:
            break
    yield from sorted(_from(scores, lowest), reverse=True)
    yield from sorted((each for each in _from(scores, 1) if each[0] < lowest), reverse=True)


def _from(scores: Iterable[tuple[int, Scores]], lowest: int) -> Iterator[tuple[int, int]]:
    """Return the scores that are not below, with the numbers of the memories."""
    for segment, each in scores:
        for local_id, value in at_least(each, lowest):
            yield value, segment * SEGMENT + local_id


def highest(view: View, scores: Sequence[tuple[int, Scores]], most: int | None) -> dict[int, int]:
    """Return up to `most` numbers, or all, with the highest scores, and these; then the newest."""
    if most is None:
        return {number: value for value, number in _from(scores, 1)}
    room, lowest = most, 0
    for value, number in histogram([each for _, each in scores], most):
        if number >= room:
            lowest = value
            break
        room -= number
    found = list(_from(scores, max(lowest, 1)))
    top = {number: value for value, number in found if value > lowest}
    ties = {number for value, number in found if value == lowest}
    return top | dict.fromkeys(_newest(view, ties, room), lowest)


def _newest(view: View, ties: set[int], most: int) -> list[int]:
    if len(ties) > tuning.TIES:
        return list(islice((each for each in view.newest_first() if each in ties), most))
    return [number for *_, number in sorted(view.tie_breaks(ties), reverse=True)[:most]]
