"""Filter memories by agent, user, topic and time, and parse filters in questions.

A question such as `dinner agent:claude since:7d "san francisco"` has words to search for, and
fields that a memory must have. `words` splits it, `Filter.with_fields` extracts the fields.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.format.memory import Memory
from aiaml_server.timestamps import parse_timestamp, parse_timestamp_or_age

FIELDS = {
    "agent": "claude",
    "user": "ann",
    "topic": "food",
    "since": "7d",
    "before": "2w",
}
"""The fields of a question, each with an example of a value."""
NAMES = ("agent", "user", "topic")
"""The fields whose values are names."""

WHEN = "a date such as 2026-11-21, or an age such as 90m, 12h, 7d or 2w"
"""The valid values of times."""

_MOST_TOPICS = 100

_WORD = re.compile(r'([^\s":]+:)?"([^"]*)"?|\S+')
_FIELD = re.compile(f"({'|'.join(FIELDS)}):(.*)", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(f'"{_FIELD.pattern}"', _FIELD.flags)  # a word that only looks like a field


def words(question: str) -> list[str]:
    """Split a question at its blanks, as a shell splits a command line.

    Quotes join several words, also after a field: `topic:"fast food"`. A quoted word that looks
    like a field keeps its quotes, so that `Filter.with_fields` treats it as a word.
    """
    return [_unquoted(found) for found in _WORD.finditer(question)]


def _unquoted(found: re.Match[str]) -> str:
    field, quoted = found.groups()
    if quoted is None:
        return found[0]
    return f'"{quoted}"' if not field and _FIELD.fullmatch(quoted) else f"{field or ''}{quoted}"


def of_shell(arguments: Iterable[str]) -> list[str]:
    """Split the arguments of a command line, from which a shell has removed the quotes.

    A question in one argument is split into words, so a phrase needs quotes of its own:
    `'"fast food"'`. An argument that is a field keeps its blanks: `'topic:fast food'`.
    """
    divided = (
        [each] if _FIELD.fullmatch(each) and '"' not in each else words(each) for each in arguments
    )
    return [each for some in divided for each in some]


@lru_cache(4096)
def fold(name: str) -> str:
    """Return the form in which names are compared: case and Unicode form make no difference."""
    return unicodedata.normalize("NFC", name).casefold()


def labels_of(memory: Memory) -> dict[tuple[str, str], str]:
    """Return the agent, the user and the topics of a memory, by field and the name as folded.

    Of topics that `fold` makes equal, it has the first.
    """
    topics = {("topic", fold(topic)): topic for topic in reversed(memory.topics)}
    users = {("agent", fold(memory.agent)): memory.agent, ("user", fold(memory.user)): memory.user}
    return users | topics


class Filter(NamedTuple):
    """Conditions for memories. An empty field matches every memory.

    Attributes:
        agent: its agent, as `fold` returns it.
        user: its user, likewise.
        topics: all of these are among its topics, likewise.
        since: microseconds since 1970; made then or later.
        before: made before then.
    """

    agent: str = ""
    user: str = ""
    topics: tuple[str, ...] = ()
    since: int | None = None
    before: int | None = None

    @classmethod
    def of(
        cls,
        *,
        agent: str | None = None,
        user: str | None = None,
        topic: Iterable[str] = (),
        since: str | None = None,
        before: str | None = None,
    ) -> Filter:
        """Make a filter from the options of a command.

        Raises:
            InvalidInput: a time cannot be understood, or there are too many topics.
        """
        topics = _topics(topic)
        return cls(
            fold(agent or ""),
            fold(user or ""),
            topics,
            _time("--since", since),
            _time("--before", before),
        )

    def with_fields(self, words: Iterable[str]) -> tuple[Filter, list[str]]:
        """Extract the fields from a question's words: `agent:claude`, `topic:food`, `since:7d`.

        A word with another prefix before its colon stays a word, and so does a quoted one.

        Args:
            words: the words that `words` returns, or the arguments of a command line.

        Returns:
            The filter with these fields added, and the words to search for.

        Raises:
            InvalidInput: a field has no value or an invalid one, or there are too many topics.
        """
        wanted, rest = self, []
        for word in words:
            if found := _FIELD.fullmatch(word):
                wanted = wanted._and(found[1].lower(), found[2].strip())
            else:
                rest.append(word[1:-1] if _QUOTED.fullmatch(word) else word)
        return wanted, rest

    def _and(self, field: str, value: str) -> Filter:
        if not value:
            example = f"{field}:{FIELDS[field]}"
            raise InvalidInput(field, f"must have a value behind the colon, such as {example}")
        if field == "topic":
            return self._replace(topics=_topics([*self.topics, value]))
        parsed: Any = fold(value) if field in NAMES else _time(field, value)
        if getattr(self, field) not in (parsed, "", None):
            raise InvalidInput(field, "must not be given twice with different values")
        return self._replace(**{field: parsed})

    def __bool__(self) -> bool:
        """Return whether it has any condition."""
        return self != Filter()

    @property
    def labels(self) -> set[tuple[str, str]]:
        """The agent, user and topics that a memory must have, as the keys of `labels_of`."""
        topics = [("topic", topic) for topic in self.topics]
        return {each for each in [("agent", self.agent), ("user", self.user), *topics] if each[1]}

    def matches(self, memory: Memory) -> bool:
        """Return whether a memory matches."""
        if (wanted := self.labels) and not wanted <= labels_of(memory).keys():
            return False
        return (self.since is None and self.before is None) or self._in_time(memory)

    def among(self, memories: Iterable[tuple[str, Memory]]) -> Iterator[tuple[str, Memory]]:
        """Return the (file name, memory) pairs that match."""
        return (each for each in memories if self.matches(each[1]))

    def _in_time(self, memory: Memory) -> bool:
        time = parse_timestamp(memory.timestamp)
        if time is None:
            return False
        since = self.since is None or time >= self.since
        return since and (self.before is None or time < self.before)


EVERYTHING = Filter()
"""Every memory matches."""


def _topics(given: Iterable[str]) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(fold(each) for each in given))
    if len(topics) > _MOST_TOPICS:
        raise InvalidInput("topic", f"must be {_MOST_TOPICS} different ones at most")
    return topics


def _time(field: str, text: str | None) -> int | None:
    if text is None:
        return None
    time = parse_timestamp_or_age(text)
    if time is None:
        raise InvalidInput(field, f"{text!r} is not a time. Use {WHEN}")
    return time
