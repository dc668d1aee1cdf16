"""`semantic`: the databases, their safety, and what is said where something is wrong."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from aiaml_server.toolsets.semantic import backup, doctor, errors, paths
from aiaml_server.toolsets.semantic.config import Config, Embedding
from aiaml_server.toolsets.semantic.models import Filters, NewMemory
from aiaml_server.toolsets.semantic.store import MemoryStore
from loop_disk import memory_disk
from semantic_model import WIDTH, Ready, Toy

SMALL = Config(embedding=Embedding(dimension=WIDTH))
SPECIFIED = """
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL,
    content_hash TEXT UNIQUE NOT NULL, priority TEXT DEFAULT 'NORMAL', category TEXT, tags TEXT,
    project_id TEXT, source TEXT, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, embedding_model TEXT NOT NULL,
    embedding_model_version TEXT, embedding_dimension INTEGER, access_count INTEGER DEFAULT 0,
    last_accessed_at TIMESTAMP, usage_contexts TEXT
);
CREATE INDEX idx_priority ON memories(priority);
CREATE INDEX idx_project_id ON memories(project_id);
CREATE INDEX idx_created_at ON memories(created_at);
CREATE INDEX idx_content_hash ON memories(content_hash);
"""


def project_store(place: Path, home: str = "home") -> MemoryStore:
    """Open the memories of somebody who works on a project in a directory."""
    (place / "shop").mkdir(exist_ok=True)
    return MemoryStore(place / home / ".memory", place / "shop", Ready(Toy()), SMALL)


# --- the schema -----------------------------------------------------------------------------------


def test_schema_is_that_of_the_specification(tmp_path: Path) -> None:
    """Every column in its order, every index, and a table of vectors of the model's dimension."""
    store = project_store(tmp_path)
    store.store("tea")
    store.close()
    with closing(sqlite3.connect(":memory:")) as wanted:
        wanted.executescript(SPECIFIED)
        columns = wanted.execute("PRAGMA table_info(memories)").fetchall()
    with closing(sqlite3.connect(tmp_path / "shop" / ".memory" / "db")) as sql:
        own = sql.execute("PRAGMA table_info(memories)").fetchall()
        assert own[: len(columns)] == columns
        names = {name for (name,) in sql.execute("SELECT name FROM sqlite_master")}
        assert {"idx_priority", "idx_project_id", "idx_created_at", "idx_content_hash"} <= names
        (made,) = sql.execute("SELECT sql FROM sqlite_master WHERE name = 'vec_memories'")
        assert "vec0" in made[0] and f"FLOAT[{WIDTH}]" in made[0]


def test_database_of_the_specification_is_taken_over(tmp_path: Path) -> None:
    """With its memories, which get words and vectors."""
    home = tmp_path / ".memory"
    home.mkdir()
    with closing(sqlite3.connect(home / "db")) as sql:
        sql.executescript(SPECIFIED)
        for number in range(3):
            created = "2023-05-08 12:00:00"
            values = (f"tea {number}", str(number), '["drink"]', created, "other")
            sql.execute(
                "INSERT INTO memories (content, content_hash, tags, created_at, embedding_model)"
                " VALUES (?, ?, ?, ?, ?)",
                values,
            )
        sql.commit()
    store = MemoryStore(home, None, Ready(Toy()), SMALL)
    assert store.search("tea", filters=Filters(tags=["drink"])).hits[0].memory.tags == ("drink",)
    assert len(store.search("tea").hits) == len(store.search("May 2023").hits) == 3
    assert store.migrate_embeddings(10)[1] == 0
    assert not store.store("TEA 1").created
    store.close()


def test_newer_database_is_left_as_it_is(tmp_path: Path) -> None:
    """The person is asked to update the program."""
    store = project_store(tmp_path)
    store.store("tea")
    with store.databases["project"].writing():
        store.databases["project"].fetch("PRAGMA user_version = 99")
    store.close()
    before = (tmp_path / "shop" / ".memory" / "db").read_bytes()
    with pytest.raises(errors.CorruptDatabase, match="schema version 99"):
        store.get("project:1")
    assert (tmp_path / "shop" / ".memory" / "db").read_bytes() == before


