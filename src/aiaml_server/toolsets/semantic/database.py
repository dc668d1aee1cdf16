"""One SQLite file of memories: their texts, words and vectors, which always agree.

SQLite is apsw's, since only that has extensions on every platform; no other library in this process
may open the same file. Writing is done in one transaction by one process at a time, with a journal
that is emptied at each commit: unlike a write-ahead log it keeps nothing of what was deleted, and
what was deleted is overwritten in the file.

A file may have come with somebody's project. So nothing in it is computed or run, whatever its
schema says, and what one value, the file and all of SQLite may take is limited
(https://www.sqlite.org/security.html).
"""

from __future__ import annotations

import errno
import math
import os
import re
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.errors import UnsafePath
from aiaml_server.files import check_own, open_own
from aiaml_server.storage.journal import check_beside
from aiaml_server.toolsets.semantic import cutting, memory, place
from aiaml_server.toolsets.semantic.failures import Busy, Damaged, DiskError, Refused, Unavailable

if TYPE_CHECKING:
    import apsw

    from aiaml_server.toolsets.semantic.model import Embedder

LAST = 2**63 - 1  # the highest number that SQLite gives a row
PATIENCE = 5.0  # seconds that one try waits for another process
LOOK = 0.002  # seconds after which it looks again; SQLite's own 0.1 miss what a long import leaves
PAUSES = (0.1, 0.4)  # seconds between three tries
MOST_FILE = 2 * 1024**3  # bytes: half a million memories
MOST_VALUE = 16 * 1024**2  # bytes: twice the vectors of a chunk, 256 of 8,192 numbers
MOST_STEPS = 10_000_000, 8  # of SQLite's machine that one use may take, and more for each byte
STEPS_AT_ONCE = 1_000_000  # after which it is looked whether there were too many
MOST_SCHEMA = 500  # of its machine's steps, for all of a schema; ours takes 250
MOST_PART = 32, 2048  # columns and bytes that a part of it may have; the longest of ours 19 and 576
MOST_HEAP = 128 * 1024**2  # bytes that SQLite may take; a key of an index is read whole

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
"""The schema of the specification, but for the vectors, whose width the model decides."""

_OURS = """
ALTER TABLE memories ADD COLUMN path TEXT;
ALTER TABLE memories ADD COLUMN folded TEXT;
CREATE INDEX idx_folded ON memories(folded);
CREATE INDEX idx_embedding_model ON memories(embedding_model, embedding_model_version);
CREATE VIRTUAL TABLE words USING fts5(
    content, tags, content='memories', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);
INSERT INTO words(words, rank) VALUES ('secure-delete', 1);
CREATE TABLE authors (
    id INTEGER PRIMARY KEY, model TEXT NOT NULL, version TEXT NOT NULL, dimension INTEGER NOT NULL,
    UNIQUE (model, version, dimension)
);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id INTEGER NOT NULL, part INTEGER NOT NULL, author INTEGER NOT NULL
);
CREATE INDEX idx_vectors ON vectors(memory_id);
CREATE INDEX idx_authors ON vectors(author);
CREATE TABLE merges (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at TIMESTAMP NOT NULL,
    kept INTEGER NOT NULL, kept_as TEXT NOT NULL, was TEXT NOT NULL, removed TEXT NOT NULL
);
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

# What was imported is known by this, though its memory says something else now.
_IMPORTS = """
CREATE TABLE imports (digest TEXT PRIMARY KEY, memory_id INTEGER NOT NULL);
CREATE INDEX idx_imports ON imports(memory_id);
INSERT OR IGNORE INTO imports SELECT folded, id FROM memories WHERE source = 'import'
"""

_UNSPACED = """
ALTER TABLE memories ADD COLUMN spaced TEXT;
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5(
    content, tags, spaced, content='memories', content_rowid='id',
    tokenize="porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'"
);
INSERT INTO words(words, rank) VALUES ('secure-delete', 1)
"""

_CHANGES = """
ALTER TABLE merges ADD COLUMN act TEXT NOT NULL DEFAULT 'merge';
CREATE TABLE exchanged (uid TEXT PRIMARY KEY, memory_id INTEGER NOT NULL, digest TEXT NOT NULL)
"""
"""All kinds of changes are noted beside merges; and what was exchanged with other machines."""

_VECTORS = """
CREATE VIRTUAL TABLE vec_memories USING vec0(
    vector_id INTEGER PRIMARY KEY, author INTEGER PARTITION KEY,
    embedding FLOAT[{}] distance_metric=cosine, chunk_size=256
)
"""
_OF_VECTORS = re.compile(r'create table "vec_memories_\w+"\([\w ,]+\)')
"""The tables beneath them, of any version of sqlite-vec: columns, nothing computed."""
_VECTORS_OF_OTHERS = re.compile(r"create virtual table vec_memories using vec0\([\w ,\[\]=]+\)")
"""What the specification lets others make, which the second step drops."""
FIELDS = (
    "content", "content_hash", "folded", "priority", "category", "tags", "project_id", "source",
    "created_at", "updated_at", "access_count", "last_accessed_at", "usage_contexts", "path", "id",
)  # fmt: skip
"""The columns of a memory but for its vectors' author."""
_ADD = (
    f"INSERT INTO memories ({', '.join(FIELDS)}, embedding_model)"
    f" VALUES ({', '.join(f':{each}' for each in FIELDS)}, '')"
)
_NUMBERED = "UPDATE sqlite_sequence SET seq = 0 WHERE seq = ?"
"""Behind the last number SQLite says that the disk is full; from 0 it looks into the table."""


