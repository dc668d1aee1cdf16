"""The guard: it decides which requests are let in, and sets the headers of every answer.

A page on loopback has neighbours: other pages in the same browser, other programs, other users of
the machine. Each request passes these checks:

- `Host` must be ours, so that another site's name that resolves to 127.0.0.1 (DNS rebinding) gets
  nothing.
- `Origin` and `Sec-Fetch-Site` must name this page, so that other pages get nothing.
- The token must be in a header, for everything but the fixed files. No other page can send that
  header, because CORS forbids it. A cookie would not do: browsers send the cookies of one port on
  127.0.0.1 to all others. In the address, the token is a fragment, which browsers send to nobody.
- A body must state its length, of at most 1 MiB.

The headers allow no scripts, styles or connections but ours, no frames, and no copy on disk.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from secrets import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "X-AIAML-Token"  # noqa: S105 (the name of a header)
MAX_BODY_BYTES = 1024 * 1024
ANSWER_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types safe-html"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

Refusal = tuple[int, str]
"""A status code and the reason, for a person."""


class Guard:
    """ASGI middleware that refuses foreign requests and sets headers of every answer."""

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        token: str,
        public: Collection[str],
        *,
        redirected: bool = False,
    ) -> None:
        """Guard an application.

        Args:
            app: the application.
            port: the port on 127.0.0.1 where it listens.
            token: what each request must bring.
            public: the paths that need no token, because they hold nothing private.
            redirected: whether a local file sends the browser here. The browser counts that file
                as another site; so one is let in to `/` until the first request with the token.
        """
        self._last_visit = time.monotonic()
        self._app = app
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._token = token.encode()
        self._public = frozenset(public)
        self._redirected = redirected

    @property
    def idle_seconds(self) -> float:
        """How long ago the last request with the token was answered."""
        return time.monotonic() - self._last_visit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(ANSWER_HEADERS)
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        if refusal:
            status, reason = refusal
            # Without reading the body: the connection cannot be used again.
            answer = JSONResponse({"error": reason}, status, {"connection": "close"})
            await answer(scope, receive, send_marked)
            return
        if scope["path"] not in self._public:
            self._redirected = False
            self._last_visit = time.monotonic()
        await self._app(scope, receive, send_marked)

    def _refusal(self, path: str, headers: Headers) -> Refusal | None:
        """Return why a request is refused; None if it is let in."""
        host = headers.get("host", "")
        if host not in self._hosts:
            return 421, "This page is only at the address that `aiaml web` printed."
        site = headers.get("sec-fetch-site")
        if self._redirected and path == "/" and headers.get("sec-fetch-mode") == "navigate":
            site = None
        if not {headers.get("origin"), site} <= {None, f"http://{host}", "same-origin", "none"}:
            return 403, "Another page asked. Paste the address that `aiaml web` printed."
        token = headers.get(TOKEN_HEADER, "").encode()
        if path not in self._public and not compare_digest(token, self._token):
            return 403, "The token is missing or wrong. Open the address that `aiaml web` printed."
        return _body_refusal(headers)


def _body_refusal(headers: Headers) -> Refusal | None:
    """Return why a body is refused; None for one that may be read."""
    if "transfer-encoding" in headers:
        return 411, "A request must state its Content-Length."
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        return 400, "The Content-Length is not a number."
    if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
        return 413, "The text is larger than 1 MiB. Edit the file itself."
    return None
