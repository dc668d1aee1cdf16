"""Search by `semantic`: the same ids, order and scores as a literal reference, and its quality."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.timestamps import parse_range, parse_timestamp
from aiaml_server.toolsets.semantic import cutting, ranking
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.memories import Memories
from aiaml_server.toolsets.semantic.memory import Draft, Memory
from aiaml_server.toolsets.semantic.periods import periods
from semantic_model import NAME, Ready, model_folder, real

WIDTH = 12
WORDS = [f"w{number}x" for number in range(60)]
"""Which no stemmer changes."""
PRIORITIES = {"CORE": 1.0, "HIGH": 0.75, "NORMAL": 0.5, "LOW": 0.25}


class Chance:
    """A model whose vectors are drawn by chance, the same for the same text."""

    name = "chance"
    version = "1"
    dimension = WIDTH

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors as the database rounds them."""
        return [self.vector(each) for each in texts]

    def vector(self, text: str) -> list[float]:
        """Return one."""
        chance = random.Random(text)
        return single([chance.gauss(0, 1) for _ in range(WIDTH)])


def single(vector: Sequence[float]) -> list[float]:
    """Return numbers as 32 bits hold them."""
    return list(struct.unpack(f"<{len(vector)}f", struct.pack(f"<{len(vector)}f", *vector)))


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


def bm25(query: list[str], texts: list[list[str]]) -> list[float]:
    """Return how well each text fits, as FTS5 has it."""
    length = sum(map(len, texts)) / len(texts)
    scores = [0.0] * len(texts)
    for word in query:
        there = sum(word in each for each in texts)
        idf = math.log((len(texts) - there + 0.5) / (there + 0.5))
        for number, each in enumerate(texts):
            count = each.count(word)
            norm = count + 1.2 * (1 - 0.75 + 0.75 * len(each) / length)
            scores[number] += max(idf, 1e-6) * count * 2.2 / norm
    return scores


def reference(memories: Memories, query: str, now: datetime) -> list[tuple[str, float]]:
    """Rank literally, as the specification and its page say it."""
    model = Chance()
    asked = model.vector(query)
    words = list(dict.fromkeys(query.split()))
    candidates: dict[str, tuple[Memory, float, float]] = {}
    everything = memories.list(limit=200).memories
    for scope in ("project", "global"):
        held = [each for each in everything if each.scope == scope]
        held.sort(key=lambda each: each.number)  # decides where the 50th and the 51st fit equally
        texts = [[*re.findall(r"\w+", each.content), *each.tags] for each in held]
        near = {each.id: cosine(asked, model.vector(each.content)) for each in held}
        fit = dict(zip((each.id for each in held), bm25(words, texts), strict=True))
        nearest = sorted(near, key=lambda name: -near[name])[:50]
        best = sorted((name for name in fit if fit[name]), key=lambda name: -fit[name])[:50]
        for each in held:
            if each.id in nearest or each.id in best:
                candidates[each.id] = (each, near[each.id], fit[each.id] if each.id in best else 0)
    low = min(near for _, near, _ in candidates.values())
    high = max(near for _, near, _ in candidates.values())
    most = max(fit for _, _, fit in candidates.values())
    blend = {
        name: 0.55 * (near - low) / (high - low) + 0.45 * (fit / most if most else 0)
        for name, (_, near, fit) in candidates.items()
    }
    made = {
        name: datetime.fromisoformat(one.created_at.replace("Z", "+00:00"))
        for name, (one, _, _) in candidates.items()
    }
    hour = timedelta(hours=1)
    plain = dict(blend)
    for name, value in plain.items():
        scope, _, number = name.partition(":")
        beside = [f"{scope}:{int(number) + step}" for step in (-1, 1)]
        there = [each for each in beside if each in made and abs(made[each] - made[name]) < hour]
        blend[name] = value + 0.1 * max((plain[each] for each in there), default=0)
    top = sorted(blend, key=lambda name: -blend[name])[:50]
    first, last = blend[top[0]], blend[top[-1]]
    ranked = []
    for name in top:
        one = candidates[name][0]
        age = now - datetime.fromisoformat(one.created_at.replace("Z", "+00:00"))
        score = (
            0.4 * (blend[name] - last) / (first - last)
            + 0.2 * 0.5 ** (age.total_seconds() / 86400 / 365)
            + 0.2 * PRIORITIES[one.priority]
            + 0.2 * min(math.log(1 + one.access_count) / math.log(101), 1)
        ) * (1.1 if name.startswith("project") else 1)
        ranked.append((score, one.created_at, name))
    ranked.sort(reverse=True)
    return [(name, score) for score, _, name in ranked]


