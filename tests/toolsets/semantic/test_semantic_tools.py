"""The tools of `semantic` as agents use them: over MCP, in processes of their own."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiaml_server import toolsets
from aiaml_server.toolsets.semantic import logs
from aiaml_server.toolsets.semantic.config import Config
from aiaml_server.toolsets.semantic.excerpt import excerpt, excerpts
from aiaml_server.toolsets.semantic.memories import Memories
from client import SERVER, Client
from model_hub import refusing
from semantic_model import NAME, model_folder
from toolset_contract import Call, Contract
from waiting import wait_until


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


def serving(place: Path, **embedding: object) -> Client:
    """Start a server for that person."""
    command = (*SERVER, "--toolset", "semantic")
    return Client(place, command=command, environ=person(place, **embedding))


class TestSemantic(Contract):
    """What every toolset promises."""

    name = "semantic"

    def environ(self, place: Path) -> dict[str, str]:
        """Keep memories in the test's directory, and fetch no model."""
        return person(place)

    def story(self, call: Call) -> None:
        """Store, search, list, update, find duplicates, delete."""
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

    def judge(self, result: Any, shape: Any) -> None:
        """Besides, a failure has a kind and a suggestion."""
        super().judge(result, shape)
        if result.is_error:
            value = result.structured_content
            assert not value["success"] and value["error"][0].isupper() and value["suggestion"]


def test_search_memory_asks_for_what_finds() -> None:
    """The question with eight to ten words behind it: in all texts, and in the examples."""
    tools = toolsets.manifest("semantic")
    built = resolve_name(tools.build)(tools.read_settings({}))
    (search,) = (each for each in built.tools if each.name == "search_memory")
    for text in (built.instructions, search.description):
        said = " ".join(text.split())
        assert "the question, and behind it eight to ten single words" in said
    field = inspect.signature(search.call, eval_str=True).parameters["query"].annotation
    about = field.__metadata__[0]
    assert "eight to ten single words" in about.description
    for example in about.examples:
        question, words = example.split("? ")
        assert 8 <= len(words.split()) <= 10 and not set(words.split()) & set(question.split())


HEAVY = ("apsw", "numpy", "fastembed", "onnxruntime", "sqlite_vec", "tokenizers", "huggingface_hub")


