"""Check sync: git processes of an idle cycle, time to send many memories, and disasters.

python benchmarks/sync_kills.py idle [MEMORIES]        git processes and time of idle cycles
python benchmarks/sync_kills.py import [MEMORIES]      time until all are committed and sent
python benchmarks/sync_kills.py kills [NUMBER [SEED]]  kill a cycle at random moments
python benchmarks/sync_kills.py power [NUMBER [SEED]]  cut the power at random moments (strace)
python benchmarks/sync_kills.py full [BLOCKS]          let the disk be full at each write (mount)

After each disaster, cycles must succeed by themselves, and all machines must have all memories.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from aiaml_server.bank import MemoryBank
from aiaml_server.git import Git
from aiaml_server.settings import Settings
from aiaml_server.sync.cycle import Cycle
from replayed_disk import Disk, read_tree
from trace_calls import read_calls, recording

CUTS_PER_TRACE = 10
CLEAN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def make_remote(place: Path) -> Path:
    """Return an empty bare repository."""
    remote = place / "remote"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(remote)], check=True)
    return remote


def remember(settings: Settings, number: int) -> set[str]:
    """Store memories, and return their ids."""
    bank = MemoryBank(settings)
    texts = (f"memory {each} about tea" for each in range(number))
    ids = {bank.remember("claude", "marco", ["test"], text).id for text in texts}
    bank.close()
    return ids


def idle(place: Path, number: int) -> None:
    """Print what idle cycles cost with and without a remote, in a server and in a new process."""
    remember(Settings(place / "base", sync=False), number)
    run = Git.run
    commands: list[str] = []

    def counting(git: Git, command: str, *arguments: str, **options: object) -> bytes:
        commands.append(command)
        return run(git, command, *arguments, **options)  # type: ignore[arg-type]

    Git.run = counting  # type: ignore[method-assign, assignment]
    for remote in ("", str(make_remote(place))):
        settings = Settings(place / "base", remote=remote)
        server = Cycle(settings)
        for _ in range(3):  # a cycle that writes anything is followed by one that is not idle
            server.run()
            time.sleep(3)  # until time stamps are sure to show a change
        for name, cycle in (("server", server), ("new process", Cycle(settings))):
            commands.clear()
            started = time.process_time()
            cycle.run()
            seconds = time.process_time() - started
            where = f"{number} memories, {'a' if remote else 'no'} remote, {name}"
            print(f"{where}: {len(commands)} git commands, {seconds * 1000:.0f} ms of our own time")


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
    figures: Counter[str] = Counter()
    random = Random(seed())
    stored: set[str] = set()
    for each in range(number):
        settings = random.choice(machines)
        stored |= remember(settings, 2)
        child = os.fork()
        if not child:
            Cycle(settings).run(lock_seconds=9.0)  # what the kill before left may just end
            os._exit(0)
        time.sleep(random.uniform(0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if each % 20 == 19 or each == number - 1:
            figures += check(machines, stored)
    print(f"{number} kills, {len(stored)} memories: {shown(figures)}")


def power(place: Path, number: int) -> None:
    """Cut the power at random moments of a cycle, of whose system calls strace takes notes.

    What was not synced is lost, all of it or as chance wants. The other machine and the remote are
    elsewhere, so their disks are whole.
    """
    random = Random(seed())
    figures: Counter[str] = Counter()
    for turn in range(0, number, CUTS_PER_TRACE):
        root = place / str(turn)
        root.mkdir()
        remote = make_remote(root)
        ada, bob = (Settings(root / name, remote=str(remote)) for name in ("ada", "bob"))
        stored: set[str] = set()
        for settings in (ada, bob, ada, bob):
            stored |= remember(settings, 3)
            Cycle(settings).run()
        stored |= remember(ada, 3) | remember(bob, 3)
        Cycle(bob).run()
        os.sync()
        before = read_tree(ada.base)
        log = root / "trace"
        command = [sys.executable, __file__, "cycle", str(ada.base), str(remote)]
        subprocess.run([*recording(log), *command], check=True)
        found = read_calls(log)
        moments = [at for at, call in enumerate(found) if str(ada.base) in call.text]
        whole = [shutil.copytree(each, root / f"{each.name}.whole") for each in (remote, bob.base)]
        for _ in range(CUTS_PER_TRACE):
            disk = Disk(ada.base, before)
            disk.replay(found[: random.choice(moments) + 1])
            disk.restore(disk.after_power_failure(random if random.random() < 0.5 else None))
            for copy, target in zip(whole, (remote, bob.base), strict=True):
                shutil.rmtree(target)
                shutil.copytree(copy, target)
            figures += check([ada, bob], stored)
        shutil.rmtree(root)
    print(f"{number} power cuts: {shown(figures)}")


def full(place: Path, number: int) -> None:
    """Let the disk be full at each write of a cycle in turn, with a file system of its own.

    It takes the right to mount: as root, or with `unshare -rm python …`.
    """
    figures: Counter[str] = Counter()
    for turn in range(number):
        root = place / str(turn)
        disk = root / "disk"
        disk.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=True)
        try:
            remote = make_remote(root)
            ada = Settings(disk / "ada", remote=str(remote))
            bob = Settings(root / "bob", remote=str(remote))
            stored: set[str] = set()
            for settings in (ada, bob, ada):
                stored |= remember(settings, 3)
                Cycle(settings).run()
            stored |= remember(ada, 3) | remember(bob, 20)
            Cycle(bob).run()
            filler = disk / "filler"
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            with filler.open("wb") as file:
                file.write(bytes(max(0, free - 4096 * turn)))
            problem = Cycle(ada).run().problem
            figures[problem.kind if problem else "no problem"] += 1
            filler.unlink()
            figures += check([ada, bob], stored)
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)
    print(f"full disk with 0 to {number - 1} free blocks: {shown(figures)}")


def check(machines: list[Settings], stored: set[str]) -> Counter[str]:
    """Run cycles; count what is lost then, and machines that still fail in the end."""
    figures: Counter[str] = Counter()
    for settings in (*machines, *machines):  # the first one may find a damage and repair it
        Cycle(settings).run(lock_seconds=60)
    for settings in machines:
        if problem := Cycle(settings).run(lock_seconds=60).problem:
            figures["failed cycles"] += 1
            print(f"cycle failed: {problem}", flush=True)
    texts = []
    for settings in machines:
        files = {path.name: path.read_bytes() for path in (settings.base / "files").glob("*.md")}
        figures["lost"] += len(stored - {name[-11:-3] for name in files})
        texts.append(files)
    figures["different"] += any(files != texts[0] for files in texts)
    return figures


def shown(figures: Counter[str]) -> str:
    """Return figures as text, with those that must be 0."""
    figures.update({"lost": 0, "different": 0, "failed cycles": 0})
    return ", ".join(f"{count} {what}" for what, count in sorted(figures.items()))


def seed() -> int:
    """Return the seed on the command line; 1 without one."""
    return int(sys.argv[3]) if len(sys.argv) > 3 else 1


def main() -> None:
    """Run what the command line names."""
    os.environ.update(CLEAN)
    logging.disable()
    what = sys.argv[1] if len(sys.argv) > 1 else "idle"
    if what == "cycle":
        Cycle(Settings(Path(sys.argv[2]), remote=sys.argv[3])).run()
        return
    usual = {"idle": 1000, "import": 700, "full": 60}.get(what, 200)
    number = int(sys.argv[2]) if len(sys.argv) > 2 else usual
    runs = {"idle": idle, "import": import_many, "kills": kills, "power": power, "full": full}
    with tempfile.TemporaryDirectory(prefix="aiaml-sync-", ignore_cleanup_errors=True) as name:
        runs[what](Path(name).resolve(), number)


if __name__ == "__main__":
    main()