@pytest.mark.slow
def test_ranking_is_that_of_the_reference(tmp_path: Path) -> None:
    """For 60 questions over two databases of 150 memories each, by ids, order and scores."""
    chance = random.Random(1)
    memories = Memories(
        tmp_path / ".memory",
        tmp_path / "shop",
        Ready(Chance()),
        Config(dimension=WIDTH, check=False),
    )
    for scope in ("project", "global"):
        for number in range(90):
            content = " ".join(chance.choices(WORDS, k=chance.randrange(2, 20))) + f" n{number}y"
            memories.store(
                f"{content} {scope}", chance.sample(WORDS, 2), chance.choice(list(PRIORITIES)),
                scope=scope,
            )  # fmt: skip
        with memories.databases[scope].writing() as sql:
            for number in range(1, 91):
                days = number // 3 if number % 2 else chance.randrange(1500)  # some lie together
                moment = datetime.now(timezone.utc) - timedelta(days=days)
                values = (moment.strftime("%Y-%m-%d %H:%M:%S.%f"), chance.randrange(200), number)
                sql.execute(
                    "UPDATE memories SET created_at = ?, access_count = ? WHERE id = ?", values
                )
    for _ in range(60):
        query = " ".join(chance.choices(WORDS, k=chance.randrange(1, 6)))
        hits = memories.search(query, 50).hits
        expected = reference(memories, query, datetime.now(timezone.utc))
        assert len(hits) == 50
        for hit, (name, score) in zip(hits, expected, strict=True):
            assert hit.memory.id == name, query
            assert hit.score == pytest.approx(score, abs=1e-6)
    memories.close()


@pytest.mark.network
def test_databases_are_joined_before_anything_is_scaled(tmp_path: Path) -> None:
    """The best of a database that has nothing near is not as good as the best of one that has."""
    memories = Memories(
        tmp_path / ".memory",
        tmp_path / "shop",
        Ready(real()),
        Config(model=NAME, project_boost=0.0),
    )
    memories.store("The cat sleeps on the sofa")
    memories.store("Bread is baked at six")
    memories.store("Authentication uses OAuth with short-lived tokens", scope="global")
    memories.store("Sessions of users end after an hour", scope="global")
    hits = memories.search("how do users log in?").hits
    assert [each.memory.scope for each in hits] == ["global", "global", "project", "project"]
    assert hits[0].similarity == 1 and hits[-1].similarity == 0
    assert hits[0].cosine and not hits[0].weak and hits[-1].weak
    memories.close()


def test_what_only_words_find_has_its_cosine(tmp_path: Path) -> None:
    """It is compared as well, though it is not among the nearest."""
    memories = Memories(
        tmp_path / ".memory", None, Ready(Chance()), Config(dimension=WIDTH, check=False)
    )
    for number in range(80):
        memories.store(f"n{number}y")
    query = "n7y n1y n2y n3y n4y n5y n6y n8y n9y n10y"
    for hit in memories.search(query, 50).hits:
        assert hit.cosine is not None
        expected = cosine(Chance().vector(query), Chance().vector(hit.memory.content))
        assert hit.cosine == pytest.approx(expected, abs=1e-6)
    memories.close()


@pytest.mark.network
def test_a_long_memory_is_found_by_each_of_its_parts(tmp_path: Path) -> None:
    """A model reads the beginning of a text alone, so it is given in parts."""
    memories = Memories(tmp_path / ".memory", None, Ready(real()), Config(model=NAME))
    filler = "The weather in the valley was mild and the road was dry that day. " * 40
    memories.store(f"{filler} The password policy demands sixteen characters. {filler}")
    memories.store("Rivers carry sand to the sea.")
    assert memories.search("how long must a secret login phrase be?").hits[0].memory.number == 1
    memories.close()


@pytest.mark.parametrize(
    "text", ["word " * 1000, "x" * 5000, "日本語" * 2000, "a\n\n" * 700, "x" * 1599 + " y" * 300]
)
def test_parts_are_the_whole_text(text: str) -> None:
    """Nothing is lost, and none is longer than a model reads."""
    parts = cutting.parts(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(each) <= 1000 and len(each.split()) <= cutting.PART for each in parts)
    assert cutting.parts("a short one") == ["a short one"]


@pytest.mark.network
def test_a_score_says_what_it_is_made_of(tmp_path: Path) -> None:
    """The parts add up, with the weights of the settings."""
    weights = {"similarity": 0.1, "recency": 0.2, "priority": 0.3, "usage": 0.4}
    settings = Config(model=NAME, similarity=0.1, recency=0.2, priority=0.3, usage=0.4)
    memories = Memories(tmp_path / ".memory", None, Ready(real()), settings)
    memories.store("Tea is green", priority="CORE")
    memories.update("global:1", used=True)
    (hit,) = memories.search("tea").hits
    parts = {name: getattr(hit, name) for name in weights}
    assert hit.score == pytest.approx(sum(weights[name] * parts[name] for name in weights))
    assert parts["priority"] == 1 and parts["usage"] == pytest.approx(0.1502, abs=1e-3)
    assert parts["recency"] == pytest.approx(1, abs=1e-4)
    memories.close()


