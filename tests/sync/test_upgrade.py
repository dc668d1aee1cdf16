"""What an earlier version has left in a person's directories goes on working, and stays theirs.

`fixtures/upgrade/` holds home directories as earlier versions left them after three memories,
a sync and an `aiaml install`; each is called after what has changed since.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from client import Client
from machine import CLEAN
from paths import TESTS
from printed import completed, inherited

OLD = sorted((TESTS / "fixtures/upgrade").glob("*.zip"))


@pytest.fixture(params=OLD, ids=lambda path: path.stem)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a person's home directory, as an earlier version left it."""
    place = tmp_path / "home"
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(place)
    return place


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a program started in that home directory."""
    places = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"), str(home))
    return {**inherited("XDG_"), **CLEAN, **places, "PYTHONUTF8": "1"}


def aiaml(home: Path, *words: str) -> str:
    """Run a verb in that home directory; return what it prints."""
    done = completed([sys.executable, "-m", "aiaml_server", *words], env=environment(home))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def memories(home: Path) -> dict[str, bytes]:
    """Return each memory's file."""
    return {path.name: path.read_bytes() for path in (home / ".aiaml/files").glob("*.md")}


def test_old_memories_are_found_and_recalled_as_they_were(home: Path) -> None:
    """A new server answers from the old directory, and no file of it changes."""
    before = memories(home)
    assert len(before) == 3
    base = home / ".aiaml"
    with Client(base, environ={"AIAML_ENABLE_SYNC": "true", **CLEAN}) as client:
        (hit,) = client.call("think", keywords=["deploy"])
        (memory,) = client.call("recall", memory_ids=[hit["id"]])
        assert memory["content"].splitlines()[-1].endswith("ask Zoë. 日本語")
        assert (memory["agent"], memory["topics"]) == ("cursor", ["work", "deploy"])
        new = client.remember("Max likes carrots.")["memory_id"]
        found = client.call("think", keywords=["max"])
        assert found[0]["id"] == new and len(found) == 2
        assert client.close() == 0
    after = memories(home)
    assert len(after) == 4
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_old_history_status_and_index_go_on(home: Path) -> None:
    """The same repository gets the next commit; doctor has nothing to say against the old files."""
    (old,) = [each for each in json.loads(aiaml(home, "list", "--json")) if "dog" in each["topics"]]
    aiaml(home, "remember", "Max likes carrots.", "--topic", "dog", "--user", "marco")
    aiaml(home, "sync")
    log = json.loads(aiaml(home, "log", "--json"))
    assert sum(old["id"] in json.dumps(each) for each in log) == 1
    assert len(log) >= 4
    status = json.loads(aiaml(home, "status", "--json"))
    assert status["problem"] is None
    words = ("directory", "files", "index", "sync")
    checks = json.loads(aiaml(home, "doctor", "--offline", "--json", *words))
    assert {each["level"] for each in checks} == {"ok"}, checks


def test_an_old_entry_of_a_client_is_known_and_left_alone(home: Path) -> None:
    """What an earlier `install` wrote into a client's file counts as connected."""
    path = home / ".cursor/mcp.json"
    before = path.read_bytes()
    clients = json.loads(aiaml(home, "install", "--list", "--json"))
    (cursor,) = [each for each in clients if each["client"] == "cursor"]
    assert cursor["connected"] is True
    assert path.read_bytes() == before
