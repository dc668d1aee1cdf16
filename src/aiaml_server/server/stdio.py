"""The SDK's stdio transport, with guards for what it leaves open in version 2.3.

- Every request that was read is answered before the process ends, also when the input ends right
  behind it (python-sdk issue 2678).
- Half a surrogate pair, which JavaScript makes by cutting a text inside an emoji, is replaced; a
  line that cannot be parsed is answered. The SDK drops both, so that the client waits.
- Ctrl-C and SIGTERM end the process in order (python-sdk issue 3551).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection
from typing import Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse
from typing_extensions import Self

from aiaml_server.server.arguments import repair_surrogates
from aiaml_server.server.streams import LineReader, LineWriter

HUNG_SECONDS = 20.0
"""How long calls may take after the client has left; then the process ends without them."""

log = logging.getLogger(__name__)

_PARSE_ERROR = SessionMessage(
    JSONRPCError(
        jsonrpc="2.0",
        id=None,
        error=ErrorData(code=PARSE_ERROR, message="Parse error: not a JSON-RPC message"),
    )
)


class _Connection:
    """The messages of one client, between the transport and the SDK's server.

    It implements the part of the SDK's write stream that the server uses.
    """

    def __init__(self, read: Any, write: Any, handled: Collection[object]) -> None:
        self._read = read
        self._write = write
        self._handled = handled
        self._unanswered = Counter[object]()
        self._all_answered = anyio.Event()

    async def messages(self) -> AsyncIterator[SessionMessage]:
        """Yield what the client sends; end when its lines have ended and all is answered."""
        async with self._read:
            async for item in self._read:
                if isinstance(item, SessionMessage):
                    yield self._note_request(item)
                else:
                    await self._write.send(_PARSE_ERROR)
        if self._unanswered:
            self._all_answered = anyio.Event()
            await self._all_answered.wait()

    async def send(self, item: SessionMessage) -> None:
        """Send a message, unless the client already has this answer."""
        message = item.message
        answered = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        if answered not in self._handled:
            await self._write.send(item)
        self._note_answer(answered)

    async def aclose(self) -> None:
        """Close the stream to the client."""
        await self._write.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _note_request(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if not isinstance(message, JSONRPCRequest):
            return item
        self._unanswered[message.id] += 1

        async def note_unanswered() -> None:
            self._note_answer(message.id)

        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=note_unanswered))

    def _note_answer(self, request_id: object) -> None:
        self._unanswered -= Counter([request_id])
        if not self._unanswered:
            self._all_answered.set()


async def converse(
    server: Server[Any],
    lines: AsyncIterable[bytes],
    writer: Any,
    handled: Collection[object] = (),
) -> None:
    """Serve one client until its lines end and all its requests are answered.

    Args:
        server: the server.
        lines: the client's lines.
        writer: has the coroutines `write` for a text and `flush`.
        handled: ids of requests whose answers the client already has.
    """
    stdin = cast("anyio.AsyncFile[str]", _decode(lines))
    async with stdio_server(stdin, writer) as (read, write):
        connection = _Connection(read, write, handled)
        options = server.create_initialization_options()
        await server.run(cast(Any, connection.messages()), cast(Any, connection), options)


async def serve(
    server: Server[Any], reader: LineReader, writer: LineWriter, handled: Collection[object]
) -> int:
    """Serve the client of this process until it leaves or a signal comes; return the exit code."""
    reader.attach()
    with anyio.CancelScope() as scope:

        def cancel() -> None:
            _start_watchdog()
            scope.cancel()

        writer.on_broken = cancel
        signals = _cancel_on_signals(cancel)
        await converse(server, _watched(reader), writer, handled)
    return 130 if signal.SIGINT in signals else 0


async def _watched(lines: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield line
    _start_watchdog()


async def _decode(lines: AsyncIterable[bytes]) -> AsyncIterator[str]:
    async for line in lines:
        yield repair_surrogates(line.decode("utf-8", "replace").lstrip("\ufeff"))


def _start_watchdog() -> None:
    """End the process if it still runs after `HUNG_SECONDS`."""
    timer = threading.Timer(HUNG_SECONDS, _abandon)
    timer.daemon = True
    timer.start()


def _abandon() -> None:
    log.error("A call has not returned; the process ends without it")
    time.sleep(0.5)  # a thread writes the log; what reads it may hang too
    os._exit(1)


def _cancel_on_signals(cancel: Callable[[], None]) -> list[int]:
    """Let signals call `cancel`. Received signals are appended to the list.

    On Windows, asyncio itself handles Ctrl-C, and there is no other signal.
    """
    received: list[int] = []
    if sys.platform == "win32":
        return received
    loop = asyncio.get_running_loop()

    def handle(number: int) -> None:
        received.append(number)
        cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # such as by nohup
            loop.add_signal_handler(number, handle, number)
    return received
