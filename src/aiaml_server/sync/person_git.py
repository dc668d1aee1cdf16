"""The person's own git repository: what it does to files does not count as edit or deletion.

A checkout, a rebase or a stash removes files from the disk and writes others. Git writes its index
whenever it does so. That is how such changes are recognised.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.git import Git, GitFailed
from aiaml_server.sync.repository import person_repository

NO_INDEX = -1
_LOCK_SECONDS = 60.0  # no git changes files for longer


class PersonGit:
    """The person's repository in or around a memory directory, if there is one."""

    def __init__(self, base: Path) -> None:
        found = person_repository(base)
        self._directory = _follow(found) if found else None

    def index_time(self) -> int:
        """Return when git last wrote its index, in nanoseconds since 1970.

        It is 0 where there is no repository, and `NO_INDEX` where it has no index.
        """
        if not self._directory:
            return 0
        try:
            return (self._directory / "index").stat().st_mtime_ns
        except OSError:
            return NO_INDEX

    def is_working(self) -> bool:
        """Return whether git may be changing files right now."""
        if self._directory:
            with suppress(OSError):
                started = (self._directory / "index.lock").stat().st_mtime
                return time.time() - started < _LOCK_SECONDS
        return False

    def unmerged(self) -> set[str]:
        """Return the names of files in which a merge has left both sides."""
        if not self._directory:
            return set()
        git = Git(self._directory, {"GIT_DIR": str(self._directory)})
        try:
            output = git.run("ls-files", "--unmerged", "-z")
        except GitFailed:  # the person's repository is damaged, which does not concern sync
            return set()
        return {line.rpartition("/")[2] for line in os.fsdecode(output).split("\0")[:-1]}


def _follow(path: Path) -> Path:
    """Return the git directory that a `.git` is or, as in a worktree, names."""
    with suppress(OSError, MalformedFile):
        text = read_regular(str(path), 4096).decode("utf-8", "surrogateescape")
        if found := re.match(r"gitdir: ([^\0\n]+)", text):
            return path.parent / found[1]
    return path