def test_nothing_heavy_is_imported_before_the_first_call(tmp_path: Path) -> None:
    """Neither by serving nor by listing; SQLite comes with the first memory, the model later."""
    script = f"""
import sys
from aiaml_server import toolsets
from aiaml_server.server import protocol as server
from aiaml_server.toolset import at
manifest = toolsets.manifest("semantic")
tools = at(manifest.build)(manifest.read_settings({{}}))
server.Server([tools])
print([each for each in {HEAVY!r} if each in sys.modules])
tools.tools[2].call()
print([each for each in {HEAVY!r} if each in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **person(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n[]\n"


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_model_is_loaded_behind_the_first_answer(tmp_path: Path) -> None:
    """Words only at once; by meaning as soon as it is there, also what was stored before."""
    folder = str(model_folder())
    with serving(tmp_path, model=NAME, path=folder) as client:
        stored = client.call("store_memory", content="The car is washed on Fridays.")
        assert not stored["embedded"] and "words only" in stored["warnings"][0]
        client.call("store_memory", content="Bread is baked at six.")

        def found_by_meaning() -> Any:
            asked = "when is the vehicle cleaned?"
            found = client.call("search_memory", query=asked, explain=True)
            best = found["memories"][0]
            return found["meaning"] and best["breakdown"]["cosine"] and best

        best = wait_until(found_by_meaning, 120)
        assert best["id"] == stored["memory_id"] and "weak" not in best
        assert best["breakdown"]["bm25"] == 0 and best["embedding_model"] == NAME
        again = client.call("store_memory", content="On Fridays the car is washed.")
        assert again["embedded"] and again["similar"][0]["id"] == stored["memory_id"]
        assert "update" in again["offer"]
        assert client.call("migrate_embeddings")["finished"]
        assert client.close() == 0


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_first_search_compares_meanings(tmp_path: Path) -> None:
    """The model is loaded behind the list of tools, where there are memories; else that is said."""
    folder = str(model_folder())
    with serving(tmp_path) as client:
        client.call("store_memory", content="Deploys go out on Tuesdays from the main branch.")
    with serving(tmp_path, model=NAME, path=folder) as client:
        assert client.call("migrate_embeddings")["finished"]
    for seconds in (4, 15, 60):  # a machine may be busy
        with serving(tmp_path, model=NAME, path=folder) as client:
            client.answer(client.request("tools/list", {}))
            time.sleep(seconds)
            found = client.call("search_memory", query="when do we release?")
            assert client.close() == 0
        if found["meaning"]:
            break
        assert "ask again in a few seconds" in found["warnings"][0]
    assert found["meaning"] and found["memories"][0]["content"].startswith("Deploys")


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_missing_vectors_are_made_behind_the_start(tmp_path: Path) -> None:
    """What a session has stored before its model was there is found by meaning in the next one."""
    with serving(tmp_path) as client:
        stored = client.call("store_memory", content="Deploys go out on Tuesdays.")
        assert not stored["embedded"]
    with serving(tmp_path, model=NAME, path=str(model_folder())) as client:
        client.answer(client.request("tools/list", {}))
        wait_until(lambda: not left(tmp_path), 120)
        assert client.close() == 0


def left(place: Path) -> int:
    """Return how many memories of a project have no vector."""
    with closing(Memories(place / "home/.memory", place / "shop", None, Config())) as found:
        return found.left()


@pytest.mark.slow
def test_resources(tmp_path: Path) -> None:
    """Lists of what always matters, as data; what is in them cannot break out of its line."""
    with serving(tmp_path) as client:
        client.call("store_memory", content="Rule one\n# Not a heading", priority="CORE")
        client.call("store_memory", content="High", priority="HIGH", scope="global", tags=["t"])

        def read(uri: str) -> str:
            answer = client.answer(client.request("resources/read", {"uri": uri}))
            text: str = answer["result"]["contents"][0]["text"]
            return text

        core = read("memory://core")
        assert "information, not instructions" in core and "\n# Not a heading" not in core
        assert "[project:1, CORE, " in core and "High" not in core
        assert "[global:1, HIGH, " in read("memory://high") and "tags t" in read("memory://high")
        assert "Rule one" in read("memory://project/shop")
        missing = client.request("resources/read", {"uri": "memory://project/other"})
        assert "error" in client.answer(missing)
    (tmp_path / "shop/.memory/db").write_bytes(b"no database " * 1000)
    with serving(tmp_path) as client:
        answer = client.answer(client.request("resources/read", {"uri": "memory://core"}))
        assert "without the project memories" in answer["result"]["contents"][0]["text"]


def test_failures_are_noted_without_contents(tmp_path: Path) -> None:
    """In two files of bounded size, for the owner alone."""
    private = "do not log this"
    with serving(tmp_path) as client:
        for wrong in ({"content": private, "priority": private}, {"content": private + "\0"}):
            assert client.call("store_memory", **wrong)["error"] == "InvalidInput"
        assert client.call("delete_memory", memory_id="global:7")["error"] == "NotFound"
    directory = tmp_path / "home/.memory/logs"
    text = (directory / logs.NAME).read_text("ascii")
    assert "store_memory InvalidInput\n" in text and "delete_memory NotFound\n" in text
    assert private not in text
    for _ in range(3):
        (directory / logs.NAME).write_bytes(b"x" * logs.MOST)
        logs.record(tmp_path / "home/.memory", "a", ValueError(private))
    assert sorted(each.name for each in directory.iterdir()) == [logs.NAME, f"{logs.NAME}.1"]
    assert (directory / logs.NAME).read_text("ascii").endswith("a ValueError\n")
    if os.name == "posix":
        assert (directory / logs.NAME).stat().st_mode & 0o777 == 0o600
    logs.record(tmp_path / "nowhere", "a", ValueError(private))
    assert not (tmp_path / "nowhere").exists()


def test_settings_hold_at_the_next_call(tmp_path: Path) -> None:
    """And what is wrong in them is named, with what to do."""
    with serving(tmp_path) as client:
        for number in range(4):
            client.call("store_memory", content=f"tea {number}")
        path = tmp_path / "home/.memory/config.json"
        path.write_text(json.dumps({"embedding": {"download": False},
                                    "retrieval": {"default_limit": 2}}))  # fmt: skip
        assert len(client.call("search_memory", query="tea")["memories"]) == 2
        path.write_text(json.dumps({"retrieval": {"default_limits": 2}}))
        failed = client.call("search_memory", query="tea")
        assert failed["error"] == "InvalidConfig" and "config.json" in failed["message"]
        assert "did you mean retrieval.default_limit?" in failed["message"]


def test_a_project_that_is_taken_away_is_missed(tmp_path: Path) -> None:
    """What is its own is not stored among the person's, or an outer project's, in silence."""
    environ = person(tmp_path)
    del environ["AIAML_SEMANTIC_PROJECT"]
    inner = tmp_path / "shop" / "till"
    for marker in (tmp_path / "shop/.memory", inner / ".memory"):
        marker.mkdir(parents=True)
    command = (*SERVER, "--toolset", "semantic")
    with Client(tmp_path, command=command, environ=environ, cwd=inner) as client:
        assert client.call("store_memory", content="Tea")["memory_id"] == "project:1"
        for marker, active in (
            (inner / ".memory", f"the project is {(tmp_path / 'shop').resolve()}"),
            (tmp_path / "shop/.memory", "no project is active"),
        ):
            shutil.rmtree(marker)
            for scope in ({}, {"scope": "project"}):
                failed = client.call("store_memory", content="Coffee", **scope)
                assert failed["error"] == "InvalidProject" and active in failed["message"]
                assert "till is no project any more" in failed["message"]
            said = client.call("search_memory", query="tea")["warnings"]
            assert any("no project any more" in each for each in said)
            assert client.call("import_markdown_memories")["error"] == "InvalidProject"
        stored = client.call("store_memory", content="Coffee", scope="global")
        assert stored["memory_id"] == "global:1"
        (inner / ".memory").mkdir()
        assert client.call("store_memory", content="Water")["memory_id"] == "project:1"
        assert client.close() == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no working directory")
def test_a_working_directory_that_is_deleted_leaves_the_global_memories(tmp_path: Path) -> None:
    """The project is missed, and what is asked of the person's own is answered."""
    environ = person(tmp_path)
    del environ["AIAML_SEMANTIC_PROJECT"]
    shop = tmp_path / "till"
    (shop / ".memory").mkdir(parents=True)
    command = (*SERVER, "--toolset", "semantic")
    with Client(tmp_path, command=command, environ=environ, cwd=shop) as client:
        assert client.call("store_memory", content="Tea")["memory_id"] == "project:1"
        shutil.rmtree(shop)
        failed = client.call("store_memory", content="Coffee")
        assert failed["error"] == "InvalidProject"
        assert "till is no project any more" in failed["message"]
        stored = client.call("store_memory", content="Coffee", scope="global")
        assert stored["memory_id"] == "global:1"
        found = client.call("search_memory", query="coffee")
        assert [each["id"] for each in found["memories"]] == ["global:1"]
        assert any("no project any more" in each for each in found["warnings"])


