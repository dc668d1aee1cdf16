"""A person's own git, where they have one beside ours: what it does to files is no wish of theirs.

A checkout, a rebase or a stash takes files off the disk and puts others there. Which ones is not
asked: git writes its index whenever it does, so that one that is not as it was says enough.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from aiaml_server.files import check_own, make_own_directory, read_own, replace_atomic
from aiaml_server.storage.store import Stamp
from aiaml_server.sync import place
from aiaml_server.sync.command import Git, GitFailed

_LOCK_SECONDS = 60.0  # git does not change files for longer
_MOST = 1024  # bytes of the note


class Theirs:
    """The index of the person's repository in `base` or around it, and how far it is dealt with."""

    def __init__(self, base: Path, note: Path) -> None:
        """Use the file `note` for what was dealt with."""
        self._base = base
        self._note = note

    def state(self) -> str:
        """Return what changes when the index does; empty where there is none."""
        index = self._index()
        with suppress(OSError):
            return ",".join(map(str, Stamp.of(index.stat()))) if index else ""
        return ""

    def moved(self) -> int:
        """Return when it last may have changed files, in ns since 1970; 0 if all is dealt with."""
        if self.state() == self._noted():
            return 0
        index = self._index()
        with suppress(OSError):
            return index.stat().st_mtime_ns if index else time.time_ns()
        return time.time_ns()

    def is_at_work(self, since: str) -> bool:
        """Whether their git may be changing files, or did since a state."""
        index = self._index()
        with suppress(OSError):
            if index:
                begun = index.with_name("index.lock").stat().st_mtime
                if time.time() - begun < _LOCK_SECONDS:
                    return True
        return self.state() != since

    def unmerged(self, git: Git) -> set[bytes]:
        """Return the names of the files in which a merge of theirs has left both sides.

        One without a name stands for those that git cannot tell.
        """
        index = self._index()
        if not index or not index.exists():
            return set()
        its = {"GIT_DIR": str(index.parent)}
        try:
            found = git.run("ls-files", "--unmerged", "-z", variables=its)
        except GitFailed:  # their repository is damaged, which is no fault of ours
            return {b""}
        return {line.rpartition(b"/")[2] for line in found.split(b"\0")[:-1]}

    def note(self, state: str) -> None:
        """Note that all up to a state is dealt with."""
        if state != self._noted():
            make_own_directory(self._note.parent)
            replace_atomic(self._note, state.encode(), 0o600)

    def _noted(self) -> str:
        noted = read_own(self._note, _MOST) if check_own(self._note) else b""
        return noted.decode("utf-8", "replace")

    def _index(self) -> Path | None:
        found = place.persons(self._base)
        return place.git_directories(found)[0] / "index" if found else None
