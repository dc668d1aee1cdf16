"""Arguments as clients send them, for every tool of every toolset."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import wraps
from pkgutil import resolve_name
from typing import Any, NamedTuple
from unittest import mock

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from aiaml_server import toolsets
from aiaml_server.errors import AiamlError
from aiaml_server.server.protocol import RegisteredTool, Server
from aiaml_server.toolset import Tool
from aiaml_server.toolsets import OWN


class Nothing(AiamlError):  # noqa: N818
    """What a tool does that is only listened to."""


class Spied(NamedTuple):
    """A tool whose function only notes what it is given."""

    served: RegisteredTool
    heard: list[dict[str, Any]]

    def call(self, **arguments: Any) -> dict[str, Any]:
        """Return what the function gets, objects as JSON; a refusal's sentence as `refused`."""
        self.heard.clear()
        answer = anyio.run(self.served.call, arguments)
        if self.heard:
            return dict(to_jsonable_python(self.heard[0]))
        return dict(answer.structured_content or {})

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the schema of each parameter."""
        found: dict[str, dict[str, Any]] = self.served.listed.input_schema["properties"]
        return found


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spied]:
    """Return every tool of every toolset, by toolset and name."""
    place = tmp_path_factory.mktemp("place")
    environ = {
        **os.environ,
        "HOME": str(place),
        "AIAML_MEMORY_DIR": str(place / "base"),
    }
    found = {}
    with mock.patch.dict(os.environ, environ):
        for name in OWN:
            one = toolsets.manifest(name)
            for tool in resolve_name(one.build)(one.read_settings(environ)).tools:
                found[f"{name} {tool.name}"] = spy(tool)
    return found


def spy(tool: Tool) -> Spied:
    """Return a tool with the same parameters, which does nothing."""
    heard: list[dict[str, Any]] = []

    @wraps(tool.call)
    def note(**arguments: Any) -> Any:
        heard.append(arguments)
        raise Nothing

    async def ready() -> None:
        pass

    def refused(error: AiamlError | None) -> dict[str, str]:
        return {"refused": str(error)}

    return Spied(RegisteredTool(tool._replace(call=note, error_answer=refused)), heard)


NAMES = [f"{name} {tool}" for name in OWN for tool in toolsets.manifest(name).tools]

like_json = st.one_of(
    st.sampled_from(["null", "true", "1", "1.0", "[]", "{}", '""', '{"a": 1}', " null ", "NaN"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=3,
    ).map(json.dumps),
)
texts = like_json | st.text(min_size=1)


def valid(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw what a schema allows, with any texts."""
    if "anyOf" in schema:
        return st.one_of([valid(each) for each in schema["anyOf"] if each["type"] != "null"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "properties" in schema:
        parts = {name: valid(each) for name, each in schema["properties"].items()}
        return st.fixed_dictionaries(parts)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": texts,
        "integer": st.integers(schema.get("minimum", 1), schema.get("maximum", 9)),
        "number": st.floats(schema.get("exclusiveMinimum", 0), 1, exclude_min=True),
        "boolean": st.booleans(),
    }
    if schema["type"] == "array":
        return st.lists(valid(schema["items"]), max_size=3)
    if schema["type"] == "object":
        return st.dictionaries(texts, valid(schema["additionalProperties"]), max_size=3)
    return kinds[schema["type"]]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_arguments_text_is_given_as_it_was_sent(
    tools: dict[str, Spied], name: str, data: st.DataObject
) -> None:
    """What looks like JSON is text where text is asked for, by itself, in lists and in objects."""
    sent = data.draw(valid(tools[name].served.listed.input_schema))
    assert tools[name].call(**sent) == sent


READ_BACK: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "aiaml": (
        "remember", {"agent": "a", "user": "u", "topics": ["x"]}, "recall", {"memory_ids": [...]},
    ),
    "compartments": (
        "save_memory", {"compartment": "run"}, "get_memory", {"id": ...},
    ),
    "semantic": ("store_memory", {}, "list_memories", {"ids": [...]}),
    "citations": ("memory_save", {"subject": "S"}, "memory_get", {"memory_id": ...}),
}  # fmt: skip
"""What stores a content in each toolset, and what reads it where its id stands for the dots."""
AROUND = ("", " ", "\n", "\r\n", "\t", " \n\n", "\u3000", "\r")


