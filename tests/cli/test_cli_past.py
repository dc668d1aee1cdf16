"""What git remembers and how sync stands, as a person asks for it: two machines, and failures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.files import Lock
from aiaml_server.settings import hide_password
from aiaml_server.sync import Status, once
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.guard import keep_local
from aiaml_server.sync.problem import problem_of
from aiaml_server.web.past import Past
from machine import Machine, append, commit_by_hand, git, settle

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

aiaml = Machine.aiaml
environment = Machine.environment
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")

SECRET = "AKIA" + "QX7MZ2KHT4WPBN5J"


def words(*verb: str) -> list[str]:
    """Return the command line of a verb."""
    return [sys.executable, "-m", "aiaml_server", *verb]


def answer(machine: Machine, *verb: str) -> Any:
    """Run a verb that succeeds; return its JSON."""
    done = aiaml(machine, *verb, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def program(path: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def forge(machine: Machine, subject: str, date: str) -> None:
    """Put a commit on the branch as no git makes it: any subject, any text for its dates."""
    name = "20240101_000000_0dd0dd0d.md"
    text = "---\nid: 0dd0dd0d\ntimestamp: 2024-01-01\nagent: a\nuser: u\ntopics: [t]\n---\n" + date
    blob = git(machine.base, "hash-object", "-w", "--stdin", data=text)
    git(machine.base, "read-tree", "HEAD")
    git(machine.base, "update-index", "--add", "--cacheinfo", f"100644,{blob},files/{name}")
    tree, head = git(machine.base, "write-tree"), git(machine.base, "rev-parse", "HEAD")
    commit = (
        f"tree {tree}\nparent {head}\nauthor A <a@b>{date}\ncommitter A <a@b>{date}\n\n{subject}"
    )
    words = ("hash-object", "-t", "commit", "-w", "--stdin", "--literally")
    git(machine.base, "update-ref", "HEAD", git(machine.base, *words, data=commit))
    (machine.base / "files" / name).write_text(text)


# --- history and log ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "date",
    ["", " -5 +0000", " 99999999999999 +0000", f" {9**99} +0000", " 1e5 +0000", " 0 +9999999"],
)
def test_a_commit_with_an_odd_date_ends_no_verb(ada: Machine, date: str) -> None:
    """It was made by no git and came from elsewhere; its time is unknown, all else is told."""
    ada.remember("hello")
    ada.synced()
    forge(ada, "by hand", date)
    for verb in (["log"], ["history", "0dd0dd0d"], ["status"], ["log", "--since", "7d"]):
        done = aiaml(ada, *verb)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 1), done.stderr  # 1: it may say that it waits since 1970
    assert "hello" in aiaml(ada, "log").stdout
    (row, *_) = answer(ada, "log")
    assert row["time"] is None or row["time"].startswith("1970-01-01")
    assert "unknown time" in aiaml(ada, "history", "0dd0dd0d").stdout or row["time"]
    once(ada.settings, local=True)  # brings the file in, which is only in git so far
    (ada.base / "files" / "20240101_000000_0dd0dd0d.md").unlink()
    once(ada.settings, local=True)
    done = aiaml(ada, "restore", "0dd0dd0d", "--yes")
    assert done.returncode == 0, done.stderr


def test_a_long_subject_of_a_commit_holds_nothing_up(ada: Machine) -> None:
    """What somebody wrote into the history is read in a time that grows with its length alone."""
    ada.remember("hello")
    ada.synced()
    forge(ada, "Add memory " + "(" * 1_000_000, " 0 +0000")
    done = aiaml(ada, "history", "0dd0dd0d")
    assert done.returncode == 0, done.stderr


def test_history_has_each_version_of_both_machines_once(ada: Machine, bob: Machine) -> None:
    """Edits at once, joined: each commit once, with where it was made; the copy has its own."""
    memory = ada.remember("the beginning")
    settle([ada, bob])
    append(ada.path(memory), "by ada")
    append(bob.path(memory), "by bob")
    settle([ada, bob])
    versions = answer(bob, "history", memory.id)
    assert [each["what"] for each in versions] == ["updated", "updated", "added"]
    assert len({each["revision"] for each in versions}) == 3
    by_bob = {each["text"].endswith("by bob\n"): each["arrived"] for each in versions[:2]}
    assert by_bob == {True: False, False: True}
    assert versions[2]["arrived"] is True
    assert [each["present"] for each in versions].count(True) == 1
    (copy,) = set(bob.files) - {memory.file_name}
    for machine in (ada, bob):  # bob's made the join
        (kept,) = answer(machine, "history", copy)
        assert (kept["what"], kept["arrived"]) == ("kept", machine is ada)


def test_log_tells_here_from_elsewhere(ada: Machine, bob: Machine) -> None:
    """What arrived by a join or by following the other machine is marked, on either machine."""
    of_ada = ada.remember("from ada")
    ada.synced()
    of_bob = bob.remember("from bob")
    settle([bob, ada])
    for machine in (ada, bob):
        arrived = {each["id"]: each["arrived"] for each in answer(machine, "log")}
        assert arrived == {of_ada.id: machine is bob, of_bob.id: machine is ada}


def test_a_machine_that_has_a_name_is_named(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By git's own setting for the directory; what has none is from elsewhere, and no more."""
    first = ada.remember("before it had a name")
    ada.synced()
    ada.git("config", "user.name", " The <laptop> ")
    ada.restart()
    second = ada.remember("with a name")
    settle([ada, bob])
    words = [line.split() for line in aiaml(bob, "log").stdout.splitlines()]
    lines = {line[3]: " ".join(line[4:6]) for line in words}
    assert lines == {first.id: "elsewhere claude:", second.id: "The laptop,"}
    assert {line.split()[4] for line in aiaml(ada, "log").stdout.splitlines()} == {"here"}
    past = Past(bob.bank)
    assert {each["id"]: each["machine"] for each in past.lately()} == {
        first.id: "another machine",
        second.id: "The laptop",
    }
    assert ada.git("log", "-1", "--format=%an <%ae>", "main") == "The laptop <aiaml@localhost>"
    ada.git("config", "committer.email", "ada@example.org")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Ada")
    ada.restart()
    ada.remember("as git itself would have it")
    ada.synced()
    assert ada.git("log", "-1", "--format=%an <%ae>", "main") == "Ada <ada@example.org>"


