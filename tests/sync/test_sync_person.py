"""A person's own git in the memory directory: its files, branches and habits are left alone."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server.sync.address import remembered
from machine import Machine, append, as_person, content_of, git, settle

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


def test_a_clone_in_place_of_the_repository_stays_the_persons(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """A person puts a fresh clone there while the server runs; ours begins beside it, from it."""
    ada.remember("one")
    settle([ada, bob])
    shutil.rmtree(ada.base / ".git")
    git(ada.base.parent, "clone", "--quiet", "--no-checkout", str(remote), "fresh")
    (ada.base.parent / "fresh" / ".git").rename(ada.base / ".git")
    bob.remember("two")
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 2
    assert ada.repository == ada.base / ".aiaml.git"
    assert ada.git("log", "-1", "--format=%s", "HEAD") in ada.messages()


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
    tmp_path: Path, remote: Path, made: object
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
    assert machine.repository == base / ".aiaml.git"


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


@pytest.mark.gate_cases(3)
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
    for words in (("commit", "--allow-empty", "-qm", "First"),
                  ("add", "-A"), ("commit", "--allow-empty", "-qm", "All"),
                  ("reset", "--quiet", "--hard", "HEAD~1")):  # fmt: skip
        as_person(ada.base, *words)
    settle([ada, bob])
    assert set(ada.files) == {theirs.file_name}
    ada.path(theirs).unlink()
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote) == {}
    outer = git(base.parent, "ls-files") if (base.parent / ".git").is_dir() else ""
    assert "files/" not in outer or made is _below


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


def test_a_warning_about_line_ends_stops_no_commit(configuration: Path, ada: Machine) -> None:
    """With `core.safecrlf` git refuses to add what it could not give back byte for byte."""
    configuration.write_text("[core]\n\tautocrlf = true\n\tsafecrlf = true\n")
    ada.remember("one")
    ada.synced()
    assert len(ada.messages()) == 2


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


# --- a repository of ours -----------------------------------------------------------------------


@pytest.fixture
def alone(tmp_path: Path) -> Machine:
    """A machine without a remote."""
    return Machine(tmp_path / "alone")


def commit_file(base: Path, name: str, text: str, message: str = "By hand") -> None:
    """Write a file of the person's, and commit it as they would."""
    (base / name).write_text(text)
    git(base, "add", name)
    as_person(base, "commit", "--quiet", "-m", message)


def everything(directory: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a directory."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("words", [
    ("status",), ("add", "-A"), ("commit", "-am", "x"), ("checkout", "HEAD~1"),
    ("switch", "-c", "x"), ("restore", "."), ("reset", "--hard", "HEAD~1"), ("stash",),
    ("rebase", "HEAD~1"), ("merge", "HEAD~1"), ("pull",), ("clean", "-fdx"),
    ("rm", "-r", "files"), ("mv", "files", "x"),
    ("cherry-pick", "HEAD"), ("revert", "--no-edit", "HEAD"), ("am",),
    ("sparse-checkout", "set", "x"), ("checkout-index", "-a"), ("diff",),
], ids=" ".join)  # fmt: skip
def test_repository_refuses_what_needs_a_work_tree(alone: Machine, words: tuple[str, ...]) -> None:
    """A command that could move memories fails by itself, and changes no file and no history."""
    for text in ("one", "two"):
        alone.remember(text)
        alone.synced()
    before = everything(alone.base)
    with pytest.raises(AssertionError, match=r"must be run in a work tree|cannot be used without"):
        as_person(alone.base, *words)
    assert everything(alone.base) == before


def test_repository_is_read_and_cloned_in_the_base_directory(alone: Machine) -> None:
    """`git log`, `show` and `clone` work there as in any repository."""
    memory = alone.remember("one")
    alone.synced()
    assert alone.git("log", "-1", "--format=%s").startswith("Add memory")
    assert "one" in alone.git("show", f"HEAD:files/{memory.file_name}")
    git(alone.base.parent, "clone", "--quiet", str(alone.base), "clone")
    copy = alone.base.parent / "clone/files" / memory.file_name
    assert copy.read_bytes() == alone.files[memory.file_name]


