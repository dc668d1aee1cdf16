"""What is best: which memories belong into an answer, read from as few of them as possible.

Why this is exact: `tokens` shows that a keyword of word characters has its score in the postings,
and that any other can occur only in certain texts and only so often. `scorer` scores these,
beginning with those that can have most, until none that is left can be among the best. What is
selected so, `scorer` itself turns into hits; there is no second formula.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from . import tuning
from .database import Database, Row
from .scorer import MAX_HITS, Hit, clean, hit, score
from .tokens import Accumulator, Scores, at_least, histogram, is_word, matching, terms_of
from .tuning import SEGMENT

Counts: TypeAlias = Mapping[int, Counter[int]]  # by segment and local id


@dataclass(frozen=True)
class Question:
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


def best(database: Database, question: Question) -> list[int]:
    """Return the numbers of the memories that belong into the answer, in no order."""
    accumulators = _accumulated(database, question.words)
    scores: list[tuple[int, Scores]]
    if question.others:
        bounds = [_bounds(database, keyword) for keyword in question.others]
        counts = {segment: each.counts() for segment, each in accumulators.items()}
        scores = [*_counted(database, counts, bounds, question.others).items()]
    else:
        scores = [(segment, each.scores()) for segment, each in accumulators.items()]
    unindexed = _in_texts(database, database.unindexed(), question.keywords)
    return _top(database, [*scores, (0, +Counter(dict(unindexed)))])


def every(
    database: Database, question: Question, among: AbstractSet[int] | None = None
) -> dict[int, int]:
    """Return the scores of all memories in which a keyword occurs, by their numbers.

    Args:
        database: where to look.
        question: the keywords.
        among: the numbers of the memories that are meant; None for all.
    """
    found: Counter[int] = Counter()
    for segment, each in _accumulated(database, question.words).items():
        first = segment * SEGMENT
        found.update({first + local_id: value for local_id, value in each.counts().items()})
    candidates = {
        segment * SEGMENT + local_id
        for keyword in question.others
        for segment, bound in _bounds(database, keyword).items()
        for local_id in bound
    }
    if among is not None:
        candidates &= among
    found.update(dict(_in_texts(database, sorted(candidates), question.others)))
    found.update(dict(_in_texts(database, database.unindexed(), question.keywords)))
    return {
        number: value
        for number, value in found.items()
        if value and (among is None or number in among)
    }


def _in_texts(
    database: Database, numbers: Iterable[int], keywords: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Return some memories with the scores of keywords in their texts."""
    for number, searched in database.texts(numbers):
        value = 0
        for keyword in keywords:
            value += score(searched, keyword)
        yield number, value


def _accumulated(database: Database, words: Iterable[str]) -> dict[int, Accumulator]:
    """Return the scores for keywords of word characters, by segment."""
    accumulators: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    wide = []
    for number, keyword in enumerate(words, 1):
        times, whole = _times(database, keyword)
        if len(times) >= tuning.WIDE:
            wide.append(keyword.encode())
            times = {} if whole is None else {whole: 0}
        for segment, term, totals, topics in database.postings.find(times):
            accumulators[segment].add(totals, times[term] + (term == whole))
            if topics:
                accumulators[segment].add(topics, times[term])
        if number % tuning.KEYWORDS == 0:
            for each in accumulators.values():
                each.counts()
    for segment, counted in _in_all_texts(database, wide).items():
        accumulators[segment].add_counts(counted)
    return accumulators


def _times(database: Database, keyword: str) -> tuple[dict[int, int], int | None]:
    """Return how often a word occurs in each term that contains it, and the term that it is."""
    part, times, whole = keyword.encode(), {}, None
    for term, text in matching(database.postings.vocabulary(), keyword):
        times[term] = text.count(part)
        if text == part:
            whole = term
    return times, whole


