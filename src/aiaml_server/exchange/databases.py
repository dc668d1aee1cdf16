"""SQLite databases that hold memories: of our toolset `semantic`, and of two other programs.

Read is a copy, in which nothing can be written or computed. The tables are those of
github.com/doobidoo/mcp-memory-service, `storage/sqlite_vec.py` (May 2026), and of
github.com/thedotmack/claude-mem, `services/sqlite/SessionStore.ts` (August 2026).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.errors import MalformedFile, os_reason
from aiaml_server.exchange.found import Note, Skip
from aiaml_server.exchange.jsonl import Record
from aiaml_server.exchange.records import Fields, note_of
from aiaml_server.exchange.walk import beginning, place
from aiaml_server.files import read_regular

if TYPE_CHECKING:
    import sqlite3

_MOST_DATABASE = 256 * 1024 * 1024  # bytes: some 60,000 memories
_MOST_VALUE = 1024 * 1024  # bytes: of a text of 50,000 characters, and of its row
_MOST_COLUMNS = 100  # of a table of theirs
_MOST_PART = 16 * 1024  # bytes of a part of their schema
_MOST_SCHEMA = 0.1  # seconds that SQLite may take for all of it, where names alone may take minutes
_STEPS_AT_ONCE = 70  # of its machine, after which it is looked: some ten parts of a schema
_FIRST = -(2**63) - 1  # before every number of a row


class Kept(NamedTuple):
    """How a program keeps its memories.

    Attributes:
        names: paths below a source at which its database may be; "" for the source itself.
        tables: those that tell it from others.
        read: the tables whose rows are memories.
        fields: which column says what.
        lists: columns that hold a list as JSON.
        left_out: columns that say nothing to anybody else.
    """

    names: tuple[str, ...]
    tables: frozenset[str]
    read: tuple[str, ...]
    fields: Fields
    lists: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


_KEPT = {
    "semantic": Kept(
        ("", "db", ".memory/db"),
        frozenset({"memories"}),
        ("memories",),
        Fields("content", "", "tags+category", "created_at"),
        ("tags", "usage_contexts"),
        ("content_hash", "normalized_hash", "search_terms", "extra", "embedding_model",
         "embedding_model_version", "embedding_dimension"),
    ),
    "mcp-memory-service": Kept(
        ("", "sqlite_vec.db"),
        frozenset({"memories", "memory_embeddings"}),
        ("memories",),
        Fields("content", "", "tags+memory_type", "created_at"),
        (),
        ("content_hash", "created_at_iso", "updated_at_iso", "updated_at", "deleted_at"),
    ),
    "claude-mem": Kept(
        ("", "claude-mem.db"),
        frozenset({"observations", "session_summaries"}),
        ("observations", "session_summaries"),
        Fields(
            "narrative+text+facts+request+investigated+learned+completed+next_steps+notes",
            "title",
            "concepts+type+project",
            "created_at",
        ),
        ("facts", "concepts"),
        ("memory_session_id", "sdk_session_id", "created_at_epoch", "prompt_number",
         "discovery_tokens", "content_hash", "generated_by_model"),
    ),
}  # fmt: skip


def database_below(source: Path, kind: str) -> Path | None:
    """Return the database of a kind that a source is, or has; None where there is none."""
    for name in _KEPT[kind].names:
        path = source / name if name else source
        if path.is_file() and beginning(path, 15) == "SQLite format 3" and kind_of(path) == kind:
            return path
    return None


def kind_of(path: Path) -> str | None:
    """Return whose a database is, by the names of its tables; None where it is nobody's."""
    import sqlite3  # noqa: PLC0415 (only these kinds need it)

    with suppress(sqlite3.Error, ValueError), closing(_opened(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = tables.fetchmany(500)
        names = {each[0].decode("utf-8", "replace") for each in found}
        for kind in reversed(_KEPT):  # ours has what others have besides
            if _KEPT[kind].tables <= names:
                return kind
        return None
    return "semantic"  # damaged, as its reader says


def rows_of(source: Path, kind: str) -> Iterator[Note | Skip]:
    """Read the memories of a database, a note for each row; what cannot be read is skipped."""
    import sqlite3  # noqa: PLC0415

    from aiaml_server.exchange.archives import work_directory  # noqa: PLC0415 (zips are slow to load)

    path = database_below(source, kind) or source
    where = place(path.parent.parent, path)
    kept = _KEPT[kind]
    with work_directory() as below:
        copy = Path(below, "db")
        try:
            _check_written(path)
            copy.write_bytes(read_regular(str(path), _MOST_DATABASE))
            with closing(_opened(copy)) as database:
                for table in kept.read:
                    named = f"{where}:" if table == kept.read[0] else f"{where}:{table}/"
                    for number, row in _rows(database, table, kept):
                        if isinstance(row, str):
                            yield Skip(f"{named}{number}", row)
                        elif row.get("deleted_at") is None:
                            record = Record(f"{named}{number}", _told(row, kept))
                            yield note_of(record, path, kind, _held(row, kept.fields))
        except (MalformedFile, ValueError) as error:
            yield Skip(where, str(error))
        except OSError as error:
            yield Skip(where, f"it cannot be read: {os_reason(error)}")
        except sqlite3.Error as error:
            whose = "the toolset semantic" if kind == "semantic" else kind
            yield Skip(where, f"it is no database of {whose}: {error}")


def _told(row: dict[str, Any], kept: Kept) -> dict[str, Any]:
    """Return a row as a record has it: times as text, no columns of none's concern."""
    told = {name: value for name, value in row.items() if name not in kept.left_out}
    for name in kept.fields.topics.split("+"):
        if isinstance(listed := told.get(name), str):
            told[name] = [each.strip() for each in listed.split(",")]
    made = told.get(kept.fields.timestamp)
    return {**told, kept.fields.timestamp: str(int(made)) if isinstance(made, float) else made}


def _held(row: dict[str, Any], fields: Fields) -> Fields:
    """Return the fields without the columns that a row has nothing in, or has not."""
    return Fields(*(
        "+".join(name for name in way.split("+") if row.get(name)) or way.partition("+")[0]
        for way in fields
    ))  # fmt: skip


def _opened(path: Path) -> sqlite3.Connection:
    import sqlite3  # noqa: PLC0415

    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.text_factory = bytes  # a text may be no UTF-8
    if sys.version_info >= (3, 11):  # before, the file's size is the limit
        database.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, _MOST_COLUMNS)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_PART)
    end = thread_time() + _MOST_SCHEMA
    database.set_progress_handler(lambda: thread_time() > end, _STEPS_AT_ONCE)
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 0")  # at which it reads the schema
    except sqlite3.Error:
        database.close()
        raise
    database.set_progress_handler(None, 0)
    if sys.version_info >= (3, 11):
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _check_written(path: Path) -> None:
    """See that all of a database is in its file.

    Raises:
        ValueError: something of it, or planted to be taken for that, lies beside it.
    """
    for suffix in ("-journal", "-wal"):
        beside = path.with_name(path.name + suffix)
        if os.path.lexists(beside) and beside.lstat().st_size:
            raise ValueError(
                f"{beside.name} lies beside it, of a program that writes or was broken off; have"
                " that end, or move the file away"
            )


