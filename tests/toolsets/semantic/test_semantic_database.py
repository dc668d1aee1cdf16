"""The databases of `semantic`: shared by processes, killed, damaged, old, and after forgetting."""

from __future__ import annotations

import ctypes
import json
import math
import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec as real_find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest
from test_semantic import SMALL, WIDTH, Toy

from aiaml_server.toolsets.semantic import database, failures
from aiaml_server.toolsets.semantic.checking import checks
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.database import Author, Database, packed, rows
from aiaml_server.toolsets.semantic.journal import row_of
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Draft
from paths import TESTS
from semantic_model import Ready
from waiting import wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="modes and signals are of POSIX")


def opened(place: Path, toy: Toy | None = None, settings: Config = SMALL) -> Memories:
    """Open a person's memories alone."""
    return Memories(place / ".memory", None, Ready(toy or Toy()), settings)


def agree(memories: Memories) -> int:
    """See that words, vectors and memories of the person agree; return how many there are."""
    with memories.databases["global"].reading() as sql:
        assert rows(sql, "PRAGMA integrity_check") == [("ok",)]
        sql.execute("INSERT INTO words(words, rank) VALUES ('integrity-check', 1)")
        (count,) = rows(sql, "SELECT count(*) FROM memories")[0]
        embedded = rows(sql, "SELECT id FROM memories WHERE embedding_model != '' ORDER BY id")
        assert rows(sql, "SELECT DISTINCT memory_id FROM vectors ORDER BY 1") == embedded
        assert rows(sql, "SELECT vector_id FROM vec_memories ORDER BY 1") == rows(
            sql, "SELECT id FROM vectors ORDER BY 1"
        )
    return int(count)


# --- processes ------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from test_semantic_database import opened
memories = opened(Path(sys.argv[1]))
for number in range({count}):
    print(memories.store(f"fact {{sys.argv[2]}} {{number}}").memory.id, number, flush=True)
