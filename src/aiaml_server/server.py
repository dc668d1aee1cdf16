"""The MCP server: collects what toolsets state, and serves it over stdio."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

import anyio
from mcp import types
from mcp.server import Server as ProtocolServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool as CheckedTool
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from . import __version__, stdio
from .errors import AiamlError, InvalidArguments, InvalidSetting
from .greeting import Greeting
from .toolset import CRASHED, Answer, Resource, Tool, Toolset, client, repair_surrogates
from .wire import Wire

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
        self._tools = _unique("tool", ((each.name, each) for one in toolsets for each in one.tools))
        self._checked = {name: _checked(tool, self._room) for name, tool in self._tools.items()}
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
        if any(each.watched for each in self._resources.values()):
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
                stack.enter_context(toolset.opened(changed))
            yield

    # --- tools ------------------------------------------------------------------------------------

    async def _list_tools(self, _ctx: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    input_schema=short_schema(each.parameters)
                    | ({} if self._tools[each.name].lenient else {"additionalProperties": False}),
                    output_schema=short_schema(each.output_schema, of_answer=True),
                    annotations=each.annotations,
                )
                for each in self._checked.values()
            ]
        )

    async def _call_tool(
        self, ctx: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; the one place where exceptions become answers."""
        if params.name not in self._tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        tool = self._tools[params.name]
        known = self._checked[params.name].parameters["properties"]
        unknown = [name for name in params.arguments or {} if name not in known]
        if unknown and not tool.lenient:
            there = f"there are {', '.join(known)}" if known else "it takes none"
            wrong = {name[:100]: f"is no argument of this tool; {there}" for name in unknown}
            return _result(tool.failure(InvalidArguments(wrong)), failed=True)
        if about := ctx.session.client_params:
            client.set(about.client_info.name)
        try:
            run = self._checked[params.name].run
            called = await run(params.arguments or {}, None, convert_result=True)  # type: ignore[arg-type]
        except ToolError as error:
            return _result(tool.failure(_reason(error, tool)), failed=True)
        result: types.CallToolResult = called
        return result

    # --- resources --------------------------------------------------------------------------------

    async def _list_resources(self, _ctx: object, _params: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=each.uri, **_about(each))
                for each in self._resources.values()
                if "{" not in each.uri
            ]
        )

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
            uri=uri, text=repair_surrogates(text), mime_type=resource.mime_type
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
        content = types.TextContent(type="text", text=repair_surrogates(text))
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


def short_schema(schema: Any, *, of_answer: bool = False) -> Any:
    """Return a JSON schema without titles, which say its names again.

    Args:
        schema: of arguments or of an answer; None stays None.
        of_answer: which of them. Of arguments null beside a type is not told: it is taken where one
            may be left out, but many clients can only fill in a plain type. Of an answer
            descriptions are not told, which say again what the tool's does.
    """
    if not isinstance(schema, dict):
        return schema
    short = partial(short_schema, of_answer=of_answer)
    found: dict[str, Any] = {}
    for name, value in schema.items():
        if name in ("properties", "$defs"):
            found[name] = {key: short(each) for key, each in value.items()}
        elif name == "anyOf":
            found[name] = [short(each) for each in value]
        elif name != "title" and not (of_answer and name == "description"):
            found[name] = short(value)
    for each in found.get("$defs", {}).values():
        each.pop("description", None)  # the docstring of a class of ours
    if found.get("additionalProperties") is True:  # as it is by default
        del found["additionalProperties"]
    return found if of_answer else _without_null(found)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an argument as if it had to be given, where it may be null."""
    types = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(types) != 1:
        return schema
    kept = {name: value for name, value in schema.items() if name != "anyOf"}
    if kept.get("default", ...) is None:
        del kept["default"]
    if "enum" in kept:
        kept["enum"] = [each for each in kept["enum"] if each is not None]
    return {**types[0], **kept}


class _AsSent(FuncMetadata):
    """What the SDK knows of a function's arguments, with texts kept as they were sent.

    The SDK parses JSON in every text that is given for a parameter other than `str` (2.3.0,
    `FuncMetadata.pre_parse_json`), for clients that send lists so. Of a parameter that is text or
    nothing, "null" would become nothing then, and '{"a": 1}' no text.
    """

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Parse JSON in texts, but for parameters that are text or nothing."""
        fields = self.arg_model.model_fields
        texts = {
            name: value
            for name, value in data.items()
            if name in fields and fields[name].annotation == (str | None)
        }
        return {**super().pre_parse_json(data), **texts}


