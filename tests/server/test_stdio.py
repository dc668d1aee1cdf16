"""The life of the process: what it answers, what reaches stdout, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from mcp.types import JSONRPCMessage

from aiaml_server import Memory
from aiaml_server.format.memory import format as format_of
from aiaml_server.server import stdio
from aiaml_server.server.stdio import Incoming
from client import NOTE, SERVER, Client
from waiting import wait_until

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
    """Return a message as the wire carries it."""
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def tool_call(number: int, tool: str, **arguments: Any) -> str:
    """Return a call in the handshake era."""
    params = {"name": tool, "arguments": arguments}
    return line({"id": number, "method": "tools/call", "params": params})


def talk(base: Path, *lines: str | bytes, command: tuple[str, ...] = SERVER, **env: str) -> Any:
    """Start the server, send everything at once, close its input, wait for its end.

    Returns the finished process, after checking that its stdout holds nothing but messages.
    """
    sent = b"".join(each if isinstance(each, bytes) else each.encode() for each in lines)
    done = subprocess.run(
        command,
        input=sent,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false", **env},
    )
    done.answers = [json.loads(each) for each in done.stdout.splitlines()]  # type: ignore[attr-defined]
    assert all(answer["jsonrpc"] == "2.0" for answer in done.answers)  # type: ignore[attr-defined]
    return done


@pytest.mark.parametrize("count", [1, 5, 200])
def test_every_request_before_the_end_of_input_is_answered(tmp_path: Path, count: int) -> None:
    """A client may send and close; nothing it asked is lost."""
    calls = [tool_call(n, "remember", **NOTE, content=f"x{n}") for n in range(1, count + 1)]
    done = talk(tmp_path, line(INITIALIZE), *calls)
    assert {answer["id"] for answer in done.answers if "result" in answer} == set(range(count + 1))
    assert len(list((tmp_path / "files").glob("*.md"))) == count
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_same_holds_without_a_handshake(tmp_path: Path) -> None:
    """The era since 2026-07-28: every request stands alone."""
    call = {"name": "think", "arguments": {"keywords": ["x"]}, "_meta": MODERN}
    lines = [line({"id": n, "method": "tools/call", "params": call}) for n in range(50)]
    done = talk(tmp_path, *lines)
    assert {answer["id"] for answer in done.answers if "result" in answer} == set(range(50))
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    """A request that the end of input cuts off behind its last brace is a request."""
    done = talk(tmp_path, line(INITIALIZE), tool_call(1, "think", keywords=["x"]).rstrip("\n"))
    assert sorted(answer["id"] for answer in done.answers) == [0, 1]


def test_a_cancelled_request_holds_nothing_up(tmp_path: Path) -> None:
    """What the client no longer wants is not waited for, nor answered twice."""
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    done = talk(
        tmp_path,
        line(INITIALIZE),
        tool_call(1, "think", keywords=["x"]),
        line(cancel),
        tool_call(2, "think"),
    )
    assert [a["id"] for a in done.answers].count(2) == 1
    assert [a["id"] for a in done.answers].count(1) <= 1
    assert done.returncode == 0


def modern(number: int, method: str, **params: Any) -> str:
    """Return a request in the era without a handshake."""
    return line({"id": number, "method": method, "params": {**params, "_meta": MODERN}})


DISCOVERED = {  # what a client may do after `server/discover`, and the codes of the answers
    "a handshake": ([line({**INITIALIZE, "id": 2}), tool_call(3, "think", keywords=["x"])], [0, 0]),
    "no handshake": ([modern(2, "tools/list"), modern(3, "ping")], [0, -32601]),
    "asking again": ([modern(2, "server/discover"), line({**INITIALIZE, "id": 3})], [0, 0]),
    "giving up first": (
        [
            line({"method": "notifications/cancelled", "params": {"requestId": 1}}),
            line({**INITIALIZE, "id": 2}),
        ],
        [0],
    ),
    "both eras": ([line({**INITIALIZE, "id": 2}), modern(3, "tools/list")], [0, -32600]),
    "the other way": ([modern(2, "tools/list"), line({**INITIALIZE, "id": 3})], [0, -32022]),
    "nothing": ([], []),
}  # fmt: skip


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("case", DISCOVERED)
def test_asking_what_there_is_does_not_decide_the_era(case: str, tmp_path: Path) -> None:
    """What comes next does, and the toolsets are opened once."""
    lines, codes = DISCOVERED[case]
    done = talk(tmp_path, modern(1, "server/discover"), *lines)
    answers = {each["id"]: each.get("error", {}).get("code", 0) for each in done.answers}
    assert "giving" in case or answers.pop(1) == 0
    assert [answers[number] for number in sorted(answers) if number > 1] == codes
    assert (done.returncode, done.stderr) == (0, b"")


BAD_LINES = {
    "not JSON": (b"garbage\n", -32700, None),
    "half a message": (b'{"jsonrpc":"2.0","id":\n', -32700, None),
    "nested without end": (b"[" * 40_000 + b"\n", -32700, None),
    "a batch": (b"[1, 2]\n", -32600, None),
    "no message": (b'{"id": 7, "x": 1}\n', -32600, 7),
    "an id that is an object": (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600, None),
    "an id that is null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
}


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("case", BAD_LINES)
def test_a_line_that_is_no_message_is_answered(tmp_path: Path, case: str) -> None:
    """The client is told, and the conversation goes on."""
    bad, code, request_id = BAD_LINES[case]
    done = talk(tmp_path, line(INITIALIZE), bad, tool_call(1, "think", keywords=["x"]))
    (refusal,) = [answer for answer in done.answers if "error" in answer]
    assert (refusal["error"]["code"], refusal["id"]) == (code, request_id)
    assert sorted(a["id"] for a in done.answers if "result" in a) == [0, 1]
    assert done.returncode == 0


def test_odd_but_readable_lines_are_read(tmp_path: Path) -> None:
    """Byte order mark, CRLF, empty lines, invalid UTF-8, half surrogate pairs: no obstacle."""
    done = talk(
        tmp_path,
        b"\xef\xbb\xbf" + line(INITIALIZE).replace("\n", "\r\n").encode(),
        b"\n  \r\n",
        tool_call(1, "remember", **NOTE, content="pair \ud83d\ude00, half \ud800, CAF\xc9"),
        tool_call(2, "remember", **NOTE, content="CAF-").encode().replace(b"CAF-", b"CAF\xc9"),
    )
    assert sorted(a["id"] for a in done.answers if "result" in a) == [0, 1, 2]
    texts = sorted(path.read_text("utf-8") for path in (tmp_path / "files").glob("*.md"))
    assert any("pair \U0001f600, half \ufffd, CAF\xc9" in text for text in texts)
    assert any("CAF\ufffd" in text for text in texts)


def test_twenty_megabytes_in_a_line_are_no_crash(tmp_path: Path) -> None:
    """Too much is refused in the usual shape."""
    call = tool_call(1, "remember", **NOTE, content="x" * 20_000_000)
    done = talk(tmp_path, line(INITIALIZE), call)
    (answer,) = [answer for answer in done.answers if answer["id"] == 1]
    assert "Error storing memory: content: must be" in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("id_first", [True, False])
@pytest.mark.parametrize("wrong", [
    {"keywords": [{}] * 50_000}, {"keywords": ["a"] * 60_000},
    {"keywords": ["a" * 40_000_000]}, {"keywords": [[[]]] * 30_000, "id": 5},
], ids=["objects", "texts", "long", "lists"])  # fmt: skip
def test_stdio_line_of_too_much_is_refused(
    tmp_path: Path, wrong: dict[str, Any], id_first: bool
) -> None:
    """By its id, before it is read: each of its values would take a hundred bytes."""
    call: dict[str, Any] = {"method": "tools/call", "params": {"name": "think", "arguments": wrong}}
    call = {"id": 7, **call} if id_first else {**call, "id": 7}
    after = tool_call(8, "think", keywords=["a"])
    done = talk(tmp_path, line(INITIALIZE), line(call), after)
    _, (refused,), (answered,) = (
        [each for each in done.answers if each["id"] == number] for number in (0, 7, 8)
    )
    assert refused["error"]["code"] == -32600
    assert "a line has at most 32 MiB" in refused["error"]["message"]
    assert "result" in answered


def test_stdio_text_of_signs_is_no_list(tmp_path: Path) -> None:
    """A memory of braces, quotes and commas is stored; none of these is a value of the line."""
    call = tool_call(7, "remember", **NOTE, content='{"a":[],' * 30_000)
    done = talk(tmp_path, line(INITIALIZE), call)
    assert [each["result"]["isError"] for each in done.answers if each["id"] == 7] == [False]


NOISE = """
import os, subprocess, sys
print("printed while importing")
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
    """Neither prints nor children of a tool touch the wire, on either pipe."""
    noisy = (sys.executable, "-c", NOISE.replace('print("printed while importing")\n', ""))
    calls = [tool_call(n, "think", keywords=["x"]) for n in range(1, 4)]
    done = talk(tmp_path, line(INITIALIZE), *calls, command=noisy)
    assert sorted(answer["id"] for answer in done.answers) == [0, 1, 2, 3]
    for noise in (b"printed, unflushed", b"written to the descriptor", b"child read ''"):
        assert done.stderr.count(noise) == 3


