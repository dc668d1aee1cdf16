"""A person's machine, with its own memory directory and one remote shared with the others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import LockTimeout
from aiaml_server.format.memory import Memory
from aiaml_server.settings import Settings
from aiaml_server.sync import Status
from aiaml_server.sync.cycle import Cycle
from aiaml_server.sync.purge import plan_forgetting
from aiaml_server.sync.repository import locate
from aiaml_server.sync.status import LOCAL_KINDS
from printed import completed, inherited
from waiting import wait_until

# No configuration of the person who runs the tests takes part in them.
CLEAN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}

# What looks like a secret is put together here, so that no scanner takes the tests for a leak.
TOKEN = "ghp_" + "q7Rk2ZmX9bLw" + "T4vN8cHs6YpJ" + "3dGf5QaEu1Wo"


def git(directory: Path, *words: str, data: str | None = None) -> str:
    """Run git as a person would, and return what it prints."""
    done = subprocess.run(
        ["git", *words],
        cwd=directory,
        env={**os.environ, **CLEAN},
        input=data,
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
    )
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def as_person(directory: Path, *words: str) -> str:
    """Run git as a person whose name and address are set."""
    return git(directory, "-c", "user.name=Marco", "-c", "user.email=marco@example.org", *words)


def commit_by_hand(base: Path, message: str, *names: str, who: str = "Marco") -> None:
    """Commit files of a base directory as a person can: in a clone, from which they push."""
    with tempfile.TemporaryDirectory(prefix="aiaml-clone-") as place:
        git(base, "clone", "--quiet", str(locate(base)), place)
        for name in names:
            copy = Path(place, name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes((base / name).read_bytes())
            git(Path(place), "add", "-f", name)
        words = ("-c", f"user.name={who}", "-c", "user.email=marco@example.org")
        git(Path(place), *words, "commit", "--quiet", "--allow-empty", "-m", message)
        git(Path(place), "push", "--quiet", "origin", "HEAD:main")


def append(path: Path, line: str) -> None:
    """Edit a memory as a person does."""
    path.write_bytes(path.read_bytes() + f"{line}\n".encode())


def bare(path: Path) -> Path:
    """Make an empty remote."""
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--bare", "--initial-branch=main")
    return path


class Machine:
    """One computer; its sync runs only when a test calls it.

    Attributes:
        on_deleted: what its person says about deletions that are held: "delete" or "restore".
        purge_sums: what its person wants to be forgotten everywhere.
    """

    def __init__(self, base: Path, remote: Path | str = "", **settings: object) -> None:
        self.base = base
        self.settings = Settings(base, remote=str(remote), sync_interval=0.1, **settings)  # type: ignore[arg-type]
        self.bank = MemoryBank(self.settings)
        self.on_deleted = ""
        self.restart()

    def restart(self) -> None:
        """Forget everything that is not on disk."""
        self.cycle = Cycle(self.settings)
        self.purge_sums = frozenset[str]()

    def remember(self, content: str) -> Memory:
        """Store a memory."""
        return self.bank.remember("claude", "marco", ["test"], content)

    def sync(self, *, local: bool = False) -> Status:
        """Do one cycle, and return how things stand after it."""
        found: list[Status] = []

        def attempt() -> bool:
            with suppress(LockTimeout):  # a child of a killed server may be about to let go
                run = self.cycle.run
                found.append(
                    run(local=local, on_deleted=self.on_deleted, purge_sums=self.purge_sums)
                )
            return bool(found)

        wait_until(attempt)
        self.purge_sums = frozenset()
        return found[0]

    def synced(self) -> Status:
        """Do one cycle that succeeds."""
        status = self.sync()
        if status.problem and status.problem.kind == "not-empty":  # the person does what it says
            git(Path(self.settings.remote), "update-ref", "-d", "refs/heads/main")
            status = self.sync()
        assert status.problem is None, status.problem
        return status

    def commit(self) -> bool:
        """Commit what is new, without the remote; return whether that succeeded."""
        status = self.sync(local=True)
        return status.problem is None or status.problem.kind not in LOCAL_KINDS

    def environment(self, **more: str) -> dict[str, str]:
        """Return what a person's shell has there."""
        return {
            **inherited(),
            **CLEAN,
            "AIAML_MEMORY_DIR": str(self.base),
            "AIAML_GITHUB_REMOTE": self.settings.remote,
            "PYTHONUTF8": "1",
            "COLUMNS": "100",
            **more,
        }

    def aiaml(self, *verb: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a verb there."""
        return completed(
            [sys.executable, "-m", "aiaml_server", *verb], env=self.environment(**more)
        )

    def sums(self, *names: str) -> frozenset[str]:
        """Return by what a memory's versions are known that are to be forgotten everywhere."""
        return plan_forgetting(self.base, names, []).sums

    @property
    def files(self) -> Mapping[str, bytes]:
        """Every memory file and its bytes."""
        directory = self.base / "files"
        return {path.name: path.read_bytes() for path in sorted(directory.glob("*.md"))}

    def path(self, memory: Memory) -> Path:
        """Return where a memory's file is."""
        return self.base / "files" / memory.file_name

    def git(self, *words: str) -> str:
        """Run git in the base directory."""
        return git(self.base, *words)

    @property
    def repository(self) -> Path:
        """The git directory that is sync's alone."""
        return locate(self.base)

    def messages(self, branch: str = "HEAD") -> list[str]:
        """Return the subjects of all commits of a branch, newest first."""
        return git(self.repository, "log", "--format=%s", branch, "--").splitlines()


def content_of(remote: Path, branch: str = "main") -> dict[str, bytes]:
    """Return the memory files that a remote holds."""
    paths = git(remote, "ls-tree", "--name-only", "-z", branch, "files/").split("\0")
    return {
        path.removeprefix("files/"): subprocess.run(
            ["git", "cat-file", "blob", f"{branch}:{path}"],
            cwd=remote,
            capture_output=True,
            check=True,
        ).stdout
        for path in paths
        if path
    }


def settle(machines: list[Machine]) -> None:
    """Let every machine sync until all have the same."""
    for _ in range(2):
        for machine in machines:
            machine.synced()
