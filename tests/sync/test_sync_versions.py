"""Machines of the first version and of this one at one remote: no memory is lost, and all rest.

`fixtures/first-sync.zip` holds the first version's synchronisation as it was, made by
`git archive --format=zip -o tests/fixtures/first-sync.zip 60c9474 -- src/aiaml_server/errors.py
src/aiaml_server/files.py src/aiaml_server/settings.py src/aiaml_server/sync`.

`python tests/test_sync_versions.py 100 [seed]` plays that many fleets; each prints its seed when it
fails, and `… 1 <seed>` repeats it.
"""

from __future__ import annotations

import logging
import os
import random
import re
import secrets
import sys
import tempfile
from pathlib import Path

import pytest

from aiaml_server.sync import Status
from machine import CLEAN, Machine, bare, content_of, git, settle
from paths import TESTS
from printed import completed

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

RUNS = 1
STEPS = 20
TOKEN = re.compile(rb"token-(\d+)\.")
FIRST = TESTS / "fixtures" / "first-sync.zip"

ROUND = """
import sys
from pathlib import Path
from types import ModuleType

class Git:  # what the first version used of GitPython
    def __init__(self, directory):
        self.working_dir = directory
    def __getattr__(self, name):
        return lambda *words, **how: self.execute(["git", name.replace("_", "-"), *words], **how)

for name in ("git", "aiaml_server"):
    sys.modules[name] = ModuleType(name)
sys.modules["git"].Git = Git
sys.modules["aiaml_server"].__path__ = [f"{sys.argv[1]}/src/aiaml_server"]

from aiaml_server.settings import Settings
from aiaml_server.sync import once
print(once(Settings(Path(sys.argv[2]), remote=sys.argv[3])).problem or "")
"""


class First(Machine):
    """A machine of the first version: each round is a process of its own."""

    def sync(self) -> Status:
        """Do one round as the first version did."""
        done = completed(
            [sys.executable, "-c", ROUND, str(FIRST), str(self.base), self.settings.remote],
            env={**os.environ, **CLEAN},
        )
        assert done.returncode == 0, done.stderr
        return Status(problem=done.stdout.strip() or None)


@pytest.fixture
def old(tmp_path: Path, remote: Path) -> First:
    """A machine that still has the first version."""
    return First(tmp_path / "old", remote)


def commits(remote: Path) -> str:
    """Return the name of the remote's last commit."""
    return git(remote, "rev-parse", "main")


def at_rest(machines: list[Machine], remote: Path) -> None:
    """See that all have the same, and that nobody has anything to say to it."""
    settle(machines)
    before = commits(remote)
    settle(machines)
    assert commits(remote) == before
    for machine in machines:
        assert machine.files == content_of(remote)


@pytest.mark.slow
def test_memories_go_both_ways(old: First, ada: Machine, bob: Machine, remote: Path) -> None:
    """What one remembers, edits or deletes, the others have: whichever version it is of."""
    by_old, by_ada = old.remember("by the old one"), ada.remember("by ada")
    at_rest([old, ada, bob], remote)
    for machine, memory in ((ada, by_old), (old, by_ada)):
        path = machine.path(memory)
        path.write_bytes(path.read_bytes() + b"edited elsewhere\n")
    at_rest([ada, old, bob], remote)
    assert all(data.count(b"edited elsewhere") == 1 for data in bob.files.values())
    old.path(by_old).unlink()
    ada.path(by_ada).unlink()
    at_rest([bob, old, ada], remote)
    assert content_of(remote) == {}


@pytest.mark.slow
def test_two_edits_of_one_memory_are_both_kept(old: First, ada: Machine, remote: Path) -> None:
    """Both versions join them in the same way, whichever comes first."""
    memories = [old.remember("one"), old.remember("two")]
    at_rest([old, ada], remote)
    for first, memory in zip((old, ada), memories, strict=True):
        for machine in (old, ada):
            path = machine.path(memory)
            path.write_bytes(path.read_bytes() + f"by {machine.base.name}\n".encode())
        at_rest([first, old, ada], remote)
    texts = b"".join(ada.files.values())
    assert (texts.count(b"by old"), texts.count(b"by ada"), len(ada.files)) == (2, 2, 4)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["at rest", "before its round", "with a join begun"])
def test_an_old_machine_becomes_a_new_one(
    old: First, ada: Machine, bob: Machine, remote: Path, when: str
) -> None:
    """Its repository is gone on with: what it had not committed or pushed yet travels now."""
    memories = [old.remember("kept"), old.remember("edited"), old.remember("deleted")]
    theirs = ada.remember("from ada")
    at_rest([old, ada, bob], remote)
    if when != "at rest":
        old.path(memories[1]).write_bytes(old.path(memories[1]).read_bytes() + b"more\n")
        old.path(memories[2]).unlink()
        new = old.remember("not committed yet")
        late = bob.remember("from bob")
        bob.synced()
    if when == "with a join begun":  # files came before the branch was moved
        (old.base / "files" / late.file_name).write_bytes(bob.files[late.file_name])
    upgraded = Machine(old.base, remote)
    at_rest([upgraded, ada, bob], remote)
    left = {memories[0].file_name, memories[1].file_name, theirs.file_name}
    if when == "at rest":
        left |= {memories[2].file_name}
    else:
        left |= {new.file_name, late.file_name}
        if memories[2].file_name in bob.files:  # its deletion was seen by nobody
            left |= {memories[2].file_name}
        assert b"more" in bob.files[memories[1].file_name]
    assert set(bob.files) == left


