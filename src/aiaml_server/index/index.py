"""The index: answers by keyword and by id, exactly those of a scan of every file, in milliseconds.

It is a cache in one SQLite file (`database`) that all server processes of a directory share and
anybody may delete. Before each answer it brings it up to date with what changed (`freshness`), then
selects what is best (`selection`). The stamps of the hits are compared before they are given out,
whatever the size of the store, so that no answer is made of an old text.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from aiaml_server.errors import AiamlError, MalformedFile, NotOurs, Nowhere, StoreError
from aiaml_server.files import Lock, is_local
from aiaml_server.format import bm25
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import MAX_HITS, Found, Hit, every_hit, newest_first, ordered, rank
from aiaml_server.index import tuning
from aiaml_server.index.behind import Behind
from aiaml_server.index.database import Database, Entry, Row, file_of, making, remove, remove_others
from aiaml_server.index.freshness import Closed, Freshness
from aiaml_server.index.labels import Counts
from aiaml_server.index.ranking import ranked
from aiaml_server.index.selection import Question, best, can_occur, every
from aiaml_server.moments import present
from aiaml_server.storage.derived import INDEX, folder
from aiaml_server.storage.sqlite import Busy
from aiaml_server.storage.store import NEVER, UNREADABLE, Stamp, Store

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
        self._freshness = Freshness(store, lasting=lasting)
        self._database: Database | None = None
        self._on_disk = True
        self._ended = threading.Event()
        self._sweeper = Behind("sweep", self._sweep_slice, self._ended, tuning.SWEEP_SECONDS)
        self._tokenizer = Behind("tokenize", self._tokenize, self._ended)
        self._late = False  # memories wait to be tokenized
        self._failed: sqlite3.DatabaseError | None = None  # what did, behind an answer
        self._urgent = True  # somebody waits for an answer
        self._verified: set[str] = set()  # names that this answer has looked at
        self._gone: set[str] = set()  # names that were not there when they were to be recorded

    def think(self, keywords: Iterable[str], *, expired: bool = True) -> list[Hit]:
        """Return the best hits, in the order that `scorer.rank` defines.

        Args:
            keywords: what to look for.
            expired: whether memories that no longer hold are among them.

        Raises:
            InvalidInput: the keywords are too many, or too long.
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        question = Question.of(keywords)
        at = None if expired else present()
        hits = self._ask(lambda database: self._think(database, question, at)) or []
        if self._check:
            pairs = (each for each in self._store.scan() if at is None or not each[1].expired(at))
            if hits != (expected := rank(pairs, question.keywords)):
                raise Mismatch(f"the index answered {hits}, the files say {expected}")
        return hits

    def search(
        self,
        keywords: Iterable[str],
        wanted: Filter | None = None,
        first: int = 0,
        last: int | None = MAX_HITS,
    ) -> Found:
        """Return all hits in the order of `think`, or a part of them, and how many there are.

        Args:
            keywords: what to look for.
            wanted: which memories are meant; None for all.
            first: how many hits are passed over.
            last: before which the part ends; None for all.

        Raises:
            InvalidInput: the keywords are too many, or too long.
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        question = Question.of(keywords)
        part = slice(first, last)
        found = self._ask(lambda database: self._search(database, question, wanted, part))
        found = found or Found(0, [])
        if self._check:
            pairs = wanted.among(self._store.scan()) if wanted else self._store.scan()
            hits = every_hit(pairs, question.keywords)
            if found != (expected := Found(len(hits), hits[part])):
                raise Mismatch(f"the index found {found}, the files say {expected}")
        return found

    def ask(
        self,
        question: bm25.Question,
        wanted: Filter | None = None,
        first: int = 0,
        last: int | None = MAX_HITS,
    ) -> bm25.Answer:
        """Return what answers a question in a person's words, in the order of `bm25`.

        Args:
            question: what is asked.
            wanted: which memories are meant; None for all.
            first: how many hits are passed over.
            last: before which the part ends; None for all.

        Raises:
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        part = slice(first, last)
        found = self._ask(lambda database: self._ranked(database, question, wanted, part))
        answer = found or bm25.rank([], question)
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
        names = self._ask(lambda database: {each: database.names(each) for each in able}) or {}
        found = {each: self._carrying(each, names[each]) for each in names}
        return {each: files for each, files in found.items() if files}

    def dated(self, wanted: Filter | None = None) -> list[tuple[int, str]]:
        """Return moment and file's name of each memory that is meant, or of all, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._ask(lambda database: database.dated(wanted)) or []

    def extent(self, wanted: Filter) -> tuple[int, int] | None:
        """Return the first and the last moment of what a filter lets through at any time.

        None where there is no such memory, or none with a moment that a picture can show.

        Raises:
            StoreError: the directory cannot be read.
        """

        def found(database: Database) -> tuple[int, int] | None:
            with database.snapshot():
                return database.labels.extent(wanted)

        return self._ask(found)

    def counts(self, wanted: Filter, borders: Sequence[int]) -> Counts | None:
        """Count what a filter lets through, also between `borders` in time.

        None while there is no directory.

        Raises:
            StoreError: the directory cannot be read.
        """

        def counted(database: Database) -> Counts:
            with database.snapshot():
                return database.labels.counts(wanted, borders)

        return self._ask(counted)

    def names(self, field: str) -> list[tuple[str, int]]:
        """Return the agents, users or topics (`agent`), and how many memories have each.

        The most frequent come first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._ask(lambda database: database.labels.names(field)) or []

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._ask(lambda database: database.ids(prefix)) or [] if can_occur(prefix) else []

    def refresh(self) -> None:
        """Bring the index up to date, which the next question does otherwise.

        What would have to wait for another process is left to that question.

        Raises:
            StoreError: the directory cannot be read.
        """
        self._ask(lambda _: None, urgent=False)

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
        self._freshness.end()
        with self._lock:
            if self._database:
                self._database.close()
            self._database = None
            self._freshness.close()
        self._tokenizer.join()

    # --- one question ---------------------------------------------------------------------------

    def _ask(self, question: Callable[[Database], Answer], *, urgent: bool = True) -> Answer | None:
        """Answer from a database that is up to date; made anew, or in memory, if need be.

        None while there is no directory of memories.
        """
        try:
            return self._ask_alone(question, urgent=urgent)
        finally:
            self._store.tell()  # not while others wait
            if self._late:
                self._tokenizer.ask()
            if urgent and self._freshness.listed:
                self._sweeper.ask()

    def _ask_alone(self, question: Callable[[Database], Answer], *, urgent: bool) -> Answer | None:
        with self._lock:
            self._urgent = urgent
            for repair in (self._make_anew, self._move_to_memory):
                try:
                    return self._answer(question)
                except (NotOurs, Nowhere) as error:  # nothing that may be deleted
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
            return self._answer(question)

    def _answer(self, question: Callable[[Database], Answer]) -> Answer | None:
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
        self._verified.clear()
        for names in self._freshness.changes(database, stamp):
            self._record(database, names)
        self._late = self.kept and database.due
        return question(database)

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
        """Open the file that is used now; make it where there is none."""
        place = folder(self._store.base, make=True)
        with nullcontext() if file_of(place).exists() else making(place):
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
        """Tokenize what waits for it before an answer, where nobody does so behind one."""
        if not self.kept and database.due:
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
            _give_back()

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
            yield hold.had or hold.problem is not None or _is_still(path)

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

    # --- recording ------------------------------------------------------------------------------

    def _record(self, database: Database, names: Collection[str]) -> None:
        """Bring what is recorded of some files up to date.

        Each is looked at inside the transaction, so it does not matter what another process does
        at the same time. What that one has recorded is taken out before the next transaction, in
        which it would hold up all others. A changed file's old and new state change places in one.
        """
        if not names:
            return
        self._gone.clear()
        rest = sorted(names, reverse=True)
        # No transaction that others have begun before gives numbers of the next segment.
        next_segment = (database.end() // tuning.SEGMENT + 1) * tuning.SEGMENT
        later = next_segment if self._freshness.listed else None
        forgotten, shared, others = False, True, database.changed_by_others()
        while rest:
            with database.transaction():
                disturbed = shared and others != database.changed_by_others()
                if not disturbed:
                    stamps = self._next_step(rest, database.room())
                    forgotten |= self._record_step(database, stamps)
                    self._verified.update(stamps)
            if disturbed:
                others = database.changed_by_others()
                left = self._unrecorded(database, rest, later)
                shared, rest = len(left) < len(rest), left
        if forgotten and database.path:  # it must not linger in files of other processes, either
            remove_others(database.path, older_than=0)
        self._look_again()
        if len(names) > tuning.SEGMENT // 4:
            _give_back()

    def _look_again(self) -> None:
        """Have what was gone looked at again where only a directory above was, for a moment.

        That changes no stamp of the directory of memories, with which all would be believed.

        Raises:
            StoreError: it is not there now.
        """
        if self._gone and self._store.stamp() is None:
            cause = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            raise StoreError("read", self._store.directory, cause)
        if back := {name for name in self._gone if self._store.stamp(name)}:
            self._freshness.suspect(back)

    def _unrecorded(self, database: Database, names: list[str], later: int | None) -> list[str]:
        """Return those files that are not recorded as they are now, in the same order.

        Args:
            database: where they may be recorded.
            names: the files.
            later: from which number on they were read while this process watched them, so that
                what changed since is on its own list; None where it does not.
        """
        read = set() if later is None else database.read_from(later)
        rest = [name for name in names if name not in read]
        known = database.find(rest)
        changed = self._freshness.differing((each.name, each.stamp) for each in known.values())
        return [name for name in rest if name not in known or name in changed]

    def _next_step(self, names: list[str], most: int) -> dict[str, Stamp | None]:
        """Take from the end of `names` what one transaction is to record, with its stamps."""
        stamps: dict[str, Stamp | None] = {}
        size = 0
        while names and len(stamps) < most and size < tuning.STEP_BYTES:
            name = names.pop()
            stamp = stamps[name] = self._store.stamp(name)
            size += stamp.size if stamp else 0
        return stamps

    def _record_step(self, database: Database, stamps: Mapping[str, Stamp | None]) -> bool:
        """Record files as they are now; say whether anything recorded before was forgotten."""
        known = database.find(stamps)
        differing = {name: each for name, each in known.items() if each.stamp != stamps[name]}
        changed = []
        for entry in self._entries({name: stamps[name] for name in differing}):
            if database.confirm(differing[entry.name], entry):
                del differing[entry.name]
            else:
                changed.append(entry)
        database.forget([each.id for each in differing.values()])
        new = {name: stamp for name, stamp in stamps.items() if name not in known}
        database.add(chain(changed, self._entries(new)))
        return bool(differing)

    def _entries(self, stamps: Mapping[str, Stamp | None]) -> Iterator[Entry]:
        """Read files, one at a time; those that are gone are left out."""
        for name, stamp in stamps.items():
            if self._ended.is_set():
                raise Closed("the index is closed")
            settled = stamp and stamp.settled  # before it is read
            try:
                found: Memory | str = self._store.read(name)
            except FileNotFoundError:
                self._gone.add(name)
                continue
            except MalformedFile as error:
                self._store.report(name, str(error))
                found = str(error)
                if stamp != UNREADABLE and _may_pass(error):
                    stamp = NEVER  # noqa: PLW2901
            yield Entry(name, stamp if stamp and settled else NEVER, found)

    # --- answering ------------------------------------------------------------------------------

    def _think(self, database: Database, question: Question, at: int | None) -> list[Hit]:
        self._catch_up(database)
        while True:
            with database.snapshot():
                without = set() if at is None else database.labels.expired(at)
                rows = database.rows(best(database, question, without))
            changed = [row.name for row in rows if self._differs(row)]
            if not changed:
                return ordered(filter(None, map(question.hit, rows)))
            self._record(database, changed)

    def _search(
        self, database: Database, question: Question, wanted: Filter | None, part: slice
    ) -> Found:
        self._catch_up(database)
        while True:
            with database.snapshot():
                marks = database.labels.marks(wanted, database.end()) if wanted else None
                total, numbers = every(database, question, marks, part.stop)
                numbers = numbers[part]
                hits: list[Hit] = []
                changed: list[str] = []
                for at in range(0, len(numbers), tuning.PART):
                    rows = database.rows(numbers[at : at + tuning.PART])
                    changed += [row.name for row in rows if self._differs(row)]
                    hits += filter(None, map(question.hit, rows))
            if not changed:
                return Found(total, ordered(hits))
            self._record(database, changed)

    def _ranked(
        self, database: Database, question: bm25.Question, wanted: Filter | None, part: slice
    ) -> bm25.Answer:
        self._catch_up(database)
        while True:
            with database.snapshot():
                marks = database.labels.marks(wanted, database.end()) if wanted else None
                best = ranked(database, question, marks, part.stop)
                numbers = [*best.scores][part]
                hits: list[Hit] = []
                changed: list[str] = []
                for at in range(0, len(numbers), tuning.PART):
                    rows = database.rows(numbers[at : at + tuning.PART])
                    changed += [row.name for row in rows if self._differs(row)]
                    hits += map(best.hit, rows)
            if not changed:
                found = Found(best.total, ordered(hits))
                return bm25.Answer(found, best.question, best.collection, best.apart)
            self._record(database, changed)

    def _differs(self, row: Row) -> bool:
        return row.name not in self._verified and self._store.stamp(row.name) != row.stamp

    def _carrying(self, memory_id: str, names: Iterable[str]) -> list[tuple[str, Memory]]:
        found = []
        for name in sorted(names, reverse=True):
            with suppress(FileNotFoundError, MalformedFile):
                found.append((name, self._store.read(name)))
        found = [(name, memory) for name, memory in found if memory.id == memory_id]
        return sorted(found, key=lambda each: newest_first(each[1].timestamp))


def _is_still(path: Path) -> bool:
    """Say whether nobody has written to a file for a while."""
    try:
        return time.time() - path.stat().st_mtime > tuning.STILL_SECONDS
    except OSError:
        return True


def _may_pass(error: MalformedFile) -> bool:
    """Say whether a file may be readable soon without any change to it."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (errno.EACCES, errno.EPERM)


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


def _give_back() -> None:
    """Return to the system what was needed for many files; glibc would keep megabytes of it."""
    if sys.platform == "linux":
        # Another C library has no such call, and a Python may be without ctypes.
        with suppress(OSError, AttributeError, ImportError):
            import ctypes  # noqa: PLC0415 (after seconds of work)

            ctypes.CDLL(None).malloc_trim(0)
