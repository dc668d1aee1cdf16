"""A directory of an earlier version, whose repository was shared with the person: its first round.

`fixtures/upgrade/index-4.zip` is one as it was left: `.git` with a work tree, memories on a branch
`aiaml`, and `main` moved along with it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from test_sync_person import commit_file, everything

from aiaml_server import Settings
from aiaml_server.sync import Status, convert
from aiaml_server.sync.command import Git
from aiaml_server.sync.guard import released
from aiaml_server.sync.history import History
from aiaml_server.sync.place import HIDDEN
from aiaml_server.sync.rounds import Rounds
from machine import Machine, as_person, content_of, git, settle
from paths import TESTS

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

LEFT = TESTS / "fixtures" / "upgrade" / "index-4.zip"


def left(base: Path) -> Path:
    """Put a directory there as the earlier version left it; return its git directory."""
    with zipfile.ZipFile(LEFT) as archive:
        archive.extractall(base.parent / "home")
    (base.parent / "home" / ".aiaml").rename(base)
    return base / ".git"


def names(history: History) -> list[tuple[str, str, bool | None]]:
    """Return what happened to which memory, and whether elsewhere, newest first."""
    return [(each.what, each.name, each.arrived) for group in history.latest() for each in group]


def test_conversion_makes_a_repository_of_sync_alone_bare(tmp_path: Path) -> None:
    """The same directory, history and log go on; index, branch and hidden lines are gone."""
    base = tmp_path / "base"
    directory = left(base)
    (directory / "info/exclude").write_bytes(HIDDEN + b"/files/mine.md\n")
    tip = git(base, "rev-parse", "aiaml")
    before, told = Machine(base).files, names(History(base))
    assert len(told) == 3
    machine = Machine(base)
    machine.synced()
    assert machine.repository == directory
    assert git(base, "rev-parse", "--is-bare-repository") == "true"
    assert git(base, "rev-parse", "main") == tip
    assert git(base, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert not (directory / "index").exists()
    assert (directory / "info/exclude").read_bytes() == b"/files/mine.md\n"
    assert machine.files == before == content_of(base)
    assert names(History(base)) == told
    memory = machine.remember("four")
    machine.synced()
    assert names(History(base)) == [("Added", memory.file_name, False), *told]
    assert git(base, "fsck", "--no-dangling") == ""


def test_conversion_lets_history_be_read_before(tmp_path: Path) -> None:
    """Until its first round, `log` and `status` read the earlier repository, and change nothing."""
    base = tmp_path / "base"
    directory = left(base)
    before = everything(directory)
    assert len(names(History(base))) == 3
    assert everything(directory) == before


def a_commit(base: Path) -> None:
    """A file of the person's is committed to main."""
    commit_file(base, "notes.txt", "mine")


def an_edit(base: Path) -> None:
    """A memory is edited and committed by hand."""
    path = min((base / "files").glob("*.md"))
    path.write_bytes(path.read_bytes() + b"by hand\n")
    as_person(base, "commit", "-qam", "Edited")


def a_branch(base: Path) -> None:
    """A branch of the person's."""
    git(base, "branch", "ideas")


def a_branch_of_a_like_name(base: Path) -> None:
    """A branch of the person's that begins as ours do."""
    git(base, "branch", "main-wip")


def a_tag(base: Path) -> None:
    """A tag of the person's."""
    git(base, "tag", "v1")


def a_stash(base: Path) -> None:
    """Something is put away."""
    path = min((base / "files").glob("*.md"))
    path.write_bytes(path.read_bytes() + b"draft\n")
    as_person(base, "stash", "push", "--quiet")


def staged(base: Path) -> None:
    """A file of the person's is staged."""
    (base / "notes.txt").write_text("mine")
    git(base, "add", "notes.txt")


def a_look_back(base: Path) -> None:
    """An older state is checked out, which lacks memories."""
    git(base, "checkout", "--quiet", "HEAD~2")


def a_reset(base: Path) -> None:
    """The branch that is checked out went back, and the disk with it."""
    git(base, "reset", "--quiet", "--hard", "HEAD~2")


def a_sparse_checkout(base: Path) -> None:
    """Memories are left away from the disk."""
    git(base, "sparse-checkout", "set", "notes")


def a_worktree(base: Path) -> None:
    """Another place where the same repository is checked out."""
    git(base, "worktree", "add", "--quiet", "--detach", str(base.parent / "beside"))


PERSONS = [
    a_commit, an_edit, a_branch, a_branch_of_a_like_name, a_tag, a_stash, staged, a_look_back,
    a_reset, a_sparse_checkout, a_worktree,
]  # fmt: skip


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("touched", PERSONS)
def test_conversion_leaves_a_repository_with_the_persons_own_to_them(
    tmp_path: Path, remote: Path, touched: Callable[[Path], None]
) -> None:
    """Theirs stays byte for byte; ours begins beside it with the whole history, and no loss."""
    base = tmp_path / "base"
    directory = left(base)
    whole = Machine(base).files
    tip = git(base, "rev-parse", "aiaml")
    touched(base)
    before = everything(directory)
    machine = Machine(base, remote)
    machine.synced()
    assert machine.repository == base / ".aiaml.git"
    assert everything(directory) == before
    assert git(directory, "fsck", "--no-dangling") == ""
    assert whole.keys() == machine.files.keys() == content_of(remote).keys()
    assert git(machine.repository, "rev-list", "--count", f"main..{tip}") == "0"
    gone = min(whole)
    (base / "files" / gone).unlink()
    machine.synced()
    assert content_of(remote).keys() == whole.keys() - {gone}