def test_a_crash_is_an_answer_and_a_traceback_in_the_log(tmp_path: Path) -> None:
    """The agent gets the tool's shape without inner details; the log has them."""
    noisy = (sys.executable, "-c", NOISE.replace('print("printed while importing")\n', ""))
    lines = [tool_call(1, "think", keywords=["crash"]), tool_call(2, "think", keywords=["x"])]
    done = talk(tmp_path, line(INITIALIZE), *lines, command=noisy)
    answers = {answer["id"]: answer["result"] for answer in done.answers}
    (failure,) = json.loads(answers[1]["content"][0]["text"])
    assert failure["error"].startswith("Search failed: an internal error")
    assert answers[1]["isError"] is True
    assert answers[2]["isError"] is False
    assert b"RuntimeError: secret detail" in done.stderr
    assert b"secret" not in done.stdout


def test_idle_it_ends_at_once_when_the_client_leaves(tmp_path: Path) -> None:
    """End of input: exit code 0, well under a second, nothing in the log."""
    with Client(tmp_path) as client:
        assert client.close() == 0
        assert client.log() == ""


@posix
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 0), ("SIGHUP", 0)])
def test_signals_end_it_through_the_same_clean_path(tmp_path: Path, name: str, code: int) -> None:
    """Once is enough, on a quiet input; no traceback."""
    with Client(tmp_path) as client:
        client.remember("x")
        client.process.send_signal(getattr(signal, name))
        assert client.process.wait(60) == code
        assert client.log() == ""


