"""Where the index is kept: one SQLite file, which is chosen here, and how it is written.

Each file of the store has a row, whose number is its *document*; a memory also has the text that
`scorer` searches, in lower case, and its terms are among the `postings`. Unless it is *unindexed*,
because it waits for that or is not worth it: then it is scored as a text.
"""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from zlib import crc32

from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import fields
from aiaml_server.index import checked, facets, postings, tuning
from aiaml_server.index.checked import CheckedFile, sum_of
from aiaml_server.index.facets import Described, Facets, Step
from aiaml_server.index.postings import Postings
from aiaml_server.index.records import (
    ROW,
    TEXT,
    TIE_BREAK,
    FileEntry,
    Known,
    facts_of,
    packed,
    row_sums,
    text_sum,
    texts_of,
    unpacked,
)
from aiaml_server.index.tokens import Batch, about, tokenize
from aiaml_server.index.tuning import SEGMENT
from aiaml_server.index.view import View, last_doc, order_sum, unindexed
from aiaml_server.storage.sqlite import files_of
from aiaml_server.storage.store import Stamp
from aiaml_server.timestamps import parse_timestamp

SCHEMA = 12
_SUFFIX = ".sqlite"
_NAME = re.compile(r"[0-9]{1,6}-[0-9a-f]{8}(?:-[0-9a-f]{8})?\.sqlite")

_TABLES = f"""{checked.TABLES}
CREATE TABLE directory (modified, changed, inode, size);
INSERT INTO directory VALUES (0, 0, 0, 0);
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name BLOB UNIQUE, modified, changed, inode, size,
    memory_id, timestamp, instant, problems, tie_break_sum, sum
);
CREATE INDEX by_memory_id ON files (memory_id);
CREATE INDEX newest ON files (instant, name);
CREATE TABLE texts (id INTEGER PRIMARY KEY, topics, content, user, agent, text_sum);
CREATE TABLE unindexed (id INTEGER PRIMARY KEY, size);
{postings.TABLES}{facets.TABLES}"""

_KNOWN = """
SELECT name, modified, changed, inode, size FROM files WHERE name > ? ORDER BY name LIMIT ?
"""
_FIND = "SELECT id, name, modified, changed, inode, size FROM files WHERE name IN ({})"
_TEXT_SUMS = "SELECT id, text_sum FROM texts WHERE id IN ({})"
_RECORDED = """
SELECT memory_id, timestamp, instant, problems, topics, content, user, agent
FROM files LEFT JOIN texts USING (id) WHERE id = ?
"""
_ADD_FILE = "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_TEXT = "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)"
_MEMORIES = "SELECT id FROM files WHERE memory_id IS NOT NULL AND id IN ({})"
_RESTAMP = "UPDATE files SET (modified, changed, inode, size, sum) = (?, ?, ?, ?, ?) WHERE id = ?"


# --- its file -------------------------------------------------------------------------------------


def file_of(directory: Path) -> Path:
    """Return the database file for this kind of process: the one that is there, or a new name.

    Texts are cut by Python's Unicode tables, and local times depend on the zone; a process that
    sees either differently has a file of its own. No two files ever have the same name, so that
    what SQLite keeps beside one (a journal) is never taken for that of the next.
    """
    prefix = f"{SCHEMA}-{_kind()}-"
    try:
        names = os.listdir(directory)  # noqa: PTH208 (asked before every answer)
    except OSError:
        names = []
    there = [name for name in names if name.startswith(prefix) and _NAME.fullmatch(name)]
    return directory / (min(there) if there else f"{prefix}{os.urandom(4).hex()}{_SUFFIX}")


@cache
def _kind() -> str:
    local = [
        parse_timestamp(f"{year}-{month:02}-01")
        for year in range(1990, 2030, 8)
        for month in (1, 7)
    ]
    kind = f"{unicodedata.unidata_version} {sys.byteorder} {local}"
    return f"{crc32(kind.encode()):08x}"


def databases(directory: Path) -> list[Path]:
    """Return the databases of all kinds of processes in a directory."""
    return [path for path in directory.glob(f"*{_SUFFIX}") if _NAME.fullmatch(path.name)]


def remove(path: Path) -> None:
    """Delete a database file and what SQLite keeps beside it."""
    for beside in files_of(path):
        with suppress(OSError):
            beside.unlink()


def remove_others(path: Path, older_than: float) -> None:
    """Delete databases of other kinds of processes, unused for so many seconds."""
    for other in databases(path.parent):
        with suppress(OSError):
            if other != path and time.time() - other.lstat().st_mtime > older_than:
                remove(other)


# --- its tables -----------------------------------------------------------------------------------


