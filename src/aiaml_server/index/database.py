"""The SQLite file of an index: its tables, and how files are recorded in it.

`postings` is a contentless FTS5 table that maps the number of a counted term to memories. The words
themselves stand only in `terms` and `texts`, where `secure_delete` overwrites what is deleted: FTS5
keeps deleted terms until it merges its segments, but those are numbers here.

Ids are never used twice, so what another process has added is what has a higher id.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import fields
from aiaml_server.index.terms import TermCounts, Vocabulary, count_terms
from aiaml_server.storage.store import Stamp
from aiaml_server.timestamps import parse_timestamp

LOCK_SECONDS = 5.0
"""How long to wait for another process that writes."""

_TEXTS_PER_TERM = 3  # looking up a term costs as much as counting a keyword in three texts
_FEWEST_TERMS = 100
_SETTINGS = """
PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL; PRAGMA secure_delete = ON;
PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY;
"""
_SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name UNIQUE, modified, changed, inode, size, problem,
    memory_id, timestamp, instant, length, is_exact
);
CREATE INDEX files_by_id ON files (memory_id);
CREATE INDEX files_by_time ON files (instant DESC, name DESC);
CREATE INDEX files_not_exact ON files (id) WHERE NOT is_exact;
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent);
CREATE TABLE labels (file, field, label, key, PRIMARY KEY (file, field, label)) WITHOUT ROWID;
CREATE INDEX labels_by_key ON labels (field, key, file, label);
CREATE TABLE directory (modified, changed, inode, size);
CREATE TABLE terms (id INTEGER PRIMARY KEY AUTOINCREMENT, term UNIQUE);
CREATE VIRTUAL TABLE postings USING fts5(
    numbers, content='', columnsize=0, detail=none, tokenize='ascii'
);
INSERT INTO postings (postings, rank) VALUES ('hashsize', 16777216);
PRAGMA user_version = 1
"""
IN = "IN (SELECT value FROM json_each(?))"


class ReadFile(NamedTuple):
    """A file as it was read.

    Attributes:
        name: its name in the directory.
        stamp: of the file before it was read.
        memory: what it states; None if it states none.
        problem: why there is no memory.
    """

    name: str
    stamp: Stamp
    memory: Memory | None = None
    problem: str | None = None