def test_log_does_not_guess_where_git_has_no_log_of_its_own(ada: Machine) -> None:
    """Without the log of the branch, nobody knows which commits came from elsewhere."""
    ada.remember("hello")
    ada.synced()
    shutil.rmtree(ada.base / ".git" / "logs")
    (only,) = answer(ada, "log")
    assert only["arrived"] is None
    assert ", elsewhere" not in aiaml(ada, "log").stdout


def test_log_tells_what_was_forgotten_or_restored_together_as_one(ada: Machine) -> None:
    """With its number and the first titles; as data each by itself; what came one by one stays."""
    some = [ada.remember(f"# Note {number}\n\ntext").id for number in range(5)]
    ada.synced()
    assert aiaml(ada, "forget", *some[:4], "--yes").returncode == 0
    lines = aiaml(ada, "log").stdout.splitlines()
    assert len(lines) == 6
    assert "Forgotten" in lines[0]
    assert "4 memories: Note " in lines[0]
    assert aiaml(ada, "restore", *some[:4], "--yes").returncode == 0
    lines = aiaml(ada, "log").stdout.splitlines()
    assert ["Restored" in line for line in lines] == [True, *[False] * 6]
    whats = [each["what"] for each in answer(ada, "log")]
    assert whats == ["restored"] * 4 + ["forgotten"] * 4 + ["added"] * 5


def test_log_tells_many_changes_of_one_commit_in_one_line(ada: Machine) -> None:
    """A first import of hundreds does not push all else out of sight."""
    for number in range(501):
        path = ada.base / "files" / f"20240101_000000_{number:08x}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: {number:08x}\ntimestamp: 2024-01-01\nagent: a\nuser: u\n"
                        f"topics: [t]\n---\nnumber {number}\n")  # fmt: skip
    ada.synced()
    last = ada.remember("the last")
    ada.synced()
    first, second = answer(ada, "log")
    assert (first["id"], first["memories"]) == (last.id, 1)
    assert (second["what"], second["memories"]) == ("imported", 501)
    assert "501 memories" in aiaml(ada, "log").stdout
    (version,) = answer(ada, "history", "000001f4")
    assert version["what"] == "imported"


def test_a_memory_by_other_hands_is_found_by_its_id(ada: Machine) -> None:
    """Also when its file, whose name does not hold the id, is gone; under each name that it had."""
    path = ada.base / "files" / "my notes.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        "---\nid: notes-1\ntimestamp: 2026-01-01\nagent: a\nuser: u\ntopics: [t]\n---\nx\n"
    )
    ada.synced()
    assert [each["what"] for each in answer(ada, "history", "notes-1")] == ["added"]
    path.unlink()
    ada.synced()
    assert [each["what"] for each in answer(ada, "history", "notes-1")] == ["forgotten", "added"]
    assert aiaml(ada, "restore", "notes-1", "--yes").returncode == 0
    assert path.read_text().endswith("x\n")


def test_a_commit_by_a_person_is_history_too(ada: Machine) -> None:
    """Whatever its message says."""
    memory = ada.remember("hello")
    ada.synced()
    append(ada.path(memory), "by hand")
    commit_by_hand(ada.base, "Tidy up", f"files/{memory.file_name}")
    first, _ = answer(ada, "history", memory.id)
    assert (first["what"], first["author"], first["arrived"]) == ("updated", "Marco", False)


def test_no_escape_of_a_memory_or_a_name_reaches_the_terminal(ada: Machine) -> None:
    """A memory is data, a name in git as well."""
    ada.remember("hello")
    ada.synced()
    bad = ada.base / "files" / "20240101_000000_aaaaaaaa.md"
    bad.write_bytes(b"---\nid: aaaaaaaa\ntimestamp: 2024-01-01\nagent: \x1b[31mred\nuser: u\n"
                    b"topics: [t]\n---\n\x1b]0;title\x07 \x1b[2J\x1b[32mgreen\n")  # fmt: skip
    commit_by_hand(ada.base, "x", f"files/{bad.name}", who="\x1b[31mMallory")
    for verb in (
        ["log"],
        ["history", "aaaaaaaa", "--diff"],
        ["restore", "aaaaaaaa", "--at", "HEAD"],
    ):
        done = aiaml(ada, *verb)
        assert "\x1b" not in done.stdout + done.stderr
        assert done.stdout


