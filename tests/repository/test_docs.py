"""What the documents say of the command line is what the program says of itself."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from aiaml_server.cli.app import VERBS
from paths import ROOT, TESTS

DOCS = ROOT / "docs"
TRANSCRIPTS = TESTS / "transcripts"
WITHOUT = {"serve", "demo"}
"""Verbs that speak MCP, which other tests do."""


@pytest.fixture(scope="module")
def commands() -> ModuleType:
    """Load the script that writes the pages."""
    spec = importlib.util.spec_from_file_location("commands", DOCS / "commands.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_verb_has_its_page_as_the_program_has_it(commands: ModuleType) -> None:
    """`python docs/commands.py` writes them; a verb that is gone has none."""
    written = {
        path.name: path.read_text(encoding="utf-8") for path in (DOCS / "commands").iterdir()
    }
    assert written == commands.pages()


@pytest.mark.skipif(sys.platform == "win32", reason="the block elements of old consoles differ")
def test_the_picture_shows_what_is_printed(commands: ModuleType) -> None:
    """The words in it, in their order; fonts and sizes are rich's affair."""
    assert words((DOCS / "terminal.svg").read_text(encoding="utf-8")) == words(commands.picture())


def words(svg: str) -> list[str]:
    """Return the words in a picture, in their order."""
    return re.findall(r">([^<>]+)</text>", svg)


def test_the_recording_shows_what_the_demonstration_prints(commands: ModuleType) -> None:
    """Part after part, of which each has its time; nothing of it is loaded from elsewhere."""
    svg = (DOCS / "demo.svg").read_text(encoding="utf-8")
    assert words(svg) == words(commands.recording())
    shown = [int(part) for part in re.findall(r'<text class="[^"]* part(\d+)" ', svg)]
    assert len(shown) == svg.count("<text ") - 1  # the title is always there
    assert shown == sorted(shown)
    times = re.findall(r"@keyframes part(\d+) .* ([\d.]+)% \{ opacity: 1 \}", svg)
    assert [int(part) for part, _ in times] == sorted(set(shown))
    assert len({at for _, at in times}) == len(times) and times[0][1] == "0.0"
    assert not re.search(r"url\((?!#)|(?:href|src)=", svg)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in WITHOUT])
def test_every_verb_has_a_transcript(verb: str) -> None:
    """A good case, an empty store and bad input are in it."""
    text = (TRANSCRIPTS / f"{verb}.txt").read_text(encoding="utf-8")
    assert text.count(f"aiaml {verb}") >= 3
    assert re.search(r"^\[[123]\]$", text, re.MULTILINE)


@pytest.mark.slow
def test_every_verb_has_examples_in_its_help(commands: ModuleType) -> None:
    """`--help` teaches."""
    for verb in VERBS:
        if verb not in WITHOUT:
            assert "Example" in commands.pages()[f"{verb}.md"], verb


def test_the_overview_cuts_no_sentence_short(commands: ModuleType) -> None:
    """What each verb does fits on its line, also at 80 columns."""
    assert not re.search(r"^  \w+ .*\.\.\.$", commands.pages()["README.md"], re.MULTILINE)