def test_half_lives() -> None:
    """Half after 365 days, whatever else."""
    now = parse_timestamp("2026-11-22T00:00Z") or 0
    fields = ["x"] * 8 + ["2025-11-22T00:00:00.000000Z"] + ["x"] * 8
    assert ranking.recency(Memory(*fields), now, 365) == pytest.approx(0.5)  # type: ignore[arg-type]


OTHER_LANGUAGES = (
    (
        "Die Entscheidungen zur Datenbank fielen im Mai: PostgreSQL.",
        "welche Entscheidung gab es zur Datenbank?",
    ),
    (
        "Preise werden in Cent gespeichert und erst bei der Anzeige gerundet.",
        "wie wird der Preis gespeichert?",
    ),
    ("Veröffentlicht wird immer dienstags vom Hauptzweig.", "wann sind die Veröffentlichungen?"),
    (
        "Les décisions d'architecture sont notées dans le dossier docs.",
        "où est notée la décision de l'architecture ?",
    ),
    ("Les factures sont envoyées le premier du mois.", "quand est-ce qu'on envoie la facture ?"),
    ("Les développeurs préfèrent les réponses courtes.", "quelle réponse préfère le développeur ?"),
    (
        "Los despliegues se hacen los martes desde la rama principal.",
        "¿cuándo se hace el despliegue?",
    ),
    ("Las contraseñas están guardadas en la bóveda.", "¿dónde está la contraseña guardada?"),
    ("Las pruebas lentas se ejecutan por la noche.", "¿cuándo se ejecuta la prueba lenta?"),
    ("I prezzi vengono arrotondati solo quando sono mostrati.", "come si arrotonda il prezzo?"),
    ("Le password sono conservate nella cassaforte.", "dove si conserva la password?"),
    ("I rilasci avvengono ogni martedì.", "quando avviene il rilascio?"),
    ("As decisões são registradas em arquivos de texto.", "onde a decisão é registrada?"),
    ("Os testes lentos rodam durante a noite.", "quando roda o teste lento?"),
    ("Os preços são guardados em centavos.", "como guardamos o preço?"),
    ("De beslissingen staan in de map docs.", "waar staat de beslissing?"),
    ("Prijzen worden in centen bewaard.", "hoe bewaren we de prijs?"),
    ("De trage testen lopen alleen 's nachts.", "wanneer loopt de trage test?"),
)
"""Memories in German, French, Spanish, Italian, Portuguese and Dutch, and a question for each."""


def test_words_of_other_languages_are_found_in_their_forms(tmp_path: Path) -> None:
    """By words alone: 17 of 18 first; with English stems and common words alone 13."""
    memories = Memories(tmp_path / ".memory")
    for text, _ in OTHER_LANGUAGES:
        memories.store(text)
    found = [memories.search(question, 1).hits for _, question in OTHER_LANGUAGES]
    memories.close()
    right = [
        bool(hits) and hits[0].memory.content == text
        for hits, (text, _) in zip(found, OTHER_LANGUAGES, strict=True)
    ]
    assert sum(right) >= 17, right


@pytest.mark.network
def test_the_real_model_is_there() -> None:
    """Where the Python index can be reached, nothing of this file is skipped."""
    assert (model_folder() / "model.onnx").stat().st_size > 20_000_000


def test_words_that_the_answer_may_hold_find_it(tmp_path: Path) -> None:
    """As the description asks for them, behind the question; the question alone does not."""
    memories = Memories(tmp_path / ".memory", None, None, Config())
    memories.store("Deploys go out on Tuesdays from the main branch.")
    memories.store("Ada likes green tea.")
    assert memories.search("when do we release?").hits == []
    asked = "when do we release? deploy deploys rollout publish ship version weekday branch"
    assert [each.memory.id for each in memories.search(asked).hits] == ["global:1"]
    memories.close()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did we decide in May?", ("2026-05-01", "2026-05-31")),
        ("as of December", ("2025-12-01", "2025-12-31")),
        ("prices in September 2023", ("2023-09-01", "2023-09-30")),
        ("on 9 November, 2022", ("2022-11-09", "2022-11-09")),
        ("on November 9th 2022", ("2022-11-09", "2022-11-09")),
        ("the 3rd of June", ("2026-06-03", "2026-06-03")),
        ("what happened in 2024?", ("2024-01-01", "2024-12-31")),
        ("since 2026-11-02", ("2026-11-02", "2026-11-02")),
        ("what did I say yesterday?", ("2026-11-23", "2026-11-23")),
        ("notes of today", ("2026-11-24", "2026-11-24")),
        ("decisions of last week", ("2026-11-10", "2026-11-24")),
        ("in the past 3 days", ("2026-11-21", "2026-11-24")),
        ("two days ago", ("2026-11-22", "2026-11-22")),
        ("three months ago", ("2026-08-04", "2026-09-17")),
        ("this year", ("2025-11-25", "2026-11-24")),
        ("what may I do on the march?", None),
        ("on 31 June 2022", None),
        ("99999999 years ago", None),
    ],
)
def test_periods_that_a_question_names(question: str, expected: tuple[str, str] | None) -> None:
    """Days, months, years and spans until today; what is no date names nothing."""
    found = periods(question, date(2026, 11, 24))
    if expected is None:
        assert found == []
    else:
        (first, _), (_, last) = (
            parse_range(expected[0]) or (0, 0),
            parse_range(expected[1]) or (0, 0),
        )
        assert found == [(first, last)]