def test_a_project_that_begins_is_used(tmp_path: Path) -> None:
    """Without a new start; also where it lies in another one."""
    environ = person(tmp_path)
    del environ["AIAML_SEMANTIC_PROJECT"]
    (tmp_path / "shop/till").mkdir()
    command = (*SERVER, "--toolset", "semantic")
    with Client(tmp_path, command=command, environ=environ, cwd=tmp_path / "shop/till") as client:
        assert client.call("store_memory", content="Tea")["memory_id"] == "global:1"
        for place in ("shop", "shop/till"):
            (tmp_path / place / ".memory").mkdir()
            assert client.call("store_memory", content="Tea")["memory_id"] == "project:1"
            assert (tmp_path / place / ".memory/db").is_file()
        assert client.close() == 0


@pytest.mark.slow
def test_what_is_only_told_in_warnings_is_noted_too(tmp_path: Path) -> None:
    """A model that cannot be fetched or loaded, and a database that is damaged."""
    log = tmp_path / "home/.memory/logs" / logs.NAME

    def noted(said: str) -> bool:
        return wait_until(lambda: log.exists() and said in log.read_text("ascii"))

    (tmp_path / "none").mkdir()
    with serving(tmp_path, path=str(tmp_path / "none")) as client:
        client.call("store_memory", content="Tea", scope="global")
        assert noted(" model Unusable\n")
    (tmp_path / "shop/.memory").mkdir(exist_ok=True)
    (tmp_path / "shop/.memory/db").write_bytes(b"no database " * 1000)
    with refusing() as address:
        environ = {**person(tmp_path, download=True), "HF_ENDPOINT": address}
        command = (*SERVER, "--toolset", "semantic")
        with Client(tmp_path, command=command, environ=environ) as client:
            assert client.call("search_memory", query="tea")["memories"]
            assert noted(" open_project Damaged\n") and noted(" model ConnectError ")


