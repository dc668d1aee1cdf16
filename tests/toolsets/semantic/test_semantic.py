"""The toolset `semantic`: what is stored, found, changed, merged and forgotten."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.semantic import failures
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.database import packed
from aiaml_server.toolsets.semantic.duplicates import after, near, page
from aiaml_server.toolsets.semantic.filters import Filters
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Draft
from semantic_model import Ready, model_folder, real
from waiting import wait_until

WIDTH = 16


class Toy:
    """A model that is quick: texts with the same words have the same vector."""

    name = "toy"
    dimension = WIDTH

    def __init__(self, version: str = "1", dimension: int = WIDTH) -> None:
        """Take what tells it from another."""
        self.version, self.dimension = version, dimension
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a bag of words, each in a few places."""
        self.texts += texts
        return [self.vector(each) for each in texts]

    def vector(self, text: str) -> list[float]:
        """Return one text's vector."""
        found = [0.01] * self.dimension
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(f"{self.version}{word}".encode()).digest()
            for place in digest[:3]:
                found[place % self.dimension] += 1.0
        norm = math.hypot(*found)
        return [each / norm for each in found]


SMALL = Config(dimension=WIDTH)


@pytest.fixture
def toy() -> Toy:
    """A quick model."""
    return Toy()


@pytest.fixture
def memories(tmp_path: Path, toy: Toy) -> Iterator[Memories]:
    """A project's memories and a person's."""
    (tmp_path / "shop").mkdir()
    opened = Memories(tmp_path / "home" / ".memory", tmp_path / "shop", Ready(toy), SMALL)
    yield opened
    opened.close()


def found(memories: Memories, query: str, **filters: object) -> list[str]:
    """Return the contents that a search gives."""
    hits = memories.search(query, filters=Filters(**filters)).hits  # type: ignore[arg-type]
    return [each.memory.content for each in hits]


# --- storing --------------------------------------------------------------------------------------


def test_a_memory_is_stored_with_all_that_was_given(memories: Memories) -> None:
    """And what was not given is as specified."""
    stored = memories.store("Prices are in cents", ["billing", "billing"], "high", "rule")
    one = stored.memory
    assert stored.created and one.id == "project:1" and one.project_id == "shop"
    assert (one.content, one.tags, one.priority, one.category, one.source) == (
        "Prices are in cents", ("billing",), "HIGH", "rule", "manual")  # fmt: skip
    assert one.content_hash == hashlib.sha256(b"Prices are in cents").hexdigest()
    assert (one.embedding_model, one.embedding_model_version) == ("toy", "1")
    assert one.embedding_dimension == WIDTH and one.access_count == 0
    plain = memories.store("Tea is green", scope="global").memory
    assert plain.id == "global:1" and plain.project_id is None and plain.priority == "NORMAL"
    assert memories.get("global:1") == plain


@pytest.mark.parametrize(
    "wrong",
    [{"content": " "}, {"content": "x" * 60_000}, {"content": "a\0b"}, {"content": "\ud800"},
     {"priority": "urgent"}, {"source": "me"}, {"scope": "team"}, {"tags": ["a\nb"]},
     {"tags": [str(each) for each in range(40)]}, {"category": ""}],
)  # fmt: skip
def test_what_cannot_be_stored_leaves_nothing(memories: Memories, wrong: dict[str, Any]) -> None:
    """Not even a file; and the sentence names the field."""
    with pytest.raises(failures.InvalidInput, match=next(iter(wrong))):
        memories.store(**{"content": "x", **wrong})
    assert not memories.databases["project"].there


def test_equal_texts_are_one_memory(memories: Memories) -> None:
    """Equal but for case and white space: tags united, the highest priority, the newer text."""
    memories.store("The flag is on", ["a"], "HIGH")
    again = memories.store(" the  FLAG is\non", ["b"], "LOW", "state")
    assert not again.created and again.memory.id == "project:1"
    assert again.memory.tags == ("a", "b") and again.memory.priority == "HIGH"
    assert again.memory.content == " the  FLAG is\non" and again.memory.category == "state"
    assert memories.list().total == 1
    back = memories.undo()
    assert [each.content for each in back] == ["The flag is on", " the  FLAG is\non"]
    assert back[0].tags == ("a",) and back[1].tags == ("b",) and back[1].priority == "LOW"
    with pytest.raises(failures.NothingToUndo):
        memories.undo()


