"""What is done behind an answer, so that nobody waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from aiaml_server.errors import AiamlError

log = logging.getLogger(__name__)


class Behind:
    """What one thread at a time does behind answers, again as long as somebody asks for it."""

    def __init__(
        self, name: str, work: Callable[[], None], ended: threading.Event, seconds: float = 0
    ) -> None:
        """Make it; nothing is done yet.

        Args:
            name: the thread's.
            work: what is done; it fails only in what the next question repairs, or is told of.
            ended: set when nothing is to be begun any more.
            seconds: from one beginning to the next.
        """
        self._name = name
        self._work = work
        self._ended = ended
        self._seconds = seconds
        self._lock = threading.Lock()  # held for moments, for both of these:
        self._thread: threading.Thread | None = None
        self._asked = False  # since it was last begun

    @property
    def running(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def ask(self) -> None:
        """Have it done, now or after the last time."""
        with self._lock:
            self._asked = True
            if self._thread or self._ended.is_set():
                return
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            with suppress(RuntimeError):  # the system has none left; the next answer tries again
                thread.start()
                self._thread = thread

    def join(self) -> None:
        """Wait until the thread has ended, once it is to, or a second has passed."""
        if thread := self._thread:
            thread.join(1)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._asked or self._ended.is_set():
                    self._thread = None
                    return
                self._asked = False
            began = time.monotonic()
            try:
                with suppress(AiamlError):
                    self._work()
            except Exception:  # the next question meets it too, and repairs it or is told
                log.info("What is done behind answers failed", exc_info=True)
            self._ended.wait(began + self._seconds - time.monotonic())
