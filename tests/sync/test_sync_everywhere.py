"""`aiaml forget --everywhere`: out of the history of every machine and of the remote, for good."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aiaml_server.format.memory import Memory
from aiaml_server.sync import Status, once, stream
from aiaml_server.sync.forgetting import purge, telling
from aiaml_server.sync.forgetting.plan import plan
from aiaml_server.sync.forgetting.rewrite import mark, marks_in, text_of, without
from aiaml_server.sync.remote import Remote
from machine import TOKEN, Machine, append, as_person, content_of, git, settle
from printed import printed

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

SECRET = "the-garden-gate-opens-with-4711"  # noqa: S105 (of a garden)
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")


def environment(machine: Machine) -> dict[str, str]:
    """Return what a shell at a machine has."""
    return machine.environment(HOME=str(machine.base.parent), NO_COLOR="1")


def aiaml(machine: Machine, *verb: str, code: int = 0) -> str:
    """Run a verb at a machine and return all that it printed."""
    done = printed([sys.executable, "-m", "aiaml_server", *verb], env=environment(machine))
    assert done.returncode == code, done.stdout
    return done.stdout


def forget(machine: Machine, *ids: str, code: int = 0) -> str:
    """Forget everywhere, without being asked."""
    return aiaml(machine, "forget", "--everywhere", "--yes", *ids, code=code)


def marks_of(machine: Machine, name: str) -> frozenset[bytes]:
    """Return what a memory is known by, to those that are to forget it."""
    return plan(machine.base, [name], lambda data: SECRET.encode() in data or None).marks


def objects_with(directory: Path, text: str) -> list[str]:
    """Return the blobs of a repository that hold a text, whether anything leads to them or not."""
    asked = ("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    blobs = [line.split()[1] for line in git(directory, *asked).splitlines() if "blob" in line]
    return [each for each in blobs if text in git(directory, "cat-file", "blob", each)]


def is_gone(machine: Machine, text: str = SECRET) -> None:
    """See that neither git nor the index nor any other file at a machine has a text."""
    machine.bank.think([text])  # the index catches up, as a server has it do
    assert objects_with(machine.base, text) == []
    assert git(machine.base, "fsck", "--no-dangling") == ""
    for ref in (machine.base / ".git" / "aiaml" / "refs").rglob("*"):  # as the remote is told
        if ref.is_file():
            git(machine.base, "cat-file", "-e", ref.read_text().strip())
    for path in machine.base.rglob("*"):
        if path.is_file():
            assert text.encode() not in path.read_bytes(), path


def edited(machine: Machine, memory: Memory, text: str) -> None:
    """Add a line to a memory, as a person with an editor does."""
    path = machine.path(memory)
    path.write_bytes(path.read_bytes() + f"{text}\n".encode())


def shared(*machines: Machine) -> Memory:
    """Give all machines a memory with a secret, of several versions, among others."""
    first = machines[0]
    first.remember("before")
    settle([*machines])
    memory = first.remember(f"It is {SECRET}.")
    first.synced()
    edited(first, memory, "And more.")
    first.synced()
    first.remember("after")
    settle([*machines])
    return memory


# --- three machines -----------------------------------------------------------------------------


@pytest.mark.slow
def test_it_is_gone_on_three_machines_and_at_the_remote(
    ada: Machine, bob: Machine, cleo: Machine, remote: Path
) -> None:
    """All else is where it was, and nothing brings it back."""
    memory = shared(ada, bob, cleo)
    left = {name: data for name, data in ada.files.items() if name != memory.file_name}
    said = forget(ada, memory.id)
    assert "Forgot 1 memory everywhere: 2 versions, 3 changes rewritten." in said
    settle([bob, cleo, ada])
    for machine in (ada, bob, cleo):
        assert machine.files == left == content_of(remote)
        assert machine.bank.think(["garden-gate"]) == []
        is_gone(machine)
    git(remote, "gc", "--quiet", "--prune=now")
    assert objects_with(remote, SECRET) == []
    assert "1 memory was forgotten here, for good" in aiaml(bob, "status")
    bob.remember("later")
    settle([bob, ada, cleo])
    assert ada.files == bob.files == cleo.files == content_of(remote)
    assert len(ada.files) == 3


@pytest.mark.slow
def test_a_machine_that_was_off_follows_and_keeps_its_other_memories(
    ada: Machine, bob: Machine, cleo: Machine, remote: Path
) -> None:
    """Also when it had edited the forgotten one; what it committed meanwhile is not lost."""
    memory = shared(ada, bob, cleo)
    joins = git(remote, "rev-list", "--merges", "--count", "main")
    own = [bob.remember(f"offline {number}") for number in range(3)]
    edited(bob, memory, f"{SECRET} was changed")
    once(bob.settings, local=True)
    edited(bob, memory, f"and again {SECRET}")
    forget(ada, memory.id)
    other = ada.remember("meanwhile")
    ada.synced()
    settle([bob, ada, cleo])
    for machine in (ada, bob, cleo):
        assert {each.file_name for each in (*own, other)} <= machine.files.keys()
        assert machine.files == content_of(remote)
        is_gone(machine)
    assert f"what was changed here went as well, in files/{memory.file_name}" in aiaml(
        bob, "status"
    )
    assert git(remote, "rev-list", "--merges", "--count", "main") == joins


@pytest.mark.slow
def test_a_memory_that_was_forgotten_before_goes_out_of_the_history(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """It is named by its id, as for `restore`."""
    memory = shared(ada, bob)
    aiaml(ada, "forget", "--yes", memory.id)
    settle([ada, bob])
    forget(ada, memory.id)
    settle([bob, ada])
    for machine in (ada, bob):
        is_gone(machine)
    assert f"no memory has or had the id {memory.id}" in aiaml(ada, "history", memory.id, code=1)
    assert content_of(remote) == ada.files


def given(machine: Machine, memory: Memory, memory_id: str) -> Path:
    """Copy a memory by hand, under an id of its own as `doctor` advises, and edit it."""
    path = machine.path(memory)
    copy = path.with_name(f"copy_{memory.id}.md")
    copy.write_text(path.read_text().replace(memory.id, memory_id))
    machine.synced()
    copy.write_text("".join([*copy.read_text().splitlines(keepends=True)[:-2], "Mine now.\n"]))
    machine.synced()
    return copy


@pytest.mark.slow
def test_another_memory_in_a_file_of_such_a_name_stays(ada: Machine, bob: Machine) -> None:
    """On both machines, in all its versions that are its own."""
    memory = ada.remember("It was so at first.")
    ada.synced()
    copy = given(ada, memory, "beef0000")
    settle([bob])
    assert "1 version, " in forget(ada, memory.id)
    settle([bob, ada])
    for machine in (ada, bob):
        assert set(machine.files) == {copy.name}
        assert len(git(machine.base, "log", "--format=%h", "--", f"files/{copy.name}").split()) == 2
    forget(ada, memory.id, code=1)


def test_a_file_that_held_it_once_keeps_its_other_versions(ada: Machine, remote: Path) -> None:
    """The copy was given its own id after git had it."""
    memory = ada.remember(f"It is {SECRET}.")
    ada.synced()
    path = ada.path(memory)
    copy = path.with_name("copy.md")
    shutil.copy(path, copy)
    ada.synced()
    copy.write_text(copy.read_text().replace(memory.id, "beef0000").replace(SECRET, "nothing"))
    ada.synced()
    forget(ada, memory.id)
    assert set(ada.files) == {"copy.md"}
    assert "nothing" in copy.read_text()
    ada.synced()
    is_gone(ada)
    assert SECRET not in git(remote, "log", "--patch", "--all")


@pytest.mark.parametrize("first", ["forget", ""])
def test_it_goes_under_all_names_that_it_had(ada: Machine, remote: Path, first: str) -> None:
    """Renamed and edited, and perhaps forgotten, before."""
    memory = ada.remember(f"It is {SECRET}.")
    ada.synced()
    renamed = ada.path(memory).rename(ada.base / "files" / "gate.md")
    renamed.write_text(f"{renamed.read_text()}And more.\n")
    ada.synced()
    if first:
        aiaml(ada, first, "--yes", memory.id)
    forget(ada, memory.id)
    assert ada.files == {}
    is_gone(ada)
    assert SECRET not in git(remote, "log", "--patch", "--all")


@pytest.mark.slow
def test_a_copy_goes_with_what_git_never_got_of_it(ada: Machine, bob: Machine) -> None:
    """A secret that is held back in it is nowhere else, and should be nowhere."""
    memory = shared(ada, bob)
    before = set(ada.files)
    for machine, words in ((ada, "by ada"), (bob, "by bob")):
        append(machine.path(memory), words)
    settle([ada, bob])
    (name,) = set(ada.files) - before
    append(ada.base / "files" / name, f"key: {TOKEN}")
    ada.sync()
    forget(ada, memory.id)
    assert set(ada.files) == before - {memory.file_name}


def test_what_cannot_be_read_where_it_was_once_stays(ada: Machine) -> None:
    """It may be another memory's by now, of which git has nothing."""
    memory = ada.remember("It was so at first.")
    ada.synced()
    copy = given(ada, memory, "beef0000")
    copy.write_text("Mine, and no longer a memory.\n")
    forget(ada, memory.id)
    assert copy.read_text() == "Mine, and no longer a memory.\n"


