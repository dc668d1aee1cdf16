"""`semantic`: storing, changing, merging, undoing and forgetting."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.toolsets.semantic import errors
from aiaml_server.toolsets.semantic.config import Config, Deduplication, Embedding
from aiaml_server.toolsets.semantic.dedupe import EQUAL, SIMILAR, connected, similar_pairs
from aiaml_server.toolsets.semantic.models import Filters, NewMemory
from aiaml_server.toolsets.semantic.store import MemoryStore
from semantic_model import WIDTH, Ready, Toy, model_folder, real

SMALL = Config(embedding=Embedding(dimension=WIDTH))
UNCHECKED = Config(Embedding(dimension=WIDTH), deduplication=Deduplication(auto_check=False))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """A project's memories and a person's."""
    (tmp_path / "shop").mkdir()
    opened = MemoryStore(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    yield opened
    opened.close()


def found(store: MemoryStore, query: str) -> list[str]:
    """Return the contents that a search gives."""
    return [hit.memory.content for hit in store.search(query).hits]


def contents(store: MemoryStore) -> set[str]:
    """Return all contents."""
    return {memory.content for memory in store.iterate()}


# --- storing --------------------------------------------------------------------------------------


def test_memory_is_stored_with_all_fields(store: MemoryStore) -> None:
    """What is not given has the specified default."""
    memory = store.store(
        "Prices are in cents", tags=["billing", "Billing"], priority="high", category="rule"
    ).memory
    assert memory.id == "project:1" and memory.project_id == "shop"
    assert (memory.tags, memory.priority, memory.category) == (("billing",), "HIGH", "rule")
    assert memory.content_hash == hashlib.sha256(b"Prices are in cents").hexdigest()
    made_by = (
        memory.embedding_model, memory.embedding_model_version, memory.embedding_dimension
    )  # fmt: skip
    assert made_by == ("toy", "1", WIDTH)
    assert memory.created_at == memory.updated_at and memory.access_count == 0
    plain = store.store("Tea is green", scope="global").memory
    assert plain.id == "global:1" and plain.project_id is None
    assert (plain.priority, plain.source) == ("NORMAL", "manual")
    assert store.get("global:1") == plain


@pytest.mark.parametrize(
    "wrong",
    [{"content": " \u200b"}, {"content": "x" * 60_000}, {"content": "a\0b"}, {"priority": "urgent"},
     {"source": "me"}, {"scope": "team"}, {"tags": ["a\nb"]}, {"category": ""},
     {"tags": ["x" * 101]}, {"category": "x" * 101},
     {"tags": [str(each) for each in range(40)]}],
)  # fmt: skip
def test_invalid_field_is_named_and_nothing_stored(
    store: MemoryStore, wrong: dict[str, Any]
) -> None:
    """Not even the file is created."""
    with pytest.raises(errors.InvalidInput, match=next(iter(wrong))):
        store.store(**{"content": "x", **wrong})
    assert not store.databases["project"].exists


def test_equal_texts_become_one_memory(store: MemoryStore) -> None:
    """Equal but for case and white space: tags combined, the highest priority, the newer text."""
    store.store("The flag is on", tags=["a"], priority="HIGH")
    again = store.store(" the  FLAG is\non", tags=["b"], priority="LOW", category="state")
    assert not again.created and again.memory.id == "project:1"
    assert again.memory.content == " the  FLAG is\non" and again.memory.category == "state"
    assert (again.memory.tags, again.memory.priority) == (("a", "b"), "HIGH")
    assert again.warnings == [
        "that text is already stored, as project:1; the new case and white space replaced the old"
    ]
    (back,) = store.undo(again.change)
    assert (back.content, back.tags) == ("The flag is on", ("a",))
    assert store.store("the flag is on").change is not None
    assert store.store("cafe\u0301").created and not store.store("CAF\u00c9").created
    same = store.store("the flag is on")
    assert same.change is None
    assert same.warnings == ["that text is already stored, as project:1"]


def test_similar_memories_are_reported(store: MemoryStore) -> None:
    """The new one is stored, because it may contradict the others."""
    store.store("the flag is on")
    stored = store.store("on the flag is, is the flag")
    assert stored.created and [each.memory.id for each in stored.similar] == ["project:1"]
    assert stored.similar[0].cosine == pytest.approx(1, abs=0.1)
    assert store.store("The flag is ON", scope="global").similar[0].cosine is None
    assert store.store("quite another thing").similar == []
    store.config = UNCHECKED
    assert store.store("the flag is, on").similar == ()


def test_priority_is_suggested_and_not_applied(store: MemoryStore) -> None:
    """By the words of the text, its tags, and its database."""
    for content, priority, scope, suggested in (
        ("The architecture has three layers", "NORMAL", "project", "HIGH"),
        ("Cross-cutting: all errors have a code", "NORMAL", "project", "CORE"),
        ("Fixed a bug in the parser, for now", "HIGH", "project", "NORMAL"),
        ("I like tea", "NORMAL", "global", "CORE"),
        ("The security of doors", "CORE", "project", None),
        ("The colour is blue", "NORMAL", "project", None),
    ):
        stored = store.store(content, priority=priority, scope=scope)
        assert stored.memory.priority == priority
        assert (stored.suggestion and stored.suggestion.priority) == suggested, content


def test_secret_is_stored_with_a_warning(store: MemoryStore) -> None:
    """The warning names its kind and not its value."""
    token = f"ghp_{'a1B2c3D4e5F6g7H8i9J0' * 2}"[:40]
    warnings = store.store(f"The token is {token}").warnings
    assert "this seems to hold" in warnings[0] and token not in warnings[0]
    store.check_secrets = False
    assert store.store(f"Another: {token}").warnings == []


def test_many_memories_are_stored_at_once(store: MemoryStore) -> None:
    """In one transaction for each database; equal ones are merged."""
    new = [NewMemory("tea"), NewMemory("TEA"), NewMemory("coffee", scope="global")]
    assert store.store_many(new) == ["project:1", "global:1"]
    assert {memory.embedding_model for memory in store.iterate()} == {"toy"}
    with pytest.raises(errors.InvalidInput):
        store.store_many([NewMemory("water"), NewMemory("")])
    assert contents(store) == {"TEA", "coffee"}


# --- changing -------------------------------------------------------------------------------------


def test_update_changes_what_is_given(store: MemoryStore) -> None:
    """A new text gets new words and vectors; an empty category removes it."""
    store.store("tea is green", tags=["a"], category="fact")
    store.update("project:1", tags=["b"])
    assert store.get("project:1").category == "fact"
    updated = store.update("project:1", content="coffee is black", category="")
    assert (updated.memory.tags, updated.memory.category) == (("b",), None)
    assert found(store, "coffee") == ["coffee is black"]
    assert store.search("green").hits[0].parts["bm25"] == 0
    store.store("water")
    with pytest.raises(errors.DuplicateContent, match="project:2"):
        store.update("project:1", content="water")
    with pytest.raises(errors.InvalidInput, match="nothing is given"):
        store.update("project:1")


def test_use_is_counted_with_its_context(store: MemoryStore) -> None:
    """Each reported use counts; the latest twenty contexts are kept."""
    store.store("tea")
    for number in range(25):
        used = store.update("project:1", used=True, context=f"for {number}")
    assert used.memory.access_count == 25 and used.change is None
    assert used.memory.usage_contexts == tuple(f"for {number}" for number in range(5, 25))
    assert used.memory.last_accessed_at and used.memory.updated_at == used.memory.created_at


def test_search_counts_a_use_once_a_day(store: MemoryStore) -> None:
    """Only where that is asked for, as `search_memory` does."""
    store.store("tea")
    store.search("tea")
    assert store.get("project:1").access_count == 0
    for _ in range(3):
        store.search("tea", count_use=True)
    assert store.get("project:1").access_count == 1
    database = store.databases["project"]
    with database.writing():
        database.fetch("UPDATE memories SET last_accessed_at = '2026-01-01 10:00:00'")
    store.search("tea", count_use=True)
    assert store.get("project:1").access_count == 2


def test_delete_by_id_or_hash(store: MemoryStore) -> None:
    """A hash may be in both databases."""
    digest = store.store("tea").memory.content_hash
    store.store("tea", scope="global")
    store.store("coffee")
    deleted = store.delete(content_hash=digest.upper())
    assert deleted == {"project:1": "project#1", "global:1": "global#1"}
    assert list(store.delete("project:2")) == ["project:2"]
    assert contents(store) == set()


def test_wrong_ids_are_refused(store: MemoryStore) -> None:
    """What is no id is invalid; what is not there is not found."""
    store.store("tea")
    for wrong in ("", "12", "project:", "project:x", "team:1", "project:-1", "project:1; drop"):
        with pytest.raises(errors.InvalidInput, match="memory_id"):
            store.get(wrong)
        with pytest.raises(errors.InvalidInput, match="ids"):
            store.get(wrong, "ids")
    for call in (store.get, store.delete, lambda name: store.update(name, used=True)):
        for missing in ("project:9", "global:1"):
            with pytest.raises(errors.NotFound):
                call(missing)
    with pytest.raises(errors.NotFound, match="hash"):
        store.delete(content_hash="0" * 64)
    with pytest.raises(errors.InvalidInput):
        store.delete()


# --- history --------------------------------------------------------------------------------------


def test_undo_brings_back_what_was_changed_and_deleted(store: MemoryStore) -> None:
    """By the change's id, or the last one."""
    before = store.store("tea is green", tags=["a"], priority="HIGH").memory
    changed = store.update(before.id, content="X", tags=[], priority="LOW")
    assert found(store, "green") == ["X"]
    assert store.undo(changed.change) == [before]
    store.delete(before.id)
    assert found(store, "green") == []
    assert store.undo() == [before]
    assert found(store, "green") == ["tea is green"]
    with pytest.raises(errors.NothingToUndo, match="nothing to undo"):
        store.undo()


