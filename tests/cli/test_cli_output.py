"""Nothing that a file, a name, a remote or an error says reaches a terminal but as visible text."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import unicodedata
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server import terminal
from aiaml_server.cli import app
from aiaml_server.format.invisible import inert, marked, marked_line
from aiaml_server.toolsets.sessions.service import AgentMemory
from command_line import at, call, run
from machine import commit_by_hand, git

TITLE = "\x1b]0;owned\x07"
CLIPBOARD = "\x1b]52;c;b3duZWQ=\x07"
HOSTILE = {
    "an escape sequence": TITLE,
    "the clipboard": CLIPBOARD,
    "a colour of its own": "\x1b[30m",
    "C1": "\x9b31m\x9d0;owned\x9c",
    "DEL and backspace": "\x7f\x08",
    "direction": "\u202egnp.exe\u202c\u2066\u200f",
    "zero width": "\u200b\u2060\ufeff\u00ad",
    "tags": "\U000e0001\U000e0068\U000e0069",
    "selectors": "a\ufe01\U000e0121\U000e0122",
    "fillers": "\u3164\u115f\uffa0\u2800"[:3],
    "other ends of lines": "a\x0bb\x0cc\x85d\u2028e\u2029f\rg",
}


def is_visible(text: str) -> bool:
    """Say whether a text holds nothing that a person could not see, or a terminal obey."""
    return all(
        each in "\n\t" or unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for each in text
    )


def memory(base: Path, name: str, **stated: str) -> Path:
    """Put a file by other hands into a store; values are written as JSON strings."""
    head = {"id": "abcd1234", "timestamp": "2026-01-02", "agent": "a", "user": "u"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in {**head, **stated}.items()]
    content = stated.get("content", "text")
    text = "\n".join(["---", *(line for line in lines if "content:" not in line[:8])])
    path = base / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    topics = "" if "topics" in stated else "topics: [t]\n"
    path.write_text(f"{text}\n{topics}---\n\n{content}\n", encoding="utf-8", newline="")
    return path


# --- the rule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_is_invisible_is_marked(text: str) -> None:
    """Each character appears as its code point, and everything visible as it is."""
    shown = marked(text)
    assert is_visible(shown)
    assert re.sub(r"‹U\+([0-9A-F]+)›", lambda m: chr(int(m[1], 16)), shown) == text
    assert "\n" not in marked_line(f"{text}\n\t")


@pytest.mark.slow
@given(st.text())
def test_nothing_is_lost_in_marking(text: str) -> None:
    """Whatever the text, each character stands there, as it is or as its code point."""
    whole = text.replace("\r\n", "\n")
    assert re.sub(r"‹U\+([0-9A-F]+)›", lambda m: chr(int(m[1], 16)), marked(text)) == whole


BELONGING = [
    "👩\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 ☎\ufe0f 1\ufe0f\u20e3 ©\ufe0f 👍🏽",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "क्\u200dष",
    "葛\U000e0100城",
    "café naïve 漢字 עברית",
    "tab\tend\n",
]
ELSEWHERE = ["a\u200db", "👍\ufe0f\ufe0f", "葛\U000e0100\U000e0101", "a\ufe0f", "\ufe0f"]


@pytest.mark.parametrize("text", BELONGING)
def test_what_belongs_to_a_visible_character_stays(text: str) -> None:
    """Emoji, Persian, Hindi and names in Japanese are no attack."""
    assert marked(text) == text


@pytest.mark.parametrize("text", ELSEWHERE)
def test_the_same_characters_elsewhere_are_marked(text: str) -> None:
    """Between Latin letters, or one behind the other, they carry what nobody sees."""
    assert "‹U+" in marked(text)


COMMANDS = [
    "::add-mask::e",
    "text\n \t\u3000::set-output name=x::y",
    "a ##[set-output name=a]b",
    "##vso[task.setvariable variable=a]b",
    "###teamcity[buildStop]",
]
WORDS = [":::note", "::", "a::b::c", "  std::string", "# [a]", "## [Unreleased]", "#[derive()]"]


def is_obeyed(text: str) -> bool:
    """Say whether CI takes a line for a command."""
    return any(
        re.match(r"::[^:].*::", line.strip()) or re.search(r"##\w*\[", line)
        for line in text.split("\n")
    )


@pytest.mark.parametrize("text", COMMANDS)
def test_what_ci_obeys_is_marked(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In all that is printed, also where only a style stands within; JSON says the same."""
    assert is_obeyed(text) and not is_obeyed(inert(text))
    styled = text.replace(":", terminal.bold(":")).replace("#", terminal.dim("#"))
    terminal.echo(styled)
    terminal.notify(f"{terminal.bold('')}{text}")
    shown = capsys.readouterr()
    assert not is_obeyed(shown.out) and not is_obeyed(shown.err)
    terminal.echo_json({text: [text]})
    answer = capsys.readouterr().out
    assert not is_obeyed(answer) and json.loads(answer) == {text: [text]}


