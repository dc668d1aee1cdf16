"""`aiaml log --follow`: what happens to memories is shown while it happens, whoever does it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.cli.following import Follower
from aiaml_server.store import Store
from aiaml_server.web.changes import Changes
from client import PYTHON, SECONDS, Client
from printed import inherited

READY = "What happens from now on is shown here; Ctrl-C ends it.\n"


@contextmanager
def following(base: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], queue.Queue[str]]]:
    """Start it; give the process and the lines that it prints, once it listens."""
    settings = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false", "PYTHONUTF8": "1"}
    process = subprocess.Popen(
        [PYTHON, "-m", "aiaml_server", "log", "--follow", *words],
        env={**inherited(), **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout
    assert process.stderr
    reader = threading.Thread(target=read, args=(process.stdout, lines))
    reader.start()
    try:
        assert process.stderr.readline() == READY
        yield process, lines
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
        reader.join()


def read(stream: IO[str], lines: queue.Queue[str]) -> None:
    """Take down each line as it comes."""
    with stream:
        for line in stream:
            lines.put(line.rstrip("\n"))


def test_what_is_stored_edited_forgotten_and_damaged_is_shown(tmp_path: Path) -> None:
    """By a server and by hand, in two followers: lines, and an object a line; no terminal codes."""
    with Client(tmp_path) as client:
        first = client.remember("# Max the dog\n\neats no chicken")["memory_id"]
        with following(tmp_path) as (process, lines), following(tmp_path, "--json") as (_, rows):

            def told(what: str) -> tuple[str, dict[str, str]]:
                line, row = lines.get(timeout=SECONDS), json.loads(rows.get(timeout=SECONDS))
                assert (row["what"], what in line) == (what.lower(), True), line
                return line, row

            second = client.remember("# Tea\x1b[31m\n\nat four")["memory_id"]
            line, row = told("Added")
            assert f"{second}  claude, marco: Tea" in line
            assert "\x1b" not in line
            assert (row["id"], row["agent"], row["user"]) == (second, "claude", "marco")
            file = tmp_path / "files" / row["file"]
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace("Tea", "Coffee"), encoding="utf-8")
            assert "Coffee" in told("Updated")[0]
            os.utime(file, (1, 1))  # nothing that a person wants to know of
            file.write_text("no memory", encoding="utf-8")
            line, row = told("Damaged")
            assert file.name in line
            assert row["problem"]
            assert row["id"] is None
            (old,) = (tmp_path / "files").glob(f"*{first}.md")
            old.unlink()
            line, row = told("Forgotten")
            assert f"{first}  claude, marco: Max the dog" in line
            assert row["id"] == first
            assert lines.empty()
            if sys.platform != "win32":
                process.send_signal(signal.SIGINT)
                assert process.wait(SECONDS) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe does not tell there")
def test_it_ends_where_nobody_reads(tmp_path: Path) -> None:
    """Without waiting for something to happen; a directory that is not there yet is waited for."""
    with following(tmp_path / "none", "--json") as (_, rows), Client(tmp_path / "none") as client:
        client.remember("the first one")
        assert json.loads(rows.get(timeout=SECONDS))["content"] == "the first one"
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [PYTHON, "-m", "aiaml_server", "log", "--follow"],
        env={**os.environ, "AIAML_MEMORY_DIR": str(tmp_path), "AIAML_ENABLE_SYNC": "false"},
        stdout=writer,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(writer)
    assert process.stderr
    assert process.stderr.readline() == READY
    os.close(reader)
    with process:
        assert process.wait(SECONDS) == 141
        assert process.stderr.read() == ""


def test_a_directory_that_took_the_place_of_another_is_looked_at(tmp_path: Path) -> None:
    """As after a backup was put back above it: by `log --follow`, and by the page."""
    for each in ("vault", "backup"):
        (tmp_path / each / "base" / "files").mkdir(parents=True)
    base = tmp_path / "vault" / "base"
    bank = MemoryBank(Settings(base, sync=False))
    follower, changes = Follower(Store(base)), Changes(bank)
    changes.look()
    (tmp_path / "vault").rename(tmp_path / "old")
    (tmp_path / "backup").rename(tmp_path / "vault")
    memory = bank.remember("claude", "ann", ["t"], "Max")
    time.sleep(0.1)  # past the tick in which it was written
    before = changes.look()[0]
    assert [(each.what, each.name) for each in follower.look()] == [("Added", memory.file_name)]
    assert before == 2
    (base / "files" / memory.file_name).unlink()
    assert changes.look()[0] == 3
    assert [each.what for each in follower.look()] == ["Forgotten"]
    changes.close()
    bank.close()
