"""The client's two streams: lines in, lines out, and nothing else on them.

The descriptors 0 and 1 are taken away before anything else is imported: what a library prints goes
to stderr, and a child process reads end of file.

What needs nothing else is answered by the thread that reads, before there is an event loop.

Two daemon threads read and write, so that a client which does neither cannot keep the process from
ending. One that does not read its answers is not read from either, once `MUCH` waits to be written.
What a pipe or a socket takes at once, the event loop writes itself (not on Windows): to wake the
thread for it would take a tenth of the time of a short answer.
"""

from __future__ import annotations

import logging
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
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

_CHUNK = 1 << 16
_AT_ONCE = 1 << 18  # bytes; the loop has other things to do
MAX_LINE = 32 << 20  # bytes; a MiB of text, all of it escaped, is 12 MiB
_ENDS = 4096  # bytes of a longer line that are kept, of its beginning and of its end
MUCH = 8 << 20  # bytes that wait to be written, above which nothing more is read or begun
_HALF = MUCH // 2  # and below which all goes on
_LOOK_SECONDS = 0.5  # between two looks whether the client has left meanwhile

Received = Callable[["list[bytes] | None"], None]
Answer = Callable[[bytes], "bytes | None"]


class Cut(bytes):
    """The beginning and the end of a line that is longer than `MAX_LINE`."""


