"""What an agent can read in a memory, a person is shown: on the terminal and on pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import at, run
from test_cli_output import HOSTILE, is_visible
from test_cli_output import memory as hand_made

from aiaml_server.format.memory import Memory
from aiaml_server.rendering import paragraphs
from aiaml_server.rendering.commonmark import text_of
from aiaml_server.rendering.html import safe_html
from aiaml_server.rendering.terminal import rendered
from aiaml_server.terminal import safe, unstyled


def on_terminal(markdown: str) -> str:
    """Return what `show` prints of a text, without styles."""
    return safe(unstyled(rendered(markdown)))


def on_page(markdown: str) -> str:
    """Return the text that the page of `aiaml web` shows."""
    return text_of(safe_html(markdown))


def memory(content: str) -> Memory:
    """Return a memory with any content."""
    return Memory("abcd1234", "2026-01-02T00:00:00+00:00", "a", "u", ("t",), content)


PLACES = {"terminal": on_terminal, "page": on_page}
places = pytest.mark.parametrize("shown_at", PLACES.values(), ids=PLACES)

HIDING = {
    "deep quotation": "> " * 22 + "obey me",
    "deep list": "".join("  " * n + f"- level{n}\n" for n in range(30)),
    "definition": "[x]: http://y.example 'secret words'",
    "comment by definition": "[//]: # (secret words)",
    "repeated definition": "[a]\n\n[a]: http://one\n[a]: http://two 'secret'",
    "reference": "[text][label words]\n\n[label words]: http://y.example",
    "info string": "```python secret words\ncode\n```",
    "info of tildes": "~~~ secret\ncode\n~~~",
    "title of a link": "[x](http://y.example 'secret words')",
    "address of a link": "[x](http://y.example/secret-words)",
    "percent in an address": "[x](https://de.example/M%C3%BCnchen/München)",
    "title of an image": '![alt words](http://y.example "secret")',
    "image in a link": '[![alt](http://i.example/one "two")](http://y.example/three "four")',
    "image by reference": "![alt][ref]\n\n[ref]: http://y.example/secret 'words'",
    "table of nine columns": "|" + "|".join(f"head{n}" for n in range(9)) + "|\n" + "|-" * 9 + "|\n"
    + "|" + "|".join(f"https://example.org/{n}/longer" for n in range(9)) + "|",
    "too many cells": "| a | b |\n|---|---|\n| 1 | 2 | secret | words |",
    "html comment": "<!-- secret words -->",
    "html in a line": "x <b title='secret'>bold</b> y",
    "html block": "<details>\n<summary>one</summary>\nsecret\n</details>",
    "numbers of a list": "3. a\n9. b\n7. c",
    "leading zeros": "007. bond",
    "entities": "&#115;&#101;cret &amp; &copy; `&amp; &lt;b&gt;`",
    "numeric entities in code": "`&#115;&#101;`",
    "entities in the deep": "> " * 22 + "&#115;&#101;&#99;",
    "among names of entities": "> " * 22 + "outline\n\n`&CounterClockwiseContourIntegral;`",
    "setext": "Title words\n===\n\nOther\n---",
    "hard breaks": "one  \ntwo\\\nthree",
    "escapes": r"\*one\* \[two\] \<three>",
    "strike": "~~secret~~",
}  # fmt: skip


def words(text: str) -> list[str]:
    """Return the words of a text, percent codes and entities apart."""
    return re.findall(r"[a-z]{3,}|[0-9]+", re.sub("&[#a-z0-9]+;", " ", text.lower()))


@places
@pytest.mark.parametrize("markdown", HIDING.values(), ids=HIDING)
def test_every_word_is_shown(markdown: str, shown_at: Callable[[str], str]) -> None:
    """None is left out, by whatever of markdown's ways."""
    shown = shown_at(markdown).lower()
    assert [word for word in words(markdown) if word not in shown] == []


@places
def test_what_entities_spell_is_shown(shown_at: Callable[[str], str]) -> None:
    """Either the letters or the codes."""
    assert "sec" in shown_at("&#115;&#101;&#99;")
    for hidden in (HIDING["entities in the deep"], HIDING["numeric entities in code"]):
        assert "&#115;&#101;" in shown_at(hidden)


WORDS = st.integers(0, 10**9).map(lambda number: f"w{number}x")
INLINE = st.one_of(
    WORDS,
    st.builds("**{}** _{}_".format, WORDS, WORDS),
    st.builds("`{}`".format, WORDS),
    st.builds("[{}](http://h.example/{} '{}')".format, WORDS, WORDS, WORDS),
    st.builds('![{}](http://h.example/{} "{}")'.format, WORDS, WORDS, WORDS),
    st.builds("[{}][{}]".format, WORDS, WORDS),
    st.builds("<http://h.example/{}>".format, WORDS),
    st.builds("<i a='{}'>{}</i>".format, WORDS, WORDS),
    st.builds("~~{}~~ &#x202e; \u200b\\".format, WORDS),
)
LEAF = st.one_of(
    st.lists(INLINE, min_size=1, max_size=4).map(" ".join),
    st.builds("[{}]: http://h.example/{} '{}'".format, WORDS, WORDS, WORDS),
    st.builds("```{} {}\n{}\n```".format, WORDS, WORDS, WORDS),
    st.builds("    {}".format, WORDS),
    st.builds("# {} #".format, WORDS),
    st.builds("{}\n===".format, WORDS),
    st.builds("<!-- {}\n{} -->".format, WORDS, WORDS),
    st.builds("|{}|{}|\n|-|-|\n|{}|{}|{}|".format, *[WORDS] * 5),
    st.sampled_from(["---", "", "<div>"]),
)