def test_storing_the_same_again_changes_nothing(memories: Memories) -> None:
    """Nor is there anything to undo."""
    first = memories.store("Tea", ["a"]).memory
    assert memories.store("Tea").memory == first
    with pytest.raises(failures.NothingToUndo):
        memories.undo()


def test_what_resembles_is_stored_and_told(memories: Memories) -> None:
    """The flag that is off is not lost because it was on."""
    memories.store("the flag is on")
    stored = memories.store("on the flag is, is the flag")
    assert stored.created and [each.memory.id for each in stored.similar] == ["project:1"]
    assert stored.similar[0].cosine == pytest.approx(1, abs=0.1)
    assert memories.store("quite another thing").similar == []


def test_a_suggestion_is_told_and_not_applied(memories: Memories) -> None:
    """By the words of the text."""
    stored = memories.store("The architecture has three layers")
    assert stored.suggestion and stored.suggestion.priority == "HIGH"
    assert stored.memory.priority == "NORMAL"
    assert memories.store("The colour is blue").suggestion is None
    core = memories.store("Cross-cutting: all errors have a kind").suggestion
    assert core and core.priority == "CORE"
    passing = memories.store("Fixed a bug in the parser, for now", priority="HIGH").suggestion
    assert passing and passing.priority == "NORMAL"
    assert memories.store("The security of doors", priority="CORE").suggestion is None
    held = memories.store("I like tea", scope="global").suggestion
    assert held and held.priority == "CORE" and "consider CORE" in held.reason


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone cannot be changed here")
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_the_last_day_of_the_calendar_is_an_open_end(
    memories: Memories, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """As agents write it; and its first day an open beginning, in every zone."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        memories.store("tea")
        assert found(memories, "tea", since="0001-01-01", until="9999-12-31") == ["tea"]
    finally:
        monkeypatch.undo()
        time.tzset()


# --- finding --------------------------------------------------------------------------------------


def test_filters(memories: Memories) -> None:
    """By tags, priority, category, source, project, database and time; in searches and lists."""
    memories.store("tea one", ["Drink", "hot"], "HIGH", "fact", "import")
    memories.store("tea two", ["drink"], scope="global")
    assert found(memories, "tea", tags=["drink"]) == ["tea one", "tea two"]
    assert found(memories, "tea", tags=["drink", "hot"]) == ["tea one"]
    for name, value in (("priority", "high"), ("category", "fact"), ("source", "import"),
                        ("project_id", "shop"), ("scope", "project")):  # fmt: skip
        assert found(memories, "tea", **{name: value}) == ["tea one"], name
        listed = memories.list(Filters(**{name: value}))
        assert [each.content for each in listed.memories] == ["tea one"] and listed.total == 1
    assert found(memories, "tea", since="2000-01-01", until="9998-01-01") != []
    assert found(memories, "tea", until="2000-01-01") == []
    for wrong in ({"since": "yesterday"}, {"priority": "x"}, {"scope": "x"}):
        with pytest.raises(failures.InvalidInput):
            memories.search("tea", filters=Filters(**wrong))


def test_a_tag_is_known_in_any_case(memories: Memories) -> None:
    """Of any alphabet, and however an accent is written; it is kept as it was first given."""
    tags = ["\u00c4pfel", "\u00e4pfel", "A\u0308PFEL", "\u0416\u0443\u043a"]
    assert memories.store("tea", tags).memory.tags == (tags[0], tags[3])
    for each in (*tags, "\u0436\u0423\u041a", "a\u0308pfel"):
        assert found(memories, "tea", tags=[each]) == ["tea"], each
    assert memories.store("TEA", ["\u00e4PFEL"]).memory.tags == (tags[0], tags[3])


def test_a_date_alone_is_the_whole_day(memories: Memories) -> None:
    """As a beginning its first moment, as an end its last; of the local zone."""
    memories.store("tea")
    now = datetime.now().astimezone()
    today, day = now.date().isoformat(), timedelta(days=1)
    assert found(memories, "tea", since=today, until=today) == ["tea"]
    assert found(memories, "tea", until=(now - day).date().isoformat()) == []
    assert found(memories, "tea", since=(now + day).date().isoformat()) == []


def test_moments_may_be_written_as_iso_8601_has_them(memories: Memories) -> None:
    """Weeks, no hyphens, no minutes, a comma; what lies the wrong way round is said."""
    memories.store("tea")
    with memories.databases["project"].writing() as sql:
        sql.execute("UPDATE memories SET created_at = '2026-11-18 10:05:06.500000'")
    early = ("2026-W46", "2026W47", "2026-W47-2", "20261117", "2026-11-18T10Z", "20261118T1005Z",
             "2026-11-18T10:05:06,4Z", "2026-11-18 11:05:06.4+0100", "0500-01-01")  # fmt: skip
    late = ("2026-W47", "2026W47", "2026W474", "20261119", "2026-11-18T11Z", "20261118T1006Z",
            "2026-11-18T10:05:06,6Z", "2026-11-18t10:05:06.5z", "9999-12-31")  # fmt: skip
    for since, until in zip(early, late, strict=True):
        assert found(memories, "tea", since=since) == ["tea"], since
        assert found(memories, "tea", until=until) == ["tea"], until
    assert found(memories, "tea", until="2026-W46") == found(memories, "tea", since="2026-W48")
    for meant in ("2026-11", "2026", "2026-322", "2026322"):
        assert found(memories, "tea", since=meant, until=meant) == ["tea"], meant
    assert found(memories, "tea", since="2026-322T10Z", until="2026-322T11Z") == ["tea"]
    for since, until in (("2026-12", "9999"), ("0001", "2026-10"), ("2026-323", "2026-365")):
        assert found(memories, "tea", since=since, until=until) == []
    for wrong in ("2026-1122", "2026-W54", "2026-02-30", "20261118T", "2026-11-18T25", "2026-13",
                  "202611", "2026-366", "2026-000", "2026-11T10", "0000"):  # fmt: skip
        with pytest.raises(failures.InvalidInput, match="date_range: to must be a date, week"):
            memories.list(Filters(until=wrong))
    with pytest.raises(failures.InvalidInput, match="from is later than to"):
        memories.list(Filters(since="2026-11-19", until="2026-11-18"))


def test_a_character_that_was_lost_is_told(memories: Memories) -> None:
    """Half a pair arrives as U+FFFD over MCP, and is refused in a program."""
    assert "U+FFFD" in memories.store("half \ufffd").warnings[0]
    assert "U+FFFD" in memories.store("whole", tags=["x\ufffd"]).warnings[0]
    assert "U+FFFD" in memories.update("project:2", category="x\ufffd").warnings[0]
    assert memories.update("project:2", category="x").warnings == []
    for call in (
        lambda: memories.store("\ud800"),
        lambda: memories.list(Filters(category="\ud800")),
    ):
        with pytest.raises(failures.InvalidInput):
            call()


def test_nobody_waits_for_the_vectors_of_a_long_text(tmp_path: Path) -> None:
    """The answer comes before them, with what the first part resembles."""
    free = threading.Event()

    class Slow(Toy):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            if threading.current_thread() is not threading.main_thread():
                assert free.wait(60)
            else:
                assert len(texts) == 1
            return super().embed(texts)

    short, long = "tea is green", "tea is green " * 2_000
    memories = Memories(tmp_path / ".memory", None, Ready(Slow()), SMALL, background=True)
    assert memories.store(short).memory.embedding_model == "toy"
    stored = memories.store(long)
    assert stored.memory.embedding_model is None and stored.similar[0].memory.content == short
    assert memories.update("global:1", content=long + "too").memory.embedding_model is None
    assert memories.store_all([Draft("again " + long), Draft(long)]) == ["global:3"]
    assert memories.get("global:3").embedding_model is None
    free.set()
    wait_until(lambda: not memories.left())
    memories.close()


def test_pairs_are_those_of_the_definition() -> None:
    """All whose cosine is above the threshold; of a crowd so many that it is one group."""
    chance = random.Random(5)
    vectors = [[chance.gauss(0, 1) for _ in range(6)] for _ in range(600)]
    vectors += [[2 * each for each in vectors[7]]] * 60
    names = [f"global:{number}" for number in range(len(vectors))]

    def cosine(one: Sequence[float], other: Sequence[float]) -> float:
        return (
            sum(a * b for a, b in zip(one, other, strict=True))
            / math.hypot(*one)
            / math.hypot(*other)
        )

    found = near(names, [packed(each, 6) for each in vectors], 0.95)
    expected = {
        (names[a], names[b])
        for a, b in itertools.combinations(range(600), 2)
        if cosine(vectors[a], vectors[b]) >= 0.95
    }
    apart = {each for each in found if int(each.second[7:]) < 600}
    assert {(each.first, each.second) for each in apart} == expected and len(expected) > 20
    leader = {name: name for name in names[600:]}
    for each in found:
        if each.first in leader:
            assert each.cosine == 1.0
            leader[each.first] = each.second
    last = {name for name in leader if leader[name] == name}
    assert last == {names[-1]} and near([], [], 0.9) == []


def test_groups_go_in_pages(tmp_path: Path) -> None:
    """Each is given once, though one was merged meanwhile."""
    memories = Memories(tmp_path / ".memory", None, None, Config(check=False))
    for number in range(120):
        memories.store(f"Tea {number // 2}{' ' * (number % 2 + 1)}x")
    groups, _ = memories.duplicates()
    first, cursor = page(groups, None)
    assert len(groups) == 60 and len(first) == 50 and cursor
    memories.merge([each.id for each in first[0].memories])
    rest, last = page(memories.duplicates()[0], after(cursor))
    assert {each.memories for each in (*first, *rest)} == {each.memories for each in groups}
    assert len(rest) == 10 and last is None
    with pytest.raises(failures.InvalidInput, match="cursor"):
        after(cursor, 0.9)
    memories.close()


def test_a_search_counts_no_use(memories: Memories) -> None:
    """Being one of ten hits is none; an update is, and so is to say that it helped."""
    memories.store("tea is green")
    memories.search("tea")
    assert memories.get("project:1").access_count == 0
    used = memories.update("project:1", used=True, context="brewing").memory
    assert (used.access_count, used.usage_contexts) == (1, ("brewing",)) and used.last_accessed_at
    assert used.updated_at == used.created_at
    changed = memories.update("project:1", tags=["a"]).memory
    assert changed.access_count == 2 and changed.updated_at > changed.created_at


def test_the_project_s_memory_hides_the_same_global_one(memories: Memories) -> None:
    """And each of the project's has a tenth more, while a project is active."""
    memories.store("tea is green", scope="global")
    memories.store("tea is green")
    memories.store("tea is blue", scope="global")
    boosts = {each.memory.id: each.boost for each in memories.search("tea").hits}
    assert boosts == {"project:1": pytest.approx(0.03), "global:2": 0.0}
    memories.store("TEA  is Blue")
    for given in (memories.session_start(), [each.memory for each in memories.search("tea").hits]):
        assert sorted(each.id for each in given) == ["project:1", "project:2"]
    alone = Memories(memories.home, None, memories.model, SMALL)
    assert {each.boost for each in alone.search("tea").hits} == {0.0}
    alone.close()


def test_lists_go_in_pages(memories: Memories) -> None:
    """Each memory once, in order, over both databases; a cursor belongs to its order."""
    for number in range(7):
        memories.store(f"fact {number}", priority="HIGH" if number % 3 == 0 else None,
                       scope="global" if number % 2 else "project")  # fmt: skip
    for sort_by in ("created_at", "updated_at", "priority", "access_count"):
        seen: list[str] = []
        cursor = None
        while True:
            page = memories.list(sort_by=sort_by, limit=2, cursor=cursor)
            assert page.total == 7 and len(page.memories) <= 2
            seen += [each.id for each in page.memories]
            cursor = page.next_cursor
            if cursor is None:
                break
        whole = [each.id for each in memories.list(sort_by=sort_by, limit=100).memories]
        assert seen == whole and len(set(seen)) == 7
    first = memories.list(limit=2).next_cursor
    for wrong in ("", "x", "bm8", f"{first}x"):
        with pytest.raises(failures.InvalidInput, match="cursor"):
            memories.list(limit=2, cursor=wrong)
    with pytest.raises(failures.InvalidInput, match="cursor"):
        memories.list(sort_by="priority", cursor=first)
    for other in ({"scope": "project"}, {"tags": ["x"]}, {"since": "2026"}):
        with pytest.raises(failures.InvalidInput, match="with the same filters"):
            memories.list(Filters(**other), cursor=first)
    narrow = memories.list(Filters(priority="high"), limit=1).next_cursor
    assert memories.list(Filters(priority="HIGH"), limit=1, cursor=narrow).total == 3


@pytest.mark.parametrize("query", ["***", '"', "NEAR(", "a OR", "-", "the", "日本", "x" * 9000])
def test_any_text_is_a_question(memories: Memories, query: str) -> None:
    """Nothing in it is taken for the words of a query language."""
    memories.store("the tea")
    assert len(found(memories, query)) == 1


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("請求書の金額は、最後に丸める。", "金額を丸めるのはいつ"),
        ("東京都の天気は晴れ", "天気"),
        ("价格以分为单位保存", "价格是多少"),
        ("ราคาเก็บเป็นสตางค์", "สตางค์"),
        ("ລາຄາເກັບເປັນກີບ", "ກີບ"),
        ("APIの設計は三層である", "api"),
        ("서버는 서울에서 돌아간다", "서울"),
        ("ｻｰﾊﾞｰの設定", "サーバー"),
        ("猫はかわいい", "猫が好き"),
    ],
)
def test_words_are_found_in_scripts_without_blanks(
    tmp_path: Path, content: str, query: str
) -> None:
    """By what they contain; what has another text, or another tag, is not found."""
    memories = Memories(tmp_path / ".memory", None, None, Config())
    memories.store(content)
    memories.store("犬も水を飲む ดื่มน้ำ 물은 맑다")
    memories.store("tea", [content.replace(" ", "_")])
    assert {each.memory.id for each in memories.search(query).hits} == {"global:1", "global:3"}
    memories.update("global:1", "coffee")
    memories.update("global:3", tags=["drink"])
    assert memories.search(query).hits == []
    memories.close()