@pytest.mark.parametrize("words", [
    ("reset", "--soft", "HEAD~2"), ("branch", "--force", "main", "HEAD~2"),
    ("update-ref", "refs/heads/main", "HEAD~2"), ("update-ref", "-d", "refs/heads/main"),
], ids=" ".join)  # fmt: skip
def test_repository_whose_branch_was_moved_by_hand_loses_no_memory(
    ada: Machine, bob: Machine, words: tuple[str, ...]
) -> None:
    """What git lets a person do to a bare repository costs commits at most, and no file."""
    for text in ("one", "two", "three"):
        ada.remember(text)
        settle([ada, bob])
    before = dict(ada.files)
    ada.git(*words)
    settle([ada, bob])
    assert ada.files == bob.files == before == content_of(ada.repository)


def test_repository_takes_what_a_person_pushes_to_it(ada: Machine, bob: Machine) -> None:
    """New and edited memories of a clone come to the disk and travel; a deletion comes back."""
    one, two = ada.remember("one"), ada.remember("two")
    settle([ada, bob])
    clone = ada.base.parent / "clone"
    git(clone.parent, "clone", "--quiet", str(ada.base), clone.name)
    with (clone / "files" / one.file_name).open("a") as file:
        file.write("by hand\n")
    (clone / "files" / two.file_name).unlink()
    (clone / "files" / "new.md").write_text("new")
    git(clone, "add", "-A")
    as_person(clone, "commit", "--quiet", "-m", "By hand")
    git(clone, "push", "--quiet")
    settle([ada, bob])
    assert ada.files == bob.files == content_of(ada.repository)
    assert ada.files.keys() == {one.file_name, two.file_name, "new.md"}
    assert ada.files[one.file_name].endswith(b"by hand\n")


@pytest.mark.parametrize("words", [("init", "--quiet"), ("config", "core.bare", "false")])
def test_repository_that_a_person_gives_a_work_tree_is_theirs(
    ada: Machine, bob: Machine, words: tuple[str, ...]
) -> None:
    """From then on they may do in it what they like; ours goes on beside it, with its history."""
    for text in ("one", "two"):
        ada.remember(text)
        settle([ada, bob])
    before, commits = dict(ada.files), ada.messages()
    ada.git(*words)
    ada.git("config", "core.bare", "false")
    ada.git("reset", "--quiet", "--hard", "HEAD~1")
    settle([ada, bob])
    assert ada.repository == ada.base / ".aiaml.git"
    assert ada.files == bob.files == before
    assert ada.messages() == commits


# --- a person's own beside it --------------------------------------------------------------------


@pytest.fixture
def own(ada: Machine) -> Machine:
    """A machine whose person has a repository of their own there, with notes and two memories."""
    ada.base.mkdir()
    ada.git("init", "--quiet", "--initial-branch=main")
    commit_file(ada.base, "notes.txt", "v1")
    ada.remember("one")
    ada.remember("two")
    ada.synced()
    ada.remember("three")
    ada.git("add", "files/*.md")
    as_person(ada.base, "commit", "--quiet", "-m", "All")
    ada.synced()
    return ada


@pytest.mark.slow
def test_persons_repository_stays_byte_for_byte(own: Machine, bob: Machine, remote: Path) -> None:
    """Refs, index, logs, stash, hooks and configuration, over rounds, joins and forgetting."""
    commit_file(own.base, "notes.txt", "v2")
    own.git("branch", "ideas")
    own.git("tag", "v2")
    (own.base / "notes.txt").write_text("draft")
    as_person(own.base, "stash", "push", "--quiet", "--", "notes.txt")
    (own.base / "staged.txt").write_text("staged")
    own.git("add", "staged.txt")
    hook = own.base / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    before = everything(own.base / ".git")
    memory, late = own.remember("four"), bob.remember("five")
    settle([own, bob])
    own.path(late).write_bytes(own.files[late.file_name] + b"edited here\n")
    bob.path(late).write_bytes(bob.files[late.file_name] + b"edited there\n")
    settle([own, bob])
    own.rounds._erase = own.marks(memory.file_name, memory.id)
    settle([own, bob])
    assert own.files == bob.files == content_of(remote)
    assert memory.file_name not in own.files
    assert everything(own.base / ".git") == before
    assert own.git("fsck", "--no-dangling") == ""
    assert own.git("stash", "list").count("stash@") == 1
    assert ".aiaml.git" not in own.git("status", "--porcelain", "--untracked-files=all")


