"""A person's own git in the memory directory: its files, branches and habits are left alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server import MemoryBank
from aiaml_server.sync import remembered
from machine import CLEAN, Machine, as_person, content_of, git, settle, wait_until
from printed import completed

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the hook")


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own configuration file, empty."""
    path = tmp_path / "gitconfig"
    path.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    return path


# --- where the repository is --------------------------------------------------------------------


def test_a_deleted_repository_is_made_anew_while_the_server_runs(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """The next round makes it and commits all memories again; nobody loses or gets one twice."""
    memories = {ada.remember("one").file_name, bob.remember("two").file_name}
    settle([ada, bob])
    shutil.rmtree(ada.base / ".git")
    memories.add(ada.remember("three").file_name)
    ada.synced()
    settle([ada, bob])
    assert set(ada.files) == memories
    assert ada.files == bob.files == content_of(remote)
    assert ada.git("status", "--porcelain") == ""


def test_a_repository_that_is_replaced_while_the_server_runs_is_gone_on_with(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """A person puts a fresh clone in its place; our branch is made there anew."""
    ada.remember("one")
    settle([ada, bob])
    shutil.rmtree(ada.base / ".git")
    git(ada.base.parent, "clone", "--quiet", "--no-checkout", str(remote), "fresh")
    (ada.base.parent / "fresh" / ".git").rename(ada.base / ".git")
    bob.remember("two")
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 2


def _worktree(base: Path) -> None:
    other = base.parent / "other"
    git(base.parent, "init", "--quiet", str(other))
    as_person(other, "commit", "--quiet", "--allow-empty", "-m", "Other")
    git(other, "worktree", "add", "--quiet", str(base))


def _submodule(base: Path) -> None:
    outer, inner = base.parent, base.parent.parent / "inner"
    for directory in (outer, inner):
        git(base.parent.parent, "init", "--quiet", str(directory))
    as_person(inner, "commit", "--quiet", "--allow-empty", "-m", "Inner")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner),
        base.name)  # fmt: skip


def _separate(base: Path) -> None:
    git(base.parent, "init", "--quiet", "--separate-git-dir", str(base.parent / "git"), str(base))


def _link(base: Path) -> None:
    base.mkdir()
    git(base, "init", "--quiet")
    (base / ".git").rename(base.parent / "git")
    (base / ".git").symlink_to(base.parent / "git")


