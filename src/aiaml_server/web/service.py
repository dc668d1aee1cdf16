"""The socket, uvicorn, and how it ends."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from typing import cast

import uvicorn
from starlette.applications import Starlette

from aiaml_server.errors import os_reason
from aiaml_server.settings import Settings
from aiaml_server.terminal import EXIT_FAILED, EXIT_OK, Exit, echo, notify
from aiaml_server.web import pages
from aiaml_server.web.api import Api
from aiaml_server.web.changes import Streams
from aiaml_server.web.choice import Choice
from aiaml_server.web.connections import BACKLOG, Connections
from aiaml_server.web.edits import Edits
from aiaml_server.web.guard import Guard
from aiaml_server.web.leading import has_screen, led_to
from aiaml_server.web.places import opened

_CLOSING_SECONDS = 1


def serve(
    settings: Settings,
    port: int | None,
    *,
    browser: bool,
    idle: float,
) -> int:
    """Serve the page until Ctrl-C, or until nobody came for `idle` seconds.

    Args:
        settings: the memory directory, and how it is kept.
        port: where to listen; None for any that is free.
        browser: whether to open the page.
        idle: seconds.

    Raises:
        Ended: the port cannot be used.
    """
    with suppress(KeyboardInterrupt), _listening(port) as listener, ExitStack() as ends:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        address = f"http://127.0.0.1:{port}/#token={token}"
        browser = browser and has_screen()
        place = ends.enter_context(opened(settings))
        streams, connections = Streams(), Connections()
        public, choice = pages.routes(), Choice(place)
        api, edits = Api(place, choice, streams), Edits(place, choice)
        private = [*api.routes(), *edits.routes()]
        app = Starlette(routes=[*public, *private], exception_handlers=pages.PROBLEMS)
        app.router.redirect_slashes = False
        unguarded = {route.path for route in public}
        guard = Guard(app, port, token, unguarded, known=connections.let, led=browser)
        echo(address)
        notify("Whoever has this address can read and change your memories, as long as this runs.")
        notify(f"Ctrl-C ends it, and so do {_minutes(idle)} without a visit.")
        sys.stdout.flush()
        if browser:
            _lead(address, ends)
        _run(guard, streams, connections, listener, idle)
        notify(f"Ended: nobody came for {_minutes(idle)}.")
    return EXIT_OK


def _listening(port: int | None) -> socket.socket:
    listener = socket.socket()
    try:
        if sys.platform == "win32":  # there, another program could take the same port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port or 0))
        listener.listen()
    except OSError as error:
        listener.close()
        why = os_reason(error)
        hint = "take another, or leave `--port` out for one that is free"
        raise Exit(f"cannot listen on port {port}: {why}; {hint}", EXIT_FAILED) from error
    return listener


def _lead(address: str, ends: ExitStack) -> None:
    try:
        ends.enter_context(led_to(address))
    except OSError as error:
        notify(f"Paste it into your browser: no file can lead there ({os_reason(error)}).")
    else:
        notify("Your browser is led there by a file; if it may not read that (some in a snap, a "
             "flatpak or on Windows beside WSL), paste the address.")  # fmt: skip


def _run(
    guard: Guard,
    streams: Streams,
    connections: Connections,
    listener: socket.socket,
    idle: float,
) -> None:
    """Serve, beside this thread, which is left to the signals; return when nobody comes any more.

    Raises:
        KeyboardInterrupt: a signal; by then, nothing is served any more.
    """
    config = uvicorn.Config(
        guard,
        http=cast("type[asyncio.Protocol]", connections.protocol),
        backlog=BACKLOG,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="web", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and (left := guard.last_visit + idle - time.monotonic()) > 0:
            time.sleep(min(left, 1))
    finally:
        streams.close()
        server.should_exit = True
        thread.join()


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"
