"""Bytes go in and out whole and in order, and nobody waits for the other end."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from aiaml_server.server.wire import Wire

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no pipes that tell")


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # full at once
    return reading, writing


def _sockets() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.fixture(params=["pipe", "socket"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Give what one side writes to and the other reads from: reading end, writing end."""
    both = _pipe() if request.param == "pipe" else _sockets()
    yield both
    for each in both:
        with suppress(OSError):  # closed in the test
            os.close(each)


@pytest.mark.parametrize("blocking", [True, False])
def test_lines_of_any_length_stay_whole_for_a_fitful_reader(
    ends: tuple[int, int], blocking: bool
) -> None:
    """Now the loop writes, now the thread; sending takes no time either way."""
    reading, writing = ends
    os.set_blocking(writing, blocking)
    nothing, _ = quiet = _pipe()
    wire = Wire(nothing, os.dup(writing))
    drawn = random.Random(1)
    lengths = (1, 3, 10, 4095, 4096, 4097, 20_000)
    lines = [bytes([65 + n % 26]) * drawn.choice(lengths) for n in range(2000)]
    received: list[bytes] = []

    def read() -> None:
        moods = random.Random(2)
        while data := os.read(reading, moods.choice((1, 100, 5000, 65536))):
            received.append(data)
            if moods.random() < 0.02:
                time.sleep(moods.random() * 0.002)

    reader = threading.Thread(target=read)
    reader.start()

    async def send() -> None:
        wire.open(lambda _: None, lambda: None)
        for line in lines:
            wire.send(line)
            if drawn.random() < 0.3:
                await asyncio.sleep(drawn.choice((0, 0, 0.0005)))
        wire.close(30)

    asyncio.run(send())
    os.close(wire._outgoing)
    os.close(writing)
    reader.join(30)
    for each in quiet:
        os.close(each)
    assert b"".join(received) == b"".join(line + b"\n" for line in lines)


def test_sending_does_not_wait_for_a_reader(ends: tuple[int, int]) -> None:
    """Nobody reads: ten megabytes are taken all the same, and the end waits for nobody."""
    _, writing = ends
    nothing, _ = quiet = _pipe()
    wire = Wire(nothing, os.dup(writing))

    async def send() -> None:
        wire.open(lambda _: None, lambda: None)
        for _ in range(100):
            wire.send(b"x" * 100_000)
        wire.close(0.1)

    asyncio.run(send())
    for each in quiet:
        os.close(each)


def test_what_is_read_is_cut_into_lines_whatever_becomes_of_them(ends: tuple[int, int]) -> None:
    """An exception where lines are taken loses no byte of the next, nor the end of input."""
    reading, writing = ends
    wire = Wire(os.dup(reading), os.open(os.devnull, os.O_WRONLY))
    received: list[list[bytes] | None] = []
    ended = asyncio.Event()

    def take(lines: list[bytes] | None) -> None:
        received.append(lines)
        if lines is None:
            ended.set()
        if lines and b"bad" in lines:
            raise RecursionError("on purpose")

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        wire.open(take, lambda: None)
        for piece in (b"bad\npar", b"tial\n", b"\nand\nbad"):
            os.write(writing, piece)
            await asyncio.sleep(0.05)
        os.close(writing)
        await ended.wait()
        await asyncio.sleep(0.2)  # nothing follows the end

    asyncio.run(asyncio.wait_for(run(), 20))
    assert received == [[b"bad"], [b"partial"], [b"", b"and"], [b"bad"], None]


def test_what_is_answered_before_there_is_a_loop_is_handed_to_it(ends: tuple[int, int]) -> None:
    """In order, with all that came behind the first line that had no answer, and the end."""
    reading, writing = ends
    answers, out = os.pipe()
    wire = Wire(os.dup(reading), out)
    wire.greet({b"one": b"1", b"told": b"", b"two": b"2"}.get)
    for piece in (b"one\nto", b"ld\ntwo\nthree\none\n"):
        os.write(writing, piece)
    assert os.read(answers, 2) + os.read(answers, 2) == b"1\n2\n"
    received: list[bytes] = []

    async def run() -> None:
        ended = asyncio.Event()
        wire.open(lambda lines: ended.set() if lines is None else received.extend(lines), ended.set)
        os.write(writing, b"two\n")
        os.close(writing)
        await ended.wait()
        wire.send(b"3")
        wire.close(10)

    asyncio.run(asyncio.wait_for(run(), 20))
    assert received == [b"one", b"told", b"two", b"three", b"one", b"two"]
    assert os.read(answers, 100) == b"3\n"
    os.close(answers)
    os.close(out)


def test_the_end_before_there_is_a_loop_is_told_to_it(ends: tuple[int, int]) -> None:
    """Once, behind the lines that were answered; and that nobody takes output any more."""
    reading, writing = ends
    answers, out = os.pipe()
    wire = Wire(os.dup(reading), out)
    os.close(answers)
    wire.greet(lambda line: line or None)
    os.write(writing, b"one\n")
    os.close(writing)
    received: list[list[bytes] | None] = []

    async def run() -> None:
        broken, ended = asyncio.Event(), asyncio.Event()

        def take(lines: list[bytes] | None) -> None:
            received.append(lines)
            if lines is None:
                ended.set()

        await asyncio.sleep(0.2)  # all has come
        wire.open(take, broken.set)
        await ended.wait()
        await broken.wait()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert received == [[b"one"], None]
    os.close(out)


DYING = """
import os, sys, time
from aiaml_server.format.logs import LogFormatter
from aiaml_server.server import logs
from aiaml_server.server.wire import Wire
wire = Wire.claim()
logs.begin("WARNING", LogFormatter("%(message)s"))
def answer(line):
    raise {error}
{dying}
wire.greet(answer)
time.sleep(60)
"""


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("error", "dying"),
    [
        ("AttributeError('x')", ""),
        ("RecursionError", ""),
        ("MemoryError", ""),
        ("SystemExit", ""),
        ("OSError", "wire._read = lambda: 1 / 0"),
        ("OSError", "wire._write = lambda: 1 / 0"),
    ],
)
def test_wire_ends_the_process_when_its_thread_dies(error: str, dying: str) -> None:
    """Whatever killed it: nobody would answer or read again. The log says so in one line first."""
    process = subprocess.Popen(
        [sys.executable, "-c", DYING.format(error=error, dying=dying)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, log = process.communicate("a line\n", timeout=30)
    assert (process.returncode, out) == (1, "")
    assert log.startswith("The client's lines can no longer be read or written; the process ends")