@pytest.mark.parametrize("more", [(), ("--split",)])
def test_nothing_of_git_s_names_commits_that_are_gone(ada: Machine, more: tuple[str, ...]) -> None:
    """Such as its graph of commits, which `git gc` writes."""
    memory = ada.remember("It was so at first.")
    ada.remember("left")
    ada.synced()
    ada.git("commit-graph", "write", "--reachable", *more)
    forget(ada, memory.id)
    assert git(ada.base, "fsck", "--no-dangling") == ""


def test_the_others_go_though_one_file_cannot_be_read(ada: Machine) -> None:
    """It is named, and left to the person."""
    one, other = ada.remember("one"), ada.remember("other")
    ada.synced()
    ada.path(one).write_bytes(b"\xff\xfe key: " + TOKEN.encode())
    append(ada.path(other), f"key: {TOKEN}")
    ada.sync()
    said = forget(ada, one.file_name, other.id)
    assert set(ada.files) == {one.file_name}
    assert f"files/{one.file_name}, which cannot be read" in " ".join(said.split())


@pytest.mark.slow
def test_the_copy_that_two_edits_made_goes_too(ada: Machine, bob: Machine, remote: Path) -> None:
    """It holds what the memory held, under an id of its own."""
    memory = shared(ada, bob)
    edited(ada, memory, "by ada")
    edited(bob, memory, "by bob")
    settle([ada, bob])
    assert len(ada.files) == 4
    said = aiaml(ada, "forget", "--everywhere", "--dry-run", memory.id)
    assert "copies, or earlier names: " in said
    forget(ada, memory.id)
    settle([bob, ada])
    for machine in (ada, bob):
        is_gone(machine)
        assert len(machine.files) == 2
    assert content_of(remote) == ada.files


