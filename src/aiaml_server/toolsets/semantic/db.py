"""One SQLite database of memories: rows, full-text index, vectors and change history.

A memory, its words and its vectors are always written in one transaction. The journal is truncated
at each commit and deleted content is overwritten, so that a forgotten text is in no byte of the
file. SQLite is apsw's, because only that can load sqlite-vec on every platform.
"""

from __future__ import annotations

import math
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.errors import UnsafePath
from aiaml_server.files import check_own, open_own
from aiaml_server.identity import is_trusted, trust
from aiaml_server.toolsets.semantic import paths, text
from aiaml_server.toolsets.semantic.errors import (
    CorruptDatabase,
    DatabaseLocked,
    DiskError,
    SemanticError,
    Unavailable,
    UntrustedDatabase,
)
from aiaml_server.toolsets.semantic.models import (
    NewMemory,
    local_time,
    normalize_tag,
    normalized_hash,
    sha256_hex,
    sql_now,
    to_json,
)

if TYPE_CHECKING:
    import apsw

SCHEMA_VERSION = 1
BUSY_SECONDS = 2.0  # that one attempt waits for another writer
RETRY_PAUSES = (0.1, 0.4)  # seconds between three attempts
MAX_VALUE_BYTES = 16 * 1024 * 1024

_SPECIFIED = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL,
    content_hash TEXT UNIQUE NOT NULL,
    priority TEXT DEFAULT 'NORMAL',
    category TEXT,
    tags TEXT,
    project_id TEXT,
    source TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    embedding_model TEXT NOT NULL,
    embedding_model_version TEXT,
    embedding_dimension INTEGER,
    access_count INTEGER DEFAULT 0,
    last_accessed_at TIMESTAMP,
    usage_contexts TEXT
);
CREATE INDEX IF NOT EXISTS idx_priority ON memories(priority);
CREATE INDEX IF NOT EXISTS idx_project_id ON memories(project_id);
CREATE INDEX IF NOT EXISTS idx_created_at ON memories(created_at);
CREATE INDEX IF NOT EXISTS idx_content_hash ON memories(content_hash);
"""
"""The specified schema. Its table of vectors is created once the model's dimension is known."""

_ADDED = """
ALTER TABLE memories ADD COLUMN path TEXT;
ALTER TABLE memories ADD COLUMN extra TEXT;
ALTER TABLE memories ADD COLUMN normalized_hash TEXT;
ALTER TABLE memories ADD COLUMN search_terms TEXT;
CREATE INDEX idx_normalized_hash ON memories(normalized_hash);
CREATE INDEX idx_embedding_model ON memories(embedding_model);
CREATE VIRTUAL TABLE words USING fts5(
    content, tags, search_terms, content='memories', content_rowid='id',
    tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"
);
INSERT INTO words(words, rank) VALUES ('secure-delete', 1);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id INTEGER NOT NULL, part INTEGER NOT NULL
);
CREATE INDEX idx_vectors ON vectors(memory_id);
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at TIMESTAMP NOT NULL, act TEXT NOT NULL,
    memory_id INTEGER NOT NULL, before TEXT NOT NULL
);
CREATE TABLE imported (key TEXT PRIMARY KEY, memory_id INTEGER NOT NULL);
CREATE INDEX idx_imported ON imported(memory_id);
"""
_PRAGMAS = """
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA mmap_size = 0;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA synchronous = FULL;
PRAGMA journal_mode = TRUNCATE;
"""
_UNINDEX = (
    "INSERT INTO words(words, rowid, content, tags, search_terms)"
    " VALUES ('delete', old.id, old.content, old.tags, old.search_terms);"
)
_INDEX = (
    "INSERT INTO words(rowid, content, tags, search_terms)"
    " VALUES (new.id, new.content, new.tags, new.search_terms);"
)
_TRIGGERS = {
    "memory_added AFTER INSERT": _INDEX,
    "memory_deleted AFTER DELETE": _UNINDEX,
    "memory_changed AFTER UPDATE OF content, tags, search_terms": f"{_UNINDEX} {_INDEX}",
}
_VECTOR_TABLE = """
CREATE VIRTUAL TABLE vec_memories USING vec0(
    vector_id INTEGER PRIMARY KEY, model TEXT PARTITION KEY,
    embedding FLOAT[{}] distance_metric=cosine, chunk_size=256
)
"""

