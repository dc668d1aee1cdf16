"""People who use git in the memory directory, at random: no memory is lost that nobody forgot.

Two machines share a remote. At one of them, or both, a person has a repository of their own in the
memory directory, and commits, looks at old commits, rebases, resets, stashes and merges there, also
memories, with rounds of sync between any two commands. What git takes off the disk on the way is
never a deletion.

`PYTHONPATH=tests python tests/sync/test_sync_play.py SEED COUNT` does many plays and prints a line
for each seed that fails. With the seed alone it repeats that play and prints what happened.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server.errors import FileChanged
from machine import CLEAN, Machine, bare, content_of, git
from seeds import main

PLAYS = 4
STEPS = 25
TOKEN = re.compile(rb"token-(\d+)\.")
BEGUN = {
    "rebase-merge": "rebase", "rebase-apply": "rebase", "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
}  # fmt: skip


class Play:
    """Two machines, and the account of what must be left in the end.

    Attributes:
        living: what was remembered and neither edited nor forgotten since.
        trace: what happened, to be read when the account is not met.
    """

    def __init__(self, directory: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.trace: list[str] = []
        self.remote = bare(directory / "remote")
        self.machines = [Machine(directory / name, self.remote) for name in ("ada", "bob")]
        self.persons = self.machines[: self.random.choice((1, 1, 2))]
        self.living: set[bytes] = set()
        self.forgotten: set[bytes] = set()
        self.drawn = 0
        self.returned = set[bytes]()
        for machine in self.persons:
            if self.random.random() < 0.8:  # else sync makes the repository, and git refuses it all
                machine.base.mkdir()
                git(machine.base, "init", "--quiet", "--initial-branch=main")
                self.note(machine)

    # --- what agents, people and sync do --------------------------------------------------------

    def remember(self, machine: Machine) -> None:
        """An agent remembers; git knows of it soon."""
        machine.remember(self.token())
        self.sync(machine)

    def remember_only(self, machine: Machine) -> None:
        """An agent remembers, and the person is faster than sync."""
        machine.remember(self.token())

    def forget(self, machine: Machine) -> None:
        """A person forgets a memory, by the verb or the page."""
        if path := self.any_file(machine):
            before = path.read_bytes()
            self.trace.append(f"  {TOKEN.findall(before)}")
            with suppress(FileChanged):  # git had put an earlier version there
                machine.bank.forget({path.name: before.decode()})
                self.gone(before)

    def remove(self, machine: Machine) -> None:
        """A person removes a file, while git does nothing."""
        if path := self.any_file(machine):
            self.trace.append(f"  {TOKEN.findall(path.read_bytes())}")
            self.gone(path.read_bytes())
            path.unlink()
            self.sync(machine)

    def edit(self, machine: Machine) -> None:
        """A person rewrites a memory; it counts when git has it."""
        if path := self.any_file(machine):
            before = path.read_bytes()
            new = self.token()
            path.write_bytes(TOKEN.sub(new.encode(), before))
            token = TOKEN.findall(new.encode())[0]
            if self.sync(machine):
                self.gone(before)
                self.forgotten -= set(TOKEN.findall(before))
            else:
                self.living -= {token, *TOKEN.findall(before)}

    def undo(self, machine: Machine) -> None:
        """A person rewrites a memory, finds that it was better before, and an agent remembers."""
        if path := self.any_file(machine):
            before = path.read_bytes()
            edited = TOKEN.sub(self.token().encode(), before)
            self.living -= set(TOKEN.findall(edited))
            path.write_bytes(edited)
            machine.commit()
            if path.exists() and path.read_bytes() == edited:
                path.write_bytes(before)
            if (machine.base / ".git").exists():  # which may have written it, for all that is known
                self.living -= set(TOKEN.findall(before))
            machine.remember(self.token())
            self.sync(machine)

    def sync(self, machine: Machine) -> bool:
        """Do a cycle; return whether it succeeded."""
        done = machine.sync().problem is None
        left = sorted({int(t) for data in machine.files.values() for t in TOKEN.findall(data)})
        self.trace.append(f"  round at {machine.base.name}: {done}, {left}")
        return done

    # --- what a person does with git ------------------------------------------------------------

    def note(self, machine: Machine) -> None:
        """A commit of the person's own file."""
        (machine.base / "notes.txt").write_text(f"{self.random.random()}\n")
        self.git(machine, "add", "notes.txt")
        self.git(machine, "commit", "-m", "Notes")

    def commit_all(self, machine: Machine) -> None:
        """All that git sees, also memories."""
        self.resolve(machine)
        (machine.base / "notes.txt").write_text(f"{self.random.random()}\n")
        self.git(machine, "add", "-A", ".")
        if self.random.random() < 0.3:
            self.git(machine, "add", "-f", "files/*.md")
        self.git(machine, "commit", "-m", "All")

    def amend(self, machine: Machine) -> None:
        """The last commit is made anew."""
        self.resolve(machine)
        self.git(machine, "commit", "--amend", "-a", "-m", "Amended")

    def look_back(self, machine: Machine) -> None:
        """A look at an old commit, and back."""
        back = f"HEAD~{self.random.choice((1, 1, 2, 3))}"
        if self.git(machine, "checkout", back):
            self.perhaps_sync(machine)
            if self.random.random() < 0.3:
                self.note(machine)
            if self.random.random() < 0.8:
                self.git(machine, "checkout", self.random.choice(("-", "-", "main")))

    def rebase(self, machine: Machine) -> None:
        """Some commits are made anew, one is left out, or it stops at each."""
        how = self.random.choice(("plain", "onto", "edit", "branch"))
        if how == "plain":
            self.git(machine, "rebase", "--force-rebase", f"HEAD~{self.random.choice((1, 2, 3))}")
        elif how == "onto":
            self.git(machine, "rebase", "--onto", "HEAD~2", "HEAD~1")
        elif how == "branch":
            self.git(machine, "rebase", self.branch(machine))
        else:
            self.git(machine, "rebase", "--exec", "false", "HEAD~2")
            for _ in range(2):
                self.perhaps_sync(machine)
                self.git(machine, "rebase", "--continue")
        if self.random.random() < 0.7:
            self.end(machine)

    def reset(self, machine: Machine) -> None:
        """The branch goes back."""
        how = self.random.choice(("--hard", "--hard", "--mixed", "--soft", "--keep"))
        self.git(machine, "reset", how, f"HEAD~{self.random.choice((0, 1, 1, 2))}")

    def stash(self, machine: Machine) -> None:
        """What is not committed is put away, and given back or left."""
        (machine.base / "notes.txt").write_text(f"{self.random.random()}\n")
        if self.random.random() < 0.3:
            self.git(machine, "add", "-A", "-f", "files/*.md")
        if self.git(machine, "stash", "push", *self.random.choice(([], [], ["-u"]))):
            self.perhaps_sync(machine)
            if self.random.random() < 0.9:
                self.git(machine, "stash", "pop")

    def switch(self, machine: Machine) -> None:
        """Another branch, new or not."""
        name = self.branch(machine)
        if not self.git(machine, "checkout", name):
            self.git(machine, "switch", "-c", name, *self.random.choice(([], ["HEAD~1"])))

    def merge(self, machine: Machine) -> None:
        """Another branch comes in."""
        self.git(machine, "merge", "--no-edit", self.branch(machine))

    def exchange(self, machine: Machine) -> None:
        """A pull by hand, or a push."""
        if self.random.random() < 0.6:
            self.git(machine, "pull", "--no-rebase", "--no-edit", str(self.remote), "main")
        else:
            self.git(machine, "push", str(self.remote), "HEAD:main")

    def pick(self, machine: Machine) -> None:
        """An old commit again, or taken back."""
        verb = self.random.choice((["cherry-pick"], ["revert", "--no-edit"]))
        self.git(machine, *verb, f"HEAD~{self.random.choice((0, 1, 2))}")

    def end(self, machine: Machine) -> None:
        """What is unfinished is aborted."""
        for name, verb in BEGUN.items():
            if (machine.base / ".git" / name).exists():
                self.git(machine, verb, "--abort")

    # --- helpers --------------------------------------------------------------------------------

    def git(self, machine: Machine, *words: str) -> bool:
        """Type a command as a person; say whether it did what it should."""
        done = subprocess.run(
            ["git", "-c", "user.name=P", "-c", "user.email=p@x", "-c", "advice.detachedHead=false",
             "-c", "core.editor=true", *words],
            cwd=machine.base,
            env={**os.environ, **CLEAN},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            encoding="utf-8",
            timeout=60,
        )  # fmt: skip
        said = "" if not done.returncode else f": {done.stderr.strip()[-300:]!r}"
        self.trace.append(f"  {machine.base.name}: git {' '.join(words)}{said}")
        return not done.returncode

    def resolve(self, machine: Machine) -> None:
        """Take one side where git has left both in a file, before adding it says so."""
        names = ""
        with suppress(AssertionError):  # sync made the repository: git refuses
            names = git(machine.base, "diff", "--name-only", "--diff-filter=U")
        for name in names.splitlines():
            path = machine.base / name
            before = path.read_bytes() if path.exists() else b""
            if self.git(machine, "checkout", "--ours", "--", name):
                self.living -= {*TOKEN.findall(before)} - {*TOKEN.findall(path.read_bytes())}

    def perhaps_sync(self, machine: Machine) -> None:
        """A round comes between two commands, or not."""
        if self.random.random() < 0.5:
            self.sync(machine)

    def branch(self, machine: Machine) -> str:
        """Return the name of a branch, that may not be there."""
        del machine
        return self.random.choice(("main", "main", "x", "y"))

    def any_file(self, machine: Machine) -> Path | None:
        """Return a memory's file that nobody is in the middle of merging."""
        files = [path for path in sorted((machine.base / "files").glob("*.md"))
                 if len(TOKEN.findall(path.read_bytes())) == 1]  # fmt: skip
        return self.random.choice(files) if files else None

    def token(self) -> str:
        """Return a text that no other version of any memory has."""
        self.drawn += 1
        self.living.add(b"%d" % self.drawn)
        return f"token-{self.drawn}."

    def gone(self, data: bytes) -> None:
        """Note that what a file holds was not wanted any more."""
        self.living -= set(TOKEN.findall(data))
        self.forgotten |= set(TOKEN.findall(data))

    # --- the play -------------------------------------------------------------------------------

    def step(self) -> None:
        """Let anything happen."""
        anywhere = {
            self.remember: 6, self.remember_only: 2, self.forget: 2, self.remove: 1,
            self.edit: 2, self.undo: 1, self.sync: 5,
        }  # fmt: skip
        by_git = {
            self.note: 4, self.commit_all: 5, self.amend: 1, self.look_back: 3, self.rebase: 4,
            self.reset: 3, self.stash: 3, self.switch: 4, self.merge: 2, self.pick: 1, self.end: 2,
            self.exchange: 2,
        }  # fmt: skip
        actions = anywhere if self.random.random() < 0.5 else by_git
        action = self.random.choices(list(actions), list(actions.values()))[0]
        machine = self.random.choice(self.persons if actions is by_git else self.machines)
        if actions is by_git and not (machine.base / ".git").exists():
            action = self.remember
        self.trace.append(f"{action.__name__} {machine.base.name}")
        action(machine)
        if actions is by_git:
            self.perhaps_sync(machine)

    def settle(self) -> None:
        """Nobody is in the middle of anything, and everyone syncs."""
        self.trace.append("settle")
        for machine in self.persons:
            if not (machine.base / ".git").exists():
                continue
            self.end(machine)
            while self.git(machine, "stash", "pop"):
                pass
            machine.sync()
            self.resolve(machine)
            self.git(machine, "add", "-A", ".")
            self.git(machine, "commit", "-m", "In the end")
            if not self.git(machine, "checkout", "main"):
                self.git(machine, "checkout", "-b", "new")
        for _ in range(3):
            for machine in self.machines:
                machine.synced()

    def check(self) -> None:
        """All the same, everywhere, and nothing missing."""
        if not self.drawn:
            return  # nobody has remembered anything
        ada = self.machines[0]
        left = {token for data in ada.files.values() for token in TOKEN.findall(data)}
        assert self.living - self.put_away() <= left, f"missing: {sorted(self.living - left)}"
        self.returned = self.forgotten & left
        there = content_of(self.remote)
        there.pop(".aiaml-directory", None)  # a person's commit may have it, and be pushed by them
        for machine in self.machines:
            unlike = {name for name, _ in machine.files.items() ^ there.items()}
            assert not unlike, f"{machine.base.name} is unlike the remote: {sorted(unlike)}"
        assert not any(b"<<<<<<<" in data for data in ada.files.values())

    def put_away(self) -> set[bytes]:
        """Return what a person took off the disk with git before sync saw it.

        Theirs has it, if only as what was added and never committed.
        """
        found = set[bytes]()
        for machine in self.persons:
            if (machine.base / ".git").exists():
                words: tuple[str, ...] = ("cat-file", "--batch-all-objects", "--batch")
                if machine.repository == machine.base / ".git":  # sync's: what is lost there counts
                    words = ("log", "-p", "-m", "--format=", "--reflog", "--all")
                found |= set(TOKEN.findall(os.fsencode(git(machine.base, *words))))
        return found - {
            token
            for machine in self.machines
            for token in TOKEN.findall(
                os.fsencode(git(machine.repository, "log", "-p", "-m", "main"))
            )
        }


def run(seed: int, steps: int = STEPS) -> Play:
    """Play one play."""
    with tempfile.TemporaryDirectory(prefix="aiaml-play-", ignore_cleanup_errors=True) as path:
        play = Play(Path(path), seed)
        try:
            for _ in range(steps):
                play.step()
            play.settle()
            play.check()
        except BaseException:
            print(f"seed {seed}:", *play.trace, sep="\n")  # noqa: T201
            traceback.print_exc(file=sys.stdout)
            raise
        return play


@pytest.mark.usefixtures("nobodys_configuration")
def test_what_git_does_deletes_no_memory() -> None:
    """Both machines and the remote end with the same files, and none that was wanted is missing."""
    run(seed=1)


@pytest.mark.slow
@pytest.mark.usefixtures("nobodys_configuration")
@pytest.mark.parametrize("_number", range(PLAYS))
def test_what_git_does_deletes_no_memory_at_random(_number: int) -> None:
    """The same with seeds that nobody has chosen."""
    run(secrets.randbelow(2**32))


def report(seed: int) -> None:
    """Play one play; name what was forgotten and came back, which is no failure."""
    if returned := run(seed).returned:
        print(f"seed {seed}: came back: {sorted(returned)}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main(report)