@pytest.mark.slow
@posix_only
def test_history_and_log_ask_git_little(ada: Machine, tmp_path: Path) -> None:
    """In 5,000 commits: a few calls, none for each commit, and done while one waits."""
    stream, first = "", "20240101_000000_00000000"
    for number in range(5000):
        name = f"20240101_000000_{number:08x}"
        message = f"Add memory {name[-8:]} ({name}.md)"
        text = (
            f"---\nid: {name[-8:]}\ntimestamp: 2024-01-01\nagent: a\nuser: u\ntopics: [t]\n---\nx\n"
        )
        stream += f"commit refs/heads/main\ncommitter A <a@b> {1700000000 + number} +0000\n"
        stream += f"data {len(message)}\n{message}\n"
        stream += "" if number else "from refs/heads/main^0\n"
        stream += f"M 100644 inline files/{name}.md\n"
        stream += f"data {len(text)}\n{text}\n"
    ada.remember("hello")
    ada.synced()
    git(ada.base, "fast-import", "--quiet", data=stream)
    calls = tmp_path / "calls"
    program(tmp_path / "bin" / "git", f'echo "$@" >> {calls}\nexec {shutil.which("git")} "$@"')
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for verb, expected in ((["log"], 25), (["history", first[-8:]], 1)):
        calls.write_text("")
        done = aiaml(ada, *verb, "--json", PATH=path)
        assert len(json.loads(done.stdout)) == expected, done.stderr
        assert len(calls.read_text().splitlines()) < 12


# --- restore --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_one_machine_forgot_another_restores_for_both(ada: Machine, bob: Machine) -> None:
    """The restored memory is committed, and travels like any other."""
    memory = ada.remember("not to be lost")
    settle([ada, bob])
    before = dict(ada.files)
    ada.path(memory).unlink()
    settle([ada, bob])
    assert bob.files == {}
    done = aiaml(bob, "restore", memory.id[:4], "--yes")
    assert done.returncode == 0, done.stderr
    settle([bob, ada])
    assert ada.files == bob.files == before
    whats = [each["what"] for each in answer(ada, "history", memory.id)]
    assert whats == ["restored", "forgotten", "added"]
    assert [each["what"] for each in answer(bob, "log")] == whats


def test_log_has_the_newest_of_a_commit_first(ada: Machine) -> None:
    """A commit has no order of its own; the memories have."""
    for second in (3, 1, 2):
        path = ada.base / "files" / f"20240101_00000{second}_0000000{second}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: 0000000{second}\ntimestamp: 2024-01-01\nagent: a\nuser: u\n"
                        f"topics: [t]\n---\nnumber {second}\n")  # fmt: skip
    ada.synced()
    assert [each["id"] for each in answer(ada, "log")] == ["00000003", "00000002", "00000001"]


@pytest.mark.slow
def test_restore_goes_back_to_a_revision_and_forward_again(ada: Machine) -> None:
    """Every version that `history` shows can be had, by the beginning of its revision."""
    memory = ada.remember("one")
    ada.synced()
    for line in ("two", "three"):
        append(ada.path(memory), line)
        ada.synced()
    versions = answer(ada, "history", memory.id)
    for version in (versions[2], versions[0], versions[1]):
        done = aiaml(ada, "restore", memory.id, "--at", version["revision"][:8], "--yes")
        assert done.returncode == 0, done.stderr
        assert ada.path(memory).read_text(encoding="utf-8") == version["text"]
    assert len(answer(ada, "history", memory.id)) == 6


def test_restore_overwrites_nothing_that_git_must_not_have(ada: Machine) -> None:
    """A present version with a secret is in no commit; it stays, and the reason is given."""
    memory = ada.remember("hello")
    ada.synced()
    append(ada.path(memory), "better")
    ada.synced()
    append(ada.path(memory), SECRET)
    before = ada.path(memory).read_bytes()
    done = aiaml(ada, "restore", memory.id, "--yes")
    assert done.returncode == 1
    assert "an AWS access key" in done.stderr
    assert ada.path(memory).read_bytes() == before
    assert SECRET not in ada.git("log", "-p")


def test_restore_overwrites_nothing_that_is_kept_local(ada: Machine) -> None:
    """A version that stays on this machine is in no commit, and no reason to hold it is told."""
    memory = ada.remember("hello")
    ada.synced()
    append(ada.path(memory), "better")
    ada.synced()
    keep_local(ada.base, memory.file_name)
    append(ada.path(memory), "for this machine alone")
    before = ada.path(memory).read_bytes()
    done = aiaml(ada, "restore", memory.id, "--yes")
    assert (done.returncode, ada.path(memory).read_bytes()) == (1, before)
    assert "because it is kept on this machine" in done.stderr


def test_forget_says_that_git_lacks_what_was_kept_local(ada: Machine) -> None:
    """Of a memory that was edited since then, git has an earlier version only."""
    edited, as_it_was = ada.remember("hello"), ada.remember("else")
    ada.synced()
    for each in (edited, as_it_was):
        keep_local(ada.base, each.file_name)
    append(ada.path(edited), "for this machine alone")
    done = aiaml(ada, "forget", edited.id, as_it_was.id, "--yes")
    assert f"does not have the last version of {edited.file_name}: gone for good" in done.stdout
    assert f"`aiaml restore {as_it_was.id}`" in done.stdout


def test_restore_overwrites_nothing_while_git_cannot_commit(ada: Machine) -> None:
    """While another git has locked the branch, the present version is not in git, and stays."""
    memory = ada.remember("hello")
    ada.synced()
    append(ada.path(memory), "better")
    (ada.base / ".git" / "refs/heads/main.lock").touch()
    before = ada.path(memory).read_bytes()
    done = aiaml(ada, "restore", memory.id, "--yes")
    assert (done.returncode, ada.path(memory).read_bytes()) == (1, before)
    assert "main.lock" in done.stderr


