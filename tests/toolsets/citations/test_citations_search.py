"""How `citations` finds a memory by a question in other words."""

from __future__ import annotations

from aiaml_server.toolsets.citations import Citation, Memory
from aiaml_server.toolsets.citations.search import merge, rank, tokenize
from citations_questions import ASKED, WORDS

MEMORIES = [
    Memory(
        f"mem-{number}",
        asked.subject,
        f"**Fact**: {asked.fact}\n\n**Reasoning**: r.\n\n**Action**: a.",
        citations=(Citation(asked.cites[0], 1, asked.cites[1]),),
    )
    for number, asked in enumerate(ASKED)
]


def places_of(questions: list[str]) -> list[int]:
    """Return at which place each question finds its memory, from 0."""
    places = []
    for memory, question in zip(MEMORIES, questions, strict=True):
        found = [hit.id for hit, _ in rank(MEMORIES, question)]
        places.append(found.index(memory.id) if memory.id in found else len(MEMORIES))
    return places


def test_a_memory_is_found_by_other_words() -> None:
    """Of thirty, so many come first, or among three; with ten words, all are first or second."""
    for kind, first, three in (("first", 14, 21), ("blind", 18, 25)):
        questions = [getattr(asked, kind) for asked in ASKED]
        places = places_of(questions)
        assert sum(place == 0 for place in places) >= first
        assert sum(place < 3 for place in places) >= three
        words = WORDS[kind].strip().split("\n")
        longer = [f"{question} {more}" for question, more in zip(questions, words, strict=True)]
        assert max(places_of(longer)) <= 1


def test_a_chance_hit_has_a_low_score() -> None:
    """Words that no memory has weigh as well; of what shares nothing, nothing is found."""
    for question, most in (
        ("what is the weather in paris plain", 0.4),
        ("postgres replication slots of the json importer", 0.6),
        ("zebra giraffe rhinoceros", 0.0),
    ):
        assert max((score for _, score in rank(MEMORIES, question)), default=0.0) <= most


def test_words_are_compared_as_stems() -> None:
    """Without stop words; two letters count, parts of identifiers too."""
    assert tokenize("is CI on a DB in v2, or go to it") == ["ci", "db", "v2"]
    assert set(tokenize("parsing the parsed parser parses")) == {"pars"}
    assert set(tokenize("getUserName")) == {"getusernam", "user", "nam"}
    assert tokenize("we go to a long word", 5) == []


def test_words_and_meaning_are_merged() -> None:
    """The mean of both; the same text only once; without an index the words alone."""
    ranked = [(MEMORIES[0], 0.8), (MEMORIES[1], 0.4)]
    assert merge(ranked, [], MEMORIES) == ranked
    merged = merge(ranked, [("mem-1", 0.9), ("mem-2", 0.1), ("mem-gone", 1.0)], MEMORIES)
    assert [(memory.id, round(score, 2)) for memory, score in merged] == [
        ("mem-1", 0.65), ("mem-0", 0.4), ("mem-2", 0.05)
    ]  # fmt: skip
