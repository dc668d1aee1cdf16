"""The index: answers by keyword and by id, exactly those of a scan of every file, in milliseconds.

It is a cache in one SQLite file (`database`) that all server processes of a directory share and
anybody may delete. Before each answer it brings it up to date with what changed (`freshness`,
`recording`), then selects what is best (`selection`) in one state of it (`view`). The stamps of the
hits are compared before they are given out, whatever the size of the store, so that no answer is
made of an old text.

A question passes four frames: `_then_schedule` has done what follows it, `_with_repair` makes the
database anew if it is damaged, `_on_current` brings it up to date, `_on_view` asks.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TypeVar

from aiaml_server.errors import AiamlError, MalformedFile, NoStateDirectory, StoreError, UnsafePath
from aiaml_server.files import Lock
from aiaml_server.format import bm25
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import MAX_HITS, Found, Hit, every_hit, newest_first, ordered, rank
from aiaml_server.index import tuning
from aiaml_server.index.behind import Behind
from aiaml_server.index.database import Database, databases, file_of, remove, remove_others
from aiaml_server.index.facets import Borders, Counts
from aiaml_server.index.freshness import Closed, Freshness
from aiaml_server.index.ranking import answering, ranked
from aiaml_server.index.recording import Recorder, give_back
from aiaml_server.index.records import Row
from aiaml_server.index.selection import Question, best, can_occur, every
from aiaml_server.index.view import View
from aiaml_server.storage.derived import INDEX, folder
from aiaml_server.storage.sqlite import PATIENCE, TRY, Busy, files_of
from aiaml_server.storage.store import Store
from aiaml_server.storage.watch import is_local

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Mismatch(AiamlError):  # noqa: N818
    """An answer differs from the literal scan: a fault of this program, or a file just changed."""


class Index:
    """Finds memories by keyword and by id. Safe to use from any thread.

    Attributes:
        repaired: what was wrong with the file, where it had to be made anew; empty otherwise.
        unusable: why it is kept in memory; empty while it is on disk.
        kept: whether somebody keeps it open after an answer. Then memories that are new are first
            found as texts, and tokenized behind the answer.
    """

    def __init__(self, store: Store, *, check: bool = False, lasting: bool = True) -> None:
        """Make the index of a store; nothing is opened before the first question.

        Args:
            store: what to find memories in.
            check: compare each answer with the literal scan.
            lasting: whether many questions are to come, so that it pays to watch the directory.
        """
        self.repaired = self.unusable = ""
        self.kept = False
        self._store = store
        self._check = check
        self._lasting = lasting
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._freshness = Freshness(store, self._ended, lasting=lasting)
        self._recorder = Recorder(store, self._freshness, self._ended)
        self._database: Database | None = None
        self._on_disk = True
        self._sweeper = Behind("sweep", self._sweep_slice, self._ended, tuning.SWEEP_SECONDS)
        self._tokenizer = Behind("tokenize", self._tokenize, self._ended)
        self._late = False  # memories wait to be tokenized
        self._failed: sqlite3.DatabaseError | None = None  # what did, behind an answer
        self._urgent = True  # somebody waits for an answer

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the best hits, in the order that `scorer.rank` defines.

        Args:
            keywords: what to look for.

        Raises:
            InvalidInput: the keywords are too many, or too long.
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        question = Question.of(keywords)

        def asked(view: View) -> list[Hit]:
            return _hits(view, best(view, question), question.hit)

        hits = self._then_schedule(asked, by_words=True) or []
        if self._check and hits != (expected := rank(self._store.scan(), question.keywords)):
            raise Mismatch(f"the index answered {hits}, the files say {expected}")
        return hits

    def search(
        self, keywords: Iterable[str], wanted: Filter | None = None, part: slice = slice(MAX_HITS)
    ) -> Found:
        """Return a part of the hits, in the order of `think`, and how many there are.

        Args:
            keywords: what to look for.
            wanted: which memories are meant; None for all.
            part: which of the hits.

        Raises:
            InvalidInput: the keywords are too many, or too long.
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        question = Question.of(keywords)

        def asked(view: View) -> Found:
            marks = view.facets.marks(wanted, view.end) if wanted else None
            total, docs = every(view, question, marks, part.stop)
            return Found(total, _hits(view, docs[part], question.hit))

        found = self._then_schedule(asked, by_words=True) or Found(0, [])
        if self._check:
            pairs = wanted.among(self._store.scan()) if wanted else self._store.scan()
            hits = every_hit(pairs, question.keywords)
            if found != (expected := Found(len(hits), hits[part])):
                raise Mismatch(f"the index found {found}, the files say {expected}")
        return found

    def ask(
        self, question: bm25.Question, wanted: Filter | None = None, part: slice = slice(MAX_HITS)
    ) -> bm25.Answer:
        """Return what answers a question in a person's words, in the order of `bm25`.

        Args:
            question: what is asked.
            wanted: which memories are meant; None for all.
            part: which of the hits.

        Raises:
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """

        def asked(view: View) -> bm25.Answer:
            marks = view.facets.marks(wanted, view.end) if wanted else None
            best = ranked(view, question, marks, part.stop)
            found = Found(best.total, _hits(view, [*best.scores][part], best.hit))
            return bm25.Answer(found, best.question, best.collection, best.apart)

        answer = self._then_schedule(asked, by_words=True) or bm25.rank([], question)
        if self._check:
            meant = wanted.matches if wanted else lambda _: True
            literal = bm25.rank([*self._store.scan()], question, meant)
            expected = Found(literal.found.total, literal.found.hits[part])
            if answer.found != expected:
                raise Mismatch(f"the index found {answer.found}, the files say {expected}")
        return answer

    def files(self, ids: Collection[str]) -> dict[str, list[tuple[str, Memory]]]:
        """Return, for each id that any file carries, its files' names and memories, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        able = list(filter(can_occur, ids))
        names = self._then_schedule(lambda view: {each: view.names(each) for each in able}) or {}
        found = {each: self._carrying(each, names[each]) for each in names}
        return {each: files for each, files in found.items() if files}

    def dated(self, wanted: Filter | None = None) -> list[tuple[int, str]]:
        """Return moment and file's name of each memory that is meant, or of all, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._then_schedule(lambda view: view.dated(wanted)) or []

    def counts(
        self, wanted: Filter, borders: Borders, question: bm25.Question | None = None
    ) -> Counts | None:
        """Count what a filter lets through, and a question finds, also between `borders` in time.

        None while there is no directory.

        Raises:
            StoreError: the directory cannot be read.
        """

        def asked(view: View) -> Counts:
            facets = view.facets
            if question:
                facets = facets.among(answering(view, question))
            return facets.counts(wanted, borders)

        return self._then_schedule(asked, by_words=question is not None)

    def names(self, field: str) -> list[tuple[str, int]]:
        """Return the agents, users or topics (`agent`), and how many memories have each.

        The most frequent come first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._then_schedule(lambda view: view.facets.names(field)) or []

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`.

        Raises:
            StoreError: the directory cannot be read.
        """
        if not can_occur(prefix):
            return []
        return self._then_schedule(lambda view: view.ids(prefix)) or []

    def refresh(self) -> None:
        """Bring the index up to date, which the next question does otherwise.

        What would have to wait for another process is left to that question.

        Raises:
            StoreError: the directory cannot be read.
        """
        self._then_schedule(lambda _: None, urgent=False)

    @property
    def comparing(self) -> float:
        """Seconds of a processor that finding out what changed takes; 0 where the system tells."""
        return self._freshness.comparing

    @property
    def lacks_watch(self) -> bool:
        """Whether a system that could tell what was touched has nothing left to do it with."""
        return self._freshness.lacks_watch

    def close(self) -> None:
        """Stop what is going on, soon, and close the file."""
        self._ended.set()
        with self._lock:
            if self._database:
                self._database.close()
            self._database = None
            self._freshness.close()
        self._tokenizer.join()

    @staticmethod
    def files_in(base: Path) -> list[list[Path]]:
        """Return the files of a base's databases, those of each kind of process together."""
        with suppress(OSError):
            return [files_of(path) for path in databases(folder(base))]
        return []

    @staticmethod
    def delete(base: Path) -> None:
        """Delete a base's databases, which are made anew from the files."""
        with suppress(OSError):
            for path in databases(folder(base)):
                remove(path)

    # --- one question ---------------------------------------------------------------------------

    def _then_schedule(
        self, question: Callable[[View], Answer], *, by_words: bool = False, urgent: bool = True
    ) -> Answer | None:
        """Answer a question, then have done what follows from it.

        Args:
            question: what to ask of a view of the database as the files are now.
            by_words: whether it is quicker if what waits has been tokenized.
            urgent: whether somebody waits for the answer; else it is None where the database is
                busy.

        Returns:
            The answer; None while there is no directory of memories.
        """
        try:
            return self._with_repair(question, by_words=by_words, urgent=urgent)
        finally:
            self._store.tell()  # not while others wait
            if self._late:
                self._tokenizer.ask()
            if urgent and self._freshness.listed:
                self._sweeper.ask()

    def _with_repair(
        self, question: Callable[[View], Answer], *, by_words: bool, urgent: bool
    ) -> Answer | None:
        """Answer from a database that is made anew, or in memory, if need be."""
        with self._lock:
            self._urgent = urgent
            for repair in (self._make_anew, self._move_to_memory):
                try:
                    return self._on_current(question, by_words=by_words)
                except (UnsafePath, NoStateDirectory) as error:  # nothing that may be deleted
                    self._abandon()
                    self._move_to_memory(error)
                except (AiamlError, MemoryError):  # nothing is wrong with the index
                    raise
                except Exception as error:
                    # What a damaged database holds can make any statement on it fail.
                    if self._ended.is_set():
                        raise Closed("the index is closed") from error
                    if isinstance(error, Busy) and not urgent:
                        return None
                    if not self._on_disk:
                        raise
                    lack = _lack_of_descriptors()
                    there = self._abandon()
                    if lack:  # nothing is wrong with the index, which others use too
                        raise StoreError("open", self._store.base / INDEX, lack) from error
                    if there:  # else another process has made it anew
                        repair(error)
            return self._on_current(question, by_words=by_words)

    def _on_current(self, question: Callable[[View], Answer], *, by_words: bool) -> Answer | None:
        """Answer from the database of now, brought up to date."""
        self._late = False
        if failed := self._failed:
            self._failed = None
            damaged = not isinstance(failed, sqlite3.OperationalError) or "no such" in str(failed)
            if damaged or _lack_of_descriptors():
                raise failed
            self._abandon()
            self._move_to_memory(failed)  # texts alone may fit where postings do not
        stamp = self._store.stamp()
        if stamp is None:
            self._abandon()
            self._remove()
            return None
        database = self._opened()
        self._recorder.bring_up_to_date(database, stamp)
        if by_words and not self.kept:  # nobody does so behind an answer
            self._catch_up(database)
        return self._on_view(database, question)

    def _on_view(self, database: Database, question: Callable[[View], Answer]) -> Answer:
        """Answer from one state of the database, until no file of the answer has changed since."""
        while True:
            with database.view() as view:
                answer = question(view)
                self._late = self.kept and view.due
            looked_at = self._recorder.looked_at
            changed = [
                name
                for name, stamp in view.given_out
                if name not in looked_at and self._store.stamp(name) != stamp
            ]
            if not changed:
                return answer
            self._recorder.record(database, changed)

    def _opened(self) -> Database:
        if self._ended.is_set():
            raise Closed("the index is closed")
        try:
            place = folder(self._store.base) if self._on_disk else None
        except FileNotFoundError as error:  # since the question began
            raise StoreError("read", self._store.base, error) from error
        if self._database and not (self._database.there and self._database.folder == place):
            self._abandon()
        if not self._database:
            self._database = self._made() if self._on_disk else self._database_in(None)
            for name, problems in self._database.malformed():
                self._store.report(name, problems)
        return self._database

    def _made(self) -> Database:
        """Open the file that is used now; make it where there is none.

        Processes that find none wait while one of them makes it: each would make one of its own
        otherwise, and index all memories into it, which is what happens where there is no lock.
        """
        place = folder(self._store.base, make=True)
        lock = Lock(place / "lock")
        with nullcontext() if file_of(place).exists() else lock.held(PATIENCE * TRY):
            file = file_of(place)
            database = self._database_in(file)
        remove_others(file, tuning.STALE_SECONDS)
        return database

    def _database_in(self, file: Path | None) -> Database:
        return Database(
            file,
            hurried=lambda: self._ended.is_set() or not self._urgent,
            local=self._lasting and is_local(self._store.directory),
        )

    def _abandon(self) -> bool:
        """Close the database; say whether it was the one that is used now, or there was none."""
        database, self._database = self._database, None
        there = database is None or database.there
        if database:
            with suppress(sqlite3.Error):
                database.close()
        return there

    def _remove(self) -> None:
        """Delete the file that is used now."""
        with suppress(OSError):
            remove(file_of(folder(self._store.base)))

    def _make_anew(self, error: Exception) -> None:
        where = self._store.base / INDEX
        log.warning("The index in %s is made anew: %s", where, error)
        self.repaired = f"the index in {where} is made anew: {error}"
        self._remove()

    def _move_to_memory(self, error: Exception) -> None:
        where = self._store.base / INDEX
        log.warning("The index in %s cannot be used, so it is kept in memory: %s", where, error)
        self.unusable = f"the index in {where} cannot be used, so it is kept in memory: {error}"
        self._on_disk = False

    # --- behind an answer -----------------------------------------------------------------------

    def _catch_up(self, database: Database) -> None:
        """Tokenize what waits for it before an answer."""
        with self._turn() as ours:
            for _ in database.tokenize() if ours else ():
                if self._ended.is_set():
                    return

    def _tokenize(self) -> None:
        """Tokenize what waits, a step at a time, for which a question has to wait.

        Where questions come without a pause, it has its turn for as long as they kept it waiting.
        """
        database: Database | None = None
        steps: Iterator[None] = iter(())
        done, more = 0, True
        with self._turn() as ours:
            while ours and more and not (self._failed or self._ended.wait(tuning.PIECE_REST)):
                began = time.monotonic()
                with self._lock:
                    end = time.monotonic() + min(time.monotonic() - began, tuning.TURN)
                    if database is not self._database:
                        database = self._database
                        steps = database.tokenize() if database else iter(())
                    self._urgent = False
                    try:
                        while more := next(steps, self) is not self:
                            done += 1
                            if time.monotonic() >= end:
                                break
                    except sqlite3.DatabaseError as error:
                        self._failed = error
                        raise
        if done * tuning.PIECE_BYTES > tuning.RECENT_BYTES:
            give_back()

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        """Be the only process that tokenizes inside the `with`; say whether it is so.

        Where nobody can tell, or the one whose turn it is gets nowhere, several may do so: what
        one has recorded comes to nothing with the others.
        """
        database = self._database
        path = database.path if database else None
        if not path or self._ended.is_set():
            yield not self._ended.is_set()
            return
        with Lock(path.with_name("tokenizing")).held(0) as hold:
            yield hold.acquired or hold.problem is not None or _is_still(path)

    def _sweep_slice(self) -> None:
        """Compare the next slice, a few files at a time, so that no question waits for more."""
        for _ in range(0, tuning.SWEEP, tuning.SWEEP_PART):
            began = time.thread_time()
            last = self._sweep_part()
            rest = tuning.SWEEP_REST * (time.thread_time() - began)
            if last or self._ended.wait(rest):
                return

    def _sweep_part(self) -> bool:
        """Compare the next few files; say whether they were the last ones."""
        with self._lock:
            if not self._database:
                return True
            known = self._freshness.next_known(self._database, tuning.SWEEP_PART)
        if changed := self._freshness.differing(known):
            with self._lock:
                self._freshness.suspect(changed)
        return len(known) < tuning.SWEEP_PART

    def _carrying(self, memory_id: str, names: Iterable[str]) -> list[tuple[str, Memory]]:
        found = []
        for name in sorted(names, reverse=True):
            with suppress(FileNotFoundError, MalformedFile):
                found.append((name, self._store.read(name)))
        found = [(name, memory) for name, memory in found if memory.id == memory_id]
        return sorted(found, key=lambda each: newest_first(each[1].timestamp))


def _hits(view: View, docs: Sequence[int], hit: Callable[[Row], Hit | None]) -> list[Hit]:
    """Return the hits of memories in the order of an answer; never are all texts held at once."""
    hits: list[Hit] = []
    for at in range(0, len(docs), tuning.PART):
        hits += filter(None, map(hit, view.rows(docs[at : at + tuning.PART])))
    return ordered(hits)


def _is_still(path: Path) -> bool:
    """Say whether nobody has written to a file for a while."""
    try:
        return time.time() - path.stat().st_mtime > tuning.STILL_SECONDS
    except OSError:
        return True


def _lack_of_descriptors() -> OSError | None:
    """Return the error, if this process cannot open as many files as an index takes."""
    opened: list[int] = []
    try:
        while len(opened) < tuning.DESCRIPTORS:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error if error.errno in (errno.EMFILE, errno.ENFILE) else None
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return None
