"""Databases of `semantic` that a stranger has made: they harm nothing, and cost little."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from string import Template
from typing import Any

import apsw
import pytest
from test_semantic import SMALL, Toy
from test_semantic_database import opened_at_home

from aiaml_server import terminal
from aiaml_server.errors import UnsafePath
from aiaml_server.storage.journal import check_beside
from aiaml_server.toolsets.semantic import Memories, failures
from aiaml_server.toolsets.semantic.checking import checks
from aiaml_server.toolsets.semantic.duplicates import near
from aiaml_server.toolsets.semantic.memory import Draft
from planted_databases import PAGE, SUPER, Server, deletes, naming_journal
from semantic_model import Ready

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured by Linux's /proc")
posix = pytest.mark.skipif(os.name != "posix", reason="pipes are of POSIX")
FACTS = [f"fact {number} about tea" for number in range(20)]


@pytest.fixture
def project(home: Path) -> Path:
    """A project of a person's with memories, which works."""
    shop = home / "work" / "shop"
    (shop / ".memory").mkdir(parents=True)
    with closing(Memories(home / ".memory", shop)) as memories:
        for each in FACTS:
            memories.store(each)
    return shop


def ask(project: Path) -> Memories:
    """Return the memories for whoever works in a project, with words only."""
    return Memories(project.parent.parent / ".memory", project)


def aiaml(project: Path, *words: str, given: object = None) -> str:
    """Run the command line in a project; return all that it prints."""
    command = [sys.executable, "-m", "aiaml_server", *words]
    said = json.dumps(given) if given is not None else ""
    done = subprocess.run(
        command, cwd=project, input=said, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


# --- the journal ----------------------------------------------------------------------------------


@pytest.fixture
def victim(home: Path, project: Path) -> Path:
    """A file of the person's that the journal in the project names."""
    path = home / "precious"
    path.write_bytes(b"precious")
    database = project / ".memory" / "db"
    database.with_name("db-journal").write_bytes(naming_journal(database, str(path)))
    return path


def test_journal_is_one_that_deletes(tmp_path: Path) -> None:
    """The journal of these tests does what it must not, where the standard library's SQLite can."""
    import sqlite3

    if not deletes("sqlite3", tmp_path):
        pytest.skip(f"SQLite {sqlite3.sqlite_version} does not delete what a journal names")


WORDS = [
    ("semantic", "list"), ("semantic", "search", "tea"), ("semantic", "show", "project:1"),
    ("semantic", "status"), ("semantic", "doctor"), ("semantic", "forget", "project:1", "--yes"),
    ("semantic", "undo"), ("semantic", "migrate"), ("memory-server", "init"), ("doctor",),
    ("import", "."), ("import", ".memory/db"), ("import", ".memory"),
]  # fmt: skip


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_journal_deletes_nothing_by_verbs(
    project: Path, victim: Path, words: tuple[str, ...]
) -> None:
    """The journal is as it was, and what it names is there."""
    journal = project / ".memory" / "db-journal"
    before = journal.read_bytes()
    if words[0] == "memory-server":
        words = ("semantic", *words[1:])
    said = aiaml(project, *words)
    assert victim.read_bytes() == b"precious"
    assert journal.read_bytes() == before
    assert "journal" in said or "migrate" in words, said  # which first says that there is no model


@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_journal_deletes_nothing_by_hooks(project: Path, victim: Path, name: str) -> None:
    """Whether it names a file by an absolute path, or from the working directory on."""
    database = project / ".memory" / "db"
    if name == "relative":
        said = os.path.relpath(victim, project)
        database.with_name("db-journal").write_bytes(naming_journal(database, said))
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "SessionEnd"):
        given = {"cwd": str(project), "session_id": "1", "prompt": "We decided to use tea."}
        aiaml(project, "semantic", "hook", event, given=given)
        assert victim.read_bytes() == b"precious"


