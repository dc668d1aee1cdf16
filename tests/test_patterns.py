"""Patterns and parsers of outside text: twice as much of it takes twice as long, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from aiaml_server.errors import MalformedFile
from aiaml_server.memory import MAX_HEAD, parse
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
