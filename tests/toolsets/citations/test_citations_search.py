"""How `citations` finds a memory by a question, and how sure it says to be."""

from __future__ import annotations

import inspect
from pkgutil import resolve_name

import pytest

from aiaml_server import toolsets
from aiaml_server.toolsets.citations import Citation, Memory
from aiaml_server.toolsets.citations.search import rank
from aiaml_server.toolsets.citations.words import terms
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


@pytest.mark.parametrize(("kind", "first", "three"), [("first", 13, 19), ("blind", 19, 26)])
def test_memory_is_found_by_other_words(kind: str, first: int, three: int) -> None:
    """By what means nearly the same; of thirty, so many come first or among three.

    In its own words alone the search found 4 and 8 of the first, 11 and 13 of the blind ones.
    """
    places = places_of([getattr(each, kind) for each in ASKED])
    assert sum(each == 0 for each in places) >= first
    assert sum(each < 3 for each in places) >= three


@pytest.mark.parametrize("kind", ["first", "blind"])
def test_memory_is_found_by_what_agents_are_asked_for(kind: str) -> None:
    """The question with some ten words behind it: 24 of thirty first at least, 28 among three."""
    lists = WORDS[kind].strip().split("\n")
    asked = [getattr(each, kind) for each in ASKED]
    places = places_of([f"{one} {words}" for one, words in zip(asked, lists, strict=True)])
    assert sum(each == 0 for each in places) >= 24
    assert sum(each < 3 for each in places) >= 28


def test_memory_search_asks_for_what_finds() -> None:
    """The question with eight to ten words behind it: in all texts, and in the examples."""
    tools = toolsets.manifest("citations")
    built = resolve_name(tools.build)(tools.read_settings({}))
    (search,) = (each for each in built.tools if each.name == "memory_search")
    for text in (built.instructions, search.description):
        assert "the question, and behind it eight to ten single words" in " ".join(text.split())
    field = inspect.signature(search.call, eval_str=True).parameters["query"].annotation
    assert "eight to ten single words" in field.__metadata__[0].description
    question, words = field.__metadata__[0].examples[0].split("? ")
    assert 8 <= len(words.split()) <= 10 and not set(words.split()) & set(question.split())


def places_of(questions: list[str]) -> list[int]:
    """Return at which place each question finds its memory, from 0."""
    places = []
    for memory, question in zip(MEMORIES, questions, strict=True):
        found = [each.id for each, _ in rank(MEMORIES, question)]
        places.append(found.index(memory.id) if memory.id in found else len(MEMORIES))
    return places


@pytest.mark.parametrize(
    ("question", "most"),
    [
        ("what is the weather in paris plain", 0.4),
        ("postgres replication slots of the json importer", 0.6),
        ("zebra giraffe rhinoceros", 0.0),
    ],
)
def test_chance_hit_has_a_low_score(question: str, most: float) -> None:
    """Words that no memory has weigh as well; of what shares nothing, nothing is found."""
    scores = [score for _, score in rank(MEMORIES, question)]
    assert max(scores, default=0.0) <= most


def test_word_of_two_letters_counts() -> None:
    """Where it is no English one."""
    assert terms("is CI on a DB in v2, or go to it") == ["ci", "db", "v2"]
    (first, _), *_ = rank(MEMORIES, "CI")
    assert first.subject.startswith("CI runs")
    assert terms("we go to a long word", shortest=5) == []