_LOST = """
SELECT id FROM memories WHERE embedding_model != '' AND NOT EXISTS (
    SELECT 1 FROM vectors CROSS JOIN vec_memories ON vec_memories.vector_id = vectors.id
    WHERE vectors.memory_id = memories.id
    AND vec_memories.model = memories.embedding_model || '@' || memories.embedding_model_version
    AND vec_distance_cosine(vec_memories.embedding, vec_memories.embedding) IS NOT NULL
)
"""
"""The memories that should have vectors, and have none with which a question can be compared."""

_VECTOR_TABLES = {"vec_memories_chunks", "vec_memories_rowids", "vec_memories_vector_chunks00"}
"""What sqlite-vec keeps in the table of vectors. It crashes where one is missing."""

STORED_COLUMNS = (
    "id", "content", "priority", "category", "tags", "project_id", "source", "created_at",
    "updated_at", "access_count", "last_accessed_at", "usage_contexts", "path", "extra",
)  # fmt: skip
"""The columns that make a memory; all others follow from them."""


class EmbeddingModel(NamedTuple):
    """What made a vector: the model's name, its build and its dimension."""

    name: str
    version: str
    dimension: int

    @property
    def key(self) -> str:
        """What separates its vectors from those of other models."""
        return f"{self.name}@{self.version}"


def serialize_float32(vector: Sequence[float], dimension: int) -> bytes:
    """Return a vector as sqlite-vec stores it.

    Raises:
        ValueError: it has the wrong length, is zero or not finite; it would spoil every search.
    """
    if len(vector) != dimension or not any(vector) or not all(map(math.isfinite, vector)):
        raise ValueError(f"a vector is zero, not finite, or not of {dimension} numbers")
    return struct.pack(f"<{dimension}f", *vector)


