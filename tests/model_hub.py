"""A hub of models on loopback: one that serves, is silent, or breaks off in the middle.

It answers as the real one does what huggingface_hub asks: what a repository's newest commit is, and
its files, from any byte on.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """The hub.

    Attributes:
        asked: methods and paths, in order.
        sent: bytes of files that were sent.
        broken: how many more times the largest file breaks off in its middle.
        go_on: what the largest file waits for in its middle.
        half: set when it has come there.
    """

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes], broken: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.broken = broken
        self.asked: list[str] = []
        self.sent = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self.half = threading.Event()

    @property
    def address(self) -> str:
        """What `HF_ENDPOINT` names."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Take it that clients go away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer with the head alone."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """Answer."""
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {path}")
        if found := re.fullmatch(r"/[^/]+/[^/]+/resolve/[^/]+/(.+)", path):
            self._file(found[1], body=body)
        elif path.startswith("/api/models/"):
            siblings = [{"rfilename": name} for name in self.server.files]
            self._json({"id": "a/b", "sha": COMMIT, "siblings": siblings})
        else:
            self.send_error(404)

    def _json(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _file(self, name: str, *, body: bool) -> None:
        data = self.server.files.get(name)
        if data is None:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", f'"{_oid(data)}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if not body:
            return
        is_largest = data == max(self.server.files.values(), key=len)
        middle = max(start, len(data) // 2)
        self._send(data[start:middle])
        if is_largest:
            self.server.half.set()
            self.server.go_on.wait(60)
        if is_largest and self.server.broken:
            self.server.broken -= 1
            self.close_connection = True
        else:
            self._send(data[middle:])

    def _send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()
        self.server.sent += len(data)


def _oid(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()  # noqa: S324 (as git names what it holds)


@contextmanager
def serving(files: Mapping[str, bytes], broken: int = 0) -> Iterator[Hub]:
    """Serve files inside the `with`."""
    with Hub(files, broken) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            hub.go_on.set()
            hub.shutdown()
            thread.join()


@contextmanager
def silent() -> Iterator[str]:
    """Accept connections inside the `with`, and never say anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def refusing() -> Iterator[str]:
    """Return an address where nobody listens, which nobody else gets meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
