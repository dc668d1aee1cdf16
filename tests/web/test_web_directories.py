"""`aiaml web` where a person has several directories: each is chosen among those known."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_directories import connected
from test_web_changes import GIT, listening, post, told

from aiaml_server import MemoryBank, Settings
from aiaml_server.format.memory import Memory
from aiaml_server.storage.derived import folder
from aiaml_server.toolsets.citations import Citation
from aiaml_server.toolsets.citations import Memories as Citations
from aiaml_server.toolsets.semantic import Memories as Semantic
from aiaml_server.toolsets.semantic import place
from aiaml_server.toolsets.sessions.memory import AgentMemory
from web_process import Web, one


def served(base: Path, **environ: str) -> Web:
    """Start the page with the clients of the person whose directory it is."""
    homes = {name: str(base.parent) for name in ("HOME", "USERPROFILE")}
    return Web(base, **homes, **environ)


def stored(base: Path, content: str, **fields: Any) -> str:
    """Store a memory in a directory; return its file's name."""
    bank = MemoryBank(Settings(base, sync=False))
    made = Memory.new("claude", "ann", fields.pop("topics", ["dog"]), content)
    memory = bank.add(replace(made, **fields))
    ((name, _),) = bank.find(memory.id)
    bank.close()
    return name


@pytest.fixture
def bases(home: Path) -> tuple[Path, Path]:
    """Two directories, one of which a client serves."""
    connected(home, "cursor", AIAML_MEMORY_DIR=str(home / "work"))
    return home / "private", home / "work"


@pytest.fixture
def names(bases: tuple[Path, Path]) -> list[str]:
    """The files of a memory in each, as the page calls them."""
    return [f"{base.name}/{stored(base, f'Of {base.name}')}" for base in bases]


@pytest.fixture
def web(bases: tuple[Path, Path], names: list[str]) -> Iterator[Web]:
    """The page, started with the first."""
    assert names
    with served(bases[0]) as web:
        yield web


def listed(web: Web, words: str = "") -> list[str]:
    """Return the files that a question means."""
    return [each["file"] for each in web.get(f"/api/memories?{words}")["memories"]]


def test_it_begins_with_the_one_in_use_and_shows_those_known_alone(
    web: Web, bases: tuple[Path, Path], names: list[str]
) -> None:
    """By their names; no path leads to another."""
    known = web.get("/api/directories")
    assert [(each["name"], each["path"], each["problem"]) for each in known] == [
        ("private", str(bases[0]), ""),
        ("work", str(bases[1]), ""),
    ]
    assert listed(web) == listed(web, "directory=private") == names[:1]
    assert listed(web, "directory=work") == names[1:]
    assert web.get(one(names[1]))["directory"] == "work"
    assert web.get("/api/status?directory=work")["base"] == str(bases[1])
    stranger = stored(bases[0].parent / "stranger", "Of a stranger")
    for wrong in ("stranger", str(bases[1].parent / "stranger"), "../stranger", "*", "work/"):
        for path in ("memories", "overview", "status", "lately", "events", "chosen"):
            assert web.ask(f"/api/{path}?directory={wrong}").status == 404
        assert web.ask(one(f"{wrong}/{stranger}")).status == 404
        assert post(web, "/api/export", [f"{wrong}/{stranger}"]).status == 404
        assert post(web, f"/api/memories?directory={wrong}", {}).status == 404
    for wrong in ("/" + names[0], names[1].replace("/", "//"), "work/../" + names[0]):
        assert web.ask(one(wrong)).status == 404


def test_a_change_is_made_in_the_memorys_own_directory(
    web: Web, bases: tuple[Path, Path], names: list[str]
) -> None:
    """Edited, forgotten, brought back, stored, exported: also several together."""
    own, work = (base / "files" for base in bases)
    seen = web.get(one(names[1]))
    after = seen["text"].replace("Of work", "Of the office")
    put = web.ask(one(names[1]), "PUT", after.encode(), {"If-Match": seen["version"]})
    assert (put.status, put.json()["file"]) == (200, names[1])
    assert (work / names[1].rpartition("/")[2]).read_text(encoding="utf-8") == after
    lines = post(web, "/api/export", names).json()["lines"].splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["Of private", "Of the office"]
    gone = post(web, "/api/forget", names).json()
    assert (gone["count"], list(gone["forgotten"])) == (2, names)
    assert [*own.iterdir(), *work.iterdir()] == []
    assert post(web, "/api/undo", gone["undo"]).json() == {"restored": 2}
    assert (work / names[1].rpartition("/")[2]).read_text(encoding="utf-8") == after
    chosen = web.get("/api/chosen?directory=work")
    version = {"If-Match": chosen["version"]}
    assert (chosen["count"], chosen["titles"]) == (1, ["Of the office"])
    assert web.ask("/api/forget?directory=private", "POST", b"", version).status == 412
    assert web.ask("/api/forget?directory=work", "POST", b"", version).json()["count"] == 1
    assert [*work.iterdir()] == []
    words = {"agent": "me", "user": "ann", "topics": ["tea"], "content": "Green"}
    new = post(web, "/api/memories?directory=work", words).json()
    assert (new["directory"], [path.name for path in work.iterdir()]) == (
        "work",
        [new["file"].removeprefix("work/")],
    )