def test_signs_that_belong_to_a_letter_do_not_end_a_word(tmp_path: Path) -> None:
    """As in Hindi, where each vowel is one; an accent is none, however it is written."""
    memories = Memories(tmp_path / ".memory", None, None, Config())
    memories.store("कीमतें पैसे में रखी जाती हैं")
    memories.store("हम चाय पीते हैं")
    memories.store("the caf\u00e9")
    assert [each.memory.id for each in memories.search("पैसे").hits] == ["global:1"]
    for query in ("cafe", "caf\u00e9", "cafe\u0301"):
        assert [each.memory.id for each in memories.search(query).hits] == ["global:3"]
    memories.close()


# --- changing and forgetting ----------------------------------------------------------------------


def test_a_new_text_has_new_vectors(memories: Memories, toy: Toy) -> None:
    """And is found by its words, not by the old ones."""
    memories.store("tea is green")
    changed = memories.update("project:1", "coffee is black").memory
    assert toy.texts == ["tea is green", "coffee is black"] and changed.embedding_model == "toy"
    assert memories.search("coffee").hits[0].bm25 > 0 and memories.search("tea").hits[0].bm25 == 0
    memories.store("tea is green")
    with pytest.raises(failures.AlreadyThere, match="project:2"):
        memories.update("project:1", "tea is green")
    assert memories.get("project:1") == changed


