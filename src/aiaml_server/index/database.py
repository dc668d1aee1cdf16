"""The SQLite file of an index: its tables, and how files are recorded in it.

`postings` has the files that have a term, each as often as the term occurs in it, in a row for each
bucket of files. So adding a file rewrites little, and removing it leaves none of its words, because
`secure_delete` overwrites what is deleted. `terms` has each term once, the newest last.

Ids are never used twice, so what another process has added is what has a higher id.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path

from aiaml_server.format.filters import fold
from aiaml_server.format.scorer import fields
from aiaml_server.index.terms import split_terms
from aiaml_server.storage.cache import CacheDatabase
from aiaml_server.storage.store import ReadFile, Stamp
from aiaml_server.timestamps import parse_timestamp

_FEWEST_TERMS = 100
_PART_OF_TERMS = 5  # looking up more than a fifth takes longer than counting in all texts
_BUCKET = 5_000  # ids of files
_OFFSET = "H"  # the type of a place in a bucket: two bytes
_SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name UNIQUE, modified, changed, inode, size, problem,
    memory_id, timestamp, instant, length, is_exact
);
CREATE INDEX files_by_id ON files (memory_id);
CREATE INDEX files_by_time ON files (instant DESC, name DESC);
CREATE INDEX files_not_exact ON files (id) WHERE NOT is_exact;
CREATE INDEX files_with_problem ON files (name, problem) WHERE problem != '';
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent);
CREATE TABLE labels (file INTEGER, key, label, PRIMARY KEY (file, key)) WITHOUT ROWID;
CREATE INDEX labels_by_key ON labels (key, label, file);
CREATE TABLE directory (modified, changed, inode, size);
INSERT INTO directory VALUES (0, 0, 0, 0);
CREATE TABLE terms (id INTEGER PRIMARY KEY AUTOINCREMENT, term UNIQUE);
CREATE TABLE postings (bucket, term, files, PRIMARY KEY (bucket, term)) WITHOUT ROWID;
PRAGMA user_version = 1
"""
IN = "IN (SELECT value FROM json_each(?))"

FilesOf = defaultdict[str, list[int]]  # by term, the places of files in one bucket


