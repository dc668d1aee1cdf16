"""What synchronisation costs, against git typed by hand: `python benchmarks/sync.py [files …]`.

`python benchmarks/sync.py machines [interval [number …]]`: many machines that remember at once.
`python benchmarks/sync.py slow [seconds]`: one on a slow line, among five that never rest.
`python benchmarks/sync.py new [files …]`: a new machine, beside `git clone`.
`python benchmarks/sync.py size [files …]`: what `.git` takes, and how long a round at most.

Every figure is measured on repositories of its own, on this machine; the ratios are what counts.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.format.memory import format as text_of
from aiaml_server.sync.rounds import Rounds

SIZES = (0, 1_000, 10_000)
MACHINES = (5, 20, 40)
GROWTH = 200  # memories over which the repository's growth is measured


def fill(base: Path, count: int) -> list[Path]:
    """Write memories straight into the directory."""
    directory = base / "files"
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        memory = Memory.new("claude", "marco", ["bench"], f"memory {number} " + "some words " * 30)
        paths.append(directory / memory.file_name)
        paths[-1].write_text(text_of(memory), encoding="utf-8")
    return paths


def rounds(base: Path, remote: str = "") -> Rounds:
    """Return what does rounds on a directory."""
    return Rounds(Settings(base, remote=remote), threading.Event())


def git(base: Path, *words: str) -> str:
    """Run git as a person types it."""
    identity = ("-c", "user.name=Marco", "-c", "user.email=marco@example.org")
    done = subprocess.run(
        ["git", *identity, *words], cwd=base, capture_output=True, check=True, encoding="utf-8"
    )
    return done.stdout


def by_hand(base: Path, path: Path) -> None:
    """`git add` and `git commit`."""
    git(base, "add", f"files/{path.name}")
    git(base, "commit", "--quiet", "-m", f"Add memory {path.stem[-8:]} ({path.name})")


def seconds(action: Callable[[], object]) -> float:
    """Return how long something takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def kilobytes(base: Path) -> int:
    """Return the size of the repository."""
    return sum(path.stat().st_size for path in (base / ".git").rglob("*") if path.is_file()) // 1024


def prepared(base: Path, count: int) -> Path:
    """Return a directory of which git knows `count` memories."""
    fill(base, max(count, 1))
    assert rounds(base).run()
    return base


def one(directory: Path, count: int, repeats: int = 9) -> tuple[float, float, float]:
    """Return the median of one memory's commit: ours, its round with nothing new, by hand."""
    base = prepared(directory / "base", count)
    worker = rounds(base)
    worker.run()
    ours, idle, hand = [], [], []
    for _ in range(repeats):
        fill(base, 1)
        ours.append(seconds(worker.run))
        idle.append(seconds(worker.run))
        (path,) = fill(base, 1)
        hand.append(seconds(lambda path=path: by_hand(base, path)))  # type: ignore[misc]
    return statistics.median(ours), statistics.median(idle), statistics.median(hand)


def batch(directory: Path, count: int) -> tuple[float, float]:
    """Return the time for 1,000 waiting memories: ours, and by hand (from 50 of them)."""
    base = prepared(directory / "base", count)
    hand = sum(seconds(lambda path=path: by_hand(base, path)) for path in fill(base, 50)) * 20  # type: ignore[misc]
    fill(base, 1000)
    before = int(git(base, "rev-list", "--count", "HEAD"))
    ours = seconds(rounds(base).run)
    assert int(git(base, "rev-list", "--count", "HEAD")) == before + 1000
    return ours, hand


def growth(directory: Path, count: int) -> tuple[float, int]:
    """Return KB per memory when each is committed alone, and the most that lay loose."""
    base = prepared(directory / "base", count)
    worker = rounds(base)
    worker._repository.git.run("repack", "-a", "-d", "-q")
    before, loose = kilobytes(base), 0
    for _ in range(GROWTH):
        fill(base, 1)
        worker.run()
        counts = dict(line.split(": ") for line in git(base, "count-objects", "-v").splitlines())
        loose = max(loose, int(counts["size"]))
    worker.tidy.wait()
    worker.tidy.run()
    return (kilobytes(base) - before) / GROWTH, loose