def test_a_new_text_that_resembles_is_told(tmp_path: Path, memories: Memories) -> None:
    """As when it is stored; what is equal but for its case is named also without a model."""
    bare = Memories(tmp_path / "other", None, None, SMALL)
    for each in (memories, bare):
        each.store("tea is green", scope="global")
        each.store("coffee", scope="global")
        changed = each.update("global:2", "TEA is\ngreen")
        assert changed.memory.content == "TEA is\ngreen"
        assert [one.memory.id for one in changed.similar] == ["global:1"]
        assert each.update("global:2", tags=["x"]).similar == ()
        assert each.update("global:2", "quite another thing").similar == []
    assert [one.memory.id for one in memories.store("Tea is green").similar] == ["global:1"]
    off = Memories(tmp_path / "off", None, None, Config(check=False))
    off.store("tea")
    assert off.store("TEA").similar == []
    bare.close()
    off.close()


def test_a_category_can_be_taken_away(memories: Memories) -> None:
    """By an empty text; what is not given stays."""
    memories.store("tea", category="fact")
    assert memories.update("project:1", tags=["a"]).memory.category == "fact"
    assert memories.update("project:1", category=" ").memory.category is None
    assert memories.list(Filters(category="fact")).total == 0


def test_ids_and_hashes_that_are_none(memories: Memories) -> None:
    """Each with a sentence of its own."""
    memories.store("tea")
    for wrong in ("", "12", "project:", "project:x", "team:1", "project:1; drop", "project:-1"):
        with pytest.raises(failures.InvalidInput, match="memory_id"):
            memories.get(wrong)
    for call in (memories.get, memories.delete, lambda name: memories.update(name, used=True)):
        with pytest.raises(failures.NotFound, match="project:9"):
            call("project:9")
    with pytest.raises(failures.NotFound, match="hash"):
        memories.delete(content_hash="0" * 64)
    with pytest.raises(failures.InvalidInput):
        memories.delete()
    with pytest.raises(failures.InvalidInput, match="nothing is given"):
        memories.update("project:1")


