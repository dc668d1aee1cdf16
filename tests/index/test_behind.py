"""What is new is found at once, and tokenized behind the answer: right at every moment of it."""

from __future__ import annotations

import errno
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.files import Lock
from aiaml_server.format.memory import format  # noqa: A004
from aiaml_server.format.scorer import rank
from aiaml_server.index import selection, tuning
from aiaml_server.index.database import Database, file_of
from aiaml_server.index.index import Index
from aiaml_server.index.postings import Postings
from aiaml_server.index.tokens import Batch
from aiaml_server.index.view import View, unindexed
from aiaml_server.storage.derived import folder
from aiaml_server.storage.store import Store
from client import Client
from machine import Machine
from waiting import wait_until

WORDS = ["cat", "concat", "dog", "needle", "c++", "node.js", "東京", "it's", "e-mail", "x" * 700]
ASKED = ["cat", "needle", "c++", "at", "node.js", "京", "."]


def memory(number: int, content: str) -> Memory:
    """Make a memory."""
    moment = f"2026-01-{number % 28 + 1:02}T00:00:00+00:00"
    return Memory(f"{number:08x}", moment, "claude", "marco", ("topic", "cat"), content)


def some(count: int, chance: random.Random) -> Iterator[Memory]:
    """Make memories of words by chance."""
    for number in range(count):
        yield memory(number, " ".join(chance.choices(WORDS, k=8)) + f" only{number}")


def filled(base: Path, count: int) -> Path:
    """Write so many memories."""
    (base / "files").mkdir(parents=True)
    folder(base, make=True)  # so that its locks can be held from the first moment
    for each in some(count, random.Random(count)):
        (base / "files" / each.file_name).write_text(format(each), encoding="utf-8")
    return base


def waiting(base: Path) -> int:
    """Return how many memories of the index wait to be tokenized."""
    statement = "SELECT count(*) FROM unindexed WHERE size IS NOT NULL"
    with closing(sqlite3.connect(file_of(folder(base)), timeout=60)) as reading:
        return int(reading.execute(statement).fetchone()[0])


def assert_right(bank: MemoryBank | Index, base: Path) -> None:
    """Compare answers with those of the scan."""
    for asked in (ASKED, ["needle"], ["only7", "dog"]):
        assert bank.think(asked) == rank(Store(base).scan(), asked)


@contextmanager
def tokenizing(base: Path) -> Iterator[None]:
    """Be the process whose turn it is to tokenize."""
    with Lock(folder(base) / "tokenizing").held(10) as hold:
        assert hold.acquired
        yield


@contextmanager
def recorded(base: Path) -> Iterator[MemoryBank]:
    """Keep a bank open of which nothing is tokenized yet, nor is anybody at it."""
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        bank._index.kept = True
        with tokenizing(base):
            assert_right(bank, base)
            wait_until(lambda: not bank._index._tokenizer.running)
        yield bank


def leave(base: Path) -> None:
    """Record what is new, and end before it is tokenized, as a server may."""
    with tokenizing(base), closing(MemoryBank(Settings(base, sync=False))) as bank:
        bank._index.kept = True
        assert_right(bank, base)


def due(base: Path) -> bool:
    """Say whether enough memories wait to be tokenized."""
    with closing(Database(file_of(folder(base)))) as database, database.view() as view:
        return view.due


def steps(index: Index) -> Iterator[None]:
    """Tokenize what waits, a step at a time, as the thread behind an answer does."""
    database = index._database
    assert database
    for _ in database.tokenize():
        yield


