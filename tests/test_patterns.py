"""Patterns and parsers of outside text: twice as much of it takes twice as long, whatever it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from aiaml_server import scorer
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.memory import MAX_HEAD, parse
from aiaml_server.scorer import clean, score
from growth import steep

HEAD = "---\nid: x\ntimestamp: y\nagent: a\nuser: u\nnote: n\ntopics: {}\n---\n\ncontent\n"
TOPICS: dict[str, Callable[[int], str]] = {
    "white space inside an item": lambda size: f"[a{' ' * size}b]",
    "white space after a quoted item": lambda size: f'["a"{" " * size}b]',
    "items": lambda size: "a," * (size // 2),
    "opening quotes": lambda size: '"a,' * (size // 3),
    "quotes of both kinds": lambda size: "\"a,'" * (size // 4),
    "escaped quotes": lambda size: '"' + r"\"" * (size // 2),
    "doubled quotes": lambda size: "'" * (size + size % 2) + "x",
    "a YAML list": lambda size: "\n" + "- a\n" * (size // 4),
    "a YAML list in one line": lambda size: "\n [" + "a," * (size // 2) + "]",
}


def read(topics: str) -> None:
    """Read a file with such topics, whether it is a memory or not."""
    with suppress(MalformedFile):
        parse(HEAD.format(topics))


@pytest.mark.parametrize("case", TOPICS)
def test_the_time_to_read_topics_grows_with_their_length(case: str) -> None:
    """One file must not hold up every server of everybody."""
    assert not steep(lambda size: read(TOPICS[case](size)), 1024, MAX_HEAD // 2)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", TOPICS)
def test_a_frontmatter_has_a_bound_that_is_named(case: str) -> None:
    """A file of 4 MiB is refused before a YAML parser sees it, which would take 20 seconds."""
    with pytest.raises(MalformedFile, match="frontmatter is longer than 65,536 characters"):
        parse(HEAD.format(TOPICS[case](4 * 1024 * 1024 - 200)))


def test_the_bound_is_the_same_for_the_usual_form() -> None:
    """What one way of reading takes, the other takes, too."""
    usual = HEAD.replace("note: n\n", "")
    assert parse(usual.format("[a]")).topics == ("a",)
    longest = MAX_HEAD - (len(usual.format("[]")) - len("\ncontent\n"))
    assert parse(usual.format(f"[{'a' * longest}]")).topics == ("a" * longest,)
    with pytest.raises(MalformedFile, match="frontmatter"):
        parse(usual.format(f"[{'a' * (longest + 1)}]"))


# --- keywords -------------------------------------------------------------------------------------


def test_a_long_keyword_that_overlaps_itself_is_counted_in_one_pass() -> None:
    """It begins at every third place; comparing all of it at each of them held up a server."""

    def count(size: int) -> None:
        keyword = ("a--" * size)[: size // 3 * 3 - 1]  # no whole word where it goes on like this
        assert score(((1, "a--" * 500 * size),), keyword)

    assert not steep(count, 125, 1000)


@pytest.mark.parametrize(
    ("keywords", "fits"),
    [
        ([str(number) for number in range(1000)], True),
        ([str(number) for number in range(1001)], False),
        (["a", " A "] * 1000, True),
        (["a" * 1000], True),
        (["a" * 1001], False),
        ([f"{number:0992}" for number in range(66)], True),
        ([f"{number:0993}" for number in range(66)], False),
    ],
)
def test_a_question_has_bounds_that_are_named(keywords: list[str], fits: bool) -> None:
    """What is beyond them is refused, and nothing is searched for it."""
    if fits:
        assert clean(keywords)
    else:
        with pytest.raises(InvalidInput, match=r"keywords: must be .* 1,000 .* 65,536") as refused:
            clean(keywords)
        assert refused.value.field == "keywords"


def test_every_keyword_of_a_question_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each memory again, however many keywords there are, nor kept beyond the bounds."""
    compiled: list[str] = []

    def counted(pattern: str, original: Callable[[str], re.Pattern[str]] = re.compile) -> object:
        compiled.append(pattern)
        return original(pattern)

    monkeypatch.setattr(re, "compile", counted)
    first, second = ([f"{name}{number}" for number in range(1000)] for name in ("x", "y"))
    texts = ((1, " ".join(first + second)),)
    for keyword in (*first, *second):
        assert score(texts, keyword) >= 2
    compiled.clear()
    for keyword in second * 3:
        score(texts, keyword)
    assert len(compiled) <= len(second)
    assert len(scorer._patterns) <= 1000
