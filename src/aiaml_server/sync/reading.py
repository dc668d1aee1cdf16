"""A git repository that is there, to be read: found, examined, asked for commits and objects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aiaml_server.files import check_own
from aiaml_server.sync import address, place
from aiaml_server.sync.command import Git
from aiaml_server.sync.refs import MAIN, name_of

NOBODY = "AIAML"  # whom commits are by where no name is configured


class Reading:
    """The repository of `base` that is ours; until this version made one, the earlier one.

    Attributes:
        base: the base directory.
        directory: git's.
        branch: the full name of the branch that memories are committed to.
        git: runs git in it.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = base / ".git"
        self.branch = MAIN
        self.git = Git(base)

    def find(self) -> bool:
        """Name the repository, so that git looks for no other; say whether there is one."""
        directory = place.directory_of(self.base)
        if directory.is_dir():
            self._use(directory, MAIN)
            return True
        found = place.earlier(self.base)
        if not found or not found[0].is_dir():
            return False
        self._use(*found)
        return bool(self.head())

    def _use(self, directory: Path, branch: str) -> None:
        self.directory, self.branch = directory, branch
        self._check_files()
        self.git.variables["GIT_DIR"] = str(directory)

    def _check_files(self) -> None:
        """See that git will wait for no pipe, and that what is ours in its directory is ours.

        Raises:
            NotOurs: something else is there.
        """
        place.check_files(self.directory)
        if check_own(self.directory / "aiaml", directory=True):
            for name in ("HEAD", "config"):
                check_own(self.directory / "aiaml" / name)
            address.clear(self.directory / "aiaml" / "remote")

    def head(self) -> str:
        """Return the newest commit of our branch; empty where there is none."""
        return self.name_of(f"{self.branch}^{{commit}}")

    def name_of(self, revision: str) -> str:
        """Return the object name that git understands by `revision`; empty where there is none."""
        return name_of(self.git, self.directory, revision)

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
