"""How `citations` finds a memory by a question, and how sure it says to be."""

from __future__ import annotations

import pytest

from aiaml_server.toolsets.citations import Citation, Memory
from aiaml_server.toolsets.citations.search import rank
from aiaml_server.toolsets.citations.words import terms
from citations_questions import ASKED

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
    places = []
    for memory, asked in zip(MEMORIES, ASKED, strict=True):
        found = [each.id for each, _ in rank(MEMORIES, getattr(asked, kind))]
        places.append(found.index(memory.id) if memory.id in found else len(MEMORIES))
    assert sum(each == 0 for each in places) >= first
    assert sum(each < 3 for each in places) >= three


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