ELSEWHERE = """
import signal, sys, threading, time
from aiaml_server.__main__ import main

def interrupt():
    time.sleep(3)  # until the loop waits for it
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
sys.argv = ["aiaml-server"]
sys.exit(main())
"""


@pytest.mark.slow
@posix
def test_a_signal_that_does_not_interrupt_the_waiting_ends_it_too(tmp_path: Path) -> None:
    """One that another thread gets, or that comes right before the loop waits for input."""
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    with subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    ) as server:
        try:
            assert server.wait(60) == 130
        finally:
            server.kill()


@posix
def test_a_signal_before_the_handshake_ends_it_too(tmp_path: Path) -> None:
    """A client that never speaks leaves no orphan."""
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(b"garbage\n")
        server.stdin.flush()
        assert server.stdout.readline()
        server.terminate()
        assert server.wait(60) == 0
        server.stdin.close()


@posix
def test_a_client_that_stops_reading_ends_it(tmp_path: Path) -> None:
    """When nobody takes the answers, the process goes, quietly."""
    read, write = os.pipe()
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE, env=env
    ) as server:
        os.close(write)
        os.close(read)
        assert server.stdin and server.stderr
        server.stdin.write(line(INITIALIZE).encode())
        server.stdin.flush()
        assert server.wait(60) == 0
        assert server.stderr.read() == b""