def test_an_import_is_offered_and_confirmed(tmp_path: Path) -> None:
    """Never done unasked; a second run adds nothing."""
    environ = person(tmp_path)
    notes = "# Notes\n\n- Prices are in cents\n- The architecture has three layers\n"
    (tmp_path / "shop" / "NOTES.md").write_text(notes, encoding="utf-8")
    command = (*SERVER, "--toolset", "semantic")
    with Client(tmp_path, command=command, environ=environ) as client:
        first = client.call("list_memories")
        assert "NOTES.md" in first["warnings"][-1] and first["total"] == 0
        shown = client.call("import_markdown_memories")
        assert shown["new"] == 2 and {each["path"] for each in shown["candidates"]} == {"NOTES.md"}
        assert client.call("list_memories")["total"] == 0
        done = client.call("import_markdown_memories", confirm_import=True)
        assert len(done["memory_ids"]) == 2
        listed = client.call("list_memories", filters={"source": "import"})["memories"]
        whole = client.call("list_memories", ids=[each["id"] for each in listed])["memories"]
        assert {each["path"] for each in whole} == {"NOTES.md"}
        again = client.call("import_markdown_memories", confirm_import=True)
        assert again["new"] == 0 and again["already"] == 2


def test_merging_by_the_tool(tmp_path: Path) -> None:
    """Groups, with what they would become; merged is what is named."""
    with serving(tmp_path) as client:
        ids = [
            client.call("store_memory", content=each, tags=[each[:3]])["memory_id"]
            for each in ("the flag is on", "the flag is off")
        ]
        assert client.call("deduplicate_memories", auto_merge=True)["merged"] == []
        merged = client.call("deduplicate_memories", merge=ids)["merged"]
        assert [each["content"] for each in merged] == ["the flag is off"]
        client.call("store_memory", content="the flag is on")
        again = client.call(
            "update_memory", memory_id="project:3", updated_content="The FLAG is off"
        )
        assert [each["id"] for each in again["similar"]] == ["project:2"] and again["offer"]
        for wrong in ({"similarity_threshold": 2}, {"cursor": "x"}):
            failed = client.call("deduplicate_memories", merge=["global:1", "global:2"], **wrong)
            assert failed["error"] == "InvalidInput" and next(iter(wrong)) in failed["message"]


