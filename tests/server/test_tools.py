"""The three tools as an agent sees them, through the SDK's own client on both protocol eras."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, Implementation

from aiaml_server import __version__
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.server.protocol import Server
from aiaml_server.server.tools import toolset
from aiaml_server.settings import Settings
from aiaml_server.storage.activity import read_activity

pytestmark = pytest.mark.anyio

GIVEN: dict[str, Any] = {
    "agent": "claude",
    "user": "marco",
    "topics": ["programming", "python"],
    "content": "Prefers *type hints*.",
}


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    """Connect in memory: "auto" speaks 2026-07-28, "legacy" the handshake protocol before it."""
    async with Client(
        Server([toolset(Settings(base=tmp_path / "base", sync=False))]), mode=request.param
    ) as connected:
        await connected.list_tools()  # from here on results are checked against their schemas
        yield connected


def value_of(result: CallToolResult) -> Any:
    """Return the JSON value of a result, after checking that both ways of reading it agree."""
    (block,) = result.content
    assert block.type == "text"
    value = json.loads(block.text)
    structured = result.structured_content
    assert structured == (value if isinstance(value, dict) else {"result": value})
    return value


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool that must not fail; return its value."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return value_of(result)


async def fail(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool that must fail; return its value."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return value_of(result)


def files(tmp_path: Path) -> list[Path]:
    """Return what lies in the store, temporary files included."""
    return sorted((tmp_path / "base" / "files").glob("*"))


async def test_there_are_exactly_three_tools(client: Client) -> None:
    """Names, parameters and order are the specification's."""
    tools = (await client.list_tools()).tools
    assert {tool.name: list(tool.input_schema["properties"]) for tool in tools} == {
        "remember": ["agent", "user", "topics", "content"],
        "think": ["keywords"],
        "recall": ["memory_ids"],
    }
    for tool in tools:
        assert tool.input_schema["required"] == list(tool.input_schema["properties"])


async def test_every_tool_and_parameter_is_described(client: Client) -> None:
    """Clients cut texts at 2,048 characters; every parameter has a description and an example."""
    assert client.instructions and len(client.instructions) < 2048
    for tool in (await client.list_tools()).tools:
        assert tool.title and tool.description and len(tool.description) < 2048
        for parameter in tool.input_schema["properties"].values():
            assert parameter["description"] and parameter["examples"]


async def test_annotations_are_true(client: Client) -> None:
    """Hosts decide by these hints whether to ask the person first."""
    hints = {
        tool.name: tool.annotations.model_dump(exclude={"title"}, exclude_none=True)
        for tool in (await client.list_tools()).tools
        if tool.annotations
    }
    reads = {"read_only_hint": True, "destructive_hint": False, "idempotent_hint": True}
    adds = {"read_only_hint": False, "destructive_hint": False, "idempotent_hint": False}
    closed = {"open_world_hint": False}
    assert hints == {"remember": adds | closed, "think": reads | closed, "recall": reads | closed}


async def test_output_schemas_declare_success_and_error(client: Client) -> None:
    """A client that validates structured content accepts an error as well."""
    schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    assert set(schemas["remember"]["properties"]) == {"memory_id", "message"}  # type: ignore[index]
    for name, shapes in (("think", 2), ("recall", 3)):
        assert len(schemas[name]["properties"]["result"]["items"]["anyOf"]) == shapes  # type: ignore[index]


async def test_the_server_says_who_it_is(client: Client) -> None:
    """Name and version are this package's, not the SDK's."""
    assert client.server_info
    assert client.server_info.name == "AI Agnostic Memory Layer"
    assert client.server_info.version == __version__


async def test_a_memory_is_remembered_found_and_recalled(client: Client, tmp_path: Path) -> None:
    """The whole way, with the exact shapes of the specification."""
    before = datetime.now(timezone.utc)
    stored = await call(client, "remember", **GIVEN)
    memory_id = stored["memory_id"]
    assert stored == {
        "memory_id": memory_id,
        "message": f"Memory stored successfully with ID: {memory_id}",
    }
    (found,) = await call(client, "think", keywords=["Python", "nothing"])
    moment = datetime.fromisoformat(found["timestamp"])
    assert before <= moment <= before + timedelta(seconds=60)
    assert found == {
        "id": memory_id,
        "timestamp": found["timestamp"],
        "relevance_score": 3,
        "matching_keywords": ["python"],
    }
    (recalled,) = await call(client, "recall", memory_ids=[memory_id])
    assert recalled == {"id": memory_id, "timestamp": found["timestamp"], **GIVEN}
    assert [path.name for path in files(tmp_path)] == [f"{moment:%Y%m%d_%H%M%S}_{memory_id}.md"]


