"""Five machines do what they like; in the end all have the same, and nothing is missing.

`python tests/test_sync_convergence.py 1000 [seed]` generates that many runs; each prints its seed
when it fails, and `… 1 <seed>` repeats it.
"""

from __future__ import annotations

import logging
import os
import random
import re
import secrets
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server.sync import repository
from machine import Machine, bare, content_of, settle

RUNS = 20
STEPS = 30
TOKEN = re.compile(rb"token-(\d+)\.")


class World:
    """Machines, a remote that comes and goes, and the account of what must be left in the end."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.remote = bare(directory / "remote")
        self.away = directory / "away"
        self.machines = [Machine(directory / f"m{number}", self.remote) for number in range(5)]
        self.drawn = 0
        self.living: set[bytes] = set()  # what was written and neither edited nor deleted since

    def token(self) -> str:
        """Return a text that no other version of any memory has."""
        self.drawn += 1
        self.living.add(b"%d" % self.drawn)
        return f"token-{self.drawn}."

    def remember(self, machine: Machine) -> None:
        """An agent remembers."""
        machine.remember(self.token())

    def edit(self, machine: Machine) -> None:
        """A person rewrites a memory in an editor."""
        if path := self._any_file(machine):
            before = path.read_bytes()
            path.write_bytes(TOKEN.sub(self.token().encode(), before))
            self.living -= set(TOKEN.findall(before))

    def delete(self, machine: Machine) -> None:
        """A person deletes a memory."""
        if path := self._any_file(machine):
            self.living -= set(TOKEN.findall(path.read_bytes()))
            path.unlink()

    def sync(self, machine: Machine) -> None:
        """A round takes place, whether the remote is there or not."""
        machine.sync()

    def outage(self, _: Machine) -> None:
        """The remote goes away or comes back."""
        here, there = (self.remote, self.away)[:: 1 if self.remote.exists() else -1]
        here.rename(there)

    def restart(self, machine: Machine) -> None:
        """The server ends between two rounds."""
        machine.restart()

    def kill(self, machine: Machine) -> None:
        """The server is killed at any moment of a round; its git too, or it goes on alone."""
        if sys.platform == "win32":  # cannot fork
            return
        child = os.fork()
        if not child:
            with suppress(BaseException):
                machine.sync()
            os._exit(0)
        time.sleep(self.random.uniform(0, 0.25))
        gits = _children(child) if self.random.random() < 0.5 else []
        for process in (child, *gits):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        os.waitpid(child, 0)
        machine.restart()

    def step(self) -> None:
        """Let anything happen anywhere."""
        actions = {
            self.remember: 6, self.edit: 4, self.delete: 2, self.sync: 8,
            self.outage: 1, self.restart: 1, self.kill: 3,
        }  # fmt: skip
        action = self.random.choices(list(actions), list(actions.values()))[0]
        action(self.random.choice(self.machines))

    def settle(self) -> None:
        """The remote is there again, and everyone syncs."""
        if not self.remote.exists():
            self.outage(self.machines[0])
        time.sleep(repository._STALE_SECONDS)
        settle(self.machines)

    def check(self) -> None:
        """All the same, everywhere, and nothing missing."""
        first = self.machines[0].files
        for machine in self.machines[1:]:
            assert machine.files == first
        assert content_of(self.remote) == first
        left = [token for data in first.values() for token in TOKEN.findall(data)]
        assert self.living <= set(left), f"missing: {self.living - set(left)}"
        # An older version may be there as well, where two edits met before a third was known.
        assert len(left) == len(set(left)), f"twice: {left}"
        assert not any(b"<<<<<<<" in data or b">>>>>>>" in data for data in first.values())

    def _any_file(self, machine: Machine) -> Path | None:
        files = sorted((machine.base / "files").glob("*.md"))
        return self.random.choice(files) if files else None


def _children(process: int) -> list[int]:
    """Return the process ids of a process's children, where the system tells."""
    with suppress(OSError):
        text = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]
    return []


def run(seed: int) -> None:
    """Play one world through."""
    with tempfile.TemporaryDirectory(prefix="aiaml-world-", ignore_cleanup_errors=True) as path:
        world = World(Path(path), seed)
        for _ in range(STEPS):
            world.step()
        world.settle()
        world.check()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that was killed in this test need not be waited for as long as a real one."""
    for name in ("_STALE_SECONDS", "_SESSION_SECONDS"):
        monkeypatch.setattr(repository, name, 0.5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork, with threads that wait
@pytest.mark.parametrize("seed", [secrets.randbelow(2**32) for _ in range(RUNS)])
def test_machines_that_do_anything_end_with_the_same_memories(seed: int) -> None:
    """All machines end with the same files, and no version that anyone wrote last is missing."""
    run(seed)


if __name__ == "__main__":
    logging.disable()
    repository._STALE_SECONDS = repository._SESSION_SECONDS = 0.5
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbelow(2**32)
    print(f"{count} runs, seeds from {first}", flush=True)  # noqa: T201
    for number in range(count):
        if number % 50 == 0:
            print(f"{number} runs done", flush=True)  # noqa: T201
        try:
            run(first + number)
        except BaseException:
            print(f"failed: run {number}, seed {first + number}", flush=True)  # noqa: T201
            raise
    print(f"{count} of {count} runs ended with the same memories everywhere")  # noqa: T201
