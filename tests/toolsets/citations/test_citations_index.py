"""Search by meaning beside search by words: optional, and never believed over the files."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import uvicorn
from mcp.server import MCPServer
from shop import FACT, make_shop

from aiaml_server.toolsets.citations import Memory, MemoryIndex, MemoryService
from aiaml_server.toolsets.citations.chroma import ChromaIndex
from aiaml_server.toolsets.citations.errors import Unavailable
from aiaml_server.toolsets.citations.forgetful import ForgetfulIndex
from environments import environment
from paths import ROOT, TESTS
from printed import completed


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a file of code."""
    return make_shop(tmp_path / "shop")


class BrokenIndex(MemoryIndex):
    """An index that does not answer, or fails in a way of its own."""

    name = "broken"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add(self, memories: Sequence[Memory]) -> None:  # noqa: ARG002
        """Fail."""
        raise self._error

    def remove(self, ids: Sequence[str]) -> None:  # noqa: ARG002
        """Fail."""
        raise self._error

    def digests(self) -> Mapping[str, str]:
        """Fail."""
        raise self._error

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """Fail."""
        raise self._error


def test_an_index_that_fails_stops_nothing(shop: Path) -> None:
    """Saving warns, search finds by words and says so, only synchronizing fails."""
    for error in (Unavailable("out of order"), ValueError("out of order: a damaged file")):
        memories = MemoryService(shop, BrokenIndex(error))
        assert not memories.index.health_check()
        saved = memories.save("Prices", FACT)
        assert "out of order" in saved["warnings"][0]
        hits, notes = memories.search("prices")
        assert [hit["id"] for hit in hits] == [saved["id"]] and "out of order" in notes[0]
        with pytest.raises(type(error)):
            memories.sync_index()
        assert memories.delete(saved["id"])["deleted"]


def test_what_is_not_installed_is_said(shop: Path) -> None:
    """With the command that installs it; nothing is created in the repository."""
    (shop / ".memory-config.yaml").write_text("index:\n  type: chroma\n")
    memories = MemoryService(shop)
    if isinstance(memories.index, ChromaIndex) and not memories.index.health_check():
        assert "Found by words alone" in memories.search("prices").notes[0]
    assert not (shop / ".chroma").exists()


class Forgetful:
    """The tools of a Forgetful server that are used, as version 0.6.0 answers them."""

    def __init__(self) -> None:
        self.memories: list[dict[str, Any]] = []

    def execute(self, tool_name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Do what `execute_forgetful_tool` does."""
        held = [each for each in self.memories if not each["is_obsolete"]]
        if tool_name == "create_memory":
            entry = {"id": len(self.memories) + 1, "is_obsolete": False, **arguments}
            self.memories.append(entry)
            return {"id": entry["id"]}
        if tool_name == "mark_memory_obsolete":
            self.memories[arguments["memory_id"] - 1]["is_obsolete"] = True
            return {"success": True}
        if tool_name == "get_recent_memories":
            tagged = [each for each in held if set(arguments["tags"]) & set(each["tags"])]
            start = arguments["offset"]
            return {"memories": tagged[start : start + arguments["limit"]]}
        if tool_name == "query_memory":
            scores = [{"memory_id": each["id"], "similarity": 1 / each["id"]} for each in held]
            return {"primary_memories": held, "scores": scores}
        return {"id": 1}


@pytest.fixture
def endpoint() -> Iterator[tuple[str, Forgetful]]:
    """A server on this machine that answers as Forgetful does."""
    forgetful = Forgetful()
    server = MCPServer("forgetful")
    server.add_tool(forgetful.execute, name="execute_forgetful_tool")
    config = uvicorn.Config(server.streamable_http_app(), port=0, log_level="error")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        thread.join(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", forgetful
    running.should_exit = True
    thread.join(10)


def test_forgetful_holds_what_the_files_say(shop: Path, endpoint: tuple[str, Forgetful]) -> None:
    """Through the tools of the real server; memories of others there stay as they are."""
    address, forgetful = endpoint
    other = {"title": "o", "tags": ["x"], "source_files": ["mem-o"], "encoding_version": "1"}
    forgetful.execute("create_memory", other)
    memories = MemoryService(shop, ForgetfulIndex(address, address, str(shop)))
    first = memories.save("Tea", "A pot of tea")["id"]
    memories.save("Prices", "Cents", id="mem-prices")
    assert memories.index.health_check()
    assert memories.sync_index() == {
        "index": "forgetful", "memories": 2, "added": 0, "removed": 0
    }  # fmt: skip
    memories.save(content="A cup of tea", id=first)
    (shop / "memories/mem-prices.md").unlink()
    done = memories.sync_index()
    assert (done["added"], done["removed"]) == (0, 1)
    assert dict(memories.index.search("anything", 5)).keys() == {first}
    assert [hit["id"] for hit in memories.search("nothing that it says").value] == [first]
    assert not forgetful.memories[0]["is_obsolete"]


def test_forgetful_is_asked_only_where_a_person_allows_it(shop: Path) -> None:
    """A repository may name any port of this machine."""
    index = ForgetfulIndex("http://localhost:1", "", str(shop))
    with pytest.raises(Unavailable, match="set AIAML_CITATIONS_FORGETFUL=http://localhost:1"):
        index.search("x", 1)
    assert not ForgetfulIndex("http://localhost:1", "http://localhost:1", str(shop)).health_check()


def test_chroma_that_came_with_a_repository_is_not_opened(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be obeyed: a journal names a file to delete, a collection a model to load."""
    for name in ("chromadb", "chromadb.api", "chromadb.api.shared_system_client"):
        monkeypatch.setitem(sys.modules, name, mock.MagicMock())
    client = sys.modules["chromadb"].PersistentClient
    client.return_value.get_or_create_collection.return_value.count = lambda: 0
    planted = shop / ".chroma"
    planted.mkdir()
    (planted / "chroma.sqlite3").write_bytes(b"x")
    index = ChromaIndex(planted, "memories", lambda _: [])
    assert index.search("tea", 3) == [] and index.health_check()
    place = Path(client.call_args[0][0])
    assert place.is_dir() and not place.is_relative_to(shop)
    assert client.call_args_list[0] == client.call_args_list[1]
    ChromaIndex(shop / ".other", "memories", lambda _: []).search("tea", 3)
    assert Path(client.call_args[0][0]) != place


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Chroma has no wheels for it yet")
def test_chroma_finds_by_meaning(shop: Path, tmp_path: Path) -> None:
    """In an environment that has it; see `tests/chroma/story.py`."""
    python = environment(tmp_path / "environment", f"{ROOT}[chroma]")
    done = completed([python, TESTS / "chroma" / "story.py", shop], timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("sync") == {"index": "chroma", "memories": 2, "added": 0, "removed": 1}
    assert seen.pop("sync again")["removed"] == 0
    assert seen.pop("git status") == ["memories", "prices.py"]
    assert "Chroma's model" in seen.pop("without a model")
    assert seen.pop("not by words") == []
    assert all(seen.values()), seen


if sys.platform == "win32":
    pytestmark = pytest.mark.skip(reason="the servers of these tests are started on POSIX")