def test_persons_commits_stay_with_them(own: Machine, remote: Path) -> None:
    """What they commit to their repository, and push elsewhere, is no business of sync's."""
    commit_file(own.base, "notes.txt", "v2")
    own.synced()
    assert "notes.txt" not in git(remote, "ls-tree", "-r", "--name-only", "main")
    assert "By hand" not in git(remote, "log", "--format=%s", "main")
    assert len(content_of(remote)) == 3


def test_many_quick_commits_succeed_while_memories_come(own: Machine) -> None:
    """None of the person's fails for a lock of ours."""
    with own.bank.opened():
        for number in range(40):
            if number % 6 == 0:
                own.remember(f"number {number}")
            commit_file(own.base, "notes.txt", f"{number}\n", f"Notes {number}")
    own.synced()
    assert own.git("log", "-1", "--format=%s") == "Notes 39"
    assert len(content_of(own.repository)) == 10


def test_a_stash_is_given_back_whole(ada: Machine, remote: Path) -> None:
    """`git stash -u`, memories, `git stash pop`, with the lines that docs/sync.md names."""
    ada.base.mkdir()
    ada.git("init", "--quiet")
    commit_file(ada.base, "notes.txt", "v1")
    (ada.base / ".git/info/exclude").write_text("/files/*.md\n/files/.*\n/.*\n")
    for number in range(3):
        (ada.base / "notes.txt").write_text(f"draft {number}")
        (ada.base / "new.txt").write_text("new")
        as_person(ada.base, "stash", "push", "--quiet", "--include-untracked")
        ada.remember(f"meanwhile {number}")
        ada.synced()
        ada.git("stash", "pop", "--quiet")
        assert (ada.base / "notes.txt").read_text() == f"draft {number}"
        assert (ada.base / "new.txt").exists()
    assert len(ada.files) == 3
    assert content_of(remote) == ada.files


def staged_and_reset(base: Path) -> None:
    """A memory that is staged is no longer on disk after a reset."""
    git(base, "add", "-f", "files/*.md")
    git(base, "reset", "--quiet", "--hard")


def put_away(base: Path) -> None:
    """All is stashed, also what git overlooks."""
    as_person(base, "stash", "push", "--quiet", "--include-untracked")


def staged_and_put_away(base: Path) -> None:
    """What is staged is stashed."""
    git(base, "add", "-f", "files/*.md")
    as_person(base, "stash", "push", "--quiet")


def put_away_by_name(base: Path) -> None:
    """Some files are stashed; nothing is checked out for that."""
    git(base, "add", "-f", "files/*.md")
    as_person(base, "stash", "push", "--quiet", "--", "files")


def looked_back(base: Path) -> None:
    """A look at an old commit that has no memories."""
    git(base, "checkout", "--quiet", "HEAD~1")


def back_and_forth(base: Path) -> None:
    """A rebase, a look at an old commit, and back."""
    as_person(base, "rebase", "--quiet", "--force-rebase", "HEAD~1")
    git(base, "checkout", "--quiet", "HEAD~1")
    git(base, "checkout", "--quiet", "main")


def taken_back(base: Path) -> None:
    """The commit that added memories is reverted."""
    as_person(base, "revert", "--no-edit", "HEAD")