@given(st.text(max_size=80))
def test_periods_of_any_text(question: str) -> None:
    """Whatever is asked, there is an answer, and no period ends before it begins."""
    for first, last in periods(question, date(2026, 11, 24)):
        assert first <= last


def test_a_time_that_is_named_is_preferred_and_nothing_left_out(tmp_path: Path) -> None:
    """What was stored then comes first among equals; the others come too."""
    memories = Memories(tmp_path / ".memory", None, None, Config())
    for number in range(6):
        memories.store(f"We talked about prices, part {number}.")
    with memories.databases["global"].writing() as sql:
        sql.execute("UPDATE memories SET created_at = '2023-09-12 10:00:00.000000' WHERE id = 3")
    found = [each.memory.number for each in memories.search("prices in September 2023").hits]
    assert found[0] == 3 and len(found) == 6
    assert memories.search("prices").hits[0].memory.number != 3
    memories.close()


def test_what_was_stored_beside_it_counts_a_little(tmp_path: Path) -> None:
    """Of two memories that fit alike, the one next to a hit comes first; after an hour no more."""
    memories = Memories(tmp_path / ".memory", None, None, Config(recency=0.0))
    for content in ("apples pears", "plums apples", "x", "y", "z", "apples figs"):
        memories.store(content)
    order = [each.memory.number for each in memories.search("apples pears").hits]
    assert order == [1, 2, 6]
    with memories.databases["global"].writing() as sql:
        sql.execute("UPDATE memories SET created_at = '2023-09-12 10:00:00.000000' WHERE id = 2")
    hits = memories.search("apples pears").hits
    alike = {each.memory.number: each.similarity for each in hits}
    assert alike[2] == alike[6]
    memories.close()


PROJECT_NOTES = [
    "The test framework of the billing service runs in two shards.",
    "Test cleanup once deleted the staging database; it needs a guard now.",
    "Integration tests start PostgreSQL in a container.",
    "The time zone of the database is UTC; times are converted in the client.",
    "The editor of templates was replaced by plain files.",
    "Answers of the API are cached for five minutes.",
    "The deploy takes a long time because images are built twice.",
    "Commit hooks run the linter; the language of messages is English.",
]
PERSONAL = {
    "which test framework does the user like? pytest jest prefers": "The user prefers pytest.",
    "what time is it for the user?": "The user lives in Lisbon, time zone WEST.",
    "which editor do I use?": "The user edits with Helix.",
    "how long should answers to me be?": "The user wants short answers, the command first.",
}
OF_THE_PROJECT = {
    "how do integration tests get a database?": 2,
    "which time zone has the database?": 3,
    "how long are answers of the API cached?": 5,
    "why does the deploy take long?": 6,
}


@pytest.mark.network
def test_the_projects_boost_hides_nothing_of_the_person(tmp_path: Path) -> None:
    """Questions about the person find theirs before a project's of no use to them."""
    memories = Memories(tmp_path / ".memory", tmp_path / "shop", Ready(real()), Config(model=NAME))
    memories.store_all([Draft(each) for each in PROJECT_NOTES])
    for content in PERSONAL.values():
        memories.store(content, scope="global")
    places = []
    for question, content in PERSONAL.items():
        found = [each.memory.content for each in memories.search(question).hits]
        places.append(found.index(content))
    assert places == [0, 0, 1, 1]  # with 0.1 for every memory of the project: 1, 1, 1, 2
    for question, number in OF_THE_PROJECT.items():
        best = memories.search(question).hits[0]
        assert best.memory.content == PROJECT_NOTES[number], question
        assert best.boost == pytest.approx(0.1 * (best.score - best.boost))
    memories.close()
