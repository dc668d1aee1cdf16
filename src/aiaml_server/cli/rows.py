"""Memories in lists: on a terminal a row of columns each; elsewhere, as data, one line each.

A pipe gets what `gh` gives it: tabs between the fields, nothing cut, padded or relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from aiaml_server.format.memory import Memory
from aiaml_server.rendering import title, visible
from aiaml_server.terminal import (
    bold,
    dim,
    display_width,
    echo,
    is_terminal,
    pad,
    terminal_width,
    truncate,
)
from aiaml_server.timestamps import format_age

WIDE = 100  # columns, from which on a row has the agent and the user
NARROW = 60  # columns, below which a memory has two lines
_TITLE = 18  # columns that a title has at least
_MEASURED = 200  # rows whose columns are as wide as they need

Mark = Callable[[str], str]


def print_lines(memories: Iterable[Memory]) -> int:
    """Print a row for each memory; return how many there were."""
    count = 0
    rest = iter(memories)
    while some := list(islice(rest, _MEASURED)):
        layout = Layout.of(some)
        for memory in some:
            for line in layout.lines(memory):
                echo(line)
        count += len(some)
    return count


@dataclass(frozen=True)
class Layout:
    """How many columns the agents, users and topics of some memories take."""

    agent: int
    user: int
    topics: int

    @classmethod
    def of(cls, memories: Iterable[Memory]) -> Layout:
        """Return the layout in which these memories stand, with room for their titles."""
        rows = [(each.agent, each.user, ", ".join(each.topics)) for each in memories]
        sizes = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
        most = (terminal_width() // 8, terminal_width() // 8, terminal_width() // 6)
        return cls(*map(min, sizes or [0, 0, 0], most))

    def lines(
        self,
        memory: Memory,
        mark: Mark = str,
        score: str = "",
        *,
        titled: bool = True,
    ) -> Iterator[str]:
        """Return a memory's row.

        Args:
            memory: what to show.
            mark: makes what was looked for stand out.
            score: what it was found with.
            titled: whether to say what it begins with.
        """
        if not is_terminal():
            yield "\t".join(fields_of(memory, score))
            return
        memory = visible(replace(memory, content=title(memory.content)))
        name = f"{memory.id:8}"
        head = f"{bold(name)}  {dim(f'{format_age(memory.timestamp):>10}')}  {score}"
        room = max(terminal_width() - display_width(name) - 14 - display_width(score), 12)
        topics = ", ".join(memory.topics)
        if terminal_width() < NARROW:
            people = truncate(f"{memory.agent}, {memory.user} · {topics}", room)
            yield f"{head}{mark(people)}"
            if titled:
                yield f"  {mark(truncate(memory.content, terminal_width() - 2))}"
            return
        people = f"{pad(memory.agent, self.agent)}  {pad(memory.user, self.user)}"
        if not titled:
            rest = room - display_width(people) - 2
            yield f"{head}{mark(people)}  {dim(mark(truncate(topics, rest)))}"
            return
        behind = [pad(topics, min(self.topics, room - _TITLE - 2))] if topics else []
        behind += [people] if terminal_width() >= WIDE else []
        size = room - sum(display_width(each) + 2 for each in behind)
        first = pad(memory.content, size) if behind else truncate(memory.content, size)
        behind[-1:] = [each.rstrip() for each in behind[-1:]]
        yield "  ".join([f"{head}{mark(first)}", *(dim(mark(each)) for each in behind)]).rstrip()


def fields_of(memory: Memory, score: str = "") -> list[str]:
    """Return a memory's fields for a line of a pipe: id, moment, agent, user, topics, text."""
    shown = visible(memory)
    topics = ", ".join(shown.topics)
    values = [shown.id, shown.timestamp, *([score.strip()] if score else [])]
    values += [shown.agent, shown.user, topics, shown.content]
    return [" ".join(each.split()) for each in values]
