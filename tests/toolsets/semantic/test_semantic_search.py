"""`semantic`: what a search finds, in which order, and what filters leave out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from aiaml_server.timestamps import now_micros
from aiaml_server.toolsets.semantic import errors, ranking, text
from aiaml_server.toolsets.semantic.config import Config, Embedding
from aiaml_server.toolsets.semantic.models import Filters, NewMemory, iso_to_sql
from aiaml_server.toolsets.semantic.store import MemoryStore
from semantic_model import NAME, WIDTH, Ready, Toy, model_folder, real

SMALL = Config(embedding=Embedding(dimension=WIDTH))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """A project's memories and a person's, found by words."""
    (tmp_path / "shop").mkdir()
    opened = MemoryStore(tmp_path / ".memory", tmp_path / "shop", None, SMALL)
    yield opened
    opened.close()


def found(store: MemoryStore, query: str, **filters: object) -> list[str]:
    """Return the contents that a search gives."""
    hits = store.search(query, filters=Filters(**filters)).hits  # type: ignore[arg-type]
    return [hit.memory.content for hit in hits]


# --- words ----------------------------------------------------------------------------------------

TEXTS = {
    "identifier": "loadOrderById throws MissingRowError, see HTTPClient2 and cart_total.",
    "emoji": "A red build is marked \U0001f6d1, a green one \u2705",
    "accents": "Zoe\u0308 drinks cr\u00e8me with Nguy\u1ec5n",
    "vowels": "\u0627\u064e\u0644\u0652\u0645\u064f\u062f\u0650\u064a\u0631 \u064a\u064e\u0639\u0652\u0645\u064e\u0644",  # noqa: E501
    "wide": "\uff42\uff55\uff49\uff4c\uff44 \uff2b\uff14\uff12 \uff83\uff7d\uff84",
    "sharp": "Die Stra\u00dfe im Ma\u00dfstab",
    "turkish": "\u0130zmir \u0131l\u0131man",
    "korean": "\uc11c\ubc84\uac00 \uba54\ubaa8\ub9ac\ub97c \uc800\uc7a5\ud55c\ub2e4",
    "thai": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e",
    "german": "\u00fcberschriftLesen ruft den OAuth2Client",
    "units": "5\u338f at 20\u2103, \u2116 7\u2122",
    "symbols": "\u00a715: a \u2264 b costs \u20ac9 \u203c\ufe0f",
    "han": "\u6f22\u5b57\u3068\u4eba\u304c",
    "polish": "\u0141\u00f3d\u017a",
    "length": "a ruler of 30 cm",
    "code": "exit 0x80070005 with ERR_BAD_PROTOCOL in v1.2.3 of C++",
    "plain": "Prices are shown in euros",
}
QUESTIONS = {
    "order by id": "identifier",
    "missing row": "identifier",
    "MissingRowError": "identifier",
    "http client": "identifier",
    "total of the cart": "identifier",
    "\U0001f6d1": "emoji",
    "what does \u2705 mean": "emoji",
    "zo\u00eb": "accents",
    "zoe": "accents",
    "creme": "accents",
    "nguyen": "accents",
    "\u0627\u0644\u0645\u062f\u064a\u0631": "vowels",
    "\u064a\u0639\u0645\u0644": "vowels",
    "build K42": "wide",
    "\u30c6\u30b9\u30c8": "wide",
    "strasse": "sharp",
    "izmir": "turkish",
    "iliman": "turkish",
    "\uba54\ubaa8\ub9ac": "korean",
    "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e": "thai",
    "\u00fcberschrift": "german",
    "oauth": "german",
    "5kg": "units",
    "\u338f": "units",
    "\u2122": "units",
    "\u2264": "symbols",
    "\u20ac": "symbols",
    "\u00a7": "symbols",
    "\u203c": "symbols",
    "\u4eba\u306f": "han",
    "lodz": "polish",
    "\u339d": "length",
    "0x80070005": "code",
    "80070005": "code",
    "bad protocol": "code",
    "v1.2.3": "code",
    "pricing": "plain",
    "where is the price?": "plain",
}


def test_words_are_found_without_a_model(store: MemoryStore) -> None:
    """In identifiers, any Unicode form, scripts without spaces, symbols, and English stems."""
    store.store_many([NewMemory(content) for content in TEXTS.values()])
    for question, name in QUESTIONS.items():
        assert found(store, question)[:1] == [TEXTS[name]], question


def test_day_of_a_memory_is_found_by_words(store: MemoryStore) -> None:
    """A question may name the day, month or year in which it was stored, on this machine."""
    for day, content in (
        ("2023-03-08", "milk"), ("2023-05-08", "lemon"), ("2023-05-21", "honey"),
        ("2024-05-03", "mint"),
    ):  # fmt: skip
        created = iso_to_sql(f"{day}T12:00:00Z")
        (name,) = store.store_many([NewMemory(content, created_at=created)])
        store.update(name, content=f"tea with {content}")
    for memory in store.iterate():
        shown = datetime.fromisoformat(memory.date)
        assert found(store, f"which tea on {shown.day} {shown:%B %Y}?")[0] == memory.content
    assert sorted(found(store, "in May 2023")[:2]) == ["tea with honey", "tea with lemon"]
    assert found(store, "what happened in 2024?") == ["tea with mint"]


@pytest.mark.parametrize(
    "question", ['"a" OR NOT', "NEAR(a b)", "*", "a:b", "content:x", "who am I", "-", "(", "\u200b"]
)
def test_any_text_is_a_question(store: MemoryStore, question: str) -> None:
    """Nothing in it is taken for the syntax of FTS5."""
    store.store("tea")
    assert found(store, question) == []
    long = " ".join(f"word {number}" for number in range(99))
    assert text.build_fts_query(long).count(" OR ") == text.MAX_QUERY_TERMS - 1


@pytest.mark.parametrize("question", ["", "  ", "x" * 10_001])
def test_question_without_text_is_refused(store: MemoryStore, question: str) -> None:
    """And one that is too long."""
    with pytest.raises(errors.InvalidInput, match="query"):
        store.search(question)


def test_long_hits_are_cut_around_the_words(store: MemoryStore) -> None:
    """Short ones are not cut; one without a match shows its beginning."""
    store.store(f"{'alpha ' * 300}the needle is here {'omega ' * 300}")
    store.store("a short needle")
    result = store.search("needle")
    assert set(result.excerpts) == {"project:1"}
    assert "the needle is here" in result.excerpts["project:1"]
    assert len(result.excerpts["project:1"]) <= 401
    store.store("\u30c6\u30b9" * 500)
    assert len(store.search("\u30c6\u30b9").excerpts["project:3"]) <= 401


# --- filters --------------------------------------------------------------------------------------


def test_filters(store: MemoryStore) -> None:
    """By tags, priority, category, source, project and database; in searches and lists."""
    store.store("tea one", tags=["Drink", "hot"], priority="HIGH", category="fact", source="import")
    store.store("tea two", tags=["drink"], scope="global")
    assert found(store, "tea", tags=["DRINK"]) == ["tea one", "tea two"]
    for name, value in (
        ("tags", ["drink", "hot"]), ("priority", "high"), ("category", "fact"),
        ("source", "import"), ("project_id", "shop"), ("scope", "project"),
    ):  # fmt: skip
        assert found(store, "tea", **{name: value}) == ["tea one"], name
        listed = store.list_memories(Filters(**{name: value}))  # type: ignore[arg-type]
        assert [each.content for each in listed.memories] == ["tea one"], name
        assert listed.total == 1
    store.store("caf\u00e9", tags=["Caf\u00e9", "Cafe\u0301", "\uff28\uff2f\uff34"])
    for tags in (["CAF\u00c9"], ["cafe\u0301"], ["hot", "caf\u00e9"]):
        assert found(store, "cafe", tags=tags) == ["caf\u00e9"], tags
    assert len(store.get("project:2").tags) == 2
    for wrong in ({"priority": "x"}, {"scope": "x"}, {"source": "x"}):
        with pytest.raises(errors.InvalidInput, match="filters"):
            found(store, "tea", **wrong)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be changed here")
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "Pacific/Pago_Pago", "UTC"])
def test_shown_date_finds_the_memory(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """The day that is shown is a day of this machine, as filters read it."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for hour in range(0, 24, 5):
            moment = iso_to_sql(f"2026-03-10T{hour:02}:30:00Z")
            store.store_many([NewMemory(f"tea at {hour}", created_at=moment)])
        for memory in store.iterate():
            same_day = Filters(since=memory.date, until=memory.date)
            assert memory in store.list_memories(same_day).memories, memory.date
        assert len({memory.date for memory in store.iterate()}) == (1 if zone == "UTC" else 2)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_date_range(store: MemoryStore) -> None:
    """Days are meant whole; a range that is the wrong way round is refused."""
    store.store("tea")
    today = datetime.now().astimezone()
    day = timedelta(days=1)
    date = today.date().isoformat()
    for since, until in (
        (date, date), ("1970-01-02", "2999-12-31"),
        ((today - day).isoformat(), (today + day).isoformat()), (None, date), (date, None),
    ):  # fmt: skip
        assert found(store, "tea", since=since, until=until) == ["tea"], (since, until)
    assert found(store, "tea", until=(today - day).date().isoformat()) == []
    assert found(store, "tea", since=(today + day).date().isoformat()) == []
    for wrong in ("yesterday", "2026-02-30", "2026-11"):
        with pytest.raises(errors.InvalidInput, match="date_range: to must be"):
            store.list_memories(Filters(until=wrong))
    with pytest.raises(errors.InvalidInput, match="from is later than to"):
        store.list_memories(Filters(since="2026-11-19", until="2026-11-18"))


