"""The client's two streams: lines in, lines out, and nothing else on them.

The descriptors 0 and 1 are taken away before anything else is imported: what a library prints goes
to stderr, and a child process reads end of file.

Nothing here waits in the event loop: a client which neither writes nor reads cannot keep the
process from ending. Where the system tells what can be done at once (pipes and sockets, not on
Windows), the loop itself reads and writes; everything else is left to two daemon threads, since
waking a thread takes as long as a good part of an answer.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import socket
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

_CHUNK = 1 << 16
_AT_ONCE = 1 << 18  # bytes; the loop has other things to do

Received = Callable[["list[bytes] | None"], None]


class Wire:
    """The line-oriented ends of the two streams; built by `claim`."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._begun: list[bytes] = []  # of a line whose end has not come
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = 0  # counted by the loop
        self._written = 0  # counted by the writing thread
        self._write_some = _writing(outgoing)
        self._writer: threading.Thread | None = None

    @classmethod
    def claim(cls) -> Wire:
        """Take over standard input and output of this process, for good.

        Raises:
            OSError: one of them is closed.
        """
        wire = cls(os.dup(0), os.dup(1))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # stderr is closed
            os.dup2(null, 1)
        os.close(null)
        return wire

    def open(self, received: Received, broken: Callable[[], None]) -> None:
        """Start reading and writing. Both functions are called in the running event loop.

        Args:
            received: takes the lines of each chunk, without their ends; None at end of input, once.
            broken: called when the client no longer takes output.
        """
        loop = asyncio.get_running_loop()

        def in_loop(function: Callable[..., object], *values: Any) -> None:
            with suppress(RuntimeError):  # the loop is gone already
                loop.call_soon_threadsafe(function, *values)

        self._writer = threading.Thread(
            target=self._write, args=(lambda: in_loop(broken),), name="wire-out", daemon=True
        )
        self._writer.start()
        if _kind(self._incoming) is not None:
            loop.add_reader(self._incoming, self._readable, loop, received)
        else:
            threading.Thread(
                target=self._read,
                args=(lambda lines: in_loop(received, lines),),
                name="wire-in",
                daemon=True,
            ).start()

    def send(self, line: bytes) -> None:
        """Write one line, given without its end, now or in its turn."""
        rest = memoryview(line + b"\n")
        if self._queued == self._written and len(rest) <= _AT_ONCE:
            with suppress(OSError):  # the thread finds out what is wrong
                while rest and (size := self._write_some(rest)):
                    rest = rest[size:]
        if rest:
            self._queued += 1
            self._queue.put(rest.tobytes())

    def close(self, seconds: float) -> None:
        """Wait until what was sent is written, at most `seconds`."""
        self._queue.put(None)
        if self._writer:
            self._writer.join(seconds)

    # --- in ---------------------------------------------------------------------------------------

    def _readable(self, loop: asyncio.AbstractEventLoop, received: Received) -> None:
        try:
            lines, ended = self._take()
        except BlockingIOError:
            return
        if ended:
            loop.remove_reader(self._incoming)
            loop.call_soon(received, None)
        received(lines)

    def _read(self, received: Received) -> None:
        ended = False
        while not ended:
            try:
                lines, ended = self._take()
            except BlockingIOError:
                _wait(self._incoming, select.POLLIN)
            else:
                received(lines)
        received(None)

    def _take(self) -> tuple[list[bytes], bool]:
        """Read one chunk; return its lines, and whether the input or the client has ended."""
        try:
            chunk = os.read(self._incoming, _CHUNK)
        except BlockingIOError:
            raise
        except OSError:
            chunk = b""
        if not chunk:
            return [b"".join(self._begun)], True
        head, newline, tail = chunk.rpartition(b"\n")
        lines: list[bytes] = []
        if newline:
            lines = b"".join([*self._begun, head]).split(b"\n")
            self._begun.clear()
        self._begun.append(tail)
        return lines, False

    # --- out --------------------------------------------------------------------------------------

    def _write(self, broken: Callable[[], None]) -> None:
        while (line := self._queue.get()) is not None:
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(self._outgoing, rest) :]
                except BlockingIOError:
                    _wait(self._outgoing, select.POLLOUT)
                except OSError:
                    broken()
                    return
            self._written += 1


def _kind(descriptor: int) -> int | None:
    """Return the type of a file that the system tells about when it is ready; None of others."""
    if sys.platform == "win32":
        return None
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    return kind if kind in (stat.S_IFIFO, stat.S_IFSOCK) else None


def _writing(descriptor: int) -> Callable[[memoryview], int]:
    """Return a function that writes as much as can be written at once, and returns how much."""
    kind = _kind(descriptor)
    if kind == stat.S_IFSOCK:
        return partial(_send_some, descriptor)
    if kind == stat.S_IFIFO:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        return lambda data: os.write(descriptor, data[: select.PIPE_BUF]) if poll.poll(0) else 0
    return lambda _: 0


def _send_some(descriptor: int, data: memoryview) -> int:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
    try:
        return stream.send(data, socket.MSG_DONTWAIT)
    finally:
        stream.detach()  # which would close it


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()