def inside(mark: str, text: str) -> str:
    """Put a text into a quotation or a list."""
    first, *rest = text.split("\n")
    other = mark if mark == "> " else " " * len(mark)
    return "\n".join([mark + first, *(other + line for line in rest)])


DOCUMENT = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("\n\n".join),
        st.lists(inner, min_size=1, max_size=3).map("\n".join),
        st.builds(inside, st.sampled_from(["> ", "- ", "7. ", "12) ", "> " * 9, "- " * 12]), inner),
    ),
    max_leaves=8,
)


@given(DOCUMENT)
def test_every_word_of_any_document_is_shown(document: str) -> None:
    """However the ways of hiding are put together."""
    for shown_at in PLACES.values():
        shown = shown_at(document)
        assert [word for word in re.findall("w[0-9]+x", document) if word not in shown] == []
        assert is_visible(shown)


@given(st.text(alphabet="abc1 <>&\"'`*_[]()!:/\\#-|~\n\t=.;x\u202e\u200b", max_size=120))
def test_every_letter_of_any_text_is_shown(text: str) -> None:
    """Also where the signs of markdown make no sense."""
    letters = re.sub("[^abc1]", "", re.sub("&[^;]*;", "", text))
    for shown_at in PLACES.values():
        shown = iter(shown_at(text))
        assert all(letter in shown for letter in letters)


@places
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_invisible_is_shown(text: str, shown_at: Callable[[str], str]) -> None:
    """As code points, wherever it stands; also what an entity stands for."""
    coded = "".join(f"&#{ord(each)};" for each in text if ord(each) > 0x9F)
    for markdown in (text, f"`{text}`", f"- {text}\n\n|{text}|\n|-|", f"[a](http://x '{text}')"):
        shown = shown_at(f"{markdown}\n\n{coded}")
        assert is_visible(shown)
        assert "‹U+" in shown


def test_every_field_is_shown_whole(tmp_path: Path) -> None:
    """Also a time that is none, and a name on many lines."""
    stated = {"timestamp": "2026 is the year\nto obey", "agent": "cl" + "au" * 99 + "de\nsecret"}
    hand_made(tmp_path / "m", "a.md", topics="[one]", **stated)
    env = at(tmp_path / "m")
    for verb in ("show abcd1234",):
        said = run(*verb.split(), **env).stdout
        for words_ in ("to obey", "secret", "one", "au" * 99):
            assert words_ in said, verb


# --- how it looks and how long it takes -----------------------------------------------------------


def test_a_table_fits_or_is_given_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """In columns where these have room; otherwise nothing is cut."""
    table = "| name | what |\n|---|---|\n| one | the first thing |"
    monkeypatch.setenv("COLUMNS", "80")
    assert on_terminal(table).split("\n") == [
        "name │ what",
        "─────┼────────────────",
        "one  │ the first thing",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    wide = table.replace("thing", "thing of all that there are")
    assert on_terminal(wide).split("\n") == [
        "name │ what",
        "one │ the first thing of all that",
        "  there are",
    ]


@pytest.mark.parametrize("columns", [40, 50, 80])
def test_lines_break_between_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal, and no word is cut."""
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "some *words that* are `put here` and [there](http://x.example) again " * 5
    for markdown in (text, f"> - {text}", f"1. {text}\n2. {text}", f"# {text}"):
        lines = on_terminal(markdown).split("\n")
        assert len(lines) > 3
        assert max(map(len, lines)) <= columns
        assert set(" ".join(lines).split()) >= {"words", "that", "(http://x.example)"}


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("piece", ["- a\n", "word ", "```\n", "|a|b|\n", "\x1b\u202e", "\u200d"])
def test_a_memory_of_a_mebibyte_is_shown_at_once(piece: str, tmp_path: Path) -> None:
    """Above some size it stands as it is written, and it says so."""
    content = (piece * (1024 * 1024 // len(piece.encode())))[: 1024 * 1024]
    file = tmp_path / "m" / "files" / "a.md"
    file.parent.mkdir(parents=True)
    head = "id: abcd1234\ntimestamp: 2026-01-02\nagent: a\nuser: b\ntopics: [c]"
    file.write_text(f"---\n{head}\n---\n\n{content}\n", encoding="utf-8")
    env = at(tmp_path / "m")
    run("list", **env)  # the index is made
    done = run("show", "abcd1234", **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Shown as it stands: it is longer than 32 KiB, or has more than" in done.stdout


LINE = st.tuples(
    st.sampled_from("aZé"), st.text("ab Zé1.)-+=#>|!:'\"(/$", max_size=60) | st.text(max_size=12)
).map("".join)


@given(st.lists(LINE | st.just(""), max_size=6).map("\n".join))
def test_prose_is_shown_without_the_parser_as_with_it(text: str) -> None:
    """A paragraph with markup in front of it has the parser used."""
    if paragraphs(text):
        assert rendered(text) == rendered(f"*x*\n\n{text}").partition("\n")[2].strip("\n")


@pytest.mark.parametrize(
    "text",
    [
        "- a", "1. a", "a\n===", "a\n---", "    a", "# a", "a  \nb", "a\n- b", "a_b_", "a\u200bb",
        "<b>", "&amp;", "a\\*", "~~a~~", "![a](b)", "|a|\n|-|", "a\tb", "\ta", "> a",
    ],
)  # fmt: skip
def test_what_may_be_markup_is_parsed(text: str) -> None:
    """What is no prose for sure is left to the parser."""
    assert paragraphs(text) is None


def test_prose_is_known_as_such() -> None:
    """Signs that mean nothing inside a line do not send it to the parser."""
    assert paragraphs("Anna's dog: C#, 3 > 2 (so).\nMore\n\n\nÉnd 1.\n") == [
        ["Anna's dog: C#, 3 > 2 (so).", "More"],
        ["Énd 1."],
    ]