class Database(CheckedFile):
    """One open database. Its user holds a lock: no method may run twice at a time.

    Any method raises sqlite3.Error when the file is damaged or the disk refuses.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        hurried: Callable[[], bool] = lambda: False,
        local: bool = False,
    ) -> None:
        """Open the file, as `SharedFile` does; without a path, a database in memory."""
        self._postings = Postings(self)
        self._facets = Facets(self)
        super().__init__(path, _TABLES, SCHEMA, hurried=hurried, local=local)

    @property
    def there(self) -> bool:
        """Whether the file still is the one to use (a person may delete it at any time)."""
        return super().there and (self.path is None or file_of(self.path.parent) == self.path)

    @property
    def folder(self) -> Path | None:
        """Where the file is; None in memory."""
        return self.path.parent if self.path else None

    @contextmanager
    def view(self) -> Iterator[View]:
        """Read one state of the database, whatever other processes write meanwhile."""
        with self.snapshot():
            yield View(self, self._postings, self._facets)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing, alone among the processes."""
        with super().transaction():
            self.verified.make_room(self.end + SEGMENT)  # with what one step adds
            yield

    # --- files ----------------------------------------------------------------------------------

    def directory(self) -> Stamp:
        """Return the directory's stamp as of the last time all files were compared."""
        return Stamp(*self.read("SELECT * FROM directory")[0])

    def set_directory(self, stamp: Stamp) -> None:
        """Record the directory's stamp."""
        with self.transaction():
            self.sql.execute(
                "UPDATE directory SET (modified, changed, inode, size) = (?, ?, ?, ?)", stamp
            )

    def known(self, after: str = "", most: int = -1) -> Iterator[tuple[str, Stamp]]:
        """Return up to `most` files, or all, whose names come after `after`, in their order."""
        while most:
            size = min(most, tuning.LISTED) if most > 0 else tuning.LISTED
            rows = self.read(_KNOWN, (packed(after), size))
            yield from ((unpacked(name), Stamp._make(stamp)) for name, *stamp in rows)
            if len(rows) < tuning.LISTED:
                return
            after, most = unpacked(rows[-1][0]), most - len(rows) if most > 0 else most

    def read_from(self, first: int) -> set[str]:
        """Return the files whose numbers are not below `first`, and that bear a stamp."""
        rows = self.read("SELECT name FROM files WHERE id >= ? AND inode > 0", (first,))
        return {unpacked(name) for (name,) in rows}

    def any_name(self, few: int) -> str:
        """Return the name of a random file; empty while there are at most `few`."""
        count, last = self.read("SELECT count(*), max(id) FROM files")[0]
        if count <= few:
            return ""
        some = int.from_bytes(os.urandom(8), "little") % (last + 1)
        rows = self.read("SELECT name FROM files WHERE id >= ? ORDER BY id LIMIT 1", (some,))
        return "".join(unpacked(name) for (name,) in rows)

    def malformed(self) -> list[tuple[str, str]]:
        """Return the files that are no memories, with their problems."""
        rows = self.read("SELECT name, problems FROM files WHERE memory_id IS NULL")
        return [(unpacked(name), problems) for name, problems in rows]

    # --- recording ------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The number that all documents are below."""
        return last_doc(self) + 1

    def find(self, names: Iterable[str]) -> dict[str, Known]:
        """Return what is recorded of some files."""
        return {
            unpacked(name): Known(doc, unpacked(name), Stamp._make(stamp))
            for doc, name, *stamp in self.read_some(_FIND, map(packed, names))
        }

    def add(self, entries: Iterable[FileEntry]) -> None:
        """Record files that are not, at most as many as their segment takes.

        Their texts are found from then on; they wait to be tokenized.
        """
        rest, step = iter(entries), Step()
        while self._add(islice(rest, tuning.ADDED), step) == tuning.ADDED:
            pass
        self._facets.finish(step)

    def _add(self, entries: Iterable[FileEntry], step: Step) -> int:
        first = self.end
        texts_sum, described = 0, {}
        files: list[tuple[object, ...]] = []
        texts: list[tuple[object, ...]] = []
        waiting: list[tuple[int, int | None]] = []
        for doc, entry in enumerate(entries, first):
            self.beat()
            facts = facts_of(entry)
            files.append(
                (doc, packed(entry.name), *entry.stamp, *facts, *row_sums(doc, entry, facts))
            )
            if isinstance(entry.found, Memory):
                searched = fields(entry.found)
                described[doc] = Described.of(entry.found, facts[2])
                its_sum = text_sum(doc, searched)
                texts_sum += its_sum
                columns = [text for _, text in searched]
                texts.append((doc, *columns, its_sum))
                waiting.append((doc, sum(map(len, columns))))
        self.sql.executemany(_ADD_FILE, files)
        self.sql.executemany(_ADD_TEXT, texts)
        agreed = bytes([ROW | TEXT | TIE_BREAK]) * len(files)
        self.verified.docs[first : first + len(files)] = agreed
        self._leave(waiting)
        self._facets.add(described, step)
        self.change_sum("order", order_sum(self, "files WHERE id >= ?", (first,)))
        self.change_sum("texts", texts_sum)
        return len(files)

    def _leave(self, rows: Collection[tuple[int, int | None]]) -> None:
        """Leave memories unindexed, each with its characters if it waits to be tokenized."""
        self.sql.executemany("INSERT INTO unindexed VALUES (?, ?)", rows)
        self.change_sum("unindexed", sum_of(rows))
        waiting, skipped = unindexed(self)
        waiting.update((doc, size) for doc, size in rows if size is not None)
        skipped.update(doc for doc, size in rows if size is None)

    def _take(self, docs: Iterable[int]) -> None:
        """Take memories from among the unindexed, if they are there."""
        waiting, skipped = unindexed(self)
        rows = [(doc, waiting.pop(doc, None)) for doc in docs if doc in waiting or doc in skipped]
        skipped.difference_update(doc for doc, _ in rows)
        self.sql.executemany("DELETE FROM unindexed WHERE id = ?", [row[:1] for row in rows])
        self.change_sum("unindexed", -sum_of(rows))

    def restamp_if_same(self, known: Known, entry: FileEntry) -> bool:
        """Record the stamp of a file that holds what is recorded of it; False if it does not."""
        held = self.sql.execute(_RECORDED, (known.id,)).fetchone()
        facts = facts_of(entry)
        same = bool(held == (*facts, *texts_of(entry)))
        if same and isinstance(entry.found, Memory):  # the text is in lower case, without borders
            same = self._facets.agree(known.id, Described.of(entry.found, facts[2]))
        if same:
            _, its_sum = row_sums(known.id, entry, facts)
            self.sql.execute(_RESTAMP, (*entry.stamp, its_sum, known.id))
        return same

    def forget(self, docs: Sequence[int]) -> None:
        """Remove files with all that is recorded of them."""
        if not docs:
            return
        view = View(self, self._postings, self._facets)
        left = unindexed(self)
        by_segment: defaultdict[int, set[int]] = defaultdict(set)
        for (doc,) in self.read_some(_MEMORIES, docs):
            if doc not in left:
                by_segment[doc // SEGMENT].add(doc)
        for segment, its in by_segment.items():
            terms = set[bytes]()
            for _, searched in view.texts(its):
                terms.update(about(searched), *[tokenize(text) for _, text in searched])
            self._postings.remove(segment, {doc % SEGMENT for doc in its}, terms)
        self._facets.remove(docs)
        self.change_sum("texts", -sum(each for _, each in self.read_some(_TEXT_SUMS, docs)))
        in_order = sum(order_sum(self, "files WHERE id = ?", (doc,)) for doc in docs)
        self.change_sum("order", -in_order)
        for table in ("files", "texts"):
            self.sql.executemany(f"DELETE FROM {table} WHERE id = ?", [(doc,) for doc in docs])
        for doc in docs:
            self.verified.docs[doc] = 0  # the number may be given again
        self._take(docs)

    def tokenize(self) -> Iterator[None]:
        """At each step tokenize a few of the memories that wait, or record what was found.

        What belongs together is recorded together: as much of a segment as a transaction takes.
        Nothing is recorded where one of these was changed or forgotten between the steps.
        """
        while True:
            with self.view() as view:
                if not view.due:
                    return
                segment = min(view.waiting) // SEGMENT
                rest = sorted([doc for doc in view.waiting if doc // SEGMENT == segment])[::-1]
            batch, sums, unfit = Batch(), dict[int, int](), list[int]()
            size = 0
            while rest and size < tuning.STEP_BYTES and len(batch.totals) <= tuning.STEP_TERMS:
                with self.view() as view:
                    some, end = list[int](), size + tuning.PIECE_BYTES
                    while rest and size < end:
                        if (doc := rest.pop()) in view.waiting:
                            some.append(doc)
                            size += view.waiting[doc]
                    for doc, searched in view.texts(some):
                        sums[doc] = text_sum(doc, searched)
                        if not batch.add(doc % SEGMENT, searched):
                            unfit.append(doc)
                yield
            with self.transaction():
                still = sums.keys() & unindexed(self).waiting.keys()
                now = dict(self.read_some(_TEXT_SUMS, still))
                if now == sums:
                    self._postings.add(segment, batch)
                    self._take(sums)
                    self._leave([(doc, None) for doc in unfit])
            yield
