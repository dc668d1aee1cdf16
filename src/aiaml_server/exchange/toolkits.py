"""The memories of this package's other toolsets, read as the files that they are."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiaml_server.errors import MalformedFile, said_by_system
from aiaml_server.exchange.found import Note, Skip, label
from aiaml_server.exchange.jsonl import Record
from aiaml_server.exchange.notes import Style, notes_in
from aiaml_server.exchange.records import Fields, document, note_of
from aiaml_server.exchange.walk import beginning, markdown_below, place, read_text
from aiaml_server.files import copy_regular

if TYPE_CHECKING:
    import sqlite3

_SESSIONS = Path(".github", "agent-memory")
_ENTRY = Fields("content", "", "tags+category", "created_at")
_CITING = re.compile(r"mem-[\w-]{1,200}\.(?:md|markdown)")


# --- sessions ---------------------------------------------------------------------------------


def sessions_below(source: Path) -> Path | None:
    """Return the folder of a repository's session logs; None where there is none."""
    if source.name == "agent-memory" and source.is_dir():
        return source
    return source / _SESSIONS if (source / _SESSIONS).is_dir() else None


def sessions(source: Path, *, split: bool) -> Iterator[Note | Skip]:
    """Read the logs and summaries of each agent; what has no entry is skipped."""
    top = sessions_below(source) or source
    repository = [] if top == source else [label(source).rpartition("/")[2]]
    for path in markdown_below(top):
        if isinstance(path, Skip):
            yield path
        elif path.name == "_schema.md":
            yield Skip(place(top, path), "it says how the others are written, and is no memory")
        else:
            with suppress(ValueError):  # told below
                if not any(map(_is_entry, read_text(path).splitlines())):
                    yield Skip(place(top, path), "it has no entry")
                    continue
            agent = path.relative_to(top).parts[0] if path.parent != top else "sessions"
            style = Style("sessions", agent, split)
            yield from notes_in(top, path, style, [*repository, agent])


def _is_entry(line: str) -> bool:
    header = ("- Agent Name:", "- Date:", "- Session ID:")
    return bool(line.strip()) and not line.startswith(("#", *header))


# --- compartments -----------------------------------------------------------------------------


def is_compartments(value: object) -> bool:
    """Say whether a JSON document is the file of the toolset `compartments`."""
    return isinstance(value, dict) and "format" in value and bool({"runs", "sessions"} & {*value})


def compartments(path: Path) -> Iterator[Note | Skip]:
    """Read the entries of all runs, sessions and plans."""
    where = place(path, path)
    try:
        value = document(path)
    except ValueError as error:
        yield Skip(where, str(error))
        return
    for kind in ("runs", "sessions"):
        for owner, parts in _items(value.get(kind) if isinstance(value, dict) else None):
            for name, entries in _items(parts):
                for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
                    at = f"{where}:{owner}/{name}/{number}"
                    if isinstance(entry, dict):
                        told = {**entry, "compartment": name, kind[:-1]: owner}
                        record = Record(f"{where}:{number}", told)
                        yield note_of(record, path, "compartments", "compartments", _ENTRY)
                    else:
                        yield Skip(at, "it is no entry")


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


# --- semantic ---------------------------------------------------------------------------------

_DERIVED = ("content_hash", "embedding_model", "embedding_model_version", "embedding_dimension")
_MOST_DATABASE = 256 * 1024 * 1024  # bytes: some 60,000 memories
_MOST_VALUE = 1024 * 1024  # bytes: of a text of 50,000 characters, and of its row


def semantic_below(source: Path) -> Path | None:
    """Return the database of the toolset `semantic`: a file, or that of a directory `.memory`."""
    for path in (source, source / "db", source / ".memory" / "db"):
        if path.is_file() and beginning(path, 15) == "SQLite format 3":
            return path
    return None


def semantic(source: Path) -> Iterator[Note | Skip]:
    """Read the texts of the database: of a copy, in which nothing can be written or computed."""
    import sqlite3  # noqa: PLC0415 (only this kind needs it)
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    path = semantic_below(source) or source
    where = place(path.parent.parent, path)
    with TemporaryDirectory(prefix="aiaml-import-") as below:
        copy = Path(below, "db")
        try:
            _check_written(path)
            copy_regular(str(path), copy, _MOST_DATABASE)
            address = f"{copy.as_uri()}?mode=ro&immutable=1"
            with closing(sqlite3.connect(address, uri=True)) as database:
                for number, row in _semantic_rows(database):
                    at = f"{where}:{number}"
                    if isinstance(row, str):
                        yield Skip(at, row)
                    else:
                        yield note_of(Record(at, row), path, "semantic", "semantic", _ENTRY)
        except (MalformedFile, ValueError) as error:
            yield Skip(where, str(error))
        except OSError as error:
            yield Skip(where, f"it cannot be read: {said_by_system(error)}")
        except sqlite3.Error as error:
            yield Skip(where, f"it is no database of the toolset semantic: {error}")


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


def _semantic_rows(database: sqlite3.Connection) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each memory's number and columns, or why that one is skipped.

    Raises:
        ValueError: the table could compute something.
        sqlite3.Error: it is not there, or damaged.
    """
    import sqlite3  # noqa: PLC0415

    if sys.version_info >= (3, 11):  # before, the file's size is the limit
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE)
    database.text_factory = bytes  # a text may be no UTF-8
    database.execute("PRAGMA trusted_schema = OFF")
    (kind,) = database.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'memories' AND type = 'table'"
        " AND sql LIKE 'CREATE TABLE %'"
    ).fetchone()
    columns = database.execute("PRAGMA table_xinfo(memories)").fetchall()
    if columns and (not kind or any(hidden for *_, hidden in columns)):
        raise ValueError("its memories are no plain table, but would be computed")
    names = [each[1].decode("utf-8", "replace") for each in columns]
    wanted = [each for each in names if each not in _DERIVED]
    quoted = ", ".join('"' + each.replace('"', '""') + '"' for each in wanted)
    statement = f"SELECT {quoted or '*'} FROM memories WHERE rowid = ?"  # noqa: S608 (quoted)
    last = -sys.maxsize
    for (number,) in database.execute("SELECT rowid FROM memories ORDER BY rowid"):
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
            with suppress(ValueError, TypeError, RecursionError):
                value["tags"] = json.loads(value.get("tags") or "[]")
            yield number, value


# --- citations --------------------------------------------------------------------------------


def citations_below(source: Path) -> Path | None:
    """Return the folder of a repository's cited memories; None where there is none."""
    for folder in (source, source / "memories"):
        if folder.is_dir() and any(_CITING.fullmatch(path.name) for path in folder.glob("mem-*")):
            return folder
    return None


def citations(source: Path, *, split: bool) -> Iterator[Note | Skip]:
    """Read the memories of a code base; what they cite stays in the frontmatter."""
    top = citations_below(source) or source
    style = Style("citations", "citations", split)
    about = [label(top).split("/")[0]]
    for path in markdown_below(top) if top.is_dir() else [top]:
        yield from [path] if isinstance(path, Skip) else notes_in(top, path, style, about)
