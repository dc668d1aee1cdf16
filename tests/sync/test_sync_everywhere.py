"""Forgetting everywhere: out of every history, also of a computer that was away for long."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from aiaml_server.format.memory import Memory
from aiaml_server.sync.purge import plan_forgetting
from git_server import Terms, git_server
from machine import Machine, append, bare, content_of, git, settle


@pytest.fixture
def machines(tmp_path: Path) -> list[Machine]:
    """Return three computers that share a remote and some memories."""
    remote = bare(tmp_path / "remote")
    found = [Machine(tmp_path / name, remote) for name in ("ada", "bob", "eve")]
    for machine in found:
        machine.remember(f"by {machine.base.name}")
    settle(found)
    return found


def objects(repository: Path) -> str:
    """Return the content of all objects of a repository."""
    return git(repository, "cat-file", "--batch-all-objects", "--batch")


def forget(machine: Machine, memory: Memory) -> None:
    """Forget a memory everywhere, as the command does."""
    machine.purge_sums = plan_forgetting(machine.base, [memory.file_name], [memory.id]).sums
    machine.synced()


def gone(machine: Machine, text: str) -> bool:
    """Return whether a text is neither on the disk nor in the repository."""
    return text not in objects(machine.repository) + str(machine.files)


def test_memory_leaves_every_history(machines: list[Machine]) -> None:
    """All its versions and the copies of conflicts, here, at the remote and elsewhere."""
    ada, bob, eve = machines
    memory = ada.remember("secret plan")
    settle(machines)
    append(ada.path(memory), "secret edit of ada")
    append(bob.path(memory), "secret edit of bob")
    settle(machines)
    plan = plan_forgetting(ada.base, [memory.file_name], [memory.id])
    assert (len(plan.paths), plan.versions) == (2, 4)
    # A killed gc has left its number, which another process has by now.
    (ada.repository / "gc.pid").write_text(f"{os.getpid()} {platform.node()}")
    forget(ada, memory)
    assert gone(ada, "secret")
    settle([bob, eve])
    assert all(gone(machine, "secret") for machine in machines)
    remote = Path(ada.settings.remote)
    git(remote, "gc", "--quiet", "--prune=now")
    assert "secret" not in objects(remote)
    assert ada.files == bob.files == eve.files == content_of(remote)
    assert len(ada.files) == 3


def test_computer_that_was_away_follows_and_brings_its_own(machines: list[Machine]) -> None:
    """Its unsent memories are kept, and it does not bring the forgotten one back."""
    ada, bob, eve = machines
    memory = ada.remember("secret plan")
    settle(machines)
    forget(ada, memory)
    for number in range(3):
        ada.remember(f"while away {number}")
        ada.synced()
    mine = eve.remember("from the journey")
    eve.sync(local=True)
    append(eve.path(memory), "edited on the journey")
    eve.sync(local=True)
    settle([eve, ada, bob])
    assert mine.file_name in ada.files
    for machine in machines:
        assert gone(machine, "secret plan")
        assert memory.file_name not in machine.files


def test_two_computers_may_forget_at_once(machines: list[Machine]) -> None:
    """Neither undoes what the other does."""
    ada, bob, eve = machines
    first, second = ada.remember("first secret"), bob.remember("second secret")
    settle(machines)
    bob.purge_sums = bob.sums(second.file_name)
    bob.sync(local=True)
    forget(ada, first)
    settle([bob, ada, eve])
    assert all(gone(machine, "secret") for machine in machines)
    assert ada.files == bob.files == eve.files


def test_failed_push_is_made_up_for(machines: list[Machine], tmp_path: Path) -> None:
    """Forgetting that was begun goes on with the next cycle that reaches the remote."""
    ada, bob, _ = machines
    memory = ada.remember("secret plan")
    settle(machines)
    remote = Path(ada.settings.remote)
    away = remote.rename(tmp_path / "away")
    ada.purge_sums = ada.sums(memory.file_name)
    assert ada.sync().problem
    assert memory.file_name not in ada.files
    away.rename(remote)
    ada.restart()
    settle([ada, bob])
    assert gone(ada, "secret")
    assert gone(bob, "secret")


def test_protected_branch_is_reported(machines: list[Machine]) -> None:
    """Force pushes must be allowed for once."""
    ada = machines[0]
    memory = ada.remember("secret plan")
    ada.synced()
    git(Path(ada.settings.remote), "config", "receive.denyNonFastForwards", "true")
    ada.purge_sums = ada.sums(memory.file_name)
    problem = ada.sync().problem
    assert problem
    assert problem.kind == "protected-branch"
    git(Path(ada.settings.remote), "config", "receive.denyNonFastForwards", "false")
    ada.synced()
    assert gone(ada, "secret")


def test_only_memory_can_be_forgotten(tmp_path: Path) -> None:
    """The history is empty then, but for the list; without a remote, too."""
    for address in ("", str(bare(tmp_path / "remote"))):
        machine = Machine(tmp_path / f"base{len(address)}", address)
        memory = machine.remember("secret plan")
        machine.synced()
        forget(machine, memory)
        assert gone(machine, "secret")
        assert {*machine.messages()} == {"Forget memories everywhere"}
        machine.remember("another")
        machine.synced()
        assert len(machine.files) == 1


def test_it_works_over_http(tmp_path: Path) -> None:
    """Each step: store, edit, forget, forget everywhere."""
    bare(tmp_path / "remote")
    git(tmp_path / "remote", "config", "http.receivepack", "true")
    with git_server(Terms(tmp_path)) as address:
        ada, bob = (Machine(tmp_path / name, f"{address}/remote") for name in ("ada", "bob"))
        memory, other = ada.remember("secret plan"), ada.remember("kept")
        settle([ada, bob])
        append(bob.path(other), "edited")
        settle([bob, ada])
        forget(ada, memory)
        settle([bob, ada])
        assert gone(bob, "secret")
        assert ada.files == bob.files
