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
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from aiaml_server.errors import LockTimeout, MalformedFile
from aiaml_server.files import make_directory, open_private, read_regular, replace_atomic
from aiaml_server.git import Git, GitFailed
from aiaml_server.identity import base_id, is_trusted, is_trusted_base, trust
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.merge import Tree, apply_changes, merge_trees
from aiaml_server.sync.status import Problem, SyncError, check_git_version

MAIN = "refs/heads/main"
ORIGIN = "refs/remotes/origin/main"
FETCHED = "refs/aiaml/fetched"  # what the remote has; not looked at yet
SCRATCH = "refs/aiaml/scratch"  # names commits that are not the newest one yet
NOTES = "aiaml"  # the directory for our own notes inside the repository
_KEPT_NOTES = ("released", "forgotten", "login")  # when a damaged repository is made anew
UNTRUSTED = Problem(
    "untrusted",
    "this memory directory has a history that was not made here",
    "If it is yours, run `aiaml trust` with the directory. Nothing is sent until then.",
)
_DRAFT = ".aiaml-git-"  # begins the name of a repository that is being made
_POLL_SECONDS = 0.05
_MAX_PACKS = 30
_CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = true
	logAllRefUpdates = false
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


class LogRow(NamedTuple):
    """What one commit did to one file: its object names before and after; empty for no file."""

    commit: str
    seconds: int
    author: str
    subject: str
    path: str
    before: str
    after: str


