"""The MCP server: collects the toolsets and runs them over stdio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial, wraps
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult
from pydantic import ValidationError

from . import __version__, stdio
from .bank import MemoryBank
from .errors import AiamlError
from .settings import Settings
from .tools import MemoryTools, Tool, Toolset, answer
from .wire import Wire
from .workers import Workers

log = logging.getLogger(__name__)

NAME = "AI Agnostic Memory Layer"
CRASHED = "an internal error; the details are in the server's log (stderr)"


class Server(MCPServer[Any]):
    """An MCP server that answers every failure of a tool in that tool's own shape."""

    def __init__(
        self, toolsets: Sequence[Toolset], house: AbstractContextManager[Any] | None = None
    ) -> None:
        """Collect the tools.

        Args:
            toolsets: what there is to call.
            house: opened before the first call, closed after the last answer.
        """

        @asynccontextmanager
        async def lifespan(_: object) -> AsyncIterator[None]:
            with house or nullcontext():
                yield

        super().__init__(
            NAME,
            title=NAME,
            version=__version__,
            instructions="\n\n".join(toolset.instructions for toolset in toolsets),
            lifespan=lifespan,
        )
        self._tools: dict[str, Tool] = {}
        for tool in (tool for toolset in toolsets for tool in toolset.tools()):
            self._tools[tool.name] = tool
            self.add_tool(
                _in_a_thread(tool.call),
                name=tool.name,
                title=tool.title,
                description=tool.description,
                annotations=tool.annotations,
            )

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> CallToolResult | Any:
        """Call a tool; the one place where exceptions become answers."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if name not in self._tools:
                raise
            tool = self._tools[name]
            return answer(tool.failure(_reason(error, tool)), failed=True)

    async def run_stdio_async(self, wire: Wire | None = None) -> int:  # type: ignore[override]
        """Serve one client over stdio; return the exit code."""
        return await stdio.serve(self._lowlevel_server, wire or Wire.claim())


def _in_a_thread(call: Callable[..., CallToolResult]) -> Callable[..., Any]:
    workers = Workers()  # of its own: many calls that wait for a lock hold no other tool up

    @wraps(call)  # from which the SDK reads the schemas
    async def called(**arguments: Any) -> CallToolResult:
        return await workers.run(partial(call, **arguments))

    return called


def _reason(error: ToolError, tool: Tool) -> str:
    cause = error.__cause__
    if isinstance(cause, AiamlError):
        return str(cause)
    if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        return _wrong_types(cause, tool.wanted)
    log.error("Tool %s crashed", tool.name, exc_info=cause)
    return CRASHED


def _wrong_types(error: ValidationError, wanted: Mapping[str, str]) -> str:
    """Say for each parameter what it must be; the given values, which are private, are not said."""
    details = error.errors(include_url=False, include_input=False)
    missing = {str(each["loc"][0]): each["type"] == "missing" for each in details}
    return "; ".join(
        f"{field}: {'is missing, it ' if absent else ''}must be {wanted[field]}"
        for field, absent in missing.items()
    )


def build(settings: Settings) -> Server:
    """Return a server with the three tools on the memories of `settings.base`."""
    bank = MemoryBank(settings)
    return Server([MemoryTools(bank)], house=bank.opened())


def run(server: Server, wire: Wire) -> int:
    """Serve until the client leaves or a signal asks to end; return the exit code."""
    return asyncio.run(server.run_stdio_async(wire))
