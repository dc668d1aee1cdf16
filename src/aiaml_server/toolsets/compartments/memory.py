"""The compartments, as people who write agents use them."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.errors import InvalidInput
from aiaml_server.moments import present, timestamp
from aiaml_server.toolsets.compartments.entries import (
    ARGUMENTS,
    COMPARTMENTS,
    FILE,
    LIMIT,
    Entry,
    check_values,
    fitting,
    is_limit,
    is_scope,
    is_session,
    refuse,
)
from aiaml_server.toolsets.compartments.failures import LimitExceeded, NotFound
from aiaml_server.toolsets.compartments.file import Content, File, Place
from aiaml_server.toolsets.owners import leads_elsewhere

if TYPE_CHECKING:
    from typing_extensions import Self

    from aiaml_server.toolsets.compartments.tools import Function


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
            "plan_scope": is_scope(plan_scope),
            "limit": set(limits) <= set(COMPARTMENTS) and all(map(is_limit, limits.values())),
            "changed": changed is None or callable(changed),
        }
        for name in (name for name, fits in fit.items() if not fits):
            raise InvalidInput(name, f"must be {ARGUMENTS[name]}")
        if not os.path.isabs(path) and (found := leads_elsewhere(os.fspath(path))):  # noqa: PTH117
            raise InvalidInput("path", f"is {os.fspath(path)!r}: {found}")
        self._limits = {each: limits.get(each, LIMIT) for each in COMPARTMENTS}
        self._file = File(Path(os.path.realpath(path)))
        self._begun = False
        self._run = secrets.token_hex(8)
        self._changed = changed
        self.check_secrets = check_secrets
        self._accesses: dict[tuple[Place, str], int] = {}
        self._lock = threading.RLock()
        self._places: dict[str, Place] = {
            "run": ("runs", self._run, "run"),
            "session": ("sessions", session, "session"),
            "plan": ("sessions", session, "plan")
            if plan_scope == "session"
            else ("runs", self._run, "plan"),
        }

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Begin the run; what runs have left whose process is gone is cleared."""
        self._begun = True  # also where the file cannot be used now: it may be later
        self._file.open_run(self._run)

    def close(self) -> None:
        """End the run: its memory is gone."""
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
    ) -> Saved:
        """Save an entry, or change the one with an id: then only what is given is changed.

        Raises:
            InvalidInput: a value is not what it must be.
            NotFound: no entry of the compartment has the id.
            LimitExceeded: the compartment would hold too much.
        """
        place = self._place(compartment)
        values = check_values(category, tags, metadata, priority)
        if content is None and id is None:
            raise refuse("content")
        if content is not None and (not isinstance(content, str) or not content.strip()):
            raise refuse("content")
        with self._in_run(), self._file.changing() as whole:
            entries = dict(whole.entries.get(place, {}))
            before = entries.get(id) if id is not None else None
            if id is not None and before is None:
                raise NotFound(f"the {compartment} memory has no entry {id!r}")
            now = timestamp(present())
            if before is None:
                known = whole.ids()
                new = next(
                    each for each in iter(lambda: secrets.token_hex(4), "") if each not in known
                )
                before = Entry(new, "", created_at=now)
            entry = before.changed(content=content, updated_at=now, **values)
            self._check_limit(compartment, entries, entry)
            entries[entry.id] = entry
            whole.put(place, entries)
            self._count_accesses(whole)
        self._tell(compartment)
        return Saved(entry.id, id is None)

    def get(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
        query: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> Found:
        """Return the entries that fit all that is given; all entries where nothing is.

        A query's words must each occur in content, category, tags or metadata. The order: most
        occurrences, then highest priority, then newest.

        Raises:
            InvalidInput: a value is not what it must be.
        """
        place = self._place(compartment)
        wanted = check_values(category, tags, None, None)
        if limit is not None and (type(limit) is not int or limit < 1):
            raise refuse("limit")
        if type(offset) is not int or offset < 0:
            raise refuse("offset")
        if query is not None and not isinstance(query, str):
            raise refuse("query")
        words = (query or "").lower().split()
        with self._in_run():
            entries = self._file.read().entries.get(place, {})
            fit = fitting(entries.values(), id, wanted["category"], wanted["tags"])
            ranked = [(each.occurrences(words) if words else 0, each) for each in fit]
            found = [pair for pair in ranked if pair[0] or not words]
            found.sort(key=lambda pair: pair[1].updated_at, reverse=True)
            found.sort(key=lambda pair: (-pair[0], -pair[1].priority))
            page = found[offset : None if limit is None else offset + limit]
            for _, each in page:
                key = (place, each.id)
                self._accesses[key] = self._accesses.get(key, 0) + 1
            return Found([self._counted(place, each) for _, each in page], len(found))

    def clear(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> int:
        """Delete the entries that fit all that is given, or the whole compartment; say how many.

        Raises:
            InvalidInput: a filter is empty, which might mean all or nothing; or a value is wrong.
        """
        place = self._place(compartment)
        values = check_values(category, tags, None, None)
        category, tags = values["category"], values["tags"]
        for name, value in (("id", id), ("category", category), ("tags", tags)):
            if value is not None and not value:
                raise InvalidInput(
                    name, "must not be empty; leave it out to clear the whole compartment"
                )
        with self._in_run():
            with self._file.changing() as whole:
                entries = whole.entries.get(place, {})
                gone = {each.id for each in fitting(entries.values(), id, category, tags)}
                left = {name: each for name, each in entries.items() if name not in gone}
                whole.put(place, left)
                self._accesses = {
                    key: count
                    for key, count in self._accesses.items()
                    if key[0] != place or key[1] not in gone
                }
                self._count_accesses(whole)
            if gone:
                self._tell(compartment)
        return len(gone)

    def run_text(self) -> str:
        """Return the run memory as text to be put into each call of the model; empty for none.

        The order is that in which the entries were made, so that the text's beginning stays.

        Raises:
            InvalidInput: the run has not begun, or has ended.
        """
        with self._in_run():
            entries = self._file.read().entries.get(self._places["run"], {})
        if not entries:
            return ""
        lines = [f"- [{each.id}] {_labelled(each)}" for each in entries.values()]
        return "\n".join(("Memory of this run:", *lines))

    def tools(self) -> list[Function]:
        """Return the three tools as plain functions with their JSON schemas, for any framework."""
        from aiaml_server.toolsets.compartments.tools import functions  # noqa: PLC0415 (imports pydantic)

        return functions(self)

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Return for each compartment how many entries, how many characters, and the limit."""
        content = self._file.read()
        found = {}
        for name, place in self._places.items():
            entries = content.entries.get(place, {})
            size = sum(each.size for each in entries.values())
            found[name] = (len(entries), size, self._limits[name])
        return found

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

    # --- parts ------------------------------------------------------------------------------------

    def _place(self, compartment: str) -> Place:
        if not isinstance(compartment, str) or compartment not in self._places:
            raise refuse("compartment")
        return self._places[compartment]

    def _check_limit(self, compartment: str, entries: Mapping[str, Entry], entry: Entry) -> None:
        used = sum(each.size for each in entries.values())
        others = used - (entries[entry.id].size if entry.id in entries else 0)
        allowed = self._limits[compartment]
        if others + entry.size > allowed and entry.size > used - others:
            least = min((each.priority for each in entries.values()), default=0)
            oldest = sorted(
                (each for each in entries.values() if each.priority == least),
                key=lambda each: each.updated_at,
            )
            raise LimitExceeded(compartment, used, allowed, others + entry.size, oldest)

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
