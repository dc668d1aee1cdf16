"""Which memories are meant: by agent, user, topic and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from aiaml_server.errors import InvalidInput
from aiaml_server.memory import Memory
from aiaml_server.moments import instant, instant_or_ago

_WHEN = "A date such as 2026-11-21, a moment, or how long ago: 90m, 12h, 7d, 2w."

Verb = TypeVar("Verb", bound=Callable[..., Any])


def options(verb: Verb) -> Verb:
    """Give a verb the options `agent user topic since until`, for `Filter.of`."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


_OPTIONS = (
    click.option("--agent", "-a", metavar="NAME", help="Only this agent's."),
    click.option("--user", "-u", metavar="NAME", help="Only those about this person."),
    click.option("--topic", "-t", metavar="WORD", multiple=True, help="Only with this topic."),
    click.option("--since", metavar="TIME", help=f"Only from then on. {_WHEN}"),
    click.option("--until", metavar="TIME", help="Only before then, likewise."),
)


@dataclass(frozen=True)
class Filter:
    """What a memory must be like; what is empty lets all through.

    Attributes:
        agent: its agent, in any case.
        user: its user, in any case.
        topics: all of these are among its topics, in any case.
        since: microseconds since 1970; made then or later.
        until: made before then.
    """

    agent: str = ""
    user: str = ""
    topics: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(
        cls,
        agent: str | None,
        user: str | None,
        topic: Iterable[str] | None,
        since: str | None = None,
        until: str | None = None,
    ) -> Filter:
        """Make a filter of a verb's options.

        Raises:
            InvalidInput: a time cannot be understood.
        """
        topics = tuple(each.casefold() for each in topic or ())
        return cls(
            (agent or "").casefold(),
            (user or "").casefold(),
            topics,
            _moment("since", since),
            _moment("until", until),
        )

    def __bool__(self) -> bool:
        """Whether it keeps anything out."""
        return self != Filter()

    def matches(self, memory: Memory) -> bool:
        """Say whether a memory is meant."""
        if self.agent and memory.agent.casefold() != self.agent:
            return False
        if self.user and memory.user.casefold() != self.user:
            return False
        if self.topics and not {each.casefold() for each in memory.topics}.issuperset(self.topics):
            return False
        return (self.since is None and self.until is None) or self._in_time(memory)

    def among(self, memories: Iterable[tuple[str, Memory]]) -> Iterator[tuple[str, Memory]]:
        """Return those (file name, memory) pairs that are meant."""
        return (each for each in memories if self.matches(each[1]))

    def _in_time(self, memory: Memory) -> bool:
        moment = instant(memory.timestamp)
        if moment is None:
            return False
        since = self.since is None or moment >= self.since
        return since and (self.until is None or moment < self.until)


def _moment(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    moment = instant_or_ago(text)
    if moment is None:
        wanted = f"{_WHEN[0].lower()}{_WHEN[1:-1]}"
        raise InvalidInput(f"--{option}", f"{text!r} is no time; it must be {wanted}")
    return moment