def test_undo_refuses_what_would_lose_something(store: MemoryStore) -> None:
    """A later change comes first, and a text that was stored again stays one memory."""
    store.store("one")
    for content in ("two", "three"):
        store.update("project:1", content=content)
    with pytest.raises(errors.NothingToUndo, match="changed again since; undo project#2 first"):
        store.undo("project#1")
    assert [store.undo()[0].content for _ in range(2)] == ["two", "one"]
    store.delete("project:1")
    store.store("one")
    with pytest.raises(errors.NothingToUndo, match="stored again, as project:2"):
        store.undo()
    for wrong in ("x", "project#99"):
        with pytest.raises(errors.NothingToUndo):
            store.undo(wrong)


def test_history_lasts_thirty_days(store: MemoryStore) -> None:
    """Older changes are deleted by the next one."""
    store.store("one")
    store.update("project:1", content="zq7x")
    store.update("project:1", content="three")
    store.store("alone", scope="global")
    store.delete("global:1")
    changes = [(each.id, each.act, each.memory_id) for each in store.history()]
    assert changes == [
        ("global#1", "delete", "global:1"),
        ("project#2", "update", "project:1"),
        ("project#1", "update", "project:1"),
    ]
    assert [change.before[0]["content"] for change in store.history()[1:]] == ["zq7x", "one"]
    database = store.databases["project"]
    with database.writing():
        database.fetch("UPDATE changes SET at = '2020-01-01 00:00:00'")
    assert [change.id for change in store.history()] == ["global#1"]
    store.update("project:1", content="four")
    assert b"zq7x" not in database.path.read_bytes()