@posix_only
def test_a_version_that_was_just_made_is_not_lost_by_an_edit(ada: Machine, tmp_path: Path) -> None:
    """No server ran, so git did not know it; it does before it is changed."""
    memory = ada.remember("hello")
    first = ada.path(memory).read_text(encoding="utf-8")
    editor = program(tmp_path / "bin" / "editor", 'echo better >> "$1"')
    done = aiaml(ada, "edit", memory.id, EDITOR=str(editor), VISUAL=str(editor))
    assert done.returncode == 0, done.stderr
    assert ada.path(memory).read_text(encoding="utf-8") == f"{first}better\n"
    assert [each["text"] for each in answer(ada, "history", memory.id)][1:] == [first]
    assert aiaml(ada, "restore", memory.id, "--yes").returncode == 0
    assert ada.path(memory).read_text(encoding="utf-8") == first


def test_a_version_that_is_no_memory_is_not_restored(ada: Machine) -> None:
    """Git may hold what a slip of an editor left; the file stays as it is."""
    memory = ada.remember("hello")
    ada.synced()
    good = ada.path(memory).read_bytes()
    ada.path(memory).write_bytes(b"---\nthis is no memory\n")
    ada.synced()
    slip = ada.git("rev-parse", "HEAD")
    ada.path(memory).write_bytes(good)
    ada.synced()
    done = aiaml(ada, "restore", memory.id, "--at", slip, "--yes")
    assert (done.returncode, ada.path(memory).read_bytes()) == (1, good)
    assert "no memory" in done.stderr


def test_a_version_that_is_no_text_is_not_restored(ada: Machine) -> None:
    """Bytes that cannot be kept as they are do not become others."""
    memory = ada.remember("hello")
    ada.synced()
    good = ada.path(memory).read_bytes()
    ada.path(memory).write_bytes(good + b"\xff\n")
    ada.synced()
    ada.path(memory).write_bytes(good + "\ufffd\n".encode())
    ada.synced()
    done = aiaml(ada, "restore", memory.id, "--yes")
    assert (done.returncode, ada.path(memory).read_bytes()) == (1, good + "\ufffd\n".encode())
    assert aiaml(ada, "history", memory.id, "--diff").returncode == 0
    assert len(answer(ada, "history", memory.id)) == 3


def test_a_memory_whose_file_was_renamed_has_one_history(ada: Machine) -> None:
    """Under the name that it has now, and those that it had; the present one is restored."""
    memory = ada.remember("hello")
    ada.synced()
    renamed = ada.path(memory).rename(ada.base / "files" / "dog.md")
    ada.synced()
    append(renamed, "more")
    ada.synced()
    versions = answer(ada, "history", memory.id)
    assert sorted(each["what"] for each in versions) == ["added", "added", "forgotten", "updated"]
    assert aiaml(ada, "restore", memory.id, "--yes").returncode == 0
    assert set(ada.files) == {"dog.md"}
    assert not renamed.read_bytes().endswith(b"more\n")


def test_a_memory_that_is_broken_now_is_restored(ada: Machine) -> None:
    """No reader finds it any more; its id is in the name of its file."""
    memory = ada.remember("hello")
    ada.synced()
    good = ada.path(memory).read_bytes()
    ada.path(memory).write_bytes(b"---\nthis is no memory\n")
    done = aiaml(ada, "restore", memory.id, "--yes")
    assert done.returncode == 0, done.stderr
    assert ada.path(memory).read_bytes() == good


def test_an_id_in_two_files_needs_a_file_s_name(ada: Machine) -> None:
    """Which one is meant is not guessed."""
    memory = ada.remember("hello")
    ada.synced()
    copy = ada.base / "files" / "copy.md"
    shutil.copy(ada.path(memory), copy)
    append(copy, "more")
    ada.synced()
    assert aiaml(ada, "restore", memory.id, "--yes").returncode == 2
    copy.unlink()
    ada.synced()
    assert aiaml(ada, "restore", "copy.md", "--yes").returncode == 0
    assert copy.read_text().endswith("more\n")


def written(machine: Machine, name: str, memory_id: str, content: str) -> Path:
    """Write a memory under a name of its own, and have git take it."""
    path = machine.base / "files" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"id: {memory_id}\ntimestamp: 2026-03-01T09:00:00Z\nagent: a\nuser: u\ntopics: [t]"
    path.write_text(f"---\n{head}\n---\n{content}\n", encoding="utf-8")
    machine.synced()
    return path


def done(machine: Machine, *verb: str) -> str:
    """Run a verb that succeeds, and say yes; return what it printed."""
    ran = aiaml(machine, *verb, "--yes")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("other", ["copy_abcd1234.md", "20260301_090000_abcd1234 (copy).md"])
def test_a_name_does_not_make_a_memory_another(ada: Machine, other: str) -> None:
    """A copy that was given an id of its own keeps its name, and its text."""
    path = written(ada, "20260301_090000_abcd1234.md", "abcd1234", "the original")
    copy = written(ada, other, "beef0000", "unrelated, at first")
    append(copy, "and now")
    ada.synced()
    assert len(answer(ada, "history", "beef0000")) == 2
    done(ada, "forget", "abcd1234")
    before = copy.read_bytes()
    done(ada, "restore", "abcd1234")
    assert "the original" in path.read_text()
    assert copy.read_bytes() == before


def test_an_id_that_another_begins_with_is_meant_itself(ada: Machine) -> None:
    """Where both are forgotten, too, and the file of the one has any name."""
    short = written(ada, "n.md", "note", "the short one")
    long = written(ada, "20260301_090000_note5678.md", "note5678", "the long one")
    done(ada, "forget", "note5678")
    undo = answer(ada, "forget", "note", "--yes")["undo"]
    done(ada, *undo.split()[1:])
    assert (short.exists(), long.exists()) == (True, False)


