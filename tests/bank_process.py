"""A bank in a process of its own, with one thread or several, for faults that a test aims at it.

bank_process.py              answers each line `[base, content]` with `{"id": …}` or
                             `{"error": …}`, each by a new bank, as in a server's first call
bank_process.py BASE THREADS COUNT [POOL]
                             prints "ready", waits for a line, then remembers COUNT times in
                             each thread and prints the same answers as they come; with POOL,
                             ids are drawn from that many values only
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import portalocker  # noqa: F401 (imported here, so that no fault can hit its import)

import aiaml_server.index  # noqa: F401 (as well)
from aiaml_server.bank import MemoryBank
from aiaml_server.errors import StoreError
from aiaml_server.format import memory
from aiaml_server.settings import Settings

_PR_SET_PTRACER = 0x59616D61
_ANYONE = 2**64 - 1


def main(words: list[str]) -> None:
    """Do what the command line says."""
    if sys.platform == "linux":  # let strace attach also where only parents may trace
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANYONE), 0, 0, 0)
    _say("ready")
    if not words:
        _answer_lines()
        return
    base, threads, count, *pool = words
    for size in pool:
        memory.draw_id = _drawing_from(int(size))
    sys.stdin.readline()
    bank = MemoryBank(Settings(Path(base)))
    for _ in range(int(threads)):
        threading.Thread(target=_flood, args=(bank, int(count))).start()


def _answer_lines() -> None:
    for line in sys.stdin:
        base, content = json.loads(line)
        _say(_remember(MemoryBank(Settings(Path(base))), content))


def _flood(bank: MemoryBank, count: int) -> None:
    for number in range(count):
        _say(_remember(bank, f"begin {'x' * random.randrange(20_000)} {number} end"))


def _remember(bank: MemoryBank, content: str) -> str:
    try:
        return json.dumps({"id": bank.remember("claude", "marco", ["tests"], content).id})
    except StoreError as error:
        return json.dumps({"error": str(error)})


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")  # one call: it is out whole, or not at all


def _drawing_from(pool: int) -> Callable[[], str]:
    return lambda: f"{0xABCDEF00 + random.randrange(pool):08x}"


if __name__ == "__main__":
    main(sys.argv[1:])
