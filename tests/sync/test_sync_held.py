"""A version that is held back on one machine changes nothing for the others, and loses nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.format.memory import Memory
from aiaml_server.sync.guard import Untold, keep_local, let_go, release
from aiaml_server.sync.survey import survey
from machine import TOKEN, Machine, content_of, git, settle

pytestmark = pytest.mark.usefixtures("nobodys_configuration")


def add(machine: Machine, memory: Memory, text: str) -> None:
    """Edit a memory by hand."""
    with machine.path(memory).open("a") as file:
        file.write(f"{text}\n")


def keep(machine: Machine, memory: Memory) -> None:
    """Hold it back as the verb does."""
    keep_local(machine.base, memory.file_name)
    add(machine, memory, "local")


def ignore(machine: Machine, memory: Memory) -> None:
    """Hold it back by a line of git's own."""
    with (machine.base / ".gitignore").open("a") as file:
        file.write(f"/files/{memory.file_name}\n")
    add(machine, memory, "local")


def taint(machine: Machine, memory: Memory) -> None:
    """Hold it back by a secret in it."""
    add(machine, memory, f"local {TOKEN}")


def unkeep(machine: Machine, memory: Memory) -> None:
    """End that."""
    let_go(machine.base, memory.file_name)


def unignore(machine: Machine, memory: Memory) -> None:
    """End that."""
    path = machine.base / ".gitignore"
    path.write_text(path.read_text().replace(f"/files/{memory.file_name}\n", ""))


def untaint(machine: Machine, memory: Memory) -> None:
    """Take the secret out, and leave the rest."""
    path = machine.path(memory)
    path.write_text(path.read_text().replace(TOKEN, ""))


def let_travel(machine: Machine, memory: Memory) -> None:
    """Say that the secret is none."""
    release(machine.base, [f"files/{memory.file_name}"])


Hold = Callable[[Machine, Memory], None]
holds = pytest.mark.parametrize("hold", [keep, ignore, taint])
ends = pytest.mark.parametrize(
    ("hold", "end"), [(keep, unkeep), (ignore, unignore), (taint, untaint), (taint, let_travel)]
)


def joins(remote: Path) -> str:
    """Return the commits of a remote that have two parents."""
    return git(remote, "log", "--merges", "--format=%h %s", "main")


@holds
def test_what_is_held_back_on_one_machine_leaves_the_others_as_they_are(
    ada: Machine, bob: Machine, cleo: Machine, remote: Path, hold: Hold
) -> None:
    """Each had synced once, so that one lacks what another did last. Nothing is done at all."""
    memory = ada.remember("public")
    for machine in (ada, bob, cleo):
        machine.synced()
    before = content_of(remote)
    hold(bob, memory)
    settle([bob, ada, cleo])
    assert content_of(remote) == ada.files == cleo.files == before
    assert b"local" in bob.files[memory.file_name]
    assert len(bob.files) == 1


@pytest.mark.slow
@holds
def test_another_machines_edits_of_what_is_held_back_make_no_join_and_no_copy(
    ada: Machine, bob: Machine, cleo: Machine, remote: Path, hold: Hold
) -> None:
    """They stay at the remote, and the local text stays on disk; the status tells."""
    memory = ada.remember("public")
    settle([ada, bob, cleo])
    hold(bob, memory)
    settle([bob, cleo])
    before = joins(remote)
    for number in range(3):
        add(cleo, memory, f"cleo {number}")
        cleo.synced()
        bob.remember(f"else {number}")
        bob.synced()
        cleo.synced()
    settle([ada, bob, cleo])
    assert joins(remote) == before
    assert ada.files == cleo.files == content_of(remote)
    assert b"cleo 2" in ada.files[memory.file_name]
    assert b"local" in bob.files[memory.file_name]
    assert len(ada.files) == len(bob.files) == 4
    found = survey(bob.settings)
    told = (found.kept_local | found.kept_out)[f"files/{memory.file_name}"]
    assert told.sentence.endswith(", and other machines have changed it since")


@holds
def test_another_machines_deletion_leaves_what_is_held_back(
    ada: Machine, bob: Machine, remote: Path, hold: Hold
) -> None:
    """It is forgotten elsewhere, and nothing brings it back."""
    memory = ada.remember("public")
    ada.remember("else")
    settle([ada, bob])
    hold(bob, memory)
    ada.path(memory).unlink()
    settle([ada, bob])
    assert len(ada.files) == len(content_of(remote)) == 1
    assert b"local" in bob.files[memory.file_name]