@pytest.mark.slow
def test_journal_deletes_nothing_by_tools(project: Path, victim: Path) -> None:
    """Each tool says which file is in the way, also where it came while the server ran."""
    journal = project / ".memory" / "db-journal"
    planted = journal.read_bytes()
    journal.unlink()
    calls: dict[str, dict[str, object]] = {
        "search_memory": {"query": "tea"},
        "list_memories": {"filters": {"scope": "project"}},
        "store_memory": {"content": "coffee"},
        "update_memory": {"memory_id": "project:1", "used": True},
        "delete_memory": {"memory_id": "project:1"},
        "deduplicate_memories": {},
        "import_markdown_memories": {},
        "migrate_embeddings": {},
    }
    with Server(project, os.environ) as server:
        assert server.call("list_memories")["memories"]
        journal.write_bytes(planted)
        for tool, given in calls.items():
            said = json.dumps(server.call(tool, **given))
            assert victim.read_bytes() == b"precious"
            assert journal.read_bytes() == planted
            assert "db-journal is a journal that names another file" in said or (
                tool in ("import_markdown_memories", "migrate_embeddings")
            ), (tool, said)
        assert server.close() == 0


def test_journal_of_an_interrupted_transaction_is_rolled_back(project: Path) -> None:
    """Our own is none that names another file: after a crash all is as before."""
    script = (
        "import apsw, os, sys\n"
        "sql = apsw.Connection(sys.argv[1])\n"
        "sql.execute('PRAGMA cache_size = 1')\n"
        "sql.execute('BEGIN IMMEDIATE')\n"
        'sql.execute("UPDATE memories SET category = hex(randomblob(400))")\n'
        "os._exit(0)\n"
    )
    database = project / ".memory" / "db"
    subprocess.run([sys.executable, "-c", script, str(database)], check=True)
    assert database.with_name("db-journal").stat().st_size
    with closing(ask(project)) as memories:
        assert {each.category for each in memories.list().memories} == {None}


