"""What a person's git did to the files since the last time, as git's own logs tell.

A checkout, a rebase, a reset or a stash takes files off the disk and puts others there. None of it
is a person's wish about a memory. Which files it was is not asked: that git moved at all is enough
to bring back what is missing.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiaml_server.files import own_directory, replace_atomic
from aiaml_server.store import Stamp

from .messages import REASON

UNFINISHED = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG",
)  # fmt: skip
"""What is in git's directory while it is in the middle of something."""

_LOCK_SECONDS = 60.0  # git does not change files for longer
_TAIL = 4096  # bytes, of which the last line is found
_REST_SECONDS = 0.3  # from the last change of files to the line in the log

_LINE = re.compile(rb"[0-9a-f]+ ([0-9a-f]+) [^\t]*\t?(.*)")
# After a commit the disk is as before. These two also change files, and are a person's word.
_COMMITTED = rb"commit( \(amend\))?:"
_WANTED = rb"(commit( \(\w+\))?|revert|cherry-pick):"
_OURS = (REASON.encode(), b"fast-import")


class State(NamedTuple):
    """How far git's logs went at some moment.

    Attributes:
        end: the length of the log of what was checked out, and its last line.
        branch: what is checked out; a new branch without a commit is in no log.
        stash: the stamp of the log of what was stashed.
        sparse: the stamp of the file that says what a sparse checkout leaves away.
        staged: the stamp of the index.
    """

    end: tuple[int, bytes]
    branch: str
    stash: str
    sparse: str
    staged: str


class Moves(NamedTuple):
    """What git did between two states.

    Attributes:
        last: when it last changed files, in nanoseconds since 1970; 0 where it changed none.
        wrote: whether it put files there that the person did not ask for.
        commits: what was checked out meanwhile.
    """

    last: int
    wrote: bool
    commits: frozenset[str]


NONE = Moves(0, wrote=False, commits=frozenset())


class Journal:
    """git's logs in `directory`, and how far they are dealt with."""

    def __init__(self, directory: Path, common: Path) -> None:
        """Read the logs of the git directory; what is stashed is in the `common` one."""
        self._directory = directory
        self._head = directory / "HEAD"
        self._log = directory / "logs" / "HEAD"
        self._stash = common / "logs" / "refs" / "stash"
        self._sparse = directory / "info" / "sparse-checkout"
        self._index = directory / "index"
        self._note = directory / "aiaml" / "moves"

    def state(self) -> State:
        """Return how things are now."""
        start, tail = _from(self._log, -_TAIL)
        line = tail[tail.rfind(b"\n", 0, -1) + 1 :]
        branch = _bytes(self._head).split()[-1:] if _bytes(self._head).startswith(b"ref:") else []
        rest = (_stamp(path) for path in (self._stash, self._sparse, self._index))
        return State((start + len(tail), line), os.fsdecode(b"".join(branch)), *rest)

    def moves(self) -> Moves:
        """Return what happened that is not dealt with yet; all, where that is not known."""
        noted, now = self._noted(), self.state()
        if noted == now:
            return NONE
        theirs = self._since(noted) if noted else None
        if not noted or theirs is None:
            return Moves(time.time_ns(), wrote=True, commits=frozenset())
        times = [
            _modified(path)
            for path, has_moved in (
                (self._log, not all(re.match(_COMMITTED, why) for _, why in theirs)),
                (self._head, noted.branch != now.branch),
                (self._stash, noted.stash != now.stash),
                (self._sparse, noted.sparse != now.sparse),
                (self._index, not now.end[0] and noted.staged != now.staged),  # no log
            )
            if has_moved
        ]
        return Moves(
            max(times, default=0),
            wrote=not all(re.match(_WANTED, why) for _, why in theirs),
            commits=frozenset(commit for commit, _ in theirs),
        )

    def _since(self, state: State) -> list[tuple[str, bytes]] | None:
        """Return what the log says of others than us: what they checked out, and why.

        None where the log is not the one of that time.
        """
        length, line = state.end
        _, text = _from(self._log, length - len(line))
        lines = _lines(text[len(line) :])
        if not text.startswith(line) or len(lines) < text.count(b"\n", len(line)):
            return None
        return [(commit, why) for commit, why in lines if not why.startswith(_OURS)]

    def has_commits(self) -> bool:
        """Whether a person has committed anything here, as far as the log goes back."""
        return any(re.match(_COMMITTED, why) for _, why in _lines(_bytes(self._log)))

    def is_under_way(self, since: State) -> bool:
        """Whether git may be changing files, or did since a state."""
        with suppress(OSError):
            begun = (self._directory / "index.lock").stat().st_mtime
            if time.time() - begun < _LOCK_SECONDS:
                return True
        return self.state() != since

    def rest(self) -> None:
        """Let a git that has just changed files come to tell of it in its log."""
        noted, now = self._noted(), self.state()
        if not noted or noted.staged != now.staged:
            with suppress(OSError):
                age = time.time() - self._index.stat().st_mtime
                time.sleep(min(max(_REST_SECONDS - age, 0), _REST_SECONDS))

    def note(self, state: State) -> None:
        """Note that all up to a state is dealt with."""
        if state != self._noted():
            own_directory(self._note.parent)
            (length, line), *rest = state
            words = map(os.fsencode, (str(length), *rest))
            replace_atomic(self._note, b" ".join(words) + b"\n" + line, 0o600)

    def pass_over(self, since: State) -> None:
        """Note what we did ourselves since a state, unless there is something else to deal with."""
        if self._noted() == since and self._since(since) == []:
            self.note(self.state())

    def _noted(self) -> State | None:
        head, _, line = _bytes(self._note).partition(b"\n")
        words = os.fsdecode(head).split(" ")
        if len(words) != len(State._fields) or not words[0].isdecimal():
            return None
        return State((int(words[0]), line), *words[1:])


def moved_by_others(log: Path) -> str:
    """Return where we left a branch, by its log; empty where nobody has moved it since."""
    lines = _lines(_from(log, -_TAIL)[1])
    if lines and lines[-1][1].startswith(_OURS):
        return ""
    ours = [commit for commit, why in _lines(_bytes(log)) if why.startswith(_OURS)]
    return ours[-1] if ours else ""


def _lines(text: bytes) -> list[tuple[str, bytes]]:
    """Return what each line of a log says: where to, and why."""
    matches = [_LINE.fullmatch(line) for line in text.splitlines()]
    return [(match[1].decode(), match[2]) for match in matches if match]


def _bytes(path: Path) -> bytes:
    return _from(path, 0)[1]


def _from(path: Path, start: int) -> tuple[int, bytes]:
    """Return what a file holds from a place on, or from its end if that is negative; and where."""
    try:
        with path.open("rb") as file:
            start = max(start + file.seek(0, os.SEEK_END), 0) if start < 0 else start
            file.seek(start)
            return start, file.read()
    except OSError:
        return 0, b""


def _stamp(path: Path) -> str:
    try:
        return ",".join(map(str, Stamp.of(path.stat())))
    except OSError:
        return "-"


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return time.time_ns()
