"""The remote: what it may hold, what it must not run, and what its errors mean."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from aiaml_server.files import hold_lock
from aiaml_server.git import Git, GitFailed
from aiaml_server.identity import trust
from aiaml_server.settings import Settings, hide_password
from aiaml_server.sync.cycle import current_status
from aiaml_server.sync.history import History
from aiaml_server.sync.remote import remote_in_use, setup_remote, try_remote
from aiaml_server.sync.status import SyncError, problem_of
from git_server import Terms, git_server
from machine import Machine, as_person, bare, content_of, git, settle

posix = pytest.mark.skipif(os.name != "posix", reason="hooks are shell scripts")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Return an empty remote."""
    return bare(tmp_path / "remote")


def push_files(remote: Path, files: dict[str, str]) -> None:
    """Commit files to a remote as somebody else."""
    clone = remote.with_name("clone")
    if not clone.exists():
        git(remote.parent, "clone", "--quiet", str(remote), str(clone))
    for name, text in files.items():
        (clone / name).parent.mkdir(exist_ok=True)
        (clone / name).write_text(text)
        git(clone, "add", "-f", name)
    as_person(clone, "commit", "--quiet", "-m", "More")
    git(clone, "push", "--quiet", "origin", "HEAD:main")


def test_files_of_a_host_s_template_stay_in_git_and_off_the_disk(
    tmp_path: Path, remote: Path
) -> None:
    """Attributes and ignore rules of a remote change no byte and hide no memory."""
    machine = Machine(tmp_path / "base", remote)
    memory = machine.remember("line\r\n$Id$\n")
    template = {
        ".gitattributes": "* text eol=crlf ident filter=evil\n",
        ".gitignore": "files/\n*.md\n",
        "README.md": "Memories",
        "LICENSE": "None",
    }
    push_files(remote, template)
    machine.synced()
    later = machine.remember("later")
    machine.synced()
    other = Machine(tmp_path / "other", remote)
    other.synced()
    assert other.files == machine.files
    assert b"$Id$" in other.files[memory.file_name]
    assert later.file_name in other.files
    for each in (machine, other):
        assert {path.name for path in each.base.iterdir()} & {*template} == set()
    names = git(remote, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert {*template} <= {*names}


@posix
def test_remote_with_anything_else_is_refused_by_name(tmp_path: Path, remote: Path) -> None:
    """At set-up and at each merge; nothing of it reaches the disk."""
    machine = Machine(tmp_path / "base", remote)
    machine.remember("one")
    machine.synced()
    push_files(remote, {"src/main.py": "print()", "notes\nWhat to do: run.txt": ""})
    machine.remember("two")
    for _ in range(2):
        problem = machine.sync().problem
        assert problem
        assert (problem.kind, r"'notes\nWhat to do: run.txt'" in problem.sentence) == (
            "not-empty",
            True,
        )
        assert "empty" in problem.remedy
    assert not (machine.base / "src").exists()
    with pytest.raises(SyncError, match="something other than memories"):
        setup_remote(tmp_path / "new", str(remote))
    link = remote.with_name("clone") / "files" / "20260101_000000_1b2c3d4e.md"
    link.symlink_to("/etc/passwd")
    git(link.parent.parent, "rm", "--quiet", "-r", "src", "notes*")
    git(link.parent.parent, "add", "-f", "files")
    as_person(link.parent.parent, "commit", "--quiet", "-m", "Link")
    git(link.parent.parent, "push", "--quiet", "origin", "HEAD:main")
    problem = machine.sync().problem
    assert problem
    assert link.name in problem.sentence


def test_other_branches_are_refused(tmp_path: Path, remote: Path) -> None:
    """A repository with a branch master and no main is not empty."""
    git(remote, "symbolic-ref", "HEAD", "refs/heads/master")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(remote), str(clone))
    as_person(clone, "commit", "--quiet", "--allow-empty", "-m", "First")
    git(clone, "push", "--quiet", "origin", "HEAD:master")
    machine = Machine(tmp_path / "base", remote)
    machine.remember("one")
    problem = machine.sync().problem
    assert problem
    assert "the branch master" in problem.sentence


@posix
def test_remote_on_a_disk_runs_nothing(tmp_path: Path, remote: Path) -> None:
    """Neither its hooks nor what its configuration names, whatever the push does."""
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    evil.chmod(0o755)
    (remote / "hooks").mkdir(exist_ok=True)
    for hook in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        (remote / "hooks" / hook).write_text(evil.read_text())
        (remote / "hooks" / hook).chmod(0o755)
    for key in ("core.alternateRefsCommand", "core.fsmonitor", "uploadpack.packObjectsHook"):
        git(remote, "config", key, str(evil))
    other = bare(tmp_path / "other")
    (remote / "objects" / "info").mkdir(exist_ok=True)
    (remote / "objects" / "info" / "alternates").write_text(f"{other / 'objects'}\n")
    for address in (str(remote), f"file://{remote}"):
        machine = Machine(tmp_path / address.replace("/", "_"), address)
        machine.remember("one")
        machine.synced()
    assert len(content_of(remote)) == 2
    assert not (tmp_path / "ran").exists()


