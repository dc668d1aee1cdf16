"""The SQLite file of an index: its tables, and how files are recorded in it.

`postings` has the files that have a term, each as often as the term occurs in it, in a row for each
bucket of files, so that adding a file rewrites little. Agents, users and topics are recorded there
too, as `label` writes them. `terms` has each term once.

`secure_delete` overwrites deleted rows. Older copies can remain in free pages, so `Index.forget`
also runs `VACUUM`.

Ids are never used twice, so what another process has added is what has a higher id.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiaml_server.format.filters import labels_of
from aiaml_server.format.scorer import fields
from aiaml_server.index.terms import split_terms
from aiaml_server.storage.cache import CacheDatabase
from aiaml_server.storage.store import ReadFile
from aiaml_server.timestamps import parse_timestamp

_BUCKET = 5_000  # ids of files
_PLACE = "H"  # the type of a place in a bucket: two bytes
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
CREATE TABLE directory (modified, changed, inode, size);
INSERT INTO directory VALUES (0, 0, 0, 0);
CREATE TABLE terms (term PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE postings (bucket, term, files, PRIMARY KEY (bucket, term)) WITHOUT ROWID;
PRAGMA user_version = 1
"""
_LABEL = "\t"  # what a label begins with, and no term
SEPARATOR = "\x7f"  # the names between are quoted as in an address
IN = "IN (SELECT value FROM json_each(?))"
BEGINS = "term >= ?1 AND term < ?1 || CAST(x'ff' AS TEXT)"  # no text has the byte 0xFF
_ALL_BUCKETS = """
WITH RECURSIVE found(number) AS (
    SELECT min(bucket) FROM postings
    UNION ALL
    SELECT (SELECT min(bucket) FROM postings WHERE bucket > number) FROM found
    WHERE number IS NOT NULL
) SELECT number FROM found
"""
_ADD_TEXTS = "INSERT INTO texts VALUES (?, ?, ?, ?, ?)"
_ADD_FILES = "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_TERMS = """
INSERT OR IGNORE INTO terms SELECT value FROM json_each(?) WHERE value > ' ' -- not a label
"""
_ADD_POSTINGS = """
INSERT INTO postings VALUES (?, ?, ?)
ON CONFLICT (bucket, term) DO UPDATE SET files = CAST(files || excluded.files AS BLOB)
"""

Postings = defaultdict[int, defaultdict[str, bytearray]]  # places by bucket and term


class Database(CacheDatabase):
    """The database of an index."""

    def __init__(self, path: Path | None) -> None:
        """Open the file of an index; None for one in memory."""
        self._terms = "\n"  # all, each on a line, in which `str.find` looks for a part
        self.term_count = 0
        self._read_to = -1  # the last file when `_terms` was read
        super().__init__(path, _SCHEMA)

    def terms_with(self, part: str) -> Iterator[str]:
        """Yield the terms that contain a text."""
        if (last := self._last_file()) != self._read_to:
            ((terms,),) = self.rows("SELECT group_concat(term, char(10)) FROM terms")
            self._terms = f"\n{terms}\n"
            self.term_count = self._terms.count("\n")
            self._read_to = last
        end = 0
        while (at := self._terms.find(part, end)) >= 0:
            start = self._terms.rfind("\n", 0, at) + 1
            end = self._terms.find("\n", at)
            yield self._terms[start:end]

    def postings(self, condition: str, value: str) -> Iterator[tuple[str, Iterable[int]]]:
        """Yield terms and labels with the ids of their files; a term once for each bucket.

        An id is repeated as often as the term occurs.

        Args:
            condition: on `term`, in SQL, with one value.
            value: of the condition.
        """
        for bucket, term, files in self._rows_where(condition, value):
            yield term, map((bucket * _BUCKET).__add__, array(_PLACE, files))

    def _rows_where(self, condition: str, value: str, *buckets: str) -> Iterable[Any]:
        """Return rows of `postings`, from all buckets or from some (as `listed` returns them)."""
        among = IN if buckets else f"IN ({_ALL_BUCKETS})"
        return self.rows(
            f"SELECT bucket, term, files FROM postings WHERE {condition} AND bucket {among}",
            [value, *buckets],
        )

    def _last_file(self) -> int:
        return int(self.rows("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()[0])

    # --- recording --------------------------------------------------------------------------

    def add(self, files: Iterable[ReadFile]) -> None:
        """Record files that are not recorded."""
        described: list[Any] = []
        postings: Postings = defaultdict(lambda: defaultdict(bytearray))
        self.insert(_ADD_TEXTS, self._split(files, described, postings))
        self.insert(_ADD_FILES, described)
        for bucket, files_of in postings.items():
            terms = sorted(files_of)
            self.rows(_ADD_TERMS, [listed(terms)])
            self.insert(_ADD_POSTINGS, ((bucket, term, files_of[term]) for term in terms))

    def _split(
        self, files: Iterable[ReadFile], described: list[Any], postings: Postings
    ) -> Iterator[Any]:
        """Yield the rows of `texts`; collect the rows of `files`, and the postings."""
        for number, file in enumerate(files, self._last_file() + 1):
            memory_columns: Any = [None] * 5
            if memory := file.memory:
                texts = [text for _, text in fields(memory)]
                yield number, *texts
                terms, is_exact = split_terms(*texts)
                instant = parse_timestamp(memory.timestamp)
                memory_columns = memory.id, memory.timestamp, instant, len(terms), is_exact
                labels = [label(*key, name) for key, name in labels_of(memory).items()]
                bucket, place = divmod(number, _BUCKET)
                places, files_of = array(_PLACE, [place]).tobytes(), postings[bucket]
                for term in terms + labels:
                    files_of[term] += places
            described.append((number, file.name, *file.stamp, file.problem, *memory_columns))

    def remove(self, names: Collection[str]) -> None:
        """Remove what is recorded of files, and the words that no other file has."""
        ids = self.rows(f"SELECT id FROM files WHERE name {IN}", [listed(names)])
        chosen = listed(file for (file,) in ids)
        removed = {
            file: split_terms(*texts)[0]
            for file, *texts in self.rows(f"SELECT * FROM texts WHERE id {IN}", [chosen])
        }
        for table in ("texts", "files"):
            self.rows(f"DELETE FROM {table} WHERE id {IN}", [chosen])
        terms = set().union(*removed.values())
        buckets = listed({file // _BUCKET for file in removed})
        rows = [
            *self._rows_where(f"term {IN}", listed(terms), buckets),
            *self._rows_where(BEGINS, _LABEL, buckets),
        ]
        for bucket, term, files in rows:
            first = bucket * _BUCKET
            places = array(_PLACE, files)
            left = array(_PLACE, [place for place in places if first + place not in removed])
            if left != places:
                self.rows("DELETE FROM postings WHERE bucket = ? AND term = ?", [bucket, term])
                self.insert(_ADD_POSTINGS, [(bucket, term, left)] if left else [])
        left_terms = {term for term, _ in self.postings(f"term {IN}", listed(terms))}
        self.rows(f"DELETE FROM terms WHERE term {IN}", [listed(terms - left_terms)])


def listed(values: Iterable[object]) -> str:
    """Return what stands for values in `IN`."""
    return json.dumps(list(values))


@lru_cache(4096)
def label(*parts: str) -> str:
    """Return what stands in `postings` for an agent, user or topic.

    Args:
        parts: the field (`agent`), the folded name, and the name. Fewer of them return how all such
            labels begin.
    """
    return _LABEL + SEPARATOR.join([*(quote(part, errors="surrogatepass") for part in parts), ""])
