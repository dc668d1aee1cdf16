"""Search by meaning beside search by words: joined, optional, and never believed over the files."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

import pytest

from aiaml_server.storage.derived import folder
from aiaml_server.toolsets.citations import Memories, Memory, MemoryIndex, NullIndex
from aiaml_server.toolsets.citations.chroma import ChromaIndex
from aiaml_server.toolsets.citations.failures import InvalidConfig, Unavailable
from aiaml_server.toolsets.citations.forgetful import ForgetfulIndex
from aiaml_server.toolsets.citations.indexes import Synced
from environments import environment
from machine import git
from paths import ROOT, TESTS


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """An empty repository."""
    git(tmp_path, "init", "--quiet")
    return tmp_path


class Fixed(MemoryIndex):
    """Finds what it is told to find."""

    name = "fixed"

    def __init__(self, *found: tuple[str, float]) -> None:
        self.found = found
        self.calls: list[tuple[str, str]] = []

    def add(self, memory: Memory) -> None:
        """Note it."""
        self.calls.append(("add", memory.id))

    def remove(self, memory_id: str) -> None:
        """Note it."""
        self.calls.append(("remove", memory_id))

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """Find it."""
        return self.found[:limit]

    def health_check(self) -> bool:
        """Be well."""
        return True

    def sync(self, memories: Mapping[str, Memory]) -> Synced:
        """Do nothing."""
        return Synced(self.name, len(memories), 0, 0)


class Broken(Fixed):
    """Does not answer."""

    def add(self, memory: Memory) -> None:  # noqa: ARG002
        """Fail."""
        raise Unavailable("it is broken")

    def remove(self, memory_id: str) -> None:  # noqa: ARG002
        """Fail."""
        raise Unavailable("it is broken")

    def search(self, query: str, limit: int) -> Sequence[tuple[str, float]]:  # noqa: ARG002
        """Fail."""
        raise Unavailable("it is broken")


def ids(memories: Memories, query: str, **words: Any) -> list[str]:
    """Return what is found."""
    return [hit.memory.id for hit in memories.search(query, **words).hits]


def test_what_is_found_by_meaning_is_joined(repo: Path) -> None:
    """Both count; each memory and each text once; tags and limit hold; a hit is a file."""
    plain = Memories(repo)
    words = plain.save("Prices", "in cents", tags=["a"], id="mem-words").id
    both = plain.save("Prices too", "in cents", id="mem-both").id
    near = plain.save("Money", "euros", tags=["a"], id="mem-near").id
    plain.save("Money", "euros", id="mem-twin")
    found = (("mem-gone", 0.99), (both, 0.9), (near, 0.8), ("mem-twin", 0.7), ("mem-far", 0.1))
    memories = Memories(repo, Fixed(*found))
    assert ids(plain, "prices in cents") == [both, words]
    assert ids(memories, "prices in cents") == [both, words, near]
    assert ids(memories, "prices in cents", tags=["a"]) == [words, near]
    assert ids(memories, "prices in cents", limit=1) == [both]
    scores = [hit.score for hit in memories.search("prices in cents").hits]
    assert scores == sorted(scores, reverse=True) and all(0 <= each <= 1 for each in scores)
    assert ids(Memories(repo, Fixed((near, 0.3))), "zebra") == [near]


def test_the_index_is_told_of_each_change(repo: Path) -> None:
    """After the file was written or deleted."""
    index = Fixed()
    memories = Memories(repo, index)
    saved = memories.save("Prices", "in cents").id
    memories.delete(saved)
    assert index.calls == [("add", saved), ("remove", saved)]


def test_an_index_that_does_not_answer_hinders_nothing(repo: Path) -> None:
    """What is said: a warning when saving, a note when searching."""
    memories = Memories(repo, Broken())
    saved = memories.save("Prices", "in cents")
    assert any("it is broken; `sync-index`" in each for each in saved.warnings)
    found = memories.search("prices")
    assert [hit.memory.id for hit in found.hits] == [saved.id]
    assert found.notes == ["Found by words alone: it is broken"]
    memories.delete(saved.id)
    assert not (repo / saved.path).exists()


def test_the_settings_name_the_index(repo: Path) -> None:
    """None is the default; an address that is not on this machine is refused."""
    config = repo / ".memory-config.yaml"
    assert isinstance(Memories(repo).index, NullIndex)
    assert vars(Memories(repo).sync_index())["index"] == "none"
    config.write_text("index: {type: chroma}")
    assert isinstance(Memories(repo).index, ChromaIndex)
    config.write_text("index: {type: forgetful, forgetful: {endpoint: 'http://127.0.0.1:1'}}")
    assert isinstance(Memories(repo).index, ForgetfulIndex)
    for address in (
        "http://example.org",
        "http://127.0.0.1.example.org",
        "http://localhost@x.org",
        "http://127.0.0.1:2375/containers",
    ):
        config.write_text(f"index: {{type: forgetful, forgetful: {{endpoint: '{address}'}}}}")
        with pytest.raises(InvalidConfig, match="this machine"):
            Memories(repo)


@pytest.mark.parametrize("kind", ["chroma", "forgetful"])
def test_nothing_is_imported_before_it_is_used(kind: str, repo: Path) -> None:
    """And without an index neither is a client of HTTP."""
    script = (
        "import sys; from aiaml_server.toolsets.citations import Memories\n"
        f"memories = Memories({str(repo)!r}); memories.list()\n"
        "print([each for each in ('chromadb', 'urllib.request') if each in sys.modules])"
    )
    for text, expected in (
        ("", "[]"),
        (f"index: {{type: {kind}}}", "[]" if kind == "chroma" else "['urllib.request']"),
    ):
        (repo / ".memory-config.yaml").write_text(text)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        assert done.stdout.decode().strip() == expected


def test_chroma_that_came_with_a_repository_is_not_opened(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be obeyed: a journal names a file to delete, a collection a model to load."""
    for name in ("chromadb", "chromadb.api", "chromadb.api.shared_system_client"):
        monkeypatch.setitem(sys.modules, name, mock.MagicMock())
    sys.modules[
        "chromadb"
    ].PersistentClient.return_value.get_or_create_collection.return_value = mock.MagicMock(
        metadata={"model": "given"}, count=lambda: 0
    )
    planted = repo / ".chroma"
    for place in (planted, planted / ".index" / ("0" * 32)):
        place.mkdir(parents=True)
        (place / "chroma.sqlite3").write_bytes(b"x")
        (place / "chroma.sqlite3-journal").write_bytes(b"x")
    before = {path: path.read_bytes() for path in planted.rglob("chroma*")}
    assert ChromaIndex(planted, "memories", lambda _: []).search("tea", 3) == []
    ((opened, _), _) = sys.modules["chromadb"].PersistentClient.call_args
    assert Path(opened) == folder(planted)
    assert [each.name for each in Path(opened).iterdir()] == [".gitignore"]
    assert before == {path: path.read_bytes() for path in planted.rglob("chroma*")}