class Database(CacheDatabase):
    """The database of an index."""

    def __init__(self, path: Path | None) -> None:
        """Open the file of an index; None for one in memory."""
        self._terms = "\n"  # all, each on a line, in which `str.find` looks for a part
        self._last_term = 0
        super().__init__(path, _SCHEMA)

    def terms_with(self, part: str) -> list[str] | None:
        """Return the terms that contain a text; None if a search of all texts is faster."""
        statement = "SELECT max(id), group_concat(term, char(10)) FROM terms WHERE id > ?"
        ((last, new),) = self.rows(statement, [self._last_term])
        if new:
            self._last_term = last
            self._terms += f"{new}\n"
        most = _FEWEST_TERMS + self._last_term // _PART_OF_TERMS
        found: list[str] = []
        end = 0
        while (at := self._terms.find(part, end)) >= 0:
            if len(found) == most:
                return None
            start = self._terms.rfind("\n", 0, at) + 1
            end = self._terms.find("\n", at)
            found.append(self._terms[start:end])
        return found

    def terms_where(self, condition: str, text: str) -> list[str]:
        """Return the terms that meet a condition in SQL with one text in it."""
        return [term for (term,) in self.rows(f"SELECT term FROM terms WHERE {condition}", [text])]

    def files_of(self, terms: Collection[str]) -> Iterator[tuple[str, Counter[int]]]:
        """Yield terms with how often each occurs in each file; a term once for each bucket."""
        ((last,),) = self.rows("SELECT max(id) FROM files")
        buckets = listed(range((last or 0) // _BUCKET + 1))
        statement = f"SELECT * FROM postings WHERE bucket {IN} AND term {IN}"
        for bucket, term, files in self.rows(statement, [buckets, listed(terms)]):
            first = bucket * _BUCKET
            yield term, Counter(map(first.__add__, array(_OFFSET, files)))

    # --- recording --------------------------------------------------------------------------

    @property
    def directory(self) -> Stamp:
        """The stamp of the directory when all its files were recorded; NEVER before that."""
        (row,) = self.rows("SELECT * FROM directory")
        return Stamp(*row)

    @directory.setter
    def directory(self, stamp: Stamp) -> None:
        self.rows("UPDATE directory SET (modified, changed, inode, size) = (?, ?, ?, ?)", stamp)

    def add(self, files: Sequence[ReadFile]) -> None:
        """Record files that are not recorded."""
        ((last,),) = self.rows("SELECT max(seq) FROM sqlite_sequence WHERE name = 'files'")
        rows: list[tuple[object, ...]] = []
        searched: list[tuple[object, ...]] = []
        labels: list[tuple[int, str, str]] = []
        postings: defaultdict[int, FilesOf] = defaultdict(lambda: defaultdict(list))
        for number, file in enumerate(files, (last or 0) + 1):
            described: tuple[object, ...] = (None,) * 5
            if memory := file.memory:
                texts = [text for _, text in fields(memory)]
                terms, is_exact = split_terms(*texts)
                instant = parse_timestamp(memory.timestamp)
                described = memory.id, memory.timestamp, instant, len(terms), is_exact
                searched.append((number, *texts))
                topics = [("topic", topic) for topic in memory.topics]
                for field, label in [("agent", memory.agent), ("user", memory.user), *topics]:
                    labels.append((number, f"{field} {fold(label)}", label))
                bucket, place = divmod(number, _BUCKET)
                # A loop over the terms would take twice as long.
                lists = map(postings[bucket].__getitem__, terms)
                deque(map(list.append, lists, repeat(place)), maxlen=0)
            rows.append((number, file.name, *file.stamp, file.problem, *described))
        self.insert(f"INSERT INTO files VALUES (?{', ?' * 11})", rows)
        self.insert("INSERT INTO texts VALUES (?, ?, ?, ?, ?)", searched)
        self.insert("INSERT OR IGNORE INTO labels VALUES (?, ?, ?)", labels)
        for bucket, files_of in postings.items():
            self._add_postings(bucket, files_of)

    def _add_postings(self, bucket: int, files_of: FilesOf) -> None:
        terms = sorted(files_of)
        self.insert("INSERT OR IGNORE INTO terms (term) VALUES (?)", [(term,) for term in terms])
        self.insert(
            "INSERT INTO postings VALUES (?, ?, ?) ON CONFLICT DO UPDATE"
            " SET files = CAST(files || excluded.files AS BLOB)",
            [(bucket, term, array(_OFFSET, files_of[term]).tobytes()) for term in terms],
        )

    def remove(self, names: Collection[str]) -> None:
        """Remove what is recorded of files, and the words that no other file has."""
        removed_names = [listed(names)]
        files = f"IN (SELECT id FROM files WHERE name {IN})"
        removed: set[int] = set()
        terms: set[str] = set()
        for file, *texts in self.rows(f"SELECT * FROM texts WHERE id {files}", removed_names):
            removed.add(file)
            terms.update(split_terms(*texts)[0])
        for table in ("texts WHERE id", "labels WHERE file", "files WHERE id"):
            self.rows(f"DELETE FROM {table} {files}", removed_names)
        their_terms = [listed(terms)]
        buckets = listed({file // _BUCKET for file in removed})
        statement = f"SELECT * FROM postings WHERE bucket {IN} AND term {IN}"
        for bucket, term, recorded in self.rows(statement, [buckets, *their_terms]).fetchall():
            places = array(_OFFSET, recorded)
            left = [place for place in places if bucket * _BUCKET + place not in removed]
            values = array(_OFFSET, left).tobytes(), bucket, term
            self.rows("UPDATE postings SET files = ? WHERE bucket = ? AND term = ?", values)
        self.rows(f"DELETE FROM postings WHERE bucket {IN} AND term {IN} AND files = x''", [buckets, *their_terms])# their_terms)
        unused = "NOT EXISTS (SELECT 1 FROM postings WHERE postings.term = terms.term)"
        self.rows(f"DELETE FROM terms WHERE term {IN} AND {unused}", their_terms)


def listed(values: Iterable[object]) -> str:
    """Return what stands for values in `IN`."""
    return json.dumps(list(values))