"""


def writer(place: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Start a process that stores memories, and says so of each that is acknowledged."""
    script = WRITER.format(paths=[str(TESTS), str(Path(__file__).parent)], count=count)
    return subprocess.Popen(
        [sys.executable, "-c", script, str(place), name], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_eight_processes_store_at_once(tmp_path: Path) -> None:
    """8 times 100: nothing is refused, nothing lost, and all parts agree."""
    running = [writer(tmp_path, str(number), 100) for number in range(8)]
    said = [each.communicate()[0].split("\n") for each in running]
    assert [each.returncode for each in running] == [0] * 8
    assert {len(lines) for lines in said} == {101}
    memories = opened(tmp_path)
    assert agree(memories) == 800
    ids = {line.partition(" ")[0] for lines in said for line in lines if line}
    assert len(ids) == 800
    memories.close()


def test_a_database_that_another_process_is_making_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version and its tables are read at one moment: the tables of the other came between."""
    other: list[subprocess.Popen[str]] = []
    read = Database._version

    def while_another_begins(self: Database, sql: Any) -> int:
        version = read(self, sql)
        if not other:
            other.append(writer(tmp_path, "other", 1))
            with suppress(subprocess.TimeoutExpired):
                other[0].wait(5)
        return version

    monkeypatch.setattr(Database, "_version", while_another_begins)
    memories = opened(tmp_path)
    memories.store("fact one")
    assert other[0].communicate()[0]
    assert agree(memories) == 2
    memories.close()


@pytest.mark.slow
@posix
@pytest.mark.timeout(600)
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """Eight writers, killed one after the other while the others go on."""
    running = [writer(tmp_path, str(number), 5000) for number in range(8)]
    said = []
    for number, each in enumerate(running):
        assert each.stdout
        lines = [each.stdout.readline() for _ in range(3 + number)]
        each.send_signal(signal.SIGKILL)
        rest, _ = each.communicate()
        said += "".join([*lines, rest]).splitlines(keepends=True)
    memories = opened(tmp_path)
    agree(memories)
    with memories.databases["global"].reading() as sql:
        held = {row[0] for row in rows(sql, "SELECT id FROM memories")}
    told = {int(line.split()[0].removeprefix("global:")) for line in said if line.endswith("\n")}
    assert len(told) > 40 and told <= held
    memories.close()


def test_a_database_that_is_held_is_tried_three_times(tmp_path: Path) -> None:
    """With growing pauses; then the answer is `Busy`, and nothing was changed."""
    memories = opened(tmp_path)
    memories.store("tea")
    memories.close()
    held = apsw.Connection(str(tmp_path / ".memory" / "db"))
    held.execute("BEGIN IMMEDIATE")
    with mock.patch.object(database, "PATIENCE", 0), mock.patch("time.sleep") as sleep:
        with pytest.raises(failures.Busy):
            memories.store("coffee")
        assert [each.args[0] for each in sleep.call_args_list] == [0.1, 0.4]
    held.execute("ROLLBACK")
    assert memories.store("coffee").created
    memories.close()
    held.close()


# --- forgetting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 300])
def test_what_was_forgotten_is_in_no_byte(tmp_path: Path, count: int) -> None:
    """Text, words, tags and vectors are in no file any more, while the database is open."""
    toy = Toy(dimension=64)
    memories = opened(tmp_path, toy, Config(dimension=64, check=False))
    chance = random.Random(count)
    kept: list[str] = []
    secrets: dict[str, str] = {}
    for number in range(count):
        filler = " ".join(f"common{chance.randrange(50)}" for _ in range(chance.randrange(80)))
        secret = f"zq{number}x{chance.randrange(10**9)}"
        stored = memories.store(f"the {secret} is secret {filler}", [f"tag{secret}"])
        kept.append(stored.memory.id)
        secrets[stored.memory.id] = secret
    some = chance.sample(kept, max(1, count // 4))
    for each in some[: len(some) // 2]:
        memories.update(each, f"harmless {random.Random(each).random()}", tags=[])
    vectors = {each: packed(toy.vector(memories.get(each).content), 64) for each in some}
    for each in some:
        if int(each.partition(":")[2]) % 2:
            memories.delete(each)
        memories.forget(each)
        held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert secrets[each].encode() not in held
        assert secrets[each][2:].encode() not in held  # as prefixes are cut in a word index
        assert vectors[each] not in held
    assert agree(memories) == count - len(some)
    assert memories.search("common1").hits or count == 1
    memories.close()


def test_forgetting_without_the_extension(tmp_path: Path) -> None:
    """The vector goes when it can be loaded again; until then nothing finds it."""
    memories = opened(tmp_path)
    memories.store("tea is green")
    memories.store("coffee is black")
    memories.close()
    with without("sqlite_vec"):
        memories.forget("global:1")
        found = memories.search("coffee")
        assert [each.memory.id for each in found.hits] == ["global:2"] and not found.meaning
        assert any("sqlite-vec" in each for each in found.warnings)
        memories.close()
    memories.store("water")
    assert agree(memories) == 2
    memories.close()


def without(name: str) -> mock._patch[object]:
    """Have a module not be installed, as far as is looked."""
    return mock.patch.object(
        database,
        "find_spec",
        lambda asked: None if asked == name else real_find_spec(asked),
    )


def test_without_the_extension_all_else_works(tmp_path: Path) -> None:
    """Words only, which is said; the vectors are made when it is there."""
    toy = Toy()
    memories = opened(tmp_path, toy)
    with without("sqlite_vec"):
        stored = memories.store("tea is green")
        assert stored.memory.embedding_model is None and "sqlite-vec" in stored.warnings[0]
        assert [each.memory.id for each in memories.search("tea").hits] == ["global:1"]
        memories.update("global:1", "tea is hot")
        memories.close()
    assert memories.search("tea").hits[0].cosine is None
    assert memories.left() == 0
    assert memories.search("tea").hits[0].cosine
    assert agree(memories) == 1
    memories.close()


def test_without_apsw_one_sentence_names_the_extra(tmp_path: Path) -> None:
    """Here as in the server's start, which `Manifest.needs` decides."""
    memories = opened(tmp_path)
    with (
        mock.patch.dict(sys.modules, {"apsw": None}),
        pytest.raises(failures.Unavailable, match=r"pip install 'aiaml-server\[semantic\]'"),
    ):
        memories.store("tea")
    assert not (tmp_path / ".memory").exists()


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vector",
    [[0.0] * WIDTH, [math.nan] * WIDTH, [math.inf, *[1.0] * (WIDTH - 1)], [1.0] * (WIDTH - 1),
     [1.0] * (WIDTH + 1), [1e-30] * WIDTH, []],
)  # fmt: skip
def test_bad_vectors_are_never_stored(tmp_path: Path, vector: list[float]) -> None:
    """The memory is, without one, and flagged to be tried again."""
    toy = Toy()
    memories = opened(tmp_path, toy)
    with mock.patch.object(toy, "embed", lambda texts: [vector for _ in texts]):
        stored = memories.store("tea is green")
        assert stored.memory.embedding_model is None and "the model failed" in stored.warnings[0]
        assert [each.memory.id for each in memories.search("tea").hits] == ["global:1"]
    assert memories.left() == 1
    assert list(memories.embed())[-1] == (1, 0)
    memories.close()