def test_files_are_private_and_ignored_by_git(tmp_path: Path) -> None:
    """The home directory is never a project, whatever lies in it."""
    store = project_store(tmp_path)
    store.store("tea")
    store.store("coffee", scope="global")
    directory = tmp_path / "shop" / ".memory"
    assert (directory / ".gitignore").read_text() == "*\n"
    if os.name == "posix":
        for path in (directory, tmp_path / "home" / ".memory"):
            assert path.stat().st_mode & 0o777 == 0o700
            assert (path / "db").stat().st_mode & 0o777 == 0o600
    store.close()


def test_thousand_memories_take_less_than_ten_megabytes(tmp_path: Path) -> None:
    """With vectors of 384 numbers."""
    config = Config(embedding=Embedding(dimension=384))
    store = MemoryStore(tmp_path, None, Ready(Toy(dimension=384)), config)
    text = "a memory of some twenty words that says what was decided and why, as agents write it"
    store.store_many([NewMemory(f"{number} {text}") for number in range(1000)])
    assert (tmp_path / "db").stat().st_size < 10_000_000
    assert store.outdated() == []
    store.close()


# --- several processes, kills, locks --------------------------------------------------------------

STORING = """
import sys
from pathlib import Path
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.store import MemoryStore
store = MemoryStore(Path(sys.argv[1]), None, None, Config())
for number in range(int(sys.argv[3])):
    print(store.store(f"memory {number} of {sys.argv[2]}").memory.id, flush=True)
"""


