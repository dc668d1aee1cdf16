"""The compartments, as programs use them."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.errors import DiskError, InvalidInput, NotFound, ToolError
from aiaml_server.timestamps import format_timestamp, now_micros
from aiaml_server.toolsets.compartments.entry import (
    Entry,
    check_compartment,
    filter_entries,
    invalid,
    make_entry,
    rank_entries,
)
from aiaml_server.toolsets.compartments.file import Entries, MemoryFile, Sessions
from aiaml_server.toolsets.compartments.settings import (
    COMPARTMENTS,
    DEFAULT_LIMIT,
    FILE_NAME,
    MAX_SESSION_NAME,
    PLAN_SCOPES,
)
from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.owners import leaves_directory

if TYPE_CHECKING:
    from typing_extensions import Self

    from aiaml_server.toolsets.compartments.tools import Function


class LimitExceeded(ToolError):  # noqa: N818 (the code that agents get)
    """A compartment would hold more characters than it may."""


class Saved(NamedTuple):
    """The id of a saved entry, and whether it is new."""

    id: str
    created: bool


class Found(NamedTuple):
    """A page of entries, and how many there are in all."""

    entries: list[Entry]
    total: int


class Usage(NamedTuple):
    """The entries, the characters and the limit of a compartment."""

    entries: int
    characters: int
    limit: int


class Compartments:
    """Run, session and plan memory; one `with` is one run.

    The run memory, and a plan that belongs to the run, are in this object. The session is in the
    file, which other processes may use at the same time. Every method may be called from any
    thread. Errors are `InvalidInput`, `NotFound`, `LimitExceeded`, `Busy` and `DiskError`; after an
    error, nothing has changed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = FILE_NAME,
        *,
        session: str = "default",
        plan_scope: str = "session",
        limit: int | Mapping[str, int] = DEFAULT_LIMIT,
        on_run_change: Callable[[], object] | None = None,
        check_secrets: bool = True,
    ) -> None:
        """Name the file; it is created by the first change of the session.

        Args:
            path: of the JSON file.
            session: whose session memory it is; all that name it share it.
            plan_scope: "session" or "run": to which a plan belongs.
            limit: characters that each compartment may hold, or a number for some of them.
            on_run_change: called after each change of the run memory.
            check_secrets: whether the tools warn of secrets.

        Raises:
            InvalidInput: an argument is wrong.
        """
        limits = dict(limit) if isinstance(limit, Mapping) else dict.fromkeys(COMPARTMENTS, limit)
        if not (1 <= len(session) <= MAX_SESSION_NAME and session.isprintable()):
            raise InvalidInput("session", f"must be 1 to {MAX_SESSION_NAME} printable characters")
        if plan_scope not in PLAN_SCOPES:
            raise InvalidInput("plan_scope", 'must be "session" or "run"')
        for name in set(limits) - set(COMPARTMENTS):
            raise InvalidInput("limit", f"names {name!r}; there are {', '.join(COMPARTMENTS)}")
        if min(limits.values(), default=1) < 1:
            raise InvalidInput("limit", 'must be from 1, or for example {"run": 2000}')
        if not Path(path).is_absolute() and (reason := leaves_directory(os.fspath(path))):
            raise InvalidInput("path", reason)
        self._limits = dict.fromkeys(COMPARTMENTS, DEFAULT_LIMIT) | limits
        self._file = MemoryFile(Path(os.path.realpath(path)))
        self._session = session
        self._in_run = {"run", "plan"} if plan_scope == "run" else {"run"}
        self._on_run_change = on_run_change
        self.check_secrets = check_secrets
        self._run: dict[str, Entries] | None = None
        self._access_counts: dict[tuple[str, str], int] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        self.begin_run()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_run()

    def begin_run(self) -> None:
        """Begin a run with an empty run memory; the last one ends."""
        with self._lock:
            self._run = {name: {} for name in self._in_run}
        self._notify("run")

    def end_run(self) -> None:
        """End the run: its memory is gone, and access counts of the session are written."""
        with self._lock:
            self._run = None
            if self._access_counts:
                with suppress(DiskError), self._file.change() as sessions:  # it may be read-only
                    self._count_accesses(sessions)

    def notices(self) -> list[str]:
        """Return messages for the person, each once, such as that the file is damaged."""
        with self._lock:
            notices, self._file.notices = self._file.notices, []
            return notices

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
        """Save an entry, or change the one with an id: only what is given changes.

        Args:
            compartment: "run", "session" or "plan".
            content: the text.
            id: of the entry to change.
            category: what kind of thing it is.
            tags: words to find it by.
            metadata: other properties.
            priority: 1 to 10; 5 by default.

        Raises:
            InvalidInput: a value is wrong.
            NotFound: the compartment has no entry with the id.
            LimitExceeded: the compartment would hold too much.
        """
        values = {
            "content": content,
            "category": category,
            "tags": None if tags is None else _as_tuple(tags),
            "metadata": None if metadata is None else dict(metadata),
            "priority": priority,
        }
        given = {name: value for name, value in values.items() if value is not None}
        now = format_timestamp(now_micros())
        with self._changing(compartment) as entries:
            if id is None:
                times = {"created_at": now, "updated_at": now}
                entry = make_entry(**{"id": _unused_id(entries), "content": "", **times, **given})
            elif id in entries:
                entry = make_entry(**{**dict(entries[id]), **given, "updated_at": now})
            else:
                raise NotFound(f"the {compartment} memory has no entry {shorten(str(id))!r}")
            self._check_limit(compartment, entries, entry)
            entries[entry.id] = entry
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
        """Return the entries that have all that is given, or all entries.

        With a query, a word of it must occur, and the best match comes first. Without one the
        highest priority comes first, then the newest.

        Raises:
            InvalidInput: a value is wrong.
        """
        if limit is not None and limit < 1:
            raise invalid("limit")
        if offset < 0:
            raise invalid("offset")
        with self._lock:
            entries = self._entries(compartment)
            found = filter_entries(entries.values(), id, category, tags, metadata)
            if query and query.strip():
                found = rank_entries(found, query)
            else:
                found.sort(key=lambda entry: (entry.priority, entry.updated_at), reverse=True)
            page = found[offset : None if limit is None else offset + limit]
            return Found([self._accessed(compartment, entry) for entry in page], len(found))

    def words(self, compartment: str) -> tuple[list[str], list[str]]:
        """Return all categories and all tags of a compartment, sorted."""
        with self._lock:
            entries = self._entries(compartment).values()
        categories = {entry.category for entry in entries} - {""}
        return sorted(categories), sorted({tag for entry in entries for tag in entry.tags})

    def clear(
        self,
        compartment: str,
        *,
        id: str | None = None,  # noqa: A002
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> list[str]:
        """Delete the entries that have all that is given, or the whole compartment; return ids.

        Raises:
            InvalidInput: a filter is empty, which could mean all or nothing, or a value is wrong.
        """
        for name, value in (("id", id), ("category", category), ("tags", tags)):
            if value is not None and not value:
                reason = "must not be empty; leave it out to clear the whole compartment"
                raise InvalidInput(name, reason)
        with self._changing(compartment) as entries:
            ids = [entry.id for entry in filter_entries(entries.values(), id, category, tags)]
            for entry_id in ids:
                del entries[entry_id]
        return ids

    def is_in_run(self, compartment: str) -> bool:
        """Return whether a compartment belongs to the run, and is in no file."""
        return compartment in self._in_run

    def run_text(self) -> str:
        """Return the run memory as text for each call of the model; empty if there is nothing.

        Entries are in the order in which they were made, so that the beginning stays the same.
        """
        with self._lock:
            entries = self._entries("run").values()
            if not entries:
                return ""
            return "\n".join(["Memory of this run:", *map(_as_line, entries)])

    def usage(self) -> dict[str, Usage]:
        """Return the usage of each compartment."""
        usage = {}
        for name in COMPARTMENTS:
            entries = self._entries(name).values()
            characters = sum(entry.size for entry in entries)
            usage[name] = Usage(len(entries), characters, self._limits[name])
        return usage

    def functions(self) -> list[Function]:
        """Return the three tools as plain functions with JSON schemas, for any framework."""
        from aiaml_server.toolsets.compartments.tools import functions  # noqa: PLC0415 (a cycle)

        return functions(self)

    def _entries(self, compartment: str) -> Entries:
        """Return the entries of a compartment by id.

        Raises:
            InvalidInput: there is no such compartment, or the run has not begun or has ended.
        """
        check_compartment(compartment)
        if self._run is None:
            raise InvalidInput("compartment", "can only be used inside of the `with` of a run")
        if compartment in self._in_run:
            return self._run[compartment]
        return self._file.read().get(self._session, {}).get(compartment, {})

    @contextmanager
    def _changing(self, compartment: str) -> Iterator[Entries]:
        """Yield a copy of a compartment's entries, which is stored if the body succeeds."""
        with self._lock:
            entries = dict(self._entries(compartment))
            if compartment in self._in_run:
                yield entries
                assert self._run is not None  # noqa: S101 (checked by _entries)
                self._run[compartment] = entries
            else:
                with self._file.change() as sessions:
                    parts = sessions.setdefault(self._session, {})
                    yield parts.setdefault(compartment, {})
                    self._count_accesses(sessions)
        self._notify(compartment)

    def _check_limit(self, compartment: str, entries: Entries, entry: Entry) -> None:
        """Raise an error if an entry does not fit; what becomes smaller always fits."""
        others = [other for other in entries.values() if other.id != entry.id]
        size = sum(other.size for other in others) + entry.size
        allowed = self._limits[compartment]
        before = entries.get(entry.id)
        if size <= allowed or (before and entry.size <= before.size):
            return
        if entry.size > allowed:
            raise LimitExceeded(
                f"this entry alone has {entry.size} characters, and the {compartment} memory may "
                f"hold {allowed}; shorten or split it"
            )
        others.sort(key=lambda other: (other.priority, other.updated_at))
        least = [f"{other.id} (priority {other.priority}, {other.size})" for other in others[:3]]
        raise LimitExceeded(
            f"the {compartment} memory would hold {size} of {allowed} characters; shorten the "
            "entry, or delete others with clear_memory. The least important are, with their "
            f"characters: {'; '.join(least)}"
        )

    def _accessed(self, compartment: str, entry: Entry) -> Entry:
        """Count an access, and return the entry with its count."""
        if compartment in self._in_run:
            assert self._run is not None  # noqa: S101 (checked by _entries)
            entry = entry.model_copy(update={"access_count": entry.access_count + 1})
            self._run[compartment][entry.id] = entry
            return entry
        key = compartment, entry.id
        self._access_counts[key] = self._access_counts.get(key, 0) + 1
        count = entry.access_count + self._access_counts[key]
        return entry.model_copy(update={"access_count": count})

    def _count_accesses(self, sessions: Sessions) -> None:
        """Write the access counts since the last change of the file."""
        parts = sessions.get(self._session, {})
        for (compartment, entry_id), count in self._access_counts.items():
            if entry := parts.get(compartment, {}).get(entry_id):
                update = {"access_count": entry.access_count + count}
                parts[compartment][entry_id] = entry.model_copy(update=update)
        self._access_counts.clear()

    def _notify(self, compartment: str) -> None:
        if compartment == "run" and self._on_run_change:
            self._on_run_change()


def _as_tuple(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise invalid("tags")
    return tuple(tags)


def _unused_id(entries: Entries) -> str:
    while (entry_id := secrets.token_hex(4)) in entries:
        pass
    return entry_id


def _as_line(entry: Entry) -> str:
    label = f"{entry.category}: " if entry.category else ""
    tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
    return f"- [{entry.id}] {label}{entry.content}{tags}".replace("\n", "\n  ")
