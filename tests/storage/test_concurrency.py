"""Any number of threads and processes write at once: nothing is lost, torn or shared."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import strace
from aiaml_server.bank import MemoryBank
from aiaml_server.format.memory import Memory
from aiaml_server.server.protocol import MAX_CALLS
from aiaml_server.settings import Settings
from aiaml_server.storage.store import Stamp, Store
from client import Client, ask, bank_process
from disk import contents, leftovers, memories

SOON = 10.0  # seconds within which a neighbour in trouble may not keep an answer back
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither flock nor SIGSTOP")


def test_servers_and_threads_write_into_one_directory_at_once(tmp_path: Path) -> None:
    """Four servers with fifty calls each in flight, and a bank with eight threads besides."""
    bank = MemoryBank(Settings(tmp_path))

    def store(content: str) -> Memory:
        return bank.remember("claude", "marco", ["threads"], content)

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(8))
        starts = [pool.submit(Client, tmp_path) for _ in range(4)]
        clients = [stack.enter_context(start.result()) for start in starts]
        texts = [[f"server {number}, call {call}" for call in range(50)] for number in range(4)]
        sent = [
            [client.start_remember(text) for text in mine]
            for client, mine in zip(clients, texts, strict=True)
        ]
        stored = list(pool.map(store, [f"thread {number}" for number in range(50)]))
        acknowledged = {memory.id: memory.content for memory in stored}
        for client, mine, ids in zip(clients, texts, sent, strict=True):
            for text, request_id in zip(mine, ids, strict=True):
                acknowledged[client.value(request_id)["memory_id"]] = text
    assert len(acknowledged) == 250
    found = memories(tmp_path)
    assert {memory_id: memory.content for memory_id, memory in found.items()} == acknowledged
    assert leftovers(tmp_path) == []


# --- ids ----------------------------------------------------------------------------------------


def test_no_id_is_given_twice_even_when_most_are_taken(tmp_path: Path) -> None:
    """Three processes with three threads each store 225 memories with 230 ids to draw from."""
    with ExitStack() as stack:
        banks = [
            stack.enter_context(bank_process(str(tmp_path), "3", "25", "230")) for _ in range(3)
        ]
        for bank in banks:
            assert bank.stdin
            bank.stdin.write("go\n")
            bank.stdin.flush()
        lines = [line for bank in banks for line in bank.stdout or ()]
    ids = [json.loads(line)["id"] for line in lines]
    assert len(ids) == len(set(ids)) == 225
    assert set(memories(tmp_path)) == set(ids)
    assert leftovers(tmp_path) == []


def test_an_id_that_a_neighbour_took_in_the_same_clock_tick_is_not_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory's own time does not tell of a second change within one tick."""
    draws = iter(["abcdef01", "abcdef02", "abcdef02", "abcdef03"])
    monkeypatch.setattr("aiaml_server.format.memory.draw_id", lambda: next(draws))
    monkeypatch.setattr(Store, "stamp", lambda *_: Stamp(1, 1, 1, 1))
    ours, theirs = (MemoryBank(Settings(tmp_path)) for _ in range(2))
    ours.remember("claude", "marco", ["tests"], "ours")
    assert theirs.remember("claude", "marco", ["tests"], "theirs").id == "abcdef02"
    assert ours.remember("claude", "marco", ["tests"], "ours again").id == "abcdef03"


# --- a neighbour in trouble ---------------------------------------------------------------------

HOLDER = """
import fcntl, os, signal, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def stopped_holder(base: Path) -> Iterator[subprocess.Popen[str]]:
    """Stop a process while it holds the lock of the store."""
    command = [sys.executable, "-c", HOLDER, str(base / ".lock")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        try:
            assert holder.stdout
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


@pytest.mark.slow
@posix
def test_a_stopped_neighbour_keeps_no_answer_back(tmp_path: Path) -> None:
    """It holds the lock: memories are stored without it, and the log says so."""
    with Client(tmp_path) as client, stopped_holder(tmp_path) as holder:
        sent = [client.start_remember(f"call {number}") for number in range(20)]
        assert client.call("think", keywords=["nowhere"]) == []
        assert all(client.value(each)["memory_id"] for each in sent)
        while client.log().count("without the lock") < len(sent):  # the log comes after the answers
            time.sleep(0.01)
        holder.kill()
        holder.wait()
        assert client.remember("afterwards")["memory_id"]
    assert client.log().count("without the lock") == len(sent)
    assert len(contents(tmp_path)) == 21
    assert leftovers(tmp_path) == []


@pytest.mark.slow
@posix
def test_any_number_of_waiting_calls_holds_no_other_tool_up(tmp_path: Path) -> None:
    """More than there are threads for one tool."""
    with Client(tmp_path) as client, stopped_holder(tmp_path) as holder:
        sent = [client.start_remember(f"call {number}") for number in range(2 * MAX_CALLS)]
        assert client.call("think", keywords=["nowhere"]) == []
        holder.kill()
        holder.wait()
        assert all(client.value(each)["memory_id"] for each in sent)
    assert len(contents(tmp_path)) == 2 * MAX_CALLS


@pytest.mark.slow
@strace.needed
def test_a_neighbour_stopped_in_its_write_delays_ours_and_loses_nothing(tmp_path: Path) -> None:
    """Stopped between the sync and the rename, it goes on later: both memories are there."""
    if sys.platform == "win32":
        pytest.skip("Windows has no SIGCONT")
    base, log = tmp_path / "base", tmp_path / "log"
    (base / "files").mkdir(parents=True)
    stop = ("-e", "trace=fsync", "-e", "inject=fsync:signal=STOP:when=1")
    with (
        Client(base) as client,
        bank_process() as neighbour,
        strace.attached(neighbour.pid, log, *stop),
        ThreadPoolExecutor(1) as thread,
    ):
        theirs = thread.submit(ask, neighbour, base, "theirs")
        while "stopped by SIGSTOP" not in log.read_text():
            assert not theirs.done()
            time.sleep(0.01)
        assert client.remember("ours")["memory_id"]
        assert contents(base) == ["ours"]
        neighbour.send_signal(signal.SIGCONT)
        assert theirs.result()["id"]
    assert contents(base) == ["ours", "theirs"]
    assert leftovers(base) == []


def test_a_lock_that_cannot_be_had_refuses_no_memory(tmp_path: Path) -> None:
    """Where the lock file cannot even be opened, memories are stored, and the log says so."""
    (tmp_path / ".lock").mkdir()
    with Client(tmp_path) as client:
        sent = [client.start_remember(f"call {number}") for number in range(20)]
        assert all(client.value(each, SOON)["memory_id"] for each in sent)
        assert "without the lock" in client.log()
    assert len(contents(tmp_path)) == 20