def test_a_model_that_fails_loses_nothing(tmp_path: Path) -> None:
    """Neither the memory nor the answer."""
    toy = Toy()
    memories = opened(tmp_path, toy)
    memories.store("coffee")

    def fail(_texts: Sequence[str]) -> list[list[float]]:
        raise RuntimeError("the text itself")

    with mock.patch.object(toy, "embed", fail):
        stored = memories.store("tea")
        found = memories.search("tea")
    assert stored.created and found.hits and not found.meaning
    assert all("the text itself" not in each for each in (*stored.warnings, *found.warnings))
    memories.close()


def test_what_was_stored_before_the_model_was_there_is_embedded_later(tmp_path: Path) -> None:
    """In the background, as soon as it is."""
    ready = Ready(Toy())
    ready.embedder = None
    memories = Memories(tmp_path / ".memory", None, ready, SMALL, background=True)
    for number in range(40):
        stored = memories.store(f"fact {number}")
        assert stored.memory.embedding_model is None and stored.warnings
    assert memories.left() == 40
    ready.embedder = Toy()
    memories.store("one more")
    wait_until(lambda: not memories.left())
    memories.close()
    assert agree(memories) == 41 and memories.left() == 0
    memories.close()


# --- another model --------------------------------------------------------------------------------


def test_what_is_found_is_embedded_anew(tmp_path: Path) -> None:
    """Lazily, when the model has changed; the rest by `embed(outdated=True)`, which can resume."""
    memories = opened(tmp_path, Toy("1"))
    for number in range(50):
        memories.store(f"fact n{number}y")
    memories.close()
    memories = opened(tmp_path, Toy("2"))
    found = memories.search("n7y")
    assert [each.memory.id for each in found.hits] == ["global:8"]
    assert "50 global memories have no vector of this model" in found.warnings[0]
    assert memories.get("global:8").embedding_model_version == "2"
    assert "49 global" in memories.search("n7y").warnings[0]
    step = next(iter(memories.embed(outdated=True)))
    assert step == (16, 33)
    assert [each.left for each in memories.embed(outdated=True)] == [17, 1, 0]
    assert not any("no vector" in each for each in memories.search("n3y").warnings)
    assert agree(memories) == 50
    memories.close()


def test_a_model_of_another_width(tmp_path: Path) -> None:
    """Its vectors take the place of the others, which do not compare; if the settings say so."""
    memories = opened(tmp_path, Toy())
    memories.store("tea")
    memories.close()
    memories = opened(tmp_path, Toy(dimension=8))
    assert "embedding.dimension" in memories.search("tea").warnings[0]
    memories.close()
    memories = opened(tmp_path, Toy(dimension=8), Config(dimension=8))
    assert list(memories.embed(outdated=True))[-1] == (1, 0)
    assert memories.search("tea").meaning and memories.get("global:1").embedding_dimension == 8
    assert agree(memories) == 1
    memories.close()