def test_conversion_takes_over_what_sync_noted(tmp_path: Path) -> None:
    """What was released, forgotten everywhere, or is called by a name stays so beside theirs."""
    base = tmp_path / "base"
    directory = left(base)
    a_commit(base)
    (directory / "aiaml/released").write_bytes(b"files/x.md\0")
    (directory / "aiaml/erased").write_text("0" * 64 + "\n")
    git(base, "config", "user.name", "laptop")
    machine = Machine(base)
    machine.remember("four")
    machine.synced()
    assert b"files/x.md" in released(machine.repository)
    assert (machine.repository / "aiaml/erased").read_text() == "0" * 64 + "\n"
    assert git(machine.repository, "log", "-2", "--format=%an").splitlines()[0] == "laptop"


def test_conversion_of_a_damaged_repository_says_what_to_do(tmp_path: Path) -> None:
    """Nothing is touched; where `.git` is put elsewhere, all is committed anew."""
    base = tmp_path / "base"
    directory = left(base)
    for path in (directory / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"")
    before = everything(directory)
    machine = Machine(base)
    status = machine.sync()
    assert status.problem_kind == "waiting"
    assert "cannot be read" in str(status.problem)
    assert "move `.git` elsewhere" in str(status.what_to_do)
    assert everything(directory) == before
    directory.rename(base / "old")
    machine.synced()
    assert content_of(base) == machine.files


def test_conversion_is_undisturbed_by_a_server_of_the_earlier_version(tmp_path: Path) -> None:
    """One that still runs begins its branch and index anew; they are taken up again each time."""
    base = tmp_path / "base"
    directory = left(base)
    machine = Machine(base)
    machine.synced()
    tip = git(base, "rev-parse", "main")
    environ = ("--work-tree", str(base), "--git-dir", str(directory))
    git(base, "update-ref", "-m", "aiaml: begin", "refs/heads/aiaml", tip)
    (base / "files" / "theirs.md").write_text("by the earlier one\n")
    as_person(base, *environ, "read-tree", "main")
    as_person(base, *environ, "add", "-f", "files/theirs.md")
    tree = as_person(base, *environ, "write-tree")
    new = as_person(base, "commit-tree", "-p", tip, "-m", "Add memory theirs (theirs.md)", tree)
    git(base, "update-ref", "-m", "fast-import", "refs/heads/aiaml", new)
    machine.synced()
    assert git(base, "rev-parse", "main") == new
    assert git(base, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert not (directory / "index").exists()
    assert len(names(History(base))) == 4


@pytest.mark.parametrize("lock", ["config.lock", "refs/heads/aiaml.lock", "refs/heads/main.lock"])
def test_conversion_goes_on_after_a_git_that_died_at_it(tmp_path: Path, lock: str) -> None:
    """Its lock is waited for while it is new, and removed when it is old."""
    base = tmp_path / "base"
    directory = left(base)
    git(base, "update-ref", "-m", "fast-import", "refs/heads/main", "aiaml~1")
    (directory / lock).touch()
    machine = Machine(base)
    before = dict(machine.files)
    assert machine.sync().problem_kind == "locked"
    os.utime(directory / lock, (0, 0))
    machine.synced()
    assert git(base, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert machine.files == before == content_of(base)


# --- killed at any moment ------------------------------------------------------------------------


class Killed:
    """Has this process die of SIGKILL before or after the step of that number."""

    def __init__(self, number: int) -> None:
        self.left = number

    def step(self, plainly: Callable[..., object]) -> Callable[..., object]:
        """Return a function that is a step."""

        def counted(*words: object, **rest: object) -> object:
            self._die()
            done = plainly(*words, **rest)
            self._die()
            return done

        return counted

    def _die(self) -> None:
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


def killed_at(base: Path, remote: Path, number: int) -> bool:
    """Do a round in a process that is killed at a step; return whether it was."""
    child = os.fork()
    if not child:
        killed = Killed(number)
        Git.run = killed.step(Git.run)  # type: ignore[method-assign, assignment]
        for name in ("replace_atomic", "remove_own"):
            setattr(convert, name, killed.step(getattr(convert, name)))
        Path.rename = killed.step(Path.rename)  # type: ignore[method-assign, assignment]
        try:
            Rounds(Settings(base, remote=str(remote)), threading.Event()).run()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("touched", [None, a_commit, a_look_back])
def test_conversion_killed_at_any_step_loses_nothing(
    tmp_path: Path, remote: Path, bob: Machine, touched: Callable[[Path], None] | None
) -> None:
    """Whatever was done by then, reading works, and the next round does the rest."""
    original = tmp_path / "original"
    left(original)
    if touched:
        touched(original)
    tip = git(original, "rev-parse", "aiaml")
    whole = content_of(original, "aiaml")
    bob.remember("from bob")
    bob.synced()
    number, was_killed = 0, True
    while was_killed:
        base = tmp_path / f"base{number}"
        shutil.copytree(original, base, symlinks=True)
        theirs = everything(base / ".git")
        was_killed = killed_at(base, remote, number)
        assert whole.keys() <= {name for _, name, _ in names(History(base))}
        machine = Machine(base, remote)
        machine.synced()
        assert whole.items() <= machine.files.items()
        assert machine.files == content_of(machine.repository)
        assert git(machine.repository, "rev-list", "--count", f"main..{tip}") == "0"
        assert git(machine.repository, "fsck", "--no-dangling") == ""
        assert Status.read(base).problem is None
        if touched:
            assert everything(base / ".git") == theirs
        assert sorted(path.name for path in base.glob(".*git*") if path.is_dir()) == (
            [".aiaml.git", ".git"] if touched else [".git"]
        )
        shutil.rmtree(base)
        number += 1
    assert number > 15
    settle([bob])
    assert whole.items() <= bob.files.items()
