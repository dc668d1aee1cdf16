"""Expressions and parsers of outside text: twice as much takes twice as long, whatever it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import translate
from pathlib import Path

import pytest

from aiaml_server.doctor import place
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.format import scorer
from aiaml_server.format.memory import parse
from aiaml_server.format.scorer import clean, score
from aiaml_server.frontmatter import MAX_HEAD
from aiaml_server.sync import problem
from aiaml_server.toolsets.citations import words
from aiaml_server.toolsets.semantic import families
from clock import TooSlow
from growth import steep
from patterns import Given, Judge, Use, collected, modules

LITERALS = ["a", "aa", "a" * 50, "a b", "ab" * 20 + "c"]

ELSEWHERE = {
    "aiaml_server.doctor.place: re.fullmatch(pattern, part, re.IGNORECASE)": Given(
        lambda: place._CLOUDS
    ),
    "aiaml_server.cli.show: re.compile('|'.join(map(re.escape, longest)), re.IGNORECASE)": Given(
        lambda: ["|".join(map(re.escape, sorted(LITERALS, key=len, reverse=True)))]
    ),
    "aiaml_server.cli.show: re.compile(either, re.IGNORECASE)": Given(
        lambda: [rf"a b|(?<!\w)(?:{'|'.join(map(re.escape, LITERALS))})(?!\w)"]
    ),
    "aiaml_server.format.bm25: re.findall(f'(?<!\\\\w){before}(?:{there})\\\\w*', text)": Given(
        lambda: [
            rf"(?<!\w){before}(?:{re.escape(each)})\w*"
            for each in LITERALS
            for before in ("", r"\w*")
        ]
    ),
    "aiaml_server.format.scorer: "
    "re.compile(f'{letters}(?<=\\\\b(?s:.{{{len(keyword)}}}))\\\\b')": Given(
        lambda: [scorer._whole_word(each).pattern for each in LITERALS]
    ),
    "aiaml_server.toolsets.semantic.families: re.search(sign, name.lower())": Given(
        lambda: [*families.FAMILIES]
    ),
    "aiaml_server.server.protocol: re.fullmatch(pattern, uri)": Given(
        lambda: [r"a://b/(?P<c>[^/]+)/(?P<d>[^/]+)"]
    ),
    "aiaml_server.sync.problem: re.search(cause.words, text)": Given(
        lambda: [cause.words for cause in problem.causes()]
    ),
    "aiaml_server.format.secrets: re.compile(line.strip(), re.ASCII)": Given(list),
    "aiaml_server.toolsets.citations.words: re.compile(f'(?:{first})[^\\\\W_]*')": Given(
        lambda: [words._words_from(each).pattern for each in ([], ["a"], ["ab", "abc", "d"])],
        "finditer",
    ),
    "aiaml_server.toolsets.citations.repository: re.compile(translate(name))": Given(
        lambda: [translate(each) for each in ("*a*b*c", f"*{'a' * 50}b", "?[ab]*[!c]")], "match"
    ),
    "aiaml_server.index.tokens: re.finditer(b'[\\\\x%02x-\\xff]' % least, scores)": Given(
        lambda: [b"[\x07-\xff]"]
    ),
    "aiaml_server.index.ranking: re.compile(b'[\\\\x%02x-\\\\x%02x]' % (least, end - 1))": Given(
        lambda: [b"[\x07-\x60]"]
    ),
}
"""The calls whose expression is made elsewhere or on the spot, and what they get."""

USES = collected(ELSEWHERE)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """A process that may take for ever."""
    made = Judge()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.where} {use.method}"[-90:])
def test_the_time_of_an_expression_grows_with_its_text(judge: Judge, use: Use) -> None:
    """One commit, file, line or answer from elsewhere must not hold up everything.

    Each expression of the package gets what is hardest for it (see `patterns`).
    """
    if told := judge(use):
        raise TooSlow(told)


@pytest.mark.slow
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


def test_all_expressions_are_collected() -> None:
    """Those with a name, in a class, a table or a function, and each way of applying them."""
    where = {f"{use.where} {use.method}" for use in USES}
    assert {
        "aiaml_server.frontmatter._ITEM finditer",
        "aiaml_server.clients.toml._HEADER finditer",
        "aiaml_server.index.tokens._TERM findall",
    } <= where
    assert any(use.where.startswith("aiaml_server.doctor.syncing: re.match") for use in USES)


# --- the frontmatter ------------------------------------------------------------------------------

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


# --- nested values --------------------------------------------------------------------------------

OUR_OWN = {
    "sync.problem": "the table of our own package",
    "doctor.program": "what an installer wrote",
    "clients.launch": "what an installer wrote",
    "doctor.conversation": "what our own server answers",
    "server.protocol": "what was written the line before",
    "testing": "only tests import it",
    "frontmatter": "one quoted text",
    "toolsets.citations.usual": "one quoted text",
    "sync.remote": "what git writes for us",
}
"""Modules that read JSON or TOML that nobody else can have written, and why that is so."""


@pytest.mark.slow
def test_what_reads_nested_values_expects_too_many_of_them() -> None:
    """A parser that calls itself ends in RecursionError: for a few KB of brackets, in one file."""
    unguarded = {
        module.__name__.removeprefix("aiaml_server.")
        for module in modules()
        if module.__file__
        for call in _parsing(ast.parse(Path(module.__file__).read_text(encoding="utf-8")), "")
    }
    assert unguarded == set(OUR_OWN)


def _parsing(node: ast.AST, around: str) -> Iterator[ast.AST]:
    """Return the calls of parsers around which nothing expects a RecursionError."""
    for field, value in ast.iter_fields(node):
        inside = around
        if isinstance(node, ast.Try) and field == "body":
            inside += "".join(ast.unparse(each.type) for each in node.handlers if each.type)
        if isinstance(node, ast.With) and field == "body":
            inside += "".join(ast.unparse(each.context_expr) for each in node.items)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _parsing(child, inside)
    parsers = ("json.loads", "json.load", "tomllib.loads", "yaml.safe_load")
    is_parser = isinstance(node, ast.Call) and ast.unparse(node.func) in parsers
    if is_parser and "RecursionError" not in around:
        yield node


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
