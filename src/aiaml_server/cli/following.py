"""`log --follow`: what happens to memories, while somebody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiaml_server.errors import MalformedFile
from aiaml_server.freshness import touched
from aiaml_server.memory import Memory, parse
from aiaml_server.moments import minute, present, timestamp
from aiaml_server.rendering import title, visible
from aiaml_server.store import NEVER, Stamp, Store
from aiaml_server.terminal import (
    bold,
    columns,
    dim,
    is_terminal,
    note,
    one_line,
    out,
    out_json,
    progress,
    wait,
    width,
)
from aiaml_server.watch import Watch

LOOK_SECONDS = 1.0
_REST = 20  # times as long as a look takes, at least
_READ = 10_000  # memories of which it is known what they said, should they be forgotten
_WORDS = 200  # characters of a memory that are kept and told


@dataclass(frozen=True)
class Event:
    """What was seen to have happened to a file.

    Attributes:
        what: Added, Updated, Forgotten or Damaged.
        name: the file's name.
        memory: what it says, or said before it was forgotten, if that is known; its content is
            the title alone.
        problem: why the file is no memory.
    """

    what: str
    name: str
    memory: Memory | None
    problem: str | None = None


@dataclass(frozen=True)
class _Seen:
    stamp: Stamp
    hash: int | None = None  # of the text, or of what is wrong; None if it was not read
    memory: Memory | None = None
    problem: str | None = None


class Follower:
    """Finds what happens in a directory from now on, whoever does it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch = Watch()
        self._directory: Stamp | None = None
        self._seen: dict[str, _Seen] = {}
        self._unsettled: set[str] = set()
        names = sorted(self._touched(), reverse=True)
        for number, name in enumerate(progress(names, "Reading memories")):
            if stamp := store.stamp(name):
                known = stamp if stamp.settled else NEVER
                seen = self._read(name, known) if number < _READ else _Seen(known)
                self._seen[name] = seen or _Seen(known)

    def look(self) -> Iterator[Event]:
        """Yield what happened since the last look; what is just being written, at the next one.

        Raises:
            StoreError: the directory cannot be read.
        """
        names, self._unsettled = self._touched() | self._unsettled, set()
        for name in sorted(names):
            if event := self._event(name):
                yield event

    def _touched(self) -> set[str]:
        before, self._directory = self._directory, self._store.stamp()
        names = touched(self._watch, before, self._directory)
        if names is None:  # nothing is noted yet, or not any more: all are compared
            self._watch.begin(self._store.directory)
            return {*self._store.names(), *self._seen}
        return names

    def _event(self, name: str) -> Event | None:
        before, stamp = self._seen.get(name), self._store.stamp(name)
        if before and before.stamp == stamp:
            return None
        if stamp is None:
            self._seen.pop(name, None)
            return Event("Forgotten", name, before.memory) if before else None
        now = self._read(name, stamp) if stamp.settled else None
        if now is None:
            self._unsettled.add(name)
            return None
        self._seen[name] = now
        if before and before.hash == now.hash:
            return None
        what = "Damaged" if now.problem else "Updated" if before else "Added"
        return Event(what, name, now.memory, now.problem)

    def _read(self, name: str, stamp: Stamp) -> _Seen | None:
        """Return what a file is now; None if it is gone."""
        try:
            text = self._store.text(name)
            memory = parse(text)
        except FileNotFoundError:
            return None
        except MalformedFile as error:
            return _Seen(stamp, hash(str(error)), problem=str(error))
        words = one_line(title(memory.content), _WORDS)
        return _Seen(stamp, hash(text), replace(memory, content=words))


def follow(base: Path, *, json: bool, begun: Callable[[], None]) -> None:
    """Show what happens to memories, as it happens, until Ctrl-C or until nobody reads it.

    Args:
        base: whose memories.
        json: whether as an object a line.
        begun: called as soon as nothing that happens can be missed.

    Raises:
        BrokenPipeError: whoever read it went away.
        StoreError: the directory cannot be read.
    """
    follower = Follower(Store(base))
    begun()
    note(dim("What happens from now on is shown here; Ctrl-C ends it."))
    while True:
        began = time.thread_time()
        for event in follower.look():
            _show(event, timestamp(present(), "seconds"), json=json)
        wait(max(LOOK_SECONDS, _REST * (time.thread_time() - began)))


def _show(event: Event, when: str, *, json: bool) -> None:
    if json:
        out_json(_fields(event, when), in_one_line=True)
        return
    head = f"{minute(when)}  {event.what:9}  "
    if event.memory:
        memory = visible(event.memory)
        identity, words = memory.id, f"{memory.agent}, {memory.user}: {memory.content}"
    else:
        identity, words = "", f"files/{event.name}"
        words = f"{words}: {event.problem}" if event.problem else words
    room = width() - columns(head) - max(columns(identity), 8) - 2
    words = one_line(words, max(room, 20) if is_terminal() else 4 * _WORDS)
    out(f"{dim(head)}{bold(f'{identity:8}')}  {words}")


def _fields(event: Event, when: str) -> dict[str, Any]:
    memory = event.memory
    return {
        "time": when,
        "what": event.what.lower(),
        "file": event.name,
        "id": memory.id if memory else None,
        "agent": memory.agent if memory else None,
        "user": memory.user if memory else None,
        "content": memory.content if memory else None,
        "problem": event.problem,
    }
