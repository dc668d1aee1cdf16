"""The SDK's messages over a `Wire`, with what its own stdio transport leaves open.

Every request that was read is answered, also when the input ends right behind it. A line that is no
message is answered too, and half a surrogate pair (JavaScript cuts strings in the middle of an
emoji) is replaced instead of ending the conversation.
"""

from __future__ import annotations

import asyncio
import json
import math
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp.types import jsonrpc_message_adapter as messages

from .toolset import repair_surrogates
from .wire import Wire

DRAIN_SECONDS = 10.0  # how long answers in the making are waited for at end of input
FLUSH_SECONDS = 1.0  # and how long a client may take to read what is written


class _Stream:
    """What the SDK expects of either stream besides its own verb."""

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        pass


class Outgoing(_Stream):
    """The SDK's write stream."""

    def __init__(self, wire: Wire, answered: Callable[[object], None]) -> None:
        self._wire = wire
        self._answered = answered

    async def send(self, item: SessionMessage) -> None:
        """Put one message on the wire."""
        message = item.message
        self._wire.send(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._answered(message.id)


class Incoming(_Stream):
    """The SDK's read stream. It ends once every request that came out of it has its answer."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage](math.inf)
        self._waiting: Counter[object] = Counter()
        self._all_answered = anyio.Event()

    def feed(self, lines: list[bytes] | None) -> None:
        """Take lines off the wire; None is the end of input."""
        if lines is None:
            self._send.close()
        for line in lines or ():
            if line.strip():
                self._take(line)

    def answered(self, request_id: object) -> None:
        """Note that a request needs no answer any more."""
        self._waiting -= Counter([request_id])
        if not self._waiting:
            self._all_answered.set()

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: the client has closed its end, and has all its answers.
        """
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            if self._waiting:
                self._all_answered = anyio.Event()
                with anyio.move_on_after(DRAIN_SECONDS):
                    await self._all_answered.wait()
            raise

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").lstrip("\ufeff")
        try:
            message = _message(text)
        except ValueError:
            self._wire.send(_refusal(text))
            return
        metadata = None
        if isinstance(message, JSONRPCRequest):
            request_id = message.id

            async def unanswered() -> None:
                self.answered(request_id)

            self._waiting[request_id] += 1
            metadata = ServerMessageMetadata(on_request_unanswered=unanswered)
        self._send.send_nowait(SessionMessage(message, metadata))


def _message(text: str) -> JSONRPCMessage:
    """Read one line.

    Raises:
        ValueError: it is no message.
    """
    try:
        message = messages.validate_json(text, by_name=False)
    except ValueError:
        if "\\ud" not in text.lower():
            raise
        repaired = repair_surrogates(json.dumps(_loads(text), ensure_ascii=False))
        message = messages.validate_json(repaired, by_name=False)
    if isinstance(message, JSONRPCNotification) and "id" in _loads(text):
        raise ValueError("a request whose id is neither text nor a whole number")
    return message


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refusal(text: str) -> bytes:
    """Answer a line that is no JSON, or JSON that is no message of the protocol."""
    request_id = None
    try:
        value = _loads(text)
    except ValueError:
        error = {"code": -32700, "message": "Parse error: the line is not JSON"}
    else:
        error = {"code": -32600, "message": "Invalid request: the line is not a JSON-RPC message"}
        candidate = value.get("id") if isinstance(value, dict) else None
        if isinstance(candidate, (int, str)) and not isinstance(candidate, bool):
            request_id = candidate
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()


async def serve(server: Server[Any], wire: Wire) -> int:
    """Serve one client until it leaves or a signal asks to end; return the exit code.

    The end of input, SIGTERM, Ctrl-C and a client that stops reading all take the same way out.
    """
    incoming = Incoming(wire)
    outgoing = Outgoing(wire, incoming.answered)
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        with suppress(RuntimeError):  # the loop is gone already
            loop.call_soon_threadsafe(scope.cancel)

    with anyio.CancelScope() as scope:
        signals = _cancel_on_signals(cancel)
        wire.open(incoming.feed, scope.cancel)
        await server.run(incoming, outgoing, server.create_initialization_options())
    wire.close(FLUSH_SECONDS if scope.cancel_called else DRAIN_SECONDS)
    return 130 if signal.SIGINT in signals else 0


def _cancel_on_signals(cancel: Callable[[], None]) -> list[int]:
    """Let Ctrl-C and requests to terminate call `cancel`; the list fills with what came."""
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        received.append(number)
        cancel()

    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):  # the last two: POSIX, Windows
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            signal.signal(number, handle)
    return received
