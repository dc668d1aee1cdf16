"""The index answers exactly what a scan of every file answers, whatever happens to either."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.errors import MalformedFile, StoreError
from aiaml_server.format import scorer
from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import format  # noqa: A004
from aiaml_server.format.scorer import MAX_KEYWORD, Found, Hit, clean, every_hit, rank
from aiaml_server.index import checked, facets, selection, tuning
from aiaml_server.index.checked import CheckedFile
from aiaml_server.index.database import Database, file_of
from aiaml_server.index.freshness import Closed
from aiaml_server.index.index import Index, Mismatch
from aiaml_server.index.postings import Posting, Postings
from aiaml_server.index.tokens import Accumulator, pack, terms_of, tokenize, unpack
from aiaml_server.index.tuning import MAX_TERM, SEGMENT
from aiaml_server.index.view import View
from aiaml_server.storage import watch
from aiaml_server.storage.derived import folder
from aiaml_server.storage.sqlite import TRY
from aiaml_server.storage.store import Stamp, Store
from client import Client
from machine import is_index_current
from waiting import wait_until

# What breaks such an index: parts of words, several terms, only punctuation, scripts without
# spaces, marks that are no letters, letters whose case changes their number, overlaps, both kinds
# of terms.
PIECES = [
    *("a", "aa", "b", "ab", "ba", "c", "x", "7", "42", "_", "cat", "concat", "category", "dog"),
    *("c++", "+", "++", ".", "...", "node.js", "js", "node", "e-mail", "-", "'", "it's", "#", "\n"),
    *(" ", " ", "  ", "\t", "san", "francisco", "san francisco", "🙂", "🙂🙂", "👩\u200d🔧"),
    *("東京", "京", "ไทย", "नमस्ते", "e\u0301", "é", "İ", "i\u0307", "ß", "ẞ", "Σ", "ς", "\u03c3"),
    *(
        "x" * (MAX_TERM + 1),
        "+" * (MAX_TERM + 1),
        "\u200b",
        "½",
        "①",
        "ﬁ",
        "A",
        "CAT",
        "Cat.",
        "\x00",
        "\ufeff",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
asked_for = texts.map(lambda text: text[: MAX_KEYWORD // 2])  # İ becomes two
questions = st.lists(asked_for | st.sampled_from(["\ud800", "a\udfff"]), max_size=4)
moments = st.sampled_from(
    [
        *("2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+01:00", "2025-06-01T12:00:00Z"),
        *("2026-01-01T00:00:00", "2026-01-01", "soon", "0001-01-01T00:00:00Z"),
    ]
)
memories = st.builds(
    Memory,
    st.sampled_from(["a1b2c3d4", "00c0ffee", "any id"]),
    moments,
    texts,
    texts,
    st.lists(texts.filter(str.strip), max_size=3).map(tuple),
    texts,
)
file_names = st.sampled_from(["a.md", "b.md", "c.md", "日.md", "20260101_000000_a1b2c3d4.md"])


def write(base: Path, name: str, text: str) -> None:
    """Put a file into the store by hand."""
    (base / "files").mkdir(exist_ok=True)
    (base / "files" / name).write_text(text, encoding="utf-8", newline="")


def scan(base: Path, keywords: list[str]) -> list[Hit]:
    """Answer the slow, obvious way."""
    return rank(Store(base).scan(), keywords)


@pytest.fixture(autouse=True)
def _edits_are_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare stamps at every question, where the program does every few seconds.

    And have two memories left unindexed, where the program has dozens.
    """
    monkeypatch.setattr(tuning, "SWEEP_SECONDS", -1.0)
    monkeypatch.setattr(tuning, "UNTOLD_SECONDS", 1e-9)
    monkeypatch.setattr(tuning, "RECENT", 3)


@pytest.mark.slow
@given(
    stored=st.lists(memories, max_size=8),
    asked=st.lists(questions, max_size=3),
    cuts=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 20)), min_size=1, max_size=6),
    most=st.sampled_from([2, 25]),
    few=st.sampled_from([0, 8]),
    ties=st.sampled_from([0, 2000]),
    first=st.sampled_from([1, 2, 100]),
    recent=st.sampled_from([0, 3, 64]),
    scanned=st.sampled_from([0, 1, 3000]),
)
@example([], [["x"]], [(0, 1)], 25, 8, 2000, 1, 64, 0)
def test_an_answer_is_that_of_the_scan(
    stored: list[Memory],
    asked: list[list[str]],
    cuts: list[tuple[int, int]],
    most: int,
    few: int,
    ties: int,
    first: int,
    recent: int,
    scanned: int,
) -> None:
    """Ids, order, scores and matching keywords are identical, for any memories and keywords.

    Among the keywords are pieces of what is stored. Both sides give so few hits that the choice
    among the matching ones matters, and the index takes either way where it has two.
    """
    everything = "".join(f"{m.content} {m.user} {' '.join(m.topics)}" for m in stored)
    pieces = [everything[at : at + length] for at, length in cuts]
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "MAX_HITS", most)
        patch.setattr(scorer, "MAX_HITS", most)
        patch.setattr(tuning, "FEW", few)
        patch.setattr(tuning, "TIES", ties)
        patch.setattr(tuning, "FIRST", first)
        patch.setattr(tuning, "RECENT", recent)
        patch.setattr(tuning, "SCANNED", scanned)
        patch.setattr(tuning, "WIDE", scanned + 1)
        base = Path(directory)
        for number, memory in enumerate(stored):
            write(base, f"{number}.md", format(memory))
        tested = Index(Store(base))
        for keywords in [*asked, pieces, *([piece] for piece in pieces)]:
            assert tested.think(keywords) == scan(base, keywords)
        assert_filters_hold(tested, base, stored, pieces)
        tested.close()


def assert_filters_hold(tested: Index, base: Path, stored: list[Memory], words: list[str]) -> None:
    """Compare lists and searches of the memories that filters mean with those of the scan."""
    for number, memory in enumerate(stored):
        for wanted in (
            Filter(memory.agent.casefold(), memory.user.casefold()),
            Filter.of(topic=memory.topics, since="2025-07-01"),
            Filter.of(topic=memory.topics[:1], until="2026-01-01T00:00Z"),
            Filter.of(agent="\ud800", topic=["no such"]),
        ):
            meant = list(wanted.among(Store(base).scan()))
            assert sorted(name for _, name in tested.dated(wanted)) == sorted(
                name for name, _ in meant
            )
            hits = every_hit(meant, clean(words))
            part = slice(number % 3, number % 5 or None)
            found = tested.search(words, wanted, part)
            assert found == Found(len(hits), hits[part])
    hits = every_hit(Store(base).scan(), clean(words))
    assert tested.search(words, None, slice(None)).hits == hits


