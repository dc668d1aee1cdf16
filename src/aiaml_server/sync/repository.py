"""The git repository of a memory directory: bare, ours alone, written with `git fast-import`.

It is `<base>/.git`, or `<base>/.aiaml.git` where a person has a repository in or around the base.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from aiaml_server.errors import LockTimeout, MalformedFile, NoStateDirectory
from aiaml_server.files import (
    hold_lock,
    make_directory,
    open_own,
    read_regular,
    replace_atomic,
)
from aiaml_server.git import TIMED_OUT, Git, GitFailed
from aiaml_server.identity import is_trusted, is_trusted_base, trust
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.merge import Tree, apply_changes, memory_id_of, merge_trees
from aiaml_server.sync.status import Problem, SyncError, check_git_version

MAIN = "refs/heads/main"
ORIGIN = "refs/remotes/origin/main"
FETCHED = "refs/aiaml/fetched"  # what the remote has; not looked at yet
SCRATCH = "refs/aiaml/scratch"  # names commits that are not the newest one yet
NOTES = "aiaml"  # the directory for our own notes inside the repository
_KEPT_NOTES = ("released", "forgotten", "remote")  # when a damaged repository is made anew
UNTRUSTED = Problem(
    "untrusted",
    "this memory directory has a history that was not made here",
    "If it is yours, run `aiaml trust` with the directory. Nothing is sent until then.",
)
_SET_HOME = (
    "Let HOME or XDG_STATE_HOME name a directory that you can write to, or list the memory "
    "directory in AIAML_SAFE_DIRECTORIES."
)
_DRAFT = ".aiaml-git-"  # begins the name of a repository that is being made
_LEFTOVERS = (
    "*.lock",
    "refs/**/*.lock",
    "objects/pack/*.keep",
    "objects/pack/tmp_*",
    "fast_import_crash_*",
)
_LOCK_SECONDS = 15.0
_LONG_SECONDS = 3600.0
_MAX_PACKS = 30
_TREES = 8  # are kept in memory
_CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = true
	logAllRefUpdates = false
	fsync = all
[user]
	useConfigOnly = true
[fastimport]
	unpackLimit = 1
[transfer]
	unpackLimit = 1
"""


class Change(NamedTuple):
    """What a commit does to a path: new content, an object that git has already, or removal."""

    path: str
    data: bytes | None = None
    name: str | None = None


class NewCommit(NamedTuple):
    """A commit to be made."""

    message: str
    changes: Sequence[Change]