@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
@posix
def test_beside_is_a_file_of_ours(project: Path, suffix: str, kind: str) -> None:
    """A link is not followed, and nothing waits for a pipe."""
    path = project / ".memory" / f"db{suffix}"
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(project / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with closing(ask(project)) as memories, pytest.raises(failures.Damaged, match=f"db{suffix}"):
        memories.get("project:1")


@pytest.mark.parametrize("data", [b"", b"\0" * 8, SUPER[:7], SUPER[1:] + b"x", b"x" * 600])
def test_beside_takes_other_journals(tmp_path: Path, data: bytes) -> None:
    """One that ends with anything else names no file."""
    (tmp_path / "db-journal").write_bytes(data)
    check_beside(tmp_path / "db")
    (tmp_path / "db-journal").write_bytes(data + bytes(8) + SUPER)  # 16 bytes or more
    with pytest.raises(UnsafePath, match="names another file"):
        check_beside(tmp_path / "db")


# --- the schema -----------------------------------------------------------------------------------

BOMB = "length(hex(zeroblob(400000000)))"
EVIL = "UPDATE sqlite_schema SET sql = replace(sql, '{}', '{}') WHERE name = '{}'"
SCHEMAS = {
    "check": EVIL.format("category TEXT", f"category TEXT CHECK({BOMB} > 0)", "memories"),
    "generated": f"ALTER TABLE memories ADD COLUMN evil TEXT AS ({BOMB})",
    "expression": f"CREATE INDEX evil ON memories(({BOMB}))",
    "partial": f"CREATE INDEX evil ON memories(id) WHERE {BOMB} > 0",
    "default": EVIL.format("category TEXT", f"category TEXT DEFAULT ({BOMB})", "memories"),
    "trigger": f"CREATE TRIGGER evil AFTER UPDATE ON memories BEGIN SELECT {BOMB}; END",
    "view": f"CREATE VIEW evil AS SELECT {BOMB}",
    "virtual": "CREATE VIRTUAL TABLE evil USING fts5(a)",
    "words over another": EVIL.format("=''memories''", "=''about''", "words"),
    "a shadow's check": EVIL.format("block BLOB", f"block BLOB CHECK({BOMB})", "words_data"),
    "vectors": f"CREATE TABLE vec_memories_info (key text, value any CHECK({BOMB}))",
    "vectors' module": "CREATE VIRTUAL TABLE vec_memories USING fts5(a)",
}


def plant(database: Path, statement: str) -> None:
    """Change a database by one statement, also its schema, without what it says being computed."""
    had = apsw.hard_heap_limit(0)  # of this process, where the product has set one
    sql = apsw.Connection(str(database))
    sql.config(apsw.SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1)
    try:
        sql.execute("PRAGMA ignore_check_constraints = ON")
        if statement.startswith(("CREATE INDEX", "ALTER TABLE")):  # which would compute it
            small = statement.replace("400000000", "1")
            sql.execute(small)
            put = (
                "UPDATE sqlite_schema SET sql = replace(sql, 'zeroblob(1)', 'zeroblob(400000000)')"
            )
            sql.execute(put)
        else:
            sql.execute(statement)
    finally:
        sql.close()
        apsw.hard_heap_limit(had)


@pytest.mark.parametrize("statement", SCHEMAS.values(), ids=SCHEMAS)
def test_schema_of_another_is_refused(project: Path, statement: str) -> None:
    """Named, before anything in it is computed; the file is as it was."""
    database = project / ".memory" / "db"
    plant(database, statement)
    before = database.read_bytes()
    with closing(ask(project)) as memories:
        with pytest.raises(failures.Damaged, match="is not as this program makes it"):
            memories.get("project:1")
        with pytest.raises(failures.Damaged, match="is not as this program makes it"):
            memories.store("coffee")
    assert database.read_bytes() == before


# --- rows -----------------------------------------------------------------------------------------

DAMAGES = [
    "content = zeroblob(500)", "content = cast(x'c328' AS TEXT)",
    "content = cast(zeroblob(300000) AS TEXT)", "category = x'00'", "created_at = 12",
    "updated_at = 3.5",
    "created_at = 1e999", "access_count = -5",
    "tags = cast(x'c328' AS TEXT)", "access_count = 'many'", "folded = x'ff', category = x'ff'",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_row_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """By each question, in its warnings; by doctor and the log; and the others are found."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        for each in ("tea is green", "tea is black", "coffee"):
            memories.store(each, ["drink"])
        plant(tmp_path / ".memory" / "db", f"UPDATE memories SET {damage} WHERE id = 2")  # noqa: S608
        named = "without global:2: damaged; `aiaml semantic doctor` says more"
        found = memories.search("tea")
        assert "tea is green" in [each.memory.content for each in found.hits]
        assert "global:2" not in [each.memory.id for each in found.hits]
        assert named in found.warnings
        page = memories.list()
        assert [each.id for each in page.memories] == ["global:3", "global:1"]
        assert page.warnings == [named]
        first = memories.list(limit=1)
        assert first.next_cursor
        rest = memories.list(limit=1, cursor=first.next_cursor)
        assert {each.id for each in memories.session_start()} == {"global:1", "global:3"}
        assert rest.next_cursor or rest.memories
        assert memories.store("milk").created
        with pytest.raises(failures.Damaged, match="global:2"):
            memories.get("global:2")
        log = (tmp_path / ".memory" / "logs" / "semantic.log").read_text("ascii")
        assert "read global:2 Damaged" in log
        (told,) = [each for each in checks({}) if each.level == "error"]
        assert "global:2 holds a value of another kind" in told.found


BAD = """
WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 999 + {})
INSERT INTO memories (id, content, content_hash, embedding_model, priority, created_at, updated_at)
SELECT i, cast(x'ff' AS TEXT), i, '', 'CORE', '2027-01-01 00:00:00', '2027-01-01 00:00:00' FROM n
"""


def test_damaged_rows_hide_no_good_ones(project: Path) -> None:
    """However many are newer and of a higher priority: a list, a hook, an export go on."""
    plant(project / ".memory" / "db", BAD.format(2_500))
    with closing(ask(project)) as memories:
        page = memories.list(limit=15)
        assert len(page.memories) == 15
        assert page.warnings[0].startswith("without project:3499, project:3498")
        assert "and 2,495 more: damaged" in page.warnings[0]
        rest = memories.list(limit=15, cursor=page.next_cursor)
        found = {each.content for each in (*page.memories, *rest.memories)}
        assert found == set(FACTS)
        assert rest.next_cursor is None and not rest.warnings
        assert {each.content for each in memories.every()} == set(FACTS)
    begun = json.loads(aiaml(project, "semantic", "hook", "SessionStart", given={}))
    assert "about tea" in begun["hookSpecificOutput"]["additionalContext"]
    target = project / "out.jsonl"
    command = [sys.executable, "-m", "aiaml_server", "semantic", "export", str(target)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == terminal.EXIT_FAILED
    assert "and 2,495 more: damaged" in done.stderr
    assert len(target.read_text("utf-8").splitlines()) == len(FACTS)


def test_damaged_rows_alone_are_no_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that finds nothing but damage says so."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        memories.store("tea")
    plant(tmp_path / ".memory" / "db", "UPDATE memories SET content = x'ff'")
    command = [sys.executable, "-m", "aiaml_server", "semantic", "export", "out.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == terminal.EXIT_FAILED
    assert "without global:1: damaged" in done.stderr


def test_damaged_rows_without_end_are_refused(project: Path) -> None:
    """More than anybody's accident makes are the damage of the whole, which costs little."""
    plant(project / ".memory" / "db", BAD.format(100_000))
    with (
        closing(ask(project)) as memories,
        pytest.raises(failures.Damaged, match="10,000 of its memories"),
    ):
        memories.list()


def test_damaged_row_can_be_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As doctor says."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        memories.store("tea is green")
        memories.store("coffee")
        plant(tmp_path / ".memory" / "db", "UPDATE memories SET category = x'ff' WHERE id = 1")
        with pytest.raises(failures.Damaged) as refused:
            memories.delete("global:1")
        assert "`aiaml semantic forget global:1`" in refused.value.suggestion
        memories.forget("global:1")
        assert [each.content for each in memories.list().memories] == ["coffee"]
        assert memories.list().warnings == []


def test_row_with_the_highest_number_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No number comes behind it: that is no full disk, and it can be forgotten."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        memories.store("tea is green")
        last = 2**63 - 1
        plant(
            tmp_path / ".memory" / "db",
            "INSERT INTO memories (id, content, content_hash, embedding_model, folded)"
            " VALUES (9223372036854775807, 'x', 'x', '', 'x')",
        )
        with pytest.raises(failures.Damaged, match="the highest number") as refused:
            memories.store("coffee")
        assert f"`aiaml semantic forget global:{last}`" in refused.value.suggestion
        memories.forget(f"global:{last}")
        assert memories.store("coffee").memory.id == "global:2"


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("block", ["zeroblob(2000)", "x''", "x'00'"])
def test_damaged_index_of_words_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str, warm: bool
) -> None:
    """Nothing is found is no answer of an index that was emptied; what needs none still works."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        for each in ("tea is green", "tea is black", "coffee"):
            memories.store(each, ["drink"])
        if not warm:
            memories.close()
        plant(tmp_path / ".memory" / "db", f"UPDATE words_data SET block = {block} WHERE id = 10")  # noqa: S608
        with pytest.raises(failures.Damaged, match=r"\.memory/db is damaged") as told:
            memories.search("tea")
        with pytest.raises(failures.Damaged, match=r"\.memory/db is damaged"):
            memories.session_start(words="tea")
        assert len(memories.session_start()) == 3
        assert "aiaml semantic doctor" in told.value.suggestion
        with pytest.raises(failures.Damaged, match=r"\.memory/db is damaged"):
            memories.store("milk")
        with pytest.raises(failures.Damaged, match=r"\.memory/db is damaged"):
            memories.update("global:1", content="tea is blue")
        assert [each.id for each in memories.list().memories] == [
            "global:3",
            "global:2",
            "global:1",
        ]
        assert memories.get("global:1").content == "tea is green"


SHADOWS = {
    "words_config": "DELETE FROM words_config",
    "words_data": "UPDATE words_data SET block = randomblob(200)",
    "words_docsize": "DELETE FROM words_docsize",
    "vec chunks' bits": "UPDATE vec_memories_chunks SET validity = x'00'",
    "vec chunks' numbers": "UPDATE vec_memories_chunks SET rowids = zeroblob(0)",
    "vec chunks": "DELETE FROM vec_memories_chunks",
    "vec chunks' bits, more": "UPDATE vec_memories_chunks SET validity = zeroblob(10032)",
    "vec chunks' numbers, more": "UPDATE vec_memories_chunks SET rowids = zeroblob(2112)",
    "vec rows": "UPDATE vec_memories_rowids SET chunk_id = 7, chunk_offset = -1",
    "vec vectors": "UPDATE vec_memories_vector_chunks00 SET vectors = zeroblob(0)",
}


@pytest.mark.parametrize("damage", SHADOWS.values(), ids=SHADOWS)
def test_damaged_tables_of_an_index_are_named(tmp_path: Path, damage: str) -> None:
    """Each call answers, or is refused with the file and what helps; none is a mistake of ours."""

    def opened() -> Memories:
        return Memories(tmp_path / ".memory", None, Ready(Toy()), SMALL)

    with closing(opened()) as memories:
        for number in range(9):
            memories.store(f"tea {number} is green")
    plant(tmp_path / ".memory" / "db", damage)
    calls: tuple[Callable[[Memories], object], ...] = (
        lambda of: of.search("tea green"),
        lambda of: of.update("global:2", content="tea is blue"),
        lambda of: of.delete("global:5"),
        lambda of: of.forget("global:6"),
        lambda of: of.store("coffee"),
        lambda of: of.duplicates(),
    )
    told: list[failures.Damaged] = []
    for call in calls:
        with closing(opened()) as memories:
            try:
                call(memories)
            except failures.Damaged as error:
                told.append(error)
    assert told
    assert all(f"{tmp_path / '.memory' / 'db'} " in str(each) for each in told)
    assert all("aiaml semantic restore" in each.suggestion for each in told)


REFUSED = {
    "vec columns": EVIL.format("author INTEGER PARTITION KEY", "author TEXT", "vec_memories"),
    "vec numbers": EVIL.format("vector_id INTEGER", "vector_id TEXT", "vec_memories"),
    **{f"version {number}": f"PRAGMA user_version = {number}" for number in (0, 1, 2, 4, 6)},
}


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("damage", (SHADOWS | REFUSED).values(), ids=SHADOWS | REFUSED)
def test_damaged_project_takes_nothing_of_the_person(home: Path, damage: str) -> None:
    """Their own memories are found and listed; what cannot be read is named."""
    shop = home / "work" / "shop"
    (shop / ".memory").mkdir(parents=True)
    database = shop / ".memory" / "db"

    def opened() -> Memories:
        return Memories(home / ".memory", shop, Ready(Toy()), SMALL)

    with closing(opened()) as memories:
        for number in range(9):
            memories.store(f"tea {number} is green")
        memories.store("tea is mine", scope="global")
    plant(database, damage)
    with closing(opened()) as memories:
        found = memories.search("tea green")
        assert "tea is mine" in [each.memory.content for each in found.hits]
        assert "tea is mine" in [each.content for each in memories.list().memories]
        assert "tea is mine" in [each.content for each in memories.session_start(20, "tea")]
        assert memories.store("tea is yours", scope="global").created
        if damage in REFUSED.values():
            assert f"without the project memories: {database} " in found.warnings[0]
            with pytest.raises(failures.Damaged, match="version"):
                memories.store("coffee")
    if damage in REFUSED.values():
        said = aiaml(shop, "semantic", "search", "tea")
        assert "tea is mine" in said and "mistake in the program" not in said


def test_planted_sequence_is_no_full_disk(tmp_path: Path) -> None:
    """What numbers were given last is found in the tables themselves."""
    with closing(Memories(tmp_path / ".memory", None, Ready(Toy()), SMALL)) as memories:
        memories.store("tea")
        memories.update("global:1", tags=["drink"])
    plant(tmp_path / ".memory" / "db", f"UPDATE sqlite_sequence SET seq = {2**63 - 1}")  # noqa: S608
    with closing(Memories(tmp_path / ".memory", None, Ready(Toy()), SMALL)) as memories:
        assert memories.store("coffee").memory.id == "global:2"
        assert memories.update("global:1", tags=["hot"]).change == "global#2"


def test_planted_vectors_without_length_are_near_nothing() -> None:
    """Nor do they hide what is near, or warn of a division."""
    pytest.importorskip("numpy")
    planted = [(1.0, 0.0), (0.0, 0.0), (3e38, 3e38), (float("nan"), 0.0), (1.0, 0.0)]
    vectors = [struct.pack("<2f", *each) for each in planted]
    assert [(each.first, each.second) for each in near("abcde", vectors, 0.9)] == [("a", "e")]


@pytest.mark.parametrize("value", ["replace(hex(zeroblob(2500000)), '00', 'xx')", "x'ff'"])
def test_planted_project_id_is_never_written(project: Path, value: str) -> None:
    """What could be no name is damage, of which nothing is stored; the file is as it was."""
    database = project / ".memory" / "db"
    plant(database, f"UPDATE about SET value = {value} WHERE key = 'project_id'")  # noqa: S608
    before = database.read_bytes()
    with closing(ask(project)) as memories, pytest.raises(failures.Damaged, match="project_id"):
        memories.store("coffee")
    assert database.read_bytes() == before


def test_store_answers_beside_damaged_vectors(tmp_path: Path) -> None:
    """What is stored is said to be; that nothing could be compared with it is a warning."""
    with closing(Memories(tmp_path / ".memory", None, Ready(Toy()), SMALL)) as memories:
        memories.store_all([Draft(f"tea {number} is green") for number in range(256)])
        list(memories.embed())  # which fills the first chunk
        memories.store("tea is black")
        damage = "UPDATE vec_memories_chunks SET validity = zeroblob(33) WHERE chunk_id = 1"
        plant(tmp_path / ".memory" / "db", damage)
        memories.close()
        stored = memories.store("tea is stored")
        assert stored.created
        assert "without the global memories" in stored.warnings[-1]
        assert memories.list().total == 258


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": "x" * 60_000}, {"content": 5}, {"content": "a\0b"}, {"content_hash": "0"},
        {"category": "c" * 2000}, {"tags": "t" * 20_000}, {"id": 2**63 - 1}, {"id": -4},
        {"access_count": "many"}, {"created_at": ["2026"]}, {"usage_contexts": "u" * 70_000}, None,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("act", ["delete", "update", "merge", "other"])
def test_planted_change_is_never_written(
    tmp_path: Path, act: str, wrong: dict[str, Any] | None
) -> None:
    """What could be no memory is no change that can be undone, and `forget` takes it away."""
    with closing(Memories(tmp_path / ".memory", None)) as memories:
        memories.store("tea")
        memories.store("coffee")
        memories.delete("global:2")
        (noted,) = memories.history()
        fields = None if wrong is None else {**noted.removed[0], **wrong}
        held = [json.dumps(each).replace("'", "''") for each in (fields or {}, [fields])]
        at = "9999-01-01 00:00:00.000000"
        values = ", ".join(f"'{each}'" for each in (at, "{}", *held, act))
        noted_as = "INSERT INTO merges (kept, at, kept_as, was, removed, act)"
        plant(tmp_path / ".memory" / "db", f"{noted_as} VALUES (1, {values})")
    with closing(Memories(tmp_path / ".memory", None)) as memories:
        assert memories.history() == [noted]
        assert [each.content for each in memories.undo()] == ["coffee"]
        with pytest.raises(failures.NothingToUndo):
            memories.undo()
        memories.forget("global:2")
        with closing(apsw.Connection(str(tmp_path / ".memory" / "db"))) as sql:
            assert sql.execute("SELECT count(*) FROM merges").fetchall() == [(0,)]


def test_no_word_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory without any word, none at all, or one that was deleted, leaves an empty index."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        memories.store("!!!")
        memories.search("tea")
        memories.store("tea")
        memories.delete("global:1")
        assert len(memories.search("tea").hits) == 1
        memories.delete("global:2")
        memories.close()
        assert not memories.search("tea").hits


# --- memory and time ------------------------------------------------------------------------------


def healthy(_database: Path) -> None:
    """Leave it as it is."""


def large_row(database: Path) -> None:
    """Have a row of 500 MB (which git packs into half a megabyte)."""
    plant(database, "UPDATE memories SET content = zeroblob(500000000) WHERE id = 3")


def large_key(database: Path) -> None:
    """Have a key of 500 MB in an index, which SQLite reads whole to compare it."""
    plant(database, "UPDATE memories SET folded = zeroblob(500000000) WHERE id = 3")


def many_rows(database: Path) -> None:
    """Have all rows be as long as SQLite is let read."""
    plant(database, "UPDATE memories SET content = cast(zeroblob(15000000) AS TEXT)")


def endless(database: Path) -> None:
    """Have a table of 17 pages, each of which names the next one 100 times below itself."""
    sql = apsw.Connection(str(database))
    (root,) = sql.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories'").fetchall()[
        0
    ]
    sql.close()
    first = database.stat().st_size // PAGE + 1
    with database.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for below in [*range(first + 1, first + 17), root]:
            cells = [PAGE - 5 * each for each in range(1, 101)]
            head = struct.pack(">BHHHBI", 5, 0, len(cells), cells[-1], 0, below)
            page = head + b"".join(struct.pack(">H", each) for each in cells)
            file.write(page.ljust(cells[-1], b"\0") + struct.pack(">IB", below, 1) * len(cells))
        file.seek(28)  # the header's number of pages
        file.write(struct.pack(">I", first + 16))
    plant(database, f"UPDATE sqlite_schema SET rootpage = {first} WHERE rootpage = {root}")  # noqa: S608


def wide_tables(database: Path) -> None:
    """Have 2,500 tables of 1,999 columns, all of which SQLite reads at the first statement."""
    plant(database, TABLES.format("i || '(' || columns || ')'", 2_500))


def many_tables(database: Path) -> None:
    """Have 50,000 tables, whose names SQLite looks through for each."""
    plant(database, TABLES.format("i || '(a)'", 50_000))


TABLES = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1999),
wide(columns) AS (SELECT group_concat('c' || i) FROM n),
t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < {1})
INSERT INTO sqlite_schema SELECT 'table', 't' || i, 't' || i, 2, 'CREATE TABLE t' || {0}
FROM t, wide
"""
PLANTED: dict[str, Callable[[Path], None]] = {
    "healthy": healthy,
    "a row of 500 MB": large_row,
    "a key of 500 MB": large_key,
    "rows of 15 MB": many_rows,
    "pages without end": endless,
    "wide tables": wide_tables,
    "many tables": many_tables,
    **{
        name: lambda database, name=name: plant(database, SCHEMAS[name])  # type: ignore[misc]
        for name in ("check", "generated", "expression")
    },
}
MOST = 150  # MB above the server of a healthy one


