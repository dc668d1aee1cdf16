"""Expressions and parsers of outside text: twice as much takes twice as long, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from growth import steep
from patterns import Judge, Use, collected

from aiaml_server.errors import MalformedFile
from aiaml_server.format.frontmatter import MAX_HEAD
from aiaml_server.format.memory import parse
from aiaml_server.format.scorer import score

pytestmark = pytest.mark.slow

USES = collected()


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """A process that may take for ever."""
    made = Judge()
    yield made
    made.close()


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.where} {use.method}"[-90:])
def test_the_time_of_an_expression_grows_with_its_text(judge: Judge, use: Use) -> None:
    """One commit, file, line or answer from elsewhere must not hold up everything.

    Each expression of the package gets what is hardest for it (see `patterns`).
    """
    assert not judge(use)


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(a|a)*b", "match"),
        (r"(?:x+x+)+y", "search"),
        (r"[ \t]*(?:/\*[^\n]*?\*/[ \t]*)*(?=\n)", "match"),
        (r"\s*([^,]*?)\s*(?:,|$)", "match"),
        (r"\bsk-(?:[a-z]+-)?[\w-]{20,}T3BlbkFJ[\w-]{20,}", "search"),
        (r"repository .*not found", "search"),
        (r"(Add|Update|Forget) memory \S* ?\((.+)\)", "fullmatch"),
        (r"\s+$", "search"),
        (r"//[^\n]*|/\*.*?\*/", "findall"),
    ],
)
def test_the_judge_finds_what_does_not(pattern: str, method: str) -> None:
    """Expressions that were found to hold up a program, or are known to."""
    judge = Judge()
    judge.seconds = 10.0
    told = judge(Use("a known one", pattern, 0, method))
    judge.close()
    assert told


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


def test_a_long_keyword_that_overlaps_itself_is_counted_in_one_pass() -> None:
    """It begins at every third place; comparing all of it at each of them held up a server."""

    def count(size: int) -> None:
        keyword = ("a--" * size)[: size // 3 * 3 - 1]  # no whole word where it goes on like this
        assert score(((1, "a--" * 500 * size),), keyword)

    assert not steep(count, 125, 1000)