@pytest.mark.slow
@pytest.mark.parametrize("name", READ_BACK)
@given(
    before=st.sampled_from(AROUND),
    text=st.text(st.characters(categories=["L", "N", "P"]), min_size=1),
    between=st.sampled_from(AROUND),
    behind=st.sampled_from(AROUND),
)
def test_arguments_content_is_stored_as_it_was_sent(
    tmp_path_factory: pytest.TempPathFactory,
    name: str, before: str, text: str, between: str, behind: str,
) -> None:  # fmt: skip
    """With the blanks and line ends at its edges; `citations` keeps text files, with theirs."""
    sent = f"{before}{text}{between}1{behind}"
    place = tmp_path_factory.mktemp("place")
    (place / ".git").mkdir()
    places = {
        "HOME": str(place), "USERPROFILE": str(place), "AIAML_MEMORY_DIR": str(place / "base"),
        "AIAML_COMPARTMENTS_FILE": str(place / "file.json"), "AIAML_CITATIONS_REPO": str(place),
    }  # fmt: skip
    environ = {**os.environ, **places}
    one = toolsets.manifest(name)
    storing, more, reading, by = READ_BACK[name]
    where = {key: value for key, value in more.items() if key == "compartment"}

    async def play() -> Any:
        async with Client(Server([resolve_name(one.build)(one.read_settings(environ))])) as client:
            stored = await client.call_tool(storing, {**more, "content": sent})
            answer = stored.structured_content or {}
            made = answer.get("id") or answer["memory_id"]
            asked = {key: made if dots is ... else [made] for key, dots in by.items()}
            return await client.call_tool(reading, {**asked, **where})

    with mock.patch.dict(os.environ, places):
        read = json.dumps(anyio.run(play).structured_content)
    expected = re.sub(r"\r\n?", "\n", sent).strip("\n") if name == "citations" else sent
    assert f'"content": {json.dumps(expected)}' in read


# --- as clients send them -------------------------------------------------------------------------


def example(schema: dict[str, Any]) -> Any:
    """Return a value that a parameter may have."""
    return schema.get("enum", schema["examples"])[0]


def required(tool: Spied) -> dict[str, Any]:
    """Return an example for each parameter that must be given."""
    names = tool.served.listed.input_schema.get("required", [])
    return {name: example(tool.parameters[name]) for name in names}


AS_SENT: list[tuple[str, str, Any, Any]] = [
    # kind, what about it, what is sent, what is meant
    ("integer", "text", "7", 7),  # modelcontextprotocol/inspector's --tool-arg, proxies
    ("integer", "text with a point", "7.0", 7),
    ("integer", "a float", 7.0, 7),  # JSON of languages with one kind of number
    ("integer", "a whole number", 7, 7),
    ("number", "text", "0.5", 0.5),
    ("number", "a whole number", 1, 1),
    ("boolean", "text", "true", True),
    ("boolean", "text of Python", "False", False),
    ("string", "a number in text", "7", "7"),
    ("string", "null in text", "null", "null"),
    ("array", "empty", [], []),
]
"""Lists and objects as JSON text: see below."""


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_taken_as_they_can_only_be_meant(tools: dict[str, Spied], name: str) -> None:
    """Numbers as text, whole ones as floats; null and empty text stand for what is left out."""
    tool = tools[name]
    usual = required(tool)
    empties = tool.served.tool.allow_empty
    for parameter, schema in tool.parameters.items():
        for kind, what, sent, meant in AS_SENT:
            if kind == schema["type"] and not ("enum" in schema and kind == "string"):
                got = tool.call(**{**usual, parameter: sent})
                assert got == {**usual, parameter: meant}, (parameter, what)
                assert type(got[parameter]) in (type(meant), float), (parameter, what)
        if parameter in usual:
            assert "must be" in tool.call(**{**usual, parameter: None})["refused"]
        else:
            assert tool.call(**usual, **{parameter: None}) == usual
            scalar = schema["type"] not in ("array", "object")
            if scalar and parameter not in empties:
                assert tool.call(**usual, **{parameter: ""}) == usual
            elif scalar:
                assert tool.call(**usual, **{parameter: ""}) == {**usual, parameter: ""}


