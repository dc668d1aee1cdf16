"""The log on stderr, for which nobody waits.

A client need not read the server's stderr, and a full pipe would hold up whoever writes to it: an
answer, a lock, the end of the process. So a line goes into a bounded list, from which a thread
writes. What finds no room there is dropped, and counted.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from contextlib import suppress

MOST = 1 << 20  # bytes that wait to be written
LONGEST = 1 << 14  # characters of one record
FLUSH_SECONDS = 0.5


class Unhurried(logging.Handler):
    """Writes records to a descriptor, each as a line; `emit` never waits for a reader."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._changed = threading.Condition()
        self._lines: list[bytes] = []
        self._size = 0  # bytes in `_lines`, and in what is being written
        self._dropped = 0
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Have a record written soon."""
        try:
            line = f"{self.format(record)[:LONGEST]}\n".encode("utf-8", "backslashreplace")
            with self._changed:
                self._add(line)
        except Exception:  # noqa: BLE001 (as every handler does it)
            self.handleError(record)

    def _add(self, line: bytes) -> None:
        if self._size + len(line) > MOST:
            self._dropped += 1
            return
        self._lines.append(line)
        self._size += len(line)
        self._changed.notify_all()
        if not self._thread:
            thread = threading.Thread(target=self._write, name="log", daemon=True)
            thread.start()
            self._thread = thread

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Do nothing: where a line cannot be logged, that cannot be told either."""

    def flush(self) -> None:
        """Wait until all is written, for half a second at most; called at exit as well."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._thread or not (self._size or self._dropped), FLUSH_SECONDS
            )

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._dropped)
                lines, self._lines = self._lines, []
                if self._dropped:
                    lines.append(b"%d lines are missing here: nobody read them\n" % self._dropped)
                    self._dropped = 0
            rest = memoryview(b"".join(lines))
            with suppress(OSError):  # nobody is left to read it
                while rest:
                    try:
                        rest = rest[os.write(self._descriptor, rest) :]
                    except BlockingIOError:  # the client has set its end not to block
                        select.select([], [self._descriptor], [])
            with self._changed:
                self._size = sum(map(len, self._lines))
                self._changed.notify_all()


def begin(level: str, form: logging.Formatter) -> None:
    """Log to stderr from now on.

    Args:
        level: the least severe level that is written.
        form: what makes a line of a record.
    """
    if sys.stderr is None:  # closed
        logging.disable()
        return
    handler = Unhurried(sys.stderr.fileno())
    handler.setFormatter(form)
    logging.basicConfig(level=level, handlers=[handler])