class Wire:
    """The line-oriented ends of the two streams; built by `claim`."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._begun: list[bytes] = []  # of a line whose end has not come
        self._length = 0  # of these, and of what was cut out of them
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = 0  # bytes, counted by the loop
        self._written = 0  # bytes, counted by the writing thread
        self._open = threading.Event()  # set while there is room
        self._open.set()
        self._room: asyncio.Event | None = None  # the same, for the loop
        self._write_some = _writing(outgoing)
        self._writer: threading.Thread | None = None
        self._answer: Answer = lambda _: None
        self._answered: list[bytes] = []  # lines that came before the loop
        self._turn = threading.Lock()  # is held while one of them is answered
        self._opened = threading.Event()

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

    def greet(self, answer: Answer) -> None:
        """Start reading and writing, and answer lines until `open` is called.

        Args:
            answer: called in a thread with one line after the other, returns its answer, empty for
                none; or None where it has none, and then all else waits for `open`.
        """
        self._answer = answer
        self._start()

    def open(self, received: Received, broken: Callable[[], None]) -> None:
        """Start reading and writing. Both functions are called in the running event loop.

        Args:
            received: takes the lines of each chunk, without their ends, those that were answered
                before included; None at end of input, once.
            broken: called when the client no longer takes output.
        """
        import asyncio  # noqa: PLC0415 (a greeting is answered without)

        loop = asyncio.get_running_loop()

        def in_loop(function: Callable[..., object], *values: Any) -> None:
            with suppress(RuntimeError):  # the loop is gone already
                loop.call_soon_threadsafe(function, *values)

        self._room = asyncio.Event()
        self._room.set()
        self._received = partial(in_loop, received)
        self._broken = partial(in_loop, broken)
        self._drained = partial(in_loop, self._emptied)
        with self._turn:
            if self._answered:
                self._received(self._answered)
            self._opened.set()
        self._start()

    def _start(self) -> None:
        if not self._writer:
            write, read = partial(_to_its_end, self._write), partial(_to_its_end, self._read)
            self._writer = threading.Thread(target=write, name="wire-out", daemon=True)
            self._writer.start()
            threading.Thread(target=read, name="wire-in", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Write one line, given without its end, now or in its turn."""
        rest = memoryview(line + b"\n")
        if self._queued == self._written and len(rest) <= _AT_ONCE:
            with suppress(OSError):  # the thread finds out what is wrong
                while rest and (size := self._write_some(rest)):
                    rest = rest[size:]
        if rest:
            self._queued += len(rest)
            self._queue.put(rest.tobytes())
            if self._queued - self._written > MUCH:
                self._open.clear()
                if self._room:
                    self._room.clear()
                self._emptied()  # as the thread may just have done, and told nobody

    async def room(self) -> None:
        """Return when less than `MUCH` waits to be written; at once, as a rule."""
        if self._room:
            await self._room.wait()

    def _emptied(self) -> None:
        """Go on if enough has been written; called in the loop."""
        if self._queued - self._written <= _HALF:
            self._open.set()
            if self._room:
                self._room.set()

    def close(self, seconds: float) -> None:
        """Wait until what was sent is written, at most `seconds`."""
        self._queue.put(None)
        if self._writer:
            self._writer.join(seconds)

    # --- in ---------------------------------------------------------------------------------------

    def _read(self) -> None:
        ended = False
        while not ended:
            while not self._open.wait(_LOOK_SECONDS):
                if _has_left(self._incoming):
                    break  # what is still in the pipe is little, and then comes its end
            try:
                lines, ended = self._take()
            except BlockingIOError:
                _wait(self._incoming, select.POLLIN)
            else:
                if lines := self._greeted(lines):
                    self._received(lines)
        with self._turn:
            if not self._opened.is_set() and self._queued == self._written:
                os._exit(0)  # it was only greeted: nothing is open, and all is answered
        self._opened.wait()
        self._received(None)

    def _greeted(self, lines: list[bytes]) -> list[bytes]:
        """Answer lines, as long as there is no loop; return the rest, as soon as there is one."""
        for number, line in enumerate(lines):
            with self._turn:
                reply = None if self._opened.is_set() else self._answer(line)
                if reply is not None:
                    self._answered.append(line)
                    if reply:
                        self.send(reply)
            if reply is None:
                self._opened.wait()
                return lines[number:]
        return []

    def _take(self) -> tuple[list[bytes], bool]:
        """Read one chunk; return its lines, and whether the input or the client has ended."""
        try:
            chunk = os.read(self._incoming, _CHUNK)
        except BlockingIOError:
            raise
        except OSError:
            chunk = b""
        if not chunk:
            return [self._line()] if any(self._begun) else [], True
        first, *lines = chunk.split(b"\n")
        self._add(first)
        for number, line in enumerate(lines):
            lines[number] = self._line()
            self._add(line)
        return lines, False

    def _add(self, part: bytes) -> None:
        self._begun.append(part)
        self._length += len(part)
        if self._length > MAX_LINE:
            whole = b"".join(self._begun)
            self._begun = [whole[:_ENDS], whole[_ENDS:][-_ENDS:]]

    def _line(self) -> bytes:
        """Return the line that was begun, which now has its end."""
        line = b"".join(self._begun)
        line = Cut(line) if self._length > MAX_LINE else line
        self._begun, self._length = [], 0
        return line

    # --- out --------------------------------------------------------------------------------------

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            rest = memoryview(line)
            while rest:
                try:
                    rest = rest[os.write(self._outgoing, rest) :]
                except BlockingIOError:
                    _wait(self._outgoing, select.POLLOUT)
                except OSError:
                    self._opened.wait()
                    self._broken()
                    return
            self._written += len(line)
            if not self._open.is_set() and self._queued - self._written <= _HALF:
                self._drained()


def abandon() -> None:
    """End a process that cannot end by itself: a call hangs, and nobody waits for its answer."""
    log.error("A call has not returned; the process ends without it")
    _end()


def _to_its_end(work: Callable[[], None]) -> None:
    """Read or write in a thread; without either the process serves nobody, and so it ends."""
    try:
        work()
    except BaseException:
        log.exception("The client's lines can no longer be read or written; the process ends")
        _end()


def _end() -> NoReturn:
    logging.shutdown()
    os._exit(1)


def _writing(descriptor: int) -> Callable[[memoryview], int]:
    """Return a function that writes as much as can be written at once, and returns how much."""
    if sys.platform != "win32":
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
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


def _has_left(descriptor: int) -> bool:
    """Say whether the other end is closed, though there may still be something to read."""
    if sys.platform == "win32":  # where nothing tells
        return False
    poll = select.poll()
    poll.register(descriptor, getattr(select, "POLLRDHUP", 0))
    return bool(poll.poll(0))


def _wait(descriptor: int, event: int) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    poll.poll()