@pytest.mark.parametrize("text", WORDS)
def test_what_ci_does_not_obey_stays(text: str) -> None:
    """Such as a heading, a container of markdown or a name in C++."""
    assert inert(text) == text


def test_questions_and_the_status_line_are_safe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They may name a directory or an address."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * len(HOSTILE)))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    for text in HOSTILE.values():
        terminal.confirm(text)
        terminal.show_status(text)
        shown = capsys.readouterr().err
        assert is_visible(re.sub(r"\r(\x1b\[K)?|\x1b\[[02]m", "", shown)), text


# --- the verbs ------------------------------------------------------------------------------------

POSIX_NAMES = pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with each hostile text in every field of two files by other hands."""
    base = tmp_path_factory.mktemp("hostile") / "m"
    for number, text in enumerate(HOSTILE.values()):
        stated = {"agent": f"a{text}", "user": f"u{text}", "timestamp": f"2026{text}"}
        content = f"word {text}\n\n`{text}`"
        memory(base, f"{number}.md", id=f"abcd{number:04}", content=content, **stated)
        memory(base, f"{number}b.md", id=f"{number:04}{text}", topics=f"[t{text}]", content="word")
    return at(base)


LINES = (
    "list --all", "search word", "stats", "doctor files", "show @", "forget @",
    "forget @ --dry-run", "list --all --json", "show --json @", "search word --json",
)  # fmt: skip


@pytest.mark.parametrize("terminal_env", [{}, {"FORCE_TTY": "1"}], ids=["pipe", "terminal"])
def test_no_command_sends_what_a_memory_holds(
    terminal_env: dict[str, str], store: dict[str, str]
) -> None:
    """Every field of a file by other hands, in every command that shows memories."""
    ids = [f"abcd{number:04}" for number in range(len(HOSTILE))]
    ids += [f"{number:04}" for number in range(len(HOSTILE))]
    for line in LINES:
        words = line.replace(" @", "").split() + (ids if "@" in line else [])
        done = call({**store, **terminal_env}, *words)
        assert is_visible(done.stdout + done.stderr), line
        assert "bug" not in done.stderr, line


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_json_is_visible_and_says_the_same(encoding: str, store: dict[str, str]) -> None:
    """What programs read holds the same values, and no invisible character of its own."""
    env = {**store, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    said = run("list", "--all", "--json", **env).stdout
    assert is_visible(said)
    agents = {each["agent"] for each in json.loads(said)}
    assert agents == {"a", *(f"a{text}" for text in HOSTILE.values())}


def test_a_terminal_with_few_characters_shows_what_it_lacks_as_escapes(tmp_path: Path) -> None:
    """It is no reason to fail."""
    memory(tmp_path / "m", "a.md", content="- \u6f22 caf\u00e9")
    env = at(tmp_path / "m", PYTHONUTF8="0", PYTHONIOENCODING="ascii", COLUMNS="40")
    said = run("show", "abcd1234", **env).stdout
    assert "\\u6f22 caf\\xe9" in said


@POSIX_NAMES
def test_an_error_sends_no_escape_sequence(tmp_path: Path) -> None:
    """An ambiguous id, a file that is no memory, a verb and an option: what is quoted is shown."""
    env = at(tmp_path / "m")
    for number in (1, 2):
        memory(tmp_path / "m", f"{number}.md", id=f"abcd{TITLE}{number}")
    (tmp_path / "m" / "files" / f"bad{TITLE}\nabcd.md").write_text("no memory")
    for words in (
        ["show", "abcd"],
        ["list"],
        ["search", "text"],
        ["doctor", "files"],
        [f"li{TITLE}st"],
        ["list", f"--{CLIPBOARD}"],
        ["show", f"x{CLIPBOARD}"],
        ["import", f"no{TITLE}file"],
        ["list", "--since", f"x{TITLE}"],
    ):
        done = call(env, *words)
        assert is_visible(done.stdout + done.stderr), (words, done)
        assert "‹U+001B›" in done.stdout + done.stderr or "\\x1b" in done.stderr, (words, done)
        assert not re.search("^abcd.md", done.stderr, re.MULTILINE), "a name began a line"


@pytest.mark.slow
def test_a_commit_sends_no_escape_sequence(tmp_path: Path) -> None:
    """Names and subjects of commits are shown."""
    base = tmp_path / "m"
    env = at(base, AIAML_ENABLE_SYNC="true")
    assert run("remember", "text", "-t", "x", **env).returncode == 0
    (base / "files").joinpath("new.md").write_text("x")
    commit_by_hand(base, f"subject {CLIPBOARD}", "files/new.md", who=f"Mallory{TITLE}x")
    for words in (["log"], ["log", "--json"], ["log", "new.md"], ["status"], ["restore", "new.md"]):
        done = run(*words, **env)
        assert is_visible(done.stdout + done.stderr), (words, done)
        assert "Traceback" not in done.stderr
    assert json.loads(run("log", "--json", **env).stdout)[0]["author"] == f"Mallory{TITLE}x"


@pytest.mark.slow
def test_no_verb_of_sessions_sends_what_a_repository_holds(tmp_path: Path) -> None:
    """Logs, summaries and schemas by other hands, and names of files and directories."""
    git(tmp_path, "init", "--quiet")
    memory = AgentMemory(str(tmp_path), "aristotle")
    memory.start_session("2025-01-20")
    for number, text in enumerate(HOSTILE.values()):
        day = f"2025-02-{number + 1:02}"
        memory.start_session(day)
        log = memory.directory.path / "logs" / f"{day}.md"
        with log.open("a", encoding="utf-8", newline="") as stream:
            stream.write(f"\n{text}\n\n## Section {text}\n\n## Section {text}\n")
        if os.name == "posix":
            (log.parent / f"{text}\n.md").write_text("x")
            (memory.directory.path.with_name(f"agent{text}") / "logs").mkdir(parents=True)
    lines = [["check", str(tmp_path), *more] for more in ([], ["--json"])]
    for words in lines:
        done = run("sessions", *words, **at(tmp_path / "m"))
        assert is_visible(done.stdout + done.stderr), words
        assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2), done.stderr


def test_no_verb_of_compartments_sends_what_the_file_holds(tmp_path: Path) -> None:
    """What is wrong with a file by other hands is quoted."""
    path = tmp_path / "memory.json"
    env = at(tmp_path / "m", AIAML_COMPARTMENTS_FILE=str(path), AIAML_TOOLSETS="compartments")
    for text in HOSTILE.values():
        entries = [{"id": f"i{text}", "content": f"c{text}", "category": f"k{text}"}]
        path.write_text(json.dumps({"format": 1, "sessions": {f"o{text}": {"plan": entries}}}))
        for words in (["compartments", "show"], ["doctor", "toolsets"]):
            done = call(env, *words)
            assert is_visible(done.stdout + done.stderr), words
            assert "bug" not in done.stderr


# --- programs that read it ------------------------------------------------------------------------

READING = {"list", "search", "show", "stats", "log", "status", "doctor", "trust", "install"}


def test_every_reading_command_has_json() -> None:
    """So that no program has to read what is made for people."""
    context = click.Context(app.aiaml)
    for name in READING:
        command = app.aiaml.get_command(context, name)
        assert command and any("--json" in each.opts for each in command.params), name


# --- mistakes of our own --------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """An environment in which every verb that asks for the newest meets a mistake of ours."""
    (tmp_path / "sitecustomize.py").write_text(
        "import aiaml_server.index.index\n"
        f"def fail(*_): raise KeyError('dir{TITLE}')\n"
        "aiaml_server.index.index.Index.dated = fail\n"
    )
    return at(tmp_path / "m", PYTHONPATH=str(tmp_path))


def test_a_mistake_of_ours_is_a_sentence(broken: dict[str, str]) -> None:
    """It says what happened and what to do, ends with 3, and shows no traceback."""
    done = run("list", **broken)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "KeyError: 'dir\\x1b" in done.stderr
    assert "Please report it" in done.stderr


def test_the_traceback_is_there_for_who_asks(broken: dict[str, str]) -> None:
    """AIAML_LOG_LEVEL=DEBUG shows where it happened."""
    done = run("list", **broken, AIAML_LOG_LEVEL="DEBUG")
    assert done.returncode == 1
    assert "in fail" in done.stderr
    assert is_visible(done.stderr)