@pytest.mark.parametrize("name", NAMES)
def test_arguments_lists_and_objects_may_come_as_json_text(
    tools: dict[str, Spied], name: str
) -> None:
    """As Claude Code on Windows, Copilot CLI and proxies send them."""
    tool = tools[name]
    usual = required(tool)
    for parameter, schema in tool.parameters.items():
        if schema["type"] in ("array", "object"):
            meant = tool.call(**{**usual, parameter: example(schema)})
            sent = json.dumps(example(schema))
            assert tool.call(**{**usual, parameter: sent}) == meant, parameter
            assert tool.call(**{**usual, parameter: f" {sent}\n"}) == meant, parameter


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_another_type_are_refused_with_what_is_right(
    tools: dict[str, Spied], name: str
) -> None:
    """A list as text is answered with the list; truth is no number, a fraction no whole number."""
    tool = tools[name]
    usual = required(tool)
    wrong: dict[str, list[Any]] = {
        "integer": [True, 1.5, "many", "true", "0x10", [1]],
        "number": ["half", "nan", True, [1]],
        "boolean": ["yes", 1, "1"],
        "string": [7, True, ["a"], {"a": 1}],
        "array": ["a", "a, b", '{"a": 1}', "null", {"a": 1}],
        "object": ["a", "[]", "null", ["a"]],
    }
    for parameter, schema in tool.parameters.items():
        for sent in wrong[schema["type"]]:
            message = tool.call(**{**usual, parameter: sent})["refused"]
            assert f"{parameter}: must be " in message, sent


class Shape(TypedDict, total=False):
    """What the tool below answers."""

    refused: str


def plainly_typed(limit: int, share: float = 0.5, several: Sequence[int] = ()) -> Shape:
    """Take numbers whose annotations say no more."""
    raise AssertionError((limit, share, several))


@pytest.fixture
def plain() -> Spied:
    """Return a tool as somebody writes it who has read nothing of this."""
    rules = {"limit": "a whole number", "share": "a number", "several": "whole numbers"}
    return spy(Tool("plain", "Plain", "Plain.", plainly_typed, Shape, rules, str))


@pytest.mark.parametrize("sent", [{"limit": True}, {"share": False}, {"several": [1, True]}])
def test_arguments_truth_is_no_number_for_any_tool(plain: Spied, sent: dict[str, Any]) -> None:
    """Python counts it as one; so its annotation need not say that it is none."""
    (name,) = sent
    assert plain.call(**{"limit": 1, **sent})["refused"].startswith(f"{name}: must be ")


def test_arguments_that_a_tool_has_not_are_answered_with_what_it_takes(plain: Spied) -> None:
    """Each of them is named."""
    refused = plain.call(limt=5, text="x")["refused"]
    for name in ("limt", "text"):
        wanted = f"{name}: is no argument of this tool; it takes limit, share, several"
        assert wanted in refused


@pytest.mark.parametrize("name", NAMES)
def test_schema_says_one_plain_type_of_each_part(tools: dict[str, Spied], name: str) -> None:
    """No choice between types, no reference, no title, no null: a form can be made of it."""
    parts = [tools[name].served.listed.input_schema]
    while parts:
        part = parts.pop()
        assert isinstance(part["type"], str)
        assert not {"anyOf", "$ref", "$defs", "title"} & part.keys()
        assert None not in [*part.get("enum", []), part.get("default", 0)]
        inner = (part.get("items"), part.get("additionalProperties"))
        parts += [*part.get("properties", {}).values(), *(x for x in inner if isinstance(x, dict))]


@pytest.mark.parametrize("name", NAMES)
def test_a_number_says_the_least_that_it_may_be(tools: dict[str, Spied], name: str) -> None:
    """So that a host can refuse it before the call."""
    for parameter, schema in tools[name].parameters.items():
        assert schema["type"] != "integer" or "minimum" in schema, parameter


MOST = {
    "aiaml": 7000,
    "sessions": 6600,
    "compartments": 5600,
    "citations": 14000,
    "semantic": 13600,
}


@pytest.mark.parametrize("toolset", MOST)
def test_the_list_of_tools_is_short(tools: dict[str, Spied], toolset: str) -> None:
    """Every conversation pays for it, in characters as they are sent."""
    listed = [each.served.listed for name, each in tools.items() if name.split()[0] == toolset]
    size = sum(len(each.model_dump_json(by_alias=True, exclude_unset=True)) for each in listed)
    assert size <= MOST[toolset]