def exchange(directory: Path, count: int) -> tuple[float, float]:
    """Return the time to push 1,000 new memories, and for another machine to bring them in."""
    remote = directory / "remote"
    git(directory, "init", "--quiet", "--bare", str(remote))
    here, there = prepared(directory / "here", count), directory / "there"
    ours, theirs = rounds(here, str(remote)), rounds(there, str(remote))
    assert ours.run()
    assert theirs.run()
    fill(here, 1000)
    pushed = seconds(ours.run)
    joined = seconds(theirs.run)
    assert len(os.listdir(there / "files")) == max(count, 1) + 1000  # noqa: PTH208
    return pushed, joined


def remembering(directory: Path, count: int) -> tuple[float, float]:
    """Return the median of `remember`, without and with sync."""
    medians = []
    for sync in (False, True):
        base = directory / str(sync)
        fill(base, max(count, 1))
        rounds(base).run()
        bank = MemoryBank(Settings(base, sync=sync))
        with bank.opened():
            time.sleep(1.5)
            times = []
            for _ in range(200):
                started = time.perf_counter()
                bank.remember("claude", "marco", ["bench"], "words")
                times.append(time.perf_counter() - started)
                time.sleep(0.02)
        medians.append(statistics.median(times))
    return medians[0], medians[1]


# --- many machines --------------------------------------------------------------------------------

EACH = 5  # memories that every machine remembers at once
PATIENCE = 600.0


class Many(NamedTuple):
    """What came of many machines that remembered at once.

    Attributes:
        pushed: seconds until the remote had all.
        all_hold_all: seconds until every machine had all.
        commits: those that came to the remote.
        joins: those of them that have two parents.
        failures: rounds that were told as failed.
    """

    pushed: float
    all_hold_all: float
    commits: int
    joins: int
    failures: int

    def line(self) -> str:
        """Tell it in a line."""
        return (
            f"pushed {self.pushed:6.1f} s, all hold all {self.all_hold_all:6.1f} s, "
            f"{self.joins} joins in {self.commits} commits, {self.failures} told as failed"
        )


def measured(remote: Path, start: str, bases: Sequence[Path], failures: Callable[[], int]) -> Many:
    """Wait until the remote, and then every machine, has all memories."""
    started, pushed = time.perf_counter(), 0.0
    wanted = EACH * len(bases) + 1
    while time.perf_counter() - started < PATIENCE:
        if not pushed:
            listing = subprocess.run(
                ["git", "ls-tree", "--name-only", "main", "files/"],
                cwd=remote, capture_output=True, check=False, encoding="utf-8",
            )  # fmt: skip
            done = len(listing.stdout.splitlines()) >= wanted
            pushed = time.perf_counter() - started if done else 0.0
        if pushed and all(len(list((base / "files").glob("*.md"))) >= wanted for base in bases):
            break
        time.sleep(0.2)
    hold = time.perf_counter() - started
    commits = int(git(remote, "rev-list", "--count", f"{start}..main"))
    joins = int(git(remote, "rev-list", "--count", "--merges", f"{start}..main"))
    return Many(pushed, hold, commits, joins, failures())


class Failures(logging.Handler):
    """Counts the rounds that are told as failed."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line."""
        self.count += "Sync: " in record.getMessage() and "all is well" not in record.getMessage()