@pytest.mark.slow
def test_what_is_forgotten_everywhere_stays_forgotten_on_new_machines(
    old: First, ada: Machine, bob: Machine, remote: Path
) -> None:
    """An old machine brings its history again and again; no other takes it, and it is told."""
    memory = old.remember("a secret word")
    left = ada.remember("kept")
    at_rest([old, ada, bob], remote)
    marks = ada.marks(memory.file_name, memory.id)
    ada.rounds._erase = marks
    ada.synced()
    ada.rounds._erase = frozenset()
    heights = []
    for _ in range(3):
        for machine in (old, bob, ada):
            machine.synced()
        heights.append(int(git(remote, "rev-list", "--count", "main")))
        assert set(ada.files) == set(bob.files) == set(content_of(remote)) == {left.file_name}
    assert heights[0] == heights[-1]  # nothing grows
    told = Status.read(bob.base).notice or Status.read(ada.base).notice or ""
    assert "Update AIAML on every machine" in told
    at_rest([Machine(old.base, remote), ada, bob], remote)
    assert set(content_of(remote)) == {left.file_name}


class Fleet:
    """Machines of both versions that do what they like, and the account of what must be left.

    Attributes:
        living: what was written and neither edited nor deleted since.
        trace: what happened, to be read when the account is not met.
    """

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.remote = bare(directory / "remote")
        self.machines: list[Machine] = [
            First(directory / "old", self.remote),
            First(directory / "older", self.remote),
            Machine(directory / "new", self.remote),
            Machine(directory / "newer", self.remote),
        ]
        self.living: set[bytes] = set()
        self.drawn = 0
        self.trace: list[str] = []

    def token(self) -> str:
        """Return a text that no other version of any memory has."""
        self.drawn += 1
        self.living.add(b"%d" % self.drawn)
        return f"token-{self.drawn}."

    def remember(self, machine: Machine) -> None:
        """An agent remembers."""
        machine.remember(self.token())

    def edit(self, machine: Machine) -> None:
        """A person rewrites a memory."""
        for path in self.any_file(machine):
            before = path.read_bytes()
            path.write_bytes(TOKEN.sub(self.token().encode(), before))
            self.living -= set(TOKEN.findall(before))

    def delete(self, machine: Machine) -> None:
        """A person deletes a memory."""
        for path in self.any_file(machine):
            self.living -= set(TOKEN.findall(path.read_bytes()))
            path.unlink()

    def sync(self, machine: Machine) -> None:
        """A round takes place."""
        machine.synced()

    def upgrade(self, machine: Machine) -> None:
        """The next round is this version's."""
        if isinstance(machine, First):
            self.machines[self.machines.index(machine)] = Machine(machine.base, self.remote)

    def any_file(self, machine: Machine) -> list[Path]:
        """Return a memory's file, if there is one."""
        files = sorted((machine.base / "files").glob("*.md"))
        return self.random.sample(files, min(1, len(files)))

    def play(self) -> None:
        """Let anything happen anywhere, and then everyone come to rest."""
        actions = {self.remember: 5, self.edit: 3, self.delete: 2, self.sync: 9, self.upgrade: 0.5}
        for _ in range(STEPS):
            action = self.random.choices(list(actions), list(actions.values()))[0]
            machine = self.random.choice(self.machines)
            self.trace.append(f"{action.__name__} {machine.base.name}")
            action(machine)
        settle(self.machines)
        at_rest(self.machines, self.remote)
        left = [token for data in self.machines[0].files.values() for token in TOKEN.findall(data)]
        assert self.living <= set(left), f"missing: {self.living - set(left)}"
        assert len(left) == len(set(left)), f"twice: {left}"


def run(seed: int) -> None:
    """Play one fleet through."""
    with tempfile.TemporaryDirectory(prefix="aiaml-fleet-", ignore_cleanup_errors=True) as path:
        fleet = Fleet(Path(path), seed)
        try:
            fleet.play()
        except BaseException:
            print(f"seed {seed}:", *fleet.trace, sep="\n")  # noqa: T201
            raise


@pytest.mark.slow
@pytest.mark.parametrize("_number", range(RUNS))
def test_a_fleet_of_both_versions_ends_with_the_same_memories(_number: int) -> None:
    """None that anyone wrote last is missing, and in the end nobody pushes any more."""
    run(secrets.randbelow(2**32))


if __name__ == "__main__":
    logging.disable()
    os.environ.update(CLEAN)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    first = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbelow(2**32)
    for number in range(count):
        run(first + number)
    print(f"{count} of {count} fleets from seed {first} lost nothing and came to rest")  # noqa: T201
