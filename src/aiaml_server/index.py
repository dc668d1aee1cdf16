"""The index: answers by keyword and by id, exactly those of a scan of every file, in milliseconds.

It is a cache in one SQLite file that all server processes of a directory share and anybody may
delete. Nobody tells it what changed; before each answer it asks:

- *Was a name added, removed or replaced?* Then the directory has another stamp than the recorded
  one, and the stamps of all files are compared with theirs; or, once all was up to date and where
  the system tells which names were touched since (`watch`), of those alone.
- *Was a file edited in place?* The directory does not tell. So every few seconds (every second
  where the system tells nothing), when there is a question at all, the stamps of the next `SLICE`
  files are compared; and those of the hits are before they are given out, whatever the size of the
  store.

Why the answer is exact: `tokens` shows that a keyword of word characters has its score in the
postings, and that any other can occur only in certain texts and only so often. `scorer` scores
these, beginning with those that can have most, until none that is left can be among the best. What
is selected so, `scorer` itself turns into hits; there is no second formula.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias, TypeVar

from .database import (
    NEVER,
    STALE_SECONDS,
    YOUNG,
    Database,
    Entry,
    Row,
    Stalled,
    file_of,
    remove,
    remove_others,
)
from .errors import AiamlError, MalformedFile, NotOurs, StoreError
from .memory import Memory
from .scorer import MAX_HITS, Hit, clean, hit, newest_first, ordered, rank, score
from .store import UNREADABLE, Stamp, Store
from .tokens import SEGMENT, Block, Scores, Total, at_least, is_word, matching, runs, spread
from .watch import Watch, is_local

log = logging.getLogger(__name__)

SLICE = 10_000  # files whose stamps are compared at a time: some 30 ms
SLICE_SECONDS = 4.0
UNTOLD_SECONDS = 1.0  # where the system does not tell what was touched
STEP_BYTES = 8 * 1024 * 1024  # of files that are recorded together
MANY_KEYWORDS = 300  # a file of 4 MiB cannot score 2 to the 32 with fewer
FEW = 8  # candidates that are sooner scored than narrowed down
MANY_RUNS = 300  # that narrow the choice at too high a price
SOME = 100  # candidates that are scored first, then twice as many, and so on
DESCRIPTORS = 8  # more than SQLite, a list of names, a watch and a file being read take together
MANY_TIES = 2000  # ties that are sooner met on the way from the newest than looked up

Answer = TypeVar("Answer")
Counts: TypeAlias = Mapping[int, Counter[int]]  # by segment and slot
Vocabulary: TypeAlias = Sequence[Block]


class Closed(AiamlError):  # noqa: N818
    """The index was closed in the middle of an answer."""


class Mismatch(AiamlError):  # noqa: N818
    """An answer differs from the literal scan: a fault of this program, or a file just changed."""


class Index:
    """Finds memories by keyword and by id. Safe to use from any thread."""

    def __init__(self, store: Store, *, check: bool = False, lasting: bool = True) -> None:
        """Make the index of a store; nothing is opened before the first question.

        Args:
            store: what to find memories in.
            check: compare each answer with the literal scan.
            lasting: whether many questions are to come, so that it pays to watch the directory.
        """
        self._store = store
        self._check = check
        self._lasting = lasting
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._place = store.base / ".index"
        self._on_disk = True
        self._closing = False
        self._urgent = True  # somebody waits for an answer
        self._comparing = 0.0
        self._slice_after: str | None = None  # a name, or anywhere
        self._slice_due = 0.0
        self._verified: set[str] = set()
        self._watch = Watch()
        self._seen: Stamp | None = None  # the directory's, when all names were last up to date

    def think(self, keywords: Iterable[str]) -> list[Hit]:
        """Return the best hits, in the order that `scorer.rank` defines.

        Raises:
            StoreError: the directory cannot be read.
            Mismatch: the answer was checked, and is wrong.
        """
        cleaned = clean(keywords)
        hits = self._ask(lambda database: self._think(database, cleaned)) or []
        if self._check and hits != (expected := rank(self._store.scan(), cleaned)):
            raise Mismatch(f"the index answered {hits}, the files say {expected}")
        return hits

    def files(self, ids: Collection[str]) -> dict[str, list[tuple[str, Memory]]]:
        """Return, for each id that any file carries, its files' names and memories, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        names = self._ask(lambda database: _names(database, ids)) or {}
        found = {each: self._carrying(each, names[each]) for each in names}
        return {each: files for each, files in found.items() if files}

    def newest(self) -> list[str]:
        """Return the names of all files that are memories, newest first.

        Raises:
            StoreError: the directory cannot be read.
        """
        return self._ask(lambda database: database.newest()) or []

    def ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with `prefix`.

        Raises:
            StoreError: the directory cannot be read.
        """
        return [] if _half(prefix) else self._ask(lambda database: database.ids(prefix)) or []

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
        return 0.0 if self._watch.begun else self._comparing

    @property
    def lacks_watch(self) -> bool:
        """Whether a system that could tell what was touched has nothing left to do it with."""
        return not self._watch.begun and is_local(self._store.directory)

    def close(self) -> None:
        """Stop what is going on, soon, and close the file."""
        self._closing = True
        with self._lock:
            if self._database:
                self._database.close()
            self._database = None
            self._watch.end()

    # --- one question ---------------------------------------------------------------------------

    def _ask(self, question: Callable[[Database], Answer], *, urgent: bool = True) -> Answer | None:
        """Answer from a database that is up to date; made anew, or in memory, if need be.

        None while there is no directory of memories.
        """
        try:
            return self._ask_alone(question, urgent=urgent)
        finally:
            self._store.tell()  # not while others wait

    def _ask_alone(self, question: Callable[[Database], Answer], *, urgent: bool) -> Answer | None:
        with self._lock:
            self._urgent = urgent
            for repair in (self._make_anew, self._move_to_memory):
                try:
                    return self._answer(question)
                except NotOurs as error:  # nothing that may be deleted
                    file, _ = self._abandon()
                    self._move_to_memory(file, error)
                except (AiamlError, MemoryError):  # nothing is wrong with the index
                    raise
                except Exception as error:
                    # What a damaged database holds can make any statement on it fail.
                    if self._closing:
                        raise Closed("the index is closed") from error
                    if isinstance(error, Stalled) and not urgent:
                        return None
                    if not self._on_disk:
                        raise
                    lack = _lack_of_descriptors()
                    file, there = self._abandon()
                    if lack:  # nothing is wrong with the index, which others use too
                        raise StoreError("open", file, lack) from error
                    if there:  # else another process has made it anew
                        repair(file, error)
            return self._answer(question)

    def _answer(self, question: Callable[[Database], Answer]) -> Answer | None:
        stamp = self._store.stamp()
        if stamp is None:
            file, _ = self._abandon()
            remove(file)
            return None
        database = self._opened()
        self._verified.clear()
        self._refresh(database, stamp)
        return question(database)

    def _opened(self) -> Database:
        if self._closing:
            raise Closed("the index is closed")
        if self._database and not self._database.there:
            self._abandon()
        if not self._database:
            self._seen = None
            self._database = Database(
                file_of(self._place) if self._on_disk else None,
                hurried=lambda: self._closing or not self._urgent,
                local=self._lasting and is_local(self._store.directory),
            )
            if self._database.path:
                remove_others(self._database.path, STALE_SECONDS)
            for name, problems in self._database.malformed():
                self._store.report(name, problems)
        return self._database

    def _abandon(self) -> tuple[Path, bool]:
        """Close the database; return the file that is used now, and whether it was that."""
        database, self._database = self._database, None
        there = database is None or database.there
        if database:
            with suppress(sqlite3.Error):
                database.close()
        return file_of(self._place), there

    @staticmethod
    def _make_anew(file: Path, error: Exception) -> None:
        log.warning("The index %s is made anew: %s", file, error)
        remove(file)

    def _move_to_memory(self, file: Path, error: Exception) -> None:
        log.warning("The index %s cannot be used, so it is kept in memory: %s", file, error)
        self._on_disk = False

    # --- freshness ------------------------------------------------------------------------------

    def _refresh(self, database: Database, stamp: Stamp) -> None:
        touched = self._touched(stamp)
        begun, self._seen = self._seen is not None, None  # unless all goes well
        if touched is None and self._lasting and not (begun and stamp == database.directory()):
            self._watch.begin(self._store.directory)
            stamp = self._store.stamp() or stamp  # nothing falls in between
        settled = stamp.settled  # asked before listing: a change from here on gives another one
        compared = touched is None and stamp != database.directory()
        if touched is not None:
            self._look_at(database, touched)
        elif compared:
            began = time.thread_time()
            new = set(self._store.names())
            differing = list(self._changed(database.known(), new))
            self._comparing = time.thread_time() - began
            self._look_at(database, [*differing, *new])
            self._slice_due = time.monotonic() + self._slice_seconds()
        if settled and stamp != database.directory():
            with database.transaction():
                database.set_directory(stamp)
        if time.monotonic() > self._slice_due:
            if self._slice_after is None:  # else short lives would all look at the same files
                self._slice_after = database.any_name(SLICE)
            known = list(database.known(self._slice_after, SLICE))
            known += database.known("", SLICE - len(known)) if self._slice_after else []
            changed = self._changed(known, set())
            self._look_at(database, (name for name in changed if name not in self._verified))
            self._slice_after = known[-1][0] if len(known) == SLICE else ""
            self._slice_due = time.monotonic() + self._slice_seconds()
        self._seen = stamp

    def _slice_seconds(self) -> float:
        return SLICE_SECONDS if self._watch.begun else min(SLICE_SECONDS, UNTOLD_SECONDS)

    def _touched(self, stamp: Stamp) -> list[str] | None:
        """Return the names touched since all were up to date; None if they are to be compared.

        A directory that changed without any name touched is not the one that is watched.
        """
        if self._seen and self._seen.inode == stamp.inode:
            names = self._watch.touched()
            if names is not None and (names or stamp == self._seen):
                return [name for name in names if self._store.may_hold(name)]
        self._watch.end()
        return None

    def _changed(self, known: Iterable[tuple[str, Stamp]], names: set[str]) -> Iterator[str]:
        """Return the files that are not as they are known; take what is known out of `names`."""
        for name, stamp in known:
            if self._closing:
                raise Closed("the index is closed")
            names.discard(name)
            if self._store.stamp(name) != stamp:
                yield name

    def _look_at(self, database: Database, names: Iterable[str]) -> None:
        """Bring what is recorded of these files up to date.

        Each is looked at inside the transaction, so it does not matter what another process does
        at the same time. A changed file's old and new state change places in one transaction.
        """
        rest = sorted(set(names), reverse=True)
        many = len(rest) > SEGMENT // 4
        forgotten = False
        while rest:
            with database.transaction():
                stamps = self._next_step(rest, database.room())
                forgotten |= self._record(database, stamps)
            self._verified.update(stamps)
        if forgotten and database.path:  # it must not linger in files of other processes, either
            remove_others(database.path, older_than=0)
        if many:
            _give_back()

    def _next_step(self, names: list[str], most: int) -> dict[str, Stamp | None]:
        """Take from the end of `names` what one transaction is to record, with its stamps."""
        stamps: dict[str, Stamp | None] = {}
        size = 0
        while names and len(stamps) < most and size < STEP_BYTES:
            name = names.pop()
            stamp = stamps[name] = self._store.stamp(name)
            size += stamp.size if stamp else 0
        return stamps

    def _record(self, database: Database, stamps: Mapping[str, Stamp | None]) -> bool:
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
        few = len(changed) + len(new) < YOUNG
        database.add(chain(changed, self._entries(new)), few=few)
        return bool(differing)

    def _entries(self, stamps: Mapping[str, Stamp | None]) -> Iterator[Entry]:
        """Read files, one at a time; those that are gone are left out."""
        for name, stamp in stamps.items():
            if self._closing:
                raise Closed("the index is closed")
            if not stamp:
                continue
            try:
                found: Memory | str = self._store.read(name)
            except FileNotFoundError:
                continue
            except MalformedFile as error:
                self._store.report(name, str(error))
                found = str(error)
                if stamp != UNREADABLE and _may_pass(error):
                    stamp = NEVER  # noqa: PLW2901
            yield Entry(name, stamp if stamp.settled else NEVER, found)

    # --- answering ------------------------------------------------------------------------------

    def _think(self, database: Database, keywords: Sequence[str]) -> list[Hit]:
        keywords = [each for each in keywords if not _half(each)]
        while True:
            with database.snapshot():
                rows = database.rows(_best(database, keywords))
            doubtful = [row.name for row in rows if row.name not in self._verified]
            changed = [row.name for row in rows if row.name in doubtful and self._differs(row)]
            if not changed:
                return ordered(filter(None, (_hit(row, keywords) for row in rows)))
            self._look_at(database, changed)

    def _differs(self, row: Row) -> bool:
        return self._store.stamp(row.name) != row.stamp

    def _carrying(self, memory_id: str, names: Iterable[str]) -> list[tuple[str, Memory]]:
        found = []
        for name in sorted(names, reverse=True):
            with suppress(FileNotFoundError, MalformedFile):
                found.append((name, self._store.read(name)))
        found = [(name, memory) for name, memory in found if memory.id == memory_id]
        return sorted(found, key=lambda each: newest_first(each[1].timestamp))


def _may_pass(error: MalformedFile) -> bool:
    """Say whether a file may be readable soon without any change to it."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (errno.EACCES, errno.EPERM)


