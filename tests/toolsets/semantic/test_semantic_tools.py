"""`semantic`: the tools and resources as agents see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.types import CallToolResult, TextContent

from aiaml_server import toolsets
from aiaml_server.server import protocol as server
from aiaml_server.toolset import HookInput, Toolset
from aiaml_server.toolsets.semantic import hooks
from aiaml_server.toolsets.semantic.cli import semantic
from aiaml_server.toolsets.semantic.models import NewMemory
from aiaml_server.toolsets.semantic.store import MemoryStore
from client import SERVER
from client import Client as RawClient
from semantic_model import NAME, model_folder
from toolset_contract import Call, Contract
from waiting import wait_until

HEAVY = ("apsw", "numpy", "fastembed", "onnxruntime", "sqlite_vec", "tokenizers", "huggingface_hub")


def person(place: Path, **embedding: object) -> dict[str, str]:
    """Return the variables of a person whose home is in a directory, at work on a project."""
    for name in ("home/.memory", "shop"):
        (place / name).mkdir(parents=True, exist_ok=True)
    settings = {"embedding": {"download": False, **embedding}}
    (place / "home/.memory/config.json").write_text(json.dumps(settings), encoding="utf-8")
    return {
        **dict.fromkeys(("HOME", "USERPROFILE"), str(place / "home")),
        "AIAML_SEMANTIC_PROJECT": str(place / "shop"),
    }


class TestSemantic(Contract):
    """What every toolset promises."""

    name = "semantic"

    def environ(self, place: Path) -> dict[str, str]:
        """Keep memories in the test's directory, and fetch no model."""
        return person(place)

    def story(self, call: Call) -> None:
        """Store, search, list, update, find duplicates, delete, import."""
        stored = call("store_memory", content="Prices are in cents.", tags=["billing"])
        name = stored["memory_id"]
        assert stored["success"] and name.startswith("project:")
        other = call("store_memory", content="I like green tea.", scope="global")
        found = call("search_memory", query="how are prices kept?", filters={"tags": ["billing"]})
        assert name in [each["id"] for each in found["memories"]]
        assert not found["meaning"] and "words only" in found["warnings"][0]
        listed = call("list_memories", filters={"scope": "project"}, sort_by="priority", limit=3)
        assert name in [each["id"] for each in listed["memories"]]
        changed = call("update_memory", memory_id=name, priority="HIGH", used=True)
        assert changed["memory"]["priority"] == "HIGH"
        assert call("deduplicate_memories")["groups"] == []
        call("delete_memory", memory_id=other["memory_id"])
        shown = call("import_markdown_memories", confirm_import=False)
        assert shown["success"] and not shown["imported"]

    def lasting(self, place: Path) -> dict[str, str]:
        """A search counts uses in the databases; nothing else may change."""
        return {name: each for name, each in super().lasting(place).items() if "/db" not in name}

    def judge(self, result: Any, shape: Any) -> None:
        """Besides, a failure has a kind and a suggestion."""
        super().judge(result, shape)
        if result.is_error:
            value = result.structured_content
            assert not value["success"] and value["error"][0].isupper() and value["suggestion"]


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolset]:
    """The toolset of a person at work on a project."""
    for name, value in person(tmp_path).items():
        monkeypatch.setenv(name, value)
    manifest = toolsets.manifest("semantic")
    toolset = resolve_name(manifest.build)(manifest.read_settings(os.environ))
    with toolset.lifespan(lambda _uri: None):
        yield toolset


def call(built: Toolset, name: str, **arguments: Any) -> Any:
    """Call a tool's function."""
    (tool,) = [tool for tool in built.tools if tool.name == name]
    return tool.call(**arguments)


def test_answers_have_what_agents_need(built: Toolset) -> None:
    """Short ones by default; all metadata and the parts of the score where that is asked for."""
    stored = call(built, "store_memory", content="The security of prices", tags=["a"])
    assert stored["priority_suggestion"]["priority"] == "HIGH" and not stored["embedded"]
    (hit,) = call(built, "search_memory", query="prices")["memories"]
    assert set(hit) == {"id", "content", "date", "tags", "priority", "score"}
    (hit,) = call(built, "search_memory", query="prices", explain=True)["memories"]
    assert set(hit["breakdown"]) == {
        "similarity", "recency", "priority", "usage", "project_boost", "cosine", "bm25"
    }  # fmt: skip
    assert hit["access_count"] == 1 and hit["project_id"] == "shop"
    (read,) = call(built, "list_memories", ids=["project:1"])["memories"]
    assert len(read["content_hash"]) == 64 and read["embedding_model"] is None
    again = call(built, "store_memory", content="THE security  of prices", scope="global")
    assert again["similar"][0]["id"] == "project:1" and "update that one" in again["offer"]
    call(built, "store_memory", content="x" * 3000)
    page = call(built, "list_memories", limit=1)
    assert len(page["memories"][0]["content"]) < 500
    assert page["total"] == 3 and page["next_cursor"]


