"""A git repository that is there, to be read: found, examined, asked for commits and objects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.files import check_end, check_own

from . import address
from .command import Git
from .refs import BRANCH, name_of, written

NOBODY = "AIAML"  # whom commits are by where no name is configured

# What git reads unasked, and waits for.
_READ_HERE = (".gitattributes", ".gitignore", "files/.gitattributes", "files/.gitignore")
_READ_THERE = (
    *("HEAD", "commondir", "config", "config.worktree", "index", "packed-refs", "shallow"),
    *("info/attributes", "info/exclude", "info/grafts", "logs/HEAD", "aiaml/moves"),
    *("objects/info/alternates", "objects/info/commit-graph", "objects/pack/multi-pack-index"),
)


class Reading:
    """The repository in `base`: its own, also where that lies inside another one.

    Attributes:
        base: the base directory.
        directory: git's, of this worktree.
        common: the same but in a worktree of another repository.
        git: runs git in it.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = base / ".git"
        self.common = self.directory
        self.git = Git(base)

    def find(self) -> bool:
        """Name the repository, so that git looks for no other; say whether there is one."""
        if not (self.base / ".git").exists():
            return False
        self.directory, self.common = address.git_directories(self.base)
        self._check_files()
        self.git.variables["GIT_DIR"] = str(self.directory)
        self.git.variables["GIT_WORK_TREE"] = str(self.base)
        return True

    def _check_files(self) -> None:
        """See that git will wait for no pipe, and that what is ours in its directory is ours.

        Raises:
            NotOurs: something else is there.
        """
        places = {self.base: _READ_HERE, self.directory: _READ_THERE, self.common: _READ_THERE}
        for directory, names in places.items():
            for name in names:
                check_end(directory / name)
        for place, _, refs in os.walk(self.common / "refs"):
            for name in refs:
                check_end(Path(place, name))
        if check_own(self.common / "aiaml", directory=True):
            for name in ("HEAD", "config"):
                check_own(self.common / "aiaml" / name)
            address.clear(self.common / "aiaml" / "remote")

    def head(self) -> str:
        """Return the newest commit of our branch, or the one that it is to begin with.

        Empty where it is to begin anew.
        """
        return self.name_of(f"{self.branch()}^{{commit}}") or self._start()

    def _start(self) -> str:
        """Return the commit that our branch is to begin with, where there is none of it yet."""
        from .repository import Repository  # noqa: PLC0415 (hardly ever needed)

        repository = Repository(self.base)
        return repository.head() if repository.find() else ""

    def heads(self) -> list[str]:
        """Return that commit, and the one that is checked out where it has memories, too."""
        ours = written(self.directory, self.common, self.branch())
        if ours and ours == written(self.directory, self.common, "HEAD"):
            return [ours]  # as nearly always, and no process of git was needed
        asked = f"{self.branch()}^{{commit}}\nHEAD:files\nHEAD^{{commit}}\n".encode()
        answers = self.git.run("cat-file", "--batch-check", stdin=asked).decode().splitlines()
        found = ("" if each.endswith("missing") else each.split()[0] for each in answers)
        ours, files, checked_out = found
        return list(dict.fromkeys(filter(None, (ours or self.head(), files and checked_out))))

    def branch(self) -> str:
        """Return the full name of the branch that memories are committed to."""
        if self.directory == self.common:
            return BRANCH
        return f"{BRANCH}-{self.directory.name}"  # one of several worktrees

    def name_of(self, revision: str) -> str:
        """Return the object name that git understands by `revision`; empty where there is none."""
        return name_of(self.git, self.directory, self.common, revision)

    def objects(self, oids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what objects hold, by their names."""
        if not oids:
            return {}
        asked = b"".join(oid + b"\n" for oid in oids)
        return _parted(self.git.run("cat-file", "--batch", stdin=asked))


def _parted(output: bytes) -> dict[bytes, bytes]:
    """Return the objects in what `git cat-file --batch` printed, by their names."""
    blobs, start = {}, 0
    while start < len(output):
        head, _, _ = output[start : start + 100].partition(b"\n")
        oid, _, size = head.split(b" ")
        start += len(head) + 1
        blobs[oid] = output[start : start + int(size)]
        start += int(size) + 1
    return blobs