def _checked(tool: Tool, ready: Callable[[], Awaitable[None]]) -> CheckedTool:
    """Return a tool as the SDK has it, which derives the schemas and checks arguments by them."""
    threads = Threads(ready)  # of its own: many calls that wait for a lock hold no other tool up

    async def called(**arguments: Any) -> types.CallToolResult:
        return _result(await threads.run(partial(tool.call, **arguments)))

    signature = inspect.signature(tool.call, eval_str=True)
    shape = Annotated[types.CallToolResult, tool.shape]
    called.__signature__ = signature.replace(return_annotation=shape)  # type: ignore[attr-defined]
    checked = CheckedTool.from_function(
        called,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.repeatable,
            open_world_hint=tool.outside,
        ),
    )
    checked.fn_metadata = _AsSent(**dict(checked.fn_metadata))
    return checked


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
        text = repair_surrogates(text)
        value = json.loads(text)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in (text, *notes)],
        structured_content=value if isinstance(value, dict) else {"result": value},
        is_error=failed,
    )


def _reason(error: ToolError, tool: Tool) -> AiamlError | None:
    """Return what made a call fail; None for a crash, which is in the log."""
    cause = error.__cause__
    if isinstance(cause, AiamlError):
        return cause
    if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        return _wrong_types(cause, tool.rules)
    log.error("Tool %s crashed", tool.name, exc_info=cause)
    return None


def _wrong_types(error: ValidationError, rules: Mapping[str, str]) -> InvalidArguments:
    """Say for each parameter what it must be; the given values, which are private, are not said."""
    details = error.errors(include_url=False, include_input=False)
    missing = {
        str(each["loc"][0]): each["type"] == "missing" and len(each["loc"]) == 1 for each in details
    }
    return InvalidArguments(
        {
            field: "; ".join(
                [
                    f"{'is missing, it ' if absent else ''}must be {rules[field]}",
                    *filter(None, (
                        _within(*each["loc"], kind=each["type"])
                        for each in details if each["loc"][0] == field
                    )),
                ]
            )
            for field, absent in missing.items()
        }
    )  # fmt: skip


_WRONG = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
}
"""What is said of a part of a parameter, by the kind of error."""


def _within(*where: int | str, kind: str) -> str:
    """Say what is wrong with a key of an object, or of an item of a list; items count from 1."""
    said = _WRONG.get(kind, "is not so")
    match where:
        case (_, str(), int(item)):
            return f"item {item + 1} of {'.'.join(str(each) for each in where[:2])} {said}"
        case (_, int(item), str(key)):
            return f"{key[:100]!r} of item {item + 1} {said}"
        case (_, str(), *inner) if not any(isinstance(each, int) for each in inner):
            return f"{'.'.join(str(each)[:100] for each in where)} {said}"
    return ""


def _missing_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"there is no resource {uri}", {"uri": uri})


def _refused(what: str, error: Exception) -> MCPError:
    if isinstance(error, AiamlError):
        return MCPError(types.INTERNAL_ERROR, str(error))
    log.error("%s crashed", what, exc_info=error)
    return MCPError(types.INTERNAL_ERROR, CRASHED)


# --- running --------------------------------------------------------------------------------------


def run(server: Server, wire: Wire, greeting: Greeting | None = None) -> int:
    """Serve until the client leaves or a signal asks to end; return the exit code."""
    return asyncio.run(server.serve(wire, greeting))
