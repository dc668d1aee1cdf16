"""The server of the page: socket, routes, errors, and when it ends."""

from __future__ import annotations

import logging
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import (
    AiamlError,
    FileChanged,
    InvalidInput,
    MalformedFile,
    NotCommitted,
    os_reason,
)
from aiaml_server.settings import Settings
from aiaml_server.terminal import EXIT_FAILED, EXIT_OK, Exit, echo, notify
from aiaml_server.web.api import Api
from aiaml_server.web.browser import browser_at, has_screen
from aiaml_server.web.guard import Guard
from aiaml_server.web.serialize import Json

log = logging.getLogger(__name__)

MAX_REQUESTS = 64  # at the same time; uvicorn answers 503 to more
_CLOSING_SECONDS = 1
_STATIC = Path(__file__).with_name("static")
_MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_STATUS_CODES = {InvalidInput: 400, NotCommitted: 409, FileChanged: 412, MalformedFile: 422}


def create_app(
    bank: MemoryBank, settings: Settings, *, port: int, token: str, redirected: bool = False
) -> Guard:
    """Return the guarded application for one memory directory.

    Args:
        bank: the memories.
        settings: the settings of the bank.
        port: the port on 127.0.0.1 where it listens.
        token: what each request for something private must bring.
        redirected: whether a local file sends the browser here; see `Guard`.
    """
    static = [_static_route(path) for path in sorted(_STATIC.iterdir())]
    app = Starlette(
        routes=[*static, *Api(bank, settings).routes()], exception_handlers=_ERROR_HANDLERS
    )
    app.router.redirect_slashes = False
    public = {route.path for route in static}
    return Guard(app, port, token, public, redirected=redirected)


def serve(settings: Settings, port: int | None, *, browser: bool, idle: float) -> int:
    """Serve the page until Ctrl-C, or until there was no request for some time.

    Args:
        settings: the memory directory, and how it is synced.
        port: where to listen; None for any free port.
        browser: whether to open the page in the browser.
        idle: after how many seconds without a request to end.

    Raises:
        Exit: the port cannot be used.
    """
    with suppress(KeyboardInterrupt), _listen(port) as listener, ExitStack() as stack:
        port = listener.getsockname()[1]
        token = secrets.token_urlsafe(32)
        address = f"http://127.0.0.1:{port}/#token={token}"
        browser = browser and has_screen()
        bank = MemoryBank(settings, report=notify)
        guard = create_app(bank, settings, port=port, token=token, redirected=browser)
        server = _make_server(guard, idle)
        # A signal sets a flag until the end. KeyboardInterrupt within an import can be lost, or
        # leave the lock of all imports held, for which the threads would wait forever.
        stack.enter_context(server.capture_signals())
        stack.enter_context(bank.opened())
        echo(address)
        notify("Anyone who has this address can read and change your memories while this runs.")
        notify(f"Press Ctrl-C to stop. It stops by itself after {_minutes(idle)} without a visit.")
        sys.stdout.flush()
        if browser:
            _open_browser(address, stack)
        server.run([listener])
        if guard.idle_seconds >= idle:
            notify(f"Stopped after {_minutes(idle)} without a visit.")
    return EXIT_OK


def _listen(port: int | None) -> socket.socket:
    listener = socket.socket()
    try:
        if sys.platform == "win32":  # without it, another program could share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port or 0))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = os_reason(error)
        hint = "Choose another port, or leave `--port` out for a free one"
        raise Exit(f"cannot listen on port {port}: {reason}. {hint}", EXIT_FAILED) from error
    return listener


def _open_browser(address: str, stack: ExitStack) -> None:
    try:
        stack.enter_context(browser_at(address))
    except OSError as error:
        notify(f"Cannot open the browser: {os_reason(error)}. Paste the address into it.")
    else:
        notify("If your browser shows nothing, paste the address into it.")


def _make_server(guard: Guard, idle: float) -> uvicorn.Server:
    """Return a server that ends by itself after `idle` seconds without a visit."""

    async def end_if_idle() -> None:
        server.should_exit |= guard.idle_seconds >= idle

    config = uvicorn.Config(
        guard,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_REQUESTS,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        callback_notify=end_if_idle,
        timeout_notify=1,
    )
    server = uvicorn.Server(config)
    return server


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


# --- fixed files ----------------------------------------------------------------------------------


def _static_route(path: Path) -> Route:
    """Return the route of a static file, which is read once."""
    address = "/" if path.name == "index.html" else f"/{path.name}"
    endpoint = partial(_static_file, path.read_bytes(), _MEDIA_TYPES[path.suffix])
    return Route(address, endpoint, methods=["GET"])


async def _static_file(data: bytes, media_type: str, _: Request) -> Response:
    return Response(data, media_type=media_type)


# --- errors ---------------------------------------------------------------------------------------


def _error(status: int, sentence: str) -> Response:
    return Json({"error": sentence}, status)


async def _known_error(_: Request, error: Exception) -> Response:
    return _error(_STATUS_CODES.get(type(error), 503), str(error))


async def _not_found(_: Request, __: Exception) -> Response:
    return _error(404, "There is no such memory. It may have been forgotten meanwhile.")


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    return _error(status, getattr(error, "detail", "The request broke off."))


async def _unexpected_error(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(500, f"That failed ({type(error).__name__}). The terminal shows more.")


_ERROR_HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    AiamlError: _known_error,
    FileNotFoundError: _not_found,
    HTTPException: _http_error,
    ClientDisconnect: _http_error,
    Exception: _unexpected_error,
}
