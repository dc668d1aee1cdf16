"""The process's standard input and output, reserved for the protocol.

`claim` runs before anything else is imported. Afterwards, output of libraries and child processes
goes to stderr, and whoever reads standard input finds its end.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def claim() -> tuple[int, int]:
    """Take over standard input and output; return private descriptors for both.

    Raises:
        OSError: one of them is closed.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(null, 1)
    os.close(null)
    return incoming, outgoing


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes; wait for the reader if its pipe is full."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class LineReader:
    """The client's lines, read by a daemon thread, so that nothing waits for it at the end.

    `async for` over it yields the lines after `attach`.
    """

    def __init__(self, descriptor: int, handle: Callable[[bytes], bool]) -> None:
        """Prepare to read.

        Args:
            descriptor: where the lines come from.
            handle: takes each line that comes before `attach`, in the reading thread. It returns
                whether the line needs nothing more.
        """
        self._descriptor = descriptor
        self._handle = handle
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._deliver: Callable[[bytes], object] | None = None
        self._queue: asyncio.Queue[bytes] | None = None

    def start(self) -> None:
        """Start reading."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def attach(self) -> None:
        """Deliver all further lines to the running event loop."""
        import asyncio  # noqa: PLC0415 (slow; the cached handshake is answered without it)

        loop = asyncio.get_running_loop()
        self._queue = asyncio.Queue()
        with self._lock:
            for line in self._waiting:
                self._queue.put_nowait(line)
            put = self._queue.put_nowait
            self._deliver = lambda line: loop.call_soon_threadsafe(put, line)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._queue and (line := await self._queue.get()):
            yield line

    def _read(self) -> None:
        with suppress(OSError), open(self._descriptor, "rb", closefd=False) as stream:
            for line in stream:
                if line.strip():
                    self._put(line)
        self._put(b"")

    def _put(self, line: bytes) -> None:
        with self._lock:
            if self._deliver:
                with suppress(RuntimeError):  # the loop is closed
                    self._deliver(line)
            elif not line or not self._handle(line):
                self._waiting.append(line)


class LineWriter:
    """The output stream of the SDK's transport.

    Attributes:
        on_broken: called when the client no longer reads.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.on_broken: Callable[[], object] = lambda: None

    async def write(self, text: str) -> None:
        """Write a message, in a thread if it may have to wait for the reader."""
        data = text.encode()
        try:
            if self._fits(len(data)):
                write_all(self._descriptor, data)
            else:
                from anyio import to_thread  # noqa: PLC0415 (as `asyncio` above)

                write = partial(write_all, self._descriptor, data)
                await to_thread.run_sync(write, abandon_on_cancel=True)
        except OSError:
            self.on_broken()

    async def flush(self) -> None:
        """Do nothing: every write is complete."""

    def _fits(self, size: int) -> bool:
        """Return whether a pipe has room for this many bytes now."""
        if sys.platform == "win32" or size > select.PIPE_BUF:
            return False
        return bool(select.select([], [self._descriptor], [], 0)[1])
