"""The MCP server: collects what toolsets state, and serves it over stdio."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio
from mcp import types
from mcp.server import Server as ProtocolServer
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from aiaml_server import __version__
from aiaml_server.errors import AiamlError, InvalidSetting
from aiaml_server.server import stdio
from aiaml_server.server.arguments import Arguments, terse
from aiaml_server.server.greeting import Greeting
from aiaml_server.server.wire import Wire
from aiaml_server.toolset import (
    INTERNAL_ERROR,
    Answer,
    Resource,
    Tool,
    Toolset,
    current_client,
    replace_surrogates,
)

log = logging.getLogger(__name__)

NAME = "AI Agnostic Memory Layer"
MOST = 40
"""Calls of a tool that run at once; further ones wait."""

Result = TypeVar("Result")


class Threads:
    """Runs what may wait for a disk in threads, at most `MOST` at once, so that no loop waits.

    Args:
        ready: returns when a call may begin.
    """

    _unlimited = anyio.CapacityLimiter(math.inf)

    def __init__(self, ready: Callable[[], Awaitable[None]]) -> None:
        self._ready = ready
        self._turns = anyio.Semaphore(MOST, fast_acquire=True)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Run a function in a thread; return or raise what it does.

        A caller that is cancelled before its turn goes at once; later, only when the function has
        returned, so that nothing goes on behind its back.
        """
        async with self._turns:
            await self._ready()
            return await anyio.to_thread.run_sync(function, limiter=self._unlimited)


class Served:
    """One tool as it is listed and called.

    Args:
        tool: what a toolset states.
        ready: returns when a call may begin.
    """

    def __init__(self, tool: Tool, ready: Callable[[], Awaitable[None]]) -> None:
        self.tool = tool
        self._arguments = Arguments(tool)
        self._answers: TypeAdapter[Any] = TypeAdapter(tool.answer_type)
        told = self._answers.json_schema()
        levels = 2 if told["properties"].keys() == {"result"} else 1  # a list is wrapped in one
        self._threads = Threads(ready)  # of its own: calls that wait for a lock hold no others up
        self.listed = types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=self._arguments.schema,
            output_schema=terse(told, told.get("$defs", {}), levels),
            annotations=types.ToolAnnotations(
                read_only_hint=tool.read_only,
                destructive_hint=tool.destructive,
                idempotent_hint=tool.idempotent,
                open_world_hint=tool.open_world,
            ),
        )

    async def call(self, given: Mapping[str, Any]) -> types.CallToolResult:
        """Call it; the one place where exceptions become answers."""
        try:
            arguments = self._arguments.read(given)
            answer = await self._threads.run(partial(self.tool.call, **arguments))
            result = _result(answer)
            self._answers.validate_python(result.structured_content)
        except AiamlError as error:
            return _result(self.tool.error_answer(error), failed=True)
        except Exception:
            log.exception("Tool %s crashed", self.tool.name)
            return _result(self.tool.error_answer(None), failed=True)
        return result


