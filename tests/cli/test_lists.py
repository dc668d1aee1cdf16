"""Lists and searches as people see them: rows as wide as the terminal, and whole in a pipe."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from test_cli import at, run

from aiaml_server.rendering import title
from aiaml_server.terminal import display_width
from aiaml_server.timestamps import format_age, now

FORGET = ["forget", "topic:家", "--dry-run"]
WOULD = "1 memory would be forgotten; nothing was changed.\n"
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


@pytest.mark.parametrize("content", TITLES)
def test_a_title_is_the_first_line_with_a_word(content: str) -> None:
    """Without its markup."""
    assert title(content) == TITLES[content]


def test_an_age_takes_ten_columns() -> None:
    """Relative for thirty days; then, and for what is to come, the day."""
    assert format_age(now().isoformat()) == "now"
    assert format_age("2001-02-03T12:00:00") == format_age("2001-02-03") == "2001-02-03"
    assert format_age("2999-01-01") == "2999-01-01"
    assert format_age("soon") == "soon"


@pytest.mark.slow
def test_rows_fit_the_terminal_and_pipes_get_all(tmp_path: Path) -> None:
    """At each width no row is wider, none ends in blanks, and below 60 columns a memory has two."""
    env = at(tmp_path / "m")
    topics = [word for each in range(12) for word in ("-t", f"a-rather-long-topic-{each}")]
    run("remember", LONG, *topics, "-u", "a person with a long name", "-a", "claude", **env)
    run("remember", "東京に住む。" * 40, "-t", "家", "-u", "花子", "-a", "クロード", **env)
    for width in (40, 59, 60, 80, 120, 200):
        for words in (["list"], ["search", "claude", "東京"], FORGET):
            done = run(*words, **env, FORCE_TTY="1", COLUMNS=str(width), PYTHONUTF8="1")
            lines = done.stdout.removesuffix(WOULD).splitlines()
            assert lines and all(display_width(line) <= width for line in lines), done.stdout
            assert all(line == line.rstrip() for line in lines)
            if words == ["list"]:
                assert len(lines) == (4 if width < 60 else 2)
                assert "First words" in done.stdout
    env["AIAML_ENABLE_SYNC"] = "true"
    assert run("sync", **env).returncode == 0
    for width in (40, 59, 60, 80):
        for words in (
            ["log"],
            ["history", json.loads(run("log", "--json", **env).stdout)[0]["id"]],
        ):
            done = run(*words, **env, FORCE_TTY="1", COLUMNS=str(width), PYTHONUTF8="1")
            lines = done.stdout.splitlines()
            assert lines and all(display_width(line) <= width for line in lines), done.stdout
            assert re.search("First|東京", done.stdout)
            rows = 2 if words == ["log"] else 1
            assert len(lines) == (rows if width == 80 else 2 * rows), done.stdout
    env["AIAML_ENABLE_SYNC"] = "false"
    piped = run("list", "--all", **env, COLUMNS="40", PYTHONUTF8="1").stdout.splitlines()
    assert [line.count("\t") for line in piped] == [5, 5]
    assert piped[1].split("\t")[2:4] == ["claude", "a person with a long name"]
    assert piped[1].endswith("allergic to 東京")
    found = run("search", "allergic", "--as-agent", "--json", **env, PYTHONUTF8="1")
    (hit,) = json.loads(found.stdout)
    assert hit["relevance_score"] == 2


@pytest.mark.slow
def test_a_search_is_exact_about_how_many_there_are(tmp_path: Path) -> None:
    """Of all that are meant, not of the 25 that agents are given."""
    env = at(tmp_path / "m")
    fill(tmp_path, env)
    for words, shown, told in (
        (["word"], 25, "25 of 43: `--all` shows all of them."),
        (["word", "agent:cursor"], 15, ""),
        (["word", "--agent", "claude", "-n", "3"], 3, "3 of 28"),
        (["word", "--all"], 43, ""),
    ):
        done = run("search", *words, **env)
        assert len(done.stdout.splitlines()) == shown
        assert done.stderr.startswith(told) if told else not done.stderr
    assert run("list", "user:bob", **env).returncode == 1


def fill(directory: Path, env: dict[str, str]) -> None:
    """Store 43 memories of two agents."""
    lines = [
        {"id": f"{number:08x}", "timestamp": f"2026-01-01T00:00:{number:02}Z", "user": "ann",
         "agent": "claude" if number % 3 else "cursor", "topics": ["x"], "content": "word"}
        for number in range(43)
    ]  # fmt: skip
    source = directory / "notes.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert run("import", str(source), "--yes", **env).returncode == 0


@pytest.mark.slow
def test_what_a_filter_forgot_comes_back_as_a_whole(tmp_path: Path) -> None:
    """By the command that is printed, byte for byte; and by the file that was written first."""
    base = tmp_path / "m"
    env = at(base, AIAML_ENABLE_SYNC="true", GIT_CONFIG_GLOBAL=os.devnull)
    fill(tmp_path, env)
    assert run("sync", **env).returncode == 0
    before = {path.name: path.read_bytes() for path in (base / "files").glob("*.md")}
    target = tmp_path / "gone.zip"
    done = run("forget", "agent:claude", "--export", str(target), "--dry-run", **env)
    assert done.stdout.splitlines()[-2:] == [
        "… and 3 more.",
        "28 memories would be forgotten; nothing was changed.",
    ]
    assert not target.exists()
    done = run("forget", "agent:claude", "--export", str(target), "--yes", **env)
    assert done.stdout.startswith("Forgot 28 memories.\n"), done.stdout + done.stderr
    assert len(list((base / "files").glob("*.md"))) == 15
    again = run("forget", "agent:cursor", "--export", str(target), "--yes", **env)
    assert (again.returncode, "is there already; name another" in again.stderr) == (1, True)
    undo = re.search("`aiaml (restore [^`]+)`", " ".join(done.stdout.split()))
    assert undo
    assert run(*undo[1].split(), "--yes", **env).returncode == 0
    assert before == {path.name: path.read_bytes() for path in (base / "files").glob("*.md")}
    elsewhere = at(tmp_path / "other")
    assert run("import", str(target), "--yes", **elsewhere).returncode == 0
    for path in (tmp_path / "other" / "files").glob("*.md"):
        assert before[path.name] == path.read_bytes()