@pytest.mark.slow
def test_hundreds_of_keywords_and_files_give_the_same(tmp_path: Path) -> None:
    """More hits than an answer holds, more ties than are looked up, more than one segment."""
    moment = "2026-01-{:02}T00:00:00+00:00"
    for number in range(5000):
        content = f"word{number % 7} {'even' if number % 2 == 0 else 'odd'} number{number} c++ x.y"
        content += f" shared{number % 500}"  # more words in both segments than one statement takes
        memory = Memory(f"{number:08x}", moment.format(number % 28 + 1), "a", "b", ("t",), content)
        write(tmp_path, f"{number}.md", format(memory))
    tested = Index(Store(tmp_path))
    keywords = [f"word{number}" for number in range(300)]
    for asked in (["even"], ["t"], ["number1"], ["c++"], ["x.y", "odd"], ["d"], keywords, ["."]):
        assert tested.think(asked) == scan(tmp_path, asked)
    for number in [*range(0, 4000, 3), *range(4000, 5000)]:  # all of the second segment
        (tmp_path / "files" / f"{number}.md").unlink()
    for asked in (["even"], ["number1"], ["number3"], ["c++"], ["shared7"], keywords):
        assert tested.think(asked) == scan(tmp_path, asked)
    tested.close()


@pytest.mark.slow
def test_a_part_of_many_hits_does_not_look_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what a filter leaves out nor what is not among the best; the total is exact."""
    for number in range(SEGMENT + 300):
        content = f"shared {'many ' * (number % 300)}" if number < 600 else "shared x.y"
        made = f"20{20 + number % 5}-01-01T00:00:{number % 60:02}+00:00"
        memory = Memory(f"{number:08x}", made, "a", "b", ("t",), content)
        write(tmp_path, f"{number}.md", format(memory))
    tested, looked_up, tie_breaks = Index(Store(tmp_path)), [0], View.tie_breaks
    assert tested.search(["warm"]).total == 0
    memories = list(Store(tmp_path).scan())

    def counted(self: View, numbers: Iterable[int]) -> list[tuple[int, bytes, int]]:
        wanted = list(numbers)
        looked_up[0] += len(wanted)
        return tie_breaks(self, wanted)

    monkeypatch.setattr(View, "tie_breaks", counted)
    monkeypatch.setattr(tuning, "TIES", 500)
    for wanted in (Filter(), Filter.of(since="2022-01-01"), Filter(agent="x")):
        meant = list(wanted.among(memories))
        for asked in (["shared"], ["x.y", "many"], ["a"]):
            looked_up[0] = 0
            hits = every_hit(meant, asked)
            found = tested.search(asked, wanted, slice(30, 60))
            assert found == Found(len(hits), hits[30:60]), asked
            assert looked_up[0] < 560
    tested.close()


def test_what_stands_nearly_everywhere_is_counted_in_the_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, not word by word, and only few of them are then scored one by one."""
    monkeypatch.setattr(tuning, "WIDE", 200)
    monkeypatch.setattr(tuning, "WIDE_PHRASE", 200)
    monkeypatch.setattr(tuning, "SCANNED", 300)
    for number in range(900):
        some = "of the " * (number % 40 == 0) + "of them, the proof of a word " * (number % 7)
        some += "c++ " * (number % 3 == 0)
        memory = replace(NOTE, id=f"{number:08x}", content=f"{some}the end of e{number}e")
        write(tmp_path, f"{number}.md", format(memory))
    tested, scored, summed = Index(Store(tmp_path)), [0], [0]
    wait_until(lambda: bool((stamp := Store(tmp_path).stamp("899.md")) and stamp.settled))
    assert tested.think(["warm"]) == []
    texts, find = View.texts, Postings.find

    def counted(self: View, numbers: Iterable[int]) -> Iterator[tuple[int, scorer.Fields]]:
        wanted = list(numbers)
        scored[0] += len(wanted)
        return texts(self, wanted)

    def found(self: Postings, terms: dict[int, int]) -> Iterator[Posting]:
        summed[0] += len(terms)
        return find(self, terms)

    encoded, passes = View.encoded, [0]

    def passed(self: View) -> Iterator[tuple[int, bytes]]:
        passes[0] += 1
        return encoded(self)

    monkeypatch.setattr(View, "texts", counted)
    monkeypatch.setattr(View, "encoded", passed)
    monkeypatch.setattr(Postings, "find", found)
    monkeypatch.setattr(tuning, "FIRST", 301)
    monkeypatch.setattr(tuning, "SCANNED", 250)
    for asked, most in ((["e"], 1), (["of the"], 1), (["e the"], 1), (["c++"], 0)):
        passes[0] = 0
        assert tested.think(asked) == scan(tmp_path, asked)
        assert passes[0] == most, asked
    monkeypatch.setattr(tuning, "FIRST", 100)
    monkeypatch.setattr(tuning, "SCANNED", 300)
    for asked in (["e"], ["of the"], ["e", "the", "of the", "of e"], ["e", "f", "."]):
        scored[0] = summed[0] = 0
        assert tested.think(asked) == scan(tmp_path, asked)
        assert scored[0] < 700 and summed[0] < 100
    tested.close()