class Server(ProtocolServer[None]):
    """An MCP server that answers every failure of a tool in that tool's own shape.

    Only what some toolset has is announced: tools, resources, prompts, changes of resources.
    """

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        """Collect what there is to call, read and get.

        Raises:
            InvalidSetting: two toolsets have a tool, a resource or a prompt of the same name.
        """
        self._toolsets = toolsets
        tools = _unique("tool", ((each.name, each) for one in toolsets for each in one.tools))
        self._tools = {name: Served(tool, self._room) for name, tool in tools.items()}
        self._resources = _unique(
            "resource", ((each.uri, each) for one in toolsets for each in one.resources)
        )
        self._prompts = _unique(
            "prompt", ((each.name, each) for one in toolsets for each in one.prompts)
        )
        self._wire: Wire | None = None
        self._threads = Threads(self._room)
        self._subscribed: dict[str, list[Any]] = {}
        self._announcing: set[asyncio.Task[None]] = set()
        self._bus = InMemorySubscriptionBus()
        super().__init__(
            NAME,
            title=NAME,
            version=__version__,
            instructions=toolsets[0].instructions
            if len(toolsets) == 1
            else "\n\n".join(each.brief for each in toolsets),
            lifespan=self._opened,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            **self._handlers(),
        )

    async def serve(self, wire: Wire, greeting: Greeting | None = None) -> int:
        """Serve one client, which may have been answered its greeting; return the exit code."""
        self._wire = wire
        return await stdio.serve(self, wire, greeting)

    async def _room(self) -> None:
        """Return when the client has read enough of the earlier answers."""
        if self._wire:
            await self._wire.room()

    def _handlers(self) -> dict[str, Any]:
        """Return a handler for each kind of request that some toolset has an answer to."""
        handlers: dict[str, Any] = {}
        if self._resources:
            handlers["on_list_resources"] = self._list_resources
            handlers["on_list_resource_templates"] = self._list_templates
            handlers["on_read_resource"] = self._read_resource
        if self._prompts:
            handlers["on_list_prompts"] = self._list_prompts
            handlers["on_get_prompt"] = self._get_prompt
        if any(each.subscribable for each in self._resources.values()):
            handlers["on_subscribe_resource"] = self._subscribe
            handlers["on_unsubscribe_resource"] = self._unsubscribe
            handlers["on_subscriptions_listen"] = ListenHandler(self._bus)
        return handlers

    def get_capabilities(self, *given: Any, **named: Any) -> types.ServerCapabilities:
        """Say what there is. No list changes while the server runs; only resources can."""
        found = super().get_capabilities(*given, **named)
        if found.tools:
            found.tools.list_changed = None
        if found.prompts:
            found.prompts.list_changed = None
        if found.resources:
            found.resources.list_changed = None
            found.resources.subscribe = found.resources.subscribe or None
        return found

    @asynccontextmanager
    async def _opened(self, _: object) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()

        def changed(uri: str) -> None:
            loop.call_soon_threadsafe(self._announce, uri)

        with ExitStack() as stack:
            for toolset in self._toolsets:
                stack.enter_context(toolset.lifespan(changed))
            yield

    # --- tools ------------------------------------------------------------------------------------

    async def _list_tools(self, _ctx: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[each.listed for each in self._tools.values()])

    async def _call_tool(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        if about := ctx.session.client_params:
            current_client.set(about.client_info.name)
        return await self._tools[params.name].call(params.arguments or {})

    # --- resources --------------------------------------------------------------------------------

    async def _list_resources(self, _ctx: object, _params: object) -> types.ListResourcesResult:
        resources = []
        for each in self._resources.values():
            if "{" not in each.uri:
                resources.append(types.Resource(uri=each.uri, **_about(each)))
                continue
            for names in await self._threads.run(each.list_names):
                uri = each.uri.format_map({name: quote(said, "") for name, said in names.items()})
                about = {**_about(each), "name": " ".join((each.name, *names.values()))}
                resources.append(types.Resource(uri=uri, **about))
        return types.ListResourcesResult(resources=resources)

    async def _list_templates(
        self, _ctx: object, _params: object
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=each.uri, **_about(each))
                for each in self._resources.values()
                if "{" in each.uri
            ]
        )

    async def _read_resource(
        self, _ctx: object, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        resource, names = self._located(uri)
        try:
            text = await self._threads.run(partial(resource.read, **names))
        except LookupError as error:
            raise _missing_resource(uri) from error
        except Exception as error:
            raise _refused(f"Resource {uri}", error) from error
        contents = types.TextResourceContents(
            uri=uri, text=replace_surrogates(text), mime_type=resource.mime_type
        )
        return types.ReadResourceResult(contents=[contents])

    def _located(self, uri: str) -> tuple[Resource, dict[str, str]]:
        for each in self._resources.values():
            # Each `{name}` is one part of a path.
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(each.uri))
            if match := re.fullmatch(pattern, uri):
                return each, {name: unquote(part) for name, part in match.groupdict().items()}
        raise _missing_resource(uri)

    async def _subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._located(str(params.uri))
        sessions = self._subscribed.setdefault(str(params.uri), [])
        if ctx.session not in sessions:
            sessions.append(ctx.session)
        return types.EmptyResult()

    async def _unsubscribe(
        self, _ctx: object, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.pop(str(params.uri), None)
        return types.EmptyResult()

    def _announce(self, uri: str) -> None:
        task = asyncio.create_task(self._tell(uri))
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)

    async def _tell(self, uri: str) -> None:
        """Announce a change, as the protocol has it since 2026-07-28 and as it was before."""
        await self._bus.publish(ResourceUpdated(uri=uri))
        for session in self._subscribed.get(uri, ()):
            await session.send_resource_updated(uri)

    # --- prompts ----------------------------------------------------------------------------------

    async def _list_prompts(self, _ctx: object, _params: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    arguments=[types.PromptArgument(**one._asdict()) for one in each.arguments],
                )
                for each in self._prompts.values()
            ]
        )

    async def _get_prompt(
        self, _ctx: object, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name not in self._prompts:
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}")
        prompt = self._prompts[params.name]
        told = params.arguments or {}
        required = [each.name for each in prompt.arguments if each.required]
        if absent := [name for name in required if name not in told]:
            raise MCPError(types.INVALID_PARAMS, f"{prompt.name} needs {', '.join(absent)}")
        given = {each.name: told[each.name] for each in prompt.arguments if each.name in told}
        try:
            text = await self._threads.run(partial(prompt.text, **given))
        except Exception as error:
            raise _refused(f"Prompt {prompt.name}", error) from error
        content = types.TextContent(type="text", text=replace_surrogates(text))
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=prompt.description, messages=[message])


# --- collecting -----------------------------------------------------------------------------------


def _unique(kind: str, named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in named:
        if name in found:
            raise InvalidSetting(
                "--toolset", f"names toolsets that both have the {kind} {name}; serve them apart"
            )
        found[name] = each
    return found


# --- answers --------------------------------------------------------------------------------------


def _about(each: Resource) -> dict[str, Any]:
    return {"name": each.name, "description": each.description, "mime_type": each.mime_type}


def _result(value: Any, *, failed: bool = False) -> types.CallToolResult:
    """Wrap a JSON value: a block of text, and the same value as structured content.

    A list becomes `{"result": [...]}` there, because the protocol before 2026-07-28 wants an
    object and clients know this one. Notes follow in blocks of their own.
    """
    value, notes = value if isinstance(value, Answer) else (value, ())
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = replace_surrogates(text)
        value = json.loads(text)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in (text, *notes)],
        structured_content=value if isinstance(value, dict) else {"result": value},
        is_error=failed,
    )


def _missing_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"there is no resource {uri}", {"uri": uri})


def _refused(what: str, error: Exception) -> MCPError:
    if isinstance(error, AiamlError):
        return MCPError(types.INTERNAL_ERROR, str(error))
    log.error("%s crashed", what, exc_info=error)
    return MCPError(types.INTERNAL_ERROR, INTERNAL_ERROR)


# --- running --------------------------------------------------------------------------------------


def run(server: Server, wire: Wire, greeting: Greeting | None = None) -> int:
    """Serve until the client leaves or a signal asks to end; return the exit code."""
    return asyncio.run(server.serve(wire, greeting))