def _lack_of_descriptors() -> OSError | None:
    """Return the error, if this process cannot open as many files as an index takes."""
    opened: list[int] = []
    try:
        while len(opened) < DESCRIPTORS:
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


# --- selecting ------------------------------------------------------------------------------------


def _half(keyword: str) -> bool:
    """Say whether a keyword holds half of a surrogate pair, which no file can."""
    return any("\ud800" <= character <= "\udfff" for character in keyword)


def _names(database: Database, ids: Iterable[str]) -> dict[str, list[str]]:
    return {each: database.names(each) for each in ids if not _half(each)}


def _hit(row: Row, keywords: Sequence[str]) -> Hit | None:
    return hit(row.name, row.memory_id, row.timestamp, row.searched, keywords)


def _best(database: Database, keywords: Sequence[str]) -> list[int]:
    """Return the numbers of the memories that belong into the answer, in no order."""
    vocabulary = database.vocabulary()
    totals = _totals(database, vocabulary, [each for each in keywords if is_word(each)])
    scores: list[tuple[int, Scores]]
    if others := [keyword for keyword in keywords if not is_word(keyword)]:
        bounds = [_bounds(database, vocabulary, keyword) for keyword in others]
        counts = {segment: total.counts() for segment, total in totals.items()}
        scores = [*_scored(database, counts, bounds, others).items()]
    else:
        scores = [(segment, total.scores()) for segment, total in totals.items()]
    uncut = Counter(
        {
            number: sum(score(text, keyword) for keyword in keywords)
            for number, text in database.texts(database.uncut())
        }
    )
    return _top(database, [*scores, (0, +uncut)])


