"""What a person has checked out in the base directory, beside our branch of memories.

Memories are committed to a branch of their own, which is named and never "the current one". So a
person's branch, index, stash, open commit or look at the past neither waits for us nor we for it.
Three things remain to be done, and are done here:

- A checked-out branch that holds memories and nothing of the person's is moved along with ours, and
  the index with it, so that `git log` and `git status` show what everybody expects.
- What a person commits to such a branch, or to main, is taken over into ours.
- The memories on disk are those of our branch. Where git has put others there, because a person
  checked out something else (`moves.py`), that is no wish of theirs.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.errors import NotOurs
from aiaml_server.files import check_own, own_directory, read_own, replace_atomic
from aiaml_server.store import Stamp

from .command import Git, GitFailed
from .messages import BEGIN, BRING_ALONG
from .moves import NONE, UNFINISHED, Journal, moved_by_others
from .refs import quiet
from .rewrite import FILE
from .union import Entry, is_memory

if TYPE_CHECKING:
    from .repository import Repository

log = logging.getLogger(__name__)

_MOST_RULES = 1024 * 1024  # bytes of `.git/info/exclude`

MAIN = "refs/heads/main"
HIDDEN = b"/files/*.md\n"
_OWN = (b".gitignore", b".gitattributes", FILE)
_EDITOR_SECONDS = 3600.0  # a commit message is not written for longer

# What `git ls-files -t -z` says: M of a conflict, S of what is hidden.
_CONFLICT = re.compile(rb"(?:\0|\A)M files/")
_PERSONS = re.compile(
    rb"(?:\0|\A)[^S] (?!files/[^\0]*\.md\0|(?:%s)\0)" % b"|".join(map(re.escape, _OWN))
)

Difference = dict[bytes, tuple[Entry | None, Entry | None]]
"""What differs between two trees: each path's entry before and after."""