# --- duplicates -----------------------------------------------------------------------------------

CONTRADICTING = [
    ("The database is PostgreSQL 15", "The database is PostgreSQL 16"),
    ("Passwords must be logged", "Passwords must never be logged"),
    ("The flag is on", "The flag is off"),
    ("We prefer tabs over spaces", "We prefer spaces over tabs"),
    ("Move from v1 to v2", "Move from v2 to v1"),
    ("The tool is written in C", "The tool is written in C++"),
    ("The factor is 1.5", "The factor is 15"),
    ("The default is -1", "The default is 1"),
    ("Version >=3.10 is needed", "Version <=3.10 is needed"),
    ("The limit is 10 MB", "The limit is 10 GB"),
    ("Retry is enabled", "Retry isn't enabled"),
    ("Use a & b", "Use a | b"),
    ("The path is /a/b", "The path is /a.b"),
    ("Die Maße sind bekannt", "Die Masse sind bekannt"),
    ("The area is x²", "The area is x2"),
]


@pytest.mark.network
def test_contradictions_are_never_merged_unasked(tmp_path: Path) -> None:
    """With the real model, which finds most of them nearly equal."""
    model_folder()
    config = Config(Embedding(model="sentence-transformers/all-MiniLM-L6-v2"))
    store = MemoryStore(tmp_path / ".memory", None, Ready(real()), config)
    for one, other in CONTRADICTING:
        store.store(one)
        assert store.store(other).created, other
    stored = contents(store)
    assert {group.kind for group in store.duplicates(0.9)[0]} == {SIMILAR}
    assert store.merge_equal() == [] and contents(store) == stored
    store.close()