def _totals(
    database: Database, vocabulary: Vocabulary, keywords: Iterable[str]
) -> dict[int, Total]:
    """Return the scores for keywords of word characters, by segment."""
    totals: defaultdict[int, Total] = defaultdict(Total)
    for number, keyword in enumerate(keywords, 1):
        part = keyword.encode()
        here, whole = {}, -1
        for run, text in matching(vocabulary, keyword):
            here[run] = text.count(part)
            if text == part:
                whole = run
        for segment, run, packed, topics in database.postings(here):
            times = here[run]
            totals[segment].add(packed, times + (run == whole))
            if topics:
                totals[segment].add(topics, times)
        if number % MANY_KEYWORDS == 0:
            for total in totals.values():
                total.counts()
    return totals


def _bounds(database: Database, vocabulary: Vocabulary, keyword: str) -> Counts:
    """Return the memories in which a keyword of any other kind may occur.

    Its score is at most what is returned: it occurs no oftener than the rarest of its runs.
    """
    parts = runs(keyword)
    last = len(parts) - 1
    found: Counts | None = None
    for position, part in sorted(enumerate(parts), key=lambda each: -len(each[1])):
        here = {
            number: 1 if last else run.count(part.encode())
            for number, run in matching(vocabulary, part, begins=position > 0, ends=position < last)
        }
        if found is None:
            found = _most(database, here)
        elif len(here) <= MANY_RUNS:
            most = _most(database, here)
            found = {
                segment: _least(held, most[segment])
                for segment, held in found.items()
                if segment in most
            }
        if sum(map(len, found.values())) <= FEW:
            break
    return found or {}


