"""What is forgotten everywhere: kept in mind on this machine, and kept out of its history.

The marks stand in `aiaml/erased` of git's directory, and in a file of every tree of ours, by which
other machines learn of them. From the moment when they are written, all else follows at any round,
whatever comes between: a history that has something of it, ours or another machine's, is rewritten
before the two are joined.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from aiaml_server.files import make_own_directory, remove_own, replace_atomic
from aiaml_server.sync.command import Git
from aiaml_server.sync.forgetting.rewrite import FILE, Marks, mark, marks_in, with_copies, without
from aiaml_server.sync.place import bytes_of, notes_of
from aiaml_server.sync.stream import EXPORTED, Commit, exported
from aiaml_server.sync.trees import sizes

log = logging.getLogger(__name__)

_MOST = 16 * 1024 * 1024  # bytes of a list of marks
_SECONDS = 3600.0  # for one call: many large listings are made anew
_KNOWN = 32  # commits of which it is kept in mind whether they have something of it


def erased(directory: Path) -> Marks:
    """Return the marks of what is forgotten everywhere, as this machine knows them."""
    return marks_in(bytes_of(directory / "aiaml" / "erased", _MOST))


def erased_in(base: Path) -> Marks:
    """Return the same for a base directory, wherever its repository lies."""
    return erased(notes_of(base))


class Left(NamedTuple):
    """What the old history has left in the repository.

    Attributes:
        tips: commits that were rewritten, with all before them.
        files: the objects that are to be gone.
    """

    tips: frozenset[bytes]
    files: frozenset[bytes]


class Erasure:
    """What is forgotten everywhere, for one repository; used by one thread."""

    def __init__(self, git: Git, directory: Path) -> None:
        self._git = git
        self._place = directory / "aiaml"
        self.marks: Marks = frozenset()
        self._now: dict[str, str] = {}  # what was looked at, and what is to take its place
        self._told: dict[str, Marks] = {}
        self.load()

    # --- what is forgotten ----------------------------------------------------------------------

    def load(self) -> None:
        """Read what any process of this machine has noted."""
        marks = erased(self._place.parent)
        if marks != self.marks:
            self.marks = marks
            known, *lines = self._read("erased-now").decode().splitlines() or [""]
            pairs = [line.split(" ") for line in lines] if known == _sum(marks) else []
            there = present(self._git, (new.encode() for _, new in pairs))
            self._now = {old: new for old, new in pairs if new.encode() in there}

    def add(self, marks: Iterable[bytes]) -> None:
        """Note more of it, durably.

        Raises:
            OSError: the disk refused.
        """
        if new := self.marks.union(marks) - self.marks:
            self._write("erased", b"".join(each + b"\n" for each in sorted(self.marks | new)))
            self.load()

    def told_by(self, commit: str) -> Marks:
        """Return the marks that a commit's tree has for all machines."""
        if not commit:
            return frozenset()
        if commit not in self._told:
            line = self._git.run("ls-tree", "-l", commit, "--", FILE.decode())
            fields = line.split(None, 4)
            small = len(fields) == 5 and fields[3].isdigit() and int(fields[3]) <= _MOST
            text = self._git.run("cat-file", "blob", fields[2].decode()) if small else b""
            self._told = {**dict(list(self._told.items())[-_KNOWN:]), commit: marks_in(text)}
        return self._told[commit]

    # --- histories ------------------------------------------------------------------------------

    def history(self, commit: str, *known: str) -> Sequence[Commit]:
        """Return the commits up to one, but those that lead to known ones; parents come first."""
        excluded = [f"^{each}" for each in known]
        words = ("--ignore-missing", commit, *excluded)
        return list(exported(self._git.run("fast-export", *EXPORTED, *words, seconds=_SECONDS)))

    def cleaned(self, commit: str) -> str:
        """Return a commit whose history has nothing of what is forgotten; empty for none.

        It is the same one where that is so already.
        """
        if not self.marks or not commit:
            return commit
        if commit not in self._now:
            history = self.history(commit, *dict.fromkeys(self._now.values()))
            self.add(with_copies(history, self.marks))
            found = without(history, self.marks)
            if found.commits:
                log.info("Rewriting %d commits", found.commits)
                files = {oid for _, oid in found.taken if oid}
                self.leave(self.left().tips | {commit.encode()}, self.left().files | files)
            new = found.tip if found.commits else commit
            if found.stream:
                words = ("--quiet", "--done", "--force")
                made = self._git.run("fast-import", *words, stdin=found.stream, seconds=_SECONDS)
                new = made.decode().strip()
            self._note(commit, new)
        left = self.left()
        if self._now[commit] != commit and commit.encode() not in left.tips:
            self.leave(left.tips | {commit.encode()}, left.files)  # a fetch may bring it anew
        return self._now[commit]

    def is_clean(self, commit: str) -> bool:
        """Whether a history has nothing of what is forgotten."""
        return self.cleaned(commit) == commit

    def _note(self, old: str, new: str) -> None:
        pairs = [*self._now.items(), (old, new), *([(new, new)] if new else [])]
        self._now = dict(pairs[-_KNOWN:])
        lines = [_sum(self.marks), *(f"{old} {new}" for old, new in self._now.items() if new)]
        self._write("erased-now", "".join(f"{line}\n" for line in lines).encode())

    def settle(self, commit: str) -> None:
        """Note that the remote has this commit, by which it may have heard of all that."""
        if self.marks and not self.is_settled() and self.marks <= self.told_by(commit):
            self._write("erased-told", _sum(self.marks).encode())

    def is_settled(self) -> bool:
        """Whether the remote had no history with anything of it, until it came back."""
        return self._read("erased-told") == _sum(self.marks).encode()

    # --- what is left of it ---------------------------------------------------------------------

    def left(self) -> Left:
        """Return what is still to be removed from the repository."""
        lines = [line.split(b" ") for line in self._read("erased-left").splitlines()]
        named = [(words[0], words[1]) for words in lines if len(words) == 2]
        return Left(
            frozenset(oid for kind, oid in named if kind == b"tip"),
            frozenset(oid for kind, oid in named if kind == b"file"),
        )

    def leave(self, tips: Iterable[bytes], files: Iterable[bytes]) -> None:
        """Note what is still to be removed.

        Raises:
            OSError: the disk refused.
        """
        lines = [b"tip " + each for each in sorted(tips)]
        lines += [b"file " + each for each in sorted(files)]
        self._write("erased-left", b"".join(line + b"\n" for line in lines))

    def has_tried(self, state: bytes) -> bool:
        """Whether nothing more could be removed in this state of the repository."""
        return self._read("erased-tried") == mark(state)

    def tried(self, state: bytes) -> None:
        """Note that nothing more can be removed until this state is another."""
        self._write("erased-tried", mark(state))

    def _read(self, name: str) -> bytes:
        return bytes_of(self._place / name, _MOST)

    def _write(self, name: str, data: bytes) -> None:
        make_own_directory(self._place)
        if data:
            replace_atomic(self._place / name, data, 0o600)
        else:
            remove_own(self._place / name)


def present(git: Git, names: Iterable[bytes]) -> set[bytes]:
    """Return which objects there are."""
    return set(sizes(git, names))


def _sum(marks: Marks) -> str:
    return mark(b"".join(sorted(marks))).decode()