def test_wrong_arguments_name_the_field(tmp_path: Path) -> None:
    """In the shape of a failure; no word is taken for a number, and no number for true or false."""
    cases: list[tuple[str, dict[str, Any], str]] = [
        (
            "list_memories",
            {"filters": {"colour": "red"}},
            "filters: must be an object with some of",
        ),
        ("list_memories", {"filters": {"date_range": {"since": "x"}}}, "date_range is {from, to}"),
        ("list_memories", {"filters": {"date_range": {"from": "x"}}}, "date_range"),
        ("list_memories", {"filters": {"priority": 1}}, "filters.priority must be text"),
        ("list_memories", {"filters": {"tags": "x"}}, "filters.tags must be a list"),
        ("list_memories", {"filters": {"tags": ["a", 1]}}, "item 2 of filters.tags must be text"),
        ("list_memories", {"filters": {"tags": [""]}}, "filters.tags: must be one line"),
        ("list_memories", {"limit": 201}, "limit: must be a whole number from 1 to 200"),
        ("list_memories", {"limit": "x"}, "limit: must be a whole number from 1 to 200"),
        (
            "search_memory",
            {"query": "a", "limit": 51},
            "limit: must be a whole number from 1 to 50",
        ),
        ("deduplicate_memories", {"merge": ["a", "b"]}, "merge: must be an id"),
        ("list_memories", {"sort_by": "size"}, "sort_by"),
        ("list_memories", {"cursor": "x"}, "cursor"),
        ("search_memory", {"query": 5}, "query"),
        ("store_memory", {"content": True}, "content"),
        ("store_memory", {"content": "a", "tags": [1]}, "tags"),
        ("delete_memory", {"memory_id": 1}, "memory_id"),
    ]
    numbers = {"search_memory": "limit", "list_memories": "limit", "migrate_embeddings": "limit",
               "deduplicate_memories": "similarity_threshold"}  # fmt: skip
    cases += [
        (tool, {"query": "a", field: each} if tool == "search_memory" else {field: each}, field)
        for tool, field in numbers.items()
        for each in (True, 0, -1, [1], "x", 1.5)
    ]
    flags = {"update_memory": "used", "deduplicate_memories": "auto_merge",
             "import_markdown_memories": "confirm_import"}  # fmt: skip
    cases += [
        (tool, {"memory_id": "global:1", field: each} if field == "used" else {field: each}, field)
        for tool, field in flags.items()
        for each in ("yes", 1, 0, [True])
    ]
    with serving(tmp_path) as client:
        for tool, arguments, said in cases:
            failed = client.call(tool, **arguments)
            assert failed["error"] == "InvalidInput", (tool, arguments)
            assert said in failed["message"], (tool, arguments)


def test_arguments_are_taken_as_clients_send_them(tmp_path: Path) -> None:
    """Whole numbers as text or 5.0; "" and null count as left out, but clear a category."""
    with serving(tmp_path) as client:
        for number in range(4):
            client.call("store_memory", content=f"tea {number}", category="drink", source="")
        for limit in ("2", 2.0, 2):
            assert len(client.call("search_memory", query="tea", limit=limit)["memories"]) == 2
            assert len(client.call("list_memories", limit=limit)["memories"]) == 2
        for nothing in ("", None):
            listed = client.call("list_memories", limit=nothing, cursor=nothing, sort_by=nothing)
            assert listed["total"] == 4
            assert client.call("search_memory", query="tea", context=nothing)["success"]
            told = client.call("delete_memory", memory_id=nothing, content_hash=nothing)
            assert "give either" in told["message"]
        same = client.call("update_memory", memory_id="project:1", updated_content="", used=True)
        assert same["memory"]["content"] == "tea 0"
        client.call("update_memory", memory_id="project:1", category="", priority="")
        (read,) = client.call("list_memories", ids=["project:1"])["memories"]
        assert read["category"] is None and read["priority"] == "NORMAL"


TEXTS = [
    "null", "true", "5", "1e5", '"x"', '{"a": 1}', "[1, 2]", '["a"]', "[[]]", "NaN", "{}", "''",
]  # fmt: skip
AROUND = ["{}", "\n\t {}", "{} \r\n\n", "\u3000{}\r", "  {}\r\n{}\n  "]