@pytest.fixture
def _slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the thread take many pieces, and rest between them."""
    monkeypatch.setattr(tuning, "PIECE_BYTES", 2_000)
    monkeypatch.setattr(tuning, "PIECE_REST", 0.02)
    monkeypatch.setattr(tuning, "STEP_BYTES", 40_000)


class Tokenizing(RuleBasedStateMachine):
    """Files come, change and go between the pieces; other processes tokenize as well."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.names: list[str] = []
        self.number = 0

    @initialize(
        piece=st.sampled_from([1, 100]),
        step=st.sampled_from([1, 200, 10**6]),
        terms=st.sampled_from([1, 10**6]),
        recent=st.sampled_from([1, 4]),
        scanned=st.sampled_from([0, 3000]),
    )
    def begin(self, piece: int, step: int, terms: int, recent: int, scanned: int) -> None:
        """Open two indexes of one directory, as two servers do."""
        patch = self.stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(tuning, "UNTOLD_SECONDS", 1e-9)
        patch.setattr(tuning, "PIECE_BYTES", piece)
        patch.setattr(tuning, "STEP_BYTES", step)
        patch.setattr(tuning, "STEP_TERMS", terms)
        patch.setattr(tuning, "RECENT", recent)
        patch.setattr(tuning, "SCANNED", scanned)
        patch.setattr(
            "aiaml_server.index.behind.Behind.ask", lambda _: None
        )  # they are stepped here
        self.base = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.base / "files").mkdir()
        self.indexes = [Index(Store(self.base), lasting=False) for _ in range(2)]
        for index in self.indexes:
            index.kept = True
            self.stack.callback(index.close)
            assert index.think(["x"]) == []
        self.under_way = [steps(index) for index in self.indexes]

    @rule(words=st.lists(st.sampled_from(WORDS), max_size=4), times=st.integers(1, 6))
    def add(self, words: list[str], times: int) -> None:
        """Write files."""
        for _ in range(times):
            self.number += 1
            self.names.append(f"{self.number}.md")
            text = format(memory(self.number, " ".join(words)))
            (self.base / "files" / self.names[-1]).write_text(text, encoding="utf-8")

    @precondition(lambda self: self.names)
    @rule(which=st.integers(0), words=st.lists(st.sampled_from(WORDS), max_size=4))
    def edit(self, which: int, words: list[str]) -> None:
        """Write one anew."""
        name = self.names[which % len(self.names)]
        text = format(memory(which % 50, " ".join(words)))
        (self.base / "files" / name).unlink()
        (self.base / "files" / name).write_text(text, encoding="utf-8")

    @precondition(lambda self: self.names)
    @rule(which=st.integers(0))
    def delete(self, which: int) -> None:
        """Delete one."""
        (self.base / "files" / self.names.pop(which % len(self.names))).unlink()

    @rule(which=st.integers(0, 1), times=st.integers(1, 4))
    def tokenize(self, which: int, times: int) -> None:
        """Go on for some steps in one of them."""
        for _ in range(times):
            if next(self.under_way[which], self) is self:
                self.under_way[which] = steps(self.indexes[which])

    @rule()
    def verb(self) -> None:
        """Have a process look that nobody keeps open: it tokenizes all."""
        index = Index(Store(self.base), lasting=False)
        assert index.think(ASKED) == rank(Store(self.base).scan(), ASKED)
        index.close()
        assert not due(self.base)

    @invariant()
    def right(self) -> None:
        """Either answers as the scan."""
        if hasattr(self, "under_way"):
            expected = rank(Store(self.base).scan(), ASKED)
            for index in self.indexes:
                assert index.think(ASKED) == expected
                assert not index.repaired
                assert not index.unusable

    def teardown(self) -> None:
        """Bring it to its end; then nothing waits, and all is as recorded."""
        if hasattr(self, "under_way"):
            for each in (*self.under_way, steps(self.indexes[0])):
                list(each)
                self.right()
            assert not due(self.base)
        self.stack.close()


TestTokenizing = Tokenizing.TestCase
TestTokenizing.settings = settings(stateful_step_count=15)


@pytest.mark.usefixtures("_slowly")
def test_answers_are_right_while_all_is_tokenized_behind_them(tmp_path: Path) -> None:
    """By a thread, which nobody has to wait for."""
    base = filled(tmp_path, 600)
    bank = MemoryBank(Settings(base, sync=False))
    with bank.opened():
        assert_right(bank, base)
        while waiting(base) >= tuning.RECENT:
            assert_right(bank, base)
        assert_right(bank, base)
    assert not bank._index.repaired
    assert not bank._index.unusable


def test_the_first_answer_does_not_wait_until_all_is_tokenized(tmp_path: Path) -> None:
    """Another process is at it; who asks finds everything in the texts until it is done."""
    base = filled(tmp_path, 300)
    bank, verb = (MemoryBank(Settings(base, sync=False), lasting=each) for each in (True, False))
    with ExitStack() as stack:
        with tokenizing(base):
            stack.enter_context(bank.opened())
            for _ in range(3):
                assert_right(bank, base)
                assert_right(verb, base)
            assert waiting(base) == 300
            verb.close()
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))
        assert_right(bank, base)