def removed(base: Path) -> None:
    """Memories are taken out of the person's repository."""
    git(base, "rm", "-r", "-f", "--quiet", "files")


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


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("disturb", [
    staged_and_reset, put_away, staged_and_put_away, put_away_by_name, looked_back, back_and_forth,
    taken_back, removed, made_sparse, emptied,
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


def test_an_unfinished_merge_of_theirs_is_no_edit(own: Machine, bob: Machine) -> None:
    """Both sides in one file stay here until the person has chosen; new memories travel."""
    path = own.base / "files" / min(own.files)
    whole = path.read_bytes()
    own.git("checkout", "--quiet", "-b", "other")
    for branch in ("other", "main"):
        own.git("checkout", "--quiet", branch)
        path.write_bytes(whole + f"of {branch}\n".encode())
        as_person(own.base, "commit", "--quiet", "-am", branch)
    with suppress(AssertionError):
        as_person(own.base, "merge", "other")
    assert b"<<<<<<<" in path.read_bytes()
    memory = own.remember("meanwhile")
    settle([own, bob])
    assert b"<<<<<<<" not in bob.files[path.name]
    assert memory.file_name in bob.files
    path.write_bytes(whole + b"of both\n")
    as_person(own.base, "commit", "--quiet", "-am", "Both")
    settle([own, bob])
    assert bob.files[path.name] == whole + b"of both\n"


def test_an_unfinished_merge_of_theirs_is_no_new_memory(own: Machine, bob: Machine) -> None:
    """Of one that was forgotten, their git can still make such a file, of what it had stashed."""
    settle([own, bob])
    path = own.base / "files" / min(own.files)
    whole = path.read_bytes()
    append(path, "put away")
    as_person(own.base, "stash", "push", "--quiet")
    append(path, "kept")
    own.synced()
    as_person(own.base, "commit", "--quiet", "-am", "Kept")
    own.synced()
    own.bank.forget({path.name: path.read_text("utf-8")})
    own.synced()
    with suppress(AssertionError):
        as_person(own.base, "stash", "pop")
    assert b"<<<<<<<" in path.read_bytes()
    memory = own.remember("meanwhile")
    settle([own, bob])
    assert path.name not in bob.files
    assert memory.file_name in bob.files
    path.write_bytes(whole + b"of both\n")
    as_person(own.base, "commit", "--quiet", "-am", "Both")
    settle([own, bob])
    assert own.files == bob.files
    assert bob.files[path.name] == whole + b"of both\n"


@pytest.mark.parametrize("record", ["kept", "lost"])
def test_a_newer_version_arrives_after_a_merge_of_theirs_took_the_file_away(
    own: Machine, bob: Machine, record: str
) -> None:
    """While the merge is unfinished it cannot; then it does, whatever git did to our record."""
    settle([own, bob])
    name = min(own.files)
    own.git("checkout", "--quiet", "-b", "other")
    own.git("rm", "--quiet", f"files/{name}")
    commit_file(own.base, "notes.txt", "v2")
    own.git("checkout", "--quiet", "main")
    commit_file(own.base, "notes.txt", "v3")
    own.synced()
    with suppress(AssertionError):
        as_person(own.base, "merge", "other")
    assert name not in own.files
    append(bob.base / "files" / name, "of bob")
    bob.synced()
    assert own.sync().problem
    if record == "lost":
        for seen in own.base.glob(".index/*/seen"):
            seen.unlink()
    as_person(own.base, "commit", "--quiet", "-am", "Merged")
    settle([own, bob])
    assert own.files[name].endswith(b"of bob\n")
    assert own.files == bob.files
    assert not any(message.startswith("Forget") for message in own.messages())


@pytest.mark.parametrize("how", ["the verb", "by hand"])
def test_forgetting_after_git_moved_needs_the_verb(own: Machine, bob: Machine, how: str) -> None:
    """A file deleted by hand after git moved comes back; what the verb forgot does not."""
    settle([own, bob])
    name = min(own.files)
    own.git("checkout", "--quiet", "-b", "other")
    commit_file(own.base, "notes.txt", "v3")
    if how == "the verb":
        forget(own, name)
    else:
        (own.base / "files" / name).unlink()
    settle([own, bob])
    assert (name in own.files) == (name in bob.files) == (how == "by hand")


def forget(machine: Machine, name: str) -> None:
    """Forget a memory by the verb."""
    machine.bank.forget({name: machine.files[name].decode()})
