"""What failed is told by its cause, with what to do about it, and read by nobody a second time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aiaml_server import Settings
from aiaml_server.errors import InvalidSetting
from aiaml_server.sync import Status, once
from aiaml_server.sync.address import in_use, remembered
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.problem import problem_of
from machine import Machine, bare, content_of

CANNOT_READ = """\
fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists."""

READ_ONLY = (
    f"ERROR: The key you are authenticating with has been marked as read only.\n{CANNOT_READ}"
)
HOOK = """\
remote: no entry on Sundays
 ! [remote rejected] main -> main (pre-receive hook declined)
error: failed to push some refs to 'x'"""

# What real servers said, by the kind of the problem and what the person must read of it.
SAID = [
    ("push", "error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413",
     "too-large", "limit"),
    ("fetch", "fatal: unable to access 'http://x/': The requested URL returned error: 429",
     "too-many", "AIAML_SYNC_INTERVAL"),
    ("ls-remote", "fatal: unable to access 'http://x/': The requested URL returned error: 500",
     "server-error", "status page"),
    ("ls-remote", "remote: Bad Gateway\nfatal: unable to access 'x'", "server-error", "status"),
    ("ls-remote", "fatal: http://x/info/refs not valid: is this a git repository?",
     "portal", "browser"),
    ("ls-remote", "fatal: unable to update url base from redirection:\n  asked for: http://x",
     "portal", "sign-in"),
    ("push", READ_ONLY, "read-only", "write access"),
    ("push", "remote: Write access to repository not granted.\nfatal: unable to access 'https://x/'",
     "read-only", "write"),
    ("push", "remote: fatal: write error: No space left on device\nerror: remote unpack failed",
     "remote-disk-full", "where the remote repository lies"),
    ("push", "remote: error: Out of diskspace\n ! [remote rejected] main -> main (unpacker error)",
     "remote-disk-full", "make room"),
    ("fetch", "error: unable to write file: No space left on device", "disk-full", "make room"),
    ("ls-remote", "fatal: detected dubious ownership in repository at '/srv/x'\n" + CANNOT_READ,
     "remote-ownership", "safe.directory"),
    ("fast-import", "fatal: sha1 file '/x/tmp_pack_a' write error. Out of diskspace", "disk-full",
     "make room"),
    ("ls-remote", "fatal: protocol error: bad line length character: Welc", "noisy-shell",
     "bashrc"),
    ("fetch", "fatal: mismatched algorithms: client sha1; server sha256", "object-format",
     "--object-format"),
    ("push", "fatal: remote error: access denied or repository not exported: /x", "not-exported",
     "git-daemon-export-ok"),
    ("push", "fatal: remote error: service not enabled: /x", "read-only",
     "--enable=receive-pack"),
    ("ls-remote", "the credential helper did not answer for 8 s", "helper-hangs", "by hand"),
    ("push", HOOK, "refused", "rule or hook"),
    ("ls-remote", "fatal: unable to access 'https://x/': Could not resolve host: x", "offline",
     "the network"),
    ("ls-remote", "git@x: Permission denied (publickey).\n" + CANNOT_READ, "not-let-in", "SSH key"),
    ("ls-remote", "ERROR: Repository not found.\n" + CANNOT_READ, "no-repository", "make the"),
    ("ls-remote", "ssh: connect to host x port 22: Connection refused\n" + CANNOT_READ,
     "unreachable", "the port"),
    ("ls-remote", "fatal: unable to access 'https://x/': SSL certificate problem: expired",
     "certificate", "clock"),
    ("ls-remote", "fatal: unable to access 'https://x:y/': URL rejected: Bad hostname",
     "address", "host:path"),
    ("update-ref", "fatal: Unable to create '/x/.git/refs/heads/main.lock': File exists.",
     "locked", "delete the file"),
    ("push", "remote: error: cannot lock ref 'HEAD': Unable to create '/x/HEAD.lock': File exists.",
     "remote-locked", "runs there"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "output", "kind", "todo"), SAID)
def test_each_cause_has_its_own_word_and_remedy(
    verb: str, output: str, kind: str, todo: str
) -> None:
    """Nobody is told to look at a key when a disk is full."""
    problem = problem_of(GitFailed(verb, output))
    assert problem.kind == kind
    assert todo in problem.remedy


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (READ_ONLY, "(The key you are authenticating with has been marked as read only.)"),
        (HOOK, "(no entry on Sundays"),
        ("ERROR: This account is suspended.\n" + CANNOT_READ, "This account is suspended."),
        ("remote: quota of the house: 5 files\nerror: failed to push some refs to 'x'", "5 files"),
    ],
)
def test_the_reason_is_told_as_the_server_gave_it(output: str, reason: str) -> None:
    """Whatever marks a server uses; what git says at every failure is left out."""
    problem = problem_of(GitFailed("push", output))
    assert reason in problem.sentence
    assert "failed to push some refs" not in problem.sentence
    assert "correct access rights" not in problem.sentence


def test_the_status_of_an_older_version_is_read(tmp_path: Path) -> None:
    """Its problem has neither a kind nor a remedy of its own."""
    old = {"remote": True, "ahead": 2, "problem": "the sky has fallen", "last_push": "not a time",
           "failing_since": "2026-01-01T00:00:00+00:00", "held_back": {}}  # fmt: skip
    (tmp_path / Status.FILE).write_text(json.dumps(old))
    status = Status.read(tmp_path)
    assert status.trouble
    assert status.trouble.sentence == "the sky has fallen"
    assert status.trouble.remedy
    assert (status.remote, status.ahead, status.last_push) == (True, 2, None)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"ahead": "many", "held_back": 3}', "[" * 100_000, "\0"]
)
def test_a_status_that_is_none_is_empty(tmp_path: Path, text: str) -> None:
    """Whoever wrote it."""
    (tmp_path / Status.FILE).write_text(text)
    assert Status.read(tmp_path) == Status()


# --- one truth about the state --------------------------------------------------------------------


def test_what_another_process_achieved_is_not_overwritten(ada: Machine, remote: Path) -> None:
    """A server waits after a failure; meanwhile `aiaml sync` succeeds, and that stays told."""
    ada.remember("hello")
    away = remote.rename(remote.with_name("away"))
    assert ada.sync().problem
    away.rename(remote)
    person = Machine(ada.base, remote)
    assert person.synced().last_push
    ada.rounds.pace.not_before = float("inf")  # it waits
    ada.remember("more")
    assert ada.rounds.run()
    status = Status.read(ada.base)
    assert (status.problem, status.failing_since) == (None, None)
    assert status.last_push


def test_a_program_without_the_key_does_not_call_the_directory_broken(
    ada: Machine, remote: Path, tmp_path: Path
) -> None:
    """Two programs on one directory, of which one reaches the remote: its success is the truth."""
    ada.remember("hello")
    other = Machine(ada.base, tmp_path / "not for this one")
    assert other.sync().problem
    for _ in range(3):
        assert ada.sync().problem is None
        assert other.sync().problem is None
        assert other.rounds.problem
    assert remote.exists()
    for _ in range(2):  # the one that reached it has ended
        status = other.sync()
    assert status.problem


def test_another_remote_than_the_one_in_use_is_refused(
    ada: Machine, remote: Path, tmp_path: Path
) -> None:
    """`AIAML_GITHUB_REMOTE=… aiaml sync` by a person: named with the remedy; nothing changes."""
    copy = bare(tmp_path / "copy")
    ada.remember("hello")
    ada.synced()
    before, seen = Status.read(ada.base), ada.git("rev-parse", "refs/aiaml/remote")
    ada.remember("more")
    for address in (copy, tmp_path / "nowhere"):
        with pytest.raises(InvalidSetting, match="aiaml sync --setup ADDRESS"):
            once(Settings(ada.base, remote=str(address)))
        assert Status.read(ada.base) == before
        assert remembered(ada.base) == in_use(ada.base) == str(remote)
        assert ada.git("rev-parse", "refs/aiaml/remote") == seen
    assert (
        not list((copy / "objects").rglob("*.pack"))
        and not (copy / "refs" / "heads" / "main").exists()
    )
    ada.synced()
    assert content_of(remote) == ada.files
