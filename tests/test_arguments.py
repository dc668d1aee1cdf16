"""Arguments as clients send them, for every tool of every toolset."""

from __future__ import annotations

import json
import os
from functools import wraps
from typing import Any, NamedTuple
from unittest import mock

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiaml_server import toolsets
from aiaml_server.errors import AiamlError
from aiaml_server.server.protocol import Served
from aiaml_server.toolset import Tool, at
from aiaml_server.toolsets import OWN


class Nothing(AiamlError):  # noqa: N818
    """What a tool does that is only listened to."""


class Spied(NamedTuple):
    """A tool whose function only notes what it is given."""

    served: Served
    heard: list[dict[str, Any]]

    def call(self, **arguments: Any) -> dict[str, Any]:
        """Return what the function gets; a refusal's sentence as `refused`."""
        self.heard.clear()
        answer = anyio.run(self.served.call, arguments)
        return self.heard[0] if self.heard else {"refused": answer.content[0].text}  # type: ignore[union-attr]

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return the schema of each parameter."""
        found: dict[str, dict[str, Any]] = self.served.listed.input_schema["properties"]
        return found


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Spied]:
    """Return every tool of every toolset, by toolset and name."""
    place = tmp_path_factory.mktemp("place")
    environ = {**os.environ, "HOME": str(place), "AIAML_MEMORY_DIR": str(place / "base")}
    found = {}
    with mock.patch.dict(os.environ, environ):
        for name in OWN:
            one = toolsets.manifest(name)
            for tool in at(one.build)(one.values(environ)).tools:
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

    return Spied(Served(tool._replace(call=note), ready), heard)


NAMES = [f"{name} {tool}" for name in OWN for tool in toolsets.manifest(name).tools]

like_json = st.one_of(
    st.sampled_from(["null", "true", "1", "1.0", "[]", "{}", '""', '{"a": 1}', " null ", "NaN"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ).map(json.dumps),
)
texts = like_json | st.text(min_size=1)


def valid(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw what a schema allows, with any texts."""
    if "anyOf" in schema:
        return st.one_of([valid(each) for each in schema["anyOf"] if each["type"] != "null"])
    if "properties" in schema:
        parts = {name: valid(each) for name, each in schema["properties"].items()}
        return st.fixed_dictionaries(parts)
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": texts,
        "integer": st.integers(schema.get("minimum", 1), schema.get("maximum", 9)),
        "number": st.floats(0, 1),
        "boolean": st.booleans(),
    }
    if schema["type"] == "array":
        return st.lists(valid(schema["items"]), max_size=3)
    if schema["type"] == "object":
        return st.dictionaries(texts, valid(schema["additionalProperties"]), max_size=3)
    return kinds[schema["type"]]


def resolved(schema: Any, known: dict[str, Any]) -> Any:
    """Put what a schema refers to in its place."""
    if isinstance(schema, list):
        return [resolved(each, known) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolved(known[schema["$ref"].rpartition("/")[2]], known)
    return {name: resolved(each, known) for name, each in schema.items()}


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_arguments_text_is_given_as_it_was_sent(
    tools: dict[str, Spied], name: str, data: st.DataObject
) -> None:
    """What looks like JSON is text where text is asked for, by itself, in lists and in objects."""
    schema = tools[name].served.listed.input_schema
    sent = data.draw(valid(resolved(schema, schema.get("$defs", {}))))
    assert tools[name].call(**sent) == sent
