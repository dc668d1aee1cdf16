"""The SDK's messages over a `Wire`, with what its own stdio transport leaves open.

Every request that was read is answered, also when the input ends right behind it. A line that is no
message is answered too, and half a surrogate pair (JavaScript cuts strings in the middle of an
emoji) is replaced instead of ending the conversation. `server/discover` alone does not decide which
era of the protocol is spoken: a client that had no patience goes on as if it had never asked.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp.types import jsonrpc_message_adapter as messages

from aiaml_server.server.greeting import Greeting
from aiaml_server.server.wire import MAX_LINE, Cut, Wire, abandon
from aiaml_server.toolset import replace_surrogates

DRAIN_SECONDS = 10.0  # how long answers are made and written for after the end of input
FLUSH_SECONDS = 1.0  # and how long a client has at least to read what was written
HUNG_SECONDS = 20.0  # after which a call that does not return is left to itself
NO_MEMORY = "Internal error: there is not enough memory on this computer now"
_DISCOVER = "server/discover"
MAX_VALUES = 50_000  # in a line; the SDK takes a kilobyte for each
_TOO_MUCH = (
    f"Invalid request: a line has at most {MAX_LINE >> 20} MiB, and {MAX_VALUES:,} objects, lists"
    " and commas outside of texts"
)
_QUOTED = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_ID_FIRST = re.compile(rb'\s{0,9}\{(?:"jsonrpc":\s?"2\.0",\s?)?"id":\s?(\d{1,15}|"[\w-]{1,64}"),')
_ID_LAST = re.compile(rb'[,{]\s?"id":\s?(\d{1,15}|"[\w-]{1,64}")\}\s{0,9}\Z')

log = logging.getLogger(__name__)


class _Stream:
    """What the SDK expects of either stream besides its own verb."""

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Outgoing(_Stream):
    """The SDK's write stream."""

    def __init__(
        self, wire: Wire, answered: Callable[[object], None], greeting: Greeting | None = None
    ) -> None:
        self._wire = wire
        self._answered = answered
        self._greeting = greeting

    async def send(self, item: SessionMessage) -> None:
        """Put one message on the wire, unless the client has had it from the greeting."""
        message = item.message
        try:
            line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        except MemoryError:
            if not isinstance(message, (JSONRPCResponse, JSONRPCError)):
                raise
            line = _error(message.id, -32603, NO_MEMORY)
        if not isinstance(message, (JSONRPCResponse, JSONRPCError)):
            self._wire.send(line)
            return
        if not (self._greeting and self._greeting.said(message.id, line)):
            self._wire.send(line)
        self._answered(message.id)


class Incoming(_Stream):
    """The SDK's read stream. It ends once every request that came out of it has its answer.

    That is at the end of input, and between `server/discover` and whatever else is asked first.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage](math.inf)
        self._waiting: Counter[object] = Counter()
        self._all_answered = anyio.Event()
        self._era: bool | None = False  # whether it is decided; None while only discovering
        self._held: SessionMessage | None = None
        self.ended_at: float | None = None  # on the monotonic clock

    @property
    def goes_on(self) -> bool:
        """Whether it ended before the request that decides the era."""
        return self._held is not None

    def feed(self, lines: list[bytes] | None) -> None:
        """Take lines off the wire; None is the end of input."""
        if lines is None:
            self.ended_at = time.monotonic()
            self._send.close()
        for line in lines or ():
            try:
                if line.strip():
                    self._take(line)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 (MemoryError, and pydantic's panic)
                log.warning("A request could not be read: %s", type(error).__name__)
                self._wire.send(_error(None, -32603, "Internal error: it could not be read"))

    def answered(self, request_id: object) -> None:
        """Note that a request needs no answer any more."""
        self._waiting -= Counter([request_id])
        if not self._waiting:
            self._all_answered.set()

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            anyio.EndOfStream: the client has all its answers, and either has closed its end, or has
                asked for something after `server/discover`, which comes when this is called again.
        """
        try:
            item, self._held = self._held or await self._receive.receive(), None
        except anyio.EndOfStream:
            await self._answering()
            raise
        if isinstance(item.message, JSONRPCRequest):
            if self._era is None and item.message.method != _DISCOVER:
                self._era, self._held = True, item
                await self._answering()
                raise anyio.EndOfStream
            if not self._era:
                self._era = None if item.message.method == _DISCOVER else True
            self._waiting[item.message.id] += 1
        return item

    async def _answering(self) -> None:
        """Return when all requests that came out have their answers, or there is no time left."""
        if self._waiting:
            self._all_answered = anyio.Event()
            with anyio.move_on_after(self.left()):
                await self._all_answered.wait()

    def left(self) -> float:
        """Return how many seconds the client still has for its answers."""
        since = time.monotonic() - self.ended_at if self.ended_at else 0.0
        return max(DRAIN_SECONDS - since, FLUSH_SECONDS)

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    def _take(self, line: bytes) -> None:
        if isinstance(line, Cut) or (_signs(line) > MAX_VALUES < _signs(_QUOTED.sub(b"", line))):
            found = _ID_FIRST.match(line) or _ID_LAST.search(line, len(line) - 200)
            self._wire.send(_error(_loads(found[1].decode()) if found else None, -32600, _TOO_MUCH))
            return
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

            metadata = ServerMessageMetadata(on_request_unanswered=unanswered)
        self._send.send_nowait(SessionMessage(message, metadata))