def storing(place: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    """Start a process that stores memories."""
    command = [sys.executable, "-c", STORING, str(place), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_processes_store_at_once(tmp_path: Path) -> None:
    """Nothing is lost, and no id is used twice."""
    processes = [storing(tmp_path, str(number), 8) for number in range(4)]
    ids = [line for each in processes for line in each.communicate(timeout=300)[0].split()]
    assert [each.returncode for each in processes] == [0] * 4
    store = MemoryStore(tmp_path, None, None, SMALL)
    assert len(set(ids)) == 32 == store.list_memories().total
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="kills by a signal")
def test_acknowledged_memories_survive_a_kill(tmp_path: Path) -> None:
    """Whatever was being written."""
    acknowledged: list[str] = []
    for round_ in range(3):
        process = storing(tmp_path, str(round_), 1000)
        assert process.stdout is not None
        acknowledged += [process.stdout.readline().decode().strip() for _ in range(4 + round_)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    store = MemoryStore(tmp_path, None, None, SMALL)
    stored = {memory.id for memory in store.iterate()}
    assert set(acknowledged) <= stored
    assert store.databases["global"].fetch("PRAGMA integrity_check") == [("ok",)]
    store.close()


def test_locked_database_is_tried_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is said, and reading still works."""
    monkeypatch.setattr("aiaml_server.toolsets.semantic.db.BUSY_SECONDS", 0.01)
    pauses: list[float] = []
    monkeypatch.setattr("aiaml_server.toolsets.semantic.db.time.sleep", pauses.append)
    store = MemoryStore(tmp_path, None, None, SMALL)
    store.store("tea")
    with closing(apsw.Connection(str(tmp_path / "db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(errors.DatabaseLocked):
            store.store("coffee")
        assert len(pauses) == 2 and pauses[0] < pauses[1]
        assert len(store.search("tea", count_use=True).hits) == 1
    store.store("coffee")
    store.close()


def test_read_only_databases_are_read(tmp_path: Path) -> None:
    """Writing is an error that says so, and works as soon as it is possible."""
    with memory_disk(tmp_path / "disk", "size=4m") as place:
        store = project_store(place)
        store.store("tea")
        for number in range(2):
            store.close()
            subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
            result = store.search("tea", count_use=True)
            assert result.by_meaning and len(result.hits) == number + 1 and not result.warnings
            assert store.list_memories().total == number + 1 and not store.duplicates()[1]
            with pytest.raises(errors.DiskError, match="Read-only file system"):
                store.store("coffee")
            assert store.get("project:1").content == "tea"
            subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
            store.store(f"tea {number}")
        store.close()


def test_deleted_database_is_created_again(tmp_path: Path) -> None:
    """While a server has it open."""
    store = MemoryStore(tmp_path, None, None, SMALL)
    store.store("tea")
    (tmp_path / "db").unlink()
    assert store.store("coffee").memory.id == "global:1"
    store.close()


# --- forgetting, backups --------------------------------------------------------------------------


def test_forgotten_text_is_in_no_byte(tmp_path: Path) -> None:
    """Neither in the database nor in changes, nor in a backup."""
    store = project_store(tmp_path)
    kept = [store.store(f"tea number {number}").memory.id for number in range(20)]
    for number in range(3):
        store.store(f"qzxjv secret {number} " * 30, tags=[f"wqkzt{number}"])
    store.update("project:21", content="qzxjv again")
    store.delete("project:22")
    database = store.databases["project"]
    with database.writing():
        database.fetch("UPDATE changes SET at = '2020-01-01 00:00:00' WHERE act = 'update'")
    backup.make_backup(database)
    backup.restore(database)
    (database.path.parent / paths.BACKUPS / "db-unfinished").write_bytes(
        b"qzxjv, as a kill left it"
    )
    for number in (21, 22, 23):
        store.forget(f"project:{number}")
    for path in (tmp_path / "shop" / ".memory").rglob("*"):
        if path.is_file():
            assert not re.search(rb"qzxjv|wqkzt", path.read_bytes()), path
    assert {memory.id for memory in store.iterate()} == set(kept) and store.history() == []
    with pytest.raises(errors.NotFound):
        store.forget("project:23")
    for path in backup.list_backups(database):
        path.unlink()
    store.store("qzxjv, and no backup")
    for place in (database.path.parent, database.path.parent / paths.BACKUPS):
        (place / "db-unfinished").write_bytes(b"qzxjv, as a kill left it")
    store.forget("project:24")
    for path in (tmp_path / "shop" / ".memory").rglob("*"):
        assert not path.is_file() or b"qzxjv" not in path.read_bytes(), path
    store.close()


def test_text_and_vectors_are_written_together(tmp_path: Path) -> None:
    """What cannot have its vectors is not stored, changed or merged either."""
    store = project_store(tmp_path)
    store.store("tea")
    store.close()
    with closing(sqlite3.connect(store.databases["project"].path)) as sql:
        sql.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON vectors BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    with pytest.raises(errors.SemanticError):
        store.store("coffee")
    with pytest.raises(errors.SemanticError):
        store.update("project:1", content="milk")
    assert [memory.content for memory in store.iterate()] == ["tea"]
    assert store.search("tea").hits[0].parts["cosine"] and store.history() == []
    store.close()


def test_a_database_is_opened_with_care(tmp_path: Path) -> None:
    """What it holds runs nothing, and no temporary file gets a text."""
    store = project_store(tmp_path)
    store.store("tea")
    database = store.databases["project"]
    assert database.fetch("PRAGMA temp_store") == [(2,)]  # memory
    assert database.fetch("PRAGMA trusted_schema") == [(0,)]
    database.fetch("PRAGMA writable_schema = ON")
    with pytest.raises(errors.SemanticError, match="may not be modified"):
        database.fetch("DELETE FROM sqlite_schema")
    with closing(sqlite3.connect(database.path)) as sql:
        sql.execute("DROP TRIGGER memory_changed")
        sql.execute("UPDATE memories SET content = hex(zeroblob(9000000))")
        sql.commit()
    with pytest.raises(errors.CorruptDatabase):  # a value that is larger than any memory
        store.get("project:1")
    store.close()


def test_backups_are_made_daily_and_restored(tmp_path: Path) -> None:
    """Three are kept; what was there stays beside the restored database."""
    store = project_store(tmp_path)
    database = store.databases["project"]
    with pytest.raises(errors.NotFound):
        backup.restore(database)
    store.store("tea")
    backup.make_backup(database)
    backup.make_backup(database)
    (today,) = backup.list_backups(database)
    for day in ("2020-01-01", "2020-01-02", "2020-01-03"):
        older = today.with_name(f"db-{day}")
        older.write_bytes(today.read_bytes())
        os.utime(older, (0, 0))
    today.unlink()
    backup.make_backup(database)
    assert [path.name for path in backup.list_backups(database)][1:] == [
        "db-2020-01-03", "db-2020-01-02"
    ]  # fmt: skip
    store.store("coffee")
    assert backup.restore(database)[0].name == today.name
    assert [memory.content for memory in store.iterate()] == ["tea"]
    assert store.search("tea").by_meaning
    store.store("cocoa")
    backup.make_backup(database, again=True)
    backup.restore(database)
    assert {memory.content for memory in store.iterate()} == {"tea", "cocoa"}
    backup.list_backups(database)[0].write_bytes(b"damaged" * 1000)
    with pytest.raises(errors.CorruptDatabase):
        backup.restore(database)
    assert store.store("still here").created
    store.close()


def test_each_restore_keeps_what_it_replaces(tmp_path: Path) -> None:
    """With the journal of a write that was interrupted; without a database nothing is kept."""
    store = MemoryStore(tmp_path, None, None, SMALL)
    database = store.databases["global"]
    store.store("tea")
    backup.make_backup(database)
    kept = []
    for number in range(2):
        store.store(f"coffee {number}")
        store.close()
        (tmp_path / "db-journal").write_bytes(b"journal %d" % number)
        kept.append((backup.restore(database)[1], (tmp_path / "db-journal").exists()))
        assert [memory.content for memory in store.iterate()] == ["tea"]
    store.close()
    for number, (path, has_journal) in enumerate(kept):
        assert not has_journal
        journal = path.with_name(f"{path.name}-journal")
        assert journal.read_bytes() == b"journal %d" % number
        journal.unlink()
        with closing(sqlite3.connect(path)) as sql:
            found = {content for (content,) in sql.execute("SELECT content FROM memories")}
        assert found == {"tea", f"coffee {number}"}
    database.path.unlink()
    assert not backup.restore(database)[1].exists()


def test_restore_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as on a full disk: the database is touched only when the copy is complete."""
    store = project_store(tmp_path)
    store.store("tea")
    database = store.databases["project"]
    backup.make_backup(database)
    store.store("coffee")

    def refuse(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(backup, "open_own", refuse)
    with pytest.raises(errors.DiskError):
        backup.restore(database)
    assert {memory.content for memory in store.iterate()} == {"tea", "coffee"}
    store.close()


def test_damaged_vectors_are_made_again(tmp_path: Path) -> None:
    """They follow from the texts: memories are stored, changed and forgotten all the same."""
    for change in ("store", "update", "forget"):
        store = project_store(tmp_path)
        store.forget(store.store("tea").memory.id)
        kept = store.store("green tea").memory.id
        other = store.store("coffee").memory.id
        store.close()
        with closing(sqlite3.connect(store.databases["project"].path)) as sql:
            sql.execute("UPDATE vec_memories_vector_chunks00 SET vectors = x'00'")
            sql.commit()
        if change == "store":
            store.store("cocoa")
        elif change == "update":
            store.update(other, content="black coffee")
        else:
            store.forget(other)
        store.migrate_embeddings(100)
        assert store.search("green tea").hits[0].memory.id == kept
        assert store.search("green tea").by_meaning and store.outdated() == []
        store.close()


def test_damaged_vectors_are_noticed(home: Path) -> None:
    """By the doctor, and by a search that meets them; `model reembed` makes them again."""
    store = MemoryStore(home / ".memory", None, Ready(Toy()), SMALL)
    store.store("tea")
    store.store("coffee")
    store.close()
    path = home / ".memory" / "db"
    whole = path.read_bytes()
    for damage in (
        "UPDATE vec_memories_vector_chunks00 SET vectors = zeroblob(length(vectors))",
        "DELETE FROM vec_memories_vector_chunks00",
        "DELETE FROM vec_memories_chunks",
        "UPDATE vec_memories_chunks SET partition00 = 'other'",
        "DELETE FROM vectors WHERE memory_id = 1",
    ):
        for is_searched in (True, False):
            damage_database(path, whole, damage)
            (finding,) = doctor.checks({})
            assert finding.level == "warning" and "the vectors of" in finding.found, damage
            if is_searched:
                assert "vectors of some memories are damaged" in store.search("tea").warnings[0]
            assert store.migrate_embeddings(10)[1] == 0
            (finding,) = doctor.checks({})
            assert finding.level == "ok", damage
            assert {hit.parts["cosine"] is None for hit in store.search("tea").hits} == {False}
            store.close()
    damage_database(path, whole, "DROP TABLE vec_memories_rowids")  # sqlite-vec would crash
    (finding,) = doctor.checks({})
    assert finding.level == "error" and "a table of its vectors is missing" in finding.found
    with pytest.raises(errors.CorruptDatabase):
        store.store("cocoa")


def damage_database(path: Path, whole: bytes, statement: str) -> None:
    """Put a database in its place and run a statement without any protection."""
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as sql:
        sql.execute(statement)
        sql.commit()


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"no database at all" * 500, b"SQLite format 3\0" * 600])
def test_damaged_database_is_named_and_the_other_answers(tmp_path: Path, damage: bytes) -> None:
    """With a warning; alone, it is an error that says what to do."""
    store = project_store(tmp_path)
    store.store("tea for the project")
    store.store("tea for all", scope="global")
    store.close()
    path = tmp_path / "shop" / ".memory" / "db"
    path.write_bytes(damage)
    result = store.search("tea")
    assert [hit.memory.content for hit in result.hits] == ["tea for all"]
    assert "without the project memories" in result.warnings[0]
    with pytest.raises(errors.CorruptDatabase, match="damaged"):
        store.search("tea", filters=Filters(scope="project"))
    with pytest.raises(errors.CorruptDatabase):
        store.store("more")
    assert path.read_bytes() == damage
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("name", [".memory", ".memory/db"])
def test_links_are_not_followed(tmp_path: Path, name: str) -> None:
    """A project that somebody made cannot lead to files elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"")
    shop = tmp_path / "shop"
    shop.mkdir()
    if name == ".memory":
        (shop / name).symlink_to(elsewhere)
    else:
        (shop / ".memory").mkdir(mode=0o700)
        (shop / name).symlink_to(elsewhere / "file")
    store = MemoryStore(tmp_path / "home", shop, None, SMALL, trusted=True)
    with pytest.raises(errors.SemanticError):
        store.store("tea", scope="project")
    assert (elsewhere / "file").read_bytes() == b"" and len(list(elsewhere.iterdir())) == 1
    store.close()


def test_without_sqlite_vec_words_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are vectors, it must be installed: nothing is left behind in them."""
    problem = "sqlite-vec is not installed"
    with monkeypatch.context() as patch:
        patch.setattr(
            "aiaml_server.toolsets.semantic.db._load_vector_extension", lambda _sql: problem
        )
        store = MemoryStore(tmp_path, None, Ready(Toy()), SMALL)
        assert f"words only: {problem}" in store.store("tea").warnings
        assert len(store.search("tea").hits) == 1
        store.update("global:1", content="green tea")
        store.close()
    store.search("tea")
    assert store.get("global:1").embedding_model == "toy"
    store.close()
    with monkeypatch.context() as patch:
        patch.setattr(
            "aiaml_server.toolsets.semantic.db._load_vector_extension", lambda _sql: problem
        )
        with pytest.raises(errors.Unavailable, match="holds vectors"):
            store.get("global:1")


# --- places ---------------------------------------------------------------------------------------


def test_project_is_found_by_its_directory(home: Path) -> None:
    """Upwards from the working directory, not by git; the home directory is never one."""
    inside = home / "shop" / "src" / "deep"
    inside.mkdir(parents=True)
    (home / "shop" / ".git").mkdir()
    (home / ".memory").mkdir()
    assert paths.find_project(inside) is None
    (home / "shop" / ".memory").mkdir()
    assert paths.find_project(inside) == home / "shop"
    assert paths.find_project(inside, str(inside)) == inside
    assert paths.find_project(home / "shop", "~/shop/src") == home / "shop" / "src"
    for wrong in ("shop", str(home), "/", str(home / "missing")):
        with pytest.raises(errors.InvalidProject, match="SETTING is"):
            paths.find_project(home, wrong, "SETTING")
    store = MemoryStore.at(inside)
    assert store.store("tea").memory.id == "project:1"
    assert store.store("tea", scope="global").memory.id == "global:1"
    store.close()
    assert (home / ".memory" / "db").exists()
