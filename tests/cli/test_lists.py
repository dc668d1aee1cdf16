"""Lists and searches: rows that fit the terminal, whole lines in a pipe, exact counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from aiaml_server.rendering import title
from command_line import at, call

LONG = "First **words** of a note.\n\n" + "more of it\n" * 200 + "\tallergic to 東京\n"
TITLES = {
    "# Heading\n\ntext": "Heading",
    "\n\n---\n\n- [ ] **Buy** `milk`, [now](https://x.y)\n": "Buy milk, now",
    "> > 1. quoted _words_ snake_case": "quoted _words_ snake_case",
    "```python\nx = 1\n```": "x = 1",
    "| item | cost |\n|---|---|": "item · cost",
    "## C# and C++ ##": "C# and C++",
    "![a picture](x.png)": "a picture",
    "-5 degrees": "-5 degrees",
    "***": "***",
    "": "",
}


def test_a_title_is_the_first_line_with_a_word() -> None:
    """Without its markup."""
    assert {content: title(content) for content in TITLES} == TITLES


def test_rows_fit_the_terminal_and_pipes_get_all(tmp_path: Path) -> None:
    """Two lines for each memory at any width; in a pipe one, with the whole text."""
    env = at(tmp_path / "m")
    topics = [word for each in range(12) for word in ("-t", f"a-rather-long-topic-{each}")]
    call(env, "remember", LONG, *topics, "-u", "a person with a long name", "-a", "claude")
    call(env, "remember", "東京に住む。" * 40, "-t", "家", "-u", "花子", "-a", "クロード")
    for width in (1, 40, 80, 200):
        for words in (["list"], ["search", "claude", "東京"], ["forget", "topic:家", "--dry-run"]):
            done = call({**env, "FORCE_TTY": "1", "COLUMNS": str(width)}, *words)
            lines = [line for line in done.stdout.splitlines() if "would be" not in line]
            assert lines and all(cell_len(line) <= max(width, 40) for line in lines), lines
            assert all(line == line.rstrip() for line in lines)
    piped = call({**env, "COLUMNS": "40"}, "list").stdout.splitlines()
    assert [line.count("\t") for line in piped] == [5, 5]
    assert piped[1].split("\t")[2:4] == ["claude", "a person with a long name"]
    assert piped[1].endswith("allergic to 東京")


def test_log_in_a_pipe_has_whole_titles(tmp_path: Path) -> None:
    """They can be searched; on a terminal a line is cut at its width."""
    env = at(tmp_path / "m", AIAML_ENABLE_SYNC="true", COLUMNS="40")
    call(env, "remember", f"{'word ' * 60}end", "-t", "x")
    assert call(env, "log").stdout.endswith("word end\n")
    (line,) = call({**env, "FORCE_TTY": "1"}, "log").stdout.splitlines()
    assert cell_len(line) <= 40


def test_a_search_is_exact_about_how_many_there_are(tmp_path: Path) -> None:
    """Of all that are meant, not of the 25 that agents are given."""
    env = at(tmp_path / "m")
    files = tmp_path / "m" / "files"
    files.mkdir(parents=True)
    for number in range(43):
        agent = "claude" if number % 3 else "cursor"
        head = f"id: {number:08x}\ntimestamp: 2026-01-01T00:00:{number:02}Z\nagent: {agent}"
        (files / f"{number}.md").write_text(f"---\n{head}\nuser: ann\ntopics: [x]\n---\n\nword\n")
    for words, shown, note in (
        (["word"], 25, "25 of 43; --all shows all."),
        (["word", "agent:cursor"], 15, ""),
        (["word", "--agent", "claude", "-n", "3"], 3, "3 of 28"),
        (["word", "before:2026-01-01T00:00:10Z"], 10, ""),
        (["word", "--all"], 43, ""),
    ):
        done = call(env, "search", *words)
        assert len(done.stdout.splitlines()) == shown, words
        assert done.stderr.startswith(note) and bool(done.stderr) == bool(note)


@pytest.mark.parametrize("words", [["--until", "2026-01-01"], ["until:2026-01-01"]])
def test_one_option_has_one_meaning(words: list[str], tmp_path: Path) -> None:
    """`--before` is a date made; there is no other word for it."""
    assert call(at(tmp_path / "m"), "list", *words).code == 2


def test_json_has_the_whole_memory(tmp_path: Path) -> None:
    """Not a cut or relative one."""
    env = at(tmp_path / "m")
    call(env, "remember", LONG, "-t", "x")
    (memory,) = json.loads(call({**env, "COLUMNS": "40"}, "list", "--json").stdout)
    assert memory["content"] == LONG
