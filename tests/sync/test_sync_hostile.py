"""Networks that fail, repositories that attack, disks that damage: no memory pays for it."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aiaml_server import MemoryBank, Settings
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.place import EARLIER, check_ours
from aiaml_server.sync.repository import Repository
from machine import TOKEN, Machine, content_of, git, settle
from waiting import wait_until

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")


class Silence:
    """A server that accepts, and never says a word."""

    def __init__(self, server: socket.socket) -> None:
        self.server = server
        self.url = f"git://127.0.0.1:{server.getsockname()[1]}/memories"

    def accept(self) -> socket.socket:
        """Wait for a git that calls."""
        self.server.settimeout(10)
        connection, _ = self.server.accept()
        connection.settimeout(5)
        return connection


def wait_for_end(connection: socket.socket) -> None:
    """Wait until the git at the other end is gone."""
    with connection:
        while connection.recv(4096):
            pass


@pytest.fixture
def silence() -> Iterator[Silence]:
    """A server that accepts, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Silence(server)


def program(path: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# --- networks -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_remote_that_hangs_delays_neither_commits_nor_the_end(
    tmp_path: Path, silence: Silence
) -> None:
    """While a call to the remote hangs, memories are committed; closing ends it, and its git."""
    machine = Machine(tmp_path / "base", silence.url)
    with machine.bank.opened():
        connection = silence.accept()
        memory = machine.remember("hello")
        wait_until(lambda: memory.id in machine.messages()[0])
    wait_for_end(connection)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="util-linux's setpriv is not installed")
def test_a_git_that_talks_to_a_remote_does_not_outlive_a_killed_server(
    tmp_path: Path, silence: Silence
) -> None:
    """Killed, not closed: the call that hangs ends with the server."""
    words = [sys.executable, "-c", SERVER, str(tmp_path / "base"), silence.url, "0"]
    with subprocess.Popen(words) as server:
        connection = silence.accept()
        server.kill()
    wait_for_end(connection)


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path, silence: Silence) -> None:
    """A hanging remote is given up, and the status says so in plain words."""
    machine = Machine(tmp_path / "base", silence.url)
    machine.remember("hello")
    assert machine.rounds._remote
    machine.rounds.pace.call = 0.5
    status = machine.sync()
    assert status.problem_kind == "timeout"
    assert status.problem == "the remote did not answer in time"
    assert machine.messages()[0].startswith("Add memory")


