"""The compartments, as people who write agents use them."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from aiaml_server.errors import InvalidInput
from aiaml_server.timestamps import format_timestamp, now_micros
from aiaml_server.toolsets.compartments.entries import (
    ARGUMENTS,
    COMPARTMENTS,
    FILE,
    LIMIT,
    SCOPES,
    Entry,
    check_expires,
    check_text,
    check_values,
    fitting,
    is_limit,
    is_session,
    ranked,
    refuse,
)
from aiaml_server.toolsets.compartments.failures import LimitExceeded, NotFound
from aiaml_server.toolsets.compartments.file import Content, File, Place
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.owners import leaves_directory

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Self

    from aiaml_server.toolsets.compartments.tools import Function

    Given = ParamSpec("Given")
Result = TypeVar("Result")


def twin(verb: Callable[Given, Result]) -> Callable[Given, Awaitable[Result]]:
    """Return the same verb for asyncio: it runs in a thread, since a change waits for the disk."""

    @wraps(verb)
    async def called(*args: Given.args, **named: Given.kwargs) -> Result:
        import asyncio  # noqa: PLC0415 (who does without waits for less)

        return await asyncio.to_thread(verb, *args, **named)

    return called


class Saved(NamedTuple):
    """What `save` did: which entry, and whether it is new."""

    id: str
    created: bool


class Found(NamedTuple):
    """What `get` found: a page of entries, and how many there are in all."""

    entries: list[Entry]
    total: int


class Compartments:
    """Run, session and plan memory. One `with` is a run; every method is safe in any thread.

    `async with` is one as well, and each verb has a twin for asyncio: `await memory.asave(…)`.
    Failures are `InvalidInput` for wrong values, and `NotFound`, `LimitExceeded`, `Busy` and
    `DiskError`; whatever fails has changed nothing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = FILE,
        *,
        session: str = "default",
        plan_scope: str = "session",
        limit: int | Mapping[str, int] = LIMIT,
        changed: Callable[[], object] | None = None,
        check_secrets: bool = True,
    ) -> None:
        """Name the file; nothing is read or made before the `with`.

        Args:
            path: the JSON file that holds all compartments; a relative one must not lead
                elsewhere by a link.
            session: whose session memory it is; everyone who names it shares it.
            plan_scope: "session" or "run": whose the plan is.
            limit: characters that each compartment may hold, or a number for some of them.
            changed: called when the run memory has changed.
            check_secrets: whether the tools warn of what seems to hold a secret.

        Raises:
            InvalidInput: one of them is not what it must be.
        """
        limits = limit if isinstance(limit, Mapping) else dict.fromkeys(COMPARTMENTS, limit)
        fit = {
            "path": isinstance(path, (str, os.PathLike))
            and isinstance(named := os.fspath(path), str)
            and named not in ("", ".")
            and "\0" not in named,
            "session": is_session(session),
            "plan_scope": plan_scope in SCOPES,
            "limit": set(limits) <= set(COMPARTMENTS) and all(map(is_limit, limits.values())),
            "changed": changed is None or callable(changed),
        }
        for name in (name for name, fits in fit.items() if not fits):
            raise InvalidInput(name, f"must be {ARGUMENTS[name]}")
        if not os.path.isabs(path) and (found := leaves_directory(os.fspath(path))):  # noqa: PTH117
            raise InvalidInput("path", f"is {shorten(os.fspath(path))!r}: {found}")
        self._limits = {each: limits.get(each, LIMIT) for each in COMPARTMENTS}
        self._file = File(Path(os.path.realpath(path)))
        self._begun = False
        self._process = os.getpid()
        self._session, self._plan_scope = session, plan_scope
        self._changed = changed
        self.check_secrets = check_secrets
        self._accesses: dict[tuple[Place, str], int] = {}
        self._cleared: dict[tuple[Place, str], Entry] = {}
        self._lock = threading.RLock()
        self._name_run()

    def _name_run(self) -> None:
        """Give the next run a name of its own."""
        self._run = secrets.token_hex(8)
        of_session, of_run = ("sessions", self._session), ("runs", self._run)
        self._places: dict[str, Place] = {
            "run": (*of_run, "run"),
            "session": (*of_session, "session"),
            "plan": (*(of_session if self._plan_scope == "session" else of_run), "plan"),
        }

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def begin_run(self) -> None:
        """End the run and begin another: its memory is empty."""
        with self._lock:
            self.close()
            self._name_run()
            self.open()
        self._tell("run")

    def open(self) -> None:
        """Begin the run; what runs have left whose process is gone is cleared."""
        self._process = os.getpid()
        self._begun = True  # also where the file cannot be used now: it may be later
        self._file.open_run(self._run)

    def close(self) -> None:
        """End the run: its memory is gone. A process that was forked off cannot end it."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._begun = False
            try:
                if any(place[0] == "sessions" for place, _ in self._accesses):
                    with self._file.changing() as content:
                        self._count_accesses(content)
            finally:
                self._file.close_run(self._run)

    def notices(self) -> list[str]:
        """Return what a person should be told, such as that a damaged file was set aside; once."""
        with self._lock:
            told, self._file.notices = self._file.notices, []
            return told

    # --- the operations ---------------------------------------------------------------------------

    def save(
        self,
        compartment: str,
        content: str | None = None,
        *,
        id: str | None = None,  # noqa: A002 (the specification's word)
        category: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
        priority: int | None = None,
        expires: str | None = None,
    ) -> Saved:
        """Save an entry, or change the one with an id: then only what is given is changed.

        With the id of an entry that this object has cleared, it is brought back.

        Args:
            compartment: "run", "session" or "plan".
            content: what is remembered.
            id: of the entry that is changed.
            category: what kind of thing it is; empty takes it away, as for those that follow.
            tags: words to find it by.
            metadata: anything else, as texts.
            priority: 1 to 10; 5 where none is given.
            expires: when it is forgotten: a date or time in ISO 8601, or from now on, as "2h".

        Raises:
            InvalidInput: a value is not what it must be.
            NotFound: no entry of the compartment has the id.
            LimitExceeded: the compartment would hold too much.
        """
        place = self._place(compartment)
        values = check_values(category, tags, metadata, priority)
        values["expires_at"] = check_expires(expires)
        check_text("id", id)
        said = check_text("content", content)
        if (said is None and id is None) or (said is not None and not said.strip()):
            raise refuse("content")
        with self._in_run(), self._file.changing() as whole:
            whole.forget_expired()
            entries = dict(whole.entries.get(place, {}))
            before: Entry | None
            now = format_timestamp(now_micros())
            if id is None:
                known = whole.ids()
                new = next(
                    each for each in iter(lambda: secrets.token_hex(4), "") if each not in known
                )
                before = Entry(new, "", created_at=now)
            elif not (before := entries.get(id) or self._cleared.get((place, id))):
                raise NotFound(f"the {compartment} memory has no entry {shorten(id)!r}")
            entry = before.changed(content=content, updated_at=now, **values)
            self._check_limit(compartment, entries, entry)
            entries[entry.id] = entry
            whole.put(place, entries)
            self._count_accesses(whole)
            self._cleared.pop((place, entry.id), None)
        self._tell(compartment)
        return Saved(entry.id, id is None)

    def get(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, str] | None = None,
        query: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Found:
        """Return the entries that fit all that is given; all entries where nothing is.

        Of a query, some word must occur in content, category, tags or metadata; the best fit comes
        first, as `ranked` has it. Without one the highest priority does, then the newest.

        Raises:
            InvalidInput: a value is not what it must be.
        """
        place = self._place(compartment)
        wanted = check_values(category, tags, metadata)
        check_text("id", id)
        said = check_text("query", query) or ""
        if limit is not None and (type(limit) is not int or limit < 1):
            raise refuse("limit")
        if type(offset) is not int or offset < 0:
            raise refuse("offset")
        with self._in_run():
            found = fitting(
                self._living(place), id, wanted["category"], wanted["tags"], wanted["metadata"]
            )
            if said.strip():
                found = ranked(found, said)
            else:
                found.sort(key=lambda each: (each.priority, each.updated_at), reverse=True)
            page = found[offset : None if limit is None else offset + limit]
            for each in page:
                key = (place, each.id)
                self._accesses[key] = self._accesses.get(key, 0) + 1
            return Found([self._counted(place, each) for each in page], len(found))

    def words(self, compartment: str) -> tuple[list[str], list[str]]:
        """Return which categories and which tags the entries of a compartment have, sorted.

        Raises:
            InvalidInput: there is no such compartment.
        """
        place = self._place(compartment)
        with self._in_run():
            entries = self._living(place)
        tags = {tag for each in entries for tag in each.tags}
        return sorted({each.category for each in entries} - {""}), sorted(tags)

    def clear(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> int:
        """Delete the entries that fit all that is given, or the whole compartment; say how many.

        Until this object is gone, `save` with the id of one brings it back.

        Raises:
            InvalidInput: a filter is empty, which might mean all or nothing; or a value is wrong.
        """
        return len(self.clear_ids(compartment, id=id, category=category, tags=tags))

    def clear_ids(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> list[str]:
        """Do what `clear` does; return the ids of what was deleted."""
        place = self._place(compartment)
        values = check_values(category, tags)
        category, tags = values["category"], values["tags"]
        check_text("id", id)
        for name, value in (("id", id), ("category", category), ("tags", tags)):
            if value is not None and not value:
                raise InvalidInput(
                    name, "must not be empty; leave it out to clear the whole compartment"
                )
        with self._in_run():
            with self._file.changing() as whole:
                whole.forget_expired()
                entries = whole.entries.get(place, {})
                gone = {each.id: each for each in fitting(entries.values(), id, category, tags)}
                left = {name: each for name, each in entries.items() if name not in gone}
                whole.put(place, left)
                self._accesses = {
                    key: count
                    for key, count in self._accesses.items()
                    if key[0] != place or key[1] not in gone
                }
                self._count_accesses(whole)
            self._cleared |= {(place, name): each for name, each in gone.items()}
            if gone:
                self._tell(compartment)
        return list(gone)

    def run_text(self) -> str:
        """Return the run memory as text to be put into each call of the model; empty for none.

        The order is that in which the entries were made, so that the text's beginning stays.

        Raises:
            InvalidInput: the run has not begun, or has ended.
        """
        with self._in_run():
            entries = self._living(self._places["run"])
        if not entries:
            return ""
        lines = [f"- [{each.id}] {_labelled(each)}" for each in entries]
        return "\n".join(("Memory of this run:", *lines))

    def tools(self) -> list[Function]:
        """Return the three tools as plain functions with their JSON schemas, for any framework."""
        from aiaml_server.toolsets.compartments.tools import functions  # noqa: PLC0415 (imports pydantic)

        return functions(self)

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Return for each compartment how many entries, how many characters, and the limit."""
        found = {}
        for name, place in self._places.items():
            entries = self._living(place)
            size = sum(each.size for each in entries)
            found[name] = (len(entries), size, self._limits[name])
        return found

    aopen = twin(open)  # noqa: A003 (the verb above)
    aclose = twin(close)
    asave = twin(save)
    aget = twin(get)
    aclear = twin(clear)
    awords = twin(words)
    arun_text = twin(run_text)
    ausage = twin(usage)
    abegin_run = twin(begin_run)

    @contextmanager
    def _in_run(self) -> Iterator[None]:
        """Be the only thread in the run.

        Raises:
            InvalidInput: it has not begun, or has ended.
        """
        with self._lock:
            if not self._begun:
                raise InvalidInput(
                    "compartment",
                    "its run has not begun or has ended; it is used inside of the `with`",
                )
            yield

    def _living(self, place: Place) -> list[Entry]:
        """Return the entries of a compartment whose time is not over."""
        now = now_micros()
        entries = self._file.read().entries.get(place, {})
        return [each for each in entries.values() if not each.has_expired(now)]

    # --- parts ------------------------------------------------------------------------------------

    def _place(self, compartment: str) -> Place:
        if not isinstance(compartment, str) or compartment not in self._places:
            raise refuse("compartment")
        return self._places[compartment]

    def _check_limit(self, compartment: str, entries: Mapping[str, Entry], entry: Entry) -> None:
        """See that an entry fits; what is made smaller may be saved whatever the limit is.

        Raises:
            LimitExceeded: it does not; with the entries without which it would, of the others.
        """
        used = sum(each.size for each in entries.values())
        others = [each for each in entries.values() if each.id != entry.id]
        held = sum(each.size for each in others)
        allowed = self._limits[compartment]
        missing = held + entry.size - allowed
        if missing <= 0 or entry.size <= used - held:
            return
        if entry.size > allowed:
            raise LimitExceeded(compartment, used, allowed, entry.size, ())
        others.sort(key=lambda each: (each.priority, each.updated_at))
        enough: list[Entry] = []
        room = 0
        while room < missing:
            enough.append(others[len(enough)])
            room += enough[-1].size
        for each in reversed(list(enough)):  # the most important stay where the rest suffices
            if room - each.size >= missing:
                enough.remove(each)
                room -= each.size
        raise LimitExceeded(compartment, used, allowed, held + entry.size, enough)

    def _counted(self, place: Place, entry: Entry) -> Entry:
        more = self._accesses.get((place, entry.id), 0)
        return entry.changed(access_count=entry.access_count + more)

    def _count_accesses(self, whole: Content) -> None:
        """Put what was read since the last write into what is written now."""
        for place in {place for place, _ in self._accesses}:
            entries = whole.entries.get(place, {})
            if entries:
                counted = {name: self._counted(place, each) for name, each in entries.items()}
                whole.put(place, counted)
        self._accesses.clear()

    def _tell(self, compartment: str) -> None:
        if compartment == "run" and self._changed:
            self._changed()


def _labelled(entry: Entry) -> str:
    label = f"{entry.category}: " if entry.category else ""
    tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
    return f"{label}{entry.content}{tags}".replace("\n", "\n  ")