def test_chroma_that_is_not_installed_is_a_sentence(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what installs it."""
    monkeypatch.setitem(sys.modules, "chromadb", None)
    index = ChromaIndex(repo / ".chroma", "memories")
    assert not index.health_check()
    with pytest.raises(Unavailable, match=r"pip install 'aiaml-server\[chroma\]'"):
        index.search("x", 3)
    assert not (repo / ".chroma").exists()


# --- a server -------------------------------------------------------------------------------------


class Forgetful(http.server.BaseHTTPRequestHandler):
    """A server as the protocol has it; it finds by shared letters."""

    held: dict[str, dict[str, Any]]
    fault: Callable[[Forgetful], bool] | None = None

    def answer(self, code: int, value: Any = None) -> None:
        """Send an answer."""
        if (fault := type(self).fault) and fault(self):
            return
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self) -> Any:
        """Read what was sent."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        """Health, or what is held."""
        held = {name: each["digest"] for name, each in self.held.items()}
        self.answer(200, {"memories": held} if self.path == "/memories" else None)

    def do_PUT(self) -> None:
        """Hold a memory."""
        self.held[unquote(self.path).rpartition("/")[2]] = self.body()
        self.answer(204)

    def do_DELETE(self) -> None:
        """Hold a memory no more."""
        there = self.held.pop(unquote(self.path).rpartition("/")[2], None)
        self.answer(204 if there else 404)

    def do_POST(self) -> None:
        """Search."""
        asked = self.body()
        letters = set(asked["query"])
        results = [
            {"id": name, "score": len(letters & set(each["content"])) / len(letters)}
            for name, each in self.held.items()
        ]
        results.sort(key=lambda each: float(str(each["score"])), reverse=True)
        self.answer(200, {"results": results[: asked["limit"]]})

    def log_message(self, *_words: object) -> None:
        """Be quiet."""


@pytest.fixture
def server() -> Iterator[tuple[type[Forgetful], str]]:
    """Such a server, and its address."""
    handler = type("Handler", (Forgetful,), {"held": {}})
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever, args=(0.02,))
    thread.start()
    yield handler, f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


def test_a_server_is_kept_up_to_date_and_asked(
    repo: Path, server: tuple[type[Forgetful], str]
) -> None:
    """Saving, changing, deleting; files that came by other ways by syncing; a hit by meaning."""
    handler, address = server
    text = f"index: {{type: forgetful, forgetful: {{endpoint: '{address}/'}}}}"
    (repo / ".memory-config.yaml").write_text(text)
    memories = Memories(repo, forgetful=address)
    saved = memories.save("Tea", "green tea", tags=["drink"]).id
    assert {key: handler.held[saved][key] for key in ("id", "subject", "content", "tags")} == {
        "id": saved, "subject": "Tea", "content": "green tea", "tags": ["drink"]
    }  # fmt: skip
    assert ids(memories, "greet") == [saved]  # no word of it is in the memory
    other = memories.save("Milk", "oat").id
    memories.delete(saved)
    assert list(handler.held) == [other]
    handler.held["mem-gone"] = handler.held.pop(other)
    assert vars(memories.sync_index()) == {
        "index": "forgetful", "memories": 1, "added": 1, "removed": 1
    }  # fmt: skip
    assert vars(memories.sync_index())["added"] == 0
    assert list(handler.held) == [other] and memories.index.health_check()


@pytest.mark.parametrize("allowed", ["", "http://127.0.0.1:1", "http://localhost"])
def test_a_server_that_the_person_did_not_name_is_not_asked(
    repo: Path, server: tuple[type[Forgetful], str], allowed: str
) -> None:
    """A repository's settings alone reach no port: a sentence says what would; words are found."""
    handler, address = server
    asked: list[str] = []

    def noted(request: Forgetful) -> bool:
        asked.append(request.path)
        return False

    handler.fault = staticmethod(noted)
    text = f"index: {{type: forgetful, forgetful: {{endpoint: '{address}'}}}}"
    (repo / ".memory-config.yaml").write_text(text)

    def aiaml(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "aiaml_server", "citations", *words],
            env={**os.environ, "AIAML_CITATIONS_FORGETFUL": allowed},
            cwd=repo, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + " ".join(done.stderr.split())

    how = f"set AIAML_CITATIONS_FORGETFUL={address}"
    assert how in aiaml("save", "Tea", "--content", "green")[1]
    code, said = aiaml("search", "tea")
    assert code == 0 and "Tea" in said and how in said
    assert how in aiaml("sync-index")[1]
    assert asked == []
    allowed = f"{address}/"
    assert aiaml("sync-index")[0] == 0
    assert asked[0] == "/memories"


def cut(handler: Forgetful) -> bool:
    """Close the connection."""
    handler.close_connection = True
    return True


def garbage(handler: Forgetful) -> bool:
    """Answer with no JSON."""
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b"<html>")
    return True