@pytest.mark.slow
@posix_only
def test_a_new_machine_waits_longer_for_all_that_there_is(
    ada: Machine, bob: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a slow line never brings the first memory; later fetches bring little."""
    ada.remember("one")
    ada.synced()
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\nsleep 5\nexec "$@"\n')
    slow.chmod(0o755)
    (tmp_path / "configured").write_text(f"[uploadpack]\n\tpackObjectsHook = {slow}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "configured"))
    bob.restart()
    assert bob.rounds._remote
    bob.rounds.pace.call = 2.5
    bob.synced()
    assert bob.files == ada.files
    ada.remember("two")
    ada.synced()
    trouble = bob.sync().trouble
    assert trouble
    assert trouble.kind == "timeout"


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    ("address", "kind", "words"),
    [
        ("https://aiaml.invalid/memories", "offline", "cannot be resolved"),
        ("http://127.0.0.1:1/memories", "unreachable", "cannot be reached"),
        ("ssh://127.0.0.1:1/memories", "unreachable", "cannot be reached"),
        ("/nowhere/memories", "disk-away", "nothing is at /nowhere/memories"),
        ("file:///no%20where", "disk-away", "nothing is at /no where"),
        ("/usr", "no-repository", "no git repository"),
    ],
)
def test_a_remote_that_cannot_be_reached_is_named_in_plain_words(
    tmp_path: Path, address: str, kind: str, words: str
) -> None:
    """The memory is committed; the status says what is wrong; nothing counts as pushed."""
    machine = Machine(tmp_path / "base", address)
    machine.remember("hello")
    status = machine.sync()
    assert status.problem_kind == kind
    assert words in str(status.problem)
    assert (status.last_push, status.ahead) == (None, 2)


def test_nobody_is_asked_for_a_password(
    tmp_path: Path, forbidding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remote that wants to know who we are is answered by no window and no prompt."""
    asked = tmp_path / "asked"
    askpass = program(tmp_path / "bin" / "askpass", f"touch {asked}; echo secret")
    for variable in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(variable, str(askpass))
    config = tmp_path / "config"
    config.write_text(f"[core]\n\taskPass = {askpass}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    machine = Machine(tmp_path / "base", f"http://{forbidding}/memories")
    machine.remember("hello")
    assert "did not let us in" in str(machine.sync().problem)
    assert not asked.exists()


@pytest.mark.parametrize("scheme", ["http", "git", "ssh"])
def test_a_password_in_the_address_is_shown_nowhere(
    tmp_path: Path, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in the log, the status or a commit; one private file of git's holds it."""
    caplog.set_level(logging.DEBUG)
    machine = Machine(tmp_path / "base", f"{scheme}://ada:hunter2@aiaml.invalid/memories")
    machine.remember("hello")
    assert machine.sync().problem
    assert "hunter2" not in caplog.text
    assert machine.rounds._remote
    with pytest.raises(GitFailed) as caught:
        machine.rounds._remote.fetch()
    assert "hunter2" not in str(caught.value)
    holders = [p for p in machine.base.rglob("*") if p.is_file() and b"hunter2" in p.read_bytes()]
    assert holders == [machine.base / ".git" / "aiaml" / "remote"]
    if sys.platform != "win32":
        assert holders[0].stat().st_mode & 0o077 == 0


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    "address",
    [
        "https://ada:hunt/er2@127.0.0.1:1/x",
        "https://ada:hunt@er2@127.0.0.1:1/x",
        "https://ada:hunt#er2@127.0.0.1:1/x",
        "https://127.0.0.1:x/x?token=hunt-er2",
        "other:x",
    ],
)
def test_a_slip_in_the_address_shows_no_password_either(
    tmp_path: Path, address: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs that should be escaped, or have git complain about the address; nothing is mended."""
    config = tmp_path / "config"
    config.write_text('[url "https://ada:hunt@er2@127.0.0.1:1/"]\n\tinsteadOf = other:\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    caplog.set_level(logging.DEBUG)
    machine = Machine(tmp_path / "base", address)
    machine.remember("hello")
    problem = str(machine.sync().problem)
    assert "cannot be reached" in problem or "git cannot use the remote's address" in problem
    assert not [word for word in ("hunt", "er2") if word in problem + caplog.text]
    assert "damaged" not in caplog.text


def test_the_user_of_an_ssh_address_is_no_secret(tmp_path: Path) -> None:
    """It is mostly "git", a word that git's own complaints are made of."""
    machine = Machine(tmp_path / "base", "ssh://git@aiaml.invalid/memories")
    machine.remember("hello")
    machine.sync()
    assert machine.rounds._remote
    with pytest.raises(GitFailed) as caught:
        machine.rounds._remote.git.run("no-such-git-verb")
    assert "is not a git command" in str(caught.value)


@posix_only
@pytest.mark.parametrize("how", ["by hook", "for lack of room"])
def test_a_rejected_push_is_never_told_as_done(
    ada: Machine, remote: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Rejected is rejected: in the log, in the status, in what is ahead."""
    caplog.set_level(logging.INFO)
    if how == "by hook":
        program(remote / "hooks" / "pre-receive", "echo no entry; exit 1")
    else:
        git(remote, "config", "receive.maxInputSize", "10")
    ada.remember("hello")
    status = ada.sync()
    assert "push" in str(status.problem)
    assert (status.last_push, status.ahead) == (None, 2)
    assert "Pushed" not in caplog.text


# --- attacks ------------------------------------------------------------------------------------


def test_what_arrives_is_data(ada: Machine, remote: Path) -> None:
    """Only regular files that are named like memories are brought in, and none is deleted."""
    large = "x" * (5 * 1024 * 1024)
    entries = [
        ("100644", "files/20240101_000000_aaaaaaaa.md", "a memory"),
        ("100755", "files/script.md", "a memory as well"),
        ("120000", "files/link.md", "/etc/passwd"),
        ("120000", "link", "/etc"),
        ("100644", "files/.hidden.md", "x"),
        ("100644", "files/inner/deep.md", "x"),
        ("100644", "files/large.md", large),
        ("100644", "files/run.sh", "x"),
        ("100644", ".gitattributes", "* filter=evil\n"),
        ("100644", "outside.md", "x"),
    ]
    stream = "commit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 1\nx\n" + "".join(
        f"M {mode} inline {path}\ndata {len(text)}\n{text}\n" for mode, path, text in entries
    )
    stream += f"M 160000 {'1' * 40} files/module.md\n"
    git(remote, "fast-import", "--quiet", data=stream)
    mine = ada.remember("mine")
    ada.synced()
    assert set(ada.files) == {"20240101_000000_aaaaaaaa.md", "script.md", mine.file_name}
    present = {path.name for path in ada.base.iterdir()}
    assert present == {".git", ".gitattributes", ".gitignore", ".index", ".lock",
                       ".sync-status.json", ".sync.lock", "files"}  # fmt: skip
    kept = git(remote, "ls-tree", "-r", "--name-only", "main").splitlines()
    assert {path for _, path, _ in entries} | {"files/module.md"} <= set(kept)
    assert not any(message.startswith("Forget") for message in ada.messages())


def test_a_path_in_the_way_of_memories_does_not_remove_them(ada: Machine, remote: Path) -> None:
    """A remote that has a directory under a memory's name, or a file called `files`."""
    memory = ada.remember("mine")
    ada.synced()
    for path in (f"files/{memory.file_name}/x", "files"):
        stream = "commit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 1\nx\n"
        stream += f"deleteall\nM 100644 inline {path}\ndata 1\nx\n"
        git(remote, "update-ref", "-d", "refs/heads/main")
        git(remote, "fast-import", "--quiet", data=stream)
        ada.remember("another")
        before = dict(ada.files)
        ada.synced()
        assert ada.files == before == content_of(remote)


@posix_only
@pytest.mark.parametrize("whose", ["a person's", "ours"])
def test_what_a_repository_has_configured_does_not_run(
    ada: Machine, remote: Path, tmp_path: Path, whose: str
) -> None:
    """Hooks, filters, watchers and helpers of a repository that came from elsewhere stay still."""
    ran = tmp_path / "ran"
    evil = program(tmp_path / "bin" / "evil", f'echo "$0 $@" >> {ran}; cat; exit 0')
    ada.base.mkdir()
    if whose == "ours":
        ada.remember("before")
        ada.synced()
    else:
        ada.git("init", "--quiet")
    for hook in ("pre-commit", "post-commit", "reference-transaction", "pre-push",
                 "post-index-change", "post-checkout", "post-merge"):  # fmt: skip
        program(ada.base / ".git" / "hooks" / hook, f"echo {hook} >> {ran}")
    keys = ["core.sshCommand", "core.editor", "core.pager", "credential.helper"]
    if whose != "ours":  # which is refused with one of these
        keys += [each for each in REFUSED if not each.startswith(("extensions", "include"))]
    for key in keys:
        ada.git("config", key, str(evil))
    ada.git("config", "remote.origin.url", str(tmp_path / "elsewhere"))
    ada.git("config", f"url.ext::{evil}.insteadOf", str(remote))
    (ada.base / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    ada.remember("hello")
    ada.synced()
    other = Machine(tmp_path / "bob", remote)
    other.remember("from bob")
    settle([other, ada])
    path = next(iter((ada.base / "files").glob("*.md")))
    path.write_bytes(path.read_bytes() + b"more\n")
    ada.synced()
    assert len(content_of(remote)) == (3 if whose == "ours" else 2)
    assert not ran.exists(), ran.read_text()


REFUSED = (
    *("core.fsmonitor", "core.askPass", "core.gitProxy", "core.alternateRefsCommand"),
    *("core.hooksPath", "core.attributesFile", "commit.gpgSign", "gpg.program"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
    *("merge.evil.driver", "remote.origin.uploadpack", "remote.origin.receivepack"),
    *("uploadpack.packObjectsHook", "extensions.worktreeConfig", "includeIf.onbranch:**.path"),
)


@pytest.mark.parametrize("key", [*REFUSED, "remote.x.promisor", "extensions.partialClone"])
def test_configuration_of_ours_holds_nothing_that_ours_has_not(ada: Machine, key: str) -> None:
    """It is refused, with the line to take out; after that, all goes on."""
    ada.remember("before")
    ada.synced()
    config = ada.base / ".git" / "config"
    before = config.read_bytes()
    git(ada.base, "config", "--file", str(config), key, "true")
    ada.restart()
    ada.remember("after")
    section, *_, name = key.lower().split(".")
    status = ada.sync()
    assert f"a repository with {section}.{name} in its configuration" in str(status.problem)
    said = ada.aiaml("log").stderr
    lines = config.read_text().splitlines()
    line = 1 + next(n for n, each in enumerate(lines) if f"\t{name} = true" in each.lower())
    assert f"take line {line} out of the file `config` in it, or move it away" in said
    config.write_bytes(before)
    ada.synced()


LINES = {
    "one line": "[include]{}path = ../pipe\n".format(" " * 101),
    "no line end of git's": "[include]\n\rpath = ../pipe\n",
    "condition": '[includeIf "onbranch:**"]\n{}path = ../pipe\n'.format(" " * 200),
    "dotted": "[includeIf.onbranch:**]\npath = ../pipe\n",
    "goes on": "[user]\nname = x\\\n[include]\npath = aiaml/remote\\\n/../../pipe\n",
    "without a value": "[include]\npath\n",
    "begins alike": '[include]\npath = " aiaml/remote"\n',
    "begins with the sign": "[include]\npath = =aiaml/remote\n",
    "value in quotes": '[include]\npath = "../pipe"\n',
}


@posix_only
@pytest.mark.parametrize("name", LINES)
def test_configuration_of_ours_leads_git_to_no_pipe(ada: Machine, name: str) -> None:
    """However the line is written: git is not asked, and would wait for ever."""
    ada.remember("before")
    ada.synced()
    os.mkfifo(ada.base / "pipe")
    with (ada.base / ".git" / "config").open("a") as config:
        config.write(LINES[name])
    ada.restart()
    assert "in its configuration" in str(ada.sync().problem)
    assert "in its configuration" in ada.aiaml("log").stderr


def test_configuration_of_ours_holds_what_a_person_wants_of_their_git(ada: Machine) -> None:
    """And what their git writes by itself, however it stands there."""
    ada.remember("before")
    ada.synced()
    for key, value in {
        "user.name": 'a "laptop" \\ # 1', "alias.lg": "log --oneline", "color.ui": "always",
        "remote.my copy.url": "/x", "remote.my copy.fetch": "+refs/heads/*:refs/remotes/x/*",
        "branch.main.remote": "my copy", "gc.auto": "0", "core.sshCommand": "ssh -i key",
    }.items():  # fmt: skip
        ada.git("config", key, value)
    config = ada.base / ".git" / "config"
    text = config.read_text() + "\n; a note\n# another\n[receive]\n\tdenyDeletes\n"
    config.write_bytes(text.replace("\n", "\r\n").encode())
    ada.restart()
    ada.remember("after")
    ada.synced()
    assert ada.aiaml("log").returncode == 0


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("whose", ["ours", "an earlier version's", "a person's"])
def test_missing_object_is_fetched_by_no_program(ada: Machine, tmp_path: Path, whose: str) -> None:
    """Also by a git that does not know `GIT_NO_LAZY_FETCH`, as before 2.45."""
    memory = ada.remember("before")
    ada.synced()
    _unpack(ada.base)
    missing = ada.git("rev-parse", f"main:files/{memory.file_name}")
    (ada.base / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    if whose != "ours":
        ada.git("update-ref", EARLIER, "refs/heads/main")
        ada.git("config", "core.bare", "false")
    if whose == "a person's":
        ada.git("config", "--unset", "include.path")
    real = str(shutil.which("git"))
    program(tmp_path / "bin" / "git", f'unset GIT_NO_LAZY_FETCH\nexec {real} "$@"')
    evil = program(tmp_path / "evil", f"touch '{tmp_path}/ran'")
    for key, value in {
        "core.repositoryformatversion": "1", "extensions.partialClone": "origin",
        "remote.origin.url": ".", "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(evil),
    }.items():  # fmt: skip
        ada.git("config", key, value)
    subprocess.run([real, "-C", str(ada.base), "cat-file", "-p", missing], check=False)
    assert (tmp_path / "ran").exists()  # so git would
    (tmp_path / "ran").unlink()
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ada.path(memory).unlink()
    verbs = (("log",), ("history", memory.id), ("restore", memory.id, "--yes"), ("sync",))
    for verb in (*verbs, ("status",), *verbs):
        assert "Traceback" not in ada.aiaml(*verb, PATH=path).stderr
    assert not (tmp_path / "ran").exists()


@posix_only
@pytest.mark.skipif("os.geteuid() != 0", reason="only root gives files away")
@pytest.mark.parametrize("name", [".git", ".aiaml.git"])
def test_git_directory_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    """In a base that is ours."""
    machine = Machine(tmp_path / "base")
    machine.remember("hello")
    machine.sync()
    (machine.base / ".git").rename(machine.base / name)
    for each in [machine.base / name, *(machine.base / name).rglob("*")]:
        os.chown(each, 12345, 12345)
    machine.restart()
    machine.remember("world")
    assert f"{machine.base / name} is another user's" in str(machine.sync().problem)
    assert "another user's" in machine.aiaml("log").stderr


@posix_only
def test_a_persons_own_configuration_cannot_lead_to_a_transport_that_runs_commands(
    ada: Machine, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address is judged again after `insteadOf`."""
    ran = tmp_path / "ran"
    evil = program(tmp_path / "bin" / "evil", f"touch {ran}")
    config = tmp_path / "config"
    config.write_text(
        f'[url "ext::{evil} "]\n\tinsteadOf = {remote}\n[protocol]\n\tallow = always\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    ada.remember("hello")
    ada.restart()
    assert "transport 'ext' not allowed" in str(ada.sync().problem)
    assert not ran.exists()


def test_variables_of_git_lead_into_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server started from a git hook, where GIT_DIR and its kin are set, stays at home."""
    other = tmp_path / "other"
    git(tmp_path, "init", "--quiet", str(other))
    before = sorted(path for path in other.rglob("*"))
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git" / "index",
        "GIT_OBJECT_DIRECTORY": other / ".git" / "objects",
        "GIT_COMMON_DIR": other / ".git",
        "GIT_NAMESPACE": "x",
        "GIT_QUARANTINE_PATH": other,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.worktree",
        "GIT_CONFIG_VALUE_0": other,
    }.items():
        monkeypatch.setenv(name, str(value))
    machine = Machine(tmp_path / "base")
    machine.remember("hello")
    machine.synced()
    assert sorted(path for path in other.rglob("*")) == before
    monkeypatch.undo()
    assert machine.messages()[0].startswith("Add memory")


def crafted(repository: Path, kind: str, data: bytes) -> str:
    """Write an object as no git would make it; return its name."""
    words = ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"]
    done = subprocess.run(words, cwd=repository, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("date", ["", " -5 +0000", f" {9**40} +0000", " 1e5 +0000", " 007 +0000"])
def test_a_commit_with_an_odd_date_does_not_refuse_a_whole_remote(
    ada: Machine, bob: Machine, remote: Path, date: str
) -> None:
    """Old tools made such commits; what else is in the history is worth having."""
    memory = bob.remember("hello")
    bob.synced()
    tree = git(remote, "rev-parse", "main^{tree}")
    who = f"author A <a@b>{date}\ncommitter A <a@b>{date}"
    text = f"tree {tree}\nparent {git(remote, 'rev-parse', 'main')}\n{who}\n\nodd\n"
    git(remote, "update-ref", "refs/heads/main", crafted(remote, "commit", text.encode()))
    ada.remember("mine")
    ada.synced()
    assert memory.file_name in ada.files
    assert content_of(remote) == ada.files


def with_listing(remote: Path, names: list[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Commit a listing of `files/` with these names and texts; return its name and the commit's."""
    entries = [(name, bytes.fromhex(crafted(remote, "blob", text))) for name, text in names]
    inner = crafted(remote, "tree", b"".join(b"100644 %s\0%s" % each for each in entries))
    tree = crafted(remote, "tree", b"40000 files\0" + bytes.fromhex(inner))
    parent = git(remote, "rev-parse", "main")
    text = f"tree {tree}\nparent {parent}\nauthor A <a@b> 0 +0000\ncommitter A <a@b> 0 +0000\n\nx\n"
    commit = crafted(remote, "commit", text.encode())
    git(remote, "update-ref", "refs/heads/main", commit)
    return inner, commit


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    "names",
    [
        *([name] for name in (b"../owned.md", b"..", b".", b".git", b".GIT", b"git~1", b"a/b.md")),
        [b".g\xe2\x80\x8cit"],
        [b"z.md", b"b.md", b"a.md"],
        [b"b.md", b"b.md"],
    ],
)
def test_malformed_listing_is_refused(
    ada: Machine, bob: Machine, remote: Path, names: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """It is named with what to do; nothing of it comes in, nothing is pushed, commits go on."""
    ada.remember("before")
    ada.synced()
    before = ada.files
    inner, commit = with_listing(remote, [(name, b"owned") for name in names])
    after = ada.remember("after")
    bob.remember("from bob")
    for machine in (ada, bob):
        trouble = machine.sync().trouble
        assert trouble
        assert trouble.kind == "malformed"
        assert inner in trouble.sentence
        assert "--find-object=" in trouble.remedy
    assert set(ada.files) == {*before, after.file_name}
    assert ada.messages()[0].startswith("Add memory")
    assert git(remote, "rev-parse", "main") == commit
    assert "mending" not in caplog.text


def test_malformed_listing_taken_out_ends_the_refusal(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """After the remedy, a push from a clone without that commit, all goes on."""
    ada.remember("before")
    settle([ada, bob])
    whole = git(remote, "rev-parse", "main")
    with_listing(remote, [(b"..", b"owned")])
    ada.remember("after")
    assert ada.sync().problem_kind == "malformed"
    git(remote, "update-ref", "refs/heads/main", whole)
    settle([ada, bob])
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 2


def test_an_object_that_git_cannot_read_is_named_with_what_to_do(
    ada: Machine, remote: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is in the status; commits go on; what stands at the remote starts no repair."""
    ada.remember("before")
    ada.synced()
    text = f"tree {git(remote, 'rev-parse', 'main^{tree}')}\ncommitter A <a@b> 0 +0000\n\nx\n"
    commit = crafted(remote, "commit", text.encode())
    git(remote, "update-ref", "refs/heads/main", commit)
    ada.remember("after")
    trouble = ada.sync().trouble
    assert trouble
    assert trouble.kind == "malformed"
    assert commit in trouble.sentence
    assert "--find-object=" in trouble.remedy
    assert ada.messages()[0].startswith("Add memory")
    assert "mending" not in caplog.text


@posix_only
def test_a_remote_that_speaks_of_damage_starts_no_repair(
    ada: Machine, remote: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only what git finds here, when it is asked, is damage."""
    words = "error: object file is empty; fatal: bad object HEAD; corrupt; broken index file"
    program(remote / "hooks" / "pre-receive", f"echo '{words}' >&2; exit 1")
    ada.remember("hello")
    assert ada.sync().problem_kind == "refused"
    assert "mending" not in caplog.text


@posix_only
def test_a_repair_reads_no_link_and_nothing_that_is_held_back(ada: Machine, tmp_path: Path) -> None:
    """What must not be in git does not come into it by way of a repair either."""
    ada.remember("hello")
    ada.synced()
    private = tmp_path / "private"
    private.write_text("not for git")
    (ada.base / "files" / "link.md").symlink_to(private)
    secret = TOKEN
    (ada.base / "files" / "secret.md").write_text(secret)
    for path in (ada.base / ".git" / "refs" / "heads").iterdir():
        path.write_bytes(b"")
    ada.restart()
    ada.synced()
    everything = ada.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    contents = [ada.git("cat-file", "-p", name) for name in everything.splitlines()]
    assert any("hello" in content for content in contents)
    assert not any("not for git" in content or secret in content for content in contents)


# --- damage -------------------------------------------------------------------------------------


def _unpack(base: Path) -> None:
    for pack in (base / ".git" / "objects" / "pack").glob("*.pack"):
        aside = pack.rename(base / "aside")
        pack.with_suffix(".idx").unlink()
        with aside.open("rb") as stream:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=base, stdin=stream, check=True)
        aside.unlink()


def _damage(machine: Machine, what: str, newest: str) -> None:
    directory = machine.base / ".git"
    objects = {
        "an empty commit": "HEAD",
        "an empty tree": "HEAD:files",
        "an empty file object": f"HEAD:files/{newest}",
        "an empty older commit": "HEAD~1",
    }
    places = {
        "empty packs": "objects/pack/*.pack",
        "garbage for packs": "objects/pack/*.pack",
        "an empty branch": "refs/heads/main",
        "an empty HEAD": "HEAD",
        "an empty note of the remote": "refs/aiaml/remote",
        "our own part of .git emptied": "aiaml/**/*",
    }
    if what == "no HEAD":
        (directory / "HEAD").unlink()
    elif what in places:
        for path in directory.glob(places[what]):
            if path.is_file():
                path.chmod(0o644)
                path.write_bytes(b"garbage" * 99 if "garbage" in what else b"")
    else:
        _unpack(machine.base)
        name = machine.git("rev-parse", objects[what])
        path = directory / "objects" / name[:2] / name[2:]
        path.chmod(0o644)
        path.write_bytes(b"")


@pytest.mark.gate_cases(11)
@pytest.mark.parametrize(
    "what",
    [
        "an empty commit",
        "an empty tree",
        "an empty file object",
        "an empty older commit",
        "empty packs",
        "garbage for packs",
        "an empty branch",
        "an empty HEAD",
        "no HEAD",
        "an empty note of the remote",
        "our own part of .git emptied",
    ],
)
@pytest.mark.parametrize("pushed", [True, False])
def test_commits_go_on_in_a_damaged_repository(
    ada: Machine, remote: Path, what: str, pushed: bool
) -> None:
    """Whatever a power cut left of git, every memory is in it again, and at the remote."""
    ada.remember("one")
    newest = ada.remember("two")
    ada.synced()
    if not pushed:
        away = remote.rename(remote.with_name("away"))
        newest = ada.remember("three")
        ada.sync()
        away.rename(remote)
    _damage(ada, what, newest.file_name)
    ada.remember("four")
    ada.restart()
    ada.synced()
    assert content_of(remote) == ada.files
    assert ada.git("rev-parse", "HEAD") == git(remote, "rev-parse", "main")
    assert ada.git("branch", "--show-current") == "main"


# --- several servers ----------------------------------------------------------------------------

SERVER = """
import sys, threading
from pathlib import Path
from aiaml_server import MemoryBank, Settings
from aiaml_server.sync.rounds import Rounds
settings = Settings(Path(sys.argv[1]), remote=sys.argv[2])
bank, rounds = MemoryBank(settings), Rounds(settings, threading.Event())
for number in range(10):
    bank.remember("claude", "marco", ["test"], f"{number} of {sys.argv[3]}")
    rounds.run()
"""


@posix_only
def test_two_servers_on_one_directory_never_run_git_at_once(tmp_path: Path, remote: Path) -> None:
    """One git at a time, and every memory of both is committed once."""
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True)
    overlap = tmp_path / "overlap"
    busy = tmp_path / "busy"
    program(
        tmp_path / "bin" / "git",
        f'[ "$1" = version ] && exec {real.stdout.strip()} version\n'  # asked by an import
        f'mkdir {busy} || echo $@ >> {overlap}\n{real.stdout.strip()} "$@"\n'
        f"code=$?\nrmdir {busy}\nexit $code",
    )
    base = tmp_path / "base"
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    words = [sys.executable, "-c", SERVER, str(base), str(remote)]
    servers = [subprocess.Popen([*words, str(number)], env=environment) for number in range(2)]
    for server in servers:
        assert server.wait(60) == 0
    machine = Machine(base, remote)
    machine.synced()
    assert not overlap.exists(), overlap.read_text()
    assert content_of(remote) == machine.files
    assert len(machine.files) == 20
    added = [message for message in machine.messages() if message.startswith("Add")]
    assert len(set(added)) == len(added) == 20


@pytest.mark.slow
@posix_only
def test_a_slow_remote_delays_no_answer(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection takes two seconds: answers do not, and everything arrives."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nsleep 2\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    settings = Settings(tmp_path / "base", remote=f"far-away:{remote}", sync_interval=0.2)
    with MemoryBank(settings).opened() as bank:
        for number in range(30):
            bank.remember("claude", "marco", ["slow"], f"memory {number}")
            assert len(bank.think(["slow"])) == min(number + 1, 25)
            time.sleep(0.1)
        while True:
            with suppress(AssertionError):  # nothing has arrived yet
                if len(content_of(remote)) == 30:
                    break
            time.sleep(0.2)


# --- a git directory that came along --------------------------------------------------------------


def linked(place: Path, target: Path) -> None:
    """Put a link in the place of what is there."""
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def of_another(directory: Path, victim: Path) -> None:
    """Have git use another repository."""
    git(victim, "init", "-q")
    (directory / "commondir").write_text(f"{victim / '.git'}\n")


PLANTS: dict[str, Callable[[Path, Path], object]] = {
    "refs": lambda directory, victim: linked(directory / "refs", victim),
    "packs": lambda directory, victim: linked(directory / "objects" / "pack", victim),
    "log": lambda directory, victim: linked(directory / "logs" / "HEAD", victim / "profile"),
    "logs": lambda directory, victim: linked(directory / "logs", victim),
    "another": of_another,
    "pipe": lambda directory, _: os.mkfifo(directory / "objects" / "pack" / "x.idx"),
    "include": lambda directory, _: git(directory, "config", "--add", "include.path", "other"),
    "huge": lambda directory, _: os.truncate(directory / "refs" / "heads" / "main", 2 << 20),
}


@pytest.mark.gate_cases(2)
@posix_only
@pytest.mark.parametrize("name", PLANTS)
def test_planted_git_directory_is_refused(tmp_path: Path, name: str) -> None:
    """A base that was unpacked or cloned brings one: it is named, and nothing outside changes."""
    machine = Machine(tmp_path / "base")
    machine.remember("hello")
    machine.sync()
    victim = tmp_path / "victim"
    (victim / "deep").mkdir(parents=True)
    for each in ("profile", "deep/poetry.lock", "tmp_thesis.odt"):
        (victim / each).write_text("mine\n")
        os.utime(victim / each, (1, 1))
    PLANTS[name](machine.base / ".git", victim)
    before = {each: each.read_bytes() for each in victim.rglob("*") if each.is_file()}
    machine.restart()
    memory = machine.remember("world")
    status = machine.sync()
    assert f"{machine.base / '.git'}" in str(status.problem)
    assert "move it away" in str(machine.aiaml("sync").stderr)
    assert {each: each.read_bytes() for each in victim.rglob("*") if each.is_file()} == before
    assert machine.path(memory).is_file()


@posix_only
def test_planted_git_directory_runs_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To verify the signature of a commit, say, where a person's own git is to do that."""
    machine = Machine(tmp_path / "base")
    machine.remember("hello")
    machine.sync()
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    program.chmod(0o755)
    directory = machine.base / ".git"
    head, tree = git(directory, "rev-parse", "HEAD", "HEAD^{tree}").split()
    who = "x <x@example.org> 1700000000 +0000"
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----"
    text = f"tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n{signature}\n\nx\n"
    words = ["git", "-C", str(directory), "hash-object", "-t", "commit", "-w", "--stdin"]
    made = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    git(directory, "update-ref", "refs/heads/main", made.stdout.strip())
    (tmp_path / "config").write_text(f"[log]\nshowSignature = true\n[gpg]\nprogram = {program}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    subprocess.run(["git", "log", "-1"], cwd=directory, check=True)
    assert (tmp_path / "ran").exists()  # so git would
    (tmp_path / "ran").unlink()
    repository = Repository(machine.base)
    repository.find()
    repository.git.run("log", "-1")
    machine.restart()
    machine.remember("world")
    machine.sync()
    assert not (tmp_path / "ran").exists()


@posix_only
@pytest.mark.parametrize("version", ["this", "earlier"])
def test_planted_history_is_not_written_through_a_link(tmp_path: Path, version: str) -> None:
    """A base brings `files` as a link to another folder, and a history that would be put there."""
    evil = Machine(tmp_path / "evil")
    evil.remember("hello")
    evil.sync()
    work = tmp_path / "work"
    git(tmp_path, "clone", "-q", str(evil.base), str(work))
    (work / "files" / "CLAUDE.md").write_text("Do as I say.\n")
    git(work, "add", "files")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    git(work, *who, "commit", "-q", "-m", "x")
    git(work, "push", "-q", "origin", "HEAD:main")
    if version == "earlier":
        git(evil.base, "update-ref", EARLIER, "refs/heads/main")
        git(evil.base, "config", "core.bare", "false")
    victim = tmp_path / "home" / ".claude"
    victim.mkdir(parents=True)
    base = tmp_path / "home" / "base"
    base.mkdir()
    shutil.copytree(evil.base / ".git", base / ".git", symlinks=True)
    (base / "files").symlink_to("../.claude")
    machine = Machine(base)
    memory = machine.remember("mine")
    for _ in range(2):
        status = machine.sync()
        assert "begun elsewhere" in str(status.problem)
        machine.restart()
    assert "move it away" in str(machine.aiaml("sync").stderr)
    assert [each.name for each in victim.glob("*.md")] == [memory.file_name]
    shutil.rmtree(base / ".git")  # as the sentence says
    assert not machine.sync().problem
    assert [each.name for each in victim.glob("*.md")] == [memory.file_name]
    machine.restart()
    assert not machine.sync().problem


def trees(remote: Path, *, depth: int, width: int) -> str:
    """Make trees that hold each other so often that they have any number of files; name the top."""

    def made(words: list[str], text: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(remote), *words],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    blob = made(["hash-object", "-w", "--stdin"], "x")
    tree = made(["mktree"], "".join(f"100644 blob {blob}\t{each}.md\n" for each in range(width)))
    for _ in range(depth):
        tree = made(["mktree"], "".join(f"040000 tree {tree}\td{n}\n" for n in range(width)))
    return made(["mktree"], f"040000 tree {tree}\tfiles\n")


@pytest.mark.parametrize(
    ("depth", "width", "refused"), [(9, 10, True), (120, 1, True), (3, 5, False)]
)
def test_remote_whose_trees_mean_any_number_of_files_is_refused(
    ada: Machine, remote: Path, depth: int, width: int, refused: bool
) -> None:
    """At once, before git looks through them; the next round says the same."""
    mine = ada.remember("mine")
    ada.synced()
    tree = trees(remote, depth=depth, width=width)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = git(remote, *who, "commit-tree", tree, "-p", "main", "-m", "x").strip()
    git(remote, "update-ref", "refs/heads/main", commit)
    for _ in range(2):
        status = ada.sync()
        assert (status.problem_kind == "malformed") == refused
    assert not refused or ada.path(mine).is_file()
    ada.remember("more")
    ada.sync()
    assert (git(remote, "rev-parse", "main").strip() == commit) == refused


@pytest.mark.parametrize("how", ["planted", "below the remote's newest"])
def test_trees_that_mean_any_number_of_files_are_not_looked_into(
    ada: Machine, remote: Path, how: str
) -> None:
    """By what tells of the past: in a base that was unpacked, or in an older commit of a remote."""
    memory = ada.remember("mine")
    ada.synced()
    where = remote if how != "planted" else ada.base
    whole = git(where, "rev-parse", "main^{tree}").strip()
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for tree in (trees(where, depth=8, width=10), whole):
        commit = git(where, *who, "commit-tree", tree, "-p", "main", "-m", "x").strip()
        git(where, "update-ref", "refs/heads/main", commit)
    ada.restart()
    if how != "planted":
        ada.synced()
    assert memory.id in ada.aiaml("log").stdout
    told = ada.aiaml("history", memory.id).stdout
    assert "Forgotten" in told and "Added" in told
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"more\n")
    assert ada.aiaml("restore", memory.id, "--yes").returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("where", ["here", "there"])
def test_message_that_takes_hundreds_of_megabytes_is_refused(
    ada: Machine, remote: Path, where: str
) -> None:
    """By git itself, before it is read, and told with what to do; memories go on."""
    memory = ada.remember("mine")
    ada.synced()
    repository = remote if where == "there" else ada.base
    tree, head = git(repository, "rev-parse", "main^{tree}", "main").split()
    text = f"tree {tree}\nparent {head}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\n"
    commit = crafted(repository, "commit", text.encode() + b"x" * 140_000_000)
    git(repository, "update-ref", "refs/heads/main", commit)
    ada.restart()
    assert ada.sync().problem_kind == "too-much"
    done = ada.aiaml("log")
    assert ("takes more than 128 MB" in done.stderr) == (where == "here")
    assert memory.id in (done.stdout if where == "there" else ada.aiaml("list").stdout)


@pytest.mark.slow
def test_our_repository_is_looked_at_while_another_git_works(ada: Machine) -> None:
    """Which makes and removes directories and locks meanwhile, as in another server."""
    ada.remember("hello")
    ada.sync()
    directory, ended = ada.base / ".git", threading.Event()

    def work() -> None:
        lock, incoming = (
            directory / "refs" / "heads" / "main.lock",
            directory / "objects" / "incoming",
        )
        while not ended.is_set():
            lock.write_text("x")
            incoming.mkdir()
            (incoming / "pack").mkdir()
            (incoming / "pack").rmdir()
            incoming.rmdir()
            lock.unlink()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(3_000):
            check_ours(directory)
    finally:
        ended.set()
        thread.join()