def _most(database: Database, wanted: Mapping[int, int]) -> Counts:
    """Return the most that runs can score, each so many times: were all of it whole words."""
    totals: defaultdict[int, Total] = defaultdict(Total)
    for segment, run, packed, topics in database.postings(wanted):
        totals[segment].add(packed, 2 * wanted[run])
        if topics:
            totals[segment].add(topics, wanted[run])
    return {segment: total.counts() for segment, total in totals.items()}


def _least(ones: Counter[int], others: Counter[int]) -> Counter[int]:
    return Counter(
        {slot: min(count, others[slot]) for slot, count in ones.items() if slot in others}
    )


def _scored(
    database: Database, counts: Counts, bounds: Sequence[Counts], keywords: Sequence[str]
) -> Counts:
    """Return the scores of all that can be among the best, counted in their texts.

    Args:
        database: where the texts are.
        counts: the scores for all other keywords.
        bounds: the most that each of the keywords can add.
        keywords: what is to be counted.
    """
    scored: defaultdict[int, Counter[int]] = defaultdict(Counter)
    best: list[int] = []
    ranked = _ranked([counts, *bounds])
    size = SOME
    while some := list(islice(ranked, size)):
        if len(best) == MAX_HITS and some[0][0] < best[-1]:
            break
        for number, text in database.texts(sorted(number for _, number in some)):
            segment, slot = divmod(number, SEGMENT)
            value = counts[segment][slot] if segment in counts else 0
            for keyword in keywords:
                value += score(text, keyword)
            if value:
                scored[segment][slot] = value
                best.append(value)
        best = sorted(best, reverse=True)[:MAX_HITS]
        size *= 2
    return scored


