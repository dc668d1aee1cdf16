"""The index answers as a scan of all files does, whatever happens to the files and to itself."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from logging.handlers import BufferingHandler
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aiaml_server.format.filters import Filter
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.format.scorer import MAX_KEYWORD, Found, clean, every_hit, rank
from aiaml_server.index import Counts, Index, delete_index, index_file
from aiaml_server.index import index as index_module
from aiaml_server.index.database import Database
from aiaml_server.storage.store import ReadFile, Store
from waiting import wait_until

NOTE = Memory("a1b2c3d4", "2026-01-01T00:00:00+00:00", "claude", "marco", ("food",), "soup")

PIECES = [
    *("cat", "concat", "the", "x", "aa", "aaa", "Ä", "ß", "straße", "İ", "Ω", "ΟΔΟΣ", "東京", "é"),
    *("e\u0301", "caf\u00e9", "cafe\u0301", "c++", "++", ".", "node.js", "it's", "_", "a_b", "2"),
    *("12", " ", "\n", "\t", "-", "🙂", "x" * 201, "+" * 201, "\u200b", "½", "ﬁ", "CAT", "\ufeff"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
keywords = texts.map(lambda text: text[: MAX_KEYWORD // 2])  # some become longer in lower case
questions = st.lists(keywords | st.sampled_from(["\ud800", "a\udfff"]), max_size=4)
moments = st.sampled_from(
    ["2026-01-01T00:00:00+00:00", "2026-01-01T01:00:00+01:00", "2026-01-01", "soon", "0001-01-01"]
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
names = st.sampled_from(["a.md", "b.md", "c.md", "日.md", "20260101_000000_a1b2c3d4.md"])


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base directory without memories."""
    (tmp_path / "base" / "files").mkdir(parents=True)
    return tmp_path / "base"


@pytest.fixture
def index(base: Path) -> Iterator[Index]:
    """An index that looks at every stamp before each answer."""
    with closing(Index(Store(base), rescan_seconds=0)) as opened:
        yield opened


def write(base: Path, name: str, content: str, **fields: object) -> Path:
    """Write a memory as a person would; return its file."""
    path = base / "files" / name
    memory = NOTE._replace(content=content, **fields)  # type: ignore[arg-type]
    path.write_text(format(memory), encoding="utf-8", newline="")
    return path


def wait_until_settled(base: Path, name: str) -> None:
    """Wait until every later change of a file gives another stamp."""
    wait_until(lambda: bool((stamp := Store(base).stamp(name)) and stamp.settled))


def found_names(index: Index, *asked: str) -> list[str]:
    """Return the files that an index finds."""
    return [hit.file_name for hit in index.think(asked)]


