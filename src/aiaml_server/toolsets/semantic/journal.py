"""What was updated, merged and deleted in the last 30 days, each of which can be undone.

It stands in the database itself (the table is `merges`, as versions before had only these in it),
so that a change and what it replaces are durable together. `forget` purges it of a memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.semantic import memory
from aiaml_server.toolsets.semantic.database import FIELDS, LAST, MOST_VALUE, Database, rows
from aiaml_server.toolsets.semantic.failures import InvalidInput, NothingToUndo

if TYPE_CHECKING:
    import apsw

FORGOTTEN = "forgotten"  # in place of a digest
DAYS = 30  # that a change can be undone
MOST_CHANGES = 10_000
MOST_TEXT = MOST_VALUE  # bytes
_SAID = ("content", "priority", "category", "tags", "source")
"""Those that a change was about; that a memory was used since does not count."""
_UPDATES = ("update", "undo")
_COUNTS = ("access_count", "last_accessed_at", "usage_contexts")
_NEWEST = ", ".join(
    (
        "SELECT id",
        *(memory.guarded(each) for each in ("at", "act", "kept")),
        *(memory.guarded(each, MOST_VALUE) for each in ("kept_as", "was", "removed")),
    )
)
_NEWEST += " FROM merges ORDER BY id DESC"
_ID = re.compile(r"(project|global)#(\d{1,18})")


class Change(NamedTuple):
    """One change.

    Attributes:
        id: its database and number there, `project#5`.
        at: when it was made, in UTC, as ISO 8601.
        act: `update`, `merge`, `delete`, or the `undo` of an update, which undoing it takes back.
        memory_id: what was changed or deleted, or is left of what was merged.
        was: its columns before; None where the table is damaged.
        removed: the columns of each memory that is gone.
    """

    id: str
    at: str
    act: str
    memory_id: str
    now: Mapping[str, Any]
    was: Mapping[str, Any]
    removed: Sequence[Mapping[str, Any]]

    @property
    def number(self) -> int:
        """Its number in the database."""
        return int(self.id.partition("#")[2])

    @property
    def kept(self) -> int:
        """The number of the memory."""
        return int(self.memory_id.partition(":")[2])


def fields_of(sql: apsw.Connection, number: int) -> dict[str, Any]:
    """Return a memory's row but for its vectors' author; nothing where there is none."""
    found = rows(sql, f"SELECT {', '.join(FIELDS)} FROM memories WHERE id = ?", (number,))
    return dict(zip(FIELDS, found[0], strict=True)) if found else {}


def as_text(value: Any) -> str:
    """Return a JSON value as the databases have it."""
    return json.dumps(value, ensure_ascii=False)


def row_of(draft: memory.Draft, project_id: str | None = None) -> dict[str, Any]:
    """Return the row of a new memory, which has no number yet."""
    created = draft.created or memory.now()
    return {
        "content": draft.content,
        "content_hash": memory.digest(draft.content),
        "folded": memory.folded(draft.content),
        "priority": draft.priority or "NORMAL",
        "category": draft.category,
        "tags": as_text(draft.tags),
        "project_id": project_id,
        "source": draft.source,
        "created_at": created,
        "updated_at": draft.updated or created,
        "access_count": draft.used,
        "last_accessed_at": draft.last_used,
        "usage_contexts": as_text(draft.contexts),
        "path": draft.path,
        "id": None,
    }


def note(
    sql: apsw.Connection,
    name: str,
    act: str,
    kept: int,
    was: Mapping[str, Any],
    removed: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Note what was there before a change, which was just made; return the change's id.

    Args:
        sql: a connection that is writing.
        name: the database's.
        act: see `Change`.
        kept: the number of the memory.
        was: its columns before.
        removed: those of each memory that is gone.

    Raises:
        InvalidInput: it is too much to be noted.
    """
    texts = [as_text(each) for each in (fields_of(sql, kept), was, list(removed))]
    if sum(len(each.encode()) for each in texts) > MOST_VALUE // 2:
        raise InvalidInput("merge: these are too long to be merged at once; merge fewer")
    oldest = memory.kept(now_micros() - DAYS * 86_400_000_000)
    sql.execute("DELETE FROM merges WHERE at < ?", (oldest,))
    sql.execute(
        "INSERT INTO merges (at, kept, kept_as, was, removed, act) VALUES (?, ?, ?, ?, ?, ?)",
        (memory.now(), kept, *texts, act),
    )
    return f"{name}#{sql.last_insert_rowid()}"


def changes(sql: apsw.Connection, name: str) -> list[Change]:
    """Return a database's changes that can be undone, the newest first; damaged ones are left out.

    What is older than 30 days counts no more, though it is only deleted at the next change; nor
    does what comes after `MOST_CHANGES`, or `MOST_TEXT` of them.
    """
    oldest = memory.shown(memory.kept(now_micros() - DAYS * 86_400_000_000)) or ""
    return [each for each in _newest(sql, name) if isinstance(each, Change) and each.at >= oldest]


