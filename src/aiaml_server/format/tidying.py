"""What could be tidied among memories: proposals, each with the command that would do it.

Words are compared, not their meaning, so what is proposed to be forgotten must be there in another
memory, word for word: only articles, emphasis and punctuation may differ, or whole sentences
follow. Where a name, a number or a negation differs nothing is proposed to be forgotten. Two texts
that differ in a value or a negation alone are worth a look, no more.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

from aiaml_server.format.memory import Memory
from aiaml_server.moments import instant

LONG = 8000  # characters, beyond which a memory is found by too many words
_SERIES = 4  # memories alike but for a value: with more of them each is one of a series
_COMPARED = 50  # memories of one text with other topics; or first sentences of one memory

_JOINING = re.compile("[-_.]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_OPENING, _CLOSING = "\"'`([\u201c\u201e\u2018\u00ab", "\"'`)]\u201c\u201d\u00bb.,;:!\u2026"
_STRONG = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_BULLETS = frozenset("-*+\u2022\u2013\u2014")
_UNIT = re.compile(r"([$\u20ac]?\d[\d.,]*)(?!st|nd|rd|th)(%|\u20ac|[a-z]{1,3})")
_CONTRACTED = tuple(
    (re.compile(short, re.IGNORECASE), whole)
    for short, whole in (
        (r"\b(?:cannot|can't)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\bno longer\b", "not"),
        (r"\b(it|he|she|that|there|what|who)'s\b", r"\1 is"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"\bi'm\b", "I am"),
    )
)
_SHORTENED = re.compile("'|no longer|cannot", re.IGNORECASE)
_LEADING = re.compile(
    r"(?:please )?(?:note|remember)(?: that |: ?)|(?:fyi|reminder)[:,]? ", re.IGNORECASE
)
_IDLE = frozenset(("the", "a", "an", "please", "very", "really", "quite"))
_COUNTING = frozenset(("few", "little", "lot", "bit", "couple"))  # "a few" is not "few"
_SAME = {
    "&": "and", "each": "every", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_FIGURE = re.compile(r"\d")
_NEGATION = frozenset(
    ("no", "not", "never", "none", "nor", "neither", "nobody", "nothing", "without",
     "nicht", "kein", "keine", "keinen", "nie", "non", "ne", "pas", "jamais", "nunca", "jamás",
     "não")
)  # fmt: skip
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_PARTS = "morning|afternoon|evening|night|week|weekend|month|quarter|year|time|season"
_DATED = re.compile(  # says of a text that the number in it may be a time's
    rf"\b(?:{_MONTHS}|{_DAYS}|spring|summer|autumn|winter|q[1-4]|was|were|had|did)\b"
    rf"|\b(?:this|last|next) (?:{_PARTS})\b|\b(?:{_PARTS}|day) \d"
)
_PASSING = re.compile(  # means another day when it is said on another day
    r"\b(?:today|tonight|yesterday|tomorrow|now|ago|just|recently|lately|heute|gestern|morgen|jetzt"
    r"|aujourd'hui|hier|demain|hoy|ayer|ma\u00f1ana|oggi|ieri|domani)\b"
    rf"|\b(?:this|last|next) (?:{_PARTS}|{_DAYS})\b"
    r"|\b(?:on|by|until|since|before|after) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
)
_TIME = re.compile(
    r"(?:19|20)\d\d(?:-\d\d)*|\d+(?:st|nd|rd|th)|(?:(?!\d[:/]\d).)*\d[:/]\d.*|[^/#\n]*[/#].*"
)
_STATE = frozenset(
    ("is", "are", "has", "have", "costs", "cost", "needs", "need", "uses", "use", "takes", "gets",
     "wants", "weighs", "lasts", "listens", "keeps", "allows", "requires", "supports", "expects",
     "accepts", "holds", "contains", "earns", "pays", "owns", "equals", "must", "should")
)  # fmt: skip
_LABEL = frozenset(
    ("issue", "ticket", "task", "pr", "chapter", "sprint", "lesson", "round", "candidate", "step",
     "page", "line", "player", "item", "version", "no", "number", "nr")
)  # fmt: skip
_DONE = re.compile(r".*ed|been|gone|paid|bought|sold|lent|met|seen|run|read|won|lost|had")

Shown = Callable[[Sequence[Memory], str], Iterable[Memory]]
"""Passes memories through, and shows how far they are: `terminal.progress`."""


@dataclass(frozen=True)
class Proposal:
    """Something that could be tidied.

    Attributes:
        kind: one of `KINDS`.
        ids: the memories that it is about; the one to keep first, where one is to go.
        why: what was found, as a sentence.
        command: the words behind `aiaml` that would mend it.
    """

    kind: str
    ids: tuple[str, ...]
    why: str
    command: tuple[str, ...]


KINDS = ("duplicate", "similar", "expired", "differing", "topics", "long", "unused")


class _Text(NamedTuple):
    """A memory, and what is compared of it.

    Attributes:
        memory: itself.
        plain: its text, but for white space.
        words: those that tell something, in one form each: "Don't use the tabs." is "do not use
            tabs".
        ends: how many of the words come before each end of a sentence.
    """

    memory: Memory
    plain: str
    words: tuple[str, ...]
    ends: tuple[int, ...]


def proposals(memories: Iterable[Memory], shown: Shown) -> Iterator[Proposal]:
    """Return what could be tidied, the surest first.

    None is to go for one that ends before it, lacks a topic of it, or is about another person.
    """
    newest = sorted(memories, key=lambda each: (_age(each), each.id), reverse=True)
    left = [_text(each) for each in shown(newest, "Comparing")]
    for kind in ("duplicate", "similar"):
        same: dict[tuple[str, ...], list[_Text]] = defaultdict(list)
        for text in left:
            said = (text.plain,) if kind == "duplicate" else text.words
            same[(text.memory.user, *said)].append(text)
        found = chain.from_iterable(_repeated(group, kind) for group in same.values())
        gone: set[str] = set()
        for proposal in chain(found, _extended(left, same) if kind == "similar" else ()):
            if gone.isdisjoint(proposal.ids):
                gone.add(proposal.ids[1])
                yield proposal
        left = [each for each in left if each.memory.id not in gone]
    yield from _differing(left)
    yield from _spellings(newest)
    for memory in newest:
        if len(memory.content) > LONG:
            why = (
                f"It has {len(memory.content):,} characters: nearly every word finds it, and an "
                "agent reads all of it. Several memories of one fact each are found better."
            )
            yield Proposal("long", (memory.id,), why, ("edit", memory.id))


def expired(memories: Iterable[Memory], at: int) -> Iterator[Proposal]:
    """Return the memories that no longer hold at a moment, in microseconds since 1970."""
    for memory in memories:
        if memory.expired(at):
            why = f"It was to hold until {memory.until}; `aiaml edit --until DATE` has it go on."
            yield Proposal("expired", (memory.id,), why, ("forget", memory.id))


def unused(
    memories: Iterable[Memory], came_up: Mapping[str, str], since: str
) -> Iterator[Proposal]:
    """Return the memories that no agent was given, though they were there all the time.

    Args:
        memories: all of them.
        came_up: when each was last found or recalled, by id.
        since: how far that goes back.
    """
    begun = instant(since) or 0
    for memory in memories:
        if memory.id not in came_up and _age(memory) < begun:
            why = f"No agent has found it since {since[:10]}."
            yield Proposal("unused", (memory.id,), why, ("forget", memory.id))


def _age(memory: Memory) -> int:
    return instant(memory.timestamp) or 0


def _lasting(memory: Memory) -> float:
    return math.inf if memory.ends is None else memory.ends


# --- words ----------------------------------------------------------------------------------------


def _text(memory: Memory) -> _Text:
    sentences = [_words(each) for each in _SENTENCE.split(memory.content)]
    words = tuple(chain.from_iterable(sentences))
    plain = " ".join(memory.content.split())
    return _Text(memory, plain, words or (plain,), tuple(accumulate(map(len, sentences))))


def _words(sentence: str) -> list[str]:
    """Return the words of a sentence that tell something, in one form each.

    >>> _words("The user doesn't like **tabs**, please!")
    ['user', 'does', 'not', 'like', 'tabs']
    """
    plain = _STRONG.sub(r"\1", sentence).replace("\u2019", "'").strip("*_# ")
    if _SHORTENED.search(plain):
        for short, whole in _CONTRACTED:
            plain = short.sub(whole, plain)
    if begun := _LEADING.match(plain):
        plain = plain[begun.end() :]
    chunks = plain.split()
    words: list[str] = []
    for number, chunk in enumerate(chunks):
        following = chunks[number + 1] if number + 1 < len(chunks) else ""
        word = chunk.lstrip(_OPENING).rstrip(_CLOSING).casefold()
        article = chunk if number else chunk.casefold()  # not the "A" of "vitamin A"
        if article in _IDLE and following[:1].isalpha() and following not in _COUNTING:
            continue
        if not word or word == "please" or (word in _BULLETS and not words):
            continue
        if measured := _UNIT.fullmatch(word):
            words += measured.groups()
        elif word[-1] == "?" and len(word) > 1:
            words += (word[:-1], "?")
        else:
            words.append(_SAME.get(word, word))
        if chunk[-1] == ":":
            words.append(":")
    return words


def _names(text: str) -> set[str]:
    """Return the words with a capital that does not come from the beginning of a sentence."""
    chunks = chain.from_iterable(each.split()[1:] for each in _SENTENCE.split(text))
    return {each.strip(_CLOSING) for each in chunks if each.lstrip(_OPENING)[:1].isupper()}


# --- what may go ----------------------------------------------------------------------------------


def _repeated(texts: Iterable[_Text], kind: str) -> Iterator[Proposal]:
    """Return those of some texts that another one makes superfluous; they are the same."""
    kept: list[_Text] = []
    for text in sorted(texts, key=_worth, reverse=True):
        better = next((each for each in kept[:_COMPARED] if _covers(each, text)), None)
        if better is None:
            kept.append(text)
            continue
        which = "newer one"
        if _lasting(better.memory) != _lasting(text.memory):
            which = "one that holds longer"
        elif len(better.memory.topics) != len(text.memory.topics):
            which = "one with more topics"
        said = "the same" if kind == "duplicate" else "the same but for small words and marks"
        yield _to_go(kind, better, text, f"Both say {said}; the {which} is kept.")


def _worth(text: _Text) -> tuple[float, int, int, str]:
    memory = text.memory
    return _lasting(memory), len(memory.topics), _age(memory), memory.id


def _covers(kept: _Text, text: _Text) -> bool:
    """Say whether nothing is lost with a text that another one has in its own."""
    there, gone = kept.memory, text.memory
    if _lasting(there) < _lasting(gone) or there.user != gone.user:
        return False
    if not {*map(_stem, gone.topics)} <= {*map(_stem, there.topics)}:
        return False
    if not {each for each in gone.extra if not each.startswith("until:")} <= {*there.extra}:
        return False
    return there.timestamp[:10] == gone.timestamp[:10] or not _PASSING.search(text.plain.casefold())


def _extended(
    texts: Iterable[_Text], same: Mapping[tuple[str, ...], Sequence[_Text]]
) -> Iterator[Proposal]:
    """Return the texts that a newer one begins with, before it goes on with other sentences."""
    for text in texts:
        for end in list(dict.fromkeys(text.ends))[:_COMPARED]:
            for older in same.get((text.memory.user, *text.words[:end]), ()):
                added = text.words[end:]
                if not added or _age(older.memory) > _age(text.memory) or not _covers(text, older):
                    continue
                if any(_FIGURE.search(each) or each in _NEGATION for each in added):
                    continue
                if _names(text.memory.content) <= _names(older.memory.content):
                    why = "The newer one has all that the older one says, and more."
                    yield _to_go("similar", text, older, why)


def _to_go(kind: str, kept: _Text, text: _Text, why: str) -> Proposal:
    gone = text.memory.id
    return Proposal(kind, (kept.memory.id, gone), why, ("forget", gone))


# --- what may no longer hold ----------------------------------------------------------------------


def _differing(texts: Iterable[_Text]) -> Iterator[Proposal]:
    """Return each memory that a newer one differs from in a value or in a negation alone."""
    alike: dict[tuple[str, ...], list[_Text]] = defaultdict(list)
    for text in texts:
        said = text.plain.casefold()
        if _DATED.search(said) or _PASSING.search(said):
            continue
        user = text.memory.user
        valued = tuple("#" if _FIGURE.search(each) else each for each in text.words)
        if valued != text.words:
            alike[("value", user, *valued)].append(text)
        affirmed = [each for each in text.words if each not in _NEGATION | {"do", "does"}]
        alike[("negation", user, *map(_stem, affirmed))].append(text)
    for (kind, *_), group in alike.items():
        for older in group[1:] if len(group) <= _SERIES else ():
            newer = group[0]
            topics = {*map(_stem, newer.memory.topics)}
            if topics.isdisjoint(map(_stem, older.memory.topics)):
                continue
            what = (_other_value if kind == "value" else _other_negation)(newer, older)
            if what:
                ids = (newer.memory.id, older.memory.id)
                why = f"They are alike but for {what}: perhaps the older one no longer holds."
                yield Proposal("differing", ids, why, ("edit", older.memory.id))


def _other_value(newer: _Text, older: _Text) -> str:
    """Return the two values in which texts differ; empty where they may be names or times."""
    there = [
        number
        for number, words in enumerate(zip(newer.words, older.words, strict=True))
        if words[0] != words[1]
    ]
    if not there or not all(_is_value(text, each) for each in there for text in (newer, older)):
        return ""
    old = " ".join(older.words[each] for each in there)
    return f"{old} and {' '.join(newer.words[each] for each in there)}"


def _is_value(text: _Text, place: int) -> bool:
    """Say whether a figure is what a sentence says of its subject, and not a part of a name."""
    begin = max((each for each in text.ends if each <= place), default=0)
    before = text.words[begin:place]
    if _TIME.fullmatch(text.words[place]) or not before or before[-1] in _LABEL:
        return False
    said = next((n for n, each in enumerate(before) if each in _STATE or each == ":"), None)
    if said is None:
        return False
    following = text.words[begin + said + 1]
    return not (before[said] in ("has", "have") and _DONE.fullmatch(following))


def _other_negation(newer: _Text, older: _Text) -> str:
    """Return the negation that one of two texts has and the other has not; empty for none."""
    new, old = ([each for each in text.words if each in _NEGATION] for text in (newer, older))
    return f'"{(new or old)[0]}"' if bool(new) != bool(old) else ""


# --- topics ---------------------------------------------------------------------------------------


def _spellings(memories: Sequence[Memory]) -> Iterator[Proposal]:
    """Return each memory with a topic that most memories spell in another way."""
    counted = Counter(topic for memory in memories for topic in dict.fromkeys(memory.topics))
    usual: dict[str, str] = {}
    for topic, _ in counted.most_common():
        usual.setdefault(_stem(topic), topic)
    for memory in memories:
        better = {each: usual[_stem(each)] for each in memory.topics}
        wrong = [
            f"{each!r} is usually {other!r}" for each, other in better.items() if each != other
        ]
        if wrong:
            why = f"Its topic {' and '.join(wrong)}."
            yield Proposal("topics", (memory.id,), why, ("edit", memory.id))


def _stem(topic: str) -> str:
    """Return what a topic's spellings have in common: no case, no hyphen, no plural."""
    plain = _JOINING.sub("", topic.casefold()) or topic
    if len(plain) > 4 and plain.endswith("ies"):
        return f"{plain[:-3]}y"
    return plain[:-1] if len(plain) > 3 and plain[-1] == "s" and plain[-2] not in "sui" else plain