def _ranked(addends: Iterable[Counts]) -> Iterator[tuple[int, int]]:
    """Add up; return the sums with the numbers of the memories, falling."""
    sums: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for each in addends:
        for segment, counted in each.items():
            sums[segment].update(counted)
    ranked = [
        (value, segment * SEGMENT + slot)
        for segment, counted in sums.items()
        for slot, value in counted.items()
    ]
    return iter(sorted(ranked, reverse=True))


def _top(database: Database, scores: Sequence[tuple[int, Scores]]) -> list[int]:
    """Return the numbers with the highest scores; of equal ones, the newest."""
    room, least = MAX_HITS, 0
    for value, number in spread([each for _, each in scores]):
        if number >= room:
            least = value
            break
        room -= number
    best = [
        (value, segment * SEGMENT + slot)
        for segment, each in scores
        for slot, value in at_least(each, max(least, 1))
    ]
    above = [number for value, number in best if value > least]
    ties = {number for value, number in best if value == least}
    return above + _newest(database, ties, room)


def _newest(database: Database, ties: set[int], most: int) -> list[int]:
    if len(ties) > MANY_TIES:
        return list(islice((each for each in database.newest_first() if each in ties), most))
    return [number for *_, number in sorted(database.ages(ties), reverse=True)[:most]]