@pytest.mark.slow
def test_a_renamed_memory_is_restored_as_it_was_last(ada: Machine) -> None:
    """Under its last name; its versions under the earlier one stay within reach."""
    path = written(ada, "20260301_090000_abcd1234.md", "abcd1234", "the old text")
    renamed = path.rename(path.with_name("dog.md"))
    ada.synced()
    append(renamed, "NEW")
    ada.synced()
    first = answer(ada, "history", "abcd1234")[-1]
    done(ada, "restore", "abcd1234", "--at", first["revision"])
    assert "NEW" not in renamed.read_text()
    done(ada, "restore", "abcd1234")
    assert "NEW" in renamed.read_text()
    ada.synced()
    done(ada, "forget", "abcd1234")
    assert ada.files == {}
    done(ada, "restore", "abcd1234")
    assert set(ada.files) == {"dog.md"}
    assert "NEW" in renamed.read_text()


def test_a_renamed_memory_has_its_first_version_before_its_last(ada: Machine) -> None:
    """Where it was edited and renamed at once."""
    path = written(ada, "20260301_090000_abcd1234.md", "abcd1234", "the old text")
    renamed = path.rename(path.with_name("dog.md"))
    append(renamed, "NEW")
    ada.synced()
    done(ada, "restore", "abcd1234")
    assert set(ada.files) == {"dog.md"}
    assert "NEW" not in renamed.read_text()


def test_an_id_in_two_files_comes_back_in_both(ada: Machine) -> None:
    """They were forgotten together."""
    written(ada, "a.md", "abcd1234", "the first")
    written(ada, "b.md", "abcd1234", "the second")
    before = ada.files
    forgotten = answer(ada, "forget", "abcd1234", "--yes")
    assert (forgotten["forgotten"], ada.files) == (2, {})
    done(ada, *forgotten["undo"].split()[1:])
    assert ada.files == before


def test_a_place_that_another_memory_has_taken_is_left_to_it(ada: Machine) -> None:
    """What comes back has a name of its own then."""
    path = written(ada, "note.md", "abcd1234", "the first")
    done(ada, "forget", "abcd1234")
    written(ada, "note.md", "beef0000", "another")
    done(ada, "restore", "abcd1234")
    assert "another" in path.read_text()
    assert "the first" in (path.parent / "20260301_090000_abcd1234.md").read_text()


def test_no_file_is_written_outside_for_an_id_that_is_a_path(ada: Machine) -> None:
    """An id may be any text; what comes back beside another memory has a name with a number."""
    path = written(ada, "note.md", "x/../../escaped", "the first")
    path.unlink()
    ada.synced()
    written(ada, "note.md", "beef0000", "another")
    (path.parent / "20260301_090000_x").mkdir()
    done(ada, "restore", "x/../../escaped")
    assert set(ada.files) == {"note.md", "note (2).md"}
    assert not list(ada.base.rglob("escaped*"))


@pytest.mark.slow
def test_memories_that_had_the_same_name_all_come_back(ada: Machine) -> None:
    """By their ids, or by when they were forgotten; and beside one that has the name now."""
    for memory_id in ("abcd1234", "beef0000"):
        written(ada, "note.md", memory_id, f"this is {memory_id}")
        done(ada, "forget", memory_id)
    done(ada, "restore", "abcd1234", "beef0000")
    assert len(ada.files) == 2
    done(ada, "forget", "abcd1234", "beef0000")
    written(ada, "note.md", "cafe0000", "a third")
    done(ada, "restore", "--since", "1h")
    texts = b"".join(ada.files.values())
    assert all(each in texts for each in (b"this is abcd1234", b"this is beef0000", b"a third"))
    assert aiaml(ada, "restore", "--since", "1h", "--yes").returncode == 1
    assert len(ada.files) == 3


@pytest.mark.slow
def test_the_undo_of_a_renamed_memory_is_one_file(ada: Machine) -> None:
    """Also where git learned of the new name only as it was forgotten."""
    path = written(ada, "20260301_090000_abcd1234.md", "abcd1234", "the text")
    path.rename(path.with_name("dog.md"))
    done(ada, *answer(ada, "forget", "abcd1234", "--yes")["undo"].split()[1:])
    assert set(ada.files) == {"dog.md"}
    time.sleep(3)
    done(ada, "forget", "abcd1234")
    done(ada, "restore", "--since", "1h")
    assert set(ada.files) == {"dog.md"}


@pytest.mark.slow
def test_one_of_two_files_of_an_id_comes_back(ada: Machine) -> None:
    """The other one, which is there, does not stand for it."""
    path = written(ada, "a.md", "abcd1234", "the first")
    written(ada, "b.md", "abcd1234", "the second")
    time.sleep(3)
    path.unlink()
    ada.synced()
    done(ada, "restore", "--since", "1h")
    assert set(ada.files) == {"a.md", "b.md"}


def test_the_undo_of_one_of_two_files_names_it(ada: Machine) -> None:
    """The id is that of the other one, too, which stays as it is."""
    written(ada, "one.md", "abcd1234", "the first")
    append(written(ada, "two.md", "abcd1234", "the second"), "edited")
    (ada.base / "files" / "one.md").write_text(
        (ada.base / "files" / "one.md").read_text().replace("agent: a", "agent: b")
    )
    ada.synced()
    before = ada.files
    undo = answer(ada, "forget", "agent:b", "--yes")["undo"]
    assert set(ada.files) == {"two.md"}
    done(ada, *undo.split()[1:])
    assert ada.files == before


@pytest.mark.slow
def test_a_revision_means_the_file_that_it_changed(ada: Machine) -> None:
    """Where two files had the id."""
    path = written(ada, "a.md", "abcd1234", "first A")
    append(written(ada, "b.md", "abcd1234", "first B"), "second B")
    ada.synced()
    append(path, "second A")
    ada.synced()
    done(ada, "forget", "abcd1234")
    for row in answer(ada, "history", "abcd1234"):
        if row["what"] == "updated":
            done(ada, "restore", "abcd1234", "--at", row["revision"])
            assert ada.files[row["file"]] == row["text"].encode()
            done(ada, "forget", "abcd1234")


