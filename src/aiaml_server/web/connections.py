"""Which connections stay open: those that brought the token, and a few others for some seconds.

Anybody on this machine may connect, and send half of a request or read no answer. What counts is
the token alone: a connection without one is closed after some seconds, whatever else it does, and
the oldest of them at once where there are too many. So a descriptor is left for the person's own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

WITHIN_SECONDS = 10.0
BACKLOG = 16  # connections that are taken in one turn of the loop, before others can be closed
_MOST = 128  # eight such turns: time enough for the person's own to be heard


class Connections:
    """Those that have not brought the token yet, by the client's address, the oldest first."""

    def __init__(self) -> None:
        self._strange: dict[object, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}
        self._most = most()

    def opened(self, address: object, transport: asyncio.Transport) -> None:
        """Take in a connection, in place of the oldest where there are too many."""
        late = asyncio.get_running_loop().call_later(WITHIN_SECONDS, transport.abort)
        self._strange[address] = transport, late
        if len(self._strange) > self._most:
            oldest = next(iter(self._strange))
            self._strange[oldest][0].abort()
            self.let(oldest)

    def let(self, address: object) -> None:
        """Leave a connection alone from now on: it brought the token, or is closed."""
        if found := self._strange.pop(address, None):
            found[1].cancel()

    def protocol(self, **words: Any) -> asyncio.Protocol:
        """Return what speaks HTTP on a new connection, as uvicorn asks for it."""
        return _Connection(self, **words)


def most() -> int:
    """Return how many connections without the token are kept: half of what may be open at most."""
    if sys.platform == "win32":
        return _MOST  # sockets are no descriptors there
    import resource  # noqa: PLC0415 (not there on Windows)

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if allowed == resource.RLIM_INFINITY else min(_MOST, allowed // 2)


class _Connection(H11Protocol):
    """uvicorn's, which waits for a client without end where it has sent half of a request."""

    def __init__(self, connections: Connections, **words: Any) -> None:
        super().__init__(**words)
        self._connections = connections
        self._address: object = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        super().connection_made(transport)
        self._address = self.client
        self._connections.opened(self._address, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connections.let(self._address)
        super().connection_lost(exc)