def test_context_decides_how_many(store: MemoryStore) -> None:
    """Ten by default, eight for a session, five for a trigger; a limit overrides it."""
    store.store_many([NewMemory(f"tea {number}") for number in range(15)])
    for context, count in (("explicit", 10), ("session_start", 8), ("auto_trigger", 5)):
        assert len(store.search("tea", context=context).hits) == count
    assert len(store.search("tea", 12, context="auto_trigger").hits) == 12
    for wrong in (0, 51):
        with pytest.raises(errors.InvalidInput, match="limit"):
            store.search("tea", wrong)
    with pytest.raises(errors.InvalidInput, match="context"):
        store.search("tea", context="x")


# --- ranking --------------------------------------------------------------------------------------


def test_score_is_that_of_the_specification(tmp_path: Path) -> None:
    """40 % similarity, 20 % each recency, priority and usage, and 0.1 for the project's."""
    (tmp_path / "shop").mkdir()
    store = MemoryStore(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), SMALL)
    for number, priority in enumerate(("LOW", "NORMAL", "HIGH", "CORE")):
        scope = "project" if number % 2 else "global"
        created = iso_to_sql(f"202{number}-06-01T10:00:00Z")
        (name,) = store.store_many(
            [NewMemory(f"green tea {'leaf ' * number}", priority=priority, scope=scope,
                       created_at=created)]
        )  # fmt: skip
        for _ in range(number * 7):
            store.update(name, used=True)
    hits = store.search("green tea leaf").hits
    assert len(hits) == 4 and [hit.score for hit in hits] == sorted(
        (hit.score for hit in hits), reverse=True
    )
    now = now_micros()
    for hit in hits:
        memory = hit.memory
        made = datetime.fromisoformat(memory.created_at.replace("Z", "+00:00"))
        days = (now / 1e6 - made.timestamp()) / 86_400
        parts = {name: value or 0.0 for name, value in hit.parts.items()}
        assert parts["recency"] == pytest.approx(0.5 ** (days / 365), abs=1e-3)
        weight = {"CORE": 1.0, "HIGH": 0.75, "NORMAL": 0.5, "LOW": 0.25}[memory.priority]
        assert parts["priority"] == weight
        usage = min(math.log1p(memory.access_count) / math.log1p(100), 1)
        assert parts["usage"] == pytest.approx(usage)
        assert parts["project_boost"] == (0.1 if memory.scope == "project" else 0.0)
        others = parts["recency"] + parts["priority"] + parts["usage"]
        weighed = 0.4 * parts["similarity"] + 0.2 * others
        assert hit.score == pytest.approx(weighed + parts["project_boost"])
        assert 0 <= parts["similarity"] <= 1 and hit.parts["cosine"] is not None
    store.close()


