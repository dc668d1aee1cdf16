"""What is not committed, and what never leaves: secrets, and what the person keeps here."""

from __future__ import annotations

from pathlib import Path

import pytest

from aiaml_server.sync.skip import release_secret
from aiaml_server.sync.status import SyncError
from machine import TOKEN, Machine, append, bare, content_of, git, settle


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Return an empty remote."""
    return bare(tmp_path / "remote")


def everything_in(repository: Path) -> str:
    """Return the content of all objects in a repository."""
    return git(repository, "cat-file", "--batch-all-objects", "--batch")


def test_secret_stays_until_it_is_released_or_taken_out(tmp_path: Path, remote: Path) -> None:
    """The status names it; everything else goes on; an edit without it travels."""
    machine = Machine(tmp_path / "base", remote)
    first, second = machine.remember(f"key {TOKEN}"), machine.remember(f"other {TOKEN}")
    plain = machine.remember("plain")
    status = machine.synced()
    assert {*status.skipped} == {first.file_name, second.file_name}
    assert status.skipped[first.file_name].kind == "secret"
    assert f"`aiaml edit {first.id}`" in status.skipped[first.file_name].remedy
    machine.path(first).rename(machine.base / "files" / "key.md")
    assert f"`aiaml edit {first.id}`" in machine.synced().skipped["key.md"].remedy
    (machine.base / "files" / "key.md").rename(machine.path(first))
    assert {*content_of(remote)} == {plain.file_name}
    assert TOKEN not in everything_in(machine.repository)
    release_secret(machine.base, [first.file_name])
    path = machine.path(second)
    path.write_text(path.read_text().replace(TOKEN, "none"))
    assert machine.synced().skipped == {}
    assert len(content_of(remote)) == 3


def test_check_can_be_switched_off(tmp_path: Path, remote: Path) -> None:
    """By AIAML_CHECK_SECRETS; on again, it holds back what was not sent yet."""
    machine = Machine(tmp_path / "base", check_secrets=False)
    memory = machine.remember(f"key {TOKEN}")
    machine.remember("plain")
    machine.synced()
    assert TOKEN in everything_in(machine.repository)
    careful = Machine(tmp_path / "base", remote)
    status = careful.synced()
    assert {*status.skipped} == {memory.file_name}
    assert len(content_of(remote)) == 1
    assert TOKEN not in everything_in(remote)
    assert memory.file_name in careful.files


def test_edit_with_a_secret_stays_while_other_versions_travel(tmp_path: Path, remote: Path) -> None:
    """The file here keeps its text; the history has the version of the other computer."""
    ada, bob = (Machine(tmp_path / name, remote) for name in ("ada", "bob"))
    memory = ada.remember("tea")
    settle([ada, bob])
    append(ada.path(memory), TOKEN)
    append(bob.path(memory), "green")
    bob.synced()
    assert memory.file_name in ada.synced().skipped
    assert TOKEN in ada.path(memory).read_text()
    assert b"green" in content_of(remote)[memory.file_name]
    path = ada.path(memory)
    path.write_text(path.read_text().replace(TOKEN, "black"))
    settle([ada, bob])
    assert ada.files == bob.files
    assert any(b"green" in data for data in ada.files.values())
    assert any(b"black" in data for data in ada.files.values())


@pytest.mark.parametrize("is_known", [True, False])
def test_kept_local_memory_is_not_sent_even_if_it_was_committed(
    tmp_path: Path, remote: Path, is_known: bool
) -> None:
    """Lines of .keep-local have the syntax of gitignore; without the line it travels."""
    machine = Machine(tmp_path / "base")
    kept, plain = machine.remember("private"), machine.remember("plain")
    if is_known:
        machine.synced()
    (machine.base / ".keep-local").write_text(f"# mine\n/files/*{kept.id}.md\n")
    connected = Machine(tmp_path / "base", remote)
    status = connected.synced()
    assert status.kept_local == [kept.file_name]
    assert status.needs_attention == {}
    assert {*content_of(remote)} == {plain.file_name}
    assert "private" not in everything_in(remote)
    assert (status.unsent, kept.file_name in connected.files) == (0, True)
    append(connected.path(kept), "edited")
    connected.synced()
    assert {*content_of(remote)} == {plain.file_name}
    (machine.base / ".keep-local").unlink()
    connected.synced()
    assert b"edited" in content_of(remote)[kept.file_name]


def test_memory_that_was_sent_and_is_kept_local_later_stays_as_it_was(
    tmp_path: Path, remote: Path
) -> None:
    """Later versions are not sent; nothing is deleted anywhere."""
    ada, bob = (Machine(tmp_path / name, remote) for name in ("ada", "bob"))
    memory = ada.remember("known")
    settle([ada, bob])
    (ada.base / ".keep-local").write_text("*\n")
    append(ada.path(memory), "not for others")
    ada.remember("nor this")
    settle([ada, bob])
    assert b"not for others" in ada.files[memory.file_name]
    assert {*bob.files} == {memory.file_name}
    assert b"not for others" not in bob.files[memory.file_name]


def test_exclusions_that_cannot_be_read_stop_everything(tmp_path: Path, remote: Path) -> None:
    """They may name memories that must not leave."""
    machine = Machine(tmp_path / "base", remote)
    machine.remember("private")
    (machine.base / ".keep-local").mkdir()
    problem = machine.sync().problem
    assert problem
    assert problem.kind == "unreadable"
    assert git(remote, "branch", "--list") == ""
    assert issubclass(SyncError, Exception)