class Repository:
    """The repository of one memory directory, used by one thread under the sync lock.

    Attributes:
        base: the memory directory.
        directory: the git directory.
        notes: the directory of our own notes in it.
        git: runs git there.
        tree: maps the paths of all regular files in a commit to their object names.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = locate(base)
        self.notes = self.directory / NOTES
        self.git = Git(base, {"GIT_DIR": str(self.directory), "GIT_LITERAL_PATHSPECS": "1"})
        self.tree = lru_cache(_TREES)(self._read_tree)

    @property
    def exists(self) -> bool:
        """Whether the repository has been made."""
        return self.notes.is_dir()

    def create(self) -> None:
        """Make the repository, whole or not at all."""
        for leftover in self.base.glob(f"{_DRAFT}*"):  # of a killed process
            shutil.rmtree(leftover, ignore_errors=True)
        draft = Path(mkdtemp(prefix=_DRAFT, dir=self.base))
        try:
            options = ("--quiet", "--bare", "--template=", "--initial-branch=main")
            Git(self.base, {"GIT_DIR": str(draft)}).run("init", *options)
            replace_atomic(draft / "config", _CONFIG.encode())
            replace_atomic(draft / ".gitignore", b"*\n")  # for the person's own git
            (draft / NOTES).mkdir(0o700)
            if not self.exists:  # nobody else has made it meanwhile
                self._move_aside()
                draft.rename(self.directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the repository, and remove what a git left in it that was killed or had no room.

        Local git commands inherit the descriptor of our lock. So it stays held until they have
        ended, even if this process is killed, and whoever gets it knows that no git is at work.

        Raises:
            LockTimeout: another process, or a git of a killed one, works all the time.
        """
        with hold_lock(self.notes / "running.lock", _LOCK_SECONDS) as hold:
            if not hold.file:
                raise hold.problem or LockTimeout("another process works in the repository")
            if sys.platform != "win32":
                self.git.inherited = (hold.file.fileno(),)
            for pattern in _LEFTOVERS:
                for leftover in [*self.directory.glob(pattern)]:
                    leftover.unlink(missing_ok=True)
            try:
                yield
            finally:
                self.git.inherited = ()

    # --- reading --------------------------------------------------------------------------------

    def resolve(self, ref: str) -> str:
        """Return the commit of a ref; an empty string where there is none."""
        return self.git.run("for-each-ref", "--format=%(objectname)", ref).decode().strip()

    def _read_tree(self, commit: str) -> Tree:
        entries = self.entries(commit)
        return {path: name for mode, name, path in entries if mode.startswith("100")}

    def entries(self, commit: str) -> Iterator[tuple[str, str, str]]:
        """Yield mode, object name and path of everything in a commit."""
        if commit:
            output = os.fsdecode(self.git.run("ls-tree", "-r", "-z", "--full-tree", commit))
            for line in output.split("\0")[:-1]:
                about, _, path = line.partition("\t")
                mode, _, name = about.split(" ")
                yield mode, name, path

    def blobs(self, names: Iterable[str | None]) -> dict[str, bytes]:
        """Return the content of objects, without those larger than a memory may be.

        Empty names are ignored.
        """
        wanted = "".join(f"{name}\n" for name in dict.fromkeys(names) if name)
        found: dict[str, bytes] = {}
        output = self.git.run("cat-file", "--batch", stdin=wanted.encode()) if wanted else b""
        start = 0
        while start < len(output):
            end = output.index(b"\n", start)
            name, _, size = output[start:end].decode().split(" ")
            start = end + 2 + int(size)
            if int(size) <= MAX_FILE:
                found[name] = output[end + 1 : start - 1]
        return found

    def is_ancestor(self, commit: str, of: str) -> bool:
        """Return whether the history of one commit holds another."""
        return not self.git.run("rev-list", "--max-count=1", commit, f"^{of}")

    def base_tree(self, ours: str, theirs: str) -> Tree:
        """Return the tree from which two histories developed; an empty one for unrelated ones.

        Histories that were merged crosswise have several common ancestors, which are merged first.
        """
        try:
            bases = self.git.run("merge-base", "--all", ours, theirs).decode().split()
        except GitFailed as error:
            if error.exit_code != 1 or error.output:
                raise
            return {}
        tree = self.tree(bases[0])
        for other in bases[1:]:
            base = self.base_tree(bases[0], other)
            tree = apply_changes(tree, merge_trees(base, tree, self.tree(other)).changes)
        return tree

    # --- writing --------------------------------------------------------------------------------

    def author(self) -> str:
        """Return who commits, as "Name <address>"; a neutral name where git knows none."""
        try:
            line = self.git.run("var", "GIT_COMMITTER_IDENT").decode("utf-8", "replace")
        except GitFailed:
            return "AIAML <aiaml@localhost>"
        return line.rpartition(">")[0].replace("\n", " ") + ">"

    def commit(
        self, commits: Sequence[NewCommit], parent: str, merged: str = "", ref: str = MAIN
    ) -> str:
        """Write commits on top of `parent` and let `ref` name the last one; return that.

        Args:
            commits: the commits, oldest first.
            parent: the commit that the first one follows; an empty string for none.
            merged: the second parent of the first one.
            ref: the branch.
        """
        author = self.author()
        now = f"{int(time.time())} {time.strftime('%z')}"
        parents = (f"from {parent}\n" if parent else "") + (f"merge {merged}\n" if merged else "")
        parts = []
        for commit in commits:
            message = os.fsencode(commit.message)
            parts.append(f"commit {ref}\nmark :1\ncommitter {author} {now}\n".encode())
            parts.append(b"data %d\n%s\n%s" % (len(message), message, parents.encode()))
            parts += [_stream_change(change) for change in commit.changes]
            parents = ""
        stream = b"".join(parts) + b"get-mark :1\ndone\n"
        return self.import_stream(stream)

    def import_stream(self, stream: bytes) -> str:
        """Run `git fast-import`; return the commit that the stream asks for."""
        options = ("--quiet", "--force", "--done")
        output = self.git.run("fast-import", *options, stdin=stream, seconds=_LONG_SECONDS)
        return output.decode().strip()

    def point(self, ref: str, commit: str) -> None:
        """Let a ref name a commit; an empty string deletes it."""
        self.git.run("update-ref", *(("-d", ref) if not commit else (ref, commit)))

    def repack(self) -> None:
        """Pack what has gathered, so that the repository stays small."""
        packs = list((self.directory / "objects" / "pack").glob("*.pack"))
        if len(packs) > _MAX_PACKS:
            self.git.run("repack", "-a", "-d", "--quiet", seconds=_LONG_SECONDS)

    def set_aside_if_damaged(self) -> bool:
        """Move a damaged repository away, as after a power cut; return whether it was.

        The new one is filled from the files and the remote.
        """
        try:
            self.git.run("fsck", "--no-dangling", seconds=_LONG_SECONDS)
        except GitFailed as error:
            if error.exit_code == TIMED_OUT:  # it has said nothing about the repository
                raise
            kept = {name: self.read_note(name) for name in _KEPT_NOTES}
            with suppress(GitFailed):
                self.git.run("config", "--local", "core.bare")
                kept["../config"] = self.read_note("../config")
            self._move_aside()
            self.create()
            for name, data in kept.items():
                replace_atomic(self.notes / name, data)
            return True
        return False

    def _move_aside(self) -> None:
        """Move away what is in the place of the repository, if anything is."""
        with suppress(FileNotFoundError):
            aside = f"{self.directory.name}.damaged-{time.time_ns()}"
            self.directory.rename(self.directory.with_name(aside))

    def read_note(self, name: str) -> bytes:
        """Return one of our notes; empty where there is none."""
        try:
            return read_regular(str(self.notes / name), 256 * 1024 * 1024)
        except (OSError, MalformedFile):
            return b""

    def read_paths(self, name: str) -> set[str]:
        """Return the paths in one of our notes."""
        return set(os.fsdecode(self.read_note(name)).split("\0")) - {""}

    def append_paths(self, name: str, file_names: Iterable[str]) -> None:
        """Add the paths of memory files to one of our notes."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(open_own(self.notes / name, flags), "ab") as note:
            note.write(b"".join(os.fsencode(f"files/{each}") + b"\0" for each in file_names))


def open_repository(base: Path, *, remote: str = "", create: bool = False) -> Repository:
    """Return the repository of a memory directory, if it may be used.

    Args:
        base: the memory directory.
        remote: the remote of the settings. Whoever sets it confirms the directory.
        create: whether the repository is made if there is none.

    Raises:
        SyncError: the directory came from elsewhere, or git is too old.
    """
    repository = Repository(base)
    if repository.exists:
        if not is_trusted_base(base, remote):
            raise SyncError(UNTRUSTED)
        if remote and not is_trusted(base):
            with suppress(OSError, NoStateDirectory):
                trust(base)
    elif create:
        make_directory(base)
        check_git_version(repository.git)
        try:
            if not is_trusted_base(base):  # its `.git` is the person's own
                trust(base)
        except (OSError, NoStateDirectory) as error:
            if not remote:
                sentence = f"it cannot be recorded that this memory directory is yours: {error}"
                raise SyncError(Problem("no-state", sentence, _SET_HOME)) from error
        repository.create()
    return repository


def locate(base: Path) -> Path:
    """Return where the repository of a memory directory is, or is to be made."""
    second = base / ".aiaml.git"
    return second if second.is_dir() or person_repository(base) else base / ".git"


def person_repository(base: Path) -> Path | None:
    """Return the `.git` of the person's own repository that the base is in; None without one."""
    for parent in (base.resolve() / "files").parents:
        found = parent / ".git"
        if os.path.lexists(found) and not (found / NOTES).is_dir():
            return found
    return None


def memory_commit(action: str, change: Change, trailer: str = "") -> NewCommit:
    """Return a commit about one memory, with a message such as "Add memory ID (FILE)"."""
    name = change.path.removeprefix("files/")
    message = f"{action} memory {memory_id_of(name)} ({name})"
    return NewCommit(f"{message}\n\n{trailer}\n" if trailer else message, [change])


def changes_between(before: Tree, after: Tree) -> Mapping[str, str | None]:
    """Return the paths that differ between two trees, with their object names in the second."""
    paths = {path for path, _ in before.items() ^ after.items()}
    return {path: after.get(path) for path in sorted(paths)}


def _stream_change(change: Change) -> bytes:
    path = os.fsencode(change.path)  # what we commit has no line break and no quotation mark
    if change.data is not None:
        return b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(change.data), change.data)
    if change.name is not None:
        return b"M 100644 %s %s\n" % (change.name.encode(), path)
    return b"D %s\n" % path