@pytest.mark.slow
def test_two_machines_may_forget_different_memories_at_once(
    ada: Machine, bob: Machine, cleo: Machine, remote: Path
) -> None:
    """Both are gone everywhere."""
    memory = shared(ada, bob, cleo)
    other = ada.remember("another-secret-of-mine")
    settle([ada, bob, cleo])
    once(bob.settings, erase=marks_of(bob, other.file_name), local=True)
    forget(ada, memory.id)
    settle([bob, cleo, ada])
    for machine in (ada, bob, cleo):
        is_gone(machine)
        is_gone(machine, "another-secret-of-mine")
        assert machine.files == content_of(remote)
        assert len(machine.files) == 2


# --- offline, lost races, interruptions -----------------------------------------------------------


@pytest.mark.slow
def test_offline_it_is_gone_here_and_later_elsewhere(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """What can be done is done; the rest as soon as the remote can be reached."""
    memory = shared(ada, bob)
    away = remote.rename(remote.with_name("away"))
    said = forget(ada, memory.id, code=1)
    assert "The copy still has them: " in said and "is not there" in said
    is_gone(ada)
    away.rename(remote)
    bob.remember("meanwhile")
    bob.synced()
    settle([ada, bob])
    for machine in (ada, bob):
        is_gone(machine)
        assert machine.files == content_of(remote)
        assert len(machine.files) == 3


def test_without_a_remote_it_is_gone_here(tmp_path: Path) -> None:
    """There is nobody to tell."""
    machine = Machine(tmp_path / "base")
    memory = shared(machine)
    said = forget(machine, memory.id)
    assert "remote has" not in said
    is_gone(machine)


def test_a_lost_race_is_run_again(
    ada: Machine, bob: Machine, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another machine pushed in between is kept."""
    memory = shared(ada, bob)
    marks = marks_of(ada, memory.file_name)
    push, late = Remote.push, [True]

    def second(self: Remote, commit: str, instead_of: str = "") -> None:
        if late.pop() if late else False:
            bob.remember("faster")
            bob.synced()
        push(self, commit, instead_of)

    monkeypatch.setattr(Remote, "push", second)
    assert once(ada.settings, erase=marks).problem is None
    monkeypatch.undo()
    settle([bob, ada])
    for machine in (ada, bob):
        is_gone(machine)
        assert machine.files == content_of(remote)
        assert len(machine.files) == 3


def stopped(machine: Machine, memory: Memory, place: Path, verb: str, stop: str) -> tuple[int, str]:
    """Forget everywhere with a git that does `stop` to us (`$us`) at the first command of a kind.

    Returns:
        The exit code, and what was said.
    """
    slow = place / "bin" / "git"
    slow.parent.mkdir()
    real = shutil.which("git")
    slow.write_text(
        f'#!/bin/sh\ngit() {{ "{real}" "$@"; }}\n'
        f'case " $* " in\n*" {verb} "*) if mkdir {place}/once 2>/dev/null; then\n'
        f'us=$(cat {place}/process); {stop}; exit; fi;;\nesac\nexec "{real}" "$@"\n'
    )
    slow.chmod(0o755)
    process = subprocess.Popen(
        ["/bin/sh", "-c", f'echo $$ > {place}/process; exec "$@"', "sh", sys.executable, "-m",
         "aiaml_server", "forget", "--everywhere", "--yes", memory.id],
        env={**environment(machine), "PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8",
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (place / "once").exists()
    return process.returncode, said


def is_all_or_nothing(ada: Machine, bob: Machine, remote: Path, memory: Memory) -> bool:
    """See that whatever comes next finishes it, if it was begun; return whether it was."""
    begun = (ada.base / ".git" / "aiaml" / "erased").exists()
    ada.restart()
    settle([ada, bob])
    assert (memory.file_name in ada.files) != begun
    for machine in (ada, bob) if begun else ():
        is_gone(machine)
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) >= 2
    return begun


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("verb", ["fast-export", "fast-import", "update-ref", "push", "reflog",
                                  "rev-list", "pack-objects"])  # fmt: skip
@pytest.mark.parametrize("stop", ["kill -9 $us; exit 1", 'git "$@"; kill -9 $us'])
def test_a_kill_at_any_step_is_made_good(
    ada: Machine, bob: Machine, remote: Path, tmp_path: Path, verb: str, stop: str
) -> None:
    """Whatever comes next finishes it; or it was not begun, and nothing has changed."""
    memory = shared(ada, bob)
    ada.git("repack", "-q", "-a", "-d")
    code, said = stopped(ada, memory, tmp_path, verb, stop)
    assert code == -signal.SIGKILL, said
    is_all_or_nothing(ada, bob, remote, memory)


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("verb", ["fast-export", "update-ref", "push", "rev-list"])
def test_ctrl_c_at_any_step_says_whether_it_was_begun(
    ada: Machine, bob: Machine, remote: Path, tmp_path: Path, verb: str
) -> None:
    """With the exit code of Ctrl-C, and no traceback."""
    memory = shared(ada, bob)
    code, said = stopped(ada, memory, tmp_path, verb, 'kill -2 $us; sleep 1; git "$@"')
    assert (code, "Traceback" in said) == (130, False)
    begun = is_all_or_nothing(ada, bob, remote, memory)
    assert ("the next round goes on with it" in said) == begun, said


@pytest.mark.slow
def test_what_is_asked_and_not_answered_changes_nothing(ada: Machine, bob: Machine) -> None:
    """Neither does looking only."""
    memory = shared(ada, bob)
    before = ada.git("rev-parse", "main"), ada.files
    said = aiaml(ada, "forget", "--everywhere", memory.id, code=2)
    assert "there is no terminal to ask on" in said
    assert SECRET in said
    said = aiaml(ada, "forget", "--everywhere", "--dry-run", "--json", memory.id)
    told = json.loads(said)
    assert (told["ids"], told["versions"], told["commits"]) == ([memory.id], 2, 3)
    assert (told["done"], told["files"]) == (False, [memory.file_name])
    assert (ada.git("rev-parse", "main"), ada.files) == before
    object.__setattr__(ada.settings, "remote", "")
    assert "nothing" not in aiaml(ada, "status")


# --- who brings it back -------------------------------------------------------------------------


def pushed_by_force(clone: Path) -> None:
    """The old history takes the place of the new one."""
    as_person(clone, "push", "--quiet", "--force", "origin", "main")


def pulled_and_pushed(clone: Path) -> None:
    """The old history is joined with the new one."""
    as_person(clone, "pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main")
    as_person(clone, "push", "--quiet", "origin", "main")


@pytest.mark.slow
@pytest.mark.parametrize("brought", [pushed_by_force, pulled_and_pushed])
def test_an_old_history_that_comes_back_is_rewritten_again(
    ada: Machine, bob: Machine, remote: Path, tmp_path: Path, brought: Callable[[Path], None]
) -> None:
    """What else was pushed with it is kept; and the status says what happened."""
    memory = shared(ada, bob)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(remote), str(clone))
    forget(ada, memory.id)
    settle([bob, ada])
    (clone / "files" / "by hand.md").write_text("by hand")
    as_person(clone, "add", ".")
    as_person(clone, "commit", "--quiet", "-m", "By hand")
    brought(clone)
    assert memory.file_name in content_of(remote)
    settle([bob, ada])
    for machine in (ada, bob):
        is_gone(machine)
        assert machine.files == content_of(remote)
        assert "by hand.md" in machine.files
        assert len(machine.files) == 3
    assert "came back to the remote and is removed again" in aiaml(bob, "status")
    before = git(remote, "rev-parse", "main")
    settle([bob, ada])
    assert git(remote, "rev-parse", "main") == before


@pytest.mark.slow
def test_a_file_that_is_put_back_by_hand_stays_out_of_git(ada: Machine, bob: Machine) -> None:
    """As from a backup: it is told, and not taken from the person."""
    memory = shared(ada, bob)
    data = ada.path(memory).read_bytes()
    forget(ada, memory.id)
    settle([bob, ada])
    bob.path(memory).write_bytes(data)
    settle([bob, ada])
    assert memory.file_name not in ada.files
    assert objects_with(bob.base, SECRET) == []
    assert "it was forgotten everywhere" in aiaml(bob, "status", code=1)


@pytest.mark.slow
def test_what_git_never_got_stays_where_it_is_and_is_named(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """A version that was held back is on one disk alone: only a person deletes it there."""
    memory = shared(ada, bob)
    edited(bob, memory, TOKEN)
    bob.synced()
    mine = bob.path(memory).read_bytes()
    forget(ada, memory.id)
    settle([bob, ada])
    assert bob.path(memory).read_bytes() == mine
    assert objects_with(bob.base, SECRET) == []
    assert memory.file_name not in content_of(remote)
    assert "it was forgotten everywhere" in aiaml(bob, "status", code=1)
    edited(ada, ada.remember("another"), TOKEN)
    assert "the history has no version of it" in forget(ada, ada.remember(TOKEN).id, code=1)


@pytest.mark.slow
def test_a_version_that_git_never_got_goes_where_it_is_asked_for(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """It was shown, and it was said to be forgotten."""
    memory = shared(ada, bob)
    edited(ada, memory, TOKEN)
    forget(ada, memory.id)
    settle([ada, bob])
    is_gone(ada)
    assert content_of(remote) == ada.files == bob.files


@pytest.mark.slow
def test_a_persons_branch_that_has_it_is_named_and_left(
    ada: Machine,
    bob: Machine,
    remote: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So is a tag; once they are gone, the rest goes as well."""
    memory = shared(ada, bob)
    ada.git("branch", "mine", "main")
    ada.git("tag", "v1", "main")
    mine = ada.git("rev-parse", "mine")
    said = aiaml(ada, "forget", "--everywhere", "--dry-run", memory.id)
    assert "the branch mine and the tag v1" in said
    said = forget(ada, memory.id)
    assert "the branch mine and the tag v1" in said
    assert ada.git("rev-parse", "mine", "v1").split() == [mine, mine]
    assert ada.git("fsck", "--no-dangling") == ""
    with monkeypatch.context() as patched:  # nobody looks through all of it again for nothing
        patched.setattr(purge, "_objects", None)
        ada.restart()
        ada.remember("more")
        assert ada.synced().ahead == 0
        assert "crashed" not in caplog.text
    ada.git("branch", "-q", "-D", "mine")
    ada.git("tag", "-d", "v1")
    settle([ada, bob])
    for machine in (ada, bob):
        is_gone(machine)
    assert content_of(remote) == ada.files


@pytest.mark.slow
def test_a_person_of_another_machine_is_told_what_of_theirs_has_it(
    ada: Machine, bob: Machine
) -> None:
    """When that machine follows, and in its status until it is gone."""
    memory = shared(ada, bob)
    bob.git("branch", "mine", "main")
    forget(ada, memory.id)
    named = "the branch mine"
    assert named in aiaml(bob, "sync", code=1)
    assert named in aiaml(bob, "status", code=1)
    assert json.loads(aiaml(bob, "status", "--json", code=1))["still_held_by"]
    assert named not in aiaml(ada, "status")
    bob.git("branch", "-q", "-D", "mine")
    bob.synced()
    is_gone(bob)
    assert "The remote has all" in aiaml(bob, "status")


@pytest.mark.slow
def test_persons_repository_that_has_it_is_named_and_left(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """Theirs keeps what they committed to it; ours, and all other machines, lose it."""
    ada.base.mkdir()
    ada.git("init", "--quiet")
    memory = shared(ada, bob)
    ada.git("add", "files")
    as_person(ada.base, "commit", "--quiet", "-m", "All")
    mine = ada.git("rev-parse", "HEAD")
    said = forget(ada, memory.id)
    assert f"the repository in {ada.base / '.git'}" in said
    settle([ada, bob])
    is_gone(bob)
    assert objects_with(ada.repository, SECRET) == []
    assert ada.git("rev-parse", "HEAD") == mine
    assert content_of(remote) == ada.files == bob.files


def test_so_much_at_another_machines_word_waits_for_a_person(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can bring it back; so it needs a word here as well."""
    monkeypatch.setattr(telling, "_MANY", 2)
    memories = [ada.remember(f"number {number}") for number in range(5)]
    settle([ada, bob])
    forget(ada, *(each.id for each in memories[:4]))
    trouble = bob.sync().trouble
    assert trouble
    assert trouble.kind == "waiting"
    assert "4 of the 5 memories" in trouble.sentence
    assert len(bob.files) == 5
    assert once(bob.settings, missing="forget").problem is None
    assert len(bob.files) == 1


@pytest.mark.slow
@posix_only
def test_a_remote_that_refuses_is_told_as_such(ada: Machine, bob: Machine, remote: Path) -> None:
    """And once it lets its history be replaced, it is."""
    memory = shared(ada, bob)
    git(remote, "config", "receive.denyNonFastForwards", "true")
    said = forget(ada, memory.id, code=1)
    assert "does not let its history be replaced" in said
    assert Status.read(ada.base).problem_kind == "history-kept"
    git(remote, "config", "receive.denyNonFastForwards", "false")
    settle([ada, bob])
    assert content_of(remote) == ada.files == bob.files


# --- what is left to know -----------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_not_touched_keeps_its_commits(ada: Machine, bob: Machine) -> None:
    """Those before the first that had it are the same, and the others say what they said."""
    memory = shared(ada, bob)
    settle([ada, bob])
    old = ada.git("log", "--format=%H %an %at %cn %ct %s", "main").splitlines()
    forget(ada, memory.id)
    new = ada.git("log", "--format=%H %an %at %cn %ct %s", "main").splitlines()
    assert new[-2:] == old[-2:]
    assert new[0].endswith("Forget memories everywhere")
    told = [line.partition(" ")[2] for line in old if memory.id not in line]
    assert [line.partition(" ")[2] for line in new[1:]] == told
    listed = aiaml(ada, "log")
    assert "after" in listed
    assert memory.id not in listed


ODD = [
    "author A <a@b>\ncommitter A <a@b>",
    "author A <a@b> 99999999999999999999 +9999\ncommitter A <a@b> -1 +0000",
    "author <> 1 +0000\ncommitter A<a@b> 1 0",
    "author Ä <ä@b> 1 +0000\ncommitter A <a@b> 1 +0000\nencoding latin1\ngpgsig -----BEGIN\n x",
]


@pytest.mark.slow
@pytest.mark.parametrize("who", ODD)
def test_commits_of_odd_tools_are_rewritten_too(
    ada: Machine, bob: Machine, remote: Path, who: str
) -> None:
    """What git itself would not make is made such as git takes it."""
    memory = shared(ada, bob)
    tip = git(remote, "rev-parse", "main")
    text = f"tree {git(remote, 'rev-parse', 'main^{tree}')}\nparent {tip}\n{who}\n\nodd\n"
    words = ("hash-object", "-t", "commit", "-w", "--stdin", "--literally")
    git(remote, "update-ref", "refs/heads/main", git(remote, *words, data=text))
    settle([ada, bob])
    forget(ada, memory.id)
    settle([bob, ada])
    for machine in (ada, bob):
        is_gone(machine)
        assert machine.files == content_of(remote)
    assert "odd" in git(remote, "log", "--format=%s", "main").splitlines()


def test_the_same_history_becomes_the_same_on_every_machine(ada: Machine, bob: Machine) -> None:
    """Therefore no machine has to be told what took the place of what."""
    memory = shared(ada, bob)
    edited(ada, memory, "by ada")
    edited(bob, memory, "by bob")
    settle([ada, bob])
    marks = marks_of(ada, memory.file_name)
    found = []
    for machine in (ada, bob):
        machine.rounds._repository.erasure.add(marks)
        found.append(machine.rounds._repository.erasure.cleaned(machine.git("rev-parse", "main")))
    assert found[0] == found[1] != ada.git("rev-parse", "main")
    tree = ada.git("ls-tree", "-r", "--name-only", found[0]).splitlines()
    assert len(tree) == len(set(tree)) == 4


def test_marks_are_read_as_they_are_written() -> None:
    """Whatever else stands in the file, as after two versions of it were joined by hand."""
    marks = frozenset(map(mark, (b"files/a.md", b"0" * 40)))
    assert marks_in(b"<<<<<<< ours\n" + text_of(marks)) == marks
    assert marks_in(b"nothing") == frozenset()


def exported(directory: Path) -> bytes:
    """Return all of main as git exports it."""
    words = ("fast-export", "--no-data", "--show-original-ids", "main")
    return git(directory, *words).encode("utf-8", "surrogateescape") + b"\n"


def test_a_version_under_another_name_is_taken_out_alone(tmp_path: Path) -> None:
    """The file that held it for a while, and holds something else now, stays."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for text in ("one", "secret", "three"):
        (tmp_path / "ünd so.txt").write_text(text)
        git(tmp_path, "add", ".")
        as_person(tmp_path, "commit", "--quiet", "-m", text)
    secret = git(tmp_path, "rev-parse", "main~1:ünd so.txt").encode()
    found = without(stream.exported(exported(tmp_path)), frozenset([mark(secret)]))
    assert {oid for _, oid in found.taken} == {secret}
    new = git(tmp_path, "fast-import", "--quiet", "--done", data=found.stream.decode())
    assert git(tmp_path, "show", f"{new}:ünd so.txt") == "three"
    assert git(tmp_path, "log", "--format=%s", new).split() == ["three", "secret", "one"]
    assert git(tmp_path, "ls-tree", "--name-only", f"{new}~1") == ""


def many(number: int) -> Iterator[str]:
    """Yield a history of as many commits, with a memory each."""
    for each in range(number):
        text, name = f"memory {each}", f"20240101_000000_{each:08x}"
        message = f"Add memory {each:08x} ({name}.md)"
        yield f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + each} +0000\n"
        yield f"data {len(message)}\n{message}\n"
        yield f"M 100644 inline files/{name}.md\ndata {len(text)}\n{text}\n"
    yield "done\n"


@pytest.mark.slow
def test_a_long_history_takes_little_longer_than_making_it(ada: Machine) -> None:
    """The oldest of 2,000 memories, each of which has a commit: all are rewritten."""
    ada.base.mkdir()
    git(ada.base, "init", "--quiet", "--initial-branch=main")
    git(ada.base, "fast-import", "--quiet", "--done", data="".join(many(2000)))
    git(ada.base, "reset", "--quiet", "--hard")
    ada.synced()
    name = "20240101_000000_00000000.md"
    marks = marks_of(ada, name)
    assert once(ada.settings, erase=marks).problem is None
    assert len(ada.files) == 1999
    assert objects_with(ada.base, "memory 0\n") == []