def _rows(
    database: sqlite3.Connection, table: str, kept: Kept
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each row's number and columns, or why that one is skipped.

    Raises:
        ValueError: the table could compute something.
        sqlite3.Error: it is not there, or damaged.
    """
    import sqlite3  # noqa: PLC0415

    (kind,) = database.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = ? AND type = 'table'"
        " AND sql LIKE 'CREATE TABLE %'",
        (table,),
    ).fetchone()
    columns = database.execute(f"PRAGMA table_xinfo({table})").fetchall()
    if columns and (not kind or any(hidden for *_, hidden in columns)):
        raise ValueError("its memories are no plain table, but would be computed")
    wanted = [each[1].decode("utf-8", "replace") for each in columns]
    quoted = ", ".join('"' + each.replace('"', '""') + '"' for each in wanted)
    statement = f"SELECT {quoted or '*'} FROM {table} WHERE rowid = ?"  # noqa: S608 (quoted)
    last = _FIRST
    for (number,) in database.execute(f"SELECT rowid FROM {table} ORDER BY rowid"):  # noqa: S608
        if number <= last:  # a tree of pages may name one of them any number of times
            raise ValueError("it is damaged: its memories come again")
        last = number
        try:
            (row,) = database.execute(statement, (number,)).fetchall()
            values = [each.decode("utf-8") if isinstance(each, bytes) else each for each in row]
        except sqlite3.DataError:
            yield number, f"it is larger than {_MOST_VALUE >> 20} MiB"
        except UnicodeDecodeError:
            yield number, "it holds what is no text in UTF-8"
        else:
            value = dict(zip(wanted, values, strict=True))
            for name in kept.lists:
                with suppress(ValueError, TypeError, RecursionError):
                    value[name] = json.loads(value.get(name) or "[]")
            yield number, value