def test_databases_are_joined_before_scaling(tmp_path: Path) -> None:
    """The best of a poor database does not count as much as the best of a good one."""
    (tmp_path / "shop").mkdir()
    config = replace(SMALL, retrieval=replace(SMALL.retrieval, project_boost=0.0))
    store = MemoryStore(tmp_path / ".memory", tmp_path / "shop", Ready(Toy()), config)
    store.store("a b c d e f")
    store.store("rain falls on roofs", scope="global")
    store.store("rain falls somewhere", scope="global")
    first, *_, last = store.search("rain falls on roofs").hits
    assert first.memory.content == "rain falls on roofs" and first.parts["similarity"] == 1
    assert last.memory.content == "a b c d e f" and last.parts["similarity"] == 0
    store.close()


def test_what_a_hook_stored_ranks_behind_its_priority(store: MemoryStore) -> None:
    """Until somebody gives it other tags."""
    for priority in ("CORE", "HIGH", "NORMAL", "LOW"):
        for scope in ("project", "global"):
            store.store("tea reviewed", priority=priority, scope=scope)
            store.store("tea unreviewed", tags=["unreviewed"], priority=priority)
            first, second = store.search("tea").hits
            assert second.memory.content == "tea unreviewed" and first.score > second.score
            assert store.session_start()[1] == second.memory
            for memory in (first.memory, second.memory):
                store.delete(memory.id)
    store.store("tea", tags=["unreviewed"])
    assert store.store("tea").memory.tags == ()