async def test_nothing_found_is_one_empty_list(client: Client) -> None:
    """An empty answer is the text `[]`, not no text at all; also before anything was stored."""
    result = await client.call_tool("think", {"keywords": ["x"]})
    assert [getattr(block, "text", None) for block in result.content] == ["[]"]
    assert await call(client, "recall", memory_ids=[]) == []


async def test_two_answers_to_the_same_question_are_the_same(client: Client) -> None:
    """Nothing in an answer depends on when or how often it is asked."""
    for number in range(30):
        await call(client, "remember", **{**GIVEN, "content": f"x {number % 3}"})
    first = await client.call_tool("think", {"keywords": ["x", "2"]})
    second = await client.call_tool("think", {"keywords": ["x", "2"]})
    assert first == second
    assert len(value_of(first)) == 25


async def test_recall_keeps_the_order_and_drops_repeats(client: Client) -> None:
    """One entry for each id, found or not, in the order asked."""
    a, b = [(await call(client, "remember", **GIVEN))["memory_id"] for _ in range(2)]
    entries = await call(client, "recall", memory_ids=[b, "00000000", a, b, "00000000"])
    assert [entry["id"] for entry in entries] == [b, "00000000", a]
    assert entries[1] == {"id": "00000000", "error": "Memory with ID 00000000 not found"}