def test_the_best_of_many_texts_are_those_of_the_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole words, although others hold it more often."""
    monkeypatch.setattr(tuning, "SCANNED", 20)
    monkeypatch.setattr(tuning, "FIRST", 1)
    base = filled(tmp_path, 30)
    kinds = ["xwolfsx " * 3, "wolf wolf", "wolf " * 9]
    for number in range(100, 200):
        each = memory(number, kinds[number % 3])
        (base / "files" / each.file_name).write_text(format(each), encoding="utf-8")
    scored, in_texts = list[int](), selection._in_texts

    def noting(
        view: View, numbers: Iterable[int], keywords: Sequence[str]
    ) -> Iterator[tuple[int, int]]:
        some = list(numbers)
        scored.append(len(some))
        return in_texts(view, some, keywords)

    monkeypatch.setattr(selection, "_in_texts", noting)
    with recorded(base), tokenizing(base):
        given = Settings(base, sync=False, check_index=True)
        with closing(MemoryBank(given)) as bank:
            bank._index.kept = True
            hits = bank.think(["wolf"])
            assert [each.relevance_score for each in hits] == [18] * 25
            assert bank.think(["wolf", "dog", "at"])
        assert waiting(base) == 130
    assert 0 < max(scored) < 130  # the best of them alone, not all


@pytest.mark.parametrize("lasting", [True, False])
def test_a_bank_that_nobody_keeps_open_tokenizes_before_its_answer(
    tmp_path: Path, lasting: bool
) -> None:
    """What it records itself, and what one that was kept open has left; but not for a list."""
    base = filled(tmp_path, 300)
    with closing(MemoryBank(Settings(base, sync=False), lasting=lasting)) as bank:
        assert len(bank.dated()) == 300
        assert waiting(base) == 300
        assert_right(bank, base)
        assert waiting(base) == 0
    for number in range(100):
        path = base / "files" / f"more{number}.md"
        path.write_text(format(memory(number, "more")), encoding="utf-8")
    leave(base)
    assert waiting(base) == 100
    with closing(MemoryBank(Settings(base, sync=False), lasting=lasting)) as bank:
        assert_right(bank, base)
    assert waiting(base) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("_slowly")
def test_what_comes_and_goes_meanwhile_is_no_harm(tmp_path: Path) -> None:
    """Memories are stored, changed and forgotten while theirs and others' are tokenized."""
    base = filled(tmp_path, 400)
    chance = random.Random(5)
    bank = MemoryBank(Settings(base, sync=False))
    with bank.opened():
        for number, each in enumerate(some(40, chance)):
            bank.remember("claude", "marco", ["x"], each.content + " new")
            path = chance.choice(sorted((base / "files").iterdir()))
            if number % 2:
                path.unlink()
            else:
                path.write_text(format(memory(number, each.content)), encoding="utf-8")
                path.rename(path.with_name(f"renamed{number}.md"))
            assert_right(bank, base)
        wait_until(lambda: waiting(base) < tuning.RECENT)
        assert_right(bank, base)
    assert not bank._index.repaired


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.1, 0.3])
def test_a_kill_leaves_what_the_next_process_ends(tmp_path: Path, pause: float) -> None:
    """A server is killed before it tokenizes, or while; a verb answers, and nothing waits."""
    machine = Machine(filled(tmp_path / "one", 4_000))
    with Client(machine.base) as client, ExitStack() as stack:
        stack.enter_context(tokenizing(machine.base))
        first = client.call("think", keywords=["only3711"])
        assert [hit["matching_keywords"] for hit in first] == [["only3711"]]
        assert waiting(machine.base) == 4_000
        if pause:
            stack.close()
            client.start("think", keywords=["only3711"])
            time.sleep(pause)
        client.kill()
    done = machine.aiaml("search", "only3712", AIAML_ENABLE_SYNC="false")
    assert "only3712" in done.stdout, done.stderr
    assert waiting(machine.base) < tuning.RECENT
    with closing(MemoryBank(Settings(machine.base, sync=False))) as bank:
        assert_right(bank, machine.base)


def test_a_stopped_process_does_not_keep_the_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its turn for as long as it gets on."""
    base = filled(tmp_path, 300)
    bank = MemoryBank(Settings(base, sync=False))
    with tokenizing(base), closing(bank):
        bank._index.kept = True
        assert_right(bank, base)
        assert waiting(base) == 300
        monkeypatch.setattr(tuning, "STILL_SECONDS", 0.01)
        time.sleep(0.1)
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))


@pytest.mark.usefixtures("_slowly")
def test_the_end_does_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is done by the next process, even if nobody asks it anything."""
    base = filled(tmp_path, 300)
    with monkeypatch.context() as slower:
        slower.setattr(tuning, "PIECE_REST", 600.0)
        bank = MemoryBank(Settings(base, sync=False))
        with bank.opened():
            assert_right(bank, base)
            assert bank._index._tokenizer.running
        assert not bank._index._tokenizer.running
    assert waiting(base) == 300
    again = MemoryBank(Settings(base, sync=False))
    with again.opened():
        wait_until(lambda: waiting(base) < tuning.RECENT)
        assert_right(again, base)