class Life(RuleBasedStateMachine):
    """Two processes on one directory, people who edit it, and damage to the index."""

    @initialize()
    def begin(self) -> None:
        """Start with an empty directory."""
        self.base = Path(tempfile.mkdtemp())
        (self.base / "files").mkdir()
        self.store = Store(self.base)
        self.processes = [Index(Store(self.base), rescan_seconds=0) for _ in range(2)]
        self.asked = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
        for process in getattr(self, "processes", []):
            process.close()
        if hasattr(self, "base"):
            shutil.rmtree(self.base)

    @rule(memory=memories)
    def remember(self, memory: Memory) -> None:
        """Add a memory as the server does."""
        self.store.add(memory._replace(timestamp=NOTE.timestamp, id=NOTE.id))

    @rule(name=names, memory=memories, by_rename=st.booleans())
    def edit(self, name: str, memory: Memory, by_rename: bool) -> None:
        """Write a file, in place or as editors do."""
        path = self.base / "files" / name
        target = path.with_name("new.tmp") if by_rename else path
        target.write_text(format(memory), encoding="utf-8", newline="")
        target.replace(path)

    @rule(name=names, text=texts)
    def write_no_memory(self, name: str, text: str) -> None:
        """Write a file that holds no memory."""
        (self.base / "files" / name).write_text(text, encoding="utf-8")

    @rule(name=names, memory=memories)
    def edit_and_hide_it(self, name: str, memory: Memory) -> None:
        """Edit a file and set its time back."""
        path = self.base / "files" / name
        with suppress(FileNotFoundError):
            before = path.stat()
            path.write_text(format(memory), encoding="utf-8", newline="")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @rule(name=names)
    def delete(self, name: str) -> None:
        """Delete a file."""
        (self.base / "files" / name).unlink(missing_ok=True)

    @rule(old=names, new=names)
    def rename(self, old: str, new: str) -> None:
        """Give a file another name, that of another perhaps."""
        with suppress(FileNotFoundError):
            (self.base / "files" / old).replace(self.base / "files" / new)

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        """End one process and start another."""
        self.processes[which].close()
        self.processes[which] = Index(Store(self.base), rescan_seconds=0)

    @rule(how=st.sampled_from(["delete", "empty", "garbage", "half"]))
    def damage_the_index(self, how: str) -> None:
        """Do to the file what a person or a disk can."""
        path = index_file(self.base)
        if not path.exists():
            return
        if how == "delete":
            delete_index(self.base)
        elif how == "garbage":
            path.write_bytes(b"garbage" * 1000)
        else:
            os.truncate(path, path.stat().st_size // 2 if how == "half" else 0)

    @rule(which=st.integers(0, 1), asked=questions)
    def think(self, which: int, asked: list[str]) -> None:
        """Ask either process."""
        assert self.processes[which].think(asked) == rank(self.store.scan(), asked)

    @rule(which=st.integers(0, 1), asked=questions, memory=memories)
    def search(self, which: int, asked: list[str], memory: Memory) -> None:
        """Ask either process for all that a filter lets through."""
        wanted = Filter.of(agent=memory.agent, topic=memory.topics[:1], before="2026-01-01T00:30Z")
        meant = list(wanted.among(self.store.scan()))
        expected = every_hit(meant, clean(asked))
        found = self.processes[which].search_keywords(asked, wanted, slice(None))
        assert found == Found(len(expected), expected)
        listed = [name for _, name in self.processes[which].dated(wanted)]
        assert sorted(listed) == sorted(name for name, _ in meant)

    @invariant()
    def both_know_everything(self) -> None:
        """Ask both in turn something that most memories match."""
        if hasattr(self, "processes"):
            self.asked += 1
            process = self.processes[self.asked % 2]
            assert process.think(["a", "."]) == rank(self.store.scan(), ["a", "."])


Life.TestCase.settings = settings(stateful_step_count=20)
test_life_of_an_index = Life.TestCase


def test_many_files_and_keywords_give_the_answer_of_a_scan(base: Path, index: Index) -> None:
    """More ties than an answer holds, words in most texts, and many removed at once."""
    for number in range(700):
        content = (
            f"word{number % 7} {'even' if number % 2 else 'odd'} number{number} c++ x.y {number}"
        )
        moment = f"2026-01-{number % 28 + 1:02}T00:00:00+00:00"
        write(base, f"{number}.md", content, id=f"{number:08x}", timestamp=moment)
    many = [f"word{number}" for number in range(300)]
    asked = (["even"], ["food"], ["c++"], ["x.y", "odd"], ["e"], ["1", "12"], many, ["."])

    def compare() -> None:
        memories = list(Store(base).scan())
        for keywords in asked:
            assert index.think(keywords) == rank(memories, keywords)

    compare()
    for number in range(0, 700, 3):
        (base / "files" / f"{number}.md").unlink()
    compare()


def test_a_keyword_that_occurs_nowhere_is_tried_in_its_other_form(base: Path, index: Index) -> None:
    """Composed or not; what occurs as it is given is not tried in another form."""
    composed, apart = "caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")
    write(base, "a.md", f"the {apart}")
    for form in (composed, apart):
        (hit,) = index.think([form])
        assert (hit.relevance_score, hit.matching_keywords) == (1, (form,))
        assert index.think([form]) == rank(Store(base).scan(), [form])
    write(base, "b.md", f"a {composed}")
    assert found_names(index, composed) == ["b.md"]
    assert found_names(index, apart) == ["a.md"]


