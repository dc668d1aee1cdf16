"""A web server on this machine alone that gives out git repositories, and can be made to fail."""

from __future__ import annotations

import base64
import http.server
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from machine import CLEAN


@dataclass
class Terms:
    """How a server behaves.

    Attributes:
        root: the directory that holds the repositories.
        login: what it takes to be let in, as "user:password"; empty for nothing.
        largest: bytes of a request's body that it takes.
        answer: a status that it answers everything with, and the text; 0 for none.
        requests: the path of each request, with its method.
        sizes: of each request's body, in bytes.
    """

    root: Path
    login: str = ""
    largest: int = 1 << 40
    answer: tuple[int, str] = (0, "")
    requests: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


@contextmanager
def git_server(terms: Terms, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve, with a `context` by TLS; give the address of the root."""

    class Handler(_Handler):
        pass

    Handler.terms = terms
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http{'s' if context else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    """Hands a request to `git http-backend`."""

    terms: Terms
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    def log_message(self, *_: object) -> None:
        pass

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _serve(self, body: bytes) -> None:
        self.terms.requests.append(f"{self.command} {self.path}")
        self.terms.sizes.append(len(body))
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        status, text = self.terms.answer
        if status:
            self._say(status, text.encode())
        elif self.terms.login and base64.b64decode(given).decode() != self.terms.login:
            self._say(401, b"", ("WWW-Authenticate", 'Basic realm="memories"'))
        elif len(body) > self.terms.largest:
            self._say(413, b"too large")
        else:
            self._run(body)

    def _run(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        variables = {
            **os.environ,
            **CLEAN,
            "GIT_PROJECT_ROOT": str(self.terms.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "somebody",
        }
        done = subprocess.run(
            ["git", "-c", "http.receivepack=true", "http-backend"],
            input=body, env=variables, capture_output=True, check=False,
        )  # fmt: skip
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(": ")[::2] for line in head.decode().split("\r\n")]
        status = next((int(value.split()[0]) for name, value in lines if name == "Status"), 200)
        self._say(status, content, *(each for each in lines if each[0] != "Status"))

    def _say(self, status: int, content: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