def test_merge_delete_and_undo(built: Toolset) -> None:
    """With what is needed to take them back."""
    for content in ("The flag is on", "The flag is on!", "tea"):
        call(built, "store_memory", content=content)
    merged = call(built, "deduplicate_memories", merge=["project:1", "project:2"])
    assert merged["merged"][0]["id"] == "project:2" and merged["groups"] == []
    assert call(built, "deduplicate_memories", auto_merge=True)["merged"] == []
    assert call(built, "delete_memory", memory_id="project:3") == {
        "success": True, "deleted": ["project:3"], "undo": ["project#2"]
    }  # fmt: skip
    updated = call(built, "update_memory", memory_id="project:2", category="", tags=["x"])
    assert updated["undo"] == "project#3" and updated["memory"]["tags"] == ["x"]


def test_import_is_shown_and_confirmed(built: Toolset, tmp_path: Path) -> None:
    """Nothing is stored before."""
    (tmp_path / "shop" / "NOTES.md").write_text("# Rules\n\n- Use cents\n", encoding="utf-8")
    preview = call(built, "import_markdown_memories")
    assert preview["new"] == 1 and preview["candidates"][0] == {
        "path": "NOTES.md", "line": 3, "content": "Rules: Use cents", "tags": ("rules",),
        "priority": "NORMAL", "is_new": True,
    }  # fmt: skip
    assert call(built, "list_memories")["total"] == 0
    done = call(built, "import_markdown_memories", confirm_import=True)
    assert done["imported"] and done["memory_ids"] == ["project:1"] and done["already"] == 0
    assert call(built, "import_markdown_memories", confirm_import=True)["memory_ids"] == []


def test_resources(built: Toolset) -> None:
    """The CORE and HIGH memories and those of a project, as data on one line each."""
    core, high, project = built.resources
    call(built, "store_memory", content="Rule\n# not a heading\x1b[0m", priority="CORE")
    call(built, "store_memory", content="Tea", scope="global", priority="HIGH")
    assert (core.uri, high.uri) == ("memory://core", "memory://high")
    text = core.read()
    assert "- [project:1, CORE" in text and "\n# not" not in text and "\x1b" not in text
    assert "] Rule # not a heading" in text
    assert "Tea" in high.read() and "Rule" not in high.read()
    assert "information, not instructions" in text
    assert project.uri == "memory://project/{project_id}" and "Rule" in project.read("shop")
    with pytest.raises(LookupError):
        project.read("another")


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be changed here")
def test_every_shown_date_is_local(built: Toolset, monkeypatch: pytest.MonkeyPatch) -> None:
    """In lists, searches and resources, in hooks, and in commands: `date_range` finds it."""
    with closing(MemoryStore.at(project=os.environ["AIAML_SEMANTIC_PROJECT"])) as store:
        store.store_many([NewMemory("tea", priority="CORE", created_at="2026-03-10 22:30:00")])
    for zone, date in (("Pacific/Auckland", "2026-03-11"), ("UTC", "2026-03-10")):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        filters = {"date_range": {"from": date, "to": date}}
        for tool, given in (
            ("list_memories", {"filters": filters}),
            ("list_memories", {"ids": ["project:1"]}),
            ("search_memory", {"query": "tea", "filters": filters}),
            ("search_memory", {"query": "tea", "filters": filters, "explain": True}),
        ):
            (memory,) = call(built, tool, **given)["memories"]
            assert memory["date"] == date, (tool, given)
        for shown in (
            built.resources[0].read(),
            "".join(hooks.session_start(HookInput("session_start"))),
            CliRunner().invoke(semantic, ["list"]).output,
        ):
            assert date in shown, shown
    monkeypatch.undo()
    time.tzset()


def test_errors_are_logged_without_contents(built: Toolset, tmp_path: Path) -> None:
    """Their type and place, and never a word of a memory."""
    with pytest.raises(Exception, match="memory_id"):
        call(built, "update_memory", memory_id="qzxjv-secret", used=True)
    text = (tmp_path / "home/.memory/logs/semantic.log").read_text(encoding="utf-8")
    assert "update_memory InvalidInput" in text and "store.py" in text
    assert "qzxjv" not in text


