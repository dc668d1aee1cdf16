"""Several memory directories of one person: which there are, and one answer over all of them."""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import MemoryBank, Settings, directories
from aiaml_server.errors import InvalidSetting
from aiaml_server.memory import Memory
from client import PYTHON
from printed import printed

WORDS = ("dog", "dogs", "car", "house", "dogma", "tree")


def connected(home: Path, client: str, **variables: str) -> None:
    """Put an entry into a client's file."""
    entry = {"command": sys.executable, "args": ["-m", "aiaml_server"], "env": variables}
    file = home / f".{client}" / ("mcp.json" if client == "cursor" else "settings.json")
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"aiaml": entry}}), encoding="utf-8")


def aiaml(home: Path, base: Path, *words: str) -> Any:
    """Run a verb on a directory; return the JSON that it answers with."""
    environ = {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    said = printed([PYTHON, "-m", "aiaml_server", *words], env=environ, cwd=home).stdout
    return json.JSONDecoder().raw_decode(said[said.index("[") :])[0]  # beside what is noted


def test_they_are_those_that_clients_serve(home: Path) -> None:
    """That in use first; not those of other toolsets; each once, with a name of its own."""
    connected(home, "cursor", AIAML_MEMORY_DIR="~/work/memory")
    connected(home, "gemini", AIAML_MEMORY_DIR=str(home / "notes"), AIAML_TOOLSETS="sessions")
    base = home / "private" / ".memory"
    first, second = directories.known(base, home / "work" / "memory")
    assert first == ("private/.memory", base, ())
    assert second == ("work/memory", home / "work" / "memory", ("cursor",))
    (home / ".aiaml" / "files").mkdir(parents=True)
    found = directories.known(base)
    assert [each.name for each in found] == ["private/.memory", "work/memory", "aiaml"]


def test_a_name_or_a_path_is_a_directory_and_a_slip_is_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not there yet may be made, where it is clearly a path."""
    monkeypatch.chdir(home)
    (home / "here").mkdir()
    work = directories.Directory("work", home / "far" / "work")
    wanted = {"work": work.path, "here": home / "here", "~/new": home / "new", "a/b": home / "a/b"}
    for word, path in wanted.items():
        assert directories.found(word, [work]) == path
    for slip in ("wrok", ""):
        with pytest.raises(InvalidSetting, match="names work"):
            directories.found(slip, [work])


def test_one_that_cannot_be_read_hides_no_other(home: Path) -> None:
    """It is named, with the reason."""
    connected(home, "cursor", AIAML_MEMORY_DIR=str(home / "bad"))
    (home / "bad").mkdir()
    (home / "bad" / "files").write_text("no directory", encoding="utf-8")
    base = home / "good"
    MemoryBank(Settings(base, sync=False)).remember("claude", "ann", ["dog"], "Max")
    told = {each["name"]: each for each in aiaml(home, base, "dirs", "--json")}
    assert (told["good"]["memories"], told["bad"]["memories"]) == (1, None)
    assert "not a directory" in told["bad"]["problem"]
    for words in (["list"], ["search", "dog"]):
        found = aiaml(home, base, *words, "--all-dirs", "--json")
        assert [each["content"] for each in found] == ["Max"]
    environ = {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    shown = printed([PYTHON, "-m", "aiaml_server", "list", "--all-dirs"], env=environ, cwd=home)
    assert "Left out: " in shown.stdout
    assert shown.returncode == 0


def test_the_answer_over_all_is_that_over_one_with_all_in_it(home: Path) -> None:
    """Rank, order, numbers and pages."""
    drawn = random.Random(11)
    connected(home, "cursor", AIAML_MEMORY_DIR=str(home / "work"))
    bases = [home / "one", home / "work"]
    banks = [MemoryBank(Settings(each, sync=False)) for each in (*bases, home / "all")]
    for number in range(70):
        text = " ".join(drawn.choices(WORDS, k=6))
        memory = Memory.new("claude", "marco", [drawn.choice(WORDS)], text)
        stamp = f"2026-01-{1 + number // 3:02}T10:00:00.000000+00:00"
        memory = replace(memory, timestamp=stamp if number % 9 else "once")
        for bank in (drawn.choice(banks[:2]), banks[2]):
            bank.add(memory)
    for bank in banks:
        bank.close()
    for words in (("search", "dog", "tree"), ("list",), ("search", "car", "topic:dog"),
                  ("list", "topic:tree", "--limit", "3", "--page", "2")):  # fmt: skip
        over_one = aiaml(home, home / "all", *words, "--json")
        over_all = aiaml(home, bases[0], *words, "--json", "--all-dirs")
        for each in over_all:
            assert (Path(each.pop("directory")) / "files" / each["file"]).is_file()
        assert over_all == over_one
        assert over_one
