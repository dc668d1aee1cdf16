"""The other signals that end a program, taken as Ctrl-C: what a verb made for itself goes."""

from __future__ import annotations

import signal


class Signalled(KeyboardInterrupt):
    """A closed terminal, a shutdown or `kill` asked to end."""


class Ending:
    """Raises `Signalled` in the main thread, once: a closed terminal may send several signals.

    What is ignored (nohup) stays so.

    Attributes:
        code: the exit code, 128 and the number of the signal, as shells have it; 0 before one came.
    """

    def __init__(self) -> None:
        self.code = 0
        for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):  # the last is Windows'
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, self._end)

    def _end(self, number: int, _: object) -> None:
        if not self.code:
            self.code = 128 + number
            raise Signalled