def _newest(sql: apsw.Connection, name: str) -> Iterator[Change | int]:
    """Yield the newest changes, as many as are looked at, and the numbers of damaged ones."""
    size = 0
    for number, *held in sql.execute(f"{_NEWEST} LIMIT ?", (MOST_CHANGES,)):
        size += sum(len(each) for each in held if isinstance(each, bytes))
        if size > MOST_TEXT:
            break
        yield _change(name, number, held) or number


def _change(name: str, number: int, held: list[Any]) -> Change | None:
    """Return the change that a row holds; None where it is not as this program makes them."""
    kept = held.pop(2)
    at, act, *texts = (memory.decoded(each) or "" for each in held)
    if not isinstance(kept, int) or act not in (*_UPDATES, "merge", "delete"):
        return None
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidInput):
        now, was, removed = [json.loads(each) for each in texts]
        if len(removed) > MOST_CHANGES or not isinstance(now, dict):
            return None
        if all(map(_fits, removed if act == "delete" else [was, *removed])):
            when = memory.shown(at) or ""
            return Change(f"{name}#{number}", when, act, f"{name}:{kept}", now, was, removed)
    return None


def _fits(fields: Mapping[str, Any]) -> bool:
    """Say whether columns can be a memory's, which `undo` would write.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, InvalidInput: they cannot.
    """
    for name in FIELDS:
        value = fields[name]
        if name in ("id", "access_count") and (name, value) != ("id", None):  # it never had one
            if not isinstance(value, int) or not 0 <= value < LAST:
                return False
        elif value is not None and len(value.encode()) > memory.longest(name):
            return False
    memory.check_content(fields["content"])
    return bool(fields["content_hash"] == memory.digest(fields["content"]))


def numbered(change: str) -> tuple[str, int]:
    """Return the database and the number of a change.

    Raises:
        InvalidInput: it is no id of one.
    """
    match = _ID.fullmatch(change.strip())
    if not match:
        raise InvalidInput(
            "change: must be an id such as project#5", "`aiaml semantic history` tells them."
        )
    return match[1], int(match[2])


def undo(sql: apsw.Connection, database: Database, change: Change) -> list[int]:
    """Take a change back; return the numbers of the memories that are there again.

    Of a merge what was kept becomes what it was, unless it was changed since. A memory whose text
    was stored anew meanwhile becomes one with that, which is a change of its own.

    Args:
        sql: a connection that is writing.
        database: which it is of.
        change: one of `changes`.

    Raises:
        NothingToUndo: the memory was changed again since.
    """
    now, kept = fields_of(sql, change.kept), change.kept
    same = all(now.get(name) == change.now.get(name) for name in _SAID)
    is_update = change.act in _UPDATES
    if is_update and not same:
        raise NothingToUndo(
            f"{change.memory_id} was changed or deleted again since {change.id}",
            "Undo the later change first: `aiaml semantic history` tells them.",
        )
    if now and same:
        left_out = {"id", *(_COUNTS if is_update else ())}
        if change.was["content"] == now["content"]:
            left_out.add("content")  # its vectors stay
        values = {name: change.was[name] for name in FIELDS if name not in left_out}
        if anew := other(sql, change.was, kept):
            values |= joined(change.was, anew)
            sql.execute("UPDATE imports SET memory_id = ? WHERE memory_id = ?", (kept, anew["id"]))
            database.remove(sql, anew["id"])
        database.change(sql, kept, values)
        if anew:
            note(sql, database.name, "merge", kept, now, [anew])
        elif is_update:
            note(sql, database.name, "undo" if change.act == "update" else "update", kept, now)
    numbers = [kept] if now else []
    for each in change.removed:
        anew = other(sql, each, 0)
        if not anew:
            numbers.append(database.add(sql, each))
        elif change.act == "delete":
            numbers.append(anew["id"])
            database.change(sql, anew["id"], {**joined(anew, each), "updated_at": memory.now()})
            note(sql, database.name, "update", anew["id"], anew)
    sql.execute("DELETE FROM merges WHERE id = ?", (change.number,))
    return numbers


def other(sql: apsw.Connection, fields: Mapping[str, Any], but: int) -> dict[str, Any]:
    """Return the row of another memory that has a text; nothing where there is none."""
    same = "SELECT id FROM memories WHERE content_hash = ? AND id != ?"
    found = rows(sql, same, (fields["content_hash"], but))
    return fields_of(sql, found[0][0]) if found else {}


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of one memory that another of the same text adds to."""
    priorities = [each["priority"] for each in (one, other)]
    known = [each for each in priorities if each in memory.PRIORITIES]
    return {
        "tags": as_text(memory.united(memory.texts(one["tags"]), memory.texts(other["tags"]))),
        "priority": memory.highest(known or ["NORMAL"]),
        "category": one["category"] or other["category"],
    }


def purge(sql: apsw.Connection, number: int) -> None:
    """Forget every change that holds a memory's text, or may: those that count no more."""
    last = LAST
    for each in [*_newest(sql, "")]:
        last = each if isinstance(each, int) else each.number
        if isinstance(each, int) or number in (each.kept, *(one["id"] for one in each.removed)):
            sql.execute("DELETE FROM merges WHERE id = ?", (last,))
    sql.execute("DELETE FROM merges WHERE id < ?", (last,))