def begun(directory: Path, number: int) -> tuple[Path, list[Path]]:
    """Return a remote, and the directories of machines that have what it has."""
    remote = directory / "remote"
    git(directory, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    bases = [directory / f"machine{each}" for each in range(number)]
    fill(bases[0], 1)
    for base in bases:
        assert rounds(base, str(remote)).run()
    return remote, bases


def ours(directory: Path, number: int, interval: float) -> Many:
    """Have the machines remember at once, each with a server of its own."""
    remote, bases = begun(directory, number)
    failures = Failures()
    logging.getLogger("aiaml_server.sync.rounds").addHandler(failures)
    with ExitStack() as stack:
        banks = [
            stack.enter_context(
                MemoryBank(
                    Settings(base, remote=str(remote), sync_interval=interval)
                ).opened()
            )
            for base in bases
        ]  # fmt: skip
        time.sleep(3)
        start = git(remote, "rev-parse", "main").strip()
        for bank in banks:
            for _ in range(EACH):
                bank.remember("claude", "marco", ["bench"], "words")
        return measured(remote, start, bases, lambda: failures.count)


def plain(directory: Path, number: int, interval: float) -> Many:
    """Do the same with `git pull --rebase; git push` in a loop on each machine."""
    remote, bases = begun(directory, number)
    for base in bases:
        git(base, "fetch", "--quiet", "origin")
        git(base, "branch", "--quiet", "--set-upstream-to=origin/main", "main")
    start = git(remote, "rev-parse", "main").strip()
    end = threading.Event()
    waiting = [fill(base, EACH) for base in bases]

    def loop(base: Path, paths: Sequence[Path]) -> None:
        for path in paths:
            by_hand(base, path)
        while not end.is_set():
            with suppress(subprocess.CalledProcessError):
                git(base, "pull", "--rebase", "--quiet")
                if git(base, "rev-list", "--count", "@{upstream}..HEAD").strip() != "0":
                    git(base, "push", "--quiet")
                end.wait(interval)

    threads = [
        threading.Thread(target=loop, args=pair) for pair in zip(bases, waiting, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        return measured(remote, start, bases, lambda: 0)
    finally:
        end.set()
        for thread in threads:
            thread.join()


def many(interval: float, numbers: Sequence[int]) -> None:
    """Print how machines fare that remember at once, beside the plain loop in the same run."""
    for number in numbers:
        for name, measure in (("ours", ours), ("plain loop", plain)):
            with tempfile.TemporaryDirectory(
                prefix="aiaml-bench-", ignore_cleanup_errors=True
            ) as path:
                told = measure(Path(path), number, interval).line()
            print(f"{number} machines, every {interval:g} s, {name:10}: {told}", flush=True)


# --- a slow line ----------------------------------------------------------------------------------

DELAY = 0.3  # seconds that each piece is on its way, in either direction
BYTES = 100_000  # that pass in a second


def carry(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, late and slowly."""
    underway: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def deliver() -> None:
        data = b"more"
        with suppress(OSError):
            while data:
                due, data = underway.get()
                time.sleep(max(due - time.monotonic(), 0))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    threading.Thread(target=deliver, daemon=True).start()
    data = b"more"
    while data:
        try:
            data = source.recv(4096)
        except OSError:
            data = b""
        time.sleep(len(data) / BYTES)
        underway.put((time.monotonic() + DELAY, data))


def slow_line(port: int) -> int:
    """Return a port of this machine behind which there is another one, on a slow line."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            near, _ = listening.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=carry, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listening.getsockname()[1])


@contextmanager
def served(directory: Path) -> Iterator[int]:
    """Serve the repositories of a directory to this machine; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = ["--export-all", "--enable=receive-pack", f"--base-path={directory}", "--reuseaddr"]
    words += ["--listen=127.0.0.1", f"--port={port}", str(directory)]
    with subprocess.Popen(["git", "daemon", *words], start_new_session=True) as daemon:
        try:
            time.sleep(1)
            yield port
        finally:
            os.killpg(daemon.pid, signal.SIGTERM)


def slow(directory: Path, duration: float) -> list[float]:
    """Return how long each memory of a machine on a slow line was not at the remote."""
    remote, bases = begun(directory, 6)
    with served(directory) as port, ExitStack() as stack:
        near, far = (f"git://127.0.0.1:{each}/remote" for each in (port, slow_line(port)))
        banks = [
            stack.enter_context(
                MemoryBank(Settings(base, remote=address, sync_interval=1.0)).opened()
            )
            for base, address in zip(bases, [near] * 5 + [far], strict=True)
        ]
        end, waits = time.monotonic() + duration, []
        resting = threading.Event()

        def chatter(bank: MemoryBank) -> None:
            while not resting.wait(random.expovariate(1.0)):
                bank.remember("claude", "marco", ["bench"], "words")

        for bank in banks[:5]:
            threading.Thread(target=chatter, args=(bank,), daemon=True).start()
        time.sleep(15)
        while time.monotonic() < end:
            memory = banks[5].remember("claude", "marco", ["bench"], "words")
            started = time.monotonic()
            while memory.file_name not in git(remote, "ls-tree", "--name-only", "main", "files/"):
                time.sleep(0.5)
            waits.append(time.monotonic() - started)
            print(f"a slow line among five machines: {waits[-1]:.1f} s", flush=True)
            time.sleep(random.uniform(0, 20))
        resting.set()
        time.sleep(1)
    return waits


# --- a new machine, and its size ------------------------------------------------------------------


def filled_remote(directory: Path, count: int) -> Path:
    """Return a remote of so many memories, of which some came one by one."""
    remote = directory / "remote"
    git(directory, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    fill(directory / "first", count)
    worker = rounds(directory / "first", str(remote))
    assert worker.run()
    for _ in range(20):
        fill(directory / "first", 1)
        worker.pace.hurry()
        assert worker.run()
    worker.tidy.wait()
    return remote


def new(directory: Path, count: int) -> None:
    """Print how long a new machine takes, by turns with `git clone`."""
    remote = filled_remote(directory, count)
    for turn in range(3):
        os.sync()
        clone = seconds(
            lambda turn=turn: git(
                directory, "clone", "--quiet", "--no-local", str(remote), f"c{turn}"
            )  # type: ignore[misc]
        )
        durable = clone + seconds(os.sync)
        base = directory / f"new{turn}"
        worker = rounds(base, str(remote))
        ours = seconds(worker.run)
        worker.tidy.wait()
        there = len(list((base / "files").glob("*.md")))
        assert there == count + 20, (there, worker.problem)
        print(
            f"{count:,} memories, a new machine: {ours:.2f} s; git clone {clone:.2f} s, and until "
            f"that is durable {durable:.2f} s: {ours / clone:.1f} x, {ours / durable:.1f} x",
            flush=True,
        )


class Used:
    """A machine that is measured while it is used: each of its rounds, and its repository."""

    def __init__(self, name: str, base: Path, remote: Path) -> None:
        self.name, self.base = name, base
        self._worker = rounds(base, str(remote))
        self._seconds: dict[bool, list[float]] = {False: [], True: []}  # beside tidying or not
        self._most = 0

    def round(self) -> None:
        """Do one; and while it is tidied after it, more, each with a memory."""
        self._timed(beside=False)
        while (thread := self._worker.tidy._thread) and thread.is_alive():
            fill(self.base, 1)
            self._timed(beside=True)

    def _timed(self, *, beside: bool) -> None:
        self._worker.pace.hurry()
        self._seconds[beside].append(seconds(self._worker.run))
        assert not self._worker.problem, self._worker.problem
        if len(self._seconds[False]) % 5 == 0:
            self._most = max(self._most, kilobytes(self.base))

    def line(self) -> str:
        """Tell what the repository takes, and took at most since the last time."""
        self._worker.tidy.wait()
        number, now = len(list((self.base / "files").glob("*.md"))), kilobytes(self.base)
        most, self._most = max(self._most, now), 0
        return f"{self.name} {now / number:.2f} KB a memory, {most / number:.2f} at most"

    def told_rounds(self) -> Iterator[str]:
        """Tell what the rounds took."""
        for beside, all_ in self._seconds.items():
            if all_:
                where = "beside tidying" if beside else "alone"
                yield (
                    f"rounds of {self.name} {where}: {len(all_)}, "
                    f"median {statistics.median(all_):.2f} s, longest {max(all_):.2f} s"
                )


def size(directory: Path, count: int) -> None:
    """Print what `.git` takes after several patterns of use, and what tidying does to a round."""
    remote = filled_remote(directory, count)
    here, there = (Used(name, directory / name, remote) for name in ("first", "second"))
    there.round()
    same = sorted((here.base / "files").glob("*.md"))[:5]

    def edit(machine: Used) -> None:
        path = machine.base / "files" / random.choice(same).name
        path.write_bytes(path.read_bytes() + b"more\n")

    def forget(machine: Used) -> None:
        names = sorted(path.name for path in (machine.base / "files").glob("*.md"))
        (machine.base / "files" / random.choice(names[10:])).unlink()

    def both(act: Callable[[Used], object]) -> None:
        act(here)
        act(there)

    patterns: dict[str, Callable[[], object]] = {
        "memories of the first": lambda: fill(here.base, 1),
        "memories of both": lambda: both(lambda machine: fill(machine.base, 1)),
        "edits of the same five by both": lambda: both(edit),
        "forgotten by the first": lambda: forget(here),
    }
    each = max(40, min(GROWTH, 600_000 // count))
    for name, act in patterns.items():
        for _ in range(each):
            act()
            here.round()
            there.round()
        for machine in (here, there):
            print(f"{count:,} memories, {each} x {name}: {machine.line()}", flush=True)
    for machine in (here, there):
        for told in machine.told_rounds():
            print(f"{count:,} memories, {told}", flush=True)
    newest = Used("a new machine", directory / "new", remote)
    newest.round()
    print(f"{count:,} memories, then: {newest.line()}", flush=True)


def main(sizes: Sequence[int]) -> None:
    """Print the table."""
    measures: list[Callable[[Path, int], tuple[float, ...]]] = [
        one, batch, growth, exchange, remembering
    ]  # fmt: skip
    for count in sizes:
        results = {}
        for measure in measures:
            with tempfile.TemporaryDirectory(prefix="aiaml-bench-") as path:
                results[measure.__name__] = measure(Path(path), count)
        ours, idle, hand = results["one"]
        print(f"\n{count:,} memories in git")
        print(
            f"  one memory: {ours * 1e3:.0f} ms; by hand {hand * 1e3:.0f} ms: {ours / hand:.2f} x"
        )
        print(f"  a round with nothing new: {idle * 1e3:.0f} ms")
        ours, hand = results["batch"]
        print(f"  1,000 waiting: {ours:.2f} s; by hand {hand:.1f} s: {hand / ours:.1f} x faster")
        size, loose = results["growth"]
        print(f"  growth: {size:.1f} KB a memory; at most {loose / 1024:.0f} MB loose")
        pushed, joined = results["exchange"]
        print(f"  1,000 new: committed and pushed in {pushed:.1f} s, brought in in {joined:.1f} s")
        off, on = results["remembering"]
        print(f"  remember: {off * 1e3:.2f} ms, with sync {on * 1e3:.2f} ms: {on / off:.2f} x")


def in_turn(measure: Callable[[Path, int], None], counts: Sequence[int]) -> None:
    """Measure each in a directory of its own."""
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="aiaml-bench-", ignore_cleanup_errors=True) as path:
            measure(Path(path), count)


if __name__ == "__main__":
    if sys.argv[1:2] in (["new"], ["size"]):
        in_turn({"new": new, "size": size}[sys.argv[1]], [int(n) for n in sys.argv[2:]] or [10_000])
        sys.exit()
    if sys.argv[1:2] == ["slow"]:
        with tempfile.TemporaryDirectory(prefix="aiaml-bench-", ignore_cleanup_errors=True) as path:
            print(sorted(slow(Path(path), float((sys.argv[2:3] or ["200"])[0]))))
        sys.exit()
    if sys.argv[1:2] == ["machines"]:
        many(float((sys.argv[2:3] or ["1"])[0]), [int(word) for word in sys.argv[3:]] or MACHINES)
        sys.exit()
    main([int(word) for word in sys.argv[1:]] or SIZES)