class Author(NamedTuple):
    """What made a vector: a model, its build and its width."""

    model: str
    version: str
    dimension: int


def author_of(embedder: Embedder) -> Author:
    """Return what is kept of a model beside each vector of it."""
    return Author(embedder.name, embedder.version, embedder.dimension)


def packed(vector: Sequence[float], dimension: int) -> bytes:
    """Return a vector as the database has it.

    Raises:
        ValueError: it has another width, is not finite, or has no length: it would be nearest to
            everything.
    """
    if len(vector) != dimension:
        raise ValueError(f"a vector has {len(vector)} numbers instead of {dimension}")
    data = struct.pack(f"<{dimension}f", *vector)
    norm = math.hypot(*struct.unpack(f"<{dimension}f", data))
    if not 1e-12 < norm < 1e12:  # also false for what is no number
        raise ValueError("a vector is zero or not finite")
    return data


class Database:
    """One file. Any method may be called from any thread; nothing is opened before it is needed.

    Attributes:
        name: `project` or `global`.
        path: the file.
        project: the directory's name, which new memories of a project carry; else None.
        problem: why there are no vectors, in words; empty where there are, or it is not open yet.
        read_only: whether it is open, and nothing can be written to it.
    """

    def __init__(self, path: Path, name: str, project: str | None = None) -> None:
        self.path, self.name, self.project = path, name, project
        self._lock = threading.RLock()
        self._sql: apsw.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._steps = 0
        self.problem = ""
        self.read_only = False

    @property
    def there(self) -> bool:
        """Whether there is a file, or what stands in its place."""
        parent = self.path.parent
        return os.path.lexists(self.path) or (os.path.lexists(parent) and not parent.is_dir())

    def close(self) -> None:
        """Close the file, if it is open."""
        with self._lock:
            if self._sql is not None:
                self._sql.close()
                self._sql = None

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Hold the file open, which must be there; nobody else uses this connection meanwhile.

        Raises:
            Busy, Damaged, DiskError, Unavailable: see there.
        """
        with self._lock, _translated(self.path):
            yield self._open()

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Write in one transaction, which is durable at the end, or undone by an exception.

        The file and its directory are made where they are missing.

        Raises:
            Busy: another process wrote through three tries.
            Damaged, DiskError, Unavailable: see there.
        """
        with self._lock, _translated(self.path):
            sql = self._open(create=True)
            with _transaction(sql):
                sql.execute(_NUMBERED, (LAST,))
                yield sql

    # --- opening ----------------------------------------------------------------------------------

    def _open(self, *, create: bool = False) -> apsw.Connection:
        try:
            status = self.path.stat()
            identity = (status.st_dev, status.st_ino)
        except OSError:
            identity = None
        usable = not (create and self.read_only)
        self._steps = 0
        check_beside(self.path)  # each time, since a journal can come with what is pulled
        if self._sql is not None and identity == self._identity and usable:
            return self._sql
        self.close()  # somebody has deleted or replaced the file, or may write to it now
        self._sql = self._connect(create=create)
        status = self.path.stat()
        self._identity = (status.st_dev, status.st_ino)
        return self._sql

    def _connect(self, *, create: bool) -> apsw.Connection:
        try:
            import apsw  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise Unavailable(
                "apsw, which keeps the memories, is not installed: "
                "pip install 'aiaml-server[semantic]'"
            ) from error
        if create:
            place.make(self.path.parent, ignored=self.project is not None)
        else:
            check_own(self.path.parent, directory=True)
        if check_own(self.path):  # SQLite follows links
            self._check_filled()
        flags = apsw.SQLITE_OPEN_READWRITE
        try:
            os.close(open_own(self.path, os.O_RDWR | (os.O_CREAT if create else 0)))
            self.read_only = False
        except OSError as error:
            if create or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            os.close(open_own(self.path, os.O_RDONLY))
            flags, self.read_only = apsw.SQLITE_OPEN_READONLY, True
        sql = apsw.Connection(os.path.realpath(self.path), flags=flags)
        try:
            self._prepare(sql)
        except BaseException:
            sql.close()
            raise
        return sql

    def _check_filled(self) -> None:
        """See that the file is not empty, as a disk that failed may leave one, and was backed up.

        Raises:
            Damaged: it is and was: SQLite would begin a new database, and take it for all.
        """
        if self.path.stat().st_size:
            return
        for backup in place.backups(self.path.parent / place.BACKUPS):
            restore = f"aiaml semantic restore {self.name} {backup.name.removeprefix('db-')}"
            raise Damaged(
                f"{self.path} is empty; `{restore}` puts {backup} in its place",
                f"`{restore}`; or delete the empty file, to begin anew.",
            )

    def _prepare(self, sql: apsw.Connection) -> None:
        import apsw  # noqa: PLC0415 (an extra)

        if not apsw.hard_heap_limit(-1):  # of this whole process; a program may have set its own
            apsw.hard_heap_limit(MOST_HEAP)
        sql.limit(apsw.SQLITE_LIMIT_LENGTH, MOST_VALUE)
        sql.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)
        sql.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        sql.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        sql.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
        sql.set_busy_handler(_Patience())
        if self.path.stat().st_size > MOST_FILE:
            raise Damaged(f"{self.path} is larger than {MOST_FILE >> 30} GiB")
        self._read_schema(sql)
        sql.set_progress_handler(self._goes_on_too_long, STEPS_AT_ONCE)
        for pragma in (
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "secure_delete = ON",
            "temp_store = MEMORY",
            "mmap_size = 0",
            "synchronous = FULL",
            "journal_mode = TRUNCATE",
        ):
            sql.execute(f"PRAGMA {pragma}").fetchall()
        with sql:  # one moment of the file: another process may be making the tables
            self._check_schema(sql)
        (page_size,) = rows(sql, "PRAGMA page_size")[0]
        rows(sql, f"PRAGMA max_page_count = {MOST_FILE // page_size}")
        sql.create_scalar_function(
            "tag_key",
            lambda *given: memory.tag_key(bytes(given[0]).decode("utf-8", "replace")),
            1,
            deterministic=True,
        )
        self.problem = _load_extension(sql)
        self._migrate(sql)

    def _read_schema(self, sql: apsw.Connection) -> None:
        """Have SQLite read the schema, all of which it does at the first statement.

        Raises:
            Damaged: it is longer than ours, where names alone may take minutes.
        """
        import apsw  # noqa: PLC0415 (an extra)

        kinds = apsw.SQLITE_LIMIT_COLUMN, apsw.SQLITE_LIMIT_LENGTH
        before = [sql.limit(*each) for each in zip(kinds, MOST_PART, strict=True)]
        sql.set_progress_handler(lambda: True, MOST_SCHEMA)
        try:
            rows(sql, "SELECT 1 FROM sqlite_schema LIMIT 0")
        except (apsw.InterruptError, apsw.TooBigError) as error:
            raise Damaged(
                f"{self.path} holds more tables than this program makes, or larger ones",
                "Move the file away, or look at who put it there.",
            ) from error
        for each in zip(kinds, before, strict=True):
            sql.limit(*each)

    def _goes_on_too_long(self) -> bool:
        """Say whether to break off: a tree of pages may name one of them any number of times.

        SQLite asks while its statements step; it does not while `count(*)` counts a whole table.
        """
        self._steps += STEPS_AT_ONCE
        least, each = MOST_STEPS
        return self._steps > least + each * self.path.stat().st_size

    def _check_schema(self, sql: apsw.Connection) -> None:
        """See that the file holds nothing but what this program makes in its version.

        Reading a schema computes nothing; a statement on a table with another one's checks,
        generated columns or indexes on expressions could.

        Raises:
            Damaged: something else is in it.
        """
        if rows(sql, "PRAGMA encoding") != [("UTF-8",)]:
            raise Damaged(f"{self.path} is not in UTF-8, as all of ours are")
        version = self._version(sql)
        for name, text in sql.execute("SELECT name, sql FROM sqlite_schema"):
            made_by_sqlite = text is None and str(name).startswith("sqlite_autoindex_")
            if made_by_sqlite or (isinstance(text, str) and _is_ours(name, text, version)):
                continue
            raise Damaged(
                f"{self.path} holds {name!r:.100}, which is not as this program makes it in a"
                f" database of version {version}",
                "Move the file away, or look at who put it there.",
            )

    def _migrate(self, sql: apsw.Connection) -> None:
        """Bring an earlier schema up to date, each step in one transaction with its number."""
        if self._version(sql) == len(STEPS):
            return
        if self.read_only:
            raise DiskError(f"{self.path} is of an earlier version, and can only be read")
        with _transaction(sql):
            version = self._version(sql)
            for number, step in enumerate(STEPS[version:], version + 1):
                if isinstance(step, str):
                    _run(sql, step)
                else:
                    step(self, sql)
                sql.execute(f"PRAGMA user_version = {number}")

    def _version(self, sql: apsw.Connection) -> int:
        version: int = rows(sql, "PRAGMA user_version")[0][0]
        if not 0 <= version <= len(STEPS):
            raise Damaged(
                f"{self.path} is of version {version}, and this program knows {len(STEPS)}",
                "Install a newer aiaml-server; the file is left as it is.",
            )
        return version

    def _extended(self, sql: apsw.Connection) -> None:
        """Add what is needed beyond them; vectors of others are made anew."""
        if _has(sql, "vec_memories"):
            if self.problem:
                raise Unavailable(f"{self.path} holds vectors, and {self.problem}")
            sql.execute("DROP TABLE vec_memories")
        _run(sql, _OURS)
        sql.execute("UPDATE memories SET embedding_model = ''")
        for number, (content,) in _texts(sql, "content"):
            sql.execute(
                "UPDATE memories SET folded = ? WHERE id = ?", (memory.folded(content), number)
            )
        sql.execute("INSERT INTO words(words) VALUES ('rebuild')")
        if self.project is not None:
            sql.execute("INSERT INTO about VALUES ('project_id', ?)", (self.project,))

    def _unspaced(self, sql: apsw.Connection) -> None:
        """Have words found where there are no blanks between them."""
        _run(sql, _UNSPACED)
        for number, (content, tags) in _texts(sql, "content", "tags"):
            if spaced := cutting.spaced(f"{content}\n{tags or ''}"):
                sql.execute("UPDATE memories SET spaced = ? WHERE id = ?", (spaced, number))
        sql.execute("INSERT INTO words(words) VALUES ('rebuild')")

    # --- memories, with their words and vectors ---------------------------------------------------

    def project_id(self, sql: apsw.Connection) -> str | None:
        """Return what this project is called, which stays when its directory is renamed.

        Raises:
            Damaged: it is no text, or longer than a memory's may be.
        """
        value = memory.guarded("value")
        found = rows(sql, f"SELECT {value} FROM about WHERE key = 'project_id'")
        if found and memory.decoded(found[0][0]) is None:
            raise Damaged(f"{self.path} is damaged: its project_id is no name")
        return memory.decoded(found[0][0]) if found else None

    def add(self, sql: apsw.Connection, row: Mapping[str, Any]) -> int:
        """Add a memory and its words; return its number.

        Args:
            sql: a connection that is writing.
            row: its `FIELDS`; None for its number draws one.
        """
        if row["id"] is None and rows(sql, "SELECT 1 FROM memories WHERE id = ?", (LAST,)):
            raise Damaged(
                f"{self.path} has a memory of the highest number that there is, {LAST}: none can"
                " come behind it",
                f"`aiaml semantic forget {self.name}:{LAST}` takes it away, if it is not yours.",
            )
        sql.execute(_ADD, {name: row[name] for name in FIELDS})
        number = sql.last_insert_rowid()
        self._index(sql, number)
        return number

    def change(self, sql: apsw.Connection, number: int, values: dict[str, Any]) -> None:
        """Change some columns of a memory, and its words; a new text loses its vectors."""
        self._unindex(sql, number)
        names = ", ".join(f"{name} = ?" for name in values)
        sql.execute(f"UPDATE memories SET {names} WHERE id = ?", (*values.values(), number))
        self._index(sql, number)
        if "content" in values:
            self.forget_vectors(sql, number)

    def remove(self, sql: apsw.Connection, number: int) -> None:
        """Remove a memory with its words and vectors."""
        self._unindex(sql, number)
        self.forget_vectors(sql, number)
        sql.execute("DELETE FROM imports WHERE memory_id = ?", (number,))
        sql.execute("DELETE FROM memories WHERE id = ?", (number,))

    def _index(self, sql: apsw.Connection, number: int) -> None:
        """Add a memory's words, whose text and tags may have changed."""
        ((content, tags, was),) = rows(
            sql, "SELECT content, tags, spaced FROM memories WHERE id = ?", (number,)
        )
        spaced = cutting.spaced(f"{content}\n{tags or ''}")
        if spaced != was:
            sql.execute("UPDATE memories SET spaced = ? WHERE id = ?", (spaced, number))
        sql.execute(
            "INSERT INTO words(rowid, content, tags, spaced) VALUES (?, ?, ?, ?)",
            (number, content, tags, spaced),
        )

    def _unindex(self, sql: apsw.Connection, number: int) -> None:
        sql.execute(
            "INSERT INTO words(words, rowid, content, tags, spaced)"
            " SELECT 'delete', id, content, tags, spaced FROM memories WHERE id = ?",
            (number,),
        )

    def forget_vectors(self, sql: apsw.Connection, number: int) -> None:
        """Take a memory's vectors away; without the extension, when it is there again."""
        held = rows(sql, "SELECT id FROM vectors WHERE memory_id = ?", (number,))
        if held and self.problem:
            sql.execute("UPDATE vectors SET memory_id = 0 WHERE memory_id = ?", (number,))
        else:
            for row in held:
                sql.execute("DELETE FROM vec_memories WHERE vector_id = ?", row)
            sql.execute("DELETE FROM vectors WHERE memory_id = ?", (number,))
        sql.execute("UPDATE memories SET embedding_model = '' WHERE id = ?", (number,))

    def set_vectors(
        self, sql: apsw.Connection, number: int, author: Author, vectors: Sequence[bytes]
    ) -> None:
        """Give a memory its vectors, in place of those that it had.

        Args:
            sql: a connection that is writing, where there is the extension.
            number: the memory's.
            author: what made them.
            vectors: one for each part of the text, `packed`.
        """
        self._fit(sql, author.dimension)
        self.forget_vectors(sql, 0)
        self.forget_vectors(sql, number)
        sql.execute("INSERT OR IGNORE INTO authors VALUES (NULL, ?, ?, ?)", tuple(author))
        made_by = self.author_id(sql, author)
        for part, data in enumerate(vectors):
            sql.execute(
                "INSERT INTO vectors (memory_id, part, author) VALUES (?, ?, ?)",
                (number, part, made_by),
            )
            sql.execute(
                "INSERT INTO vec_memories (vector_id, author, embedding) VALUES (?, ?, ?)",
                (sql.last_insert_rowid(), made_by, data),
            )
        sql.execute(
            "UPDATE memories SET embedding_model = ?, embedding_model_version = ?,"
            " embedding_dimension = ? WHERE id = ?",
            (*author, number),
        )

    def check_words(self, sql: apsw.Connection) -> None:
        """See that the index of words has not been emptied from outside, which finds nothing.

        Its record of segments says that there are none (behind a cookie of four bytes and the
        number of levels; https://www.sqlite.org/fts5.html#the_structure_record), and its table of
        their pages says otherwise.

        Raises:
            Damaged: it has been.
        """
        if rows(
            sql,
            "SELECT 1 FROM words_data"
            " WHERE id = 10 AND (length(block) < 6 OR substr(block, 6, 1) = x'00')"
            " AND EXISTS (SELECT 1 FROM words_idx)",
        ):
            raise Damaged(f"{self.path} is damaged: its index of words is empty")

    def author_id(self, sql: apsw.Connection, author: Author) -> int | None:
        """Return the number of a model whose vectors can be compared; None where there are none."""
        found = rows(
            sql,
            "SELECT id FROM authors WHERE (model, version, dimension) = (?, ?, ?)",
            tuple(author),
        )
        return found[0][0] if found and not self.problem and _has(sql, "vec_memories") else None

    def _fit(self, sql: apsw.Connection, dimension: int) -> None:
        """Have a table for vectors of a width; those of another are lost, since none compare."""
        known = rows(sql, "SELECT DISTINCT dimension FROM authors")
        there = _has(sql, "vec_memories")
        if there and known != [(dimension,)]:
            sql.execute("DROP TABLE vec_memories")
            sql.execute("DELETE FROM vectors")
            sql.execute("DELETE FROM authors")
            sql.execute("UPDATE memories SET embedding_model = ''")
            there = False
        if not there:
            sql.execute(_VECTORS.format(int(dimension)))