class Checkout:
    """What is checked out in the base directory of a repository."""

    def __init__(self, repository: Repository) -> None:
        self._git = repository.git
        self._base = repository.base
        self._directory = repository.directory
        self._ours = repository.branch()
        self._name_of = repository.name_of
        self._tree = repository.tree
        self._changes = repository.changes
        self._erasure = repository.erasure
        self.journal = Journal(repository.directory, repository.common)
        self._note = self._directory / "aiaml" / "checked-out"  # the commit checked out last time
        self._exclude = repository.common / "info" / "exclude"
        self._settled: set[str] = set()  # commits that need not be looked at again
        self._asked_of = ("", False)  # a commit, and whether it has memories
        self._index: tuple[str, bytes] = ("", b"")  # an index, and what is in it
        self._looked_at = ""  # the commit that was checked out when the round began

    # --- asking ---------------------------------------------------------------------------------

    def obstacle(self) -> tuple[str, str]:
        """Say why the files are not as they were, and what to do; empty where they are.

        Where no memory is in what is checked out, git does nothing to memories.
        """
        self._looked_at = self._name_of("HEAD^{commit}")
        if not self._has_memories(self._looked_at):
            return "", ""
        for name in UNFINISHED:
            if (self._directory / name).exists():
                return f"{name} is in .git: finish what git is doing there, then sync goes on", ""
        if not self._branch() and self._is_elsewhere():
            remedy = f"go back with `git checkout main` in {self._base}; sync goes on by itself"
            return "an older state of the memories is checked out, and no branch", remedy
        return "", ""

    def _has_memories(self, commit: str) -> bool:
        if commit != self._asked_of[0]:
            self._asked_of = commit, bool(commit and self._tree(commit))
        return self._asked_of[1]

    def is_born(self) -> bool:
        """Whether a commit is checked out."""
        return bool(self._looked_at)

    def is_ours_in_use(self) -> bool:
        """Whether our own branch is checked out, or being rebased: a commit would be in the way."""
        rebased = (
            self._directory / name / "head-name" for name in ("rebase-merge", "rebase-apply")
        )
        return self._ours in (self._branch(), *map(_text_of, rebased))

    def start(self) -> str:
        """Return the commit that our branch is to begin with; empty where it begins anew.

        It is the one that is checked out, if that has memories, or nothing but our own files.
        """
        tip = self._name_of("HEAD^{commit}")
        if not tip:
            return ""
        names = {*self._git.run("ls-tree", "-r", "-z", "--name-only", tip).split(b"\0"), b""}
        return tip if names <= {*_OWN, b""} or any(map(is_memory, names)) else ""

    def checked_out(self) -> dict[bytes, bytes]:
        """Return the memories that are checked out, with the names of their objects."""
        if not self._name_of("HEAD:files"):
            return {}
        entries = tree(self._git, "HEAD")
        return {path: entry.oid for path, entry in entries.items()}

    def before_others(self) -> str:
        """Return where we left our branch, if a person has moved it since; else empty."""
        path = self._exclude.parent.parent / "logs" / self._ours
        tip, left = self._name_of(self._ours), moved_by_others(path)
        if not left or tip in self._settled:
            return ""
        self._settled.add(tip)
        if self._branch() == self._ours:
            self._take_note(tip)  # which the index is up to
        return self._name_of(f"{left}^{{commit}}")

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
        base = self._quiet("merge-base", self._ours, tip)
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
        return self._quiet("symbolic-ref", "--quiet", "HEAD")  # none, or kept in another way

    def _quiet(self, verb: str, *words: str) -> str:
        return quiet(self._git, verb, *words)

    def _is_elsewhere(self) -> bool:
        """Whether other memories are checked out than the last time."""
        known = self._noted()
        now = self._name_of("HEAD^{commit}")
        try:
            return bool(known and now != known and changes(self._git, known, now, "files"))
        except GitFailed:  # that commit was thrown away
            return False

    def left_behind(self, commits: Iterable[str]) -> dict[bytes, Entry]:
        """Return the memories of commits that our branch has not."""
        ours = self._name_of(self._ours)
        asked = "".join(f"{commit}\n" for commit in commits).encode()
        if not ours or not asked:
            return {}
        there = self._git.run("rev-list", "--no-walk", "--ignore-missing", "--stdin", stdin=asked)
        lines = "".join(f"{ours} {commit}\n" for commit in there.decode().split())
        words = ("--stdin", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", "--", "files")
        found = _differences(self._git.run("diff-tree", *words, stdin=lines.encode()).split(b"\0"))
        return {path: old for path, (old, new) in found if old and not new and is_memory(path)}

    def _noted(self) -> str:
        """Return what was checked out last time."""
        return _text_of(self._note).partition(" ")[0]

    # --- doing ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Have our branch begin, where there is something to begin with."""
        if not self._name_of(self._ours) and (start := self.start()):
            self._git.run("update-ref", "-m", BEGIN, self._ours, start)

    def unhide(self) -> None:
        """Undo what earlier versions did: they told git not to miss files that a person misses."""
        if (self._directory / "info" / "sparse-checkout").exists() or not self._may_hide():
            return
        entries = self._git.run("ls-files", "-t", "-z").split(b"\0")
        hidden = {
            entry[2:]: os.path.lexists(self._base / os.fsdecode(entry[2:]))
            for entry in entries
            if entry.startswith(b"S ")
        }
        # Where no person ever committed anything, these are files of other machines' persons.
        is_persons = not self._is_made_by_us() or self.journal.has_commits()
        missed = [p for p, is_here in hidden.items() if is_persons and not is_here]
        missed = [path for path in missed if not is_memory(path)]
        shown = [path for path, is_here in hidden.items() if is_here and is_memory(path)] + missed
        with suppress(GitFailed):  # another git has the index; the next start does it
            for verb, option, paths in (
                ("update-index", "--no-skip-worktree", shown),
                ("checkout-index", "-u", missed),
            ):
                if paths:
                    listed = b"\0".join((*paths, b""))
                    self._git.run(verb, option, "-z", "--stdin", stdin=listed)

    def _may_hide(self) -> bool:
        """Whether the index can have told git not to miss a file: its second format cannot."""
        if any(self._directory.glob("sharedindex.*")):
            return True
        try:
            with (self._directory / "index").open("rb") as index:
                return index.read(8) != b"DIRC\0\0\0\2"
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def bring_along(self, apart: Container[bytes]) -> None:
        """Move the checked-out branch to ours, with the index, where nothing of a person is in it.

        What keeps the person's git from being disturbed may also put it off to a later round.

        Args:
            apart: memories on disk that are not as they are committed.
        """
        before = self.journal.state()
        branch, ours = self._branch(), self._name_of(self._ours)
        tip = self._name_of("HEAD^{commit}")
        is_ours = branch == self._ours  # moved already, under the person's index
        known = self._noted() if is_ours else tip
        if not (self._directory / "index").exists():
            known = ""
        lags = branch and ours and known != ours
        if lags and (is_ours or not self._has_persons_files(before.staged)):
            new = self._changes(known or empty_tree(self._git), ours)
            if self._is_free(branch, tip, new) and self._put_in_index(new, apart):
                if not is_ours:
                    words = (branch, ours, tip or "0" * len(ours))
                    self._git.run("update-ref", "-m", BRING_ALONG, *words)
                tip = self._looked_at = ours
            elif is_ours:
                return
        if tip == self._looked_at:
            self._take_note(tip)
        self._hide(bool(ours) and tip != ours)
        self.journal.pass_over(before)

    def _hide(self, hidden: bool) -> None:
        """Have git overlook the memories that what is checked out does not have, or see them.

        Otherwise they stand in the way of a person's `git checkout`, are taken by `git add .`, and
        removed by `git clean`. The line is the first, so that the person's own lines decide.
        """
        with suppress(NotOurs):  # perhaps the person's; no commit depends on it
            text = read_own(self._exclude, _MOST_RULES) if check_own(self._exclude) else b""
            if (HIDDEN in text) != hidden:
                text = HIDDEN + text if hidden else text.replace(HIDDEN, b"")
                replace_atomic(self._exclude, text, 0o600)

    def _take_note(self, tip: str) -> None:
        if tip != self._noted():
            own_directory(self._note.parent)
            replace_atomic(self._note, tip.encode(), 0o600)

    def cut_logs(self) -> None:
        """Take from git's logs what does not lead to where our branches are now.

        These are ours and the one that is moved along. A person's own are left as they are.
        """
        tip = self._name_of("HEAD^{commit}")
        along = tip == self._name_of(self._ours)
        dealt_with = self.journal.moves() == NONE
        for name in (self._ours, *((self._branch(), "HEAD") if along else ())):
            if name:
                with suppress(GitFailed):  # there is none
                    self._git.run(
                        "reflog", "expire", "--expire=never", "--expire-unreachable=now", name
                    )
        if along:
            self._take_note(tip)
        if dealt_with:
            self.journal.note(self.journal.state())

    def _is_free(self, branch: str, tip: str, new: Difference) -> bool:
        """Whether the branch can be moved without disturbing a person."""
        if self._is_in_use():
            return False
        old = self._erasure.cleaned(tip)
        if old and not self._was_ours(tip) and self._quiet("merge-base", self._ours, old) != old:
            return False
        return branch == self._ours or self._may_leave_away(branch, new)

    def has_conflicts(self, index: str) -> bool:
        """Whether a merge has left conflicts in memories, in the index with this stamp."""
        return bool(_CONFLICT.search(self._staged(index)))

    def _has_persons_files(self, index: str) -> bool:
        """Whether the index with this stamp has a file of the person's, besides those hidden."""
        return bool(_PERSONS.search(self._staged(index)))

    def _staged(self, index: str) -> bytes:
        """Return what `git ls-files -t` says of the index with this stamp."""
        if index != self._index[0]:
            is_settled = Stamp(*map(int, index.split(","))).settled if "," in index else False
            found = self._git.run("ls-files", "-t", "-z")
            self._index = index if is_settled else "", found
        return self._index[1]

    def _is_in_use(self) -> bool:
        """Whether a git of the person's is under way, as while they write a commit's message."""
        if any((self._directory / name).exists() for name in ("index.lock", *UNFINISHED)):
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
        branches = (
            self._git.run("for-each-ref", "--format=%(refname)", "refs/heads").decode().split()
        )
        return not any(
            self._git.run("ls-tree", "-z", "--name-only", other, "--", *names)
            for other in branches
            if other not in (branch, self._ours)
        )

    def _is_made_by_us(self) -> bool:
        return "aiaml/remote" in _text_of(self._exclude.parent.parent / "config")

    def _put_in_index(self, new: Difference, apart: Container[bytes]) -> bool:
        """Put what our branch has into git's index; return whether that could be locked.

        A file that is not on the disk is marked `skip-worktree`: git reports no deletion of it.
        """
        here, elsewhere, missing = [], [], []
        base = os.fsencode(self._base)
        linked = (self._base / "files").is_symlink()  # git sees nothing behind it
        for path, (before, after) in new.items():
            is_here = os.path.lexists(b"%s/%s" % (base, path))
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
                    self._git.run("update-index", "-z", *words, stdin=data)
        except GitFailed as error:
            if "index.lock" not in error.output:
                raise
            return False
        return True


def tree(git: Git, commit: str) -> dict[bytes, Entry]:
    """Return the memories of a commit."""
    output = git.run("ls-tree", "-z", "--full-tree", commit, "files/")
    lines = (line.partition(b"\t") for line in output.split(b"\0") if line)
    fields = ((meta.split(b" "), path) for meta, _, path in lines if is_memory(path))
    return {path: Entry(meta[0], meta[2]) for meta, path in fields}


def changes(git: Git, old: str, new: str, *within: str) -> Difference:
    """Return what differs between two trees, everywhere or within some paths."""
    words = ("-r", "-z", "--raw", "--no-renames", old, new, "--", *within)
    return dict(_differences(git.run("diff-tree", *words).split(b"\0")))


def changes_since(git: Git, base: str, commits: Sequence[str]) -> list[Difference]:
    """Return what differs between one commit and each of others, in one question."""
    asked = "".join(f"{commit} {base}\n" for commit in commits).encode()
    words = ("--stdin", "-r", "-z", "--raw", "--no-renames")
    found: dict[str, list[bytes]] = {commit: [] for commit in commits}
    fields = iter(git.run("diff-tree", *words, stdin=asked).split(b"\0"))
    record: list[bytes] = []
    for field in fields:
        if field.startswith(b":"):
            record += (field, next(fields))
        elif field:  # the commit that the records after it are of
            record = found[field.decode()]
    return [dict(_differences(found[commit])) for commit in commits]


def _differences(
    fields: Sequence[bytes],
) -> Iterator[tuple[bytes, tuple[Entry | None, Entry | None]]]:
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = meta[1:].split(b" ")
        yield path, (_entry(old_mode, old_oid), _entry(new_mode, new_oid))


def empty_tree(git: Git) -> str:
    """Return the name of the tree without files."""
    return os.fsdecode(git.run("mktree", stdin=b"")).strip()


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