class Repository:
    """The repository of one memory directory, used by one thread under the sync lock.

    Attributes:
        base: the memory directory.
        directory: the git directory.
        notes: the directory of our own notes in it.
        git: runs git there.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.directory = locate(base)
        self.notes = self.directory / NOTES
        variables = {"GIT_DIR": str(self.directory), "GIT_LITERAL_PATHSPECS": "1"}
        self.git = Git(base, variables)
        self._trees: dict[str, Tree] = {}

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
            setup = Git(self.base, {"GIT_DIR": str(draft)})
            setup.run("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
            replace_atomic(draft / "config", _CONFIG.encode())
            replace_atomic(draft / ".gitignore", b"*\n")  # for the person's own git
            (draft / NOTES).mkdir(0o700)
            if not self.exists:  # nobody else has made it meanwhile
                self._move_aside()
                draft.rename(self.directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    @contextmanager
    def locked(self, seconds: float = 0.0) -> Iterator[None]:
        """Hold the repository, and remove the lock files that a killed git left in it.

        Local git commands inherit the descriptor of our lock. So it stays held until they have
        ended, even if this process is killed, and whoever gets it knows that no git is at work.

        Args:
            seconds: how long to wait for a git of a killed process.

        Raises:
            LockTimeout: it still works.
        """
        if sys.platform == "win32":
            yield
            return
        import fcntl  # noqa: PLC0415 (not on Windows)

        with open(self.notes / "running.lock", "w", opener=open_private) as stream:
            deadline = time.monotonic() + seconds
            while True:
                try:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() >= deadline:
                        raise LockTimeout("a git command of a killed process works") from error
                    time.sleep(_POLL_SECONDS)
            self.git.inherited = (stream.fileno(),)
            for path in [
                *self.directory.glob("*.lock"),
                *(self.directory / "refs").rglob("*.lock"),
            ]:
                path.unlink(missing_ok=True)
            for path in self.directory.glob("fast_import_crash_*"):
                path.unlink(missing_ok=True)
            try:
                yield
            finally:
                self.git.inherited = ()

    # --- reading --------------------------------------------------------------------------------

    def resolve(self, *refs: str) -> list[str]:
        """Return the commits of refs, an empty string for each that does not exist."""
        lines = self.git.run("for-each-ref", "--format=%(refname) %(objectname)", *refs).decode()
        found = dict(line.split(" ", 1) for line in lines.splitlines())
        return [found.get(ref, "") for ref in refs]

    def head(self) -> str:
        """Return the newest commit; an empty string where there is none."""
        return self.resolve(MAIN)[0]

    def tree(self, commit: str) -> Tree:
        """Map the paths of all regular files in a commit to their object names."""
        if commit not in self._trees:
            entries = self.entries(commit)
            found = {path: name for mode, name, path in entries if mode.startswith("100")}
            self._trees = {**dict(list(self._trees.items())[-3:]), commit: found}
        return self._trees[commit]

    def entries(self, commit: str) -> Iterator[tuple[str, str, str]]:
        """Yield mode, object name and path of everything in a commit."""
        if commit:
            output = os.fsdecode(self.git.run("ls-tree", "-r", "-z", "--full-tree", commit))
            for line in output.split("\0")[:-1]:
                about, _, path = line.partition("\t")
                mode, _, name = about.split(" ")
                yield mode, name, path

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """Return the content of objects, without those larger than a memory may be."""
        wanted = "".join(f"{name}\n" for name in dict.fromkeys(names))
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

    def log(self, commit: str, *words: str) -> Iterator[LogRow]:
        """Yield what each commit in the history of one did to each file, newest first.

        Of a merge that is what it did other than both of its parents.
        """
        options = ("-c", "--raw", "--no-abbrev", "--no-renames", "-z", "--date-order")
        form = "--format=%x01%H%x00%ct%x00%an%x00%s%x00"
        output = os.fsdecode(self.git.run("log", *options, form, commit, *words))
        for text in output.split("\x01")[1:]:
            commit, seconds, author, subject, *fields = text.split("\0")
            rows = [field.lstrip("\n") for field in fields if field]
            for about, path in zip(rows[::2], rows[1::2], strict=False):
                parents = len(about) - len(about.lstrip(":"))
                names = [name.strip("0") and name for name in about.split(" ")[parents + 1 : -1]]
                yield LogRow(commit, int(seconds), author, subject, path, names[0], names[-1])

    def versions(self, commit: str) -> set[tuple[str, str]]:
        """Return path and object name of every version of a file in the history of a commit."""
        return {(row.path, row.after) for row in self.log(commit) if row.after}

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
        parts = []
        for number, commit in enumerate(commits):
            message = os.fsencode(commit.message)
            parts.append(f"commit {ref}\nmark :1\ncommitter {author} {now}\n".encode())
            parts.append(b"data %d\n%s\n" % (len(message), message))
            if not number:
                parts.append(f"from {parent}\n".encode() if parent else b"")
                parts.append(f"merge {merged}\n".encode() if merged else b"")
            parts += [_stream_change(change) for change in commit.changes]
        stream = b"".join(parts) + b"get-mark :1\ndone\n"
        output = self.git.run("fast-import", "--quiet", "--force", "--done", stdin=stream)
        return output.decode().strip()

    def point(self, ref: str, commit: str) -> None:
        """Let a ref name a commit; an empty string deletes it."""
        self.git.run("update-ref", *(("-d", ref) if not commit else (ref, commit)))

    def repack(self) -> None:
        """Pack what has gathered, so that the repository stays small."""
        packs = list((self.directory / "objects" / "pack").glob("*.pack"))
        if len(packs) > _MAX_PACKS:
            self.git.run("repack", "-a", "-d", "--quiet", seconds=3600)

    def set_aside_if_damaged(self) -> bool:
        """Move a damaged repository away, as after a power cut; return whether it was.

        The new one is filled from the files and the remote.
        """
        try:
            self.git.run("fsck", "--connectivity-only", "--no-dangling", seconds=3600)
        except GitFailed:
            kept = {name: self.read_note(name) for name in _KEPT_NOTES}
            self._move_aside()
            self.create()
            for name, data in kept.items():
                replace_atomic(self.notes / name, data, 0o600)
            self._trees.clear()
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
            with suppress(OSError):
                trust(base)
    elif create:
        make_directory(base)
        check_git_version(repository.git.run("version").decode())
        if not base_id(base):  # its `.git` is the person's own
            trust(base)
        repository.create()
    return repository


def locate(base: Path) -> Path:
    """Return where the repository of a memory directory is, or is to be made."""
    usual, beside = base / ".git", base / ".aiaml.git"
    if beside.is_dir() or not _is_ours_or_free(usual) or person_repository(base):
        return beside
    return usual


def _is_ours_or_free(directory: Path) -> bool:
    return not os.path.lexists(directory) or (directory / NOTES).is_dir()


def person_repository(base: Path) -> Path | None:
    """Return the `.git` of the person's own repository that the base is in; None without one."""
    resolved = base.resolve()
    for parent in (resolved, *resolved.parents):
        found = parent / ".git"
        if os.path.lexists(found) and not (found / NOTES).is_dir():
            return found
    return None


def commit_message(action: str, path: str) -> str:
    """Return the message of a commit about one memory, such as "Add memory ID (FILE)"."""
    name = path.removeprefix("files/")
    memory_id = name.removesuffix(".md").rpartition("_")[2]
    return f"{action} memory {memory_id} ({name})"


def changes_between(before: Tree, after: Tree) -> Mapping[str, str | None]:
    """Return the paths that differ between two trees, with their object names in the second."""
    paths = {path for path, _ in before.items() ^ after.items()}
    return {path: after.get(path) for path in sorted(paths)}


def _stream_change(change: Change) -> bytes:
    path = os.fsencode(change.path).replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    quoted = b'"%s"' % path.replace(b"\n", b"\\n")
    if change.data is not None:
        return b"M 100644 inline %s\ndata %d\n%s\n" % (quoted, len(change.data), change.data)
    if change.name is not None:
        return b"M 100644 %s %s\n" % (change.name.encode(), quoted)
    return b"D %s\n" % quoted