@pytest.mark.slow
@linux
@pytest.mark.parametrize("planted", PLANTED)
def test_planted_database_costs_little(project: Path, planted: str) -> None:
    """A server takes at most 150 MB more than beside a healthy one."""
    PLANTED[planted](project / ".memory" / "db")
    with Server(project, os.environ) as server:
        server.call("list_memories", filters={"scope": "global"})  # all is imported then
        used = server.peak()
        for tool, given in (
            ("search_memory", {"query": "tea"}),
            ("list_memories", {"sort_by": "priority", "limit": 200}),
            ("store_memory", {"content": "coffee"}),
            ("list_memories", {}),
        ):
            server.call(tool, **given)
            assert server.peak() - used < MOST, tool
        assert server.close() == 0


SAME = """
WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO memories (id, content, content_hash, folded, embedding_model, created_at, updated_at)
SELECT i, 'tea ' || $each, i, 'tea ' || $each, '', '$at', '$at' FROM n
"""
NOTED = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $number)
INSERT INTO merges (at, kept, kept_as, was, removed)
SELECT '9999-01-01', 1, '{}', '{}', $removed FROM n
"""
LONG = """'[' || replace(hex(zeroblob(200000)), '00', '{"id":1},') || '{}]'"""


@pytest.mark.slow
@linux
@pytest.mark.parametrize("each", ["''", "i / 2"], ids=["one text", "each twice"])
def test_planted_duplicates_cost_little(project: Path, each: str) -> None:
    """However many memories are alike, what is shown of them is bounded, which is said."""
    at = "2026-01-01T00:00:00.000000Z"
    plant(project / ".memory" / "db", Template(SAME).substitute(each=each, at=at))
    with Server(project, os.environ) as server:
        server.call("list_memories")
        used = server.peak()
        answer = server.call("deduplicate_memories")
        assert server.peak() - used < MOST
        assert "more are alike" in json.dumps(answer)
        assert server.close() == 0


@pytest.mark.slow
@linux
@pytest.mark.parametrize(("number", "removed"), [(1_000_000, "'[]'"), (100, LONG)])
def test_planted_changes_cost_little(project: Path, number: int, removed: str) -> None:
    """Only the newest are looked at, and no more of them than somebody would make."""
    plant(project / ".memory" / "db", Template(NOTED).substitute(number=number, removed=removed))
    for words in (("semantic", "history"), ("semantic", "undo", "project#1"), ("semantic", "undo")):
        said = aiaml(project, *words)
        assert "mistake in the program" not in said


ROWS = """
WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
INSERT INTO memories (id, content, content_hash, folded, embedding_model, created_at, updated_at)
SELECT i, $content, i, i, '', '2026-01-01', '2026-01-01' FROM n
"""
KEY = "'api_key = \"aB3xK9mQ2pL7vR4tY8wZ' || i || '\"'"


@pytest.mark.slow
@pytest.mark.parametrize("content", ["'tea ' || i", "x'00'", KEY], ids=["text", "damaged", "key"])
def test_planted_memories_cost_doctor_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """The newest are looked at, of what is found the first are told, and that there is more."""
    with closing(opened_at_home(tmp_path, monkeypatch)) as memories:
        memories.store("tea")
    database = tmp_path / ".memory" / "db"
    plant(database, Template(ROWS).substitute(content=content))
    if content != KEY:
        plant(database, "INSERT INTO words(words) VALUES ('rebuild')")
    found: list[Any] = []
    found.extend(checks({}))
    said = "; ".join(str(each.found) for each in found)
    assert len(found) < 10
    assert {"'tea ' || i": "the newest 10,000 were", "x'00'": "and 9,995 more"}.get(
        content, "more memories seem to hold a secret"
    ) in said


# --- import ---------------------------------------------------------------------------------------


@pytest.fixture
def source(home: Path, project: Path) -> Path:
    """A database that somebody gave away, beside which nothing lies."""
    path = home / "given" / "db"
    path.parent.mkdir()
    path.write_bytes((project / ".memory" / "db").read_bytes())
    return path


def imported(source: Path) -> str:
    """Return what `aiaml import` says that it would do."""
    return aiaml(source.parent, "import", str(source), "--dry-run", "--json")


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_import_reads_none_that_is_not_written(source: Path, suffix: str) -> None:
    """What lies beside it is named, and neither rolled back nor changed."""
    beside = source.with_name(f"db{suffix}")
    beside.write_bytes(b"x" * 600)
    before = source.read_bytes()
    said = json.loads(imported(source))
    assert said["new"] == []
    assert f"db{suffix} lies beside it" in said["skipped"][0]["reason"]
    assert (source.read_bytes(), beside.read_bytes()) == (before, b"x" * 600)
    beside.write_bytes(b"")
    assert len(json.loads(imported(source))["new"]) == len(FACTS)


@pytest.mark.parametrize("name", ["generated", "view instead"])
def test_import_computes_nothing(source: Path, name: str) -> None:
    """A table that would be computed is refused."""
    if name == "generated":
        plant(source, SCHEMAS["generated"])
    else:
        plant(source, "ALTER TABLE memories RENAME TO others")
        plant(source, "CREATE VIEW memories AS SELECT * FROM others")
    (skipped,) = json.loads(imported(source))["skipped"]
    assert skipped["reason"] == "its memories are no plain table, but would be computed"


def test_import_skips_a_damaged_row(source: Path) -> None:
    """It is named; the others are taken."""
    plant(source, "UPDATE memories SET content = cast(x'c328' AS TEXT) WHERE id = 2")
    large = "UPDATE memories SET content = cast(zeroblob(2000000) AS TEXT) WHERE id = 3"
    plant(source, large)
    said = json.loads(imported(source))
    assert len(said["new"]) == len(FACTS) - 2
    why = ["it holds what is no text in UTF-8"]
    if sys.version_info >= (3, 11):
        why.append("it is larger than 1 MiB")
    assert [each["reason"] for each in said["skipped"]][: len(why)] == why


def test_import_of_pages_without_end_ends(source: Path) -> None:
    """Which says that it was broken off."""
    endless(source)
    (skipped,) = json.loads(imported(source))["skipped"]
    assert "come again" in skipped["reason"]


@linux
@pytest.mark.parametrize("planted", [wide_tables, many_tables], ids=["wide", "many"])
@pytest.mark.parametrize("name", ["db", "claude-mem.db"])
def test_import_of_many_tables_costs_little(
    source: Path, planted: Callable[[Path], None], name: str
) -> None:
    """SQLite reads them all at the first statement, and is broken off."""
    source = source.rename(source.with_name(name))
    planted(source)
    (skipped,) = json.loads(imported(source))["skipped"]
    assert "it is no database of" in skipped["reason"]


@pytest.mark.slow
@linux
def test_import_of_a_large_row_costs_little(source: Path) -> None:
    """A file beyond the limit is not even copied; one below is copied, and no value is large."""
    plant(source, "UPDATE memories SET content = cast(zeroblob(200000000) AS TEXT) WHERE id = 3")
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'aiaml_server', 'import', *sys.argv[1:]])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(source), "--dry-run", "--json"],
        cwd=source.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    if sys.version_info >= (3, 11):
        assert int(done.stderr.split()[-1]) < 200
    plant(source, "UPDATE memories SET content = zeroblob(300000000) WHERE id = 3")
    (skipped,) = json.loads(imported(source))["skipped"]
    assert skipped["reason"].startswith("it is larger than 256 MiB")