class CoarseStore(Store):
    """A store on a file system that tells no more than the time, and that in ticks of 20 ms."""

    def stamp(self, name: str = "") -> Stamp | None:
        """Round what the system says."""
        stamp = super().stamp(name)
        tick = 20_000_000
        return stamp and Stamp(stamp.modified // tick * tick, stamp.changed // tick * tick, 0, 0)


class Life(RuleBasedStateMachine):
    """Two processes on one directory, people who edit it, and damage to the index."""

    kind: type[Store] = Store
    local = watch._LOCAL

    @initialize()
    def begin(self) -> None:
        """Start with an empty directory."""
        watch._LOCAL = self.local
        self.base = Path(tempfile.mkdtemp())
        (self.base / "files").mkdir()
        self.processes = [Index(self.kind(self.base)), Index(self.kind(self.base))]
        self.store = Store(self.base)
        self.asked = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
        watch._LOCAL = Life.local
        for process in getattr(self, "processes", []):
            process.close()
        if hasattr(self, "base"):
            shutil.rmtree(self.base)

    def path(self, name: str) -> Path:
        """Return where a file lies."""
        return self.base / "files" / name

    @rule(memory=memories)
    def remember(self, memory: Memory) -> None:
        """Add a memory as the server does."""
        self.store.add(replace(memory, timestamp="2026-01-01T00:00:00+00:00", id="a1b2c3d4"))

    @rule(name=file_names, memory=memories)
    def write_by_hand(self, name: str, memory: Memory) -> None:
        """Add a file, or edit it in place."""
        write(self.base, name, format(memory))

    @rule(name=file_names, memory=memories)
    def replace_by_rename(self, name: str, memory: Memory) -> None:
        """Do what editors do."""
        write(self.base, "new.tmp", format(memory))
        self.path("new.tmp").replace(self.path(name))

    @rule(name=file_names, text=texts)
    def damage_a_file(self, name: str, text: str) -> None:
        """Make a file that is no memory."""
        write(self.base, name, text)

    @rule(name=file_names)
    def delete(self, name: str) -> None:
        """Delete a file."""
        self.path(name).unlink(missing_ok=True)

    @rule(old=file_names, new=file_names)
    def rename(self, old: str, new: str) -> None:
        """Give a file another name, that of another perhaps."""
        with suppress(FileNotFoundError):
            self.path(old).replace(self.path(new))

    @rule(name=file_names)
    def touch(self, name: str) -> None:
        """Change a file's times and nothing else."""
        with suppress(FileNotFoundError):
            os.utime(self.path(name))

    @rule(name=file_names, memory=memories)
    def edit_and_hide_it(self, name: str, memory: Memory) -> None:
        """Edit a file and set its time back."""
        with suppress(FileNotFoundError):
            status = self.path(name).stat()
            write(self.base, name, format(memory))
            os.utime(self.path(name), ns=(status.st_atime_ns, status.st_mtime_ns))

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        """End one process and start another."""
        self.processes[which].close()
        self.processes[which] = Index(self.kind(self.base))

    @rule(how=st.sampled_from(["delete", "truncate", "garbage", "half", "older", "beside"]))
    def damage_the_index(self, how: str) -> None:
        """Do to the index whatever a person, a disk or another version can."""
        path = file_of(folder(self.base))
        if not path.exists():
            return
        if how == "delete":
            shutil.rmtree(path.parent)
        elif how == "truncate":
            os.truncate(path, 0)
        elif how == "garbage":
            path.write_bytes(b"garbage" * 1000)
        elif how == "half":
            os.truncate(path, path.stat().st_size // 2)
        elif how == "beside":
            path.with_name(path.name + "-wal").unlink(missing_ok=True)
        else:
            self.restart(0)
            self.restart(1)
            older = sqlite3.connect(path)
            with suppress(sqlite3.DatabaseError):  # it may be damaged already
                older.execute("PRAGMA user_version = 99")
            older.close()

    @rule(which=st.integers(0, 1), keywords=questions)
    def think(self, which: int, keywords: list[str]) -> None:
        """Ask either process."""
        assert self.processes[which].think(keywords) == scan(self.base, keywords)

    @rule(which=st.integers(0, 1), keywords=questions, memory=memories)
    def search(self, which: int, keywords: list[str], memory: Memory) -> None:
        """Ask either process for all that a filter means."""
        wanted = Filter.of(agent=memory.agent, topic=memory.topics[:1])
        expected = every_hit(wanted.among(Store(self.base).scan()), clean(keywords))
        found = self.processes[which].search(keywords, wanted, slice(None))
        assert found == Found(len(expected), expected)

    @invariant()
    def both_know_everything(self) -> None:
        """Ask both in turn something that most memories match."""
        if hasattr(self, "processes"):
            self.asked += 1
            keywords = ["a", "."]
            assert self.processes[self.asked % 2].think(keywords) == scan(self.base, keywords)


class RemoteLife(Life):
    """The same where the system does not tell which names were touched."""

    local = frozenset()


class CoarseLife(RemoteLife):
    """The same on a coarse file system."""

    kind = CoarseStore


Life.TestCase.settings = settings(stateful_step_count=20)
RemoteLife.TestCase.settings = settings(stateful_step_count=20)
CoarseLife.TestCase.settings = settings(stateful_step_count=20)
test_life_of_an_index = Life.TestCase
test_life_on_a_remote_file_system = RemoteLife.TestCase
test_life_on_a_coarse_file_system = CoarseLife.TestCase


# --- packing --------------------------------------------------------------------------------------


@pytest.mark.slow
@given(
    st.dictionaries(st.integers(0, SEGMENT - 1), st.integers(1, 300), max_size=50),
    st.sampled_from([0, 1, 2047, 2048, 4096]),
    st.sampled_from([1, 255, 256, 70_000]),
    st.integers(1, 5),
)
def test_packing_keeps_every_count(some: dict[int, int], rest: int, many: int, times: int) -> None:
    """Few documents or all of them, once or a million times: sums are exact."""
    counts = Counter({**dict.fromkeys(range(rest), 1), **some, 7: many})
    packed = pack(array("H", counts.elements()))
    assert len(packed) < SEGMENT or len(packed) % SEGMENT == 0
    accumulator = Accumulator()
    accumulator.add(packed, times)
    accumulator.add(pack(array("H", [3])), 1)
    expected = Counter({each: count * times for each, count in counts.items()})
    assert accumulator.counts() == expected + Counter([3])
    assert Counter(unpack(packed)) == counts


@given(texts, st.text())
def test_cutting_fast_is_cutting_by_the_pattern(text: str, any_text: str) -> None:
    """The quick ways to cut give the terms that the definition gives."""
    for each in (text.lower(), any_text.lower(), f"{any_text} ascii, and more".lower()):
        assert sorted(term.decode() for term in tokenize(each)) == sorted(terms_of(each))


# --- freshness ------------------------------------------------------------------------------------


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Make a store with one memory in it."""
    write(tmp_path, "first.md", format(NOTE))
    return tmp_path


NOTE = Memory("a1b2c3d4", "2026-01-01T00:00:00+00:00", "claude", "marco", ("x",), "needle")


@pytest.fixture
def bank(base: Path) -> Iterator[MemoryBank]:
    """Open the store, without sync, whose own first file in it is a change, too."""
    opened = MemoryBank(Settings(base, sync=False))
    yield opened
    opened.close()


def found(bank: MemoryBank, *keywords: str) -> list[str]:
    """Return the files that match."""
    return sorted(hit.file_name for hit in bank.think(keywords))


def test_an_edit_in_place_is_seen_within_five_seconds(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the program's own settings: not at once, for that would cost, but soon."""
    monkeypatch.undo()
    assert found(bank, "needle") == ["first.md"]
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert found(bank, "needle") == ["first.md"]
    write(base, "first.md", format(replace(NOTE, content="thread")))
    while found(bank, "thread") != ["first.md"]:
        time.sleep(0.1)
    assert tuning.SWEEP >= 10_000


def test_without_a_list_of_touched_names_an_edit_is_seen_after_a_second(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next question, among as many files as are compared at a time."""
    monkeypatch.undo()
    monkeypatch.setattr(watch.Watch, "begin", lambda *_: None)
    assert found(bank, "needle") == ["first.md"]
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert found(bank, "needle") == ["first.md"]
    write(base, "first.md", format(replace(NOTE, content="thread")))
    time.sleep(1.1)
    assert found(bank, "thread") == ["first.md"]


@pytest.mark.parametrize("name", ["0.md", "4.md", "9.md"])
def test_among_many_files_the_question_sees_an_edit_that_waited_as_long(
    name: str, bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice is compared for each second in which nobody asked; here it is 0.2 s, of 3 files."""
    monkeypatch.setattr(tuning, "UNTOLD_SECONDS", 0.2)
    monkeypatch.setattr(tuning, "SWEEP", 3)
    monkeypatch.setattr(watch.Watch, "begin", lambda *_: None)
    for number in range(10):
        write(base, f"{number}.md", format(NOTE))
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert len(found(bank, "needle")) == 11
    write(base, name, format(replace(NOTE, content="thread")))
    time.sleep(0.85)  # four slices hold all
    assert found(bank, "thread") == [name]


@pytest.mark.parametrize("name", ["0.md", "9.md", "first.md"])
def test_an_edit_in_place_is_seen_by_one_of_many_short_lives(
    name: str, bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that compares only a part of the files does not always take the same part."""
    monkeypatch.setattr(tuning, "SWEEP", 3)
    for number in range(10):
        write(base, f"{number}.md", format(NOTE))
    assert len(found(bank, "needle")) == 11
    time.sleep(0.1)
    assert len(found(bank, "needle")) == 11
    write(base, name, format(replace(NOTE, content="thread")))
    for _ in range(200):
        with closing(MemoryBank(Settings(base))) as short:
            if found(short, "thread") == [name]:
                break
    else:
        pytest.fail("it was never seen")


def test_an_edit_in_place_is_seen_at_once_among_few_files(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are few, however often they were edited before."""
    monkeypatch.setattr(tuning, "SWEEP", 5)
    for number in range(12):  # in turn, so that each gets a higher number than the other has
        name = ("0.md", "first.md")[number % 2]
        write(base, name, format(replace(NOTE, content=f"needle {number}")))
        assert found(bank, str(number)) == [name]
    time.sleep(0.1)
    assert found(bank, "needle") == ["0.md", "first.md"]
    for number in range(20):
        write(base, "first.md", format(replace(NOTE, content=f"thread{number}")))
        with closing(MemoryBank(Settings(base))) as short:
            assert found(short, f"thread{number}") == ["first.md"]


def test_a_hit_is_never_given_from_old_data(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was edited a moment ago, and would be found by its old text, is not."""
    monkeypatch.undo()
    write(base, "second.md", format(NOTE))
    assert found(bank, "needle") == ["first.md", "second.md"]
    time.sleep(0.1)
    assert found(bank, "needle") == ["first.md", "second.md"]
    write(base, "first.md", format(replace(NOTE, content="thread")))
    assert found(bank, "needle") == ["second.md"]
    assert found(bank, "thread") == ["first.md"]


@pytest.mark.slow
def test_another_process_sees_what_was_just_remembered(base: Path) -> None:
    """Twenty times in a row, in both directions, without a pause."""
    with Client(base) as one, Client(base) as two:
        for number in range(20):
            writer, reader = (one, two) if number % 2 else (two, one)
            stored = writer.remember(f"word{number}x")
            (hit,) = reader.call("think", keywords=[f"word{number}x"])
            assert hit["id"] == stored["memory_id"]
            (path,) = (base / "files").glob(f"*_{hit['id']}.md")
            path.unlink()
            assert writer.call("think", keywords=[f"word{number}x"]) == []
            (entry,) = reader.call("recall", memory_ids=[hit["id"]])
            assert "error" in entry


def test_the_next_process_finds_the_index_up_to_date(bank: MemoryBank, base: Path) -> None:
    """Whatever a server changes is recorded once all is quiet, without a question."""
    with bank.opened():
        memory = bank.remember("claude", "marco", ["x"], "thread")
        assert not is_index_current(base)
        wait_until(lambda: is_index_current(base))
        text = format(memory)
        bank.edit(memory.file_name, text, text.replace("thread", "yarn"))
        assert not is_index_current(base)
        wait_until(lambda: is_index_current(base))
        bank.forget({memory.file_name: text.replace("thread", "yarn")})
        assert not is_index_current(base)
        wait_until(lambda: is_index_current(base))


@pytest.mark.slow
def test_where_all_files_must_be_compared_that_takes_its_time(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a list of names: what took 20 ms is not done again within 2 s."""
    monkeypatch.setattr(watch.Watch, "begin", lambda *_: None)
    with bank.opened():
        bank.remember("claude", "marco", ["x"], "thread")
        wait_until(lambda: is_index_current(base))
        assert bank._index.comparing > 0
        monkeypatch.setattr(Index, "comparing", 0.02)
        bank.remember("claude", "marco", ["x"], "thread")
        time.sleep(1)
        wait_until(lambda: is_index_current(base))
        bank.remember("claude", "marco", ["x"], "thread")
        wait_until(lambda: is_index_current(base))


def test_a_failure_does_not_end_the_keeping_of_the_index(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it was, the next change is recorded."""
    with bank.opened():
        wait_until(lambda: file_of(folder(base)).exists())
        with monkeypatch.context() as patched:
            patched.setattr(Index, "refresh", _fail)
            bank.remember("claude", "marco", ["x"], "thread")
            wait_until(lambda: "could not be brought up to date" in caplog.text)
        bank.remember("claude", "marco", ["x"], "yarn")
        wait_until(lambda: is_index_current(base))


def _fail(_: Index) -> None:
    raise sqlite3.OperationalError("disk I/O error")


def test_the_end_does_not_wait_for_a_process_that_holds_the_index(
    bank: MemoryBank, base: Path
) -> None:
    """Nor does the index that it holds go, since nobody has asked anything."""
    assert found(bank, "needle") == ["first.md"]
    file = file_of(folder(base))
    inode = file.stat().st_ino
    with closing(sqlite3.connect(file, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with bank.opened():
            bank.remember("claude", "marco", ["x"], "thread")
            time.sleep(0.6)
    assert file.stat().st_ino == inode


def test_only_the_files_that_changed_are_read(bank: MemoryBank, base: Path) -> None:
    """What was read once is not read again, by any process, until it changes."""
    for number in range(50):
        write(base, f"{number}.md", format(NOTE))
    assert len(found(bank, "needle")) == 25
    time.sleep(0.1)
    assert len(found(bank, "needle")) == 25
    wait_until(lambda: not bank._index._sweeper.running)  # by then, all stamps are recorded
    read: list[str] = []

    class Watched(Store):
        def read(self, name: str) -> Memory:
            read.append(name)
            return super().read(name)

    again = Index(Watched(base))
    assert len(again.think(["needle"])) == 25
    assert read == []
    write(base, "7.md", format(replace(NOTE, content="thread")))
    assert [hit.file_name for hit in again.think(["thread"])] == ["7.md"]
    assert set(read) == {"7.md"}
    again.close()


def stamps_compared(bank: MemoryBank, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have the names noted whose stamps the store is asked for, but behind an answer."""
    asked: list[str] = []

    def stamp(name: str = "") -> Stamp | None:
        if threading.current_thread().name != "sweep":
            asked.append(name)
        return Store(bank.base).stamp(name)

    monkeypatch.setattr(bank._store, "stamp", stamp)
    return asked


def told(path: Path) -> bool:
    """Say whether this system tells which names in a directory were touched."""
    tested = watch.Watch()
    tested.begin(path)
    return tested.touched() is not None


def asked_behind(bank: MemoryBank, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have noted which thread asks for a stamp."""
    asked: list[str] = []
    store = Store(bank.base)

    def stamp(name: str = "") -> Stamp | None:
        asked.append(threading.current_thread().name)
        return store.stamp(name)

    monkeypatch.setattr(bank._store, "stamp", stamp)
    return asked


@pytest.mark.slow
def test_no_question_waits_until_all_files_were_compared(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system tells of nearly all: behind an answer, by one thread, a few at a time."""
    if not told(base / "files"):
        pytest.skip("this system or file system does not tell")
    monkeypatch.setattr(tuning, "SWEEP_PART", 50)
    for number in range(1000):
        write(base, f"{number}.md", format(NOTE))
    wait_until(lambda: bool((stamp := bank.stamp("999.md")) and stamp.settled))
    assert len(found(bank, "needle")) == 25
    wait_until(lambda: not bank._index._sweeper.running)
    asked = asked_behind(bank, monkeypatch)
    while len(asked) < 3000:  # two sweeps and more
        before = len(asked)
        assert len(found(bank, "needle")) == 25
        mine = [name for name in asked[before:] if name != "sweep"]
        assert len(mine) < 50  # the directory and the hits
        assert sum(thread.name == "sweep" for thread in threading.enumerate()) <= 1
        time.sleep(0.01)
    wait_until(lambda: not bank._index._sweeper.running)
    asked.clear()
    bank._index._sweep_slice()
    assert len(asked) == 1001


def test_a_search_gives_as_many_as_think_where_no_number_is_said(
    bank: MemoryBank, base: Path
) -> None:
    """And says how many there are."""
    for number in range(30):
        write(base, f"{number}.md", format(NOTE))
    found = bank.search(["needle"])
    assert (found.total, found.hits) == (31, bank.think(["needle"]))  # and the one of `base`
    assert len(bank.search(["needle"], part=slice(None)).hits) == 31


def test_an_answer_does_not_hang_on_the_comparing_behind_it(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no thread can be started, the next answer tries again."""
    if not told(base / "files"):
        pytest.skip("this system or file system does not tell")
    write(base, "first.md", format(NOTE))
    with monkeypatch.context() as without:

        def refused(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        without.setattr(threading.Thread, "start", refused)
        assert found(bank, "needle") == ["first.md"]
        assert found(bank, "needle") == ["first.md"]  # what was listed is known by now
    asked = asked_behind(bank, monkeypatch)
    assert found(bank, "needle") == ["first.md"]
    wait_until(lambda: any(name == "sweep" for name in asked))


def test_an_edit_that_is_on_no_list_is_found_behind_an_answer(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One through another name of the file, elsewhere: with the program's own settings."""
    if not told(base / "files"):
        pytest.skip("this system or file system does not tell")
    monkeypatch.undo()
    os.link(base / "files" / "first.md", base / "elsewhere")
    for number in range(300):
        write(base, f"{number}.md", format(replace(NOTE, content="haystack")))
    assert found(bank, "needle") == ["first.md"]
    time.sleep(0.1)  # past the tick in which the directory was filled
    (base / "elsewhere").write_text(format(replace(NOTE, content="thread")), encoding="utf-8")
    while found(bank, "thread") != ["first.md"]:
        time.sleep(0.1)


def test_the_end_does_not_wait_for_the_comparing_behind_an_answer(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take a minute."""
    if not told(base / "files"):
        pytest.skip("this system or file system does not tell")
    monkeypatch.setattr(tuning, "SWEEP_REST", 100_000)
    monkeypatch.setattr(tuning, "SWEEP_PART", 1)
    for number in range(20):
        write(base, f"{number}.md", format(NOTE))
    bank = MemoryBank(Settings(base, sync=False))
    for _ in range(2):
        assert len(found(bank, "needle")) == 21
    assert bank._index._sweeper.running
    bank.close()
    wait_until(lambda: not bank._index._sweeper.running)


def test_after_a_change_only_touched_files_are_compared(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system tells which: any way to change a name, by any process, is told."""
    if not told(base / "files"):
        pytest.skip("this system or file system does not tell")
    for number in range(100):
        write(base, f"{number}.md", format(NOTE))
    monkeypatch.undo()
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert len(found(bank, "needle")) == 25
    asked = stamps_compared(bank, monkeypatch)
    change = (
        "import os; os.remove('1.md'); os.rename('2.md', 'x.md'); os.replace('3.md', '4.md');"
        "os.link('5.md', 'y.md'); open('6.md', 'w').close(); open('z.md', 'w').close()"
    )
    subprocess.run([sys.executable, "-c", change], cwd=base / "files", check=True)
    hits = bank.think(["needle"])
    assert hits == scan(base, ["needle"])
    touched = {f"{name}.md" for name in "123456xyz"}
    assert touched - {"5.md"} <= set(asked) <= touched | {"", *(hit.file_name for hit in hits)}


def test_more_changes_than_the_system_tells_are_seen(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux keeps 16,384 and then forgets; all files are compared then."""
    write(base, "second.md", format(NOTE))
    assert found(bank, "needle") == ["first.md", "second.md"]
    monkeypatch.undo()
    for number in range(20_000):
        os.utime(base / "files" / ("first.md", "second.md")[number % 2])
    write(base, "third.md", format(NOTE))
    (base / "files" / "first.md").unlink()
    assert found(bank, "needle") == ["second.md", "third.md"]


def test_another_directory_in_its_place_is_seen(bank: MemoryBank, base: Path) -> None:
    """Moved away, moved back, and changed under another path in between."""
    assert found(bank, "needle") == ["first.md"]
    files, elsewhere = base / "files", base / "elsewhere"
    files.rename(elsewhere)
    write(base, "other.md", format(NOTE))
    assert found(bank, "needle") == ["other.md"]
    shutil.rmtree(files)
    (elsewhere / "second.md").write_text(format(NOTE), encoding="utf-8")
    elsewhere.rename(files)
    assert found(bank, "needle") == ["first.md", "second.md"]


def test_the_end_does_not_wait_until_all_files_are_compared(base: Path) -> None:
    """A client that leaves while a slow disk is asked for 1,000 stamps is not made to wait."""
    for number in range(1000):
        write(base, f"{number}.md", format(NOTE))
    with closing(MemoryBank(Settings(base))) as bank:
        assert len(found(bank, "needle")) == 25
    begun = threading.Event()

    class Slow(Store):
        def stamp(self, name: str = "") -> Stamp | None:
            if name:
                begun.set()
                time.sleep(0.01)
            return super().stamp(name)

    slow = Index(Slow(base))
    with ThreadPoolExecutor(1) as pool:
        refreshed = pool.submit(slow.refresh)
        assert begun.wait(60)
        slow.close()
        with pytest.raises(Closed):
            refreshed.result()


def test_what_comes_while_the_index_is_opened_is_seen(
    bank: MemoryBank, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look at the directory and the watch, and another one after that."""
    assert found(bank, "needle") == ["first.md"]
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert found(bank, "needle") == ["first.md"]
    bank.close()
    monkeypatch.undo()
    other = sqlite3.connect(file_of(folder(base)), isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    late = Index(Store(base))
    with ThreadPoolExecutor() as pool:
        first = pool.submit(late.think, ["needle"])
        time.sleep(0.3)  # it waits for the other
        write(base, "second.md", format(NOTE))
        other.close()
        first.result()
    write(base, "third.md", format(NOTE))
    assert late.think(["needle"]) == scan(base, ["needle"])
    late.close()


def test_a_python_without_ctypes_finds_all(base: Path) -> None:
    """It cannot be told what was touched, so it compares all files."""
    code = (
        "import sys; sys.modules['ctypes'] = None\n"
        "from pathlib import Path; from aiaml_server.index.index import Index\n"
        "from aiaml_server.storage.store import Store\n"
        "print(len(Index(Store(Path(sys.argv[1]))).think(['needle'])))"
    )
    for number in range(SEGMENT // 4 + 1):  # so many that memory is given back
        write(base, f"{number}.md", format(NOTE))
    words = [sys.executable, "-c", code, str(base)]
    assert subprocess.run(words, capture_output=True, check=True).stdout.strip() == b"25"


@pytest.mark.parametrize("seconds", [13e9, -9.9e9])
def test_a_file_of_any_time_can_be_recorded(bank: MemoryBank, base: Path, seconds: float) -> None:
    """SQLite takes 64 bits; nanoseconds since 1970 need more after 2262, as some inodes do."""
    os.utime(base / "files" / "first.md", (seconds, seconds))
    time.sleep(0.1)  # past the tick in which the directory was filled
    assert found(bank, "needle") == ["first.md"]


# --- a disposable file ----------------------------------------------------------------------------


def index_bytes(base: Path) -> bytes:
    """Return all that the index keeps on disk."""
    return b"".join(path.read_bytes() for path in (base / ".index").rglob("*") if path.is_file())


def test_a_deleted_memory_is_gone_from_the_index_too(bank: MemoryBank, base: Path) -> None:
    """After the next question nothing of its text is left in any file of the index."""
    for number in range(20):
        write(base, f"{number}.md", format(NOTE))
    write(base, "secret.md", format(replace(NOTE, content="Mellon opens the doors of Durin")))
    other_kind = folder(base) / "2-00000000.sqlite"
    assert found(bank, "mellon") == ["secret.md"]
    other_kind.write_bytes(b"mellon")
    assert b"mellon" in index_bytes(base)
    (base / "files" / "secret.md").unlink()
    assert found(bank, "needle")
    for word in (b"mellon", b"durin", b"Mellon"):
        assert word not in index_bytes(base)


@pytest.mark.slow
def test_a_reader_does_not_keep_a_deleted_memory_in_the_index(bank: MemoryBank, base: Path) -> None:
    """It is overwritten once the other process has read it; one that never ends keeps its file."""
    write(base, "second.md", format(replace(NOTE, content="thread")))
    assert found(bank, "needle") == ["first.md"]
    reader = sqlite3.connect(file_of(folder(base)), isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM texts").fetchall()
    (base / "files" / "first.md").unlink()
    file = file_of(folder(base))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(found, bank, "needle")
        time.sleep(0.3)
        reader.execute("COMMIT")
        assert asked.result() == []
    assert b"needle" not in index_bytes(base)
    assert file_of(folder(base)) == file
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM texts").fetchall()
    (base / "files" / "second.md").unlink()
    assert found(bank, "thread") == []
    assert b"thread" not in index_bytes(base)
    reader.close()


DAMAGE = {
    "a row": "UPDATE facets SET user = agent WHERE id = 1",
    "a row less": "DELETE FROM facets WHERE id = 1",
    "a name": "UPDATE names SET folded = 'x' WHERE name = 'food'",
    "a name less": "DELETE FROM names WHERE field = 'agent'",
    "its uses": "UPDATE names SET uses = 7 WHERE field = 'agent'",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_facets_give_no_wrong_answer(bank: MemoryBank, base: Path, damage: str) -> None:
    """They are made anew from the files."""
    for number in range(3):
        bank.remember("claude", "marco", ["food", f"t{number}"], f"note {number}")
    bank.think(["note"])
    path = file_of(folder(base))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(DAMAGE[damage])
    for wanted in (Filter("claude", "marco"), Filter(topics=("food",)), Filter(user="claude")):
        meant = list(wanted.among(Store(base).scan()))
        assert bank.search(["note"], wanted).hits == every_hit(meant, ["note"])
        assert sorted(name for _, name in bank.dated(wanted)) == sorted(name for name, _ in meant)
    counted = bank.counts(Filter(), lambda _: [])
    assert counted and counted.agents == [("claude", 4)]


def test_facets_name_that_is_not_recorded_agrees_with_no_number() -> None:
    """Nor with a 0, by which a column may say "none": a changed file would pass as unchanged."""
    file = CheckedFile(None, checked.TABLES + facets.TABLES, 1)
    tables, step = facets.Facets(file), facets.Step()
    described = facets.Described((("agent", "claude"), ("user", "marco")), 7)
    tables.add({1: described}, step)
    tables.finish(step)
    assert tables.agree(1, described)
    file.sql.execute("UPDATE facets SET agent = 0")
    assert not tables.agree(1, described._replace(names=(("agent", "new"), ("user", "marco"))))
    file.close()


def test_names_that_no_memory_has_any_more_are_gone(bank: MemoryBank, base: Path) -> None:
    """From the tables, with the last memory that had them; written otherwise is another name."""
    kept = bank.remember("Cursor", "anna", ["food"], "x")
    gone = bank.remember("cursor", "anna", ["food", "secret"], "x")
    assert len(bank.dated(Filter("cursor"))) == 2
    (base / "files" / gone.file_name).unlink()
    (base / "files" / "first.md").unlink()
    assert [name for _, name in bank.dated(Filter("cursor"))] == [kept.file_name]
    assert bank.dated(Filter(topics=("secret",))) == []
    with closing(sqlite3.connect(file_of(folder(base)))) as other:
        found = other.execute("SELECT name, uses FROM names ORDER BY name").fetchall()
    assert found == [("Cursor", 1), ("anna", 1), ("food", 1)]


def test_an_edited_memory_leaves_no_old_text(bank: MemoryBank, base: Path) -> None:
    """The same for what was changed."""
    assert found(bank, "needle") == ["first.md"]
    write(base, "first.md", format(replace(NOTE, content="thread")))
    assert found(bank, "thread") == ["first.md"]
    assert b"needle" not in index_bytes(base)


def test_no_directory_leaves_no_index(bank: MemoryBank, base: Path) -> None:
    """When all memories are taken away, what was derived from them goes as well."""
    assert found(bank, "needle") == ["first.md"]
    shutil.rmtree(base / "files")
    assert found(bank, "needle") == []
    assert b"needle" not in index_bytes(base)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
def test_the_index_is_for_its_owner_alone(bank: MemoryBank, base: Path) -> None:
    """It holds what the memories hold."""
    before = os.umask(0)
    try:
        assert found(bank, "needle") == ["first.md"]
    finally:
        os.umask(before)
    for place in (base / ".index", folder(base)):
        assert place.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder(base).iterdir()} == {0o600}


def test_where_no_index_can_be_kept_answers_come_from_memory(
    bank: MemoryBank, base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The place is taken by a file: the log says so once, and everything works."""
    (base / ".index").write_text("mine")
    for number in range(3):
        write(base, f"{number}.md", format(NOTE))
        assert len(found(bank, "needle")) == number + 2
    assert caplog.text.count("kept in memory") == 1
    assert (base / ".index").read_text() == "mine"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 600 KB and fill it with 120 memories, for which there is just room."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root may mount")
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted")
    for number in range(120):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle w{number}")))
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_full_or_read_only_disk_is_no_obstacle(
    small_disk: Path, read_only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The index is kept in memory then, and the log says so once."""
    if read_only:
        remount = ["mount", "-o", "remount,ro,size=10m", str(small_disk)]
        subprocess.run(remount, check=True, capture_output=True)
    bank = MemoryBank(Settings(small_disk))
    for _ in range(2):
        assert len(found(bank, "needle")) == 25
        assert found(bank, "w7") == ["7.md"] + [f"7{n}.md" for n in range(10)]
    bank.close()
    assert caplog.text.count("kept in memory") == 1


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such limit")
@pytest.mark.parametrize("spare", range(5))
def test_a_lack_of_descriptors_costs_no_more_than_the_answer(
    spare: int, bank: MemoryBank, base: Path
) -> None:
    """The index, which all processes share, is neither deleted nor given up."""
    import resource

    assert found(bank, "needle") == ["first.md"]
    file = file_of(folder(base))
    inode = file.stat().st_ino
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    other = MemoryBank(Settings(base))
    refusals: list[str] = []
    gc.collect()  # or what an earlier test left would give descriptors back meanwhile
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, limits[1]))
    try:
        assert found(other, "needle") == ["first.md"]
    except StoreError as error:
        refusals.append(str(error))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert all("too many files open" in refusal for refusal in refusals)
    assert refusals or spare > 2
    assert found(other, "needle") == ["first.md"]
    assert file.stat().st_ino == inode
    assert other._index._database and other._index._database.path == file
    other.close()


@pytest.mark.slow
def test_a_process_that_holds_the_index_forever_is_not_waited_for(
    bank: MemoryBank, base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was stopped in the middle of writing keeps its file; the others make a new one."""
    assert found(bank, "needle") == ["first.md"]
    holder = sqlite3.connect(file_of(folder(base)), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    write(base, "second.md", format(NOTE))
    assert found(bank, "needle") == ["first.md", "second.md"]
    (record,) = caplog.records
    assert "made anew: another process holds it" in record.getMessage()
    assert file_of(folder(base)).exists()
    holder.close()


@pytest.mark.parametrize("read", [lambda d: d.find(["first.md"]), lambda d: d.changed_by_others()])
def test_a_reader_waits_for_what_another_process_is_just_writing(
    bank: MemoryBank, base: Path, read: Callable[[Database], object]
) -> None:
    """While what was recorded goes to a slow disk, nobody can read, and nothing is wrong."""
    assert found(bank, "needle") == ["first.md"]
    file = file_of(folder(base))
    with closing(Database(file)) as reader, ThreadPoolExecutor() as threads:
        expected = read(reader)
        holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN EXCLUSIVE")
        answer = threads.submit(read, reader)
        time.sleep(4 * TRY)
        holder.close()
        assert answer.result() == expected


@pytest.mark.slow
def test_processes_that_index_at_once_all_answer_completely(tmp_path: Path) -> None:
    """Three servers are started on 3,000 files that no index knows yet."""
    for number in range(3000):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle {number}")))
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(tmp_path)) for _ in range(3)]
        asked = [client.start("think", keywords=["2999"]) for client in clients]
        answers = [client.value(each) for client, each in zip(clients, asked, strict=True)]
        assert [len(answer) for answer in answers] == [1, 1, 1]
        assert all(client.log() == "" for client in clients)
    scanned = scan(tmp_path, ["needle", "1"])
    fresh = Index(Store(tmp_path))
    assert fresh.think(["needle", "1"]) == scanned
    fresh.close()


def test_who_waited_holds_nobody_up_over_what_others_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compares that while others may write, and reads none of it."""
    for number in range(50):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle {number}")))
    time.sleep(0.1)  # until a stamp tells any change
    first, second = Index(Store(tmp_path)), Index(Store(tmp_path))
    transaction, stamp = Database.transaction, Store.stamp
    held: list[str] = []

    def late(database: Database) -> AbstractContextManager[None]:
        monkeypatch.setattr(Database, "transaction", transaction)
        assert len(first.think(["needle"])) == 25
        first.close()
        write(tmp_path, "new.md", format(replace(NOTE, content="needle needle needle needle")))
        os.utime(tmp_path / "files" / "7.md", (1, 1))
        monkeypatch.setattr(Store, "stamp", noting)
        return transaction(database)

    def noting(store: Store, name: str = "") -> Stamp | None:
        if name and second._database and second._database.sql.in_transaction:
            held.append(name)
        return stamp(store, name)

    monkeypatch.setattr(Database, "transaction", late)
    second.refresh()
    assert held == ["7.md"]
    monkeypatch.undo()
    assert second.think(["needle"]) == scan(tmp_path, ["needle"])
    second.close()


@pytest.mark.parametrize(
    ("known", "at"),
    [(False, 0), (False, 30), (False, 120), (False, 170), (True, 0), (True, 30), (True, 120)],
)  # a question asks the disk 216 times where nothing is known, at least 127 times where all but one
def test_a_base_that_is_away_for_a_moment_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, known: bool, at: int
) -> None:
    """That changes no stamp of `files`; what was missed and not missing must not stay so."""
    base, away = tmp_path / "base", tmp_path / "away"
    base.mkdir()
    for number in range(100):
        write(base, f"{number}.md", format(replace(NOTE, content=f"needle {number}")))
    if known:
        with closing(Index(Store(base))) as index:
            assert len(index.think(["needle"])) == 25
        write(base, "new.md", format(NOTE))
    time.sleep(0.1)  # until a stamp tells any change
    asked = 0

    def goes(call: Callable[..., Any]) -> Callable[..., Any]:
        def going(store: Store, *words: str, **more: bool) -> Any:
            nonlocal asked
            if words or call is listed:
                asked += 1
                if asked == at + 1:
                    base.rename(away)
                if asked == at + 6:
                    away.rename(base)
            return call(store, *words, **more)

        return going

    listed = Store.names
    for each in ("names", "stamp", "read"):
        monkeypatch.setattr(Store, each, goes(getattr(Store, each)))
    with closing(Index(Store(base))) as index:
        with suppress(StoreError):
            index.think(["needle"])
        monkeypatch.undo()
        if away.exists():
            away.rename(base)
        assert asked > at
        expected = scan(base, ["needle", "1"])
        assert index.think(["needle", "1"]) == expected
        with closing(Index(Store(base))) as other:
            assert other.think(["needle", "1"]) == expected


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what was touched")
def test_who_watched_compares_only_what_may_have_been_read_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is what one transaction records; whatever became of the others is on its own list."""
    last = f"{tuning.SEGMENT + 99:04}.md"
    for number in range(tuning.SEGMENT + 100):
        write(tmp_path, f"{number:04}.md", format(replace(NOTE, content=f"needle {number}")))
    time.sleep(0.1)  # until a stamp tells any change
    first, second = Index(Store(tmp_path)), Index(Store(tmp_path))
    transaction, stamp = Database.transaction, Store.stamp
    compared: list[str] = []

    def late(database: Database) -> AbstractContextManager[None]:
        monkeypatch.setattr(Database, "transaction", transaction)
        assert len(first.think(["needle"])) == 25
        first.close()
        write(tmp_path, last, format(replace(NOTE, content="unicorn")))
        monkeypatch.setattr(Store, "stamp", noting)
        return transaction(database)

    def noting(store: Store, name: str = "") -> Stamp | None:
        compared.extend([name] if name else [])
        return stamp(store, name)

    monkeypatch.setattr(Database, "transaction", late)
    second.refresh()
    assert sorted(compared) == [f"{number:04}.md" for number in range(tuning.SEGMENT)]
    monkeypatch.setattr(Store, "stamp", stamp)
    with closing(second):
        assert [hit.file_name for hit in second.think(["unicorn"])] == [last]
        assert second.think(["needle", "1"]) == scan(tmp_path, ["needle", "1"])


@pytest.mark.parametrize("trouble", ["unreadable for a moment", "edited in place"])
def test_who_waited_compares_all_that_others_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Also what they recorded long after it had looked itself, with a watch and without."""
    last = f"{tuning.SEGMENT + 99:04}.md"
    for number in range(tuning.SEGMENT + 100):
        write(tmp_path, f"{number:04}.md", format(replace(NOTE, content=f"needle {number}")))
    time.sleep(0.1)  # until a stamp tells any change
    monkeypatch.setattr(tuning, "UNTOLD_SECONDS", 3600.0)
    edited = trouble == "edited in place"
    if edited:
        monkeypatch.setattr("aiaml_server.storage.watch.is_local", lambda _: False)
    first, second = Index(Store(tmp_path)), Index(Store(tmp_path))
    transaction, read = Database.transaction, Store.read

    def late(database: Database) -> AbstractContextManager[None]:
        monkeypatch.setattr(Database, "transaction", transaction)
        monkeypatch.setattr(Store, "read", read if edited else failing)
        assert len(first.think(["needle"])) == 25
        first.close()
        monkeypatch.setattr(Store, "read", read)
        if edited:
            write(tmp_path, last, format(replace(NOTE, content="unicorn")))
        return transaction(database)

    def failing(store: Store, name: str) -> Memory:
        if name == last:
            raise MalformedFile(["it cannot be read"]) from OSError(errno.EAGAIN, "not now")
        return read(store, name)

    monkeypatch.setattr(Database, "transaction", late)
    asked = ["unicorn" if edited else str(tuning.SEGMENT + 99)]
    with closing(second):
        assert [hit.file_name for hit in second.think(asked)] == [last]


def test_sixteen_that_index_at_once_share_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is read by two of them."""
    for number in range(400):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle {number}")))
    time.sleep(0.1)  # until a stamp tells any change
    monkeypatch.setattr(tuning, "STEP_BYTES", 2_000)  # some ten files
    read, found = Store.read, list[str]()

    def noting(store: Store, name: str) -> Memory:
        found.append(name)
        return read(store, name)

    monkeypatch.setattr(Store, "read", noting)
    together = threading.Barrier(16)

    def ask(_: int) -> list[Hit]:
        with closing(Index(Store(tmp_path))) as index:
            together.wait()
            return index.think(["needle", "1"])

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    assert len(found) <= 1.2 * 400
    assert answers == [scan(tmp_path, ["needle", "1"])] * 16


@pytest.mark.slow
def test_an_index_can_be_made_by_several_at_once(tmp_path: Path) -> None:
    """Whoever comes second neither fails nor starts again."""
    with ThreadPoolExecutor(8) as pool:
        for number in range(150):
            together = threading.Barrier(8)
            path = tmp_path / f"{number}.sqlite"

            def make(_: int, together: threading.Barrier = together, path: Path = path) -> int:
                together.wait()
                with closing(Database(path)):
                    return path.stat().st_ino

            assert len(set(pool.map(make, range(8)))) == 1


def test_the_handshake_does_not_wait_for_the_first_indexing(tmp_path: Path) -> None:
    """The server answers while the index is still being made, and ends at once when asked to."""
    for number in range(8000):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle {number} " * 20)))
    with Client(tmp_path) as client:
        client.request("tools/list")
        fresh = Database(file_of(folder(tmp_path, make=True)))
        recorded = sum(1 for _ in fresh.known())
        fresh.close()
        assert recorded < 8000
        assert client.close() == 0


def test_malformed_files_are_named_by_every_process(
    base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by one that finds them in the index and does not read them."""
    write(base, "bad.md", "no memory")
    for _ in range(2):
        caplog.clear()
        bank = MemoryBank(Settings(base))
        assert found(bank, "needle") == found(bank, "needle") == ["first.md"]
        assert [record.getMessage().count("bad.md") for record in caplog.records] == [1]
        bank.close()


# --- the switch -----------------------------------------------------------------------------------


def test_a_wrong_answer_is_noticed_when_answers_are_checked(base: Path) -> None:
    """AIAML_CHECK_INDEX: an index tampered with, checksums and all, does not prove itself."""
    bank = MemoryBank(Settings(base, check_index=True))
    time.sleep(0.1)
    assert found(bank, "needle") == found(bank, "needle") == ["first.md"]
    with sqlite3.connect(file_of(folder(base))) as tampered:
        tampered.executescript(
            "DELETE FROM unindexed; UPDATE sums SET sum = 0 WHERE kind = 'unindexed'"
        )
    tampered.close()
    with pytest.raises(Mismatch):
        bank.think(["needle"])
    bank.close()
    checked = {"AIAML_CHECK_INDEX": "true"}
    with Client(base, environ=checked) as client:
        (failure,) = client.call("think", keywords=["needle"])
        assert failure["error"].startswith("Search failed: the index answered")


def test_a_deleted_index_is_there_again_after_the_next_question(
    bank: MemoryBank, base: Path
) -> None:
    """Also for the process that had it open."""
    assert found(bank, "needle") == ["first.md"]
    shutil.rmtree(base / ".index")
    assert found(bank, "needle") == ["first.md"]
    assert b"needle" in index_bytes(base)


@pytest.mark.slow
def test_a_kill_at_any_moment_of_indexing_does_no_harm(tmp_path: Path) -> None:
    """Servers are killed while they index; the next answer is complete, from a file on disk."""
    for number in range(4000):
        write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"needle {number}")))
    for turn in range(5):
        with Client(tmp_path) as client:
            client.start("think", keywords=["needle"])
            time.sleep(0.1 + 0.2 * turn)
            client.kill()
        for number in range(turn, 4000, 100):
            write(tmp_path, f"{number}.md", format(replace(NOTE, content=f"thread {number}")))
    with Client(tmp_path) as client:
        assert client.call("think", keywords=["haystack"]) == []
        assert client.log() == ""
    fresh = Index(Store(tmp_path))
    for keywords in (["needle"], ["thread"], ["99"], ["needle", "5"]):
        assert fresh.think(keywords) == scan(tmp_path, keywords)
    fresh.close()