STEPS = (
    _SPECIFIED,
    Database._extended,  # noqa: SLF001 (this module's own)
    _IMPORTS,
    Database._unspaced,  # noqa: SLF001
    _CHANGES,
)
"""What makes each version of the schema out of the one before: statements, or a method."""


def rows(
    sql: apsw.Connection, statement: str, values: Sequence[Any] | dict[str, Any] = ()
) -> list[tuple[Any, ...]]:
    """Return all that a statement gives."""
    return sql.execute(statement, values).fetchall()


@cache
def _known() -> list[frozenset[tuple[str, str]]]:
    """Return the parts of each version of the schema: their names and statements, as `_plain`.

    In a file without a version there is what others make by the specification, or nothing yet.
    """
    import apsw  # noqa: PLC0415 (an extra)

    found = []
    with closing(apsw.Connection(":memory:")) as sql:
        for step in (_SPECIFIED, _OURS, _IMPORTS, _UNSPACED, _CHANGES):
            _run(sql, step)
            held = rows(sql, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
            found.append(frozenset((name, _plain(text)) for name, text in held))
    return [found[0], *found]


def _is_ours(name: str, text: str, version: int) -> bool:
    """Say whether a part of a schema is as a version of this program makes it."""
    plain = _plain(text)
    if name == "vec_memories" and version > 1:
        return re.sub(r"float\[\d+\]", "float[{}]", plain) == _plain(_VECTORS)
    if name == "vec_memories":
        return _VECTORS_OF_OTHERS.fullmatch(plain) is not None
    if name.startswith("vec_memories"):
        return _OF_VECTORS.fullmatch(plain) is not None
    return (name, plain) in _known()[version]


def _plain(statement: str) -> str:
    """Return a statement in lower case, without its comments and the blanks that mean nothing."""
    bare = re.sub(r"--[^\n]*", "", statement)
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(bare.split())).lower()


