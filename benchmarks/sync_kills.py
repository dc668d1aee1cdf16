"""Check sync: git processes of an idle cycle, time to send many memories, and kills.

python benchmarks/sync_kills.py idle [MEMORIES]     git processes and processor time of idle cycles
python benchmarks/sync_kills.py import [MEMORIES]   time until all are committed and sent
python benchmarks/sync_kills.py kills [NUMBER]      kill a cycle at random moments; nothing is lost
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aiaml_server import MemoryBank, Settings
from aiaml_server.git import Git
from aiaml_server.sync.cycle import Cycle

CLEAN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def make_remote(place: Path) -> Path:
    """Return an empty bare repository."""
    remote = place / "remote"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(remote)], check=True)
    return remote


def remember(settings: Settings, number: int) -> None:
    """Store memories."""
    bank = MemoryBank(settings)
    for each in range(number):
        bank.remember("claude", "marco", ["test"], f"memory {each} about tea")
    bank.close()


def idle(place: Path, number: int) -> None:
    """Print what idle cycles cost, in a server and in a new process."""
    settings = Settings(place / "base", remote=str(make_remote(place)))
    remember(settings, number)
    server = Cycle(settings)
    server.run()
    time.sleep(3)  # until time stamps are sure to show a change
    server.run()
    counted = 0
    run = Git.run

    def counting(git: Git, *words: str, **options: object) -> bytes:
        nonlocal counted
        counted += 1
        return run(git, *words, **options)  # type: ignore[arg-type]

    Git.run = counting  # type: ignore[method-assign, assignment]
    for name, cycle in (("server", server), ("new process", Cycle(settings))):
        counted = 0
        started = time.process_time()
        cycle.run()
        seconds = time.process_time() - started
        print(f"{name}: {counted} git processes, {seconds * 1000:.0f} ms of our own processor time")


def import_many(place: Path, number: int) -> None:
    """Print how long it takes until many memories are committed and sent."""
    settings = Settings(place / "base", remote=str(make_remote(place)))
    remember(settings, 1)
    Cycle(settings).run()
    remember(settings, number)
    started = time.perf_counter()
    status = Cycle(settings).run()
    print(f"{number} memories: {time.perf_counter() - started:.1f} s, problem: {status.problem}")


def kills(place: Path, number: int) -> None:
    """Kill cycles of two machines at random moments; then both must have every memory."""
    remote = str(make_remote(place))
    machines = [Settings(place / name, remote=remote) for name in ("ada", "bob")]
    lost = failed = 0
    chance = random.Random(number)
    stored: list[str] = []
    for each in range(number):
        settings = chance.choice(machines)
        bank = MemoryBank(settings)
        stored += [bank.remember("claude", "marco", ["test"], f"kill {each}").id for _ in "ab"]
        bank.close()
        child = os.fork()
        if not child:
            Cycle(settings).run()
            os._exit(0)
        time.sleep(chance.uniform(0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if each % 20 == 19 or each == number - 1:
            for settings in (*machines, *machines):
                status = Cycle(settings).run(lock_seconds=60)
                failed += status.problem is not None
            for settings in machines:
                names = {path.stem[-8:] for path in (settings.base / "files").glob("*.md")}
                lost += len({*stored} - names)
    print(f"{number} kills, {len(stored)} memories: {lost} lost, {failed} cycles failed afterwards")


def main() -> None:
    """Run what the command line names."""
    os.environ.update(CLEAN)
    what = sys.argv[1] if len(sys.argv) > 1 else "idle"
    number = int(sys.argv[2]) if len(sys.argv) > 2 else {"idle": 1000, "import": 700}.get(what, 200)
    with tempfile.TemporaryDirectory(prefix="aiaml-sync-", ignore_cleanup_errors=True) as name:
        {"idle": idle, "import": import_many, "kills": kills}[what](Path(name), number)


if __name__ == "__main__":
    main()
