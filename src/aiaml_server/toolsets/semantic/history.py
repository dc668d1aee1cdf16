"""What was updated, merged and deleted in the last 30 days, so that it can be undone.

Each change holds the rows as they were before. It is written in the same transaction as what it
changes, and purged when a memory is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.semantic.db import Database
from aiaml_server.toolsets.semantic.errors import NothingToUndo
from aiaml_server.toolsets.semantic.models import (
    sha256_hex,
    sql_now,
    to_iso,
    to_json,
    to_sql_timestamp,
)

DAYS = 30
_MICROSECONDS = DAYS * 86_400_000_000


class Change(NamedTuple):
    """A change that can be undone.

    Attributes:
        id: its database and number there, `project#5`.
        at: when, as ISO 8601 in UTC.
        act: `update`, `merge` or `delete`.
        memory_id: the memory that was changed or deleted.
        before: the rows as they were, `memory_id`'s first.
    """

    id: str
    at: str | None
    act: str
    memory_id: str
    before: Sequence[Mapping[str, Any]]

    def touches(self, number: int) -> bool:
        """Return whether it changed or deleted a memory."""
        return any(row["id"] == number for row in self.before)


def record_change(database: Database, act: str, before: Sequence[Mapping[str, Any]]) -> str:
    """Record a change in the transaction that makes it; return its id.

    Args:
        database: it is being written.
        act: see `Change`.
        before: the rows as they were, that of the changed memory first.
    """
    _delete_old(database)
    database.fetch(
        "INSERT INTO changes (at, act, memory_id, before) VALUES (?, ?, ?, ?)",
        (sql_now(), act, before[0]["id"], to_json(before)),
    )
    return f"{database.scope}#{database.last_id()}"


def list_changes(database: Database) -> list[Change]:
    """Return a database's changes of the last 30 days, newest first."""
    query = "SELECT id, at, act, memory_id, before FROM changes WHERE at >= ? ORDER BY id DESC"
    scope = database.scope
    return [
        Change(f"{scope}#{number}", to_iso(at), act, f"{scope}:{memory_id}", json.loads(before))
        for number, at, act, memory_id, before in database.fetch(query, (_oldest(),))
    ]


def undo(database: Database, change: Change) -> list[int]:
    """Put the rows of a change back as they were, in a transaction; return their numbers.

    Raises:
        NothingToUndo: it was undone already, or a row was changed since, or its text was stored
            again as another memory.
    """
    numbers = [row["id"] for row in change.before]
    changes = list_changes(database)
    if change not in changes:
        raise NothingToUndo(f"{change.id} was undone already")
    for later in changes[: changes.index(change)]:
        if any(map(later.touches, numbers)):
            reason = f"{change.memory_id} was changed again since; undo {later.id} first"
            raise NothingToUndo(reason)
    same = "SELECT id FROM memories WHERE content_hash = ? AND id != ?"
    for row in change.before:
        for (other,) in database.fetch(same, (sha256_hex(row["content"]), row["id"])):
            raise NothingToUndo(f"its text was stored again, as {database.scope}:{other}")
        if database.row(row["id"]):
            database.update(row["id"], row)
        else:
            database.insert(row)
    _delete(change, database)
    return numbers


def purge(database: Database, number: int) -> int:
    """Delete every change that holds a memory's text; return how many could be undone."""
    _delete_old(database)
    changes = [change for change in list_changes(database) if change.touches(number)]
    for change in changes:
        _delete(change, database)
    return len(changes)


def _delete(change: Change, database: Database) -> None:
    database.fetch("DELETE FROM changes WHERE id = ?", (change.id.partition("#")[2],))


def _delete_old(database: Database) -> None:
    database.fetch("DELETE FROM changes WHERE at < ?", (_oldest(),))


def _oldest() -> str:
    """Return the time from which on changes are kept."""
    return to_sql_timestamp(now_micros() - _MICROSECONDS)