def _signs(line: bytes) -> int:
    return line.count(b"{") + line.count(b"[") + line.count(b",")


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
        repaired = replace_surrogates(json.dumps(_loads(text), ensure_ascii=False))
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
    try:
        value = _loads(text)
    except ValueError:
        return _error(None, -32700, "Parse error: the line is not JSON")
    candidate = value.get("id") if isinstance(value, dict) else None
    known = isinstance(candidate, (int, str)) and not isinstance(candidate, bool)
    wrong = "Invalid request: the line is not a JSON-RPC message"
    return _error(candidate if known else None, -32600, wrong)


def _error(request_id: int | str | None, code: int, message: str) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()


async def serve(server: Server[Any], wire: Wire, greeting: Greeting | None = None) -> int:
    """Serve one client until it leaves or a signal asks to end; return the exit code.

    The end of input, SIGTERM, Ctrl-C and a client that stops reading all take the same way out. A
    call that hangs in the system does not hold it up for longer than `HUNG_SECONDS`.
    """
    incoming = Incoming(wire)
    outgoing = Outgoing(wire, incoming.answered, greeting)
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        leaving()
        with suppress(RuntimeError):  # the loop is gone already
            loop.call_soon_threadsafe(scope.cancel)

    def received(lines: list[bytes] | None) -> None:
        if lines is None:
            leaving()
        incoming.feed(lines)

    with _bounded(HUNG_SECONDS) as leaving, _woken(loop), anyio.CancelScope() as scope:
        signals = _cancel_on_signals(cancel)
        wire.open(received, cancel)
        async with server.lifespan(server) as state:
            options = server.create_initialization_options()
            serving = partial(
                serve_dual_era_loop, server, incoming, outgoing,
                lifespan_state=state, init_options=options,
            )  # fmt: skip
            await serving()
            if incoming.goes_on:
                await serving()
    if greeting:
        greeting.close(FLUSH_SECONDS)
    wire.close(FLUSH_SECONDS if scope.cancel_called else incoming.left())
    return 130 if signal.SIGINT in signals else 0


@contextmanager
def _bounded(seconds: float) -> Iterator[Callable[[], None]]:
    """Give what says that the client is leaving: the `with` then has so much time to be left."""
    hung = threading.Timer(seconds, abandon)
    hung.daemon = True

    def leaving() -> None:
        with suppress(RuntimeError):  # it was said before
            hung.start()

    try:
        yield leaving
    finally:
        hung.cancel()


@contextmanager
def _woken(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Have a signal wake a loop that is just about to wait, or whose thread did not get it."""
    if sys.platform == "win32":  # there, the loop does so itself
        yield
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        loop.add_reader(ours, ours.recv, 4096)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(ours)


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
