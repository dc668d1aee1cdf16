"""The client's two pipes: lines in, lines out, and nothing else on them.

The descriptors 0 and 1 are taken away before anything else is imported: what a library prints goes
to stderr, and a child process reads end of file. Two daemon threads do the blocking calls, so that
a client which neither writes nor reads cannot keep the process from ending.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

_CHUNK = 1 << 16


class Wire:
    """The line-oriented ends of the two pipes; built by `claim`."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
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

    def open(
        self, received: Callable[[list[bytes] | None], None], broken: Callable[[], None]
    ) -> None:
        """Start both threads.

        Args:
            received: called in the reading thread with the lines of each chunk, without their
                ends; with None at end of input, once.
            broken: called in the writing thread when the client no longer takes output.
        """
        self._writer = threading.Thread(
            target=self._write, args=(broken,), name="wire-out", daemon=True
        )
        self._writer.start()
        threading.Thread(target=self._read, args=(received,), name="wire-in", daemon=True).start()

    def send(self, line: bytes) -> None:
        """Queue one line, given without its end."""
        self._queue.put(line + b"\n")

    def close(self, seconds: float) -> None:
        """Wait until what was sent is written, at most `seconds`."""
        self._queue.put(None)
        if self._writer:
            self._writer.join(seconds)

    def _read(self, received: Callable[[list[bytes] | None], None]) -> None:
        pending: list[bytes] = []
        try:
            while chunk := os.read(self._incoming, _CHUNK):
                head, newline, tail = chunk.rpartition(b"\n")
                if newline:
                    received(b"".join([*pending, head]).split(b"\n"))
                    pending = []
                pending.append(tail)
        except OSError:
            pass  # the client is gone, which ends the input as well
        received([b"".join(pending)])
        received(None)

    def _write(self, broken: Callable[[], None]) -> None:
        while (line := self._queue.get()) is not None:
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self._outgoing, rest) :]
            except OSError:
                broken()
                return
