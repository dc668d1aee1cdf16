"""The person's own git beside ours: what it does to the files is no wish to edit or forget.

A checkout, a rebase or a stash takes files off the disk and puts others there. Git writes its index
whenever it does, so an index that has changed says enough.
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

_LOCK_SECONDS = 60.0  # no git changes files for longer


class PersonGit:
    """The person's repository in or around a memory directory, if there is one."""

    def __init__(self, base: Path) -> None:
        found = person_repository(base)
        self._git_directory = _follow(found) if found else None

    def index_state(self) -> str:
        """Return what changes whenever their git may have changed files; empty without one."""
        if not self._git_directory:
            return ""
        try:
            status = (self._git_directory / "index").stat()
        except OSError:
            return "no index"
        return f"{status.st_mtime_ns} {status.st_size}"

    def changed_at(self) -> int:
        """Return when it last changed its index, in nanoseconds since 1970."""
        with suppress(OSError, TypeError):
            assert self._git_directory  # noqa: S101
            return (self._git_directory / "index").stat().st_mtime_ns
        return time.time_ns()

    def is_working(self) -> bool:
        """Return whether their git may be changing files right now."""
        if not self._git_directory:
            return False
        with suppress(OSError):
            started = (self._git_directory / "index.lock").stat().st_mtime
            return time.time() - started < _LOCK_SECONDS
        return False

    def unmerged(self) -> set[str]:
        """Return the names of files in which a merge of theirs left both sides."""
        if not self._git_directory or not (self._git_directory / "index").exists():
            return set()
        git = Git(self._git_directory, {"GIT_DIR": str(self._git_directory)})
        try:
            output = git.run("ls-files", "--unmerged", "-z")
        except GitFailed:  # their repository is damaged, which is not our problem
            return set()
        return {line.rpartition("/")[2] for line in os.fsdecode(output).split("\0")[:-1]}


def _follow(path: Path) -> Path:
    """Return the git directory that a `.git` is or, as in a worktree, names."""
    with suppress(OSError, MalformedFile):
        text = read_regular(str(path), 4096).decode("utf-8", "surrogateescape")
        if found := re.match(r"gitdir: ([^\0\n]+)", text):
            return path.parent / found[1]
    return path
