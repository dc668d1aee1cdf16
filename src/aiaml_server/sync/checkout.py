"""What a person has checked out in the base directory, beside our branch of memories.

Memories are committed to a branch of their own, which is named and never "the current one". So a
person's branch, index, stash, open commit or look at the past neither waits for us nor we for it.
Three things remain to be done, and are done here:

- A checked-out branch that holds memories and nothing of the person's is moved along with ours, and
  the index with it, so that `git log` and `git status` show what everybody expects.
- What a person commits to such a branch, or to main, is taken over into ours.
- The memories on disk are those of our branch. Where git has put others there, because a person
  checked out something else, that is told from what a person did to the files.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from .command import Command, GitFailed
from .rewrite import FILE
from .union import Entry, is_memory
from .worktree import Unfit, object_name, read

if TYPE_CHECKING:
    from .repository import Repository

log = logging.getLogger(__name__)

MAIN = "refs/heads/main"
BRANCH = "refs/heads/aiaml"  # our own; in a worktree of another repository, with its name
HIDDEN = b"/files/*.md\n"
_OWN = (b".gitignore", b".gitattributes", FILE)
_UNFINISHED = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG",
)  # fmt: skip
_CHECKOUT_SECONDS = 60.0  # git does not change files for longer
_EDITOR_SECONDS = 3600.0  # a commit message is not written for longer

_COMMIT = re.compile(rb"commit(?! \(merge)")

Difference = dict[bytes, tuple[Entry | None, Entry | None]]
"""What differs between two trees: each path's entry before and after."""