# --- files ----------------------------------------------------------------------------------------


@posix
def test_files_are_private(tmp_path: Path) -> None:
    """0700 and 0600, and git does not see a project's."""
    memories = Memories(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    (tmp_path / "shop").mkdir()
    memories.store("tea")
    memories.store("tea", scope="global")
    for directory in (tmp_path / ".memory", tmp_path / "shop" / ".memory"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        for path in directory.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert (tmp_path / "shop/.memory/.gitignore").read_text() == "*\n"
    assert not (tmp_path / ".memory/.gitignore").exists()
    memories.close()


def test_a_thousand_memories_take_less_than_four_megabytes(tmp_path: Path) -> None:
    """Of 1,000 characters each, with vectors of 384 numbers and their words."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randrange(3, 9)))
             for _ in range(3000)]  # fmt: skip
    memories = opened(tmp_path, Toy(dimension=384), Config(check=False))
    store = memories.databases["global"]
    with store.writing() as sql:
        author = Author("toy", "1", 384)
        for number in range(1000):
            text = " ".join(chance.choices(words, k=400))[:1000]
            hashes = dict.fromkeys(("content_hash", "folded"), str(number))
            made = store.add(sql, {**row_of(Draft(text, created="2026")), **hashes})
            vector = [chance.gauss(0, 1) for _ in range(384)]
            store.set_vectors(sql, made, author, [packed(vector, 384)])  # fmt: skip
    memories.close()
    assert (tmp_path / ".memory" / "db").stat().st_size < 4 * 1024 * 1024


def test_the_schema_is_that_of_the_specification(tmp_path: Path) -> None:
    """Every column and index; in both databases."""
    memories = opened(tmp_path)
    memories.store("tea")
    with memories.databases["global"].reading() as sql:
        columns = [row[1] for row in rows(sql, "PRAGMA table_info(memories)")]
        assert columns[:16] == [
            "id", "content", "content_hash", "priority", "category", "tags", "project_id",
            "source", "created_at", "updated_at", "embedding_model", "embedding_model_version",
            "embedding_dimension", "access_count", "last_accessed_at", "usage_contexts",
        ]  # fmt: skip
        names = {row[0] for row in rows(sql, "SELECT name FROM sqlite_schema")}
        assert {"vec_memories", "idx_priority", "idx_project_id", "idx_created_at",
                "idx_content_hash"} <= names  # fmt: skip
        assert rows(sql, "PRAGMA secure_delete") == [(1,)]
    memories.close()


def test_a_database_of_the_specification_is_taken_over(tmp_path: Path) -> None:
    """With its memories, which get words and vectors; and equal ones can be merged then."""
    (tmp_path / ".memory").mkdir()
    sql = apsw.Connection(str(tmp_path / ".memory" / "db"))
    for each in database._SPECIFIED.split(";"):
        sql.execute(each)
    for content in ("tea is green", "Tea is  green", "coffee"):
        sql.execute(
            "INSERT INTO memories (content, content_hash, tags, embedding_model)"
            " VALUES (?, ?, ?, ?)",
            (content, content, json.dumps(["a"]), "another"),
        )
    sql.close()
    memories = opened(tmp_path)
    assert memories.list().total == 3
    assert {each.memory.content for each in memories.search("green").hits[:2]} == {
        "tea is green", "Tea is  green"}  # fmt: skip
    assert agree(memories) == 3
    ((group,), _) = memories.duplicates()
    assert group.kind == "equal but for case and white space"
    assert memories.merge([each.id for each in group.memories]).content == "Tea is  green"
    assert memories.list().total == 2
    memories.close()


def test_words_without_blanks_are_found_in_an_earlier_database(tmp_path: Path) -> None:
    """Which is brought up to date; and when they are forgotten no character of them is left."""
    memories = opened(tmp_path)
    memories.store("東京都の天気")
    memories.store("tea", ["天気"])
    with memories.databases["global"].writing() as sql:  # as an earlier version has left it
        sql.execute("ALTER TABLE memories DROP COLUMN spaced")
        sql.execute("DROP TABLE words")
        sql.execute(
            "CREATE VIRTUAL TABLE words USING fts5(content, tags, content='memories',"
            " content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')"
        )
        sql.execute("INSERT INTO words(words) VALUES ('rebuild')")
        sql.execute("ALTER TABLE merges DROP COLUMN act")
        sql.execute("DROP TABLE exchanged")
        sql.execute("PRAGMA user_version = 3")
    memories.close()
    found = [each.memory.id for each in memories.search("天気予報").hits if each.bm25]
    assert sorted(found) == ["global:1", "global:2"]
    assert agree(memories) == 2
    memories.forget("global:1")
    memories.update("global:2", tags=[])
    with memories.databases["global"].writing() as sql:
        sql.execute("DELETE FROM merges")
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not any(each.encode() in held for each in "東京都の天気")
    assert agree(memories) == 1
    memories.close()


def test_a_newer_database_is_left_as_it_is(tmp_path: Path) -> None:
    """And named."""
    memories = opened(tmp_path)
    memories.store("tea")
    memories.close()
    path = tmp_path / ".memory" / "db"
    sql = apsw.Connection(str(path))
    sql.execute("PRAGMA user_version = 99")
    sql.close()
    before = path.read_bytes()
    with pytest.raises(failures.Damaged, match="version 99"):
        memories.store("coffee")
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", ["memories", "words", "vectors"])
def test_a_database_that_lacks_a_table_is_damaged(tmp_path: Path, table: str) -> None:
    """Not a mistake of ours; what to do is said."""
    memories = opened(tmp_path)
    memories.store("tea")
    memories.close()
    sql = apsw.Connection(str(tmp_path / ".memory" / "db"))
    (found,) = sql.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ?",
                           (f"%{table}",)).fetchall()[:1]  # fmt: skip
    sql.execute(f"DROP TABLE {found[0]}")
    sql.close()
    ask = memories.search if table == "memories" else memories.store
    with pytest.raises(failures.Damaged, match="no such table") as error:
        ask("tea and coffee")
    assert "aiaml semantic doctor" in error.value.suggestion


def opened_at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Memories:
    """Open the memories of a person's home, where `doctor` looks, from within it."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(home)
    return opened(home)


@pytest.mark.parametrize("table", ["authors", "merges", "about", "imports"])
def test_doctor_misses_any_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Also one that searching does without."""
    memories = opened_at_home(tmp_path, monkeypatch)
    memories.store("tea")
    with memories.databases["global"].writing() as sql:
        sql.execute(f"DROP TABLE {table}")
    memories.close()
    (found,) = [each for each in checks({}) if each.level == "error"]
    assert table in found.found


def test_memories_without_a_time_are_listed_last(tmp_path: Path) -> None:
    """Beside those of the other database, which have one."""
    (tmp_path / "shop" / ".memory").mkdir(parents=True)
    memories = Memories(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    memories.store("tea")
    memories.store("coffee", scope="global")
    with memories.databases["project"].writing() as sql:
        sql.execute("UPDATE memories SET created_at = NULL, updated_at = NULL")
    for sort_by in ("created_at", "updated_at", "priority"):
        assert [each.content for each in memories.list(sort_by=sort_by).memories] == [
            "coffee",
            "tea",
        ]
    memories.close()


@pytest.mark.parametrize("damage", [b"x" * 5000, b"SQLite format 3\0" + b"\xff" * 4080])
def test_what_is_no_database_is_named_and_left(tmp_path: Path, damage: bytes) -> None:
    """The other one still answers, with a warning."""
    (tmp_path / "shop" / ".memory").mkdir(parents=True)
    path = tmp_path / "shop" / ".memory" / "db"
    path.write_bytes(damage)
    memories = Memories(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    with pytest.raises(failures.Damaged):
        memories.search("tea")
    memories.store("tea", scope="global")
    found = memories.search("tea")
    assert [each.memory.id for each in found.hits] == ["global:1"]
    assert "without the project memories" in found.warnings[0]
    assert memories.list().total == 1
    assert [each.id for each in memories.session_start()] == ["global:1"]
    assert path.read_bytes() == damage
    memories.close()


@contextmanager
def powerless() -> Iterator[None]:
    """Be refused what others are for a while, also as root: without its rights on all files."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root cannot give its rights up for a while here")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the version with 64 rights, and this thread
    had = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable ones, in two halves
    assert libc.capget(header, had) == 0, ctypes.get_errno()
    fewer = (ctypes.c_uint32 * 6)(*had)
    fewer[0] &= ~0b1110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER
    assert libc.capset(header, fewer) == 0, ctypes.get_errno()
    try:
        yield
    finally:
        assert libc.capset(header, had) == 0, ctypes.get_errno()


@posix
def test_what_can_only_be_read_is_read(tmp_path: Path) -> None:
    """Files of 0444 in a directory of 0555, as on a disk that is mounted so; nothing is written."""
    with powerless():
        memories = opened(tmp_path)
        memories.store("tea is green")
        memories.store("coffee is black", priority="CORE")
        with memories.databases["global"].writing() as sql:
            sql.execute("UPDATE memories SET embedding_model = '' WHERE id = 2")
        memories.close()
        for path in (tmp_path / ".memory").iterdir():
            path.chmod(0o444)
        (tmp_path / ".memory").chmod(0o555)
        before = (tmp_path / ".memory" / "db").read_bytes()
        assert memories.search("tea").hits[0].memory.content == "tea is green"
        assert memories.search("tea").meaning and memories.list().total == 2
        assert memories.session_start()[0].content == "coffee is black"
        told: list[str] = []
        assert list(memories.embed(told=told)) == [] and "only readable" in told[0]
        for write in (
            lambda: memories.store("water"),
            lambda: memories.update("global:1", used=True),
            lambda: memories.delete("global:1"),
        ):
            with pytest.raises(failures.DiskError, match=r"[Pp]ermission denied"):
                write()
        assert memories.get("global:1").access_count == 0
        with mock.patch.dict(os.environ, {"HOME": str(tmp_path)}):
            found = [each for each in checks({}) if each.found.endswith("can only be read")]
        assert [each.level for each in found] == ["warning"]
        assert (tmp_path / ".memory" / "db").read_bytes() == before
        (tmp_path / ".memory").chmod(0o755)
        for path in (tmp_path / ".memory").iterdir():
            path.chmod(0o644)
        assert memories.store("water").memory.id == "global:3"
        memories.close()


@posix
def test_an_earlier_version_that_can_only_be_read_is_named(tmp_path: Path) -> None:
    """It would have to be brought up to date."""
    with powerless():
        memories = opened(tmp_path)
        memories.store("tea is green")
        with memories.databases["global"].writing() as sql:
            sql.execute("ALTER TABLE merges DROP COLUMN act")
            sql.execute("DROP TABLE exchanged")
            sql.execute("PRAGMA user_version = 4")
        memories.close()
        (tmp_path / ".memory" / "db").chmod(0o444)
        with pytest.raises(failures.DiskError, match="earlier version, and can only be read"):
            memories.list()


@posix
@pytest.mark.parametrize("name", ["db", "db-journal"])
def test_links_are_not_followed(tmp_path: Path, name: str) -> None:
    """A project may come from anybody."""
    (tmp_path / "shop" / ".memory").mkdir(parents=True)
    target = tmp_path / "target"
    target.write_bytes(b"")
    (tmp_path / "shop" / ".memory" / name).symlink_to(target)
    memories = Memories(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    with pytest.raises(failures.Damaged, match="link"):
        memories.store("tea")
    assert target.read_bytes() == b""
    target.unlink()
    memories.store("tea", scope="global")
    if name == "db":  # though it leads nowhere now
        assert "symbolic link" in memories.list().warnings[0]
    memories.close()


def test_a_database_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    """Also while it is open."""
    memories = opened(tmp_path)
    memories.store("tea")
    if os.name == "posix":
        (tmp_path / ".memory" / "db").unlink()
        assert memories.list().total == 0
        assert memories.store("coffee").memory.id == "global:1"
    memories.close()