class Database:
    """One connection to the file of an index. Used by one thread at a time.

    Attributes:
        vocabulary: the counted terms, as of the last `load_terms`.
        most_terms: the number of terms beyond which a keyword is sooner counted in all texts.
    """

    def __init__(self, path: Path | None) -> None:
        """Open a file, and create its tables if it has none.

        Args:
            path: None for a database in memory.

        Raises:
            sqlite3.Error: the file is damaged, or cannot be used.
            OSError: it cannot be created.
        """
        if path:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.vocabulary = Vocabulary()
        self.most_terms = _FEWEST_TERMS
        self._path = path
        self._inode = path.stat().st_ino if path else 0
        self._connection = sqlite3.connect(
            path or ":memory:",
            timeout=LOCK_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._connection.executescript(_SETTINGS)
            with self.transaction("IMMEDIATE"):
                if self.rows("PRAGMA user_version").fetchone() == (0,):
                    for statement in _SCHEMA.split(";\n"):
                        self.rows(statement)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def is_current(self) -> bool:
        """Whether the file still has its name: anybody may delete an index at any time."""
        try:
            return self._path is None or self._path.stat().st_ino == self._inode
        except OSError:
            return False

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        """Read one state of the file; or write, where the kind is `IMMEDIATE`."""
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def rows(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a statement and return a cursor over its rows."""
        return self._connection.execute(statement, values)

    def load_terms(self) -> None:
        """Add to the vocabulary what was recorded since the last time."""
        ((files,),) = self.rows("SELECT count(*) FROM files")
        self.most_terms = max(_FEWEST_TERMS, int(files) // _TEXTS_PER_TERM)
        statement = "SELECT id, term FROM terms WHERE id > ? ORDER BY id"
        self.vocabulary.add(self.rows(statement, [self.vocabulary.last_id]).fetchall())

    def numbers(self, terms: Collection[str]) -> dict[str, str]:
        """Return the numbers of the counted terms that are recorded, as text."""
        statement = f"SELECT term, CAST(id AS TEXT) FROM terms WHERE term {IN}"
        return dict(self.rows(statement, [listed(terms)]))

    def files_of(self, terms: Collection[str]) -> Iterator[tuple[str, list[int]]]:
        """Yield each counted term that is recorded with the ids of the files that have it."""
        for term, number in self.numbers(terms).items():
            rows = self.rows("SELECT rowid FROM postings WHERE postings MATCH ?", [number])
            yield term, [file for (file,) in rows]

    # --- recording --------------------------------------------------------------------------

    @property
    def directory(self) -> Stamp | None:
        """The stamp of the directory when all its files were recorded."""
        row = self.rows("SELECT * FROM directory").fetchone()
        return Stamp(*row) if row else None

    @directory.setter
    def directory(self, stamp: Stamp) -> None:
        self.rows("DELETE FROM directory")
        self.rows("INSERT INTO directory VALUES (?, ?, ?, ?)", stamp)

    def add(self, files: Sequence[ReadFile]) -> None:
        """Record files that are not recorded."""
        ((last,),) = self.rows("SELECT max(seq) FROM sqlite_sequence WHERE name = 'files'")
        counted: dict[int, TermCounts] = {}
        for number, file in enumerate(files, (last or 0) + 1):
            described: tuple[object, ...] = (None,) * 5
            if memory := file.memory:
                texts = [text for _, text in fields(memory)]
                _, *lengths = counted[number] = count_terms(*texts)
                described = memory.id, memory.timestamp, parse_timestamp(memory.timestamp), *lengths
                self.rows("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", [number, *texts])
                labels = [("agent", memory.agent), ("user", memory.user)]
                for field, label in [*labels, *[("topic", topic) for topic in memory.topics]]:
                    values = number, field, label, label.casefold()
                    self.rows("INSERT OR IGNORE INTO labels VALUES (?, ?, ?, ?)", values)
            row = number, file.name, *file.stamp, file.problem, *described
            self.rows(f"INSERT INTO files VALUES (?{', ?' * 11})", row)
        terms = set().union(*[counts.terms for counts in counted.values()])
        numbers = self.numbers(terms)
        new = sorted(terms - numbers.keys())
        self._connection.executemany(
            "INSERT INTO terms (term) VALUES (?)", [(term,) for term in new]
        )
        numbers |= self.numbers(new)
        self._connection.executemany(
            "INSERT INTO postings (rowid, numbers) VALUES (?, ?)",
            [
                (number, " ".join(map(numbers.__getitem__, counts.terms)))
                for number, counts in counted.items()
            ],
        )

    def remove(self, names: Collection[str]) -> None:
        """Remove what is recorded of files, and the words that no other file has."""
        removed: set[str] = set()
        asked = [listed(names)]
        files = f"IN (SELECT id FROM files WHERE name {IN})"
        for number, *texts in self.rows(f"SELECT * FROM texts WHERE id {files}", asked).fetchall():
            terms = count_terms(*texts).terms
            removed.update(terms)
            self.rows(
                "INSERT INTO postings (postings, rowid, numbers) VALUES ('delete', ?, ?)",
                [number, " ".join(self.numbers(terms).values())],
            )
        self.rows(f"DELETE FROM texts WHERE id {files}", asked)
        self.rows(f"DELETE FROM labels WHERE file {files}", asked)
        self.rows(f"DELETE FROM files WHERE name {IN}", asked)
        unused = [term for term, files in self.files_of(removed) if not files]
        self.rows(f"DELETE FROM terms WHERE term {IN}", [listed(unused)])


def listed(values: Iterable[object]) -> str:
    """Return what stands for values in `IN`."""
    return json.dumps(list(values))