@holds
def test_a_deletion_of_what_is_held_back_takes_nothing_of_the_others(
    ada: Machine, bob: Machine, remote: Path, hold: Hold
) -> None:
    """What was deleted is the local version; the other machine's, which was never here, comes."""
    memory = ada.remember("public")
    settle([ada, bob])
    hold(bob, memory)
    add(ada, memory, "by ada")
    settle([ada, bob])
    bob.path(memory).unlink()
    settle([bob, ada])
    assert b"by ada" in content_of(remote)[memory.file_name]
    assert ada.files == bob.files == content_of(remote)


@ends
def test_when_the_hold_ends_it_is_an_edit(
    ada: Machine, bob: Machine, remote: Path, hold: Hold, end: Hold
) -> None:
    """Nobody else changed it: one version, and no copy."""
    memory = ada.remember("public")
    settle([ada, bob])
    hold(bob, memory)
    ada.remember("else")
    settle([bob, ada])
    end(bob, memory)
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert b"local" in ada.files[memory.file_name]
    assert len(ada.files) == 2


@ends
def test_when_the_hold_ends_and_both_changed_it_both_are_kept(
    ada: Machine, bob: Machine, remote: Path, hold: Hold, end: Hold
) -> None:
    """Whichever of them keeps the name."""
    memory = ada.remember("public")
    settle([ada, bob])
    hold(bob, memory)
    settle([bob])
    add(ada, memory, "theirs")
    settle([ada, bob])
    end(bob, memory)
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert sorted(b"local" in data for data in ada.files.values()) == [False, True]
    assert sorted(b"theirs" in data for data in ada.files.values()) == [False, True]


def test_what_is_as_it_was_when_the_hold_ends_takes_the_others_version(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """The secret is out, and nothing else was changed here."""
    memory = ada.remember("public")
    settle([ada, bob])
    before = bob.path(memory).read_bytes()
    taint(bob, memory)
    bob.synced()
    add(ada, memory, "theirs")
    settle([ada, bob])
    bob.path(memory).write_bytes(before)
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 1
    assert b"theirs" in ada.files[memory.file_name]


def test_what_was_never_shared_and_comes_from_elsewhere_under_its_name_is_kept_as_well(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """As when both put in the same backup, and one keeps an edited one at home."""
    memory = ada.remember("public")
    bob.remember("else")
    bob.synced()
    bob.path(memory).write_bytes(ada.path(memory).read_bytes())
    keep(bob, memory)
    settle([bob, ada])
    assert b"local" in bob.files[memory.file_name]
    unkeep(bob, memory)
    settle([bob, ada])
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 3


# --- where nobody can tell ------------------------------------------------------------------------


def a_link(path: Path) -> None:
    """Put the file elsewhere, as one does with what is shared by several programs."""
    path.symlink_to(path.rename(path.with_name("elsewhere")))


def a_dangling_link(path: Path) -> None:
    """Have it lead to nothing."""
    path.unlink()
    path.symlink_to(path.with_name("nothing"))


def a_directory(path: Path) -> None:
    """Have a directory of the name."""
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    """Have a pipe that nobody writes to."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.gate_cases(4)
@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
@pytest.mark.parametrize("replaced", [a_link, a_dangling_link, a_directory, a_pipe])
@pytest.mark.parametrize("place", [".keep-local", ".gitignore", "files/.gitignore"])
def test_nothing_is_committed_while_nobody_can_tell_what_is_to_stay_here(
    ada: Machine, remote: Path, place: str, replaced: Callable[[Path], None]
) -> None:
    """The status says why, the verb leaves what is there, and all goes on once it is a file."""
    ada.remember("first")
    ada.synced()
    before = content_of(remote)
    private, other = ada.remember("private"), ada.remember("else")
    path = ada.base / place
    with path.open("a") as file:
        file.write(f"*_{private.id}.md\n")
    rules = path.read_bytes()
    replaced(path)
    status = ada.sync()
    assert f"{path} is " in str(status.problem)
    assert content_of(remote) == before
    asked = survey(ada.settings).problem
    assert asked
    if place == ".keep-local":
        for change in (keep_local, let_go):
            with pytest.raises(Untold):
                change(ada.base, other.file_name)
    assert not path.is_file() or path.is_symlink()
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    path.write_bytes(rules)
    ada.synced()
    assert set(content_of(remote)) == {*before, other.file_name}