def test_a_stored_memory_is_found_at_once_and_an_edit_by_the_next_scan(base: Path) -> None:
    """By every process; the text of a hit is always that of now."""
    first, second = [Index(Store(base), rescan_seconds=None) for _ in range(2)]
    with closing(first), closing(second):
        added = Store(base).add(NOTE._replace(content="soup"))
        assert found_names(first, "soup") == found_names(second, "soup") == [added.file_name]
        write(base, added.file_name, "bread")
        assert found_names(first, "soup") == []
        assert found_names(second, "soup") == []
    path = write(base, "b.md", "stew")
    wait_until_settled(base, "b.md")
    with closing(Index(Store(base), rescan_seconds=3600)) as seldom:
        assert found_names(seldom, "rice") == []
        path.write_text(path.read_text("utf-8").replace("stew", "rice"), encoding="utf-8")
        assert found_names(seldom, "rice") == []  # no scan is due, and the file is no hit
        assert found_names(seldom, "stew") == []
    with closing(Index(Store(base))) as new:
        assert found_names(new, "rice") == ["b.md"]


def test_the_file_is_private_and_holds_nothing_of_what_is_forgotten(
    base: Path, index: Index
) -> None:
    """It lies in the user's cache directory, and not in the base."""
    forgotten = write(base, "a.md", "xylophone", user="zanzibar")
    write(base, "b.md", "soup")
    index.think(["soup"])
    file = index_file(base)
    assert b"xylophone" in file.read_bytes()
    forgotten.unlink()
    index.think(["soup"])
    data = b"".join(path.read_bytes() for path in file.parent.iterdir())
    assert b"xylophone" not in data and b"zanzibar" not in data
    assert {path.name for path in base.iterdir()} == {".aiaml-id", "files"}
    if sys.platform != "win32":
        assert {path.stat().st_mode & 0o777 for path in file.parent.iterdir()} == {0o600}
        assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_server_holds_no_term_for_long_that_is_gone(base: Path, index: Index) -> None:
    """It holds all terms in memory, and runs for months."""
    for number in range(20):
        write(base, "a.md", f"soup{number}")
        assert found_names(index, "soup") == ["a.md"]
    database, _ = index._open()
    assert len(list(database.terms_with("soup"))) <= 2


def test_the_index_of_a_base_that_is_gone_is_removed(base: Path, tmp_path: Path) -> None:
    """When another one is made."""
    moved = tmp_path / "moved"
    with closing(Index(Store(base))) as index:
        index.think(["soup"])
    old = index_file(base)
    base.rename(moved)
    with closing(Index(Store(moved))) as index:
        index.think(["soup"])
    assert not old.parent.exists()
    assert index_file(moved).exists()


def test_a_planted_index_is_not_opened(base: Path) -> None:
    """Whatever lies in a base is left alone."""
    write(base, "a.md", "soup")
    planted = base / ".index" / "index.sqlite"
    planted.parent.mkdir()
    planted.write_bytes(b"planted")
    with closing(Index(Store(base))) as index:
        assert found_names(index, "soup") == ["a.md"]
    assert planted.read_bytes() == b"planted"


@pytest.mark.slow
def test_an_index_damaged_at_random_gives_an_answer_and_a_right_one_after_a_rebuild(
    base: Path,
) -> None:
    """Some bytes are overwritten in 300 ways; SQLite does not notice all of them."""
    random = Random(7)
    for number in range(60):
        write(base, f"{number}.md", f"soup {number} number{number}", id=f"{number:08x}")
    with closing(Index(Store(base))) as index:
        index.think(["soup"])
    file = index_file(base)
    whole = file.read_bytes()
    expected = rank(Store(base).scan(), ["soup", "number7"])
    for _ in range(300):
        damaged = bytearray(whole)
        at, length = random.randrange(len(whole)), random.choice([1, 16, 4096])
        damaged[at : at + length] = random.randbytes(len(damaged[at : at + length]))
        file.write_bytes(damaged)
        with closing(Index(Store(base))) as index:
            index.think(["soup", "number7"])
        delete_index(base)
        with closing(Index(Store(base))) as index:
            assert index.think(["soup", "number7"]) == expected


@pytest.mark.parametrize("last", [1 << 60, 0, -7])
def test_a_damaged_number_of_the_last_file_changes_no_answer(base: Path, last: int) -> None:
    """Neither by what it leaves out nor by what it counts up to."""
    for number in range(3):
        write(base, f"{number}.md", f"soup {number}")
        wait_until_settled(base, f"{number}.md")
    for _ in range(2):
        with closing(Index(Store(base))) as opened:
            assert len(opened.think(["soup"])) == 3
            assert opened.labels("agent") == [("claude", 3)]
        with sqlite3.connect(index_file(base)) as changed:
            changed.execute("UPDATE sqlite_sequence SET seq = ?", [last])