def test_each_part_of_a_long_memory_is_found(tmp_path: Path) -> None:
    """By meaning, also at its end; the parts are the whole text."""
    content = " ".join(["filler words of no use"] * 120 + ["zebra crossing"])
    chunks = text.chunk_text(content)
    assert len(chunks) > 2 and " ".join(chunks).split() == content.split()
    assert all(len(chunk) <= 800 for chunk in chunks) and text.chunk_text("short") == ["short"]
    store = MemoryStore(tmp_path / ".memory", None, Ready(Toy()), SMALL)
    store.store(content)
    toy = Toy()
    last = toy.vector(chunks[-1])
    query = toy.vector("zebra crossing")
    cosine = sum(a * b for a, b in zip(last, query, strict=True)) / (
        math.hypot(*last) * math.hypot(*query)
    )
    (hit,) = store.search("zebra crossing").hits
    assert (hit.parts["cosine"] or 0) >= cosine - 1e-5
    store.close()


def test_recency_halves_with_each_half_life(store: MemoryStore) -> None:
    """And is never above 1."""
    memory = store.store("tea").memory
    now = now_micros()
    day = 86_400_000_000
    for days, expected in ((0, 1.0), (30, 0.5), (60, 0.25), (-30, 1.0)):
        score = ranking.recency_score(memory, now + days * day, 30)
        assert score == pytest.approx(expected, abs=1e-3)


@pytest.mark.network
def test_meaning_is_compared_by_the_real_model(tmp_path: Path) -> None:
    """Without a word in common; what is far from all memories is marked as weak."""
    model_folder()
    store = MemoryStore(tmp_path / ".memory", None, Ready(real()), Config(Embedding(model=NAME)))
    for content in ("The car is washed on Fridays.", "Bread is baked at six.", "Tea is green."):
        store.store(content)
    result = store.search("when is the vehicle cleaned?")
    best = result.hits[0]
    assert result.by_meaning and best.memory.content == "The car is washed on Fridays."
    assert best.parts["bm25"] == 0 and not best.is_weak and not result.warnings
    far = store.search("quantum chromodynamics lattice")
    assert all(hit.is_weak for hit in far.hits) and "there may be no answer" in far.warnings[0]
    store.close()