def test_deleting_by_id_or_hash(memories: Memories) -> None:
    """A hash may be in both databases."""
    digest = memories.store("tea").memory.content_hash
    memories.store("tea", scope="global")
    memories.store("coffee")
    deleted = memories.delete(content_hash=digest.upper())
    assert deleted == {"project:1": "project#1", "global:1": "global#1"}
    assert list(memories.delete("project:2")) == ["project:2"]
    assert memories.list().total == 0


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
    ("The tool is written in C", "The tool is written in C#"),
    ("Version >=3.10 is needed", "Version <=3.10 is needed"),
    ("The limit is 10 MB", "The limit is 10 GB"),
    ("Retry is enabled", "Retry isn't enabled"),
    ("Use a & b", "Use a | b"),
    ("The path is /a/b", "The path is /a.b"),
    ("Die Maße sind bekannt", "Die Masse sind bekannt"),
    ("The area is x²", "The area is x2"),
]


@pytest.mark.network
@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(("one", "other"), CONTRADICTING)
def test_what_contradicts_is_never_merged_unasked(tmp_path: Path, one: str, other: str) -> None:
    """With the real model, which finds most of them all but equal."""
    settings = Config(model="sentence-transformers/all-MiniLM-L6-v2")
    model_folder()
    memories = Memories(tmp_path / ".memory", None, Ready(real()), settings)
    memories.store(one)
    assert memories.store(other).created
    for group in memories.duplicates(0.5)[0]:
        assert group.kind == "similar or contradicting"
    assert memories.list().total == 2
    memories.close()


