"""The relevance score is the specification's formula, and the order of an answer is total."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server.format.memory import Memory
from aiaml_server.format.scorer import MAX_HITS, MAX_KEYWORD, clean, fields, hit, rank


def memory(
    content: str = "",
    topics: tuple[str, ...] = (),
    user: str = "u",
    agent: str = "a",
    timestamp: str = "2026-01-01T00:00:00+00:00",
) -> Memory:
    """Build a memory of which only the searched parts matter."""
    return Memory("00c0ffee", timestamp, agent, user, topics, content)


def score(of: Memory, *keywords: str) -> int:
    """Score the memory for all keywords together."""
    found = hit("x.md", of.id, of.timestamp, fields(of), clean(keywords))
    return found.relevance_score if found else 0


FORMULA = {
    "a word in the content: occurrence and whole word": (memory("I like python"), ["python"], 2),
    "inside a word: occurrence only": (memory("I like pythons"), ["python"], 1),
    "a topic counts twice": (memory(topics=("python",)), ["python"], 3),
    "inside a topic": (memory(topics=("pythonic",)), ["python"], 2),
    "user and agent count once": (memory(user="marco", agent="marco"), ["marco"], 4),
    "everything at once": (memory("max max maxi", ("max",), "max", "max"), ["max"], 12),
    "case is ignored on both sides": (memory("PYTHON"), ["pYthon"], 2),
    "several keywords add up": (memory("cat dog"), ["cat", "dog", "bird"], 4),
    "a repeated keyword counts once": (memory("cat"), ["cat", "Cat", " cat "], 2),
    "count does not overlap": (memory("aaaa"), ["aa"], 2),
    "punctuation at the edge: no whole word": (memory("c++ and c++"), ["c++"], 2),
    "punctuation inside: whole words": (memory("node.js"), ["node.js"], 2),
    "a dot is a dot": (memory("nodexjs"), ["node.js"], 0),
    "a phrase": (memory("in San Francisco"), ["san francisco"], 2),
    "a phrase never crosses fields": (memory("francisco", ("san",)), ["san francisco"], 0),
    "a phrase may span topics": (memory(topics=("san", "francisco")), ["san francisco"], 3),
    "letters of other scripts": (memory("東京に住む"), ["東京"], 1),
    "an emoji has no word boundary": (memory("so 🙂"), ["🙂"], 1),
    "an underscore belongs to the word": (memory("user_id"), ["user"], 1),
    "final sigma differs": (memory("ΟΔΟΣ"), ["οδος"], 2),
    "sharp s does not become ss": (memory("Straße"), ["strasse"], 0),
    "dotted capital i is an i and a mark that is no letter": (memory("İ"), ["i"], 2),
}


@pytest.mark.parametrize("case", FORMULA)
def test_the_formula_holds_by_hand(case: str) -> None:
    """Scores that were worked out on paper."""
    of, keywords, expected = FORMULA[case]
    assert score(of, *keywords) == expected


pieces = st.sampled_from(
    [
        "a",
        "aa",
        "ab",
        "A",
        "b",
        " ",
        ".",
        "+",
        "-",
        "_",
        "c++",
        "node.js",
        "İ",
        "ß",
        "Σ",
        "ς",
        "東京",
        "🙂",
        "1",
    ]
)
strings = st.lists(pieces, max_size=12).map("".join)


@given(strings, st.lists(strings.filter(bool), max_size=3), strings, strings, st.lists(strings))
def test_the_score_is_the_formula(
    content: str, topics: list[str], user: str, agent: str, keywords: list[str]
) -> None:
    """The sum of the specification, written down once more, gives the same number."""
    expected, matching = 0, []
    for keyword in dict.fromkeys(k.lower().strip() for k in keywords if k.strip()):
        lowered = [" ".join(topics).lower(), content.lower(), user.lower(), agent.lower()]
        in_topics, in_content, in_user, in_agent = (text.count(keyword) for text in lowered)
        exact = sum(len(re.findall(r"\b" + re.escape(keyword) + r"\b", text)) for text in lowered)
        score = (in_topics * 2) + in_content + in_user + in_agent + exact
        expected += score
        matching += [keyword] if score else []
    of = memory(content, tuple(topics), user, agent)
    found = hit("x.md", of.id, of.timestamp, fields(of), clean(keywords))
    assert (found.relevance_score if found else 0) == expected
    assert (list(found.matching_keywords) if found else []) == matching


def test_the_answer_is_ordered_by_score_then_newest_then_name() -> None:
    """Ties are broken by the instant, whatever its offset, and then by the file name."""
    at = "2026-01-01T{}".format
    store = {
        "a.md": memory("x x", timestamp=at("00:00:00+00:00")),
        "b.md": memory("x", timestamp=at("01:00:00+00:00")),
        "c.md": memory("x", timestamp=at("01:30:00+01:00")),  # an earlier instant than b
        "d.md": memory("x", timestamp=at("01:00:00Z")),  # the same instant as b
        "e.md": memory("x", timestamp="once upon a time"),
        "f.md": memory("y"),
    }
    expected = ["a.md", "d.md", "b.md", "c.md", "e.md"]
    for pairs in (list(store.items()), list(reversed(store.items()))):
        assert [found.file_name for found in rank(pairs, ["X"])] == expected


def test_an_answer_has_at_most_25_hits() -> None:
    """The 25 best are returned, not the first 25."""
    pairs = [(f"{n:03}.md", memory("x " * n)) for n in range(1, 60)]
    assert [found.relevance_score for found in rank(pairs, ["x"])] == [
        2 * n for n in range(59, 34, -1)
    ]
    assert MAX_HITS == 25


def test_keywords_are_cleaned() -> None:
    """Lower case, no outer white space, no empties, no repeats, in the order given."""
    assert clean(["  B ", "a", "", " \t", "b", "A b"]) == ["b", "a", "a b"]


@pytest.mark.parametrize(
    "keyword", ["(x+x+)+y", "(a|a)*$", "[", "\\", "x" * MAX_KEYWORD, "\x00", "\ud800"]
)
def test_hostile_keywords_are_only_text(keyword: str) -> None:
    """A keyword is never a pattern, and the longest costs nothing that matters."""
    text = "x" * (MAX_KEYWORD - 1) + " a" * 1000
    assert score(memory(text), keyword) == 0
    assert score(memory(text + keyword), keyword) > 0