def elsewhere(handler: Forgetful) -> bool:
    """Send the client elsewhere."""
    handler.send_response(307)
    handler.send_header("Location", "http://example.org/")
    handler.end_headers()
    return True


def failing(handler: Forgetful) -> bool:
    """Answer with a failure."""
    handler.send_error(500)
    return True


def silent(_handler: Forgetful) -> bool:
    """Say nothing for longer than anybody waits."""
    time.sleep(1)
    return True


def other_shape(handler: Forgetful) -> bool:
    """Answer with JSON of another kind."""
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b'{"results": [{"name": 1}], "memories": []}')
    return True


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("fault", [cut, garbage, elsewhere, failing, silent, other_shape])
def test_a_server_that_fails_is_a_sentence(
    fault: Callable[[Forgetful], bool],
    repo: Path,
    server: tuple[type[Forgetful], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it does; and search goes on by words."""
    monkeypatch.setattr("aiaml_server.toolsets.citations.forgetful.SECONDS", 0.3)
    handler, address = server
    memories = Memories(repo, ForgetfulIndex(address))
    saved = memories.save("Tea", "green").id
    handler.fault = staticmethod(fault)
    for call in (lambda: memories.index.search("tea", 3), memories.sync_index):
        with pytest.raises(Unavailable, match="answer"):
            call()
    found = memories.search("tea")
    assert [hit.memory.id for hit in found.hits] == [saved] and found.notes


def test_nobody_there_is_a_sentence(repo: Path) -> None:
    """At once."""
    index = ForgetfulIndex("http://127.0.0.1:9")
    assert not index.health_check()
    with pytest.raises(Unavailable, match="does not answer"):
        Memories(repo, index).sync_index()


# --- Chroma ---------------------------------------------------------------------------------------


chroma_is_there = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="Chroma has no wheels for it yet"
)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python that has Chroma, and what the toolset `semantic` needs."""
    place = tmp_path_factory.mktemp("chroma") / "environment"
    return environment(place, f"{ROOT}[chroma,semantic]")


def story(python: Path, home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Play `chroma/story.py` for a person with this home directory."""
    return subprocess.run(
        [python, TESTS / "chroma" / "story.py", *words],
        env={**os.environ, "HOME": str(home), "USERPROFILE": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)
@chroma_is_there
def test_chroma_finds_by_meaning(python: Path, repo: Path) -> None:
    """In an environment of its own; of several processes, each sees the others'."""
    done = story(python, repo.parent, repo)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "is not on this machine" in seen.pop("without a model")
    assert seen == {
        "by meaning": True,
        "not by words": [],
        "once each": True,
        "scores": True,
        "what another process added": True,
        "a deleted file is no hit": True,
        "sync": {"index": "chroma", "memories": 2, "added": 0, "removed": 1},
        "sync again": {"index": "chroma", "memories": 2, "added": 0, "removed": 0},
        "git status": ["memories"],
        "healthy": True,
    }
