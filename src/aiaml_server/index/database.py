"""The SQLite file of an index: its tables, and how files are recorded in it.

`postings` is a contentless FTS5 table that maps the number of a counted term to memories. The words
themselves stand only in `terms` and `texts`, where `secure_delete` overwrites what is deleted: FTS5
keeps deleted terms until it merges its segments, but those are numbers here.

Ids are never used twice, so what another process has added is what has a higher id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from aiaml_server.format.scorer import fields
from aiaml_server.index.terms import TermCounts, Vocabulary, count_terms
from aiaml_server.storage.cache import CacheDatabase
from aiaml_server.storage.store import ReadFile, Stamp
from aiaml_server.timestamps import parse_timestamp

_TEXTS_PER_TERM = 3  # looking up a term costs as much as counting a keyword in three texts
_FEWEST_TERMS = 100
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
CREATE INDEX labels_by_key ON labels (key, file);
CREATE INDEX labels_by_field ON labels (field, key, file, label);
CREATE TABLE directory (modified, changed, inode, size);
CREATE TABLE terms (id INTEGER PRIMARY KEY AUTOINCREMENT, term UNIQUE);
CREATE VIRTUAL TABLE postings USING fts5(
    numbers, content='', columnsize=0, detail=none, tokenize='ascii'
);
INSERT INTO postings (postings, rank) VALUES ('hashsize', 16777216);
PRAGMA user_version = 1
"""
IN = "IN (SELECT value FROM json_each(?))"


class Database(CacheDatabase):
    """The database of an index.

    Attributes:
        vocabulary: the counted terms, as of the last `load_terms`.
        most_terms: the number of terms beyond which a keyword is sooner counted in all texts.
    """

    def __init__(self, path: Path | None) -> None:
        """Open the file of an index; None for one in memory."""
        self.vocabulary = Vocabulary()
        self.most_terms = _FEWEST_TERMS
        super().__init__(path, _SCHEMA)

    def load_terms(self) -> None:
        """Add to the vocabulary what was recorded since the last time."""
        ((files,),) = self.rows("SELECT count(*) FROM files")
        self.most_terms = _FEWEST_TERMS + files // _TEXTS_PER_TERM
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
                topics = [("topic", topic) for topic in memory.topics]
                for field, label in [("agent", memory.agent), ("user", memory.user), *topics]:
                    values = number, field, label, f"{field} {label.casefold()}"
                    self.rows("INSERT OR IGNORE INTO labels VALUES (?, ?, ?, ?)", values)
            row = number, file.name, *file.stamp, file.problem, *described
            self.rows(f"INSERT INTO files VALUES (?{', ?' * 11})", row)
        terms = set().union(*[counts.terms for counts in counted.values()])
        numbers = self.numbers(terms)
        new = sorted(terms - numbers.keys())
        self.insert("INSERT INTO terms (term) VALUES (?)", [(term,) for term in new])
        numbers |= self.numbers(new)
        self.insert(
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
