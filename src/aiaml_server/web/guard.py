"""Who may ask: this machine, this page, and whoever has the token.

A page on loopback has neighbours: other pages in the same browser, other programs, other people
on the machine. Each request passes four questions, and each closes a door of its own:

- `Host`: a name that a stranger's DNS points here (rebinding) is not ours.
- `Origin`, `Sec-Fetch-Site`: the browser says when another page asks, also one on another port.
- The token, in a header of its own, for all but the page's fixed files: no other page can send such
  a header without our leave (CORS), which nobody gets. A cookie would not do: browsers send those
  of one port on 127.0.0.1 to every other. In the address the token is a fragment, which browsers
  keep to themselves.
- The answer's headers: no scripts, styles or pictures but ours, no frames, nothing kept on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from secrets import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aiaml_server.web.pages import problem

HEADER = "x-aiaml-token"

HEADERS = {
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


class Guard:
    """Lets through what may pass, and marks every answer.

    A request that is being answered counts as a visit: a page that is looked at holds a stream.
    """

    def __init__(
        self,
        app: ASGIApp,
        port: int,
        token: str,
        public: Collection[str],
        *,
        known: Callable[[object], None],
        led: bool,
    ) -> None:
        """Stand before an application.

        Args:
            app: what is guarded.
            port: where it listens on 127.0.0.1.
            token: what every request must bring,
            public: but for these paths, which hold nothing of anybody's.
            known: is told the address of each connection that brought it.
            led: whether a file leads the person's browser here, which counts as another page. It
                is let in until it has brought the token.
        """
        self._known = known
        self._led = led
        self._last_visit = time.monotonic()
        self._visitors = 0
        self._app = app
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._token = token.encode()
        self._public = frozenset(public)

    @property
    def last_visit(self) -> float:
        """When there last was a request with the token, in `time.monotonic` seconds."""
        return time.monotonic() if self._visitors else self._last_visit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or let the application do so."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        private = scope["path"] not in self._public
        headers = Headers(scope=scope)
        led = self._led and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        refused = self._refusal(headers, private=private, led=led)
        if refused:
            status, sentence = refused
            await problem(status, sentence)(scope, receive, marked)
            return
        if private:
            self._known(scope["client"])
            self._led = False
        self._visitors += private
        try:
            await self._app(scope, receive, marked)
        finally:
            self._visitors -= private
            self._last_visit = time.monotonic() if private else self._last_visit

    def _refusal(self, headers: Headers, *, private: bool, led: bool) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if host not in self._hosts:
            return 421, "this page is only at the address that `aiaml web` printed"
        site = "none" if led else headers.get("sec-fetch-site")
        origins = {headers.get("origin"), site}
        if not origins <= {None, f"http://{host}", "same-origin", "none"}:
            return 403, "another page asked; paste the address that `aiaml web` printed"
        if private and not compare_digest(headers.get(HEADER, "").encode(), self._token):
            return 403, "the token is missing or wrong; open the address that `aiaml web` printed"
        return None
