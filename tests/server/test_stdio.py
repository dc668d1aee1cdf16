"""The life of the process: what it answers, what reaches stdout, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client import NOTE, SERVER, Client

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such signals")

INITIALIZE = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
MODERN = {  # what every request carries since 2026-07-28, instead of a handshake
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def line(message: dict[str, Any]) -> str:
    """Return a message as a client sends it."""
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def tool_call(number: int, tool: str, **arguments: Any) -> str:
    """Return a call of a client that has shaken hands."""
    params = {"name": tool, "arguments": arguments}
    return line({"id": number, "method": "tools/call", "params": params})


def environ(base: Path) -> dict[str, str]:
    """Return the environment of a server on a directory."""
    return {**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}


def talk(base: Path, *lines: str | bytes, command: tuple[str, ...] = SERVER) -> Any:
    """Start a server, send everything at once, close its input, and wait for its end.

    Returns the finished process, after checking that its stdout holds nothing but messages.
    """
    sent = b"".join(each if isinstance(each, bytes) else each.encode() for each in lines)
    done = subprocess.run(
        command, input=sent, capture_output=True, env=environ(base), check=False, timeout=120
    )
    done.answers = [json.loads(each) for each in done.stdout.splitlines()]  # type: ignore[attr-defined]
    assert all(answer["jsonrpc"] == "2.0" for answer in done.answers)  # type: ignore[attr-defined]
    return done


def ids(done: Any) -> list[int]:
    """Return the ids of the requests that were answered with a result."""
    return sorted(answer["id"] for answer in done.answers if "result" in answer)


def test_every_request_is_answered_before_the_end(tmp_path: Path) -> None:
    """Of both eras, also the last one, whose line has no end."""
    calls = [tool_call(number, "remember", content="x", **NOTE) for number in range(1, 101)]
    done = talk(tmp_path, line(INITIALIZE), *calls[:-1], calls[-1].rstrip("\n"))
    assert ids(done) == list(range(101))
    assert len(list((tmp_path / "files").glob("*.md"))) == 100
    assert (done.returncode, done.stderr) == (0, b"")
    params = {"name": "think", "arguments": {"keywords": ["x"]}, "_meta": MODERN}
    lines = [line({"id": n, "method": "tools/call", "params": params}) for n in range(50)]
    done = talk(tmp_path, *lines)
    assert ids(done) == list(range(50))
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_cancelled_request_holds_nothing_up(tmp_path: Path) -> None:
    """What the client no longer wants is not waited for."""
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    calls = [tool_call(1, "think", keywords=["x"]), line(cancel), tool_call(2, "think")]
    done = talk(tmp_path, line(INITIALIZE), *calls)
    assert 2 in ids(done) and done.returncode == 0


def test_a_line_that_is_no_message_is_answered(tmp_path: Path) -> None:
    """The client is told, and the conversation goes on."""
    bad = [b"garbage\n", b"[1, 2]\n", b'{"id": 7, "x": 1}\n', b"[" * 40_000 + b"\n"]
    done = talk(tmp_path, line(INITIALIZE), *bad, tool_call(1, "think", keywords=["x"]))
    errors = [answer["error"]["code"] for answer in done.answers if "error" in answer]
    assert errors == [-32700] * len(bad)
    assert ids(done) == [0, 1]


def test_odd_but_readable_lines_are_read(tmp_path: Path) -> None:
    """Byte order mark, CRLF, empty lines, invalid UTF-8, half surrogate pairs: no obstacle."""
    done = talk(
        tmp_path,
        b"\xef\xbb\xbf" + line(INITIALIZE).replace("\n", "\r\n").encode(),
        b"\n  \r\n",
        tool_call(1, "remember", **NOTE, content="pair \ud83d\ude00, half \ud800, CAF\xc9"),
        tool_call(2, "remember", **NOTE, content="CAF-").encode().replace(b"CAF-", b"CAF\xc9"),
        tool_call(3, "remember", **{**NOTE, "topics": '["half \\ud800"]'}, content="x"),
        tool_call(4, "remember", **NOTE, content="x" * 20_000_000),
    )
    assert ids(done) == [0, 1, 2, 3, 4]
    texts = [path.read_text("utf-8") for path in (tmp_path / "files").glob("*.md")]
    for stored in ("pair \U0001f600, half \ufffd, CAF\xc9", "CAF\ufffd", "topics: [half, "):
        assert any(stored in text for text in texts), stored
    (answer,) = [answer["result"] for answer in done.answers if answer["id"] == 4]
    assert "Error storing memory: content: must be" in answer["content"][0]["text"]


NOISE = """
import os, subprocess, sys
import aiaml_server.bank
original = aiaml_server.bank.MemoryBank.think
def think(self, keywords):
    print("printed, unflushed")
    os.write(1, b"written to the descriptor\\n")
    child = "import os, sys; os.write(1, b'child read %a' % sys.stdin.read())"
    subprocess.run([sys.executable, "-c", child], check=True)
    if "crash" in keywords:
        raise RuntimeError("secret detail")
    return original(self, keywords)