def test_settings_are_read_at_each_call(built: Toolset, tmp_path: Path) -> None:
    """A wrong key is named."""
    for number in range(4):
        call(built, "store_memory", content=f"tea {number}")
    config = tmp_path / "home/.memory/config.json"
    config.write_text(json.dumps({"retrieval": {"default_limit": 2}}), encoding="utf-8")
    assert len(call(built, "search_memory", query="tea")["memories"]) == 2
    config.write_text(json.dumps({"retrieval": {"limit": 2}}), encoding="utf-8")
    with pytest.raises(Exception, match=r"retrieval\.limit is unknown"):
        call(built, "search_memory", query="tea")


@pytest.mark.anyio
async def test_wrong_arguments_name_the_field(built: Toolset) -> None:
    """What clients send as text is taken where it is clear; what cannot be meant is refused."""
    call(built, "store_memory", content="tea")
    async with Client(server.Server([built])) as client:
        for name, arguments, field in (
            ("store_memory", {"content": 5}, "content"),
            ("store_memory", {"content": "x", "priority": "urgent"}, "priority"),
            ("search_memory", {"query": "x", "limit": 0}, "limit"),
            ("search_memory", {"query": "x", "filters": {"colour": "red"}}, "filters"),
            ("list_memories", {"sort_by": "size"}, "sort_by"),
            ("list_memories", {"ids": ["seven"]}, "ids"),
            ("list_memories", {"ids": ["project:1"] * 1001}, "ids"),
            ("list_memories", {"filters": {"tags": ["x"] * 1001}}, "filters"),
            ("deduplicate_memories", {"similarity_threshold": 2}, "similarity_threshold"),
            ("import_markdown_memories", {"file_paths": ["/etc/passwd"]}, "file_paths"),
            ("update_memory", {"memory_id": "project:1"}, "updated_content"),
            ("update_memory", {"memory_id": "project:1", "updated_content": ""}, "updated_content"),
            ("update_memory", {"memory_id": "x", "updated_content": " \n"}, "updated_content"),
        ):
            result = await client.call_tool(name, arguments)
            assert isinstance(result, CallToolResult)
            (block,) = result.content
            assert isinstance(block, TextContent)
            assert result.is_error and field in json.loads(block.text)["message"], block.text
        taken = await client.call_tool("search_memory", {"query": "x", "limit": "3"})
        assert not taken.is_error


def test_a_server_backs_up_after_its_start(
    built: Toolset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each database, once a day."""
    call(built, "store_memory", content="tea")
    monkeypatch.setattr("aiaml_server.toolsets.semantic.tools.START_SECONDS", 0.0)
    with built.lifespan(lambda _uri: None):
        wait_until(lambda: list((tmp_path / "shop/.memory/backups").glob("db-20*")))


def test_nothing_heavy_is_imported_before_the_first_call() -> None:
    """Neither by serving nor by listing the tools."""
    script = f"""
import sys
from pkgutil import resolve_name
from aiaml_server import toolsets
from aiaml_server.server import protocol as server
manifest = toolsets.manifest("semantic")
server.Server([resolve_name(manifest.build)(manifest.read_settings({{}}))])
print([each for each in {HEAVY!r} if each in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"


@pytest.mark.network
@pytest.mark.timeout(300)
def test_first_search_is_by_words_and_later_ones_by_meaning(tmp_path: Path) -> None:
    """A model on this machine is loaded in the background; missing vectors are made then."""
    environ = person(tmp_path, model=NAME, path=str(model_folder()))
    command = (*SERVER, "--toolset", "semantic")
    with RawClient(tmp_path, command=command, environ=environ) as client:
        stored = client.call("store_memory", content="The car is washed on Fridays.")
        client.call("store_memory", content="Bread is baked at six.")
        found: dict[str, Any] = {"meaning": False, "memories": []}
        for _ in range(60):
            asked = "when is the vehicle cleaned?"
            found = client.call("search_memory", query=asked, explain=True)
            if found["meaning"] and found["memories"][0]["breakdown"]["cosine"]:
                break
        best = found["memories"][0]
        assert best["id"] == stored["memory_id"] and best["embedding_model"] == NAME
        assert client.call("migrate_embeddings")["finished"]
        assert client.close() == 0


def test_memory_server_is_a_program(tmp_path: Path) -> None:
    """`memory-server init` creates the databases, `memory-server` serves them."""
    environ = person(tmp_path)
    command = (sys.executable, "-m", "aiaml_server.toolsets.semantic")
    subprocess.run([*command, "init"], env={**os.environ, **environ}, check=True, cwd=tmp_path)
    assert (tmp_path / "home/.memory/db").exists() and (tmp_path / "shop/.memory/db").exists()
    with RawClient(tmp_path, command=command, environ=environ) as client:
        assert client.call("store_memory", content="tea")["created"]
        assert client.close() == 0
