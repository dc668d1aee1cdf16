"""The index answers exactly what a scan of every file answers, whatever happens to either."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aiaml_server import Memory, index
from aiaml_server.database import file_of
from aiaml_server.index import Index
from aiaml_server.memory import format  # noqa: A004
from aiaml_server.scorer import Hit, rank
from aiaml_server.store import Store

# What breaks such an index: parts of words, several runs, only punctuation, scripts without spaces,
# marks that are no letters, letters whose case changes their number, overlaps, both kinds of runs.
PIECES = [
    *("a", "aa", "b", "ab", "ba", "c", "x", "7", "42", "_", "cat", "concat", "category", "dog"),
    *("c++", "+", "++", ".", "...", "node.js", "js", "node", "e-mail", "-", "'", "it's", "#", "\n"),
    *(
        " ",
        " ",
        "  ",
        "\t",
        "san",
        "francisco",
        "san francisco",
        "🙂",
        "🙂🙂",
        "👩\u200d🔧",
        "東京",
        "京",
    ),
    *("ไทย", "नमस्ते", "e\u0301", "é", "İ", "i\u0307", "ß", "ẞ", "Σ", "ς", "σ", "\x00", "\ufeff"),
    *("x" * 250, "\u200b", "½", "①", "ﬁ", "A", "CAT", "Cat."),
]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
questions = st.lists(texts | st.sampled_from(["\ud800", "a\udfff"]), max_size=4)
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
    """Compare stamps at every question, where the program does every few seconds."""
    monkeypatch.setattr(index, "SLICE_SECONDS", -1.0)


@given(st.lists(memories, max_size=8), st.lists(questions, min_size=1, max_size=5))
@example([], [["x"]])
def test_an_answer_is_that_of_the_scan(stored: list[Memory], asked: list[list[str]]) -> None:
    """Ids, order, scores and matching keywords are identical, for any memories and keywords."""
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        for number, memory in enumerate(stored):
            write(base, f"{number}.md", format(memory))
        tested = Index(Store(base))
        for keywords in asked:
            assert tested.think(keywords) == scan(base, keywords)
        tested.close()


def test_hundreds_of_keywords_and_files_give_the_same(tmp_path: Path) -> None:
    """More hits than an answer holds, more ties than are looked up, more than one segment."""
    moment = "2026-01-{:02}T00:00:00+00:00"
    for number in range(5000):
        content = f"word{number % 7} {'even' if number % 2 == 0 else 'odd'} number{number} c++ x.y"
        memory = Memory(f"{number:08x}", moment.format(number % 28 + 1), "a", "b", ("t",), content)
        write(tmp_path, f"{number}.md", format(memory))
    tested = Index(Store(tmp_path))
    keywords = [f"word{number}" for number in range(300)]
    for asked in (["even"], ["t"], ["number1"], ["c++"], ["x.y", "odd"], ["d"], keywords, ["."]):
        assert tested.think(asked) == scan(tmp_path, asked)
    for number in range(0, 5000, 3):
        (tmp_path / "files" / f"{number}.md").unlink()
    for asked in (["even"], ["number1"], ["number3"], ["c++"], keywords):
        assert tested.think(asked) == scan(tmp_path, asked)
    tested.close()


class Life(RuleBasedStateMachine):
    """Two processes on one directory, people who edit it, and damage to the index."""

    @initialize()
    def begin(self) -> None:
        """Start with an empty directory."""
        self.base = Path(tempfile.mkdtemp())
        (self.base / "files").mkdir()
        self.processes = [Index(Store(self.base)), Index(Store(self.base))]
        self.store = Store(self.base)
        self.asked = 0

    def teardown(self) -> None:
        """Leave nothing behind."""
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
        self.processes[which] = Index(Store(self.base))

    @rule(how=st.sampled_from(["delete", "truncate", "garbage", "half", "older", "beside"]))
    def damage_the_index(self, how: str) -> None:
        """Do to the index whatever a person, a disk or another version can."""
        path = file_of(self.base / ".index")
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
            with sqlite3.connect(path) as older:
                older.execute("PRAGMA user_version = 99")
            older.close()

    @rule(which=st.integers(0, 1), keywords=questions)
    def think(self, which: int, keywords: list[str]) -> None:
        """Ask either process."""
        assert self.processes[which].think(keywords) == scan(self.base, keywords)

    @invariant()
    def both_know_everything(self) -> None:
        """Ask both in turn something that most memories match."""
        if hasattr(self, "processes"):
            self.asked += 1
            keywords = ["a", "."]
            assert self.processes[self.asked % 2].think(keywords) == scan(self.base, keywords)


Life.TestCase.settings = settings(stateful_step_count=20)
test_life_of_an_index = Life.TestCase
