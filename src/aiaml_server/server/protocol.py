"""The MCP server: registers the tools, resources and prompts of toolsets with the SDK.

`Server` is the SDK's `MCPServer`, whose methods for listing and calling tools are overridden: it
cannot give the specified answers. It sends a list as one text block per item (and none for an empty
list), answers a failure in its own words instead of the tool's JSON shape, and repeats private
arguments in them. It also derives other schemas than `arguments` does.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial, wraps
from typing import Any

import anyio
from anyio import to_thread
from mcp import types
from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import Prompt as SdkPrompt
from mcp.server.mcpserver.prompts.base import PromptArgument
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from aiaml_server import __version__
from aiaml_server.errors import AiamlError
from aiaml_server.server import stdio
from aiaml_server.server.arguments import Arguments, plain_schema
from aiaml_server.server.streams import LineReader, LineWriter
from aiaml_server.toolset import (
    INTERNAL_ERROR,
    Answer,
    Prompt,
    Resource,
    Tool,
    Toolset,
    current_client,
    replace_surrogates,
)

log = logging.getLogger(__name__)

NAME = "AI Agnostic Memory Layer"
MAX_CALLS = 40
"""Calls of one tool that run at the same time; further ones wait."""


class RegisteredTool:
    """One tool as it is listed and called.

    Attributes:
        tool: the toolset's description of it.
        listed: what clients see in the list of tools.
    """

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._arguments = Arguments(tool)
        self._answers: TypeAdapter[Any] = TypeAdapter(tool.answer_type)
        answer_schema = self._answers.json_schema()
        # Each tool has its own limit, so that calls that wait for a lock delay no other tool.
        self._limiter = anyio.CapacityLimiter(MAX_CALLS)
        self.listed = types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=self._arguments.schema,
            output_schema=plain_schema(answer_schema, answer_schema.get("$defs", {}), output=True),
            annotations=types.ToolAnnotations(
                read_only_hint=tool.read_only,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent,
                open_world_hint=tool.open_world,
            ),
        )

    async def call(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call the tool in a thread; every exception becomes an answer in the tool's shape."""
        try:
            call = partial(self.tool.call, **self._arguments.read(arguments))
            result = make_result(await to_thread.run_sync(call, limiter=self._limiter))
            self._answers.validate_python(result.structured_content)
        except AiamlError as error:
            return make_result(self.tool.error_answer(error), is_error=True)
        except Exception:
            log.exception("Tool %s crashed", self.tool.name)
            return make_result(self.tool.error_answer(None), is_error=True)
        return result


class Server(MCPServer[None]):
    """A server for one client, with everything that its toolsets contain."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        """Register the toolsets; their names do not collide."""
        self._toolsets = toolsets
        tools = [tool for toolset in toolsets for tool in toolset.tools]
        resources = [resource for toolset in toolsets for resource in toolset.resources]
        prompts = [prompt for toolset in toolsets for prompt in toolset.prompts]
        self._bus = InMemorySubscriptionBus()
        is_subscribable = any(resource.subscribable for resource in resources)
        briefs = "\n\n".join(toolset.brief for toolset in toolsets)
        super().__init__(
            NAME,
            title=NAME,
            version=__version__,
            instructions=briefs if len(toolsets) > 1 else toolsets[0].instructions,
            lifespan=self._open_toolsets,
            subscriptions=self._bus if is_subscribable else False,
        )
        self.tools = {tool.name: RegisteredTool(tool) for tool in tools}
        for resource in resources:
            self._add_resource(resource)
        for prompt in prompts:
            self._add_prompt(prompt)

    def serve(self, reader: LineReader, writer: LineWriter, handled: Collection[object]) -> int:
        """Serve the client of this process; return the exit code. See `stdio.serve`."""
        return asyncio.run(stdio.serve(self._lowlevel_server, reader, writer, handled))

    async def converse(self, lines: AsyncIterator[bytes], writer: Any) -> None:
        """Answer recorded lines. See `stdio.converse`."""
        await stdio.converse(self._lowlevel_server, lines, writer)

    @asynccontextmanager
    async def _open_toolsets(self, _server: MCPServer[None]) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def on_change(uri: str) -> None:
            asyncio.run_coroutine_threadsafe(self._bus.publish(ResourceUpdated(uri=uri)), loop)

        with ExitStack() as stack:
            for toolset in self._toolsets:
                stack.enter_context(toolset.lifespan(on_change))
            yield

    # --- tools ------------------------------------------------------------------------------------

    async def list_tools(self) -> list[types.Tool]:
        """Return all tools."""
        return [tool.listed for tool in self.tools.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> types.CallToolResult:
        """Call a tool.

        Raises:
            MCPError: there is no such tool.
        """
        if name not in self.tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name[:100]}")
        client = context.request_context.session.client_params if context else None
        if client:
            current_client.set(client.client_info.name)
        return await self.tools[name].call(arguments)

    # --- resources and prompts --------------------------------------------------------------------

    def _add_resource(self, resource: Resource) -> None:
        register = self.resource(
            resource.uri,
            name=resource.name,
            description=resource.description,
            mime_type=resource.mime_type,
        )
        register(_guard(resource.read, f"resource {resource.uri}"))

    def _add_prompt(self, prompt: Prompt) -> None:
        registered = SdkPrompt(
            name=prompt.name,
            title=prompt.title,
            description=prompt.description,
            arguments=[PromptArgument(**argument._asdict()) for argument in prompt.arguments],
            fn=_guard(prompt.text, f"prompt {prompt.name}"),
            context_kwarg=None,
        )
        self.add_prompt(registered)


def _guard(function: Callable[..., str], name: str) -> Callable[..., str]:
    """Wrap a function: errors name what failed, without the text of unexpected exceptions."""

    @wraps(function)
    def call(**arguments: str) -> str:
        try:
            return replace_surrogates(function(**arguments))
        except LookupError:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no such {name.format(**arguments)}"
            ) from None
        except AiamlError as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        except Exception as error:
            log.exception("The %s crashed", name)
            raise MCPError(types.INTERNAL_ERROR, INTERNAL_ERROR) from error

    return call


def make_result(value: Any, *, is_error: bool = False) -> types.CallToolResult:
    """Return a JSON value as one text block, and as structured content.

    There, a list becomes `{"result": [...]}`, as protocols before 2026-07-28 require an object.
    Notes follow in further text blocks.
    """
    value, notes = value if isinstance(value, Answer) else (value, ())
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, such as from a file name
        text = replace_surrogates(text)
        value = json.loads(text)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=block) for block in (text, *notes)],
        structured_content=value if isinstance(value, dict) else {"result": value},
        is_error=is_error,
    )