@posix
def test_password_stands_in_no_argument_and_no_message(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given to git in the environment, and stored in a file for the owner alone."""
    arguments: list[str] = []
    run = Git.run

    def record(self: Git, command: str, *words: str, **options: object) -> bytes:
        arguments.extend(words)
        return run(self, command, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", record)
    with git_server(Terms(tmp_path, login="ada:s%sesame")) as address:
        with_login = address.replace("://", "://ada:s%25sesame@") + "/remote"
        assert not try_remote(Settings(tmp_path / "base", remote=with_login))
        assert setup_remote(tmp_path / "base", with_login) == 0
        machine = Machine(tmp_path / "base")
        machine.remember("one")
        machine.synced()
        assert len(content_of(remote)) == 1
        assert "sesame" not in " ".join(arguments)
        assert "sesame" not in (machine.repository / "config").read_text()
        assert "sesame" not in (machine.base / ".sync-status.json").read_text()
        stored = machine.repository / "aiaml" / "remote"
        assert stored.stat().st_mode & 0o077 == 0
    assert machine.sync().problem
    assert "sesame" not in str(machine.sync().problem)


def test_password_in_any_address_is_hidden() -> None:
    """Also where an address is no URL, and where git's message repeats it."""
    for address in (
        "https://ada:sesame@host/x.git",
        "https://ada:ses/sesame@host/x.git",
        "https://sesame@host/x.git",
        "ssh://ada:sesame@host/x.git",
        "ada:sesame@host:x.git",
        "https:/ada:sesame@host/x.git",
        "https://host/x.git?token=sesame",
    ):
        assert "sesame" not in hide_password(address)
        assert hide_password(address).count("***") == 1
        if "://" in address:
            error = GitFailed("fetch", f"fatal: unable to access '{address}/': illegal format")
            assert "sesame" not in problem_of(error).sentence
    for address in ("https://host/x", "ssh://git@host:22/x", "git@host:x", "/x@y", "file:///x@y"):
        assert hide_password(address) == address


REFUSES_PRIVATE_ADDRESS = """#!/bin/sh
while read old new ref; do
  case $old in 0*) range=$new;; *) range=$old..$new;; esac
  if git log --format='%ae %ce' $range | grep -q private@home.test; then
    echo "error: GH007: Your push would publish a private email address."; exit 1
  fi
done
"""


@posix
def test_refused_author_address_is_mended_once_it_is_corrected(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsent commits are made anew under today's identity."""
    config = tmp_path / "config"
    config.write_text("[user]\n\tname = Ada\n\temail = private@home.test\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    (remote / "hooks").mkdir(exist_ok=True)
    (remote / "hooks" / "pre-receive").write_text(REFUSES_PRIVATE_ADDRESS)
    (remote / "hooks" / "pre-receive").chmod(0o755)
    with git_server(Terms(tmp_path)) as address:
        machine = Machine(tmp_path / "base", f"{address}/remote")
        memory = machine.remember("green tea")
        problem = machine.sync().problem
        assert problem
        assert problem.kind == "author-address"
        assert "GH007" in problem.sentence
        config.write_text("[user]\n\tname = Ada\n\temail = ada@users.noreply.test\n")
        machine.remember("black tea")
        machine.synced()
    assert content_of(remote) == machine.files
    authors = {*git(remote, "log", "--format=%ae %ce", "main").split()}
    assert authors == {"ada@users.noreply.test"}
    assert f"Add memory {memory.id} ({memory.file_name})" in git(
        remote, "log", "--format=%s", "main"
    )


CAUSES = {
    "offline": (
        "fetch: fatal: unable to access 'https://x/': Could not resolve host: x",
        "fetch: ssh: connect to host x port 22: Connection refused",
    ),
    "no-permission": (
        "push: remote: Permission to ada/m.git denied to bob.",
        "push: ERROR: The key you are authenticating with has been marked as read only.",
        "push: fatal: unable to access 'https://x/': The requested URL returned error: 403",
        "fetch: fatal: unable to access 'https://x/': The requested URL returned error: 403",
    ),
    "key-refused": (
        "fetch: git@x: Permission denied (publickey).",
        "fetch: fatal: Authentication failed for 'https://x/'",
        "fetch: fatal: could not read Username for 'https://x': terminal prompts disabled",
    ),
    "host-key": ("fetch: Host key verification failed.\nfatal: Could not read.",),
    "no-repository": (
        "fetch: ERROR: Repository not found.",
        "fetch: fatal: '/media/stick/m.git' does not appear to be a git repository",
    ),
    "protected-branch": (
        "push: remote: error: GH006: Protected branch update failed for refs/heads/main.",
        "push: ! [remote rejected] main -> main (non-fast-forward)",
    ),
    "push-rule": (
        "push: remote: error: GH013: Repository rule violations found",
        "push: ! [remote rejected] main -> main (pre-receive hook declined)",
        "push: error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413",
    ),
    "author-address": (
        "push: remote: error: GH007: Your push would publish a private email address.",
    ),
    "disk-full": (
        "fast-import: fatal: cannot write: No space left on device",
        "fast-import: fatal: sha1 file '/x/tmp_pack_1' write error. Out of diskspace",
        "update-ref: error: cannot update ref 'refs/x': couldn't write '/x/refs/x.lock'",
    ),
    "remote-disk-full": ("push: remote: fatal: write error: No space left on device",),
    "locked": ("update-ref: fatal: Unable to create '/x/main.lock': File exists.",),
    "git": (
        "fsck: something that nobody has seen before",
        "update-ref: error: cannot lock ref 'refs/x': unable to resolve it: reference broken",
    ),
}


def test_each_cause_has_a_sentence_and_a_remedy() -> None:
    """For what people meet, from the words of git and of hosts."""
    for kind, outputs in CAUSES.items():
        for output in outputs:
            command, _, words = output.partition(": ")
            problem = problem_of(GitFailed(command, words))
            assert problem.kind == kind, output
            assert problem.sentence
            assert problem.remedy


@posix
def test_missing_and_old_git_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories are stored all the same."""
    machine, older = Machine(tmp_path / "base"), Machine(tmp_path / "older")
    older.synced()
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", str(program.parent))
    for script, kind in (("", "no-git"), ("echo git version 2.20.1", "old-git")):
        if script:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        machine.remember("one")
        problem = machine.sync().problem
        assert problem
        assert problem.kind == kind
        for each in (machine, older):
            assert current_status(each.settings).problem == problem
    assert len(machine.files) == 2


def test_remote_is_stored_with_the_repository(tmp_path: Path, remote: Path) -> None:
    """All servers of a directory use what was set up; a setting wins in its own process alone."""
    other = bare(tmp_path / "second")
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    machine.synced()
    setup_remote(machine.base, str(remote))
    assert remote_in_use(machine.settings) == str(remote)
    machine.synced()
    assert content_of(remote) == machine.files
    with_setting = Machine(tmp_path / "base", other)
    assert remote_in_use(with_setting.settings) == str(other)
    with_setting.synced()
    assert content_of(other) == machine.files
    assert remote_in_use(machine.settings) == str(remote)


def test_set_up_remote_outlives_a_damaged_repository(tmp_path: Path, remote: Path) -> None:
    """The new repository is filled from it, sends to it, and keeps what the person has set."""
    setup_remote(tmp_path / "base", str(remote))
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    machine.synced()
    git(machine.repository, "config", "gcrypt.participants", "ada")
    for path in machine.repository.glob("objects/pack/*.pack"):
        path.chmod(0o600)
        path.write_bytes(b"")
    machine.synced()
    assert git(machine.repository, "config", "gcrypt.participants") == "ada"
    (machine.repository / "config").write_bytes(b"\0\0")
    machine.remember("two")
    assert machine.synced().remote == str(remote)
    assert content_of(remote) == machine.files


def test_password_is_given_to_no_other_remote(tmp_path: Path, remote: Path) -> None:
    """Neither if a setting names another one, nor after another one was set up."""
    terms = Terms(tmp_path, login="ada:sesame")
    with git_server(terms) as first, git_server(terms) as second:
        setup_remote(tmp_path / "base", first.replace("://", "://ada:sesame@") + "/remote")
        problem = Machine(tmp_path / "base", f"{second}/remote").sync().problem
        assert problem
        assert problem.kind == "key-refused"
        Machine(tmp_path / "base").synced()
        with pytest.raises(GitFailed, match="could not read Username"):
            setup_remote(tmp_path / "base", f"{second}/remote")
    assert remote.is_dir()


def test_failed_setup_leaves_the_old_remote(tmp_path: Path, remote: Path) -> None:
    """With its password, and the command names it."""
    with git_server(Terms(tmp_path, login="ada:sesame")) as address:
        with_login = address.replace("://", "://ada:sesame@") + "/remote"
        setup_remote(tmp_path / "base", with_login)
        machine = Machine(tmp_path / "base")
        missing = str(tmp_path / "missing")
        done = machine.aiaml("sync", "--setup", missing, AIAML_ENABLE_SYNC="true")
        assert (done.returncode, f"The remote is still {address}/remote" in done.stderr) == (
            1,
            True,
        )
        machine.remember("one")
        machine.synced()
    assert content_of(remote) == machine.files
    with pytest.raises(GitFailed):
        setup_remote(tmp_path / "new", str(tmp_path / "missing"))


def test_setup_and_the_question_of_doctor_wait_for_a_running_cycle(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the address into the repository, which no other process may use meanwhile."""
    machine = Machine(tmp_path / "base", remote)
    machine.remember("one")
    machine.synced()
    seen = []
    run = Git.run

    def look(self: Git, command: str, *words: str, **options: object) -> bytes:
        if command in ("fetch", "ls-remote"):
            with hold_lock(machine.repository / "aiaml" / "running.lock", 0) as hold:
                seen.append((command, hold.acquired))
        return run(self, command, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", look)
    setup_remote(machine.base, str(remote))
    assert try_remote(machine.settings)
    assert seen == [("fetch", False), ("ls-remote", False)]


def test_sync_without_a_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container without a home: the problem has a remedy, and a set remote is enough."""
    blocked = tmp_path / "file"
    blocked.touch()
    for name in ("HOME", "USERPROFILE", "LOCALAPPDATA", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(blocked / "missing"))
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    problem = machine.sync().problem
    assert problem
    assert (problem.kind, "AIAML_SAFE_DIRECTORIES" in problem.remedy) == ("no-state", True)
    with_remote = Machine(machine.base, bare(tmp_path / "remote"))
    for _ in range(2):
        with_remote.synced()
    assert content_of(tmp_path / "remote") == machine.files
    monkeypatch.setenv("AIAML_SAFE_DIRECTORIES", str(tmp_path / "safe"))
    safe = Machine(tmp_path / "safe")
    safe.remember("two")
    for _ in range(2):
        safe.synced()


def test_remote_that_was_emptied_is_filled_again(tmp_path: Path, remote: Path) -> None:
    """Or replaced by a new one under the same address."""
    ada, bob = (Machine(tmp_path / name, remote) for name in ("ada", "bob"))
    ada.remember("one")
    settle([ada, bob])
    git(remote, "update-ref", "-d", "refs/heads/main")
    settle([bob, ada])
    assert content_of(remote) == ada.files == bob.files
    assert len(ada.files) == 1


def test_directory_from_elsewhere_is_neither_opened_nor_sent(tmp_path: Path, remote: Path) -> None:
    """A copy, an unpacked archive, another stick at the same mount point: until it is trusted."""
    machine = Machine(tmp_path / "stick", remote)
    machine.remember("private")
    machine.synced()
    setup_remote(machine.base, str(remote))
    first = machine.base.rename(tmp_path / "first stick")
    second = Machine(tmp_path / "second", bare(tmp_path / "other"))
    second.remember("of the other")
    second.synced()
    setup_remote(second.base, str(tmp_path / "other"))
    second.base.rename(machine.base)
    git(machine.base, "config", "core.fsmonitor", "false")
    here = Machine(machine.base)
    before = content_of(remote), content_of(tmp_path / "other")
    here.remember("more")
    problem = here.sync().problem
    assert problem
    assert problem.kind == "untrusted"
    status = current_status(here.settings)
    assert (status.problem, status.last_commit, status.remote) == (problem, None, "")
    assert remote_in_use(here.settings) == ""
    with pytest.raises(SyncError, match="aiaml trust"):
        History(here.base)
    trust(here.base)
    assert current_status(here.settings).problem is None
    here.synced()
    assert content_of(tmp_path / "other") == here.files
    assert (content_of(remote), len(here.files)) == (before[0], 2)
    assert first.is_dir()


@posix
def test_configuration_from_elsewhere_is_not_used(tmp_path: Path) -> None:
    """Not even what reaches the remote of an ordinary repository, however it is named there."""
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    evil.chmod(0o755)
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    machine.synced()
    setting = f"[core]\n\tsshCommand = {evil}\n"
    (tmp_path / "included").write_text(setting)
    for number, text in enumerate((setting, f"[include]\n\tpath = {tmp_path / 'included'}\n")):
        copy = Machine(tmp_path / f"copy{number}")
        shutil.copytree(machine.base, copy.base)
        with (copy.repository / "config").open("a") as config:
            config.write(f'{text}[remote "origin"]\n\turl = ssh://host.test/memories\n')
        problem = copy.sync().problem
        assert problem
        assert (problem.kind, copy.aiaml("doctor", "remote").returncode) == ("untrusted", 0)
        with pytest.raises(SyncError, match="aiaml trust"):
            History(copy.base)
        assert not (tmp_path / "ran").exists()
