"""The one language in which people say which memories they mean: `agent:claude since:7d food`."""

from __future__ import annotations

import inspect
import re

import pytest

from aiaml_server.cli.show import list_
from aiaml_server.errors import InvalidInput
from aiaml_server.format.filters import FIELDS, Filter, of_shell, words
from aiaml_server.format.memory import Memory
from aiaml_server.timestamps import parse_timestamp
from paths import ROOT

DIVIDED = {
    'dinner "san francisco" café': ["dinner", "san francisco", "café"],
    'topic:"fast food" x': ["topic:fast food", "x"],
    '"agent:claude" agent:claude': ['"agent:claude"', "agent:claude"],
    'std::vector "unclosed words': ["std::vector", "unclosed words"],
    '  it"s  ': ['it"s'],
}


@pytest.mark.parametrize("question", DIVIDED)
def test_a_question_is_divided_as_by_a_shell(question: str) -> None:
    """At blanks; quotes make several words one, and a field in quotes a word."""
    assert words(question) == DIVIDED[question]


TYPED = {
    ("when is the rehearsal",): ["when", "is", "the", "rehearsal"],
    ("when is", "it", "agent:claude"): ["when", "is", "it", "agent:claude"],
    ('the "san francisco" trip', '"fast food"'): ["the", "san francisco", "trip", "fast food"],
    ("topic:fast food", 'topic:"a b" c'): ["topic:fast food", "topic:a b", "c"],
    ('"agent:claude"', " "): ['"agent:claude"'],
}


@pytest.mark.parametrize("arguments", TYPED)
def test_of_shell_divides_arguments(arguments: tuple[str, ...]) -> None:
    """Only quotes that a shell has left make a phrase; a field in one argument keeps its blanks."""
    assert of_shell(arguments) == TYPED[arguments]


def test_fields_are_taken_out_of_a_question() -> None:
    """Everything else stays a word to look for, also what looks like a field and is none."""
    question = (
        'Agent:Claude user:ann topic:food TOPIC:"Fast Food" since:2026-01-01 before:2026-02-01'
        ' dinner foo:bar http://x "since:7d"'
    )
    wanted, rest = Filter().with_fields(words(question))
    assert wanted == Filter(
        "claude",
        "ann",
        ("food", "fast food"),
        parse_timestamp("2026-01-01"),
        parse_timestamp("2026-02-01"),
    )
    assert rest == ["dinner", "foo:bar", "http://x", "since:7d"]


def test_names_are_compared_in_any_case_and_unicode_form() -> None:
    """A topic that one system typed as one character is found from another that uses two."""
    stored = Memory("a1b2c3d4", "", "Rene\u0301", "Zoe\u0308", ("Cafe\u0301",), "soup")
    wanted = Filter.of(agent="ren\xe9", user="ZO\xcb", topic=["caf\xe9"])
    assert wanted.matches(stored)
    assert wanted == Filter.of(agent="RENE\u0301", user="zoe\u0308", topic=["cafe\u0301"])


def test_filter_topics_are_bounded() -> None:
    """SQLite takes an expression of 1,000 terms; the same topic again is none more."""
    assert Filter.of(topic=["A", "a"] * 600).topics == ("a",)
    many = [f"t{number}" for number in range(101)]
    with pytest.raises(InvalidInput, match="topic: must be 100 different ones at most"):
        Filter.of(topic=many)
    with pytest.raises(InvalidInput, match="topic: must be"):
        Filter().with_fields(f"topic:{each}" for each in many)


def test_fields_go_with_options() -> None:
    """Topics add up; the same twice is the same."""
    options = Filter.of(agent="claude", topic=["food"])
    wanted, _ = options.with_fields(["agent:CLAUDE", "topic:dog"])
    assert wanted == Filter("claude", topics=("food", "dog"))


WRONG = {
    "agent:": "agent: must have a value behind the colon, such as agent:claude",
    "since:yesterday": "since: 'yesterday' is not a time. Use a date such as 2026-11-21",
    "before:": "before: must have a value behind the colon, such as before:2w",
    "agent:a agent:b": "agent: must not be given twice with different values",
    "since:1d since:2d": "since: must not be given twice with different values",
}


@pytest.mark.parametrize("question", WRONG)
def test_a_field_that_cannot_be_is_named(question: str) -> None:
    """With what would be right."""
    with pytest.raises(InvalidInput) as error:
        Filter().with_fields(words(question))
    assert str(error.value).startswith(WRONG[question])


LISTS = {
    "src/aiaml_server/web/static/index.html": r"Words, (.*?) with a value",
    "docs/search.md": r"(?m)^\| (.*?) \|",
    "src/aiaml_server/cli/show.py": r"(?s)A word such as (.*?) is a filter",
}


@pytest.mark.parametrize("path", LISTS)
def test_every_list_of_fields_is_complete(path: str) -> None:
    """These texts name every field of a question."""
    text = (ROOT / path).read_text(encoding="utf-8")
    found = re.findall(r"(\w+)(?=\)?:|\|)", "".join(re.findall(LISTS[path], text)))
    assert {*found} == {*FIELDS}


def test_filters_fields_are_options_as_well() -> None:
    """Each has one, under its own name; and each an example that it takes."""
    of = {*inspect.signature(Filter.of).parameters}
    assert of == {*FIELDS}
    assert of <= {each.name for each in list_.params}
    for field, example in FIELDS.items():
        wanted, rest = Filter().with_fields([f"{field}:{example}"])
        assert wanted and not rest