def test_looking_leaves_another_directory_alone_and_a_change_is_kept_in_its_git(
    bases: tuple[Path, Path], names: list[str]
) -> None:
    """What was forgotten there is found among the forgotten ones, and comes back from there."""
    with served(bases[0], **GIT) as web:
        before = {path.name for path in bases[1].iterdir()}
        for path in ("memories", "overview", "status", "lately", "chosen"):
            web.get(f"/api/{path}?directory=work")
        assert {path.name for path in bases[1].iterdir()} == before
        text = web.get(one(names[1]))["text"]
        assert post(web, "/api/forget", names).json()["kept"] is True
        gone = web.get("/api/forgotten?directory=work")
        assert [(each["file"], each["text"]) for each in gone] == [(names[1], text)]
        assert [each["file"] for each in web.get("/api/forgotten")] == names[:1]
        assert {each["directory"] for each in web.get("/api/lately?directory=work")} == {"work"}
        assert post(web, "/api/restore", {names[1]: text}).json() == {"restored": [names[1]]}
        assert listed(web, "directory=work") == [names[1]]
        (newest, *_) = web.get(f"{one(names[1])}/history")
        assert (newest["file"], newest["text"]) == (names[1], text)


def test_what_happens_in_another_directory_is_told(web: Web, bases: tuple[Path, Path]) -> None:
    """To whoever looks at it."""
    with listening(web, "directory=work") as stream:
        first = told(stream)
        stored(bases[1], "Later")
        assert told(stream)[0] > first[0]
    assert len(listed(web, "directory=work")) == 2


def test_one_that_cannot_be_read_hides_no_other(home: Path) -> None:
    """It is named with the reason."""
    connected(home, "cursor", AIAML_MEMORY_DIR=str(home / "bad"))
    (home / "bad").mkdir()
    (home / "bad" / "files").write_text("no directory", encoding="utf-8")
    name = stored(home / "good", "Max")
    with served(home / "good") as web:
        assert listed(web) == [f"good/{name}"]
        assert "directory" in web.get("/api/directories")[1]["problem"]
        assert web.ask("/api/memories?directory=bad").status == 503


def test_new_memories_are_new_in_each(bases: tuple[Path, Path], names: list[str]) -> None:
    """And seen in each."""
    with served(bases[0], AIAML_INBOX="true") as web:
        for base, name in zip(bases, names, strict=True):
            words = f"directory={base.name}&new"
            assert listed(web, words) == [name]
            version = {"If-Match": web.get(f"/api/chosen?{words}")["version"]}
            assert web.ask(f"/api/seen?{words}", "POST", b"", version).json() == {"seen": 1}
            assert listed(web, words) == []
    assert all((folder(base) / "inbox").is_file() for base in bases)


# --- what toolsets keep ---------------------------------------------------------------------------


@pytest.fixture
def kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Something of each toolset that has something to read; the variables that name it."""
    repository = home / "shop"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "prices.py").write_text("def price():\n    return 3\n", encoding="utf-8")
    sessions = AgentMemory(str(repository), "aristotle")
    sessions.start("2026-11-20")
    sessions.append("Decisions", "- Prices are kept in cents.", "2026-11-20")
    citations = Citations(repository)
    citations.save("Prices are in cents", "**Fact**: so it is.", [Citation("prices.py", 2)])
    (repository / "prices.py").write_text("def price():\n    raise NotImplementedError\n")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    with closing(Semantic(place.home())) as semantic:
        semantic.store("Prices are shown in euros.", tags=["billing"], category="decision")
    return {"AIAML_SESSIONS_REPO": str(repository), "AIAML_CITATIONS_REPO": str(repository)}


def test_web_shows_what_toolsets_keep(home: Path, kept: dict[str, str]) -> None:
    """Memories, verdicts and logs, found by words; nothing of it can be changed."""
    with served(home / "private", **kept) as web:
        assert web.get("/api/shelves") == ["sessions", "citations", "semantic"]
        (memory,) = web.get("/api/shelves/semantic?q=euros")["memories"]
        assert (memory["title"], memory["topics"]) == ("Prices are shown in euros.", ["billing"])
        assert ["Category", "decision"] in memory["facts"]
        (cited,) = web.get("/api/shelves/citations")["memories"]
        assert (cited["title"], cited["agent"]) == ("Prices are in cents", "stale")
        assert any("prices.py:2" in name for name, _ in cited["facts"])
        assert all("T00:00:00" not in value for _, value in cited["facts"])
        logs = web.get("/api/shelves/sessions")["memories"]
        assert [each["timestamp"] for each in logs] == ["", "2026-11-20"]
        assert [each["title"] for each in logs] == ["Summary of aristotle", "aristotle, 2026-11-20"]
        assert logs[1]["excerpt"] == "Decisions · Prices are kept in cents."
        assert "Header" not in logs[1]["text"] and "Next Actions" not in logs[1]["text"]
        assert ["File", ".github/agent-memory/aristotle/logs/2026-11-20.md"] in logs[1]["facts"]
        assert web.get("/api/shelves/sessions?q=nothing-of-it")["total"] == 0
        assert web.ask("/api/shelves/other").status == 404
        assert web.ask("/api/shelves/semantic", "POST", b"{}").status == 405


def test_web_without_anything_of_a_toolset_names_none(web: Web) -> None:
    """Nor is a directory made for one."""
    assert web.get("/api/shelves") == []