def test_where_no_thread_can_be_started_all_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next answer tries again."""
    base = filled(tmp_path, 300)
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        bank._index.kept = True
        with monkeypatch.context() as without:

            def refused(_: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            without.setattr(threading.Thread, "start", refused)
            assert_right(bank, base)
            assert waiting(base) == 300
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))


@pytest.mark.parametrize("place", ["texts SET content = 'thread'", "unindexed SET size = 7"])
def test_damage_that_is_met_behind_an_answer_is_repaired(tmp_path: Path, place: str) -> None:
    """The next answer has the index made anew, and is right."""
    base = filled(tmp_path, 300)
    with recorded(base) as bank:
        index = bank._index
        with closing(sqlite3.connect(file_of(folder(base)))) as damaging, damaging:
            damaging.execute(f"UPDATE {place} WHERE id = 7")
        index._tokenizer.ask()
        wait_until(lambda: not index._tokenizer.running)
        assert waiting(base) == 300
        assert bank.think(["no such"]) == []
        assert index.repaired
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))


@pytest.mark.parametrize(
    "damage",
    [
        sqlite3.DatabaseError("database disk image is malformed"),
        sqlite3.OperationalError("no such table: term_sums"),
    ],
)
def test_damage_that_only_recording_meets_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: sqlite3.DatabaseError
) -> None:
    """No question would have met it; the next one has the index made anew."""
    base = filled(tmp_path, 300)
    add, tried = Postings.add, [0]

    def malformed(self: Postings, segment: int, batch: Batch) -> None:
        tried[0] += 1
        if tried == [1]:
            raise damage
        add(self, segment, batch)

    monkeypatch.setattr(Postings, "add", malformed)
    with recorded(base) as bank:
        bank._index._tokenizer.ask()
        wait_until(lambda: tried == [1] and not bank._index._tokenizer.running)
        assert waiting(base) == 300
        assert_right(bank, base)
        assert str(damage) in bank._index.repaired
        wait_until(lambda: not waiting(base))
        assert_right(bank, base)


def test_where_the_index_cannot_be_written_now_the_texts_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process holds it: nothing is repaired, and it is done later."""
    base = filled(tmp_path, 300)
    time.sleep(0.2)  # later than that, nothing of it has to be recorded again
    with recorded(base) as bank:
        index = bank._index
        holder = sqlite3.connect(file_of(folder(base)), isolation_level=None)
        with closing(holder), caplog.at_level("INFO"):
            holder.execute("BEGIN IMMEDIATE")
            index._tokenizer.ask()
            wait_until(lambda: not index._tokenizer.running)
            assert "gets nowhere" in caplog.text
            assert_right(bank, base)
            holder.execute("ROLLBACK")
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))
        assert not index.repaired


def test_without_locks_and_in_memory_all_is_tokenized_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files cannot be locked, and where there is no file."""
    base = filled(tmp_path, 300)

    def refused(_: object) -> bool:
        raise OSError(errno.ENOTSUP, "no locks")

    monkeypatch.setattr("aiaml_server.files._locked", refused)
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        bank._index.kept = True
        assert_right(bank, base)
        wait_until(lambda: not waiting(base))
    shutil.rmtree(base / ".index")
    (base / ".index").write_text("in the way", encoding="utf-8")
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        index = bank._index
        index.kept = True
        assert_right(bank, base)
        assert index.unusable
        wait_until(lambda: not index._database or not unindexed(index._database).waiting)
        assert_right(bank, base)


def test_nothing_is_done_for_a_directory_that_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No thread, and no line in the log at each question."""
    base = filled(tmp_path / "base", 100)
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        bank._index.kept = True
        with tokenizing(base):
            assert_right(bank, base)
            wait_until(lambda: not bank._index._tokenizer.running)
        shutil.rmtree(base)
        assert bank.think(["needle"]) == []
        caplog.clear()
        assert bank.think(["needle"]) == []
        assert not caplog.text
        assert not bank._index._tokenizer.running


def test_where_postings_find_no_room_it_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts did; nothing is tried again and again."""
    base = filled(tmp_path, 300)
    add, tried = Postings.add, [0]

    def full(self: Postings, segment: int, batch: Batch) -> None:
        if self._file.path:
            tried[0] += 1
            raise sqlite3.OperationalError("database or disk is full")
        add(self, segment, batch)

    monkeypatch.setattr(Postings, "add", full)
    with closing(MemoryBank(Settings(base, sync=False))) as bank:
        index = bank._index
        index.kept = True
        assert_right(bank, base)
        wait_until(lambda: tried == [1])
        wait_until(lambda: not index._tokenizer.running)
        assert_right(bank, base)
        assert "disk is full" in index.unusable
        assert not index.repaired
        wait_until(lambda: not index._tokenizer.running)
        assert_right(bank, base)
        assert tried == [1]


@pytest.mark.slow
def test_questions_without_a_pause_do_not_keep_it_from_being_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its turn among them."""
    monkeypatch.setattr(tuning, "PIECE_BYTES", 2_000)  # some 200 pieces
    base = filled(tmp_path, 3_000)
    bank = MemoryBank(Settings(base, sync=False))
    with bank.opened():
        asked = 0
        while not asked or waiting(base) >= tuning.RECENT:
            for _ in range(3):
                bank.think(ASKED)
            asked += 1
            assert asked < 100