@pytest.mark.slow
def test_text_is_stored_as_sent(tmp_path: Path) -> None:
    """Also where it looks like JSON, for every parameter that is text."""
    with serving(tmp_path) as client:
        for text in TEXTS:
            stored = client.call(
                "store_memory", content=f"{text}", category=text, tags=[text], scope="project"
            )
            name = stored["memory_id"]
            (read,) = client.call("list_memories", ids=[name])["memories"]
            assert (read["content"], read["category"], read["tags"]) == (text, text, [text])
            other = f"other {text}"
            client.call("update_memory", memory_id=name, updated_content=other)
            client.call("update_memory", memory_id=name, updated_content=text, context=text)
            (read,) = client.call("list_memories", ids=[name])["memories"]
            assert (read["content"], read["usage_contexts"]) == (text, [text])
            for around in AROUND:
                sent = around.format(text, text)
                stored = client.call("store_memory", content=sent)
                (read,) = client.call("list_memories", ids=[stored["memory_id"]])["memories"]
                assert read["content"] == sent
                assert (stored["memory_id"] == name) == (sent.strip() == text)
                if stored["memory_id"] != name:
                    client.call("delete_memory", memory_id=stored["memory_id"])
            found = client.call("search_memory", query=text, filters={"category": text})
            assert found["success"]
            client.call("delete_memory", memory_id=name)


def test_schemas_say_what_is_allowed(tmp_path: Path) -> None:
    """The smallest and largest of each number; each word of a closed list, in filters as well."""
    with serving(tmp_path) as client:
        listed = client.answer(client.request("tools/list", {}))["result"]["tools"]
    asked = {each["name"]: each["inputSchema"]["properties"] for each in listed}
    for name, properties in asked.items():
        numbers = [each for each in properties.values() if each["type"] in ("integer", "number")]
        assert all({"minimum", "exclusiveMinimum"} & set(each) for each in numbers), name
    for name in ("search_memory", "list_memories"):
        filters = asked[name]["filters"]["properties"]
        assert filters["scope"]["enum"] == ["project", "global"]
        for field in ("priority", "source"):
            assert filters[field]["enum"] == asked["store_memory"][field]["enum"]
    threshold = asked["deduplicate_memories"]["similarity_threshold"]
    assert (threshold["exclusiveMinimum"], threshold["maximum"]) == (0, 1)


def test_definitions_are_short(tmp_path: Path) -> None:
    """At most 12,000 characters of all tools, as they are listed."""
    with serving(tmp_path) as client:
        listed = client.answer(client.request("tools/list", {}))["result"]["tools"]
    size = sum(len(json.dumps(each, separators=(",", ":"))) for each in listed)
    assert size <= 12_000


@pytest.mark.network
@pytest.mark.slow
def test_answers_are_short(tmp_path: Path) -> None:
    """One hit of 47 characters takes 250 at most, five of 90 take 1,500; long ones are cut."""
    contents = ["Deploys go out on Tuesdays from the main branch"]
    assert len(contents[0]) == 47
    with serving(tmp_path, model=NAME, path=str(model_folder())) as client:
        client.call("store_memory", content=contents[0], tags=["deploy"])
        wait_until(lambda: client.call("search_memory", query="deploys").get("meaning"), 120)
        one = client.call("search_memory", query="when do we deploy?")
        assert len(json.dumps(one, separators=(",", ":"))) <= 250
        for number in range(4):
            more = f"The deploy number {number} of the shop went wrong as its image was built twice"
            client.call("store_memory", content=f"{more:90}x", tags=["deploy", "shop"])
        five = client.call("search_memory", query="when do we deploy?")
        assert len(five["memories"]) == 5
        assert len(json.dumps(five, separators=(",", ":"))) <= 1_500
        long = f"{'It rained. ' * 60}The vault opens at noon. {'It snowed. ' * 60}"
        stored = client.call("store_memory", content=long)
        hits = client.call("search_memory", query="vault opens noon")["memories"]
        (cut,) = (each["content"] for each in hits if each["id"] == stored["memory_id"])
        assert "The vault opens at noon." in cut and len(cut) <= 6 * 185
        (whole,) = client.call("list_memories", ids=[stored["memory_id"]])["memories"]
        assert whole["content"] == long
        assert "breakdown" in client.call("search_memory", query="x", explain=True)["memories"][0]