def _texts(sql: apsw.Connection, *names: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each memory's number and the texts of some columns, without what is none of ours."""
    columns = ", ".join(map(memory.column, names))
    (last,) = rows(sql, "SELECT coalesce(max(id), 0) FROM memories")[0]
    for (number,) in sql.execute("SELECT id FROM memories WHERE id <= ?", (last,)):
        (held,) = rows(sql, f"SELECT {columns} FROM memories WHERE id = ?", (number,))
        yield number, [memory.decoded(each) or "" for each in held]


@contextmanager
def _transaction(sql: apsw.Connection) -> Iterator[None]:
    """Begin to write at once: who has read before is refused instead of waiting."""
    import apsw  # noqa: PLC0415 (an extra)

    for pause in PAUSES:
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


def _run(sql: apsw.Connection, statements: str) -> None:
    for each in statements.split(";"):
        sql.execute(each).fetchall()  # a statement that gives rows stops at the first


def _has(sql: apsw.Connection, table: str) -> bool:
    return bool(sql.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchall())


def _load_extension(sql: apsw.Connection) -> str:
    """Load sqlite-vec; return why that cannot be, in words."""
    import apsw  # noqa: PLC0415 (an extra)

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


class _Patience:
    """Says, each time that SQLite meets another process, whether to try again."""

    def __init__(self) -> None:
        self._end = 0.0

    def __call__(self, tries: int) -> bool:
        if tries == 0:
            self._end = time.monotonic() + PATIENCE
        if time.monotonic() >= self._end:
            return False
        time.sleep(LOOK)
        return True


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what apsw and the system raise into this toolset's failures."""
    try:
        yield
    except Refused:
        raise
    except UnsafePath as error:
        raise Damaged(str(error), "Move it away, or look at who put it there.") from error
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} holds what is no text in UTF-8") from error
    except OSError as error:
        raise DiskError(f"cannot open {path}: {error.strerror or error}") from error
    except Exception as error:
        if failure := _failure(path, error):
            raise failure from error
        raise


def _failure(path: Path, error: Exception) -> Refused | None:
    """Return what an error of apsw's means; None where it is a mistake of ours.

    What SQLite and its extensions say of parts that are missing or damaged has no end of wordings.
    """
    import apsw  # noqa: PLC0415 (an extra)

    if "syntax error" in str(error):
        return None
    meanings: list[tuple[tuple[type[Exception], ...], type[Refused], str]] = [
        ((apsw.BusyError, apsw.LockedError), Busy, f"another process is writing to {path}"),
        ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), Damaged,
         f"{path} is damaged, or no database: {error}"),
        ((apsw.SQLError, apsw.ConstraintError, apsw.MismatchError, apsw.SchemaChangeError),
         Damaged, f"{path} is damaged, or lacks a part: {error}"),
        ((apsw.TooBigError, apsw.NoMemError, MemoryError), Damaged,
         f"{path} holds a value that is larger than any of ours"),
        ((apsw.InterruptError,), Damaged,
         f"{path} is damaged: reading it does not come to an end"),
        ((apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError,
          apsw.PermissionsError), DiskError, f"the disk refused {path}: {error}"),
    ]  # fmt: skip
    for kinds, failure, sentence in meanings:
        if isinstance(error, kinds):
            return failure(sentence)
    return None
