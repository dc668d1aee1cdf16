"""Five machines do what they like; in the end all have the same, and nothing is missing.

Disks too: directories are moved, emptied, restored from backups, cloned in part. None of that is a
deletion, so what was committed before must be there in the end.

`PYTHONPATH=tests python tests/sync/test_sync_convergence.py SEED COUNT` does many runs and prints a
line for each seed that fails. With the seed alone it repeats that run and prints what happened.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.errors import StoreError
from aiaml_server.git import Git
from aiaml_server.sync import worktree
from aiaml_server.sync.purge import load_list
from aiaml_server.sync.repository import Repository
from machine import Machine, bare, content_of, git, settle
from seeds import main

RUNS = 20
STEPS = 30
MANY = 2  # deletions at once that need no word; a world has few memories
TOKEN = re.compile(rb"token-(\d+)\.")


class World:
    """Machines, a remote that comes and goes, and the account of what must be left in the end.

    Attributes:
        living: what was written and neither edited nor deleted since.
        trace: what happened, to be read when the account is not met.
        moved: where the directory of a machine was moved.
        backups: copies of directories, all of whose files are in git.
        replaced: what a machine's files held, each of them, when an earlier copy took their place.
        passed_over: versions that somebody edited past, in an earlier copy that sync had not seen
            yet: they need not be on disk, but in the history.
        swept: machines on whose disks so much was deleted that it must be held.
        origin: the first version of the memory that each version is of.
        doomed: those of memories that were forgotten everywhere.
        erased: the names of their files.
    """

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.directory = directory
        self.trace: list[str] = []
        self.moved: dict[Machine, Path] = {}
        self.backups: dict[Machine, list[Path]] = {}
        self.replaced: dict[Path, set[bytes]] = {}
        self.passed_over: set[bytes] = set()
        self.swept: set[Machine] = set()
        self.places = 0
        self.remote = bare(directory / "remote")
        self.away = directory / "away"
        self.machines = [Machine(directory / f"m{number}", self.remote) for number in range(5)]
        self.drawn = 0
        self.living: set[bytes] = set()
        self.origin: dict[bytes, bytes] = {}
        self.doomed: set[bytes] = set()
        self.erased: set[str] = set()

    def token(self, before: bytes = b"") -> str:
        """Return a text that no other version of any memory has, of a new one or one before."""
        self.drawn += 1
        token = b"%d" % self.drawn
        earlier = TOKEN.findall(before)
        self.origin[token] = self.origin[earlier[0]] if earlier else token
        if self.origin[token] not in self.doomed:
            self.living.add(token)
        return f"token-{self.drawn}."

    def remember(self, machine: Machine) -> None:
        """An agent remembers; where the directory is a link to what was moved away, it cannot."""
        files = machine.base / "files"
        if files.is_symlink() and not files.exists():
            with pytest.raises(StoreError, match="a link to a directory that is not there"):
                machine.remember("not kept")
        else:
            machine.remember(self.token())

    def edit(self, machine: Machine) -> None:
        """A person rewrites a memory in an editor."""
        if path := self._any_file(machine):
            before = path.read_bytes()
            path.write_bytes(TOKEN.sub(self.token(before).encode(), before))
            self.living -= set(TOKEN.findall(before))
            newer = self.replaced.pop(path, set()) - set(TOKEN.findall(before))
            self.passed_over |= newer & self.living
            self.living -= newer

    def undo(self, machine: Machine) -> None:
        """A person edits a memory, finds that it was better before, and an agent remembers."""
        path = self._any_file(machine)
        if path and not self.replaced.get(path):
            before = path.read_bytes()
            edited = TOKEN.sub(self.token(before).encode(), before)
            self.living -= set(TOKEN.findall(edited))
            path.write_bytes(edited)
            machine.commit()
            if path.exists() and path.read_bytes() == edited:
                path.write_bytes(before)
            self.remember(machine)

    def delete(self, machine: Machine) -> None:
        """A person deletes a memory."""
        if path := self._any_file(machine):
            self.living -= set(TOKEN.findall(path.read_bytes()))
            path.unlink()

    def erase(self, machine: Machine) -> None:
        """A person has a memory forgotten everywhere; all its versions go, wherever they are."""
        path = self._any_file(machine) if self.committed(machine) else None
        if not path:
            return
        tokens = set(TOKEN.findall(path.read_bytes()))
        sums = machine.sums(path.name)
        machine.purge_sums = sums
        if self.random.random() < 0.5:
            self.kill(machine)
        else:
            machine.sync()
        if sums <= load_list(Repository(machine.base)):
            self.erased.add(path.name)
            self.doomed |= {self.origin[each] for each in tokens}
            self.living = {each for each in self.living if self.origin[each] not in self.doomed}

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

    # --- disasters ------------------------------------------------------------------------------

    def move_away(self, machine: Machine) -> None:
        """The directory is moved, as when its disk is not mounted."""
        self.moved[machine] = self.files(machine).rename(self.place())

    def come_back(self, machine: Machine) -> None:
        """The directory is where it was, if nothing has taken its place."""
        if machine in self.moved and not os.path.lexists(machine.base / "files"):
            self.moved.pop(machine).rename(machine.base / "files")

    def empty(self, machine: Machine) -> None:
        """The directory is deleted and made anew, under the same number if the system likes."""
        shutil.rmtree(self.files(machine))
        self.files(machine).mkdir()

    def halve(self, machine: Machine) -> None:
        """A copy that broke off stands in its place, hidden files included or not."""
        whole = self.files(machine).rename(self.place())
        self.files(machine).mkdir()
        for path in whole.iterdir():
            if self.random.random() < 0.5:
                shutil.copy2(path, self.files(machine))

    def back_up(self, machine: Machine) -> None:
        """A person copies the directory."""
        copy = self.place()
        shutil.copytree(self.files(machine), copy)
        self.backups.setdefault(machine, []).append(copy)

    def put_back(self, machine: Machine) -> None:
        """A person puts an earlier copy in place of the directory."""
        if machine in self.backups:
            for path in self.files(machine).glob("*.md"):
                its = machine.base / "files" / path.name
                self.replaced[its] = set(TOKEN.findall(path.read_bytes()))
            shutil.rmtree(self.files(machine))
            shutil.copytree(self.random.choice(self.backups[machine]), self.files(machine))

    def link(self, machine: Machine) -> None:
        """The directory becomes a link to itself elsewhere, or to an empty one."""
        there = self.files(machine).rename(self.place())
        if self.random.random() < 0.5:
            there = self.place()
            there.mkdir()
        (machine.base / "files").unlink(missing_ok=True)  # where it was a link already
        (machine.base / "files").symlink_to(there)

    def carry_git(self, machine: Machine) -> None:
        """Nothing but git's own directories reaches a new disk."""
        old = machine.base.rename(self.place())
        machine.base.mkdir()
        for path in old.glob(".*git"):
            shutil.copytree(path, machine.base / path.name, symlinks=True)

    def lose_record(self, machine: Machine) -> None:
        """What sync noted for itself is deleted, and some files with it."""
        (machine.repository / "aiaml" / "last-sync.json").unlink(missing_ok=True)
        for path in self.files(machine).glob("*.md"):
            if self.random.random() < 0.3:
                path.unlink()

    def clone(self, machine: Machine) -> None:
        """A person clones the remote anew, and the checkout breaks off."""
        if machine.sync().problem or machine.sync().unsent:
            return
        machine.base.rename(self.place())
        git(
            self.directory, "clone", "--quiet", "--no-checkout", str(self.remote), machine.base.name
        )
        for path in git(machine.base, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
            if self.random.random() < 0.5:
                git(machine.base, "checkout", "--quiet", "HEAD", "--", path)

    def sweep(self, machine: Machine) -> None:
        """So much is deleted in place that it is held, until somebody says what is meant."""
        paths = list(self.files(machine).glob("*.md"))
        if len(paths) <= worktree.MANY_DELETIONS:
            return
        before = {path: path.read_bytes() for path in paths}
        for path in paths:
            path.unlink()
        if self.committed(machine):
            self.swept.add(machine)
        else:
            self.living -= {token for data in before.values() for token in TOKEN.findall(data)}

    def place(self) -> Path:
        """Return a name for something to be put away."""
        self.places += 1
        return self.directory / f"place{self.places}"

    def files(self, machine: Machine) -> Path:
        """Return a machine's directory, wherever it is."""
        return (machine.base / "files").resolve()

    def committed(self, machine: Machine) -> bool:
        """Have a machine commit what it has; say whether it could."""
        return machine.commit()

    def disaster(self, machine: Machine) -> None:
        """Something befalls a disk, all of whose memories are in git."""
        disasters = [
            self.move_away, self.empty, self.halve, self.back_up, self.put_back,
            self.carry_git, self.lose_record, self.clone, self.sweep,
        ]  # fmt: skip
        if sys.platform != "win32":
            disasters.append(self.link)
        if machine.files and self.committed(machine):
            befalls = self.random.choice(disasters)
            self.trace.append(f"  {befalls.__name__}")
            befalls(machine)
            if self.random.random() < 0.5:
                machine.restart()

    # --- what happens ---------------------------------------------------------------------------

    def step(self) -> None:
        """Let anything happen anywhere."""
        actions = {
            self.remember: 6, self.edit: 4, self.undo: 2, self.delete: 2, self.sync: 8,
            self.erase: 1, self.outage: 1, self.restart: 1, self.kill: 3, self.disaster: 4,
            self.come_back: 1,
        }  # fmt: skip
        action = self.random.choices(list(actions), list(actions.values()))[0]
        machine = self.random.choice(self.machines)
        self.trace.append(f"{action.__name__} {machine.base.name}")
        action(machine)

    def settle(self) -> None:
        """The remote and the disks are there again, what is held is decided, everyone syncs."""
        if not self.remote.exists():
            self.outage(self.machines[0])
        for lock in _locks(self.remote):  # of a push that was killed; a person deletes it
            lock.unlink(missing_ok=True)
        for machine in self.machines:
            if self.random.random() < 0.5:
                self.come_back(machine)
            if not (machine.base / "files").exists():
                self.files(machine).mkdir(parents=True)
        for machine in self.machines:
            machine.synced()
            machine.on_deleted = "restore"
            if machine not in self.swept and self.random.random() < 0.5:
                machine.on_deleted = "delete"
            machine.synced()
            machine.on_deleted = ""
        for machine in self.machines:
            machine.synced()
            for name in self.erased:  # an old backup may have brought it back, to this disk alone
                (machine.base / "files" / name).unlink(missing_ok=True)
        settle(self.machines)

    def check(self) -> None:
        """All the same, everywhere, and nothing missing."""
        first = self.machines[0].files
        for machine in self.machines[1:]:
            assert machine.files == first
        if not first and not git(self.remote, "branch", "--list", "main"):
            return  # nobody has ever remembered anything for long enough
        assert content_of(self.remote) == first
        assert self.erased.isdisjoint(first)
        for directory in (*(machine.repository for machine in self.machines), self.remote):
            named = ("log", "--name-only", "-m", "--format=", "main", "--", "files")
            history = git(directory, *named)
            assert self.erased.isdisjoint(Path(line).name for line in history.splitlines())
            assert git(directory, "fsck", "--no-dangling") == ""
        left = [token for data in first.values() for token in TOKEN.findall(data)]
        assert self.living <= set(left), f"missing: {self.living - set(left)}"
        for token in self.passed_over:
            if self.origin[token] not in self.doomed:
                words = ("log", "--all", "-m", "--format=%h", f"-Stoken-{token.decode()}.")
                assert git(self.machines[0].repository, *words), f"not in the history: {token!r}"
        # An older version may be there as well, where two edits met before a third was known.
        assert len(left) == len(set(left)), f"twice: {left}"
        assert not any(b"<<<<<<<" in data or b">>>>>>>" in data for data in first.values())

    def _any_file(self, machine: Machine) -> Path | None:
        files = sorted((machine.base / "files").glob("*.md"))
        return self.random.choice(files) if files else None


def kill_before_a_command(world: World, machine: Machine) -> None:
    """The server is killed before one of its first git commands, or ends without harm."""
    if sys.platform == "win32":
        return
    left = world.random.randrange(12)
    child = os.fork()
    if not child:
        run_git = Git.run

        def count(git: Git, command: str, *words: str, **options: Any) -> bytes:
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return run_git(git, command, *words, **options)

        Git.run = count  # type: ignore[assignment, method-assign]
        with suppress(BaseException):
            machine.sync()
        os._exit(0)
    os.waitpid(child, 0)
    machine.restart()


def _locks(repository: Path) -> list[Path]:
    """Return the lock files in a repository, where a git that goes on alone may just end."""
    walk = os.walk(repository)
    return [Path(at, name) for at, _, names in walk for name in names if name.endswith(".lock")]


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
        try:
            world.settle()
            world.check()
        except BaseException:
            print(f"seed {seed}:", *world.trace, sep="\n")  # noqa: T201
            raise


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world has few memories, so fewer deletions are many."""
    monkeypatch.setattr(worktree, "MANY_DELETIONS", MANY)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork, with threads that wait
@pytest.mark.parametrize("seed", [1, 2])
def test_machines_that_do_anything_end_with_the_same_memories(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All machines end with the same files, and no version that anyone wrote last is missing.

    Here a server is killed before a certain git command, so that a seed always does the same.
    """
    monkeypatch.setattr(World, "kill", kill_before_a_command)
    run(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork, with threads that wait
@pytest.mark.parametrize("_number", range(RUNS))
def test_machines_at_random_end_with_the_same_memories(_number: int) -> None:
    """The same with seeds that nobody has chosen."""
    run(secrets.randbelow(2**32))


if __name__ == "__main__":
    worktree.MANY_DELETIONS = MANY
    main(run)
