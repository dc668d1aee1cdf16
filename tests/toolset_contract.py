"""The promises of every toolset, as tests: a subclass names the toolset and its story."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal
from unittest import mock

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, TextContent
from pydantic import TypeAdapter

from aiaml_server import toolsets
from aiaml_server.server import protocol as server
from aiaml_server.toolset import Manifest, Toolset
from client import SERVER
from client import Client as RawClient

__all__ = ["HOSTILE", "INSTRUCTIONS_LIMIT", "Call", "Contract", "tree"]

INSTRUCTIONS_LIMIT = 2048
"""Characters after which hosts cut a server's instructions and a tool's description."""

Call = Callable[..., Any]
"""Calls a tool by its name with arguments, and returns the value that it answers."""

HOSTILE: list[Any] = [
    None, True, 5, -1, 1.5, "", " ", "\x00", f"a{chr(27)}[0m", "\ud800", "../../x", "x" * 100_000,
    [], [5], [None], [[]], {}, {"a": 1},
]  # fmt: skip
"""What no parameter may be broken by."""


def tree(path: Path) -> dict[str, str]:
    """Return every file below a directory with a digest of what it holds."""
    return {
        str(each.relative_to(path)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(path.rglob("*"))
        if each.is_file()
    }


class Contract:
    """The promises, each a test; a subclass fills in `name`, `environ` and `story`.

    Attributes:
        name: the toolset's name.
        command: what starts a server, but for the options.
    """

    name: str
    command: tuple[str, ...] = SERVER

    def environ(self, place: Path) -> dict[str, str]:
        """Return the variables that lead the toolset to a directory of the test's own."""
        raise NotImplementedError

    def story(self, call: Call) -> None:
        """Use each tool at least once, well: `call(tool, **arguments)` returns its value."""
        raise NotImplementedError

    @property
    def manifest(self) -> Manifest:
        """The manifest under test."""
        return toolsets.manifest(self.name)

    @contextmanager
    def toolset(self, place: Path) -> Iterator[Toolset]:
        """Build the toolset on a directory."""
        environ = {**os.environ, **self.environ(place)}
        with mock.patch.dict(os.environ, environ):
            yield resolve_name(self.manifest.build)(self.manifest.read_settings(environ))

    @pytest.fixture(params=["auto", "legacy"])
    async def client(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
        """Connect in memory, in both eras of the protocol."""
        with self.toolset(tmp_path) as toolset:
            async with Client(server.Server([toolset]), mode=request.param) as client:
                await client.list_tools()  # from here on answers are checked against their schemas
                yield client

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, as the server does."""
        return "asyncio"

    def shapes(self, place: Path) -> dict[str, TypeAdapter[Any]]:
        """Return what judges each tool's answers."""
        with self.toolset(place) as toolset:
            return {each.name: TypeAdapter(each.answer_type) for each in toolset.tools}

    # --- the promises -----------------------------------------------------------------------------

    def test_its_manifest_is_light(self) -> None:
        """Looking at it imports neither the SDK nor what its tools need."""
        heavy = ("mcp", "pydantic", "click", "git", "sqlite3", *self.manifest.needs)
        script = (
            f"import sys; from aiaml_server import toolsets; toolsets.manifest({self.name!r}); "
            f"print([each for each in {heavy!r} if each in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        assert done.stdout.strip() == b"[]"

    def test_its_manifest_says_what_is_served(self, tmp_path: Path) -> None:
        """The names of the tools, a line, and settings, whose names begin with `AIAML_`."""
        with self.toolset(tmp_path) as toolset:
            assert tuple(each.name for each in toolset.tools) == self.manifest.tools
        assert self.manifest.summary and "\n" not in self.manifest.summary
        for variable in self.manifest.settings:
            assert variable.help and re.fullmatch("AIAML_[A-Z0-9_]+", variable.name)

    def test_its_places_are_there(self) -> None:
        """What the manifest names as `module:name` can be imported and called."""
        places = [self.manifest.build, self.manifest.commands, self.manifest.checks]
        for place in filter(None, [*places, *self.manifest.hooks.values()]):
            assert callable(resolve_name(place)), place

    def test_its_words_fit_where_hosts_cut_them(self, tmp_path: Path) -> None:
        """Instructions and descriptions stay below 2,048 characters, alone and with all others."""
        with self.toolset(tmp_path) as toolset:
            assert 0 < len(toolset.instructions) < INSTRUCTIONS_LIMIT
            assert 0 < len(toolset.brief) < INSTRUCTIONS_LIMIT // 4
            for tool in toolset.tools:
                assert tool.title and 0 < len(tool.description) < INSTRUCTIONS_LIMIT

    @pytest.mark.anyio
    async def test_every_parameter_is_explained(self, client: Client, tmp_path: Path) -> None:
        """With a description, an example, and the rule that a wrong type is answered with."""
        with self.toolset(tmp_path) as toolset:
            rules = {each.name: each.rules for each in toolset.tools}
        for tool in (await client.list_tools()).tools:
            parameters = tool.input_schema.get("properties", {})
            assert set(parameters) == set(rules[tool.name])
            for name, parameter in parameters.items():
                assert parameter["description"] and parameter["examples"]
                assert not rules[tool.name][name].startswith("must")  # that stands before it

    @pytest.mark.anyio
    async def test_an_argument_that_a_tool_has_not_is_refused(
        self, client: Client, tmp_path: Path
    ) -> None:
        """In the tool's shape, and its schema says so; a lenient tool does neither."""
        with self.toolset(tmp_path) as toolset:
            lenient = {each.name for each in toolset.tools if each.ignores_unknown}
        shapes = self.shapes(tmp_path)
        for tool in (await client.list_tools()).tools:
            closed = tool.input_schema.get("additionalProperties") is False
            assert closed == (tool.name not in lenient)
            if closed:
                result = await client.call_tool(tool.name, {"no_such_argument": 1})
                assert result.is_error
                assert isinstance(result.content[0], TextContent)
                assert "no_such_argument" in result.content[0].text
                shapes[tool.name].validate_python(json.loads(result.content[0].text))

    @pytest.mark.anyio
    async def test_annotations_are_true(self, client: Client) -> None:
        """Every tool says whether it reads, and whether it can take something away."""
        for tool in (await client.list_tools()).tools:
            assert tool.annotations
            hints = tool.annotations.model_dump(exclude={"title"})
            assert all(isinstance(hint, bool) for hint in hints.values()), hints
            if hints["read_only_hint"]:
                assert not hints["destructive_hint"]

    def test_what_only_reads_writes_nothing(self, tmp_path: Path) -> None:
        """A tool that says that it only reads leaves every file but derived ones as it was."""
        place = tmp_path / "place"
        with self.toolset(tmp_path) as toolset:
            reads = {each.name for each in toolset.tools if each.read_only}
        place.mkdir()
        with self.served(place) as served:

            def call(tool: str, **arguments: Any) -> Any:
                before = self.lasting(place)
                value = served(tool, **arguments)
                if tool in reads:
                    assert self.lasting(place) == before, tool
                return value

            self.story(call)

    def lasting(self, place: Path) -> dict[str, str]:
        """Return the files but the index and the id of a new memory directory."""
        derived = (".index", ".aiaml-id")
        return {
            name: digest
            for name, digest in tree(place).items()
            if not any(part in name for part in derived)
        }

    @pytest.mark.anyio
    async def test_every_failure_has_its_shape(self, client: Client, tmp_path: Path) -> None:
        """Whatever is given for a parameter: a value of the tool's shape, and no traceback."""
        shapes = self.shapes(tmp_path)
        for tool in (await client.list_tools()).tools:
            for parameter in tool.input_schema.get("properties", {}):
                for value in HOSTILE:
                    if isinstance(value, str):
                        value = value.encode("utf-8", "replace").decode()  # noqa: PLW2901
                    result = await client.call_tool(tool.name, {parameter: value})
                    self.judge(result, shapes[tool.name])
            result = await client.call_tool(tool.name, {})
            self.judge(result, shapes[tool.name])

    def judge(self, result: CallToolResult, shape: TypeAdapter[Any]) -> None:
        """See that an answer has the tool's shape, twice the same, and tells nothing private."""
        first = result.content[0]
        assert first.type == "text"
        value = json.loads(first.text)
        assert first.text == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        structured = result.structured_content
        assert structured == (value if isinstance(value, dict) else {"result": value})
        shape.validate_python(structured, strict=True)
        assert "Traceback" not in first.text and "pydantic" not in first.text

    def test_a_crash_is_answered_in_shape(self, tmp_path: Path) -> None:
        """No text of the exception is in the answer."""
        with self.toolset(tmp_path) as toolset:
            for tool in toolset.tools:
                value = tool.error_answer(None)
                TypeAdapter(tool.answer_type).validate_python(
                    value if isinstance(value, dict) else {"result": value}, strict=True
                )
                assert "internal error" in json.dumps(value)

    def test_two_processes_serve_it_at_once(self, tmp_path: Path) -> None:
        """Both live through the story, in the same place, without an error."""
        place = tmp_path / "place"
        place.mkdir()

        def play(number: int) -> None:
            log = tmp_path / f"log{number}"
            with self.served(place, log=log) as call:
                for _ in range(2):
                    self.story(call)
            assert "Traceback" not in log.read_text("utf-8")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(play, range(2)))

    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    def test_a_client_plays_the_story(
        self, mode: Literal["auto", "legacy"], tmp_path: Path
    ) -> None:
        """With a real process, in both eras; answers are checked with the listed schemas."""
        with self.served(tmp_path, mode) as call:
            self.story(call)

    @contextmanager
    def served(
        self,
        place: Path,
        mode: Literal["auto", "legacy"] = "auto",
        log: Path = Path(os.devnull),
    ) -> Iterator[Call]:
        """Start a server with this toolset alone; yield what calls its tools.

        Args:
            place: the test's own directory.
            mode: the era of the protocol.
            log: where the server's standard error goes.
        """
        command, words = self.command[0], [*self.command[1:], "--toolset", self.name]
        environ = {**os.environ, **self.environ(place)}
        started = StdioServerParameters(command=command, args=words, env=environ)
        with log.open("w", encoding="utf-8") as stream, start_blocking_portal() as portal:
            client = Client(stdio_client(started, stream), mode=mode)
            with portal.wrap_async_context_manager(client):
                listed = portal.call(client.list_tools).tools
                assert tuple(each.name for each in listed) == self.manifest.tools

                def call(tool: str, **arguments: Any) -> Any:
                    result = portal.call(partial(client.call_tool, tool, arguments))
                    value = result.structured_content
                    return value["result"] if set(value or ()) == {"result"} else value

                yield call

    def test_it_ends_when_its_client_leaves(self, tmp_path: Path) -> None:
        """At once, with exit code 0 and no traceback in the log."""
        with self.process(tmp_path) as client:
            self.story(client.call)
            assert client.close() == 0
            assert "Traceback" not in client.log()

    def process(self, place: Path) -> RawClient:
        """Start a server with this toolset alone, behind a client that speaks in raw lines."""
        return RawClient(
            place, command=(*self.command, "--toolset", self.name), environ=self.environ(place)
        )