def test_merge_combines_and_can_be_undone(store: MemoryStore) -> None:
    """The newest keeps its text, with the tags and uses of all and the highest priority."""
    old = store.store("tea is green", tags=["a"], priority="CORE", category="fact").memory
    old = store.update(old.id, used=True, context="brewing").memory
    new = store.store("is tea green", tags=["b"]).memory
    ((group,), _) = store.duplicates(0.9)
    assert group.kind == SIMILAR and list(group.memories) == [new, old]
    merged = store.merge([memory.id for memory in group.memories])
    assert (merged.id, merged.content, merged.tags) == ("project:2", "is tea green", ("b", "a"))
    assert (merged.priority, merged.category, merged.access_count) == ("CORE", "fact", 1)
    assert merged.usage_contexts == ("brewing",)
    assert found(store, "tea") == ["is tea green"]
    assert store.undo() == [new, old]
    assert sorted(found(store, "tea")) == ["is tea green", "tea is green"]


def test_equal_memories_are_merged_and_similar_ones_stay(tmp_path: Path) -> None:
    """In the same group."""
    store = MemoryStore(tmp_path / ".memory", None, Ready(Toy()), UNCHECKED)
    for content in ("the flag is on", "The flag  is ON", "on the flag is", "tea"):
        assert store.store(content).created
    ((group,), _) = store.duplicates(0.9)
    assert group.kind == SIMILAR and len(group.memories) == 3
    (merged,) = store.merge_equal()
    assert merged.content == "The flag  is ON"
    assert contents(store) == {"The flag  is ON", "on the flag is", "tea"}
    store.store("TEA")
    store.worker.model = None
    ((group,), _) = store.duplicates()
    assert group.kind == EQUAL
    store.close()


def test_only_memories_of_one_database_are_merged(store: MemoryStore) -> None:
    """Nothing is lost by a merge that is refused."""
    store.store("tea")
    store.store("tea", scope="global")
    for wrong in (["project:1", "global:1"], ["project:1"], ["project:1", "project:1"]):
        with pytest.raises(errors.InvalidInput, match="same database"):
            store.merge(wrong)
    with pytest.raises(errors.NotFound):
        store.merge(["project:1", "project:7"])
    assert len(contents(store)) == 1 and store.list_memories().total == 2


def test_pairs_and_groups() -> None:
    """All pairs above the threshold; what they connect is one group."""
    vectors = [(number, struct.pack("<3f", 1, number / 100, 0)) for number in range(300)]
    vectors += [(1000, struct.pack("<3f", 0, 0, 5)), (1001, struct.pack("<3f", 0, 0, 1))]
    pairs = similar_pairs(vectors, 0.9999)
    assert (0, 1) in pairs and (0, 2) not in pairs and (1000, 1001) in pairs
    assert all(first < second for first, second in pairs)
    groups = connected(pairs)
    assert sorted(map(sorted, groups)) == [list(range(300)), [1000, 1001]]
    assert similar_pairs([], 0.9) == [] and connected([]) == []


# --- sessions, lists ------------------------------------------------------------------------------


def test_session_starts_with_what_matters(store: MemoryStore) -> None:
    """By priority, project and age, without a model; what a hook stored comes last."""
    for number in range(10):
        store.store(f"global {number}", scope="global")
        store.store(f"project {number}")
    store.store("the rule", priority="CORE")
    store.store("automatic", tags=["unreviewed"])
    first = store.session_start()
    assert len(first) == 8
    assert [memory.content for memory in first[:3]] == ["the rule", "project 9", "project 8"]
    assert "automatic" not in [memory.content for memory in first]