aiaml_server.bank.MemoryBank.think = think
from aiaml_server.cli import main
sys.exit(main([]))
"""


def test_nothing_but_the_protocol_reaches_stdout(tmp_path: Path) -> None:
    """Neither prints nor child processes of a tool, nor a crash, whose traceback is logged."""
    calls = [tool_call(1, "think", keywords=["crash"]), tool_call(2, "think", keywords=["x"])]
    done = talk(tmp_path, line(INITIALIZE), *calls, command=(sys.executable, "-c", NOISE))
    assert ids(done) == [0, 1, 2]
    for noise in (b"printed, unflushed", b"written to the descriptor", b"child read ''"):
        assert done.stderr.count(noise) == 2
    answers = {answer["id"]: answer["result"] for answer in done.answers}
    (failure,) = json.loads(answers[1]["content"][0]["text"])
    assert failure["error"].startswith("Search failed: an internal error")
    assert (answers[1]["isError"], answers[2]["isError"]) == (True, False)
    assert b"RuntimeError: secret detail" in done.stderr
    assert b"secret" not in done.stdout


@posix
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 0), ("SIGHUP", 0)])
def test_signals_end_it_in_order(tmp_path: Path, name: str, code: int) -> None:
    """Once is enough, on a quiet input; no traceback."""
    with Client(tmp_path) as client:
        client.remember("x")
        client.process.send_signal(getattr(signal, name))
        assert client.process.wait(60) == code
        assert client.log() == ""


@posix
def test_a_client_that_stops_reading_ends_it(tmp_path: Path) -> None:
    """When nobody takes the answers, the process goes, quietly."""
    read, write = os.pipe()
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE, env=environ(tmp_path)
    ) as server:
        os.close(write)
        os.close(read)
        assert server.stdin and server.stderr
        server.stdin.write((line(INITIALIZE) + tool_call(1, "think", keywords=["x"])).encode())
        server.stdin.flush()
        assert server.wait(60) == 0
        assert server.stderr.read() == b""


def test_a_client_may_send_much_before_it_reads(tmp_path: Path) -> None:
    """Three hundred calls, whose answers are far more than a pipe holds."""
    with Client(tmp_path) as client:
        client.remember("x" * 500_000)
        (hit,) = client.call("think", keywords=["x"])
        requests = [client.start("recall", memory_ids=[hit["id"]]) for _ in range(40)]
        requests += [client.start("think", keywords=["y" * 20_000]) for _ in range(260)]
        for request in requests:
            assert client.value(request) is not None


UNREAD = """
import os, sys
reading, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(writing, True)
os.set_inheritable(reading, True)
os.dup2(writing, 2)
os.environ["AIAML_LOG_LEVEL"] = "DEBUG"
os.execv(sys.executable, [sys.executable, "-m", "aiaml_server"])
"""
"""Starts a server whose stderr is a full pipe that nobody reads."""


@posix
def test_a_log_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    """The tools answer, and the process ends."""
    with Client(tmp_path, command=[sys.executable, "-c", UNREAD]) as client:
        stored = client.remember("Max is a dog.")["memory_id"]
        assert [hit["id"] for hit in client.call("think", keywords=["dog"])] == [stored]
        assert client.close() == 0


def test_closed_pipes_are_a_sentence() -> None:
    """Started without a standard input, it says so instead of a traceback."""
    script = f"import os, subprocess, sys; os.close(0); os.execv(sys.executable, {list(SERVER)!r})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=60, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("aiaml-server: standard input or output is closed")