@pytest.mark.parametrize("gone", [False, True])
def test_versions_under_earlier_names_are_known(ada: Machine, *, gone: bool) -> None:
    """Of any form, whether the memory is there or not, and by the beginning of its id."""
    path = written(ada, "note.md", "abcd1234", "v1")
    for name, content in (("idea.md", "v2"), ("dog.md", "v3")):
        path.unlink()
        path = written(ada, name, "abcd1234", content)
    if gone:
        done(ada, "forget", "abcd1234")
    texts = [row["text"] for row in answer(ada, "history", "abcd") if row["text"]]
    assert [text.split()[-1] for text in texts] == ["v3", "v2", "v1"]


def test_a_memory_that_was_overwritten_is_known(ada: Machine) -> None:
    """By what is no memory, or another one."""
    path = written(ada, "note.md", "abcd1234", "v1")
    path.write_text("no head\n")
    commit_by_hand(ada.base, "by hand", "files/note.md")
    ada.synced()
    assert answer(ada, "history", "abcd1234")[-1]["text"].endswith("v1\n")
    written(ada, "note.md", "beef0000", "another")
    assert answer(ada, "history", "abcd1234")[-1]["text"].endswith("v1\n")


@pytest.mark.parametrize("said", ["abcd", "ABCD1234"])
def test_an_exact_id_is_meant_before_one_that_it_begins(ada: Machine, said: str) -> None:
    """A forgotten memory's id is, before one that is there and begins so, or in another case."""
    written(ada, f"x_{said}.md", said, "the forgotten one")
    path = written(ada, "y_abcd1234.md", "abcd1234", "there")
    append(path, "twice")
    ada.synced()
    before = path.read_bytes()
    done(ada, "forget", said)
    done(ada, "restore", said)
    assert path.read_bytes() == before
    assert len(ada.files) == 2


def test_a_beginning_that_a_forgotten_memory_has_too_is_ambiguous(ada: Machine) -> None:
    """It is not taken for the one that is there."""
    written(ada, "a.md", "abcd1111", "the first")
    written(ada, "b.md", "abcd2222", "the second")
    done(ada, "forget", "abcd1111")
    ran = aiaml(ada, "restore", "abcd", "--yes")
    assert ran.returncode == 2
    assert "abcd is the beginning of abcd1111, abcd2222" in ran.stderr


def test_what_was_renamed_is_not_forgotten(ada: Machine) -> None:
    """`--since` brings back what is gone, and no second file of what is there."""
    path = written(ada, "a.md", "abcd1234", "the first")
    path.rename(path.with_name("b.md"))
    ada.synced()
    ran = aiaml(ada, "restore", "--since", "1h", "--yes")
    assert (ran.returncode, set(ada.files)) == (1, {"b.md"})


def test_the_undo_of_many_brings_back_no_more(ada: Machine) -> None:
    """Not what the person had deleted by hand shortly before."""
    memories = [ada.remember(f"number {number}") for number in range(15)]
    ada.synced()
    for memory in memories[:3]:
        ada.path(memory).unlink()
    left = ada.files
    undo = answer(ada, "forget", "--agent", "claude", "--yes")["undo"]
    assert "--since" in undo
    done(ada, *undo.split()[1:])
    assert ada.files == left


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize(
    "revision", ["", "-q", "--help", "HEAD:files", "@{99}", "main^{tree}", ":/"]
)
def test_a_revision_that_is_none_is_refused(ada: Machine, revision: str) -> None:
    """Whatever git would make of it: the file stays."""
    memory = ada.remember("hello")
    ada.synced()
    ada.path(memory).unlink()
    done = aiaml(ada, "restore", memory.id, f"--at={revision}", "--yes")
    assert (done.returncode, ada.files) == (2, {})
    assert "--at: there is no revision" in done.stderr


# --- sync and status ------------------------------------------------------------------------------


def fails(machine: Machine, problem: str, what_to_do: str) -> None:
    """Check that `sync` and `status` say what is wrong and what to do, and never the password."""
    for verb in ("sync", "status"):
        done = aiaml(machine, verb)
        said = done.stdout + done.stderr
        assert "hunter2" not in said
        assert done.returncode == 1
        assert problem in said
        assert what_to_do in said


@pytest.mark.parametrize(
    ("address", "problem", "what_to_do"),
    [
        ("https://me:hunter2@aiaml.invalid/x", "cannot be resolved", "check the network"),
        ("http://me:hunter2@127.0.0.1:1/x", "cannot be reached", "the port"),
        ("/nowhere/hunter/2", "nothing is at /nowhere/hunter/2", ""),
    ],
)
def test_a_remote_that_is_not_there(
    tmp_path: Path, address: str, problem: str, what_to_do: str
) -> None:
    """The memory is committed; the person reads what is wrong and what to do."""
    machine = Machine(tmp_path / "base", address)
    machine.remember("hello")
    fails(machine, problem, what_to_do)
    assert machine.messages()[0].startswith("Add memory")


def test_a_remote_that_lets_nobody_in(tmp_path: Path, forbidding: str) -> None:
    """What to try by hand is said."""
    machine = Machine(tmp_path / "base", f"http://me:hunter2@{forbidding}/memories")
    machine.remember("hello")
    fails(machine, "did not let us in", "`git ls-remote`")