@pytest.mark.parametrize("content", ["", " \n", "\u200b", "\u200b \u2060\u00a0\ufeff"])
def test_a_text_that_nobody_sees_is_none(memories: Memories, content: str) -> None:
    """It would be found by whatever is asked."""
    with pytest.raises(failures.InvalidInput, match="content: must not be empty"):
        memories.store(content)
    assert memories.list().total == 0


def test_merging_unites_and_can_be_undone(memories: Memories) -> None:
    """The newest stays, with the tags and uses of all and the highest priority."""
    old = memories.store("tea is green", ["a"], "CORE", "fact").memory
    memories.update(old.id, used=True, context="brewing")
    memories.store("is tea green", ["b"])
    ((group,), _) = memories.duplicates(0.9)
    assert [each.id for each in group.memories] == ["project:2", "project:1"]
    one = memories.merge([each.id for each in group.memories])
    assert (one.id, one.content, one.tags) == ("project:2", "is tea green", ("b", "a"))
    assert (one.priority, one.category, one.access_count) == ("CORE", "fact", 1)
    assert one.usage_contexts == ("brewing",)
    assert found(memories, "tea") == ["is tea green"]
    kept, again = memories.undo()
    assert (kept.tags, kept.priority) == (("b",), "NORMAL")
    assert (again.id, again.tags, again.access_count) == ("project:1", ("a",), 1)
    assert again.created_at == old.created_at
    assert sorted(found(memories, "tea")) == ["is tea green", "tea is green"]
    assert {each.embedding_model for each in memories.list().memories} == {"toy"}


