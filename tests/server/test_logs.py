"""The log: nobody waits for whoever reads it, and much of one kind is one line."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from aiaml_server import Memory
from aiaml_server.format.memory import format as text_of
from aiaml_server.server.logs import MOST, Unhurried
from client import SERVER, Client

posix = pytest.mark.skipif(os.name != "posix", reason="a Windows pipe cannot be filled beforehand")

UNREAD = """
import os, sys
reading, writing = os.pipe()
os.set_blocking(writing, False)
try:
    while True:
        os.write(writing, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(writing, len(sys.argv) > 1)
os.set_inheritable(reading, True)
os.dup2(writing, 2)
os.execv(sys.executable, [sys.executable, "-m", "aiaml_server"])
"""
"""Starts a server whose stderr is a full pipe that nobody reads."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder of notes, 2,000 of which are no memories, and one that is."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(2000):
        (files / f"note {number:04}.md").write_text(f"# Note {number}\n\nno memory\n")
    memory = Memory.new("claude", "marco", ["dog"], "Max is a dog.")
    (files / memory.file_name).write_text(text_of(memory))
    return tmp_path


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("end", "blocking"), [("input", "blocking"), ("SIGTERM", "blocking"), ("SIGTERM", "")]
)
def test_a_log_that_nobody_reads_holds_nothing_up(base: Path, end: str, blocking: str) -> None:
    """All three tools answer, a second server too, and the process ends in time."""
    loud = {"AIAML_LOG_LEVEL": "DEBUG"}
    command = [sys.executable, "-c", UNREAD, *filter(None, [blocking])]
    with Client(base, command=command, environ=loud) as client:
        (hit,) = client.call("think", keywords=["dog"])
        assert client.call("recall", memory_ids=[hit["id"]])[0]["content"] == "Max is a dog."
        assert client.remember("Another one.")["memory_id"]
        with Client(base) as other:
            assert other.call("think", keywords=["dog"]) == [hit]
        if end == "input":
            assert client.close() == 0
        else:
            client.process.send_signal(signal.SIGTERM)
            assert client.process.wait(60) == 0


@pytest.mark.slow
def test_many_files_that_are_no_memories_are_one_line(base: Path) -> None:
    """With their number, one of them by name, and where the others are named; and only once."""
    with Client(base, command=SERVER) as client:
        for _ in range(3):
            client.call("think", keywords=["dog"])
            client.call("recall", memory_ids=["ffffffff"])
        assert client.close() == 0
    (line,) = client.log().splitlines()
    assert "WARNING" in line and "2,000 files" in line
    assert "note 0000.md: the first line is not ---" in line
    assert "aiaml doctor files" in line


def record(text: str) -> logging.LogRecord:
    """Make a record."""
    return logging.LogRecord("test", logging.WARNING, "", 0, text, None, None)


def test_what_is_logged_is_written_in_order_before_the_end() -> None:
    """`flush` waits for it."""
    reading, writing = os.pipe()
    handler = Unhurried(writing)
    for number in range(100):
        handler.handle(record(str(number)))
    handler.flush()
    os.close(writing)
    with open(reading, "rb") as stream:  # noqa: PTH123 (a descriptor)
        assert stream.read().split() == [str(number).encode() for number in range(100)]


def test_what_finds_no_room_is_counted() -> None:
    """A reader that comes late gets the first lines, the number of those missing, and new ones."""
    reading, writing = os.pipe()
    handler = Unhurried(writing)
    lines = 4 * MOST // 1000
    for number in range(lines):
        handler.handle(record(f"{number:08} {'x' * 990}"))
    handler.flush()
    received: list[bytes] = []

    def read() -> None:
        with open(reading, "rb") as stream:  # noqa: PTH123
            received.extend(stream)

    reader = threading.Thread(target=read)
    reader.start()
    while not any(b"missing" in line for line in received):
        handler.flush()
        handler.handle(record("new"))
    handler.flush()
    os.close(writing)
    reader.join()
    kept = [line for line in received if line.endswith(b"x\n")]
    assert [int(line[:8]) for line in kept] == list(range(len(kept)))
    missing = [int(line.split()[0]) for line in received if b"lines are missing here" in line]
    assert sum(missing) + len(kept) >= lines
    assert MOST // 1000 - 10 < len(kept) < lines


def test_a_closed_stderr_is_no_trouble() -> None:
    """There is nobody to tell."""
    reading, writing = os.pipe()
    os.close(reading)
    os.close(writing)
    handler = Unhurried(writing)
    handler.handle(record("x"))
    handler.flush()
    handler.handle(record("y"))