def large(base: Path, count: int, size: int) -> list[str]:
    """Put large memories into a directory; return their ids."""
    (base / "files").mkdir(parents=True, exist_ok=True)
    new = (Memory.new("claude", "marco", ["large"], "x") for _ in range(count))
    memories = [memory._replace(content="é" * (size // 2)) for memory in new]
    for memory in memories:
        (base / "files" / memory.file_name).write_text(format(memory), encoding="utf-8")
    return [memory.id for memory in memories]


async def test_recall_answers_what_fits_and_says_what_does_not(
    client: Client, tmp_path: Path
) -> None:
    """About eight mebibytes; what was left out is given when asked for, however large it is."""
    ids = large(tmp_path / "base", 4, 3_900_000)
    asked = ["ffffffff", *ids, ids[0]]
    entries = await call(client, "recall", memory_ids=asked)
    assert [entry["id"] for entry in entries] == asked[:-1]
    assert ["content" in entry for entry in entries[1:]] == [True, True, True, False]
    assert "ask for it alone" in entries[-1]["error"] and "8 MiB" in entries[-1]["error"]
    (one,) = await call(client, "recall", memory_ids=ids[3:])
    assert len(one["content"]) == 1_950_000


@pytest.mark.parametrize(("field", "most"), [("id", 200), ("timestamp", 100)])
async def test_what_think_gives_out_of_a_file_is_bounded(
    client: Client, tmp_path: Path, field: str, most: int
) -> None:
    """A file with a longer id or timestamp is no memory."""
    files = tmp_path / "base" / "files"
    files.mkdir(parents=True)
    for name, length, quote in (("a", most, ""), ("b", most + 1, ""), ("c", most + 1, '"')):
        values = {"id": "x", "timestamp": "t", field: f"{quote}{'y' * length}{quote}"}
        head = "".join(f"{key}: {value}\n" for key, value in values.items())
        text = f"---\n{head}agent: a\nuser: u\ntopics: [dog]\n---\n\ndog\n"
        (files / f"{name}.md").write_text(text)
    (hit,) = await call(client, "think", keywords=["dog"])
    assert hit[field] == "y" * most


async def test_recall_gives_every_memory_that_carries_the_id(
    client: Client, tmp_path: Path
) -> None:
    """After two machines drew the same id, both memories are there, the newer one first."""
    memory_id = (await call(client, "remember", **GIVEN))["memory_id"]
    older = Memory(memory_id, "2020-01-01T00:00:00+00:00", "gemini", "eva", ("tea",), "Older.")
    (tmp_path / "base" / "files" / "any name.md").write_text(format(older), encoding="utf-8")
    entries = await call(client, "recall", memory_ids=[memory_id])
    assert [entry["agent"] for entry in entries] == ["claude", "gemini"]


CONTENTS = {
    "line ends": "a\r\nb\rc\n\nd",
    "outer white space": "\n\n  x \t\n",
    "frontmatter look-alike": "---\nid: 00000000\nagent: x\n---\ntext\n---",
    "only delimiters": "---\n---\n---",
    "control characters": "\x00\x1a\x1b[31m\x0b\x0c\x85\u2028",
    "byte order mark": "\ufeffx\ufeff",
    "normal forms": "e\u0301 \u00e9 \u1e9b\u0323",
    "protocol": '{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "every plane": "é 中文 🙂 \U0010ffff \u202e",
    "a megabyte": "x" * 1024 * 1024,
}


async def test_content_is_kept_exactly(client: Client) -> None:
    """What was remembered is recalled byte for byte."""
    for case, content in CONTENTS.items():
        stored = await call(client, "remember", **{**GIVEN, "content": content})
        (recalled,) = await call(client, "recall", memory_ids=[stored["memory_id"]])
        assert recalled == {**recalled, **GIVEN, "content": content}, case


NAMES = """a: b|# x|'x|"x"|[a|{a: b}|&a|*a|!!python/object/apply:os.system|!!binary|null|~|yes|1e5
0x1f|012|2026-11-21|@x|%x|>|- x|? x|<<: *a|a---|---|José|中文|🙂| outer space |it's|a\\b|\ufeffx"""


async def test_names_come_back_exactly(client: Client) -> None:
    """Nothing that YAML or a key-value reader would take for syntax changes a name."""
    for name in (name for line in NAMES.split("\n") for name in line.split("|")):
        stored = await call(client, "remember", **{**GIVEN, "agent": name, "user": name})
        (recalled,) = await call(client, "recall", memory_ids=[stored["memory_id"]])
        assert recalled == {**recalled, **GIVEN, "agent": name, "user": name}


TOPICS = {
    "phrases are split": (
        ["programming languages", "python"],
        ["programming", "languages", "python"],
    ),
    "commas are split": (["a,b", "c, d"], ["a", "b", "c", "d"]),
    "brackets are stripped": (["[a", "b]", "[[c]]", "d[0]e"], ["a", "b", "c", "d[0]e"]),
    "repeats and empties are dropped": (["b", "", " ", "b", "a b"], ["b", "a"]),
    "syntax is kept": (["a:b", "#x", '"q"', "it's", "{x}", "---", "null", "1.0"], None),
}


async def test_topics_become_single_words(client: Client) -> None:
    """Topics are split into words, and otherwise kept; a list may come as JSON text."""
    for case, (given, expected) in TOPICS.items():
        for topics in (given, json.dumps(given)):
            stored = await call(client, "remember", **{**GIVEN, "topics": topics})
            (recalled,) = await call(client, "recall", memory_ids=[stored["memory_id"]])
            assert recalled["topics"] == (expected or given), case


async def test_lists_may_come_as_json_text(client: Client) -> None:
    """As some clients send them; the text of a content stays text."""
    given = {**GIVEN, "topics": '["tea"]', "content": '["green"]'}
    memory_id = (await call(client, "remember", **given))["memory_id"]
    (hit,) = await call(client, "think", keywords='["green"]')
    (recalled,) = await call(client, "recall", memory_ids=json.dumps([hit["id"]]))
    assert (hit["id"], recalled["content"]) == (memory_id, '["green"]')


TOO_LONG = "x" * 201
BAD: dict[str, list[Any]] = {
    "agent": [
        None,
        5,
        ["claude"],
        "",
        " \t",
        "a\nb",
        "a\rb",
        "a\x00",
        "a\x1b[0m",
        "a\x85",
        "a\u2028",
        TOO_LONG,
    ],
    "user": [
        None,
        5,
        {},
        "",
        "  ",
        "x\nid: 00000000",
        "x\r\n---",
        "a\x0b",
        "a\x1c",
        "a\u2029",
        TOO_LONG,
    ],
    "topics": [
        *(None, 5, {}, "python", "a, b", "null", '{"a": 1}', "['a']", "[5]"),
        *([], [""], [" ", "[]", ","]),
        *(
            [5],
            ["a", None],
            [["a"]],
            ["x" * 65],
            [f"t{n}" for n in range(33)],
            ["a\x00"],
            ["\x1b[0m"],
        ),
    ],
    "content": [None, 5, {}, ["x"], "", " \n\t ", "x" * (1024 * 1024 + 1), "é" * (512 * 1024 + 1)],
}


@pytest.mark.parametrize("field", BAD)
async def test_bad_input_is_refused_in_shape(client: Client, tmp_path: Path, field: str) -> None:
    """The sentence names the field and what would be right, and nothing is written."""
    for value in BAD[field]:
        answer = await fail(client, "remember", **{**GIVEN, field: value})
        assert answer["memory_id"] == ""
        assert answer["message"].startswith(f"Error storing memory: {field}: must be "), value
        assert "pydantic" not in answer["message"] and len(answer["message"]) < 300
    assert not (tmp_path / "base").exists()


async def test_missing_parameters_are_named(client: Client, tmp_path: Path) -> None:
    """Every missing one, in one answer."""
    answer = await fail(client, "remember", agent="claude")
    for field in ("user", "topics", "content"):
        assert f"{field}: is missing, it must be " in answer["message"]
    assert "agent" not in answer["message"]
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("value", [None, 5, "python", {}, [5], ["a", None], '{"a": 1}'])
async def test_think_and_recall_refuse_what_is_no_list_of_texts(client: Client, value: Any) -> None:
    """In the specified shape, with what would be right."""
    (answer,) = await fail(client, "think", keywords=value)
    assert answer["error"].startswith("Search failed: keywords: must be a list of words")
    (answer,) = await fail(client, "recall", memory_ids=value)
    assert answer["error"].startswith("Recall failed: memory_ids: must be a list of ids")


@pytest.mark.parametrize("keywords", [[], ["", " "]])
async def test_think_refuses_an_empty_list(client: Client, keywords: list[str]) -> None:
    """There is nothing to look for."""
    (answer,) = await fail(client, "think", keywords=keywords)
    assert answer["error"].startswith("Search failed: keywords: must be a list of words")


async def test_recall_refuses_more_ids_than_think_ever_finds(client: Client) -> None:
    """In the specified shape, with the limit; one that is asked for again costs nothing."""
    ids = [f"{n:08x}" for n in range(1_001)]
    assert len(await call(client, "recall", memory_ids=ids[1:] * 100)) == 1_000
    (answer,) = await fail(client, "recall", memory_ids=ids)
    assert answer["error"].startswith("Recall failed: memory_ids: must be a list of ids")
    assert answer["error"].endswith("with at most 1,000 in one call")


IDS = [
    *("*", "????????", "[0-9a-f]*", "[a-f]", "../outside", "../files/x", "/etc/passwd", "-rf"),
    *(" a1b2c3d4", "a1b2c3d4 ", "a1b2c3d4\n", "A1B2C3D4", "a1b2c3d", "a1b2c3d4.md", "con", "C:\\x"),
    *("\\\\srv\\share", "\uff41\uff11", "\u0661\u0662", "\u202ea1b2c3d4", "\x00", "a1b2c3d4\x00"),
    *("", ".", "..", "a" * 1_000_000),
]


async def test_ids_are_compared_never_globbed(client: Client, tmp_path: Path) -> None:
    """A pattern, a path or a look-alike finds nothing and touches nothing."""
    files_directory = tmp_path / "base" / "files"
    files_directory.mkdir(parents=True)
    text = format(Memory("a1b2c3d4", "2026-01-01", "a", "b", ("c",), "d"))
    (files_directory / "20260101_000000_a1b2c3d4.md").write_text(text)
    (tmp_path / "base" / "outside.md").write_text(text.replace("a1b2c3d4", "../outside"))
    entries = await call(client, "recall", memory_ids=IDS)
    assert entries == [{"id": i, "error": f"Memory with ID {i} not found"} for i in IDS]
    assert len(files(tmp_path)) == 1


async def test_an_unknown_tool_is_an_error(client: Client) -> None:
    """Of the protocol, not of a tool, and the server goes on."""
    with pytest.raises(MCPError, match="Unknown tool: forget") as raised:
        await client.call_tool("forget", {})
    assert raised.value.code == INVALID_PARAMS
    assert await call(client, "think", keywords=["x"]) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_process_answers_and_records_its_clients(mode: str, tmp_path: Path) -> None:
    """The same through stdio, on both eras; when a client asked and stored is known afterwards."""
    base = tmp_path / "base"
    settings = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    environ = {**os.environ, **settings}
    server = StdioServerParameters(command=sys.executable, args=["-m", "aiaml_server"], env=environ)
    about = Implementation(name="tests", version="1")
    async with Client(server, mode=mode, client_info=about) as client:
        memory_id = (await call(client, "remember", **GIVEN))["memory_id"]
        assert [hit["id"] for hit in await call(client, "think", keywords=["hints"])] == [memory_id]
        answer = await fail(client, "remember", **{**GIVEN, "user": ""})
        assert answer["message"].startswith("Error storing memory: user: must be")
    (activity,) = read_activity(base)
    assert (activity.client, activity.asked_count, activity.stored_count) == ("tests", 1, 1)