def test_what_is_equal_is_merged_also_beside_what_is_not(tmp_path: Path, toy: Toy) -> None:
    """In one group with what contradicts it, which stays."""
    settings = Config(dimension=WIDTH, check=False)
    memories = Memories(tmp_path / ".memory", None, Ready(toy), settings)
    for content in ("the flag is on", "The flag  is ON", "on the flag is", "tea"):
        assert memories.store(content).created
    ((group,), _) = memories.duplicates(0.9)
    assert group.kind == "similar or contradicting" and len(group.memories) == 3
    (one,) = memories.merge_equal()
    assert one.content == "The flag  is ON"
    left = {each.content for each in memories.list().memories}
    assert left == {"The flag  is ON", "on the flag is", "tea"}
    assert memories.merge_equal() == []
    memories.close()


def test_duplicates_but_for_punctuation_need_no_model(tmp_path: Path) -> None:
    """They are shown as one group, and not merged unasked."""
    memories = Memories(tmp_path / ".memory", None, None, Config(check=False))
    for content in (
        "Prices are in cents.",
        "prices are in cents",
        "Prices, are  in cents!",
        "!",
        "1.5 < 2",
        "15 < 2",
        "15 > 2",
        "Are prices in cents?",
    ):
        memories.store(content)
    ((group,), _) = memories.duplicates()
    assert group.kind == "equal but for case, blanks and punctuation"
    assert len(group.memories) == 3 and memories.merge_equal() == []
    memories.close()


def test_undo_leaves_what_was_changed_since(memories: Memories) -> None:
    """Only what the merge took away comes back."""
    memories.store("tea is green", ["a"])
    memories.store("is tea green", ["b"])
    memories.merge(["project:1", "project:2"])
    memories.update("project:2", "coffee")
    kept, again = memories.undo("project#1")
    assert (kept.content, kept.tags, again.content) == ("coffee", ("b", "a"), "tea is green")


def test_only_memories_of_one_database_are_merged(memories: Memories) -> None:
    """A global memory is not lost because a project has it."""
    memories.store("tea")
    memories.store("tea", scope="global")
    for wrong in (["project:1", "global:1"], ["project:1"], ["project:1", "project:1"]):
        with pytest.raises(failures.InvalidInput):
            memories.merge(wrong)
    with pytest.raises(failures.NotFound):
        memories.merge(["project:1", "project:7"])
    with pytest.raises(failures.InvalidInput, match="merge: must be an id"):
        memories.merge(["project:1", "seven"])
    assert memories.list().total == 2


def test_forgetting_forgets_merges(memories: Memories) -> None:
    """What was forgotten cannot be brought back by undoing."""
    memories.store("tea is green")
    memories.store("is tea green")
    memories.merge(["project:1", "project:2"])
    memories.update("project:2", "coffee")
    memories.delete("project:2")
    memories.forget("project:2")
    assert memories.history() == []
    with pytest.raises(failures.NothingToUndo):
        memories.undo()


def test_undo_of_an_update(memories: Memories) -> None:
    """Text, tags, priority, category and source are as before; that it was used stays."""
    before = memories.store("tea is green", ["a"], "HIGH", "fact").memory
    changed = memories.update(before.id, "X", [], "LOW", "", "auto_error")
    assert changed.change == "project#1" and found(memories, "green") == ["X"]
    memories.update(before.id, used=True)
    assert memories.update(before.id, used=True).change is None
    (again,) = memories.undo(changed.change)
    names = ("content", "tags", "priority", "category", "source", "created_at", "updated_at")
    assert [getattr(again, name) for name in names] == [getattr(before, name) for name in names]
    assert again.access_count == 3 and found(memories, "green") == ["tea is green"]
    with pytest.raises(failures.NothingToUndo, match="no change project#1"):
        memories.undo("project#1")


def test_undo_of_a_deletion(memories: Memories) -> None:
    """It is there again under its id, and found; not where its text is another's by now."""
    before = memories.store("tea is green", ["a"]).memory
    deleted = memories.delete(before.id)
    assert found(memories, "green") == []
    (again,) = memories.undo(deleted[before.id])
    assert (again.id, again.content, again.tags) == (before.id, "tea is green", ("a",))
    assert found(memories, "green") == ["tea is green"]