@posix_only
def test_a_remote_that_refuses(ada: Machine, remote: Path) -> None:
    """The remote's own words, and where to look."""
    program(remote / "hooks" / "pre-receive", "echo no entry; exit 1")
    ada.remember("hello")
    fails(ada, "no entry", "no rule or hook")


@pytest.mark.parametrize(
    "output",
    [
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "git@x: Permission denied (publickey).",
        "Host key verification failed.",
        "no end after 60 s",
        "fatal: repository 'https://x/' not found",
        "ssh: connect to host x port 22: Connection refused",
        "fatal: write error: No space left on device",
        "fatal: unable to access 'https://x/': SSL certificate problem: expired",
        "! [remote rejected] main -> main (protected branch hook declined)",
        "fatal: Unable to create '/x/.git/refs/heads/main.lock': File exists.",
        "fatal: transport 'ext' not allowed",
        "error: cannot lock ref: Permission denied",
        "fatal: detected dubious ownership in repository at '/x'",
    ],
)
def test_every_kind_of_failure_has_its_remedy(output: str) -> None:
    """Nobody is told to try again where something else would help."""
    assert problem_of(GitFailed("push", output)).kind not in ("git", "remote")


def test_status_changes_nothing(ada: Machine, bob: Machine) -> None:
    """It is asked as often as one likes, beside a running server."""
    ada.remember("one")
    bob.remember("two")
    settle([ada, bob])
    ada.remember("three")

    def everything() -> dict[str, tuple[int, bytes]]:
        files = (path for path in ada.base.rglob("*") if path.is_file())
        known = {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
        return {name: value for name, value in known.items() if not name.endswith(".sync.lock")}

    before = everything()
    for verb in ("status", "log"):
        assert aiaml(ada, verb).returncode == 0
    assert everything() == before


def test_status_counts_what_is_ahead_and_behind(ada: Machine, bob: Machine, remote: Path) -> None:
    """From what git knows here, without the network."""
    ada.remember("one")
    settle([ada, bob])
    bob.remember("two")
    bob.synced()
    ada.git("fetch", "--quiet", str(remote), "+refs/heads/main:refs/aiaml/remote")
    remote.rename(remote.with_name("gone"))
    ada.remember("three")
    once(ada.settings, local=True)
    standing = answer(ada, "status")
    assert (standing["ahead"], standing["behind"], standing["not_committed"]) == (1, 1, 0)


def test_commits_that_wait_for_long_are_pointed_out(
    ada: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1: nothing failed, but nobody took them to the remote."""
    ada.remember("one")
    ada.synced()
    assert aiaml(ada, "status").returncode == 0
    ada.remember("two")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
    commit_by_hand(ada.base, "of long ago")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    once(ada.settings, local=True)
    done = aiaml(ada, "status")
    assert done.returncode == 1
    assert "aiaml sync" in done.stdout


@pytest.mark.parametrize("verb", ["status", "sync"])
def test_a_directory_that_cannot_be_is_no_empty_one(
    ada: Machine, tmp_path: Path, verb: str
) -> None:
    """Part of its path is a file, so that nothing can be remembered."""
    (tmp_path / "file").write_text("mine")
    base = tmp_path / "file" / "x"
    done = aiaml(ada, verb, AIAML_MEMORY_DIR=str(base), AIAML_GITHUB_REMOTE="")
    assert done.returncode == 1
    assert f"cannot read {base}: part of the path is a file" in done.stdout + done.stderr
    assert "AIAML_MEMORY_DIR" in done.stdout + done.stderr


def test_status_says_what_stands_in_the_place_of_the_lock(ada: Machine) -> None:
    """It is no other process that would be done at some time."""
    ada.remember("hello")
    ada.synced()
    place = ada.base / ".sync.lock"
    place.unlink()
    place.mkdir()
    done = aiaml(ada, "status")
    assert done.returncode == 1
    assert f"{place} is a directory" in done.stdout
    assert "What to do: move it away" in done.stdout
    assert "at this moment" not in done.stdout
    place.rmdir()
    assert aiaml(ada, "status").returncode == 0


@posix_only
@pytest.mark.parametrize(
    ("script", "said"), [("exit 127", "install git"), ("echo git version 2.20.1", "is too old")]
)
def test_status_without_a_git_that_does(
    ada: Machine, tmp_path: Path, script: str, said: str
) -> None:
    """No git, or an old one: said with the remedy, whatever else there is."""
    ada.remember("hello")
    directory = tmp_path / "bin"
    directory.mkdir()
    if "echo" in script:
        program(directory / "git", script)
    done = aiaml(ada, "status", PATH=str(directory))
    assert done.returncode == 1
    assert said in done.stdout


def test_a_round_that_stays_here_does_not_hide_that_the_remote_is_away(
    ada: Machine, remote: Path
) -> None:
    """Only a round that has asked the remote can say that all is well again."""
    ada.remember("hello")
    away = remote.rename(remote.with_name("away"))
    assert ada.sync().problem
    assert once(ada.settings, local=True).problem is None
    assert Status.read(ada.base).problem
    away.rename(remote)
    assert once(ada.settings).problem is None
    assert Status.read(ada.base).problem is None


def test_sync_tells_what_came_and_went(ada: Machine, bob: Machine) -> None:
    """In one sentence, on standard output; silent otherwise where nobody watches."""
    bob.remember("from bob")
    bob.remember("another")
    bob.synced()
    ada.remember("from ada")
    done = aiaml(ada, "sync")
    assert (done.stdout, done.stderr) == ("1 memory saved, 2 arrived and 1 sent.\n", "")
    assert len(ada.files) == 3
    done = aiaml(ada, "sync")
    assert done.stdout == "Nothing new, here or there.\n"


@pytest.mark.slow
def test_sync_says_of_what_was_forgotten_that_it_was(ada: Machine, bob: Machine) -> None:
    """Not "2 memories saved", nor that they arrived where they went."""
    first, second, *_ = [ada.remember(f"text {number}") for number in range(30)]
    ada.synced()
    bob.synced()
    for memory in (first, second):
        ada.path(memory).unlink()
    assert "2 memories not in the history yet (2 forgotten): " in aiaml(ada, "status").stdout
    assert aiaml(ada, "sync").stdout == "2 memories forgotten and 2 sent.\n"
    ada.remember("more")
    ada.synced()
    assert aiaml(bob, "sync").stdout == "1 memory arrived and 2 forgotten elsewhere.\n"
    next((ada.base / "files").glob("*.md")).unlink()
    ada.remember("even more")
    assert "2 memories not in the history yet (1 forgotten): " in aiaml(ada, "status").stdout
    assert aiaml(ada, "sync").stdout == "1 memory saved, 1 forgotten and 2 sent.\n"


def test_sync_waits_for_another_process_and_says_so(ada: Machine) -> None:
    """A running server may be at it; nothing is done twice, and nobody is left wondering."""
    ada.remember("hello")
    lock = Lock(ada.base / ".sync.lock")
    with lock.held(1):
        process = subprocess.Popen(
            words("sync"),
            env=environment(ada, LC_ALL="C.UTF-8"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert process.stderr
        assert process.stderr.readline() == "waiting for another process that synchronises …\n"
        status = aiaml(ada, "status")
        assert "at this moment" in status.stdout
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert stdout == "1 memory saved and 1 sent.\n"


@posix_only
def test_ctrl_c_ends_sync_and_its_git_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    """What was committed stays; the remote that never answers is let go; no lock is left."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        machine = Machine(tmp_path / "base", f"git://127.0.0.1:{server.getsockname()[1]}/memories")
        memory = machine.remember("hello")
        process = subprocess.Popen(
            words("sync"), env=environment(machine), stderr=subprocess.PIPE, encoding="utf-8"
        )
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
            connection.settimeout(5)
            while connection.recv(4096):  # until its git is gone
                pass
    assert (process.returncode, stderr.strip()) == (130, "")
    assert memory.id in machine.messages()[0]
    assert not list((machine.base / ".git").rglob("*.lock"))
    assert Status.read(machine.base).problem is None


@posix_only
def test_a_second_ctrl_c_ends_the_git_that_works_here_too(ada: Machine, tmp_path: Path) -> None:
    """The first one lets it come to its end; who is impatient leaves no process behind either."""
    beat = tmp_path / "beat"
    slow = f"for each in $(seq 300); do echo >> {beat}; sleep 0.1; done"
    script = f'case "$*" in *" fast-import "*) {slow};; *) exec {shutil.which("git")} "$@";; esac'
    program(tmp_path / "bin" / "git", script)
    ada.remember("hello")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(words("sync"), env=environment(ada, PATH=path))
    while not beat.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    last = beat.stat().st_size
    time.sleep(0.5)
    assert beat.stat().st_size == last


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:hunter2@example.org/x.git", "https://***@example.org/x.git"),
        ("https://ghp_hunter2@example.org/x", "https://***@example.org/x"),
        ("https://me:hunter/2@example.org/x", "https://***@example.org/x"),
        ("https://example.org/x?token=hunter2", "https://example.org/x?***"),
        ("https://example.org/x?to=http://me:hunter2@y", "https://***@y"),
        ("ssh://git@example.org:22/x", "ssh://git@example.org:22/x"),
        ("ssh://me:hunter2@example.org/x", "ssh://***@example.org/x"),
        ("git@example.org:me/x.git", "git@example.org:me/x.git"),
        ("me:hunter2@example.org:x", "***@example.org:x"),
        ("/srv/git/me@home", "/srv/git/me@home"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    """Better too little of it than a token."""
    assert hide_password(address) == shown


def test_remembering_does_not_wait_for_a_sync_that_is_under_way(ada: Machine) -> None:
    """A slow remote keeps nobody; whoever is at it, or the next round, commits the memory."""
    ada.remember("first")
    ada.synced()
    with Lock(ada.base / ".sync.lock").held(1.0):
        done = aiaml(ada, "remember", "second", "-t", "x")
    assert (done.returncode, done.stderr) == (0, "")
    assert "second" in "".join(data.decode() for data in ada.files.values())
    ada.synced()
    assert len([message for message in ada.messages() if message.startswith("Add")]) == 2


@posix_only
@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (("remember", "second", "-u", "ada", "-t", "x"), "Stored"),
        (("edit", "ID", "--until", "2030-01-31"), "Changed"),
    ],
)
def test_what_is_stored_is_told_before_git_takes_it(
    ada: Machine, tmp_path: Path, verb: tuple[str, ...], told: str
) -> None:
    """The file is on disk by then; the commit takes as long again."""
    memory = ada.remember("first")
    ada.synced()
    go, directory = tmp_path / "go", tmp_path / "bin"
    directory.mkdir()
    waits = directory / "git"
    waits.write_text(
        f"#!/bin/sh\n"
        f"case $* in *fast-import*) while [ ! -e {go} ]; do sleep 0.05; done;; esac\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    waits.chmod(0o755)
    before = len(ada.messages())
    path = f"{directory}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        words(*(memory.id if word == "ID" else word for word in verb)),
        env=ada.environment(PATH=path),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith(told)
        assert len(ada.messages()) == before
        go.touch()
    assert process.returncode == 0
    assert len(ada.messages()) == before + 1