def test_lists_go_in_pages(store: MemoryStore) -> None:
    """Every memory of both databases is listed once, in the order that was asked for."""
    for number in range(12):
        scope = "global" if number % 3 else "project"
        store.store(f"tea {number}", scope=scope, priority="HIGH" if number % 4 == 0 else "LOW")
    for sort_by in ("created_at", "updated_at", "priority", "access_count"):
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = store.list_memories(sort_by=sort_by, limit=5, cursor=cursor)
            seen += [memory.content for memory in page.memories]
            assert page.total == 12
            cursor = page.next_cursor
            if cursor is None:
                break
        assert sorted(seen) == sorted(f"tea {number}" for number in range(12)), sort_by
        if sort_by == "priority":
            assert seen[:3] == ["tea 8", "tea 4", "tea 0"]
        if sort_by == "created_at":
            assert seen[0] == "tea 11"
    for wrong in ({"sort_by": "size"}, {"limit": 0}, {"limit": 201}, {"cursor": "x"}):
        with pytest.raises(errors.InvalidInput, match=next(iter(wrong))):
            store.list_memories(**wrong)


def test_project_memory_hides_the_same_global_one(store: MemoryStore) -> None:
    """In searches and at the start of a session."""
    store.store("Tea is green", scope="global")
    store.store("tea is GREEN")
    assert found(store, "tea") == ["tea is GREEN"]
    assert [memory.id for memory in store.session_start()] == ["project:1"]
    assert store.list_memories(Filters(scope="global")).total == 1


def test_vectors_of_a_long_text_are_made_in_the_background(tmp_path: Path) -> None:
    """Storing does not wait for them."""
    toy = Toy()
    store = MemoryStore(tmp_path / ".memory", None, Ready(toy), SMALL, background=True)
    stored = store.store("tea is green " * 500)
    assert stored.memory.embedding_model is None
    store.worker.wait()
    assert store.get("global:1").embedding_model == "toy" and len(toy.texts) > 5
    assert store.store("short").memory.embedding_model == "toy"
    store.close()


def test_model_that_fails_loses_nothing(tmp_path: Path) -> None:
    """The memory is stored without a vector, found by words, and embedded later."""

    class Broken(Toy):
        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
            raise RuntimeError(len(texts))

    class Zero(Toy):
        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
            return [[0.0] * WIDTH for _ in texts]

    class Endless(Toy):
        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
            return [[math.inf, *[1.0] * (WIDTH - 1)] for _ in texts]

    class Short(Toy):
        def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[list[float]]:  # noqa: ARG002
            return [[1.0] * (WIDTH - 1) for _ in texts]

    store = MemoryStore(tmp_path / ".memory", None, Ready(Broken()), SMALL)
    for broken in (Broken(), Zero(), Endless(), Short()):
        store.worker.model = Ready(broken)
        stored = store.store(f"tea {type(broken).__name__}")
        assert stored.memory.embedding_model is None and "words only" in stored.warnings[0]
    assert len(found(store, "tea")) == 4 and len(store.outdated()) == 4
    store.worker.model = Ready(Toy())
    assert store.migrate_embeddings(3) == (3, 1)
    assert store.migrate_embeddings(10) == (1, 0)
    store.close()


def test_found_memories_get_vectors_of_the_current_model(tmp_path: Path) -> None:
    """Another version, and another dimension; `migrate_embeddings` does the rest."""
    store = MemoryStore(tmp_path / ".memory", None, Ready(Toy()), SMALL)
    for content in ("tea", "coffee"):
        store.store(content)
    for newer in (Toy("2"), Toy("3", 24)):
        store.worker.model = Ready(newer)
        store.search("tea", 1)
        versions = {each.content: each.embedding_model_version for each in store.iterate()}
        assert versions["tea"] == newer.version
        assert store.migrate_embeddings(100)[1] == 0
        assert {each.embedding_model_version for each in store.iterate()} == {newer.version}
        assert store.search("tea").by_meaning
    store.close()
