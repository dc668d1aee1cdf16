"""Several memory directories of one person: which there are, and the one that is acted on."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.cli import directories
from aiaml_server.errors import InvalidSetting
from client import PYTHON
from printed import printed


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