@pytest.mark.parametrize("made", [_worktree, _submodule, _separate, _link])
def test_the_address_last_used_is_known_wherever_the_repository_lies(
    tmp_path: Path, remote: Path, made: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where `.git` is a file or a link: a worktree, a submodule, a directory apart."""
    base = tmp_path / "outer" / "base"
    base.parent.mkdir()
    made(base)  # type: ignore[operator]
    machine = Machine(base, remote)
    memory = machine.remember("one")
    machine.synced()
    assert list(content_of(remote)) == [memory.file_name]
    assert remembered(base) == str(remote)
    monkeypatch.setenv("AIAML_MEMORY_DIR", str(base))
    done = completed([sys.executable, "-m", "aiaml_server", "where", "--json"])
    places = json.loads(done.stdout)["paths"]
    there = {each["what"]: each for each in places if Path(each["path"]).is_dir()}
    (history,) = (each for what, each in there.items() if "their history in git" in what)
    objects = base / git(base, "rev-parse", "--git-path", "objects").strip()
    assert history["bytes"] > sum(each.stat().st_size for each in objects.rglob("*.*")) > 300


def _below(base: Path) -> None:
    git(base.parent, "init", "--quiet")
    base.mkdir()
    commit_file(base, "notes.txt", "of the outer repository")


def _another_tree(base: Path) -> None:
    base.mkdir()
    git(base, "init", "--quiet")
    (base.parent / "elsewhere").mkdir()
    git(base, "config", "core.worktree", str(base.parent / "elsewhere"))


def _worktree_config(base: Path) -> None:
    _worktree(base)
    other = base.parent / "other"
    git(other, "config", "extensions.worktreeConfig", "true")
    git(base, "config", "--worktree", "core.autocrlf", "true")
    git(other, "config", "--worktree", "core.bare", "true")


def _sha256(base: Path) -> None:
    base.mkdir()
    git(base, "init", "--quiet", "--object-format=sha256")


@pytest.mark.parametrize("made", [
    _worktree, _submodule, _separate, _link, _below, _another_tree, _worktree_config,
    _sha256,
])  # fmt: skip
def test_memories_come_and_go_wherever_the_repository_lies(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    """Remembered, edited, forgotten on either side; nothing of an outer repository is touched."""
    base = tmp_path / "outer" / "base"
    base.parent.mkdir()
    made(base)
    remote = tmp_path / "remote"
    kind = "sha256" if made is _sha256 else "sha1"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", f"--object-format={kind}",
        str(remote))  # fmt: skip
    ada, bob = Machine(base, remote), Machine(tmp_path / "bob", remote)
    if made is _sha256:
        bob.base.mkdir()
        bob.git("init", "--quiet", "--object-format=sha256")
    mine, theirs = ada.remember("mine"), bob.remember("theirs")
    settle([ada, bob])
    before = dict(ada.files)
    assert set(before) == {mine.file_name, theirs.file_name}
    assert ada.files == bob.files == content_of(remote)
    ada.path(theirs).write_bytes(ada.path(theirs).read_bytes() + b"edited\n")
    forget(bob, mine.file_name)
    settle([ada, bob])
    assert set(ada.files) == {theirs.file_name}
    assert b"edited" in bob.files[theirs.file_name]
    for words in (("add", "-f", "files/*.md"), ("commit", "--allow-empty", "-qm", "All"),
                  ("reset", "--quiet", "--hard", "HEAD~1")):  # fmt: skip
        as_person(ada.base, *words)
    settle([ada, bob])
    assert set(ada.files) == {theirs.file_name}
    ada.path(theirs).unlink()
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote) == {}
    outer = git(base.parent, "ls-files") if (base.parent / ".git").is_dir() else ""
    assert "files/" not in outer


# --- what a person has configured ---------------------------------------------------------------


def test_no_configured_order_of_files_stops_commits(configuration: Path, ada: Machine) -> None:
    """`diff.orderFile` may name a file that is not there."""
    configuration.write_text("[diff]\n\torderFile = nowhere\n")
    memory = ada.remember("one")
    ada.synced()
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"more\n")
    ada.remember("two")
    ada.synced()
    assert len(ada.messages()) == 4


def test_a_warning_about_line_ends_leaves_nothing_staged(configuration: Path, ada: Machine) -> None:
    """With `core.safecrlf` git refuses to add what it could not give back byte for byte."""
    configuration.write_text("[core]\n\tautocrlf = true\n\tsafecrlf = true\n")
    ada.remember("one")
    ada.synced()
    assert ada.git("ls-files").splitlines()[:2] == [".gitattributes", ".gitignore"]
    assert ada.git("diff", "--cached", "--name-only") == ""


@posix_only
def test_a_persons_hooks_do_not_run_at_a_remote_that_is_a_path(
    configuration: Path, ada: Machine, remote: Path, tmp_path: Path
) -> None:
    """What `core.hooksPath` of a person names stays still; the remote's own hooks do run."""
    hooks, ran = tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for path in (hooks / "reference-transaction", remote / "hooks" / "post-receive"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.name} >> {ran}\n")
        path.chmod(0o755)
    configuration.write_text(f"[core]\n\thooksPath = {hooks}\n")
    ada.remember("one")
    ada.synced()
    assert len(content_of(remote)) == 1
    assert ran.read_text() == "post-receive\n"


# --- a person's own files and branches ----------------------------------------------------------


@pytest.fixture
def alone(tmp_path: Path) -> Machine:
    """A machine without a remote."""
    return Machine(tmp_path / "alone")


@pytest.fixture
def own(ada: Machine) -> Machine:
    """A machine with two memories, which the person has committed to main beside their notes."""
    ada.remember("one")
    ada.remember("two")
    ada.synced()
    commit_file(ada.base, "notes.txt", "v1")
    ada.remember("three")
    ada.synced()
    ada.git("add", "-f", "files/*.md")
    as_person(ada.base, "commit", "--quiet", "-m", "All")
    ada.synced()
    return ada


def commit_file(base: Path, name: str, text: str, message: str = "By hand") -> None:
    """Write a file of the person's, and commit it as they would."""
    (base / name).write_text(text)
    git(base, "add", name)
    as_person(base, "commit", "--quiet", "-m", message)


def test_a_file_on_a_branch_of_theirs_is_there_after_a_checkout(ada: Machine, remote: Path) -> None:
    """Whatever rounds came in between; and what is on that branch stays on this machine."""
    ada.remember("one")
    ada.synced()
    ada.git("checkout", "--quiet", "-b", "ideas")
    commit_file(ada.base, "notes.txt", "mine")
    second = ada.remember("two")
    ada.synced()
    for branch in ("main", "ideas", "main", "ideas"):
        ada.git("checkout", "--quiet", branch)
        assert (ada.base / "notes.txt").exists() == (branch == "ideas")
        ada.remember(f"on {branch}")
        ada.synced()
        assert len(ada.files) == len(content_of(remote))
    assert (ada.base / "notes.txt").read_text() == "mine"
    assert second.file_name in ada.files
    assert len(ada.files) == 6
    assert ada.git("status", "--porcelain") == ""
    assert "notes.txt" not in git(remote, "ls-tree", "--name-only", "main").splitlines()
    assert not any(message.startswith("Forget") for message in ada.messages("aiaml"))


def test_a_version_from_elsewhere_is_not_taken_back_by_the_next_commit(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """Both have notes.txt on main; each changes something; both changes stand in the end."""
    ada.remember("one")
    ada.synced()
    commit_file(ada.base, "notes.txt", "v1\n")
    commit_file(ada.base, "other.txt", "v1\n")
    ada.synced()
    git(bob.base.parent, "clone", "--quiet", str(remote), str(bob.base))
    bob.synced()
    assert (bob.base / "notes.txt").read_text() == "v1\n"
    (ada.base / "notes.txt").write_text("v2\n")
    as_person(ada.base, "commit", "--quiet", "-am", "Notes v2")
    settle([ada, bob])
    assert git(remote, "show", "main:notes.txt") == "v2"
    assert (bob.base / "notes.txt").read_text() == "v1\n"
    assert bob.git("status", "--porcelain") == ""
    (bob.base / "other.txt").write_text("v2\n")
    as_person(bob.base, "commit", "--quiet", "-am", "Something else")
    settle([bob, ada])
    assert git(remote, "show", "main:notes.txt") == "v2"
    assert git(remote, "show", "main:other.txt") == "v2"
    for machine in (ada, bob):
        as_person(machine.base, "merge", "--quiet", "--no-edit", "aiaml")
        assert (machine.base / "notes.txt").read_text() == "v2\n"
        assert (machine.base / "other.txt").read_text() == "v2\n"
        assert machine.git("status", "--porcelain") == ""
    ada.remember("another")
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)


def test_a_pull_and_a_push_by_hand_bring_a_persons_files_and_the_memories(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """The commands of docs/sync.md, in clones of a repository that has both."""
    for machine in (ada, bob):
        git(machine.base.parent, "clone", "--quiet", str(remote), str(machine.base))
    memory = ada.remember("one")
    ada.synced()
    as_person(ada.base, "pull", "--quiet", "--no-rebase", "origin", "main")
    commit_file(ada.base, "notes.txt", "v1\n")
    ada.git("push", "--quiet", "origin", "HEAD:main")
    other = bob.remember("two")
    settle([bob, ada])
    as_person(bob.base, "pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main")
    assert (bob.base / "notes.txt").read_text() == "v1\n"
    bob.git("push", "--quiet", "origin", "HEAD:main")
    settle([bob, ada])
    assert set(ada.files) == {memory.file_name, other.file_name}
    assert ada.files == bob.files == content_of(remote)
    assert git(remote, "show", "main:notes.txt") == "v1"


def test_both_change_the_same_file_and_neither_version_is_lost(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """The second one waits for the person to merge, and travels then; memories go on."""
    ada.remember("one")
    ada.synced()
    commit_file(ada.base, "notes.txt", "v1\n")
    ada.synced()
    git(bob.base.parent, "clone", "--quiet", str(remote), str(bob.base))
    bob.synced()
    for machine in (ada, bob):
        commit_file(machine.base, "notes.txt", f"by {machine.base.name}\n")
        if machine is ada:
            settle([ada, bob])
    memory = bob.remember("two")
    settle([bob, ada])
    assert memory.file_name in ada.files
    assert git(remote, "show", "main:notes.txt") == "by ada"
    assert (bob.base / "notes.txt").read_text() == "by bob\n"
    as_person(bob.base, "merge", "--quiet", "--no-edit", "-X", "ours", "aiaml")
    settle([bob, ada])
    assert git(remote, "show", "main:notes.txt") == "by bob"
    assert [path for path in git(remote, "ls-tree", "-r", "--name-only", "main").splitlines()
            if "notes" in path] == ["notes.txt"]  # fmt: skip


def test_a_repository_of_an_earlier_version_goes_on(ada: Machine, remote: Path) -> None:
    """Its memories are on the person's branch, with their files; nothing is lost or doubled."""
    ada.base.mkdir()
    ada.git("init", "--quiet", "--initial-branch=notes")
    commit_file(ada.base, "README", "mine")
    memory = ada.remember("one")
    ada.git("add", "files")
    as_person(ada.base, "commit", "--quiet", "-m", f"Add memory {memory.id} ({memory.file_name})")
    ada.git("push", "--quiet", str(remote), "notes:main")
    head = ada.git("rev-parse", "HEAD")
    other = ada.remember("two")
    ada.synced()
    assert ada.git("rev-parse", "HEAD") == head
    assert set(content_of(remote)) == {memory.file_name, other.file_name}
    assert len([m for m in ada.messages("aiaml") if memory.id in m]) == 1
    assert ada.git("status", "--porcelain") == ""
    ada.path(memory).unlink()
    ada.path(other).write_bytes(ada.path(other).read_bytes() + b"more\n")
    ada.synced()
    assert set(content_of(remote)) == {other.file_name}
    assert b"more" in content_of(remote)[other.file_name]


@pytest.mark.parametrize("index", ["as usual", "--split-index", "--index-version=4"])
def test_what_an_earlier_version_hid_is_there_again(own: Machine, index: str) -> None:
    """It told git not to miss files that were not on disk; a file of a person's stayed away."""
    memory = f"files/{min(own.files)}"
    own.git("update-index", "--skip-worktree", "notes.txt", memory)
    (own.base / "notes.txt").unlink()
    (own.base / "local.txt").write_text("v1")
    own.git("add", "local.txt")
    as_person(own.base, "commit", "--quiet", "-m", "Local")
    own.git("update-index", "--skip-worktree", "local.txt")
    if index != "as usual":
        own.git("update-index", index)
    (own.base / "local.txt").write_text("my own")
    own.restart()
    own.synced()
    assert (own.base / "notes.txt").read_text() == "v1"
    assert own.git("ls-files", "-t").splitlines().count("S local.txt") == 1
    assert own.git("ls-files", "-t").count("S ") == 1
    assert own.git("status", "--porcelain") == ""


# --- what a person types ------------------------------------------------------------------------


@posix_only
@pytest.mark.parametrize("how", [["-a"], []])
def test_a_commit_whose_message_is_being_written_is_not_disturbed(
    alone: Machine, how: list[str]
) -> None:
    """An open editor, while memories come: the commit is made, and the memories are in git."""
    alone.remember("one")
    alone.synced()
    commit_file(alone.base, "notes.txt", "v1")
    (alone.base / "notes.txt").write_text("v2")
    alone.git("add", "notes.txt")
    editor = "while [ ! -e ../go ]; do touch ../open; sleep 0.05; done; echo Notes > "
    environment = {**os.environ, **CLEAN, "GIT_EDITOR": f"f() {{ {editor} $1; }}; f"}
    words = ["git", "-c", "user.name=M", "-c", "user.email=m@x", "commit", "--quiet", *how]
    with subprocess.Popen(words, cwd=alone.base, env=environment) as commit:
        wait_until((alone.base.parent / "open").exists)
        for number in range(3):
            memory = alone.remember(f"meanwhile {number}")
            alone.synced()
            assert memory.id in alone.messages("aiaml")[0]
        (alone.base.parent / "go").touch()
        assert commit.wait(60) == 0
    alone.synced()
    assert alone.messages()[0] == "Notes"
    assert alone.git("status", "--porcelain") == ""
    assert alone.git("show", "aiaml:notes.txt") == "v2"


def test_many_quick_commits_succeed_while_memories_come(alone: Machine) -> None:
    """None fails for a lock or a moved branch."""
    alone.remember("first")
    alone.synced()
    with alone.bank.opened():
        for number in range(60):
            if number % 6 == 0:
                alone.remember(f"number {number}")
            commit_file(alone.base, "notes.txt", f"{number}\n", f"Notes {number}")
    alone.synced()
    assert next(m for m in alone.messages() if m.startswith("Notes")) == "Notes 59"
    assert len(alone.messages("aiaml")) >= 71
    assert alone.git("show", "aiaml:notes.txt") == "59"


def test_a_stash_is_given_back_whole(alone: Machine) -> None:
    """`git stash -u`, memories, `git stash pop`."""
    memory = alone.remember("one")
    alone.synced()
    commit_file(alone.base, "notes.txt", "v1")
    for number in range(5):
        (alone.base / "notes.txt").write_text(f"draft {number}")
        (alone.base / "new.txt").write_text("new")
        as_person(alone.base, "stash", "push", "--quiet", "--include-untracked")
        alone.remember(f"meanwhile {number}")
        alone.synced()
        alone.git("stash", "pop", "--quiet")
        assert (alone.base / "notes.txt").read_text() == f"draft {number}"
        assert (alone.base / "new.txt").exists()
    assert len(alone.files) == 6
    assert memory.file_name in alone.files
    assert alone.git("stash", "list") == ""


@pytest.mark.parametrize("how", ["checkout", "bisect"])
def test_a_look_at_an_old_commit_is_not_ended(ada: Machine, remote: Path, how: str) -> None:
    """It lasts as long as the person wants; nothing is forgotten, and all goes on afterwards."""
    for text in ("one", "two", "three", "four"):
        ada.remember(text)
        ada.synced()
    before = dict(ada.files)
    if how == "checkout":
        ada.git("checkout", "--quiet", "HEAD~3")
    else:
        ada.git("bisect", "start", "HEAD", "HEAD~3")
    head = ada.git("rev-parse", "HEAD")
    assert len(ada.files) < 4
    during = ada.remember("during")
    assert MemoryBank(ada.settings).commit() == {}  # which is done, whatever sync waits for
    assert during.id in ada.messages("aiaml")[0]
    for _ in range(2):
        assert str(ada.sync().problem)
    assert ada.git("rev-parse", "HEAD") == head
    assert content_of(remote) == before
    ada.git(*(["checkout", "--quiet", "main"] if how == "checkout" else ["bisect", "reset"]))
    ada.synced()
    assert set(content_of(remote)) == {*before, during.file_name}
    assert content_of(remote) == ada.files
    assert ada.git("status", "--porcelain") == ""


def test_throwing_commits_away_by_hand_loses_no_memory(alone: Machine) -> None:
    """`reset --hard`, `commit --amend` and a rebase of the branch that is checked out."""
    memories = []
    for text in ("one", "two", "three"):
        memories.append(alone.remember(text).file_name)
        alone.synced()
    alone.git("reset", "--quiet", "--hard", "HEAD~2")
    assert len(alone.files) == 1
    alone.synced()
    assert sorted(alone.files) == sorted(memories)
    as_person(alone.base, "commit", "--quiet", "--amend", "-m", "In my words")
    alone.synced()
    as_person(alone.base, "rebase", "--quiet", "HEAD~1")
    alone.synced()
    assert sorted(alone.files) == sorted(memories)
    assert sorted(content_of(alone.base, "aiaml")) == sorted(memories)
    assert alone.git("status", "--porcelain") == ""


def test_a_checkout_of_our_branch_and_back_keeps_the_memories(alone: Machine) -> None:
    """Git takes them along when the person goes back to a branch without memories."""
    alone.base.mkdir()
    alone.git("init", "--quiet", "--initial-branch=main")
    commit_file(alone.base, "notes.txt", "mine")
    memories = {alone.remember("one").file_name, alone.remember("two").file_name}
    alone.synced()
    alone.git("checkout", "--quiet", "aiaml")
    memories.add(alone.remember("three").file_name)
    alone.synced()
    assert alone.git("status", "--porcelain") == ""
    alone.git("checkout", "--quiet", "main")
    assert not alone.files
    alone.synced()
    assert set(alone.files) == memories == set(content_of(alone.base, "aiaml"))
    assert (alone.base / "notes.txt").read_text() == "mine"
    assert "aiaml" not in alone.git("log", "--format=%D", "main")


def test_a_sparse_base_has_its_memories_on_disk(ada: Machine, bob: Machine, remote: Path) -> None:
    """Whatever `git sparse-checkout` leaves away, `think` finds every memory."""
    memory = ada.remember("one in Trieste")
    ada.synced()
    git(bob.base.parent, "clone", "--quiet", "--sparse", str(remote), str(bob.base))
    assert not bob.files
    bob.synced()
    later = ada.remember("two in Trieste")
    settle([ada, bob])
    assert {hit.id for hit in bob.bank.think(["trieste"])} == {memory.id, later.id}
    bob.path(memory).unlink()
    settle([bob, ada])
    assert set(ada.files) == {later.file_name} == set(bob.files)


def test_what_git_took_away_between_two_rounds_is_not_forgotten(alone: Machine) -> None:
    """Also where the person is back on the very commit that was checked out before."""
    alone.remember("one")
    alone.synced()
    commit_file(alone.base, "notes.txt", "mine")
    alone.remember("two")
    alone.synced()
    before = dict(alone.files)
    alone.git("checkout", "--quiet", "aiaml")
    alone.git("checkout", "--quiet", "main")
    assert len(alone.files) == 1
    alone.synced()
    assert alone.files == before == content_of(alone.base, "aiaml")
    gone = alone.remember("three")
    alone.synced()
    alone.path(gone).unlink()
    alone.synced()
    assert alone.files == before == content_of(alone.base, "aiaml")


# --- what git does is no wish to forget ---------------------------------------------------------


def staged_and_reset(base: Path) -> None:
    """A memory that is staged is no longer on disk after a reset."""
    git(base, "add", "-f", "files/*.md")
    git(base, "reset", "--quiet", "--hard")


def put_away(base: Path) -> None:
    """All is stashed, also what git overlooks."""
    as_person(base, "stash", "push", "--quiet", "--all")


def staged_and_put_away(base: Path) -> None:
    """What is staged is stashed."""
    git(base, "add", "-f", "files/*.md")
    as_person(base, "stash", "push", "--quiet")


def put_away_by_name(base: Path) -> None:
    """Some files are stashed; nothing is checked out for that."""
    git(base, "add", "-f", "files/*.md")
    as_person(base, "stash", "push", "--quiet", "--", "files")


def back_and_forth(base: Path) -> None:
    """A rebase, a look at an old commit, and back."""
    as_person(base, "rebase", "--quiet", "--force-rebase", "HEAD~2")
    git(base, "checkout", "--quiet", "HEAD~1")
    git(base, "checkout", "--quiet", "main")


def taken_back(base: Path) -> None:
    """The commit that added memories is reverted."""
    as_person(base, "revert", "--no-edit", "HEAD")


def made_sparse(base: Path) -> None:
    """Only some directories are wanted on disk."""
    git(base, "sparse-checkout", "set", "notes")


def emptied(base: Path) -> None:
    """All memories are committed, and a branch without any is begun; `files` is gone."""
    git(base, "add", "-f", "files/*.md")
    as_person(base, "commit", "--quiet", "-m", "All")
    (base / "files" / ".aiaml-directory").unlink()
    git(base, "switch", "--quiet", "--orphan", "empty")
    assert not (base / "files").exists()


@pytest.mark.parametrize("disturb", [
    staged_and_reset, put_away, staged_and_put_away, put_away_by_name, back_and_forth, taken_back,
    made_sparse, emptied,
])  # fmt: skip
def test_what_git_takes_off_the_disk_is_brought_back(
    own: Machine, bob: Machine, remote: Path, disturb: Callable[[Path], None]
) -> None:
    """Nobody has forgotten anything; and what is then deleted by hand is forgotten as ever."""
    own.remember("four")
    settle([own, bob])
    before = dict(own.files)
    assert len(before) == 4
    disturb(own.base)
    settle([own, bob])
    assert own.files == bob.files == content_of(remote) == before
    gone = own.base / "files" / min(before)
    gone.unlink()
    settle([own, bob])
    assert set(own.files) == set(bob.files) == before.keys() - {gone.name}


@pytest.mark.parametrize("words", [
    ("revert", "--no-edit", "HEAD~1"), ("reset", "--quiet", "--hard", "HEAD~2"),
    ("rebase", "--quiet", "--onto", "HEAD~3", "HEAD~2"), ("commit", "--amend", "-m", "In my words"),
    ("branch", "--force", "aiaml", "aiaml~2"), ("update-ref", "refs/heads/aiaml", "aiaml~2"),
])  # fmt: skip
@pytest.mark.parametrize("checked_out", [True, False])
def test_our_own_branch_is_not_taken_back(
    alone: Machine, words: tuple[str, ...], checked_out: bool
) -> None:
    """A person moves `aiaml` itself, or what is moved along with it."""
    for number in range(4):
        alone.remember(f"number {number}")
        alone.synced()
    before = dict(alone.files)
    if checked_out:
        alone.git("checkout", "--quiet", "aiaml")
    if not (checked_out and words[0] == "branch"):  # which git refuses
        as_person(alone.base, *words)
    for _ in range(2):
        alone.synced()
    assert alone.files == before == content_of(alone.base, "aiaml")
    assert alone.git("status", "--porcelain") == ""
    gone = alone.base / "files" / min(before)
    gone.unlink()
    alone.synced()
    assert gone.name not in content_of(alone.base, "aiaml")


def test_a_memory_that_git_took_to_another_branch_before_we_saw_it_is_kept(ada: Machine) -> None:
    """It was remembered, committed and left behind between two rounds."""
    ada.remember("one")
    ada.synced()
    commit_file(ada.base, "notes.txt", "mine")
    ada.git("checkout", "--quiet", "--detach")
    memory = ada.remember("two")
    ada.git("add", "-f", "files/*.md")
    as_person(ada.base, "commit", "--quiet", "-m", "On no branch")
    ada.git("checkout", "--quiet", "main")
    assert memory.file_name not in ada.files
    ada.synced()
    assert memory.file_name in ada.files
    assert memory.file_name in content_of(ada.base, "aiaml")


def test_a_version_that_git_put_there_is_no_edit(own: Machine, bob: Machine) -> None:
    """The person's branch has a memory as it was before it was edited."""
    own_file = own.base / "files" / min(own.files)
    own_file.write_bytes(own_file.read_bytes() + b"edited\n")
    settle([own, bob])
    own.git("reset", "--quiet", "--hard")
    assert b"edited" not in own_file.read_bytes()
    settle([own, bob])
    assert b"edited" in own_file.read_bytes()
    assert own.files == bob.files


def test_what_is_remembered_during_a_look_at_the_past_is_in_git_at_once(own: Machine) -> None:
    """So it is not lost when it is staged there, and thrown away with the rest."""
    own.git("checkout", "--quiet", "HEAD~1")
    memory = own.remember("meanwhile")
    gone = own.remember("and forgotten")
    assert "older state" in str(own.sync().problem)
    assert memory.file_name in content_of(own.base, "aiaml")
    forget(own, gone.file_name)
    own.git("add", "-f", "files/*.md")
    own.git("checkout", "--quiet", "--force", "main")
    assert memory.file_name not in own.files
    own.synced()
    assert memory.file_name in own.files
    assert gone.file_name not in own.files
    assert own.files == content_of(own.base, "aiaml")


# --- what was forgotten stays so, as far as it can be told ---------------------------------------


def forget(machine: Machine, name: str) -> None:
    """Forget a memory by the verb."""
    machine.bank.forget({name: machine.files[name].decode()})


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("words", [
    ("stash",), ("reset", "--hard"), ("checkout", "--force", "main"), ("rebase", "-f", "HEAD~2"),
])  # fmt: skip
def test_what_a_persons_branch_still_has_does_not_come_back(
    own: Machine, bob: Machine, remote: Path, words: tuple[str, ...], here: bool
) -> None:
    """Git puts a forgotten memory on disk, since what is checked out has it."""
    settle([own, bob])
    name = min(own.files)
    if here:
        forget(own, name)
    else:
        forget(bob, name)
        settle([bob, own])
    with suppress(AssertionError):  # git refuses: there are changes
        as_person(own.base, *words)
    settle([own, bob])
    assert name not in own.files
    assert own.files == bob.files == content_of(remote)
    assert len(own.files) == 2


@pytest.mark.parametrize("branch", ["main", "aiaml"])
def test_what_others_forgot_is_forgotten_when_a_person_pulls_it(
    own: Machine, bob: Machine, remote: Path, branch: str
) -> None:
    """Their commit says so, and comes here by a pull by hand before sync fetches it."""
    settle([own, bob])
    name = min(own.files)
    forget(bob, name)
    bob.synced()
    own.git("checkout", "--quiet", branch)
    as_person(own.base, "pull", "--quiet", "--no-rebase", "--no-edit", str(remote), "main")
    settle([own, bob])
    assert name not in own.files
    assert own.files == bob.files == content_of(remote)
    assert len(own.files) == 2


def test_what_was_restored_is_not_forgotten_by_a_copy_of_the_commit_that_forgot_it(
    alone: Machine,
) -> None:
    """A person's rebase makes the old commits anew."""
    memories = [alone.remember(text).file_name for text in ("one", "two", "three")]
    alone.synced()
    data = alone.files[memories[1]]
    forget(alone, memories[1])
    alone.synced()
    alone.git("branch", "old")
    (alone.base / "files" / memories[1]).write_bytes(data)
    alone.synced()
    alone.git("checkout", "--quiet", "old")
    as_person(alone.base, "rebase", "--quiet", "--force-rebase", "HEAD~3")
    alone.synced()
    alone.git("checkout", "--quiet", "main")
    alone.synced()
    assert set(alone.files) == set(memories) == set(content_of(alone.base, "aiaml"))


def test_a_rebase_over_a_forgotten_memory_does_not_bring_it_back(
    alone: Machine,
) -> None:
    """The commit that forgot it was thrown away, and those before were made anew."""
    memories = [alone.remember(text).file_name for text in ("one", "two", "three")]
    alone.synced()
    forget(alone, memories[1])
    alone.synced()
    alone.git("reset", "--quiet", "--hard", "HEAD~1")
    assert memories[1] in alone.files
    as_person(alone.base, "rebase", "--quiet", "--force-rebase", "HEAD~3")
    alone.synced()
    assert set(alone.files) == {memories[0], memories[2]}
    assert alone.git("status", "--porcelain") == ""


@pytest.mark.parametrize("again", [False, True])
def test_a_person_can_bring_it_back_with_git(own: Machine, bob: Machine, again: bool) -> None:
    """Taking a file from an old commit is a wish, committed or not."""
    settle([own, bob])
    name = min(own.files)
    forget(bob, name)
    settle([bob, own])
    own.git("checkout", "HEAD", "--", f"files/{name}")
    if again:
        as_person(own.base, "commit", "--quiet", "--allow-empty", "-m", "Wanted after all")
    settle([own, bob])
    assert name in bob.files
    assert own.files == bob.files