def test_undo_of_an_undo(memories: Memories) -> None:
    """The newer text is kept for 30 days too; without its id, undoing goes further back."""
    memories.store("one")
    for content in ("two", "three"):
        memories.update("project:1", content)
    assert [memories.undo()[0].content for _ in range(2)] == ["two", "one"]
    with pytest.raises(failures.NothingToUndo):
        memories.undo()
    told = [(each.id, each.act, each.was["content"]) for each in memories.history()]
    assert told == [("project#4", "undo", "two"), ("project#3", "undo", "three")]
    with pytest.raises(failures.NothingToUndo, match="changed or deleted again"):
        memories.undo("project#3")
    assert [memories.undo(each)[0].content for each in ("project#4", "project#3")] == [
        "two",
        "three",
    ]
    assert [memories.undo()[0].content for _ in range(2)] == ["two", "one"]
    memories.forget("project:1")
    assert memories.history() == []


def test_undo_where_the_text_was_stored_anew(memories: Memories) -> None:
    """Both become one, with the tags of both; that can be undone as well."""
    memories.store("tea is green", ["a"])
    memories.delete("project:1")
    memories.store("tea is green", ["b"], "HIGH")
    (again,) = memories.undo()
    assert (again.id, again.tags, again.priority) == ("project:2", ("b", "a"), "HIGH")
    assert memories.undo()[0].tags == ("b",)
    memories.update("project:2", "coffee")
    memories.store("tea is green", ["c"])
    (again,) = memories.undo("project:2")
    assert (again.id, again.content, again.tags) == ("project:2", "tea is green", ("b", "c"))
    assert memories.list().total == 1 and found(memories, "green") == ["tea is green"]
    first, second = memories.undo()
    assert (first.content, second.content, second.tags) == ("coffee", "tea is green", ("c",))


def test_undo_of_an_earlier_change_names_the_later_one(memories: Memories) -> None:
    """Each can be undone, the last one first."""
    memories.store("one")
    for content in ("two", "three"):
        memories.update("project:1", content)
    with pytest.raises(failures.NothingToUndo, match="changed or deleted again"):
        memories.undo("project#1")
    assert [memories.undo(each)[0].content for each in (None, "project:1")] == ["two", "one"]
    with pytest.raises(failures.NothingToUndo, match="there is no change project:1"):
        memories.undo("project:1")
    for wrong in ("x", "team#1", "project#"):
        with pytest.raises(failures.InvalidInput, match="change: must be"):
            memories.undo(wrong)


def test_history_of_thirty_days(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each change was, of one memory or all; after 30 days it is gone from the file."""
    memories.store("one")
    memories.store("alone", scope="global")
    memories.update("project:1", "zq7x")
    memories.update("project:1", "three")
    memories.delete("global:1")
    told = [(each.id, each.act, each.memory_id) for each in memories.history()]
    assert told == [
        ("global#1", "delete", "global:1"),
        ("project#2", "update", "project:1"),
        ("project#1", "update", "project:1"),
    ]
    assert [each.was["content"] for each in memories.history("project:1")] == ["zq7x", "one"]
    later = now_micros() + 31 * 86_400_000_000
    monkeypatch.setattr("aiaml_server.toolsets.semantic.journal.now_micros", lambda: later)
    assert memories.history() == []
    with pytest.raises(failures.NothingToUndo):
        memories.undo()
    memories.update("project:1", "four")
    assert b"zq7x" not in memories.databases["project"].path.read_bytes()


# --- sessions -------------------------------------------------------------------------------------


def test_a_session_begins_with_what_matters(memories: Memories, toy: Toy) -> None:
    """By priority, project and words, without a model."""
    for number in range(10):
        memories.store(f"global {number}", scope="global")
    for number in range(10):
        memories.store(f"project {number}")
    memories.store("the rule", priority="CORE")
    memories.store("about invoices", priority="LOW")
    toy.texts.clear()
    first = memories.session_start()
    assert len(first) == 8 and first[0].content == "the rule"
    assert {each.scope for each in first} == {"project"}
    assert "about invoices" in [each.content for each in memories.session_start(8, "invoices")]
    assert toy.texts == []


def test_the_context_says_how_many(memories: Memories) -> None:
    """Ten, unless the settings say otherwise; eight for a session, five for a trigger."""
    for number in range(15):
        memories.store(f"tea {number}")
    for context, count in (("explicit", 10), ("session_start", 8), ("auto_trigger", 5)):
        assert len(memories.search("tea", context=context).hits) == count
    assert len(memories.search("tea", 12, context="auto_trigger").hits) == 12
    for wrong in (0, 51):
        with pytest.raises(failures.InvalidInput, match="limit"):
            memories.search("tea", wrong)