@posix
def test_a_client_that_is_killed_leaves_no_orphan(tmp_path: Path) -> None:
    """The server goes when the process that started it is gone."""
    script = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-m', 'aiaml_server'], stdin=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env)
    assert client.stdout
    pid = int(client.stdout.readline())
    client.kill()
    client.wait()
    client.stdout.close()
    wait_until(lambda: not _alive(pid))


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def rss(pid: int) -> int:
    """Return how much memory a process has taken at most, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


linux = pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Give a server whose answers nobody reads yet, and the id of a memory of 1 MB."""
    memory = Memory.new("claude", "marco", ["x"], "x" * 1_000_000)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / memory.file_name).write_text(format_of(memory))
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    with subprocess.Popen(
        SERVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(line(INITIALIZE).encode())
        assert os.read(server.stdout.fileno(), 1 << 16)
        server.stdin.write(tool_call(7000, "think", keywords=["nothing"]).encode())
        assert os.read(server.stdout.fileno(), 1 << 16)  # the greeting alone needs no SDK
        yield server, memory.id
        server.kill()


@pytest.mark.slow
@linux
def test_answers_that_nobody_reads_do_not_pile_up(
    unread: tuple[subprocess.Popen[bytes], str],
) -> None:
    """The server stops reading and working; once they are read, all come, and nothing is lost."""
    server, memory_id = unread
    assert server.stdin and server.stdout
    calls = [tool_call(number, "recall", memory_ids=[memory_id]) for number in range(1, 601)]
    sender = threading.Thread(target=server.stdin.write, args=("".join(calls).encode(),))
    sender.start()
    before = rss(server.pid)
    most = unchanged = 0
    while unchanged < 30:
        now = rss(server.pid)
        unchanged = 0 if now > most else unchanged + 1
        most = max(most, now)
        time.sleep(0.1)
    assert most - before < 300  # of the 2,400 that all answers take
    with open(server.stdout.fileno(), "rb", closefd=False) as stream:
        found = {json.loads(stream.readline())["id"] for _ in calls}
    sender.join()
    assert found == set(range(1, 601))
    server.stdin.close()
    assert server.wait(60) == 0


@pytest.mark.slow
@linux
def test_a_client_that_leaves_without_having_read_is_noticed(
    unread: tuple[subprocess.Popen[bytes], str],
) -> None:
    """Also while the server reads nothing: the end of input ends it within the promised time."""
    server, memory_id = unread
    assert server.stdin
    calls = [tool_call(number, "recall", memory_ids=[memory_id]) for number in range(1, 201)]
    server.stdin.write("".join(calls).encode())
    time.sleep(2)
    server.stdin.close()
    assert server.wait(60) == 0


class Panic(BaseException):  # what Rust's panics derive from
    """A library gives up."""


@pytest.mark.parametrize("error", [MemoryError, Panic])
def test_a_request_that_cannot_be_read_for_want_of_memory_is_answered(
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its id, which could not be read either; the next line is."""
    text = '{"jsonrpc": "2.0", "id": 7, "method": "ping"}'

    class Sent:
        lines: ClassVar[list[bytes]] = []

        def send(self, line: bytes) -> None:
            self.lines.append(line)

    def fail(given: str) -> JSONRPCMessage:
        if given == text:
            raise error
        return read(given)

    async def feed() -> None:
        incoming = Incoming(sent)  # type: ignore[arg-type]
        incoming.feed([text.encode(), b"garbage"])
        incoming.feed(None)
        incoming._receive.close()

    read, sent = stdio._message, Sent()
    sent.lines.clear()
    monkeypatch.setattr(stdio, "_message", fail)
    anyio.run(feed)
    first, second = map(json.loads, sent.lines)
    assert (first["id"], first["error"]["code"]) == (None, -32603)
    assert second["error"]["code"] == -32700


def test_answers_that_nobody_reads_yet_do_not_block_the_reading(tmp_path: Path) -> None:
    """A client may write 300 calls before it reads the first answer."""
    with Client(tmp_path) as client:
        client.remember("x" * 500_000)
        (hit,) = client.call("think", keywords=["x"])
        requests = [client.start("recall", memory_ids=[hit["id"]]) for _ in range(40)]
        requests += [client.start("think", keywords=["y" * 20_000]) for _ in range(260)]
        for request in requests:
            assert client.value(request) is not None


@pytest.mark.slow
@posix
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_lines_stay_whole_when_a_client_reads_late(
    kind: str, blocking: bool, tmp_path: Path
) -> None:
    """Python's clients give pipes, Node's give sockets, and either may be set not to block."""
    ends = [os.pipe() if kind == "pipe" else _sockets() for _ in range(2)]
    (theirs_in, ours_in), (ours_out, theirs_out) = ends
    for end in (theirs_in, theirs_out):
        os.set_blocking(end, blocking)
    env = {**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"}
    with (
        subprocess.Popen(SERVER, stdin=theirs_in, stdout=theirs_out, env=env) as server,
        open(ours_in, "wb", buffering=0) as stdin,  # noqa: PTH123 (a descriptor)
        open(ours_out, "rb") as stdout,  # noqa: PTH123
    ):
        os.close(theirs_in)
        os.close(theirs_out)
        content = "x" * 5000
        stdin.write((line(INITIALIZE) + tool_call(1, "remember", content=content, **NOTE)).encode())
        answers = [json.loads(stdout.readline()) for _ in range(2)]
        stored = next(each for each in answers if each["id"] == 1)
        wanted = [stored["result"]["structuredContent"]["memory_id"]]
        # The answers are 2 MB in all, ten times what a pipe or a socket holds.
        calls = [tool_call(number, "recall", memory_ids=wanted) for number in range(2, 200)]
        stdin.write("".join(calls).encode())
        time.sleep(1)
        found = [json.loads(stdout.readline()) for _ in range(2, 200)]
        assert sorted(each["id"] for each in found) == list(range(2, 200))
        contents = [each["result"]["structuredContent"]["result"][0]["content"] for each in found]
        assert contents == [content] * len(found)
        stdin.close()
        assert stdout.read() == b""
        assert server.wait(60) == 0


def _sockets() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def test_closed_pipes_are_a_sentence() -> None:
    """Started without a standard input, it says so instead of a traceback."""
    script = f"import os, subprocess, sys; os.close(0); os.execv(sys.executable, {list(SERVER)!r})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, timeout=60, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("aiaml-server: standard input or output is closed")
