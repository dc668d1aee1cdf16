"""`aiaml web` against those who only hold on: connections, half of requests, large bodies."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from aiaml_server.web import asked
from waiting import wait_until
from web_process import HEADER, Web

WITHIN = 10.0  # seconds in which a connection must bring the token
NOTES = """\
Whoever has this address can read and change your memories, as long as this runs.
Ctrl-C ends it, and so do 30 minutes without a visit.
"""
MIB = 1024 * 1024
LARGEST = 32 * MIB  # bytes of a body


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    """Serve an empty directory."""
    with Web(tmp_path / "store") as web:
        yield web


def head(web: Web, line: str, token: str = "", length: int = 0) -> bytes:
    """Return a request without its body."""
    fields = [line, f"Host: 127.0.0.1:{web.port}", f"Content-Length: {length}"]
    if token:
        fields.append(f"{HEADER}: {token}")
    return "\r\n".join([*fields, "", ""]).encode()


def connect(web: Web, data: bytes = b"") -> socket.socket:
    """Return a connection that sent this."""
    connection = socket.create_connection(("127.0.0.1", web.port), 60)
    connection.sendall(data)
    return connection


def is_open(connection: socket.socket, *, reading: bool = True) -> bool:
    """Say whether the server keeps a connection; what it answered is read, or only more is sent."""
    connection.setblocking(False)
    try:
        if not reading:
            connection.send(b"x")
            return True
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_connections_leave_descriptors_for_the_person(tmp_path: Path) -> None:
    """With 900 half-open ones and 256 descriptors, the page answers within a second."""
    few = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
    with Web(tmp_path / "store", before=few) as web, ExitStack() as held:
        stream = head(web, "GET /api/events HTTP/1.1", web.token)
        for number in range(900):
            held.enter_context(connect(web, b"GET / HTTP/1.1\r\nHost: "))
            if number == 450:
                visitor = held.enter_context(connect(web, stream))
            time.sleep(0.002)  # else the system has each connection wait for a second
        assert web.ask("/api/status").status == 200
        assert is_open(visitor)
    assert web.said == NOTES


@pytest.mark.slow
def test_connections_without_the_token_are_closed_after_some_seconds(web: Web) -> None:
    """Whatever they do: nothing, a byte now and then, no reading, half of a body."""
    with ExitStack() as held:
        silent = held.enter_context(connect(web))
        slow = held.enter_context(connect(web, b"GET / HTTP/1.1\r\nHost: "))
        body = held.enter_context(
            connect(web, head(web, "POST /api/restore HTTP/1.1", length=9999))
        )
        deaf = held.enter_context(socket.socket())
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", web.port))
        deaf.sendall(head(web, "GET /app.js HTTP/1.1") * 500)
        visitor = held.enter_context(connect(web, head(web, "GET /api/events HTTP/1.1", web.token)))
        kept = [silent, slow, body, deaf]
        while kept:
            time.sleep(0.5)
            for each in (slow, body):
                with suppress(OSError):
                    each.send(b"x")
            kept = [each for each in kept if is_open(each, reading=each is not deaf)]
        assert is_open(visitor)


# --- bodies ---------------------------------------------------------------------------------------


def test_an_upload_that_breaks_off_says_nothing(web: Web) -> None:
    """Neither a traceback nor a line on the person's terminal."""
    for line in ("POST /api/memories HTTP/1.1", "POST /api/restore HTTP/1.1"):
        with connect(web, head(web, line, web.token, 1000) + b"{"):
            time.sleep(0.3)
    assert web.ask("/api/status").status == 200
    assert web.end() == 0
    assert web.said == NOTES


@pytest.mark.parametrize("length", [1000, LARGEST])
def test_upload_that_stalls_holds_up_no_other(web: Web, length: int) -> None:
    """Of whatever size it says to be: a change is answered within a second."""
    stalled = head(web, "POST /api/restore HTTP/1.1", web.token, length) + b"{"
    with connect(web, stalled), connect(web, stalled):
        time.sleep(0.3)
        assert web.ask("/api/preview", "POST", b"# hello").status == 200
        assert web.ask("/api/undo", "POST", b'"x"').status == 410


@pytest.mark.slow
def test_upload_that_stalls_holds_up_a_large_one_for_seconds(web: Web) -> None:
    """Of those above 1 MiB one arrives after another, and one that stops arriving is given up."""
    stalled = head(web, "POST /api/restore HTTP/1.1", web.token, LARGEST) + b"{"
    with connect(web, stalled):
        time.sleep(0.3)
        assert web.ask("/api/preview", "POST", b"a" * (MIB + 1)).status == 200


@pytest.mark.parametrize("limit", ["BODY_SECONDS", "STALLED_SECONDS"])
def test_body_that_stalls_is_an_error(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """And its connection is closed: what is left of it is not waited for."""
    monkeypatch.setattr(asked, limit, 0.05)
    parts = [b"{", b'"half']

    async def receive() -> Message:
        if not parts:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": parts.pop(0), "more_body": True}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match="did not come to its end") as stalled:
        asyncio.run(asked.body(request))
    assert stalled.value.status_code == 408
    assert stalled.value.headers == {"connection": "close"}


@pytest.mark.parametrize("path", ["/api/restore", "/api/memories"])
def test_a_body_that_is_too_long_ends_its_connection(web: Web, path: str) -> None:
    """The answer comes before the rest, which is not waited for."""
    with connect(web, head(web, f"POST {path} HTTP/1.1", web.token, 10**9)) as connection:
        with suppress(OSError):
            connection.sendall(b" " * (LARGEST + 1024 * 1024))
        with suppress(OSError):
            assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")
        wait_until(lambda: not is_open(connection))


def memory_of(web: Web, what: str) -> int:
    """Return a line of the process's status, in MB."""
    text = Path(f"/proc/{web.process.pid}/status").read_text()
    return int(re.findall(rf"{what}:\s+(\d+) kB", text)[0]) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory it has")
def test_a_body_without_the_token_is_not_kept(web: Web) -> None:
    """Whatever is sent, and however much: it is refused at its head."""
    before = memory_of(web, "VmRSS")
    with ExitStack() as held:
        for _ in range(8):
            stranger = held.enter_context(
                connect(web, head(web, "POST /api/restore HTTP/1.1", length=LARGEST))
            )
            stranger.settimeout(0.5)
            with suppress(OSError):
                stranger.sendall(b"y" * LARGEST)
        assert memory_of(web, "VmHWM") - before <= 20


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory it has")
def test_many_uploads_take_the_memory_of_one(web: Web) -> None:
    """Eight of 32 MB at once take 100 MB at most, and sixteen more not another byte of it."""
    text = json.dumps({"x.md": "y" * (LARGEST - 100)}).encode()
    assert web.ask("/api/restore", "POST", b'{"x.md": "y"}').status == 422
    before = memory_of(web, "VmRSS")
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: web.ask("/api/restore", "POST", text).status, range(24))
        assert set(answers) == {422}
    assert memory_of(web, "VmHWM") - before <= 100
