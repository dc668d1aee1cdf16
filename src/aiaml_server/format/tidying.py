"""What could be tidied among memories: proposals, each with the command that would do it.

Texts are compared by their pairs of neighbouring words. Nothing here understands what they say: two
texts that are alike but for a number, a date or a negation are worth a look, no more.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from aiaml_server.format.memory import Memory
from aiaml_server.moments import instant

ALIKE = 0.7  # of two texts' pairs of words that both have: nearly the same
RELATED = 0.4  # likewise: about the same matter
COMMON = 50  # memories that share a pair of words, from which on it says nothing
LONG = 8000  # characters, beyond which a memory is found by too many words

_JOINING = re.compile("[-_.]")
_WORD = re.compile(r"[$\u20ac]?\w[\w.,:'%-]*")
_FIGURE = re.compile(r"\d")
_NEGATION = frozenset(
    ("no", "not", "never", "none", "without", "cannot", "can't", "don't", "doesn't", "didn't",
     "isn't", "aren't", "won't")
)  # fmt: skip

Shown = Callable[[Sequence[int], str], Iterable[int]]
"""Passes items through, and shows how far they are: `terminal.progress`."""


@dataclass(frozen=True)
class Proposal:
    """Something that could be tidied.

    Attributes:
        kind: "expired", "duplicate", "similar", "differing", "topics", "long" or "unused".
        ids: the memories that it is about; the one to keep first, where one is to go.
        why: what was found, as a sentence.
        command: the words behind `aiaml` that would mend it.
    """

    kind: str
    ids: tuple[str, ...]
    why: str
    command: tuple[str, ...]


class _Text(NamedTuple):
    """A memory, and what is compared of it."""

    memory: Memory
    pairs: frozenset[tuple[str, str]]
    figures: frozenset[str]
    lasting: float


def proposals(memories: Iterable[Memory], shown: Shown) -> Iterator[Proposal]:
    """Return what could be tidied, the surest first.

    None is to go for one that ends before it.

    Args:
        memories: all of them, in any order.
        shown: shows progress.
    """
    newest = sorted(memories, key=lambda each: (_age(each), each.id), reverse=True)
    distinct: dict[tuple[str, str], Memory] = {}
    for memory in sorted(newest, key=_lasting, reverse=True):
        kept = distinct.setdefault((memory.user, " ".join(memory.content.split())), memory)
        if kept is not memory:
            better = "newer one" if _lasting(kept) == _lasting(memory) else "one that holds longer"
            why = f"Both say the same; the {better} is kept."
            yield Proposal("duplicate", (kept.id, memory.id), why, ("forget", memory.id))
    left = {each.id for each in distinct.values()}
    yield from _resembling([_text(each) for each in newest if each.id in left], shown)
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


def _text(memory: Memory) -> _Text:
    text = memory.content[:LONG].lower().replace("\u2019", "'")
    words = [word.rstrip(".,:'-") for word in _WORD.findall(text)]
    telling = frozenset(word for word in words if _FIGURE.search(word) or word in _NEGATION)
    return _Text(memory, frozenset(pairwise(words)), telling, _lasting(memory))


def _resembling(texts: Sequence[_Text], shown: Shown) -> Iterator[Proposal]:
    """Compare each text with the newer ones that share a rare pair of words with it.

    Two texts that share as much as `RELATED` share one of their rarest pairs, of so many that what
    is left over would be too little: only these are looked up.
    """
    known = Counter(pair for text in texts for pair in text.pairs)
    having: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number in shown(range(len(texts)), "Comparing"):
        text = texts[number]
        rarest = sorted(text.pairs, key=lambda pair: (known[pair], pair))
        rarest = rarest[: len(rarest) - int(RELATED * len(rarest)) + 1]
        near: set[int] = set()
        for pair in rarest:
            if 1 < known[pair] <= COMMON:
                near.update(having[pair])
                having[pair].append(number)
        for other in sorted(near):
            if proposal := _compared(texts[other], text):
                yield proposal


def _compared(newer: _Text, older: _Text) -> Proposal | None:
    if newer.memory.user != older.memory.user or newer.lasting < older.lasting:
        return None
    both = len(newer.pairs & older.pairs)
    share = both / (len(newer.pairs) + len(older.pairs) - both)
    ids = (newer.memory.id, older.memory.id)
    command = ("forget", older.memory.id)
    if newer.figures == older.figures and share >= ALIKE:
        why = f"They share {share:.0%} of their words in order; the newer one is kept."
        return Proposal("similar", ids, why, command)
    topics = {each.casefold() for each in newer.memory.topics}
    alike = topics.intersection(each.casefold() for each in older.memory.topics)
    if newer.figures != older.figures and share >= RELATED and alike:
        differing = ", ".join(sorted(newer.figures ^ older.figures)[:6])
        why = f"They are alike but for {differing}: perhaps the older one no longer holds."
        return Proposal("differing", ids, why, command)
    return None


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
