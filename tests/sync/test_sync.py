"""Whatever is remembered gets into git, and to the other machines, by itself."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from aiaml_server import InvalidSetting, MemoryBank, Settings
from aiaml_server.sync import Status, merge, once, worktree
from aiaml_server.sync.address import remember, remembered, section
from aiaml_server.sync.command import Git
from aiaml_server.sync.reading import name_of
from aiaml_server.sync.repository import Repository
from aiaml_server.sync.survey import survey
from aiaml_server.sync.worktree import object_name, write_all_temporary
from client import SERVER, Client
from machine import (
    CLEAN,
    TOKEN,
    Machine,
    as_person,
    content_of,
    git,
    settle,
)
from printed import completed
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("nobodys_configuration")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")


@pytest.fixture
def alone(tmp_path: Path) -> Machine:
    """A machine without a remote."""
    return Machine(tmp_path / "alone")


# --- committing ---------------------------------------------------------------------------------


def test_each_memory_is_a_commit_with_its_id_and_file_name(alone: Machine) -> None:
    """One commit per memory, `Add memory <id> (<filename>)`, that holds exactly its file."""
    memories = [alone.remember(f"number {number}") for number in range(3)]
    alone.synced()
    added = [message for message in alone.messages() if message.startswith("Add")]
    assert sorted(added) == sorted(f"Add memory {m.id} ({m.file_name})" for m in memories)
    changed = alone.git("log", "--format=", "--name-status", "--diff-filter=AMD", "-3").splitlines()
    assert sorted(changed) == sorted(f"A\tfiles/{memory.file_name}" for memory in memories)
    assert alone.git("branch", "--show-current") == "main"


def test_edits_and_deletions_by_people_are_commits(alone: Machine) -> None:
    """A file that a person changes, adds or deletes is found at the next round."""
    kept, gone = alone.remember("kept"), alone.remember("gone")
    alone.synced()
    alone.path(kept).write_bytes(alone.path(kept).read_bytes() + b"more\n")
    alone.path(gone).unlink()
    (alone.base / "files" / "by hand.md").write_text("no frontmatter")
    alone.synced()
    assert sorted(alone.messages()[:3]) == [
        "Add memory by hand (by hand.md)",
        f"Forget memory {gone.id} ({gone.file_name})",
        f"Update memory {kept.id} ({kept.file_name})",
    ]


def test_a_round_without_news_makes_no_commit(alone: Machine) -> None:
    """Looking changes nothing."""
    alone.remember("one")
    alone.synced()
    head = alone.git("rev-parse", "HEAD")
    alone.synced()
    alone.restart()
    alone.synced()
    assert alone.git("rev-parse", "HEAD") == head


def test_bytes_are_committed_as_they_are(alone: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Line ends and encodings survive a person's autocrlf and attributes."""
    config = alone.base.parent / "config"
    config.write_text("[core]\n\tautocrlf = true\n\teol = crlf\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    alone.remember("first")
    odd = b"---\r\nid: x\r\n---\n\xff\x00 \r\nnot UTF-8\n"
    (alone.base / "files" / "odd.md").write_bytes(odd)
    alone.synced()
    assert content_of(alone.base, "HEAD")["odd.md"] == odd


def test_many_memories_at_first_adoption_are_one_import(alone: Machine) -> None:
    """A directory of memories that was never in git comes in with one commit."""
    directory = alone.base / "files"
    directory.mkdir(parents=True)
    for number in range(600):
        (directory / f"20240101_000000_{number:08x}.md").write_text(f"memory {number}")
    alone.synced()
    assert alone.messages() == ["Import 600 memories", "Set up the memory directory"]
    alone.remember("and one")
    alone.synced()
    assert alone.messages()[0].startswith("Add memory")


def test_only_memories_are_committed(alone: Machine) -> None:
    """Links, hidden files, other names, directories and files that are too large stay outside."""
    memory = alone.remember("a memory")
    directory = alone.base / "files"
    (directory / ".hidden.md").write_text("x")
    (directory / "notes.txt").write_text("x")
    (alone.base / "secret.md").write_text("x")
    (directory / "large.md").write_bytes(bytes(5 * 1024 * 1024))
    (directory / "inner").mkdir()
    (directory / "inner" / "deep.md").write_text("x")
    if sys.platform != "win32":
        (directory / "link.md").symlink_to("/etc/passwd")
        os.mkfifo(directory / "pipe.md")
    alone.synced()
    tracked = alone.git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert tracked == [".gitattributes", ".gitignore", f"files/{memory.file_name}"]


def test_commits_carry_the_persons_identity_or_else_ours(
    alone: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has said who they are is the author; nothing is written into a configuration."""
    alone.remember("one")
    alone.synced()
    assert alone.git("log", "-1", "--format=%an <%ae>") == "AIAML <aiaml@localhost>"
    assert "user" not in (alone.base / ".git" / "config").read_text()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Not used")
    config = alone.base.parent / "config"
    config.write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    alone.restart()
    alone.remember("two")
    alone.synced()
    assert alone.git("log", "-1", "--format=%an <%ae>") == "Ada <ada@example.org>"


def test_an_existing_repository_stays_as_it_is(alone: Machine) -> None:
    """Its branch, history, configuration and files are a person's; ours lies beside."""
    alone.base.mkdir()
    alone.git("init", "--quiet", "--initial-branch=notes")
    (alone.base / "README").write_text("mine")
    (alone.base / "staged").write_text("not yet")
    alone.git("add", "README")
    as_person(alone.base, "commit", "--quiet", "-m", "By hand")
    alone.git("add", "staged")
    (alone.base / "README").write_text("changed")
    config = (alone.base / ".git" / "config").read_bytes()
    memory = alone.remember("a memory")
    alone.synced()
    assert alone.git("log", "--all", "--format=%s") == "By hand"
    assert alone.messages() == [f"Add memory {memory.id} ({memory.file_name})"]
    assert alone.git("branch", "--show-current") == "notes"
    changed = alone.git("status", "--porcelain", "--untracked-files=no").splitlines()
    assert changed == ["M README", "A  staged"]
    assert ".aiaml.git" not in alone.git("status", "--porcelain", "--ignored=no")
    assert (alone.base / ".git" / "config").read_bytes() == config


def test_a_repository_around_the_base_directory_is_never_touched(tmp_path: Path) -> None:
    """The base directory gets a repository of its own, also inside another one."""
    git(tmp_path, "init", "--quiet")
    inner = Machine(tmp_path / "inner")
    inner.remember("mine")
    inner.synced()
    assert inner.repository == inner.base / ".aiaml.git"
    assert git(tmp_path, "count-objects") == "0 objects, 0 kilobytes"
    git(tmp_path, "add", ".")  # their git sees plain files, none of them of our repository
    assert not [path for path in git(tmp_path, "ls-files").splitlines() if ".aiaml.git" in path]


def test_what_a_killed_git_left_locked_does_not_stop_commits(alone: Machine) -> None:
    """A fresh lock is a living git's and waited for; an old one is removed."""
    alone.remember("one")
    alone.synced()
    ref_lock = alone.base / ".git" / "refs/heads/main.lock"
    ref_lock.touch()
    alone.remember("three")
    status = alone.sync()
    assert status.problem_kind == "locked"
    assert "main.lock" in str(status.problem)
    os.utime(ref_lock, (time.time() - 3600,) * 2)
    alone.synced()
    assert not ref_lock.exists()
    assert len(alone.messages()) == 3  # none twice


def test_git_that_was_killed_in_the_remote_is_told_as_that(ada: Machine, remote: Path) -> None:
    """As by a disk that was unplugged during a push: the message names the file that it left."""
    ada.remember("one")
    ada.synced()
    lock = remote / "HEAD.lock"
    lock.touch()
    ada.remember("two")
    status = ada.sync()
    assert status.problem_kind == "remote-locked"
    assert "HEAD.lock" in str(status.problem)
    lock.unlink()
    ada.synced()


# --- two machines -------------------------------------------------------------------------------


def test_memories_arrive_on_the_other_machine_and_are_found_there(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """What one machine remembers, the other one's `think` finds."""
    memory = ada.remember("a restaurant in Trieste")
    ada.synced()
    assert list(content_of(remote)) == [memory.file_name]
    bob.synced()
    assert [hit.id for hit in bob.bank.think(["trieste"])] == [memory.id]
    assert ada.files == bob.files


def test_histories_that_know_nothing_of_each_other_are_joined(ada: Machine, bob: Machine) -> None:
    """A second machine with memories of its own, set up against a remote that has others."""
    ada.remember("from ada")
    bob.remember("from bob")
    settle([ada, bob])
    assert len(ada.files) == 2
    assert ada.files == bob.files


def test_a_remote_with_another_default_branch_is_joined_and_gets_main(
    bob: Machine, remote: Path, tmp_path: Path
) -> None:
    """Memories that stand on `master` come along; `main` is pushed, `master` is left alone."""
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "init", "--quiet", "--initial-branch=master", str(elsewhere))
    (elsewhere / "files").mkdir()
    (elsewhere / "files" / "20240101_000000_aaaaaaaa.md").write_text("old")
    git(elsewhere, "add", "files")
    as_person(elsewhere, "commit", "--quiet", "-m", "old")
    git(elsewhere, "push", "--quiet", str(remote), "master")
    git(remote, "symbolic-ref", "HEAD", "refs/heads/master")
    memory = bob.remember("new")
    bob.synced()
    assert set(content_of(remote)) == {"20240101_000000_aaaaaaaa.md", memory.file_name}
    assert list(content_of(remote, "master")) == ["20240101_000000_aaaaaaaa.md"]
    assert set(bob.files) == set(content_of(remote))


def test_a_push_that_another_machine_outran_is_tried_again(
    ada: Machine, bob: Machine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our fetch and our push another machine pushes: we join again and push."""
    ada.remember("first")
    settle([ada, bob])
    from aiaml_server.sync.remote import Remote

    fetch = Remote.fetch
    faster = iter([True])

    def fetch_then_be_outrun(self: Remote) -> tuple[str, bool]:
        seen = fetch(self)
        if self is ada.rounds._remote and next(faster, False):
            bob.remember("bob is faster")
            bob.synced()
        return seen

    monkeypatch.setattr(Remote, "fetch", fetch_then_be_outrun)
    ada.remember("ada is slower")
    status = ada.synced()
    assert (status.ahead, status.behind) == (0, 0)
    assert len(content_of(remote)) == 3


def test_both_versions_of_a_memory_edited_on_two_machines_are_kept(
    ada: Machine, bob: Machine
) -> None:
    """One keeps the name; the other becomes a memory of its own, with an id of its own."""
    memory = ada.remember("the original")
    settle([ada, bob])
    for machine, text in ((ada, b"by ada"), (bob, b"by bob")):
        path = machine.path(memory)
        path.write_bytes(path.read_bytes().replace(b"the original", text))
    settle([ada, bob])
    assert ada.files == bob.files
    found = [bob.bank.recall([hit.id])[hit.id] for hit in bob.bank.think(["by"])]
    assert sorted(each.content for (each,) in found) == ["by ada", "by bob"]
    ids = {each.id for (each,) in found}
    assert len(ids) == 2
    assert memory.id in ids
    for (each,) in found:
        assert f"{memory.file_name[:16]}{each.id}.md" in bob.files


@pytest.mark.parametrize("first", ["the edit", "the deletion"])
def test_an_edit_wins_over_a_deletion(ada: Machine, bob: Machine, first: str) -> None:
    """Edited here and deleted there: the edited memory is back on both."""
    memory = ada.remember("the original")
    settle([ada, bob])
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"and more\n")
    bob.path(memory).unlink()
    settle([ada, bob] if first == "the edit" else [bob, ada])
    assert b"and more" in bob.files[memory.file_name]
    assert ada.files == bob.files


def test_a_rename_here_and_an_edit_there_are_both_kept(ada: Machine, bob: Machine) -> None:
    """Two files of one id, of which `recall` gives both; deleting one leaves the other."""
    memory = ada.remember("the original")
    settle([ada, bob])
    ada.path(memory).rename(ada.base / "files" / "renamed.md")
    bob.path(memory).write_bytes(bob.path(memory).read_bytes() + b"and more\n")
    settle([ada, bob])
    assert set(ada.files) == set(bob.files) == {memory.file_name, "renamed.md"}
    for machine in (ada, bob):
        found = machine.bank.recall([memory.id])[memory.id]
        assert sorted(each.content for each in found) == ["the original", "the original\nand more"]
    (ada.base / "files" / "renamed.md").unlink()
    settle([ada, bob])
    assert list(bob.files) == [memory.file_name]


def test_a_deletion_of_an_unchanged_memory_reaches_all(ada: Machine, bob: Machine) -> None:
    """Deleted on one machine, or on both: gone everywhere."""
    memories = [ada.remember("one"), ada.remember("two")]
    settle([ada, bob])
    for memory in memories:
        ada.path(memory).unlink()
    bob.path(memories[0]).unlink()
    settle([ada, bob])
    assert ada.files == bob.files == {}


def test_the_same_file_name_drawn_on_two_machines_loses_neither(ada: Machine, bob: Machine) -> None:
    """The same id in the same second: both memories are kept."""
    name = "20240101_000000_aaaaaaaa.md"
    for machine in (ada, bob):
        (machine.base / "files").mkdir(parents=True)
        (machine.base / "files" / name).write_text(
            f"---\nid: aaaaaaaa\n---\n\n{machine.base.name}\n"
        )
    settle([ada, bob])
    assert ada.files == bob.files
    assert len(ada.files) == 2
    for each in ("ada", "bob"):
        assert any(each in data.decode() for data in ada.files.values())


def test_what_a_person_writes_meanwhile_is_never_overwritten(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that changes after it was committed, while another version arrives, keeps both."""
    memory = ada.remember("the original")
    settle([ada, bob])
    bob.path(memory).write_text("by bob")
    bob.synced()
    merged = merge.merge

    def write_then_merge(
        repository: Repository, ours: str, theirs: str, grown: tuple[str, str] = ("", "")
    ) -> str:
        if repository.base == ada.base and b"the original" in ada.path(memory).read_bytes():
            ada.path(memory).write_text("by ada")
        return merged(repository, ours, theirs, grown)

    monkeypatch.setattr(merge, "merge", write_then_merge)
    settle([ada, bob])
    assert sorted(ada.files.values()) == [b"by ada", b"by bob"]
    assert ada.files == bob.files


def test_what_a_person_writes_in_the_last_moment_is_not_overwritten_either(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the file was read, while the other version is made durable beside it."""
    memory = ada.remember("the original")
    settle([ada, bob])
    bob.path(memory).write_text("by bob")
    bob.synced()
    left = [True]

    def write_meanwhile(files: Sequence[tuple[Path, bytes]]) -> list[Path]:
        if files and left and left.pop():
            ada.path(memory).write_text("by ada")
        return write_all_temporary(files)

    monkeypatch.setattr(worktree, "write_all_temporary", write_meanwhile)
    settle([ada, bob])
    assert not left
    assert sorted(ada.files.values()) == [b"by ada", b"by bob"]
    assert ada.files == bob.files


@pytest.mark.parametrize("note", ["is there", "was lost"])
def test_a_join_that_stops_between_two_files_loses_no_version(
    ada: Machine, bob: Machine, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that gives up its name stands under its new one before.

    So it is found also where a power cut took the note of the join: an old git does not sync that.
    """
    memory = ada.remember("the original")
    settle([ada, bob])
    original = ada.path(memory).read_bytes()
    texts = sorted((original + b"by ada", original + b"by bob"), key=lambda t: object_name(t, b""))
    ada.path(memory).write_bytes(texts[0])  # loses the name
    bob.path(memory).write_bytes(texts[1])
    bob.synced()
    left = iter([True])

    def rename_one(source: Path, target: Path) -> None:
        if not next(left, False):
            raise OSError(errno.EIO, "the power is gone")
        source.replace(target)

    monkeypatch.setattr(worktree, "rename_over", rename_one)
    assert "the power is gone" in str(ada.sync().problem)
    monkeypatch.undo()
    if note == "was lost":
        ada.git("update-ref", "-d", "refs/aiaml/joining")
    ada.restart()
    settle([ada, bob])
    assert ada.files == bob.files
    for each in (b"by ada", b"by bob"):
        assert any(each in data for data in ada.files.values())


def test_files_that_are_no_memories_stay_in_git_but_are_not_brought_in(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """What people push beside the memories stays in the history, and nothing of it is lost."""
    ada.remember("one")
    ada.synced()
    clone = ada.base.parent / "clone"
    git(clone.parent, "clone", "--quiet", str(remote), clone.name)
    (clone / "notes.txt").write_text("mine")
    git(clone, "add", "notes.txt")
    as_person(clone, "commit", "--quiet", "-m", "Notes")
    git(clone, "push", "--quiet")
    bob.remember("two")
    bob.synced()
    assert not (bob.base / "notes.txt").exists()
    assert git(remote, "show", "main:notes.txt") == "mine"


# --- secrets and status -------------------------------------------------------------------------


def test_a_memory_with_a_secret_stays_on_this_machine(ada: Machine, remote: Path) -> None:
    """It is stored and found, but not in git until the secret is out, or the check is off."""
    fine = ada.remember("nothing secret")
    secret = ada.remember(f"the token is {TOKEN}")
    status = ada.synced()
    why = status.held_back.pop(f"files/{secret.file_name}")
    assert why.kind == "secret" and why.sentence == "it seems to hold a GitHub token"
    assert "--release ID" in why.remedy and not status.held_back
    assert list(content_of(remote)) == [fine.file_name]
    assert len(ada.bank.think(["token"])) == 1
    unchecked = Machine(ada.base, remote, check_secrets=False)
    assert unchecked.synced().kept_out == {}
    assert set(content_of(remote)) == {fine.file_name, secret.file_name}


def test_a_version_that_arrives_for_a_memory_held_back_stays_in_git(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """Edited here with a secret and there without: each machine has its own on disk."""
    memory = ada.remember("the original")
    settle([ada, bob])
    with_secret = ada.path(memory).read_bytes() + TOKEN.encode()
    ada.path(memory).write_bytes(with_secret)
    bob.path(memory).write_bytes(bob.path(memory).read_bytes() + b"by bob")
    settle([bob, ada])
    assert ada.files[memory.file_name] == with_secret
    assert b"by bob" in bob.files[memory.file_name]
    assert bob.files == content_of(remote)
    assert len(ada.files) == 1


def test_the_status_says_how_things_stand(ada: Machine, remote: Path) -> None:
    """Ahead while the remote is away, with the reason; then pushed, and all is well."""
    away = remote.rename(remote.with_name("away"))
    ada.remember("one")
    status = ada.sync()
    assert status.last_commit
    assert (status.last_push, status.last_fetch, status.ahead) == (None, None, 2)
    assert "the disk or folder of the remote is not there" in str(status.problem)
    away.rename(remote)
    status = ada.synced()
    assert status.last_push
    assert status.failing_since is None
    assert (status.ahead, status.behind) == (0, 0)
    assert json.loads((ada.base / ".sync-status.json").read_text())["remote"] is True


# --- the thread ---------------------------------------------------------------------------------


def test_memories_travel_without_anyone_doing_anything(ada: Machine, bob: Machine) -> None:
    """Two open banks: what one remembers is in git, at the remote, and in the other's directory."""
    with ada.bank.opened(), bob.bank.opened():
        memory = ada.remember("hello")
        wait_until(lambda: memory.file_name in bob.files)


def test_closing_commits_what_is_new_in_time(alone: Machine) -> None:
    """A memory of the last moment is in git when the bank is closed, within 1.5 s."""
    alone.remember("first words")
    alone.synced()
    for pause in (0, 1.5):
        with MemoryBank(Settings(alone.base)).opened() as bank:
            time.sleep(pause)
            memory = bank.remember("claude", "marco", ["test"], "last words")
        assert memory.id in alone.messages()[0]


def left_at_once(base: Path, path: str = os.environ["PATH"]) -> str:
    """Have a client remember and leave; return the id when its server has ended."""
    environ = {"AIAML_ENABLE_SYNC": "true", "PATH": path}
    with Client(base, environ=environ) as client:
        memory_id = client.remember("hello")["memory_id"]
        assert client.close() == 0
        return str(memory_id)


def has_committed(base: Path, memory_id: str) -> bool:
    """Whether a memory is in git; not where there is no repository yet."""
    return (base / ".git").exists() and memory_id in git(base, "log", "--all", "--format=%s")


def test_a_server_whose_client_leaves_has_committed(tmp_path: Path) -> None:
    """A client that remembers and closes at once: the server ends in time, the memory is in git."""
    memory_id = left_at_once(tmp_path / "base")
    assert has_committed(tmp_path / "base", memory_id)


@pytest.mark.slow
@posix_only
def test_what_a_slow_git_had_no_time_for_is_committed_at_the_next_start(tmp_path: Path) -> None:
    """The server ends in time all the same, and git is left as one that can be gone on with."""
    directory, base = tmp_path / "bin", tmp_path / "base"
    directory.mkdir()
    slow = directory / "git"
    slow.write_text(f'#!/bin/sh\nsleep 0.5\nexec {shutil.which("git")} "$@"\n')
    slow.chmod(0o755)
    memory_id = left_at_once(base, f"{directory}{os.pathsep}{os.environ['PATH']}")
    assert not has_committed(base, memory_id)
    with MemoryBank(Settings(base)).opened():
        wait_until(lambda: has_committed(base, memory_id), 30)


def test_without_sync_there_is_no_git_at_all(tmp_path: Path) -> None:
    """Switched off, nothing of git is written."""
    bank = MemoryBank(Settings(tmp_path, sync=False))
    with bank.opened():
        bank.remember("claude", "marco", ["test"], "hello")
        time.sleep(1)
    assert {path.name for path in tmp_path.iterdir()} - {".index"} == {
        ".aiaml-id",
        ".lock",
        "files",
    }


def test_without_git_there_is_one_warning_and_all_else_works(tmp_path: Path) -> None:
    """A machine without git: the memory is stored and found, and the log says it once."""
    program = (
        "import sys, time; from pathlib import Path; from aiaml_server import *\n"
        "with MemoryBank(Settings(Path(sys.argv[1]), sync_interval=0.1)).opened() as bank:\n"
        "    for _ in range(3):\n"
        "        bank.remember('claude', 'marco', ['test'], 'hello'); time.sleep(0.5)\n"
        "    print(len(bank.think(['hello'])))\n"
    )
    done = completed(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PATH": str(tmp_path)},
        timeout=60,
    )
    assert done.stdout.strip() == "3"
    assert done.stderr.splitlines() == ["Sync is off: there is no git on this machine"]


@pytest.mark.slow
def test_remembering_does_not_wait_for_git(alone: Machine) -> None:
    """With a git that never ends, a memory is stored and found, and the server ends."""
    directory = alone.base.parent / "bin"
    directory.mkdir()
    (directory / "git").write_text("#!/bin/sh\nsleep 1000\n")
    (directory / "git").chmod(0o755)
    program = (
        "import sys, time; from pathlib import Path; from aiaml_server import *\n"
        "with MemoryBank(Settings(Path(sys.argv[1]))).opened() as bank:\n"
        "    time.sleep(1)\n"
        "    bank.remember('claude', 'marco', ['test'], 'hello')\n"
        "    print(len(bank.think(['hello'])))\n"
    )
    done = completed(
        [sys.executable, "-c", program, str(alone.base)],
        env={**os.environ, "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"},
        timeout=60,
    )
    assert done.stdout == "1\n"


# --- settings -----------------------------------------------------------------------------------


def test_the_settings_of_sync_have_their_defaults() -> None:
    """Sync is on, without a remote, every minute, and checks for secrets."""
    settings = Settings.from_environ({})
    assert (settings.sync, settings.remote, settings.sync_interval) == (True, "", 60.0)
    assert settings.check_secrets
    off = Settings.from_environ({"AIAML_ENABLE_SYNC": "False", "AIAML_CHECK_SECRETS": "0"})
    assert (off.sync, off.check_secrets) == (False, False)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AIAML_ENABLE_SYNC", "maybe"),
        ("AIAML_CHECK_SECRETS", "2"),
        ("AIAML_SYNC_INTERVAL", "soon"),
        ("AIAML_SYNC_INTERVAL", "0"),
        ("AIAML_SYNC_INTERVAL", "nan"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(variable: str, value: str) -> None:
    """A wrong value ends the start with a sentence that names the variable."""
    with pytest.raises(InvalidSetting, match=variable):
        Settings.from_environ({variable: value})


UNUSABLE = (
    "ext::sh -c touch% OWNED",
    "EXT::sh",
    "foo::https://example.org",
    "ftp://ada:hunter2@example.org/x",
    "--upload-pack=touch OWNED",
    "https://example.org/x\ny",
    " /path",
    "https://example.org/x ",
)


@pytest.mark.slow
@pytest.mark.parametrize("value", UNUSABLE)
def test_an_address_that_cannot_be_used_keeps_no_memory_away(value: str, tmp_path: Path) -> None:
    """The server serves and commits; its log, the status and doctor say what is wrong."""
    base = tmp_path / "base"
    wrong = {"AIAML_GITHUB_REMOTE": value, "AIAML_ENABLE_SYNC": "true", "HOME": str(tmp_path)}
    with Client(base, environ={**wrong, **CLEAN}) as client:
        assert client.remember("Marco's dog")["memory_id"]
        assert len(client.call("think", keywords=["dog"])) == 1
        wait_until(lambda: Status.read(base).problem and "AIAML_GITHUB_REMOTE" in client.log())
    status = Status.read(base)
    assert status.problem_kind == "address"
    assert "AIAML_GITHUB_REMOTE" in str(status.problem)
    assert status.last_commit
    told = client.log() + (base / ".sync-status.json").read_text() + value_of("status", base, wrong)
    told += value_of("doctor --offline settings remote", base, wrong)
    assert told.count("AIAML_GITHUB_REMOTE") >= 4
    assert "hunter2" not in told
    assert list(tmp_path.rglob("OWNED")) == []
    assert value_of("list", base, wrong).count("dog") == 1


def value_of(line: str, base: Path, environ: Mapping[str, str]) -> str:
    """Return what a verb prints."""
    done = subprocess.run(
        [*SERVER, *line.split()],
        env={**os.environ, **CLEAN, **environ, "AIAML_MEMORY_DIR": str(base)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "value",
    [
        "https://github.com/ada/memories.git",
        "https://ada:token@example.org/memories",
        "git@github.com:ada/memories.git",
        "ssh://git@example.org:2222/memories",
        "file:///srv/memories.git",
        "/srv/memories.git",
        "~/memories.git",
        "C:\\memories",
    ],
)
def test_a_remote_can_be_any_url_of_git_or_a_path(value: str) -> None:
    """What git can fetch from without running anything is taken, and kept out of sight."""
    settings = Settings.from_environ({"AIAML_GITHUB_REMOTE": value})
    assert settings.remote == value
    assert settings.remote_error is None
    assert value not in repr(settings)


def test_nothing_of_sync_shows_a_password(tmp_path: Path) -> None:
    """A refused address is not repeated: it may hold a password."""
    settings = Settings.from_environ({"AIAML_GITHUB_REMOTE": "ftp://ada:hunter2@example.org"})
    assert "AIAML_GITHUB_REMOTE is of the kind 'ftp'" in str(settings.remote_error)
    assert "hunter2" not in f"{settings.remote_error}{settings}"
    assert Status.read(tmp_path) == Status()


@pytest.mark.parametrize("address", ['a"b\\c', "https://me:p%40ss@example.org/x.git", "~/m", "h:é"])
def test_the_address_last_used_is_known(tmp_path: Path, address: str) -> None:
    """A person's shell need not repeat what a client told its servers."""
    assert remembered(tmp_path) == ""
    directory = tmp_path / ".git" / "aiaml"
    directory.mkdir(parents=True)
    (directory / "remote").write_text(section(address), encoding="utf-8")
    assert remembered(tmp_path) == ""  # it may have come with the directory
    remember(tmp_path, address)
    assert remembered(tmp_path) == address
    assert (
        git(tmp_path, "config", "--file", str(directory / "remote"), "remote.origin.url") == address
    )


def test_what_a_git_that_died_has_left_is_removed(alone: Machine) -> None:
    """Once it is old, so that no git at work can have it; nothing else is."""
    alone.remember("first")
    alone.synced()
    directory = alone.base / ".git"
    names = [
        "HEAD.lock", "fast_import_crash_1", "refs/heads/x.lock", "aiaml/y.lock",
        "objects/pack/tmp_pack_1", "objects/pack/sub/tmp_idx_2",
    ]  # fmt: skip
    others = ["refs/heads/x", "aiaml/tmp_z", "objects/pack/y.lock", "sub/HEAD.lock", "tmp_here"]
    head = (directory / "refs" / "heads" / "main").read_bytes()
    for name in (*names, *others):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(head)
    fresh = directory / "config.lock"
    fresh.touch()
    for name in (*names, *others):
        os.utime(directory / name, (time.time() - 3 * 86_400,) * 2)
    alone.restart()
    alone.sync()
    assert [name for name in names if (directory / name).exists()] == []
    assert all((directory / name).exists() for name in others)
    assert fresh.exists()


# --- what it costs ------------------------------------------------------------------------------


def test_git_runs_seldom(alone: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is a thirtieth of what `aiaml remember` takes."""
    ran: list[str] = []

    def counted(self: Git, verb: str, *words: str, **rest: Any) -> bytes:
        ran.append(verb)
        return plainly(self, verb, *words, **rest)

    plainly = Git.run
    monkeypatch.setattr(Git, "run", counted)
    for content in ("first", "second"):
        alone.remember(content)
        ran.clear()
        once(alone.settings, local=True)
    assert sorted(ran) == ["config", "fast-import", "ls-tree"]
    ran.clear()
    assert survey(alone.settings).problem is None
    assert ran == ["version", "ls-tree"]


def test_a_ref_is_found_wherever_git_keeps_it(tmp_path: Path) -> None:
    """In a file of its own, packed with the others, packed and then changed, or nowhere."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    as_person(tmp_path, "commit", "--quiet", "--allow-empty", "--message=one")
    one = git(tmp_path, "rev-parse", "HEAD")
    own = tmp_path / ".git"

    def named(ref: str) -> str:
        return name_of(Git(tmp_path), own, ref)

    git(tmp_path, "update-ref", "refs/aiaml/joining", one)
    assert named("refs/aiaml/joining") == one
    git(tmp_path, "pack-refs", "--all")
    assert not (own / "refs" / "aiaml" / "joining").exists()
    assert named("refs/aiaml/joining") == named("refs/heads/main^{commit}") == named("HEAD") == one
    assert named("refs/aiaml/join") == named("refs/heads/aiaml^{commit}") == ""
    git(tmp_path, "update-ref", "-d", "refs/aiaml/joining")
    assert named("refs/aiaml/joining") == ""
    (own / "packed-refs").unlink()
    assert named("refs/heads/main") == named("HEAD") == ""