def test_a_file_that_cannot_be_used_does_not_keep_answers_back(base: Path, tmp_path: Path) -> None:
    """Another process that never lets go of it, or a cache directory that is none."""
    write(base, "a.md", "soup")
    with closing(Index(Store(base))) as index:
        index.think([])
    with pytest.MonkeyPatch.context() as patch, closing(Index(Store(base))) as index:
        patch.setattr("aiaml_server.storage.cache.LOCK_SECONDS", 0)
        other = sqlite3.connect(index_file(base), isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        assert found_names(index, "soup") == ["a.md"]
        assert list(index.files(["a1b2c3d4"])) == ["a1b2c3d4"]
        assert index.problem == ""
        assert len(index.dated()) == 1
        assert "database is locked" in index.problem
        other.close()
    with pytest.MonkeyPatch.context() as patch, closing(Index(Store(base))) as index:
        (tmp_path / "no directory").write_text("")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "no directory"))
        assert found_names(index, "soup") == ["a.md"]


def test_a_server_answers_by_a_scan_while_many_files_are_recorded(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is made in the background, so that the first question does not wait for it."""
    monkeypatch.setattr(index_module, "BACKGROUND_FILES", 20)
    for number in range(60):
        write(base, f"{number}.md", "soup", id=f"{number:08x}")
    expected = rank(Store(base).scan(), ["soup"])
    with closing(Index(Store(base), background=True)) as index:
        assert index.think(["soup"]) == expected
        assert list(index.files(["00000003"])) == ["00000003"]
        with sqlite3.connect(index_file(base)) as recorded:
            assert recorded.execute("SELECT count(*) FROM texts").fetchone() == (0,)
        threads = [each for each in threading.enumerate() if each.name == "index"]
        for thread in threads:
            thread.join()
        assert threads
        assert index.think(["soup"]) == expected
    with sqlite3.connect(index_file(base)) as recorded:
        assert recorded.execute("SELECT count(*) FROM texts").fetchone() == (60,)


def test_files_are_recorded_while_a_scan_answers(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a server that is asked all the time would never finish its index."""
    monkeypatch.setattr(index_module, "BACKGROUND_FILES", 20)
    for number in range(30):
        write(base, f"{number}.md", "soup", id=f"{number:08x}")
    store = Store(base)
    scan = store.scan

    def recorded() -> bool:
        with sqlite3.connect(index_file(base)) as database:
            return len(database.execute("SELECT id FROM texts").fetchall()) == 30

    def slow_scan(names: Iterable[str] | None = None) -> Iterator[tuple[str, Memory]]:
        wait_until(recorded)
        return scan(names)

    with closing(Index(store, background=True)) as index:
        first = index.think(["soup"])
        store.scan = slow_scan  # type: ignore[method-assign]
        assert index.think(["soup"]) == first
        assert recorded()


def test_an_index_that_is_deleted_during_a_change_is_made_anew(
    base: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `aiaml doctor --fix` does beside a server, which does not go on in memory."""
    write(base, "a.md", "soup")
    assert found_names(index, "soup") == ["a.md"]
    add = Database.add

    def deleting(self: Database, files: Iterable[ReadFile]) -> None:
        monkeypatch.setattr(Database, "add", add)
        delete_index(base)
        add(self, files)

    monkeypatch.setattr(Database, "add", deleting)
    write(base, "b.md", "soup")
    assert found_names(index, "soup") == ["b.md", "a.md"]
    assert index_file(base).exists()


def test_a_vanished_directory_is_an_empty_store(base: Path, index: Index) -> None:
    """It may come back."""
    write(base, "a.md", "soup")
    assert found_names(index, "soup") == ["a.md"]
    base.rename(base.with_name("away"))
    assert found_names(index, "soup") == []
    base.with_name("away").rename(base)
    assert found_names(index, "soup") == ["a.md"]


def test_files_that_come_back_are_found_although_another_process_missed_them(base: Path) -> None:
    """As when the disk was away, or a link to the directory was changed for a moment."""
    write(base, "a.md", "soup")
    wait_until_settled(base, "a.md")
    here, away = base / "files", base / "away"
    first, second = [Index(Store(base), rescan_seconds=0) for _ in range(2)]
    with closing(first), closing(second):
        for _ in range(2):
            assert found_names(first, "soup") == ["a.md"]
        here.rename(away)
        here.mkdir()
        assert found_names(second, "soup") == []
        here.rmdir()
        away.rename(here)
        for index in (first, second, first):
            assert found_names(index, "soup") == ["a.md"]


def test_lists_and_counts(base: Path, index: Index) -> None:
    """Of what a filter lets through; names are compared as `fold` does, shown as first written."""
    write(base, "a.md", "soup", topics=("Food", "home"), agent="Claude", timestamp="2026-01-01")
    write(base, "b.md", "soup", topics=("food",), agent="claude", timestamp="2026-01-02")
    write(base, "c.md", "stew", topics=("work",), agent="codex", timestamp="soon", id="a1ffffff")
    (base / "files" / "d.md").write_text("no memory")
    assert [name for _, name in index.dated()] == ["b.md", "a.md", "c.md"]
    assert index.labels("topic") == [("Food", 2), ("home", 1), ("work", 1)]
    assert index.ids("a1") == ["a1b2c3d4", "a1ffffff"]
    assert {each: len(files) for each, files in index.files(["a1b2c3d4", "none"]).items()} == {
        "a1b2c3d4": 2
    }
    day = 86_400_000_000
    first = 1_767_225_600_000_000
    agents = [("Claude", 2), ("codex", 1)]
    assert index.counts(Filter.of(agent="CLAUDE")) == Counts(
        3, 1, 2, agents, [("marco", 2)], [("Food", 2), ("home", 1)], [first, first + day]
    )
    assert index.counts(Filter.of(since="2026-01-02", topic=["FOOD"])).matching == 1
    write(base, "e.md", "soup", topics=("cafe\u0301",))
    assert [name for _, name in index.dated(Filter.of(topic=["Caf\xe9"]))] == ["e.md"]


def test_odd_names_are_counted_and_filtered_until_they_are_removed(
    base: Path, index: Index
) -> None:
    """Whatever a person or another program wrote into a field; no part of it stays."""
    odd = ["\0secret", "secret\x7fname", "\U0010ffffsecret", "a\tsecret", "sec\nret", "", "agent"]
    for number, name in enumerate(odd):
        path = write(base, "a.md", "soup", agent=name, user=name, topics=(name,) if name else ())
        for field in ("agent", "user", "topic"):
            expected = [(name, 1)] if name or field != "topic" else []
            assert index.labels(field) == expected, (field, number)
        found = index.counts(Filter.of(agent=name, user=name, topic=[name] if name else []))
        assert found.matching == 1
        assert found.agents == [(name, 1)]
        path.unlink()
        assert index.counts(Filter()) == Counts(0, 0, 0, [], [], [], [])
        assert b"secret" not in index_file(base).read_bytes()
    alike = ["a\0b", "a\x7fb", "a\ufffdb", "a%00b"]
    for number, name in enumerate(alike):
        write(base, f"{number}.md", "soup", agent=name)
    for name in alike:
        assert index.counts(Filter.of(agent=name)).matching == 1
    assert index.counts(Filter.of(agent="\udcff")).matching == 0
    assert index.problem == ""


@pytest.mark.skipif(sys.platform != "linux", reason="only there any bytes are a name")
def test_a_file_whose_name_is_not_utf8_is_skipped(
    base: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No database takes its name. It hides no other file and is named in the log."""
    logger = logging.getLogger("aiaml_server.storage.store")
    handler = BufferingHandler(9)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "propagate", False)  # pytest-xdist cannot send such a text
    write(base, "a.md", "soup")
    path = write(base, os.fsdecode(b"\xff.md"), "soup")
    for _ in range(2):
        assert found_names(index, "soup") == ["a.md"]
        assert index.verify() == ""
    assert "its name is not UTF-8" in handler.buffer[0].getMessage()
    path.rename(path.with_name("b.md"))
    assert found_names(index, "soup") == ["b.md", "a.md"]


def test_verify_names_a_difference(base: Path, index: Index) -> None:
    """Of an index that somebody has changed."""
    write(base, "a.md", "soup of the day")
    wait_until_settled(base, "a.md")
    assert index.verify() == ""
    with sqlite3.connect(index_file(base)) as changed:
        changed.execute("UPDATE terms SET term = 'stew' WHERE term = 'soup'")
    with closing(Index(Store(base))) as opened:
        assert "soup" in opened.verify()