class Database:
    """One file. It is opened when first needed; any thread may call any method.

    Attributes:
        path: the file.
        scope: `project` or `global`.
        project_name: the project's directory name, or None for the global database.
        vector_problem: why vectors cannot be used; empty if they can, or nothing is open yet.
    """

    def __init__(
        self, path: Path, scope: str, project_name: str | None = None, *, trusted: bool = True
    ) -> None:
        """Name the file.

        Args:
            path: the file.
            scope: `project` or `global`.
            project_name: see the class.
            trusted: whether an existing file is opened that this user did not create here.
        """
        self.path = path
        self.scope = scope
        self.project_name = project_name
        self.vector_problem = ""
        self._trusted = trusted
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file_id: tuple[int, int] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file."""
        return os.path.lexists(self.path)

    @property
    def is_trusted(self) -> bool:
        """Whether this user created the file on this machine, named the project, or trusts it."""
        directory = self.path.parent
        named = self._trusted or self.project_name is None
        return named or is_trusted(directory) or is_trusted(directory.parent)

    def check_access(self) -> None:
        """Check that memories in the directory, also those of a backup, may be used.

        Raises:
            UntrustedDatabase: another person or machine created them.
            CorruptDatabase: the directory is a link, or another user's.
        """
        directory = self.path.parent
        with translated_errors(self.path):
            check_own(directory, directory=True)
            if not self.is_trusted:
                raise UntrustedDatabase(
                    f"{self.path} was not created by you on this machine, and is not opened;"
                    f" if you trust it, run: aiaml trust {directory.parent}"
                )

    def close(self) -> None:
        """Close the file if it is open."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def fetch(
        self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. The file must exist.

        Raises:
            SemanticError: the database cannot be used.
        """
        with self._lock, translated_errors(self.path):
            return self._open(create=False).execute(statement, values).fetchall()

    def check(self) -> None:
        """Read the whole file, if there is one.

        Raises:
            CorruptDatabase: it is damaged.
        """
        if self.exists and self.fetch("PRAGMA integrity_check(1)") != [("ok",)]:
            raise CorruptDatabase(f"{self.path} is damaged")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run one transaction, which an exception rolls back. A missing file is created.

        Raises:
            SemanticError: the database cannot be written.
        """
        with self._lock, translated_errors(self.path), _transaction(self._open(create=True)):
            yield

    # --- opening ----------------------------------------------------------------------------------

    def _open(self, *, create: bool) -> apsw.Connection:
        """Return the connection.

        A file that was replaced or deleted is opened again, and to write one that was read-only.
        """
        sql = self._connection
        is_current = self._file_id == _file_id(self.path)
        if sql is not None and is_current and not (create and sql.readonly("main")):
            return sql
        self.close()
        _import_apsw()  # without it, nothing is created and trusted below
        if self.exists:
            self.check_access()
        if create:
            is_project = self.project_name is not None
            paths.make_memory_directory(self.path.parent, ignored_by_git=is_project)
            if is_project and not self.exists:
                trust(self.path.parent)
        self._connection = self._connect(create=create)
        self._file_id = _file_id(self.path)
        return self._connection

    def _connect(self, *, create: bool) -> Any:
        apsw = _import_apsw()
        os.close(open_own(self.path, os.O_RDWR | os.O_CREAT if create else os.O_RDONLY))
        # SQLite opens it only for reading where the system allows no more.
        sql = apsw.Connection(os.path.realpath(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            self._prepare(sql)
        except BaseException:
            sql.close()
            raise
        return sql

    def _prepare(self, sql: Any) -> None:
        """Set up a connection. The file may come from somebody else: nothing in it is executed."""
        apsw = _import_apsw()
        sql.set_busy_timeout(int(BUSY_SECONDS * 1000))
        sql.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        sql.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        sql.execute(_PRAGMAS).fetchall()
        sql.create_scalar_function("normalize_tag", normalize_tag, 1, deterministic=True)
        self.vector_problem = _load_vector_extension(sql)
        if self.vector_problem and sql.table_exists("main", "vec_memories"):
            raise Unavailable(f"{self.path} holds vectors, and {self.vector_problem}")
        version = sql.pragma("user_version")
        if version > SCHEMA_VERSION:
            raise CorruptDatabase(
                f"{self.path} has schema version {version}; this program knows {SCHEMA_VERSION}",
                "Install a newer aiaml-server; the file is unchanged.",
            )
        if version == 0:
            with _transaction(sql):
                if sql.pragma("user_version") == 0:  # no other process has created it meanwhile
                    self._create_schema(sql)
        tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_schema")}
        if "vec_memories" in tables and not tables >= _VECTOR_TABLES:
            raise CorruptDatabase(f"{self.path} is damaged: a table of its vectors is missing")

    def _create_schema(self, sql: Any) -> None:
        """Create the tables; one of the specification's own is extended, with its memories."""
        sql.execute("DROP TABLE IF EXISTS vec_memories")
        sql.execute(_SPECIFIED + _ADDED).fetchall()
        held = sql.execute("SELECT id, content, tags, created_at FROM memories").fetchall()
        for memory_id, content, tags, created_at in held:
            row = {"content": content, "tags": tags, "created_at": created_at}
            sql.execute(
                "UPDATE memories SET normalized_hash = :normalized_hash, embedding_model = '',"
                " search_terms = :search_terms WHERE id = :id",
                {"id": memory_id, **_derived(row)},
            )
        sql.execute("INSERT INTO words(words) VALUES ('rebuild')")
        for event, statements in _TRIGGERS.items():
            sql.execute(f"CREATE TRIGGER {event} ON memories BEGIN {statements} END")
        sql.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    # --- rows -------------------------------------------------------------------------------------

    def row(self, number: int) -> dict[str, Any]:
        """Return a memory's `STORED_COLUMNS`; empty if there is none."""
        columns = ", ".join(STORED_COLUMNS)
        rows = self.fetch(f"SELECT {columns} FROM memories WHERE id = ?", (number,))
        return dict(zip(STORED_COLUMNS, rows[0], strict=True)) if rows else {}

    def insert(self, row: Mapping[str, Any]) -> int:
        """Add a memory from its `STORED_COLUMNS`; an id of None gets a new one. Return the id."""
        values = {**row, **_derived(row), "embedding_model": ""}
        names = ", ".join(values)
        marks = ", ".join(f":{name}" for name in values)
        self.fetch(f"INSERT INTO memories ({names}) VALUES ({marks})", values)
        return self.last_id()

    def update(self, number: int, changes: Mapping[str, Any]) -> None:
        """Change columns of a memory. A new text loses its vectors."""
        before = self.row(number)
        values = {**changes, **_derived({**before, **changes}), "id": number}
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        self.fetch(f"UPDATE memories SET {assignments} WHERE id = :id", values)
        if changes.get("content", before["content"]) != before["content"]:
            self.delete_vectors(number)

    def delete(self, number: int, *, merged_into: int = 0) -> None:
        """Delete a memory with its words and vectors; another one may take over its import keys."""
        self.delete_vectors(number)
        self.fetch("UPDATE imported SET memory_id = ? WHERE memory_id = ?", (merged_into, number))
        self.fetch("DELETE FROM imported WHERE memory_id = 0")
        self.fetch("DELETE FROM memories WHERE id = ?", (number,))

    def last_id(self) -> int:
        """Return the id of the row that was added last."""
        return int(self.fetch("SELECT last_insert_rowid()")[0][0])

    # --- vectors ----------------------------------------------------------------------------------

    def has_vectors(self, model: EmbeddingModel) -> bool:
        """Return whether there is a table for vectors of a model."""
        query = "SELECT 1 FROM sqlite_schema WHERE name = 'vec_memories' AND instr(sql, ?)"
        return bool(self.fetch(query, (f"FLOAT[{model.dimension}]",)))

    def lost_vectors(self) -> list[int]:
        """Return the memories whose vectors are missing or damaged; all if none can be read."""
        try:
            rows = self.fetch(_LOST)
        except CorruptDatabase:
            rows = self.fetch("SELECT id FROM memories WHERE embedding_model != ''")
        return [number for (number,) in rows]

    def set_vectors(self, number: int, model: EmbeddingModel, vectors: Sequence[bytes]) -> None:
        """Replace a memory's vectors, one for each part of its text."""
        self.delete_vectors(number)
        try:
            self._add_vectors(number, model, vectors)
        except CorruptDatabase:
            self._drop_vectors()
            self._add_vectors(number, model, vectors)
        self.fetch(
            "UPDATE memories SET embedding_model = ?, embedding_model_version = ?,"
            " embedding_dimension = ? WHERE id = ?",
            (*model, number),
        )

    def _add_vectors(self, number: int, model: EmbeddingModel, vectors: Sequence[bytes]) -> None:
        if not self.has_vectors(model):  # those of another dimension are dropped
            self._drop_vectors()
            self.fetch(_VECTOR_TABLE.format(model.dimension))
        for part, vector in enumerate(vectors):
            self.fetch("INSERT INTO vectors (memory_id, part) VALUES (?, ?)", (number, part))
            values = (self.last_id(), model.key, vector)
            self.fetch("INSERT INTO vec_memories VALUES (?, ?, ?)", values)
            self.fetch("SELECT * FROM vec_memories WHERE vector_id = ?", values[:1])  # it is there

    def _drop_vectors(self) -> None:
        """Delete the vectors of all memories, which are made again from their texts."""
        self.fetch("DROP TABLE IF EXISTS vec_memories")
        self.fetch("DELETE FROM vectors")
        self.fetch("UPDATE memories SET embedding_model = ''")

    def delete_vectors(self, number: int) -> None:
        """Delete a memory's vectors; if they are damaged, those of all memories."""
        try:
            for row in self.fetch("SELECT id FROM vectors WHERE memory_id = ?", (number,)):
                self.fetch("DELETE FROM vec_memories WHERE vector_id = ?", row)
        except CorruptDatabase:
            self._drop_vectors()
        self.fetch("DELETE FROM vectors WHERE memory_id = ?", (number,))
        self.fetch("UPDATE memories SET embedding_model = '' WHERE id = ?", (number,))


def new_row(memory: NewMemory, project_id: str | None) -> dict[str, Any]:
    """Return the `STORED_COLUMNS` of a new memory, whose id is still to be drawn."""
    given = memory._asdict()
    created = memory.created_at or sql_now()
    return {
        **{name: given.get(name) for name in STORED_COLUMNS},
        "priority": memory.priority or "NORMAL",
        "tags": to_json(memory.tags),
        "project_id": project_id,
        "created_at": created,
        "updated_at": created,
        "access_count": 0,
        "usage_contexts": "[]",
    }


def _derived(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that follow from a memory's text, its tags and its day."""
    content = row["content"]
    terms = text.search_terms(f"{content}\n{row['tags'] or ''}")
    day = local_time(f"{row['created_at']}Z")
    return {
        "content_hash": sha256_hex(content),
        "normalized_hash": normalized_hash(content),
        "search_terms": f"{terms} {day.day} {day:%B %Y}",
    }


# --- SQLite ---------------------------------------------------------------------------------------


def _import_apsw() -> Any:
    try:
        import apsw  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise Unavailable(
            "apsw, which stores the memories, is not installed: "
            "pip install 'aiaml-server[semantic]'"
        ) from error
    return apsw


def _file_id(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def _transaction(sql: apsw.Connection) -> Iterator[None]:
    """Run a transaction that takes the write lock at once, in three attempts."""
    apsw = _import_apsw()
    for pause in RETRY_PAUSES:
        with suppress(apsw.BusyError):
            sql.execute("BEGIN IMMEDIATE")
            break
        time.sleep(pause)
    else:
        sql.execute("BEGIN IMMEDIATE")
    try:
        yield
        sql.execute("COMMIT")
    except BaseException:
        if sql.in_transaction:
            sql.execute("ROLLBACK")
        raise


def _load_vector_extension(sql: apsw.Connection) -> str:
    """Load sqlite-vec; return why that is not possible, or an empty text."""
    apsw = _import_apsw()
    spec = find_spec("sqlite_vec")  # importing it would import numpy
    if spec is None or not spec.submodule_search_locations:
        return "sqlite-vec is not installed"
    try:
        sql.enable_load_extension(True)
        sql.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
        sql.enable_load_extension(False)
    except apsw.Error as error:
        return f"sqlite-vec cannot be loaded ({error})"
    return ""


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the system as errors of this toolset."""
    try:
        yield
    except SemanticError:
        raise
    except UnsafePath as error:
        raise CorruptDatabase(str(error), "Move it away, or find out who put it there.") from error
    except OSError as error:
        raise DiskError(f"cannot open {path}: {error.strerror or error}") from error
    except Exception as error:
        kind = type(error).__name__
        if type(error).__module__ != "apsw" or "syntax error" in str(error):
            raise  # a bug
        if kind in ("BusyError", "LockedError"):
            raise DatabaseLocked(f"another process is writing to {path}") from error
        if kind in ("FullError", "IOError", "ReadOnlyError", "CantOpenError"):
            raise DiskError(f"the disk refused {path}: {error}") from error
        message = f"{path} is damaged, or not a database of memories: {error}"
        raise CorruptDatabase(message) from error