class Checkout:
    """What is checked out in the base directory of a repository."""

    def __init__(self, repository: Repository) -> None:
        self._git = repository.git
        self._base = repository.base
        self._directory = repository.directory
        self._ours = repository.branch()
        self._erasure = repository.erasure
        self._note = self._directory / "aiaml" / "checked-out"  # the commit checked out last time
        self._exclude = repository.common / "info" / "exclude"
        self._settled: set[str] = set()  # commits that need not be looked at again
        self._looked_at = ""  # the commit that was checked out when the round began

    # --- asking ---------------------------------------------------------------------------------

    def obstacle(self) -> tuple[str, str]:
        """Say why the files are not to be looked at now, and what to do; empty when they may be.

        Where no memory is in what is checked out, git does nothing to memories.
        """
        if not self._name_of("HEAD:files"):
            return "", ""
        for name in _UNFINISHED:
            if (self._directory / name).exists():
                return f"{name} is in .git: finish what git is doing there, then sync goes on", ""
        if not self._branch() and self._is_elsewhere():
            remedy = f"go back with `git checkout main` in {self._base}; sync goes on by itself"
            return "an older state of the memories is checked out, and no branch", remedy
        return "", ""

    def disturbed(self) -> Difference:
        """Return the memories that git has put on disk, or taken away, since the last time.

        Each with its entry on disk and the one in our branch.
        """
        self._looked_at = self._name_of("HEAD^{commit}")
        touched = self._touched_by_git()
        if not touched:
            return {}
        return {
            path: (there, wanted)
            for path, (there, wanted) in changes(
                self._git, self._looked_at, self._ours, "files"
            ).items()
            if path in touched and is_memory(path) and self._is_on_disk(path, there)
        }

    def is_under_way(self) -> bool:
        """Whether a person's git may be changing files right now."""
        with suppress(OSError):
            begun = (self._directory / "index.lock").stat().st_mtime
            if time.time() - begun < _CHECKOUT_SECONDS and self._name_of("HEAD:files"):
                return True
        return self._name_of("HEAD^{commit}") != self._looked_at

    def start(self) -> str:
        """Return the commit that our branch is to begin with; empty where it begins anew.

        It is the one that is checked out, if that has memories, or nothing but our own files.
        """
        tip = self._name_of("HEAD^{commit}")
        if not tip:
            return ""
        names = {*self._git.ls_tree("-r", "-z", "--name-only", tip).split(b"\0"), b""}
        return tip if names <= {*_OWN, b""} or any(map(is_memory, names)) else ""

    def to_follow(self) -> Iterator[str]:
        """Yield the commits of a person that our branch lacks and is to have.

        These are the memories that were committed to the checked-out branch, and all that was
        committed to main, where that began as a branch of memories.
        """
        branches = (self._branch(), MAIN) if self._name_of(self._ours) else ()
        for branch in dict.fromkeys(branches):
            tip = self._name_of(f"{branch}^{{commit}}") if branch else ""
            if not tip or tip in self._settled or self._was_ours(tip):
                continue
            commit = self._erasure.cleaned(tip)
            if commit and self._is_to_follow(branch, commit):
                yield commit
            self._settled.add(tip)

    def _was_ours(self, tip: str) -> bool:
        """Whether our branch was at a commit; what has since been put on top of others' is not."""
        path = self._exclude.parent.parent / "logs" / self._ours
        return f" {tip} " in _text_of(path)

    def _is_to_follow(self, branch: str, tip: str) -> bool:
        base = self._quiet("merge_base", self._ours, tip)
        if not base or base == tip:
            return False
        persons = _persons(changes(self._git, base, tip))
        if not persons:
            return True
        if branch != MAIN:
            return False
        meanwhile = _persons(changes(self._git, base, self._ours))
        crossed = [p for p in persons.keys() & meanwhile if persons[p] != meanwhile[p]]
        if crossed:
            names = ", ".join(path.decode("utf-8", "replace") for path in sorted(crossed)[:3])
            log.warning("%s changed here and elsewhere; main waits for `git merge aiaml`", names)
        return not crossed

    def _branch(self) -> str:
        """Return the full name of the branch that is checked out; empty where none is."""
        text = _text_of(self._directory / "HEAD")
        if text.startswith("ref: refs/heads/") and not text.endswith("/.invalid"):
            return text.removeprefix("ref: ")
        return self._quiet("symbolic_ref", "--quiet", "HEAD")  # none, or kept in another way

    def _name_of(self, revision: str) -> str:
        return self._quiet("rev_parse", "--verify", "--quiet", revision)

    def _quiet(self, verb: str, *words: str) -> str:
        return quiet(self._git, verb, *words)

    def _is_elsewhere(self) -> bool:
        """Whether other memories are checked out than the last time."""
        known, _ = self._noted()
        now = self._name_of("HEAD^{commit}")
        try:
            return bool(known and now != known and changes(self._git, known, now, "files"))
        except GitFailed:  # that commit was thrown away
            return False

    def _touched_by_git(self) -> set[bytes]:
        """Return the paths in `files` that git itself has changed on disk since the last time.

        Each line of the log of what was checked out has the commits before and after. What a person
        commits was on disk before.
        """
        known, end = self._noted()
        if not known:
            return set()
        log_file = self._directory / "logs" / "HEAD"
        text = log_file.read_bytes() if log_file.is_file() else b""
        if len(text) < end or not text:
            return self._differing([f"{self._name_of('HEAD^{commit}')} {known}"])
        touched = set[bytes]()
        lines = (line.partition(b"\t") for line in text[end:].splitlines())
        moves = [(ends.split(b" "), reason) for ends, _, reason in lines]
        for is_commit, run in groupby(moves, lambda move: bool(_COMMIT.match(move[1]))):
            pairs = [
                b"%s %s" % (ends[1], ends[0])
                for ends, reason in run
                if len(ends) > 1 and ends[0].strip(b"0") and not reason.startswith(b"aiaml: ")
            ]
            paths = self._differing([os.fsdecode(pair) for pair in pairs])
            touched = touched - paths if is_commit else touched | paths
        return touched

    def _differing(self, pairs: Sequence[str]) -> set[bytes]:
        """Return the paths in `files` that differ between any two commits in the same line."""
        if not pairs:
            return set()
        words = ("--stdin", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id")
        lines = "".join(f"{pair}\n" for pair in dict.fromkeys(pairs)).encode()
        return set(self._git.diff_tree(*words, "--", "files", istream=lines).split(b"\0"))

    def _noted(self) -> tuple[str, int]:
        """Return what was checked out last time, and how long the log of that was."""
        commit, _, length = _text_of(self._note).partition(" ")
        return commit, int(length or 0)

    def _is_on_disk(self, path: bytes, entry: Entry | None) -> bool:
        try:
            data = read(self._base / os.fsdecode(path))
        except Unfit:
            return False
        if data is None or entry is None:
            return data is None and entry is None
        return object_name(data, entry.oid) == entry.oid

    # --- doing ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Have our branch begin, where there is something to begin with."""
        if not self._name_of(self._ours) and (start := self.start()):
            self._git.update_ref("-m", "aiaml: begin", self._ours, start)

    def bring_along(self, apart: Container[bytes]) -> None:
        """Move the checked-out branch to ours, with the index, where nothing of a person is in it.

        What keeps the person's git from being disturbed may also put it off to a later round.

        Args:
            apart: memories on disk that are not as they are committed.
        """
        length = self._log_length()
        branch, ours = self._branch(), self._name_of(self._ours)
        tip = self._name_of("HEAD^{commit}")
        is_ours = branch == self._ours  # moved already, under the person's index
        known = self._noted()[0] if is_ours else tip
        if not (self._directory / "index").exists():
            known = ""
        if branch and ours and known != ours:
            new = changes(self._git, known or empty_tree(self._git), ours)
            if self._is_free(branch, tip, new) and self._put_in_index(new, apart):
                if not is_ours:
                    words = (branch, ours, tip or "0" * len(ours))
                    self._git.update_ref("-m", "aiaml: bring along", *words)
                tip = self._looked_at = ours
            elif is_ours:
                return
        if tip == self._looked_at:
            self._take_note(tip, length)
        self._hide(bool(ours) and tip != ours)

    def _hide(self, hidden: bool) -> None:
        """Have git overlook the memories that what is checked out does not have, or see them.

        Otherwise they stand in the way of a person's `git checkout`, are taken by `git add .`, and
        removed by `git clean`. The line is the first, so that the person's own lines decide.
        """
        text = self._exclude.read_bytes()
        if (HIDDEN in text) != hidden:
            self._exclude.write_bytes(HIDDEN + text if hidden else text.replace(HIDDEN, b""))

    def _take_note(self, tip: str, length: int) -> None:
        if (tip, length) != self._noted():
            self._note.parent.mkdir(exist_ok=True)
            self._note.write_text(f"{tip} {length}", encoding="ascii")

    def _log_length(self) -> int:
        with suppress(OSError):
            return (self._directory / "logs" / "HEAD").stat().st_size
        return 0

    def cut_logs(self) -> None:
        """Take from git's logs what does not lead to where our branches are now.

        These are ours and the one that is moved along. A person's own are left as they are.
        """
        tip = self._name_of("HEAD^{commit}")
        along = tip == self._name_of(self._ours)
        for name in (self._ours, *((self._branch(), "HEAD") if along else ())):
            if name:
                with suppress(GitFailed):  # there is none
                    self._git.reflog("expire", "--expire=never", "--expire-unreachable=now", name)
        if along:
            self._take_note(tip, self._log_length())

    def _is_free(self, branch: str, tip: str, new: Difference) -> bool:
        """Whether the branch can be moved without disturbing a person."""
        if self._is_in_use():
            return False
        old = self._erasure.cleaned(tip)
        if old and not self._was_ours(tip) and self._quiet("merge_base", self._ours, old) != old:
            return False
        if branch == self._ours:
            return True
        return self._may_leave_away(branch, new) and not self._has_persons_files()

    def _has_persons_files(self) -> bool:
        """Whether the index has a file of the person's, besides those that are hidden."""
        words = ("-t", "-z", "--", ".", ":(exclude)files/*.md")
        entries = self._git.ls_files(*words, env={"GIT_LITERAL_PATHSPECS": "0"}).split(b"\0")
        return any(e and not e.startswith(b"S ") and e[2:] not in _OWN for e in entries)

    def _is_in_use(self) -> bool:
        """Whether a git of the person's is under way, as while they write a commit's message."""
        if any((self._directory / name).exists() for name in ("index.lock", *_UNFINISHED)):
            return True
        with suppress(OSError):
            begun = (self._directory / "COMMIT_EDITMSG").stat().st_mtime
            ended = (self._directory / "logs" / "HEAD").stat().st_mtime
            return begun > ended and time.time() - begun < _EDITOR_SECONDS
        return False

    def _may_leave_away(self, branch: str, new: Difference) -> bool:
        """Whether none of what is no memory is of this machine, so that it need not be on disk."""
        names = [os.fsdecode(path) for path, after in _persons(new).items() if after]
        if not names:
            return True
        if not self._is_made_by_us() or any(os.path.lexists(self._base / name) for name in names):
            return False
        branches = self._git.for_each_ref("--format=%(refname)", "refs/heads").decode().split()
        return not any(
            self._git.ls_tree("-z", "--name-only", other, "--", *names)
            for other in branches
            if other not in (branch, self._ours)
        )

    def _is_made_by_us(self) -> bool:
        return "aiaml/remote" in _text_of(self._exclude.parent.parent / "config")

    def _put_in_index(self, new: Difference, apart: Container[bytes]) -> bool:
        """Let the index know what our branch has; say whether it could be locked.

        Where there is no such file, git is told not to miss it.
        """
        here, elsewhere, missing = [], [], []
        linked = (self._base / "files").is_symlink()  # git sees nothing behind it
        for path, (before, after) in new.items():
            is_here = os.path.lexists(self._base / os.fsdecode(path))
            is_here = is_here and not (linked and is_memory(path))
            if after and is_here and is_memory(path) and path not in apart:
                here.append(path)
                continue
            mode, oid = after or (b"0", b"0" * len(before.oid if before else b""))
            elsewhere.append(b"%s %s 0\t%s" % (mode, oid, path))
            if after and not is_here:
                missing.append(path)
        try:
            for words, lines in (
                (("--index-info",), elsewhere),
                (("--skip-worktree", "--stdin"), missing),
                (("--add", "--remove", "--stdin"), here),
            ):
                if lines:
                    data = b"\0".join((*lines, b""))
                    self._git.update_index("-z", *words, istream=data)
        except GitFailed as error:
            if "index.lock" not in error.output:
                raise
            return False
        return True


def changes(git: Command, old: str, new: str, *within: str) -> Difference:
    """Return what differs between two trees, everywhere or within some paths."""
    words = ("-r", "-z", "--raw", "--no-renames", old, new, "--", *within)
    fields = git.diff_tree(*words).split(b"\0")
    found = {}
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = meta[1:].split(b" ")
        found[path] = (_entry(old_mode, old_oid), _entry(new_mode, new_oid))
    return found


def empty_tree(git: Command) -> str:
    """Return the name of the tree without files."""
    return os.fsdecode(git.mktree(istream=b"")).strip()


def quiet(git: Command, verb: str, *words: str) -> str:
    """Ask for a name that may not be there; empty where it is not.

    Raises:
        GitFailed: git could not tell.
    """
    try:
        return os.fsdecode(getattr(git, verb)(*words)).strip()
    except GitFailed as error:
        if error.output:
            raise
        return ""


def _persons(found: Mapping[bytes, tuple[Entry | None, Entry | None]]) -> dict[bytes, Entry | None]:
    """Return what is neither a memory nor a file that we put beside them, as it is after."""
    return {
        path: after
        for path, (_, after) in found.items()
        if not is_memory(path) and path not in _OWN
    }


def _entry(mode: bytes, oid: bytes) -> Entry | None:
    return Entry(mode, oid) if mode.strip(b"0") else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