def _in_all_texts(database: Database, parts: Sequence[bytes]) -> Counts:
    """Return the scores of some words in all indexed texts, but for whole words."""
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for number, head, topics, content in database.encoded() if parts else ():
        value = 0
        for part in parts:
            value += content.count(part)
            if few := head.count(part):
                value += few + head.count(part, 0, topics)
        if value:
            found[number // SEGMENT][number % SEGMENT] = value
    return found


def _most_in_all_texts(database: Database, keywords: Sequence[str]) -> Counts:
    """Return the most that keywords can score in all indexed texts: were each a whole word."""
    found: defaultdict[int, Counter[int]] = defaultdict(Counter)
    parts = [keyword.encode() for keyword in keywords]
    for number, head, _, content in database.encoded():
        value = 0
        for part in parts:
            value += 2 * content.count(part) + 3 * head.count(part)
        if value:
            found[number // SEGMENT][number % SEGMENT] = value
    return found


def _bounds(database: Database, keyword: str) -> Counts:
    """Return the memories in which a keyword of any other kind may occur.

    Its score is at most what is returned: it occurs not more often than the rarest of its terms.
    """
    vocabulary = database.postings.vocabulary()
    parts = terms_of(keyword)
    last = len(parts) - 1
    found: Counts | None = None
    for position, part in sorted(enumerate(parts), key=lambda each: -len(each[1])):
        times = {
            number: 1 if last else term.count(part.encode())
            for number, term in matching(
                vocabulary, part, begins=position > 0, ends=position < last
            )
        }
        if found is None and len(times) >= tuning.WIDE:
            return _most_in_all_texts(database, [keyword])
        if found is None:
            found = _most(database, times)
        elif len(times) <= tuning.COMMON_PART:
            most = _most(database, times)
            found = {
                segment: _least(held, most[segment])
                for segment, held in found.items()
                if segment in most
            }
        if sum(map(len, found.values())) <= tuning.FEW:
            break
    return found or {}


def _most(database: Database, times: Mapping[int, int]) -> Counts:
    """Return the most that terms can score, each so many times: were all of it whole words."""
    accumulators: defaultdict[int, Accumulator] = defaultdict(Accumulator)
    for segment, term, totals, topics in database.postings.find(times):
        accumulators[segment].add(totals, 2 * times[term])
        if topics:
            accumulators[segment].add(topics, times[term])
    return {segment: each.counts() for segment, each in accumulators.items()}


def _least(ones: Counter[int], others: Counter[int]) -> Counter[int]:
    return Counter(
        {each: min(count, others[each]) for each, count in ones.items() if each in others}
    )


def _counted(
    database: Database, counts: Counts, bounds: Sequence[Counts], keywords: Sequence[str]
) -> Counts:
    """Return the scores of all that can be among the best, counted in their texts.

    Args:
        database: where the texts are.
        counts: the scores for all other keywords.
        bounds: the most that each of the keywords can add.
        keywords: what is to be counted.
    """
    scored: defaultdict[int, Counter[int]] = defaultdict(Counter)
    top: list[int] = []
    ranked = _ranked([counts, *bounds])
    size, done, closer = tuning.FIRST, set[int](), not any(map(_is_phrase, keywords))
    while some := list(islice(ranked, size)):
        if len(top) == MAX_HITS and some[0][0] < top[-1]:
            break
        if len(done) + len(some) > tuning.SCANNED and not closer:
            most = _ranked([counts, _most_in_all_texts(database, keywords)])
            ranked = iter([each for each in most if each[1] not in done])
            size, closer = tuning.FIRST, True
            continue
        done.update([number for _, number in some])
        values = {number: _value(counts, number) for _, number in some}
        for number, value in _in_texts(database, sorted(values), keywords):
            values[number] += value
        for number, value in values.items():
            if value:
                scored[number // SEGMENT][number % SEGMENT] = value
        top = sorted([*top, *filter(None, values.values())], reverse=True)[:MAX_HITS]
        size *= 2
    return scored


def _is_phrase(keyword: str) -> bool:
    """Say whether counting a keyword says more than counting its terms."""
    return len(terms_of(keyword)) > 1


def _value(counts: Counts, number: int) -> int:
    segment, local_id = divmod(number, SEGMENT)
    return counts[segment][local_id] if segment in counts else 0


def _ranked(addends: Iterable[Counts]) -> Iterator[tuple[int, int]]:
    """Add up; return the sums with the numbers of the memories, falling."""
    sums: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for each in addends:
        for segment, counted in each.items():
            sums[segment].update(counted)
    ranked = [
        (value, segment * SEGMENT + local_id)
        for segment, counted in sums.items()
        for local_id, value in counted.items()
    ]
    return iter(sorted(ranked, reverse=True))


def _top(database: Database, scores: Sequence[tuple[int, Scores]]) -> list[int]:
    """Return the numbers with the highest scores; of equal ones, the newest."""
    room, least = MAX_HITS, 0
    for value, number in histogram([each for _, each in scores], MAX_HITS):
        if number >= room:
            least = value
            break
        room -= number
    found = [
        (value, segment * SEGMENT + local_id)
        for segment, each in scores
        for local_id, value in at_least(each, max(least, 1))
    ]
    above = [number for value, number in found if value > least]
    ties = {number for value, number in found if value == least}
    return above + _newest(database, ties, room)


def _newest(database: Database, ties: set[int], most: int) -> list[int]:
    if len(ties) > tuning.TIES:
        return list(islice((each for each in database.newest_first() if each in ties), most))
    return [number for *_, number in sorted(database.ages(ties), reverse=True)[:most]]