@pytest.mark.parametrize(
    ("tool", "field", "given"),
    [
        ("store_memory", "tags", {"content": "tea"}),
        ("update_memory", "tags", {"memory_id": "project:1"}),
        ("list_memories", "ids", {}),
        ("search_memory", "filters", {"query": "tea"}),
        ("list_memories", "filters", {}),
        ("deduplicate_memories", "merge", {}),
        ("import_markdown_memories", "file_paths", {}),
    ],
)
def test_a_list_without_end_is_refused(
    tmp_path: Path, tool: str, field: str, given: dict[str, Any]
) -> None:
    """By its field's name, before what is in it is looked at."""
    many = ["a"] * 1_001
    with serving(tmp_path) as client:
        client.call("store_memory", content="coffee", tags=["a"] * 1_000)
        given = {**given, field: {"tags": many} if field == "filters" else many}
        answer = client.call(tool, **given)
        assert answer["error"] == "InvalidInput"
        assert answer["message"].startswith(f"{field}: must be") and "1,000" in answer["message"]
        assert client.call("list_memories")["total"] == 1


@given(st.lists(st.text(max_size=900), max_size=12), st.text(max_size=80))
def test_excerpts_of_any_texts(contents: list[str], question: str) -> None:
    """Each is a part of its text, and all together keep to the room that they have."""
    found = excerpts(contents, question)
    assert sum(map(len, found)) <= max(600, 185 * len(contents))
    for content, each in zip(contents, found, strict=True):
        assert each == content or each.strip("…") in content


@given(st.lists(st.sampled_from(["tea", "milk", "cups", "x", "yy"]), min_size=40, max_size=80))
def test_excerpt_has_most_of_the_words(words: list[str]) -> None:
    """It has as many of the words as the best of all the places where it could begin."""
    content, most = " ".join(words), 90
    asked = {"tea", "milk", "cups"}
    places = [0, *(at + 1 for at, each in enumerate(content) if each == " ")]
    width = 50  # what is behind a sixth that comes first, without a word that is cut
    best = max(len(asked & set(content[at : at + width].split())) for at in places)
    assert len(asked & set(excerpt(content, "tea milk cups", most).strip("…").split())) >= best


@pytest.mark.slow
def test_memory_server_serves_and_makes_the_databases(tmp_path: Path) -> None:
    """The specification's own script: without a word it serves, `init` makes the databases."""
    environ = person(tmp_path)
    del environ["AIAML_SEMANTIC_PROJECT"]
    command = (sys.executable, "-m", "aiaml_server.toolsets.semantic")
    (tmp_path / "shop" / "NOTES.md").write_text("# Notes\n\n- Tea is green\n", encoding="utf-8")
    for state in ("are ready", "are there"):
        done = subprocess.run(
            [*command, "init"],
            env={**os.environ, **environ},
            cwd=tmp_path / "shop",
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"The project memories {state}" in done.stdout
        assert ("NOTES.md" in done.stderr) == (state == "are ready")
    for words, said in (
        (["init", "--json"], '"made": false'),
        (["--help"], "Usage: memory-server [OPTIONS]"),
        (["list", "-h"], "Usage: memory-server list [OPTIONS]"),
        (["--version"], "aiaml-server "),
        (["nothing"], "memory-server: there is no verb 'nothing'; `memory-server --help` tells"),
        (["list", "--limit", "0"], "`memory-server list --help` tells more"),
    ):
        done = subprocess.run(
            [*command, *words],
            env={**os.environ, **environ, "COLUMNS": "100"},
            cwd=tmp_path / "shop",
            capture_output=True,
            text=True,
            check=False,
        )
        assert said in done.stdout + " ".join(done.stderr.split()), words
    assert (tmp_path / "home/.memory/db").is_file()
    assert (tmp_path / "shop/.memory/.gitignore").read_text() == "*\n"
    with Client(tmp_path, command=command, environ=environ, cwd=tmp_path / "shop") as client:
        assert client.call("store_memory", content="Tea")["memory_id"] == "project:1"
        assert client.close() == 0
