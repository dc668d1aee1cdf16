"""The index of a memory directory: answers as a scan of all files would, in milliseconds.

The index is a cache. Before each answer it is brought up to date with the files:

- If the directory's stamp has changed, names that appeared or disappeared are recorded.
- Every `rescan_seconds` the stamps of all files are compared, which finds edits made by hand.
- The stamps of the hits are compared before they are returned.

A damaged file is deleted and made anew. Where no file can be used, the index is kept in memory.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from aiaml_server.errors import StoreError
from aiaml_server.format.filters import EVERYTHING, Filter
from aiaml_server.format.memory import Memory
from aiaml_server.format.question import Question
from aiaml_server.format.scorer import MAX_HITS, Found, Hit, clean, every_hit, rank
from aiaml_server.index.counting import find
from aiaml_server.index.database import IN, Database, listed
from aiaml_server.index.listing import NEWEST_FIRST, Counts, Names, Stamps, count, labels, select
from aiaml_server.index.ranking import Answer, answer, rank_files
from aiaml_server.index.recording import Recorder
from aiaml_server.storage.cache import delete_index, make_index_file
from aiaml_server.storage.store import Store

log = logging.getLogger(__name__)

RESCAN_SECONDS = 4.0  # so that an edit by hand is seen within five
BACKGROUND_FILES = 5_000  # new ones, from which a server answers by a scan meanwhile

_BATCH = 5_000  # files
_BACKGROUND_BATCH = 1_000
_PAUSE_SECONDS = 0.1  # between two batches in the background, in which a question has its turn
_FIRST = slice(MAX_HITS)
_BY_ID = f"SELECT name FROM files WHERE memory_id {IN} {NEWEST_FIRST}"

T = TypeVar("T")
# What a question returns, and the stamps of files that must not have changed since.
Result = tuple[T, Stamps]


class Index:
    """Finds, lists and counts the memories of a store. Safe to use from any thread.

    A question raises StoreError if the directory cannot be read.

    Attributes:
        problem: a sentence about what was wrong with the file; empty while nothing was.
    """

    def __init__(
        self,
        store: Store,
        *,
        background: bool = False,
        rescan_seconds: float | None = RESCAN_SECONDS,
    ) -> None:
        """Make the index of a store. Nothing is opened before the first question.

        Args:
            store: the memories.
            background: whether to record many new files in a thread, for a program that lives long.
            rescan_seconds: how often to compare the stamps of all files; None for never.
        """
        self.problem = ""
        self._store = store
        self._background = background
        self._rescan_seconds = rescan_seconds
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread()
        self._in_memory = False
        self._opened: tuple[Database, Recorder] | None = None

    # --- questions --------------------------------------------------------------------------

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the best hits in the order that `scorer.rank` defines.

        Raises:
            InvalidInput: the keywords are too many, or too long.
        """
        return self.search_keywords(keywords).hits

    def search_keywords(
        self, keywords: Iterable[str], wanted: Filter = EVERYTHING, part: slice = _FIRST
    ) -> Found:
        """Return a part of the hits that `think` finds among the memories that match.

        Raises:
            InvalidInput: the keywords are too many, or too long.
        """
        words = clean(keywords)

        def scan() -> Found:
            hits = every_hit(wanted.among(self._store.scan()), words)
            return Found(len(hits), hits[part])

        return self._ask(lambda database: find(database, words, wanted, part), scan)

    def search(
        self,
        question: Question,
        wanted: Filter = EVERYTHING,
        part: slice = _FIRST,
        least_share: float = 0.0,
    ) -> Answer:
        """Return a part of the answer to a person's question; `ranking` defines the order.

        A memory's words must have at least a share of the question's rarity, from 0 to 1.
        """
        return self._ask(lambda database: answer(database, question, wanted, part, least_share))

    def files(self, ids: Collection[str]) -> dict[str, list[tuple[str, Memory]]]:
        """Return for each id that any file carries its files' names and memories, newest first."""
        names = self._ask(
            lambda database: ([name for (name,) in database.rows(_BY_ID, [listed(ids)])], {}),
            lambda: sorted(self._store.names(), reverse=True),
        )
        found: dict[str, list[tuple[str, Memory]]] = {}
        for name, memory in self._store.scan(names):
            if memory.id in ids:
                found.setdefault(memory.id, []).append((name, memory))
        return found

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with a text."""
        statement = (
            "SELECT DISTINCT memory_id FROM files"
            " WHERE instr(memory_id, json_extract(?, '$[0]')) = 1 ORDER BY memory_id"
        )
        rows = self._ask(
            lambda database: (database.rows(statement, [listed([prefix])]).fetchall(), {})
        )
        return [memory_id for (memory_id,) in rows]

    def dated(self, wanted: Filter = EVERYTHING) -> list[tuple[int | None, str]]:
        """Return the time and the file name of the memories that match, newest first."""
        return self._ask(
            lambda database: (select(database, "instant, name", wanted, None, NEWEST_FIRST), {})
        )

    def labels(self, field: str) -> Names:
        """Return the agents, users or topics (`agent`), and how many memories have each."""
        return self._ask(lambda database: (labels(database, field, EVERYTHING), {}))

    def counts(self, wanted: Filter, question: Question | None = None) -> Counts:
        """Count what a filter lets through, and what a question finds."""

        def ask(database: Database) -> Result[Counts]:
            ids = rank_files(database, question, EVERYTHING)[0] if question else None
            return count(database, wanted, ids), {}

        return self._ask(ask)

    def verify(self) -> str:
        """Compare the index with all files; return a sentence about the first difference."""
        memories = dict(self._store.scan())
        if different := memories.keys() ^ {name for _, name in self.dated()}:
            return f"the index and the files differ in {min(different)}"
        for memory in list(memories.values())[:: len(memories) // 10 + 1]:  # ten of them
            keywords = memory.content[:80].split()
            if self.think(keywords) != rank(memories.items(), keywords):
                return f"the index does not answer {' '.join(keywords)!r} as the files do"
        return ""

    def forget(self) -> None:
        """Remove all traces of deleted memories from the index.

        A file that cannot be written is deleted, and so are those of other versions.
        """
        self.labels("agent")  # any question makes it agree with the files
        with self._lock, suppress(OSError):
            try:
                if self._opened:
                    self._opened[0].rows("VACUUM")
            except sqlite3.Error:
                delete_index(self._store.base)
            if self._in_memory:
                delete_index(self._store.base)
            delete_index(self._store.base, others=True)

    def close(self) -> None:
        """Stop what runs in the background, and close the file."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            self._close()

    # --- how a question is answered ---------------------------------------------------------

    def _ask(self, ask: Callable[[Database], Result[T]], scan: Callable[[], T] | None = None) -> T:
        """Answer a question from the index as the files are now.

        Args:
            ask: the question to the database.
            scan: how to answer from the files, while many are not recorded yet.
        """
        try:
            with self._lock:
                while True:
                    try:
                        answer = self._ask_current(ask, scan)
                        break
                    except (StoreError, MemoryError):  # nothing is wrong with the index
                        raise
                    except Exception as error:
                        # What a damaged file holds can make any statement on it fail.
                        if self._in_memory:
                            raise
                        if scan and "locked" in str(error):  # another process makes the index
                            answer = scan
                            break
                        self._recover(error)
            return answer()  # without the lock, so that files are recorded during a scan
        finally:
            self._store.log_skipped()  # without the lock, so that nobody waits for the log

    def _recover(self, error: Exception) -> None:
        """Delete a damaged file; go on in memory if it is not damaged, or damaged once more."""
        is_lost = re.search("no such|readonly", str(error))  # as when it was deleted meanwhile
        is_damaged = not isinstance(error, sqlite3.OperationalError) or is_lost
        self._close()
        self._in_memory = not is_damaged or bool(self.problem)
        self.problem = f"the index could not be used ({error})"
        log.warning("%s: %s", self._store.base, self.problem)
        if not self._in_memory:
            with suppress(OSError):
                delete_index(self._store.base)

    def _ask_current(
        self, ask: Callable[[Database], Result[T]], scan: Callable[[], T] | None
    ) -> Callable[[], T]:
        """Return what gives the answer: a scan, or the result of an index that is up to date."""
        directory = self._store.stamp()
        if directory is None:
            return lambda: ask(Database(None))[0]
        database, recorder = self._open()
        recorder.find_changes(directory)
        if scan and self._background and len(recorder.pending) > BACKGROUND_FILES:
            return partial(self._scan, scan)
        checked: set[str] = set()
        while True:
            while not recorder.is_done:
                recorder.record(_BATCH)
            with database.transaction():
                result, stamps = ask(database)
            changed = {name for name in stamps if self._store.stamp(name) != stamps[name]}
            if changed <= checked:
                return lambda: result
            checked |= changed
            recorder.pending.update(dict.fromkeys(changed))

    def _scan(self, scan: Callable[[], T]) -> T:
        """Answer by a scan, then record in the background: the first answer must not wait."""
        result = scan()
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._record, name="index", daemon=True)
            self._thread.start()
        return result

    def _open(self) -> tuple[Database, Recorder]:
        if self._opened and not self._opened[0].is_current:
            self._close()
        if not self._opened:
            database = Database(None if self._in_memory else make_index_file(self._store.base))
            self._opened = database, Recorder(self._store, database, self._rescan_seconds)
        return self._opened

    def _close(self) -> None:
        if self._opened:
            with suppress(sqlite3.Error):
                self._opened[0].close()
        self._opened = None

    def _record(self) -> None:
        """Record what is pending, a few files at a time, so that questions have their turn."""
        while not self._closed.wait(_PAUSE_SECONDS):
            with self._lock:
                if not (self._opened and self._opened[1].pending):
                    return
                try:
                    self._opened[1].record(_BACKGROUND_BATCH)
                except Exception as error:  # noqa: BLE001 (the next question deals with it)
                    log.info("Stopped indexing in the background: %s", error)
                    return
