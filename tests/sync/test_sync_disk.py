"""What the disk does: files are emptied, lost, replaced, restored and half written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server import files
from aiaml_server.sync import worktree
from aiaml_server.sync.cycle import current_status
from machine import Machine, append, bare, content_of, git, settle


@pytest.fixture
def pair(tmp_path: Path) -> list[Machine]:
    """Return two computers that share a remote, with 30 memories."""
    remote = bare(tmp_path / "remote")
    machines = [Machine(tmp_path / name, remote) for name in ("ada", "bob")]
    for number in range(30):
        machines[0].remember(f"memory {number}")
    settle(machines)
    return machines


def delete_all(files: Path) -> None:
    """Delete every memory, but not the marker of the directory."""
    for path in files.glob("*.md"):
        path.unlink()


def empty(files: Path) -> None:
    """Delete the directory and make it anew."""
    shutil.rmtree(files)
    files.mkdir()


def halve(files: Path) -> None:
    """Put a copy that broke off in the place of the directory, with its marker."""
    whole = files.rename(files.with_name("whole"))
    files.mkdir()
    for path in [*sorted(whole.iterdir())[::2], whole / ".aiaml-directory"]:
        shutil.copy2(path, files)


def link_to_nothing(files: Path) -> None:
    """Let the directory be a link to an empty one elsewhere."""
    files.rename(files.with_name("moved"))
    files.with_name("elsewhere").mkdir()
    files.symlink_to(files.with_name("elsewhere"))


@pytest.mark.parametrize("disaster", [shutil.rmtree, delete_all, empty, halve, link_to_nothing])
def test_incomplete_disk_deletes_nothing(
    pair: list[Machine], disaster: Callable[[Path], None]
) -> None:
    """What is missing is restored, and forgotten nowhere."""
    ada, bob = pair
    before = dict(bob.files)
    disaster(bob.base / "files")
    bob.restart()
    settle([bob, ada])
    assert bob.files == ada.files == before


def test_lost_record_deletes_nothing(pair: list[Machine]) -> None:
    """Without the record nothing counts as deleted, and one cycle heals it."""
    ada, bob = pair
    (bob.repository / "aiaml" / "last-sync.json").unlink()
    missing = sorted((bob.base / "files").glob("*.md"))[:10]
    for path in missing:
        path.unlink()
    append(min((bob.base / "files").glob("*.md")), "edited")
    bob.restart()
    status = bob.synced()
    ada.synced()
    assert status.skipped == {}
    assert ada.files == bob.files
    assert len(ada.files) == 30
    assert bob.messages()[0].startswith("Update memory")


def test_many_deletions_wait_for_an_answer(pair: list[Machine]) -> None:
    """More than 20 and more than a fifth; everything else goes on meanwhile."""
    ada, bob = pair
    for answer, left in (("restore", 31), ("delete", 10)):
        for path in sorted((bob.base / "files").glob("2*.md"))[:22]:
            path.unlink()
        if answer == "restore":
            bob.remember("meanwhile")
        assert bob.synced().deletions_waiting == 22
        (bob.base / "files").joinpath("note.txt").write_text("of no interest")
        ada.synced()
        assert len(ada.files) == 31
        bob.restart()
        assert bob.synced().deletions_waiting == 22
        bob.on_deleted = answer
        assert bob.synced().deletions_waiting == 0
        bob.on_deleted = ""
        ada.synced()
        assert len(ada.files) == len(bob.files) == left - (answer == "delete")


def test_confirmed_deletions_do_not_wait(pair: list[Machine]) -> None:
    """What a command has deleted needs no second answer, even if it is everything."""
    ada, bob = pair
    bob.bank.forget({name: data.decode() for name, data in bob.files.items()})
    settle([bob, ada])
    assert ada.files == bob.files == {}


def test_few_deletions_are_deletions(pair: list[Machine]) -> None:
    """They reach the other computer."""
    ada, bob = pair
    for path in sorted((bob.base / "files").glob("*.md"))[:20]:
        path.unlink()
    settle([bob, ada])
    assert len(ada.files) == 10


def test_placeholders_of_cloud_programs_count_as_present(pair: list[Machine]) -> None:
    """Three files are evicted: nothing is forgotten, and the status names them."""
    ada, bob = pair
    names = sorted(bob.files)[:3]
    files = bob.base / "files"
    contents = {name: (files / name).read_bytes() for name in names}
    stubs = (f".{names[0]}.icloud", f"{names[1]}.nextcloud", f"{names[2]}.owncloud")
    for name, stub in zip(names, stubs, strict=True):
        (files / name).unlink()
        (files / stub).write_bytes(b"stub")
    status = bob.synced()
    ada.synced()
    assert status.placeholders == names
    assert current_status(bob.settings).uncommitted == 0
    assert len(ada.files) == 30
    for name, stub in zip(names, stubs, strict=True):
        assert not (files / name).exists()
        (files / stub).unlink()
        (files / name).write_bytes(contents[name])
    assert bob.synced().placeholders == []
    assert ada.files == bob.files


def test_what_cloud_programs_leave_in_the_repository_does_no_harm(pair: list[Machine]) -> None:
    """Copies of conflicts, of which git may complain, and files that a folder's view needs."""
    ada, bob = pair
    head = "refs/heads/main"
    for copy in (
        f"{head} 2", f"{head} (Ada conflicted copy 2026-11-01)", "HEAD 2", "config 2",
        f"{head}.sync-conflict-20261101-101010-ABCDEFG",
    ):  # fmt: skip
        original = copy.split(" ")[0].partition(".sync")[0]
        shutil.copy2(bob.repository / original, bob.repository / copy)
    bob.remember("after the copies")
    settle([bob, ada])
    texts = {f"{head} 3": "1" * 40, "refs/.DS_Store": "Bud1", "refs/heads/desktop.ini": "[x]"}
    for name, text in texts.items():
        (bob.repository / name).write_text(f"{text}\n")
    bob.remember("after the others")
    settle([bob, ada])
    assert ada.files == bob.files
    assert len(ada.files) == 32


def test_torn_file_is_restored_and_an_invalid_one_is_not_committed(pair: list[Machine]) -> None:
    """Only an empty or all-NUL file is restored; other damage is left and named."""
    ada, bob = pair
    first, second, third = sorted((bob.base / "files").glob("*.md"))[:3]
    good = first.read_bytes()
    for damage in (b"", b"\0" * len(good)):
        first.write_bytes(damage)
        bob.synced()
        assert first.read_bytes() == good
    second.write_bytes(b"no memory any more")
    (bob.base / "files" / "new.md").write_bytes(b"")
    third.unlink()
    third.mkdir()
    status = bob.synced()
    ada.synced()
    assert {*status.skipped} == {second.name, "new.md"}
    assert status.skipped[second.name].kind == "invalid"
    assert second.read_bytes() == b"no memory any more"
    assert ada.files[second.name] != b"no memory any more"


def test_old_backup_is_brought_up_to_date(pair: list[Machine]) -> None:
    """What the backup lacks or has in an older version comes from the history."""
    ada, bob = pair
    backup = bob.base.with_name("backup")
    shutil.copytree(bob.base / "files", backup)
    append(min((ada.base / "files").glob("*.md")), "newer")
    ada.remember("later")
    settle([ada, bob])
    shutil.rmtree(bob.base / "files")
    shutil.copytree(backup, bob.base / "files")
    bob.restart()
    settle([bob, ada])
    assert ada.files == bob.files
    assert len(ada.files) == 31
    assert any(b"newer" in data for data in ada.files.values())


def test_edit_and_its_undo_are_both_committed(pair: list[Machine]) -> None:
    """A person who restores an older text by hand is believed."""
    ada, bob = pair
    path = min((bob.base / "files").glob("*.md"))
    before = path.read_bytes()
    append(path, "worse")
    settle([bob, ada])
    path.write_bytes(before)
    settle([bob, ada])
    assert ada.files[path.name] == before


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
def test_what_is_no_regular_file_is_neither_followed_nor_committed(pair: list[Machine]) -> None:
    """Links, pipes and files above the size limit are named."""
    _, bob = pair
    files = bob.base / "files"
    outside = bob.base.with_name("outside.md")
    outside.write_text("private")
    (files / "link.md").symlink_to(outside)
    os.mkfifo(files / "pipe.md")
    with (files / "large.md").open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    status = bob.synced()
    assert {*status.skipped} == {"link.md", "pipe.md", "large.md"}
    assert "link.md" not in content_of(Path(bob.settings.remote))


def test_full_disk_loses_nothing_and_the_next_cycle_goes_on(
    pair: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each write of a cycle in turn."""
    ada, bob = pair
    write = files.write_temporary
    for number in range(6):
        for _ in range(5):
            ada.remember(f"round {number}")
        ada.synced()
        left = iter(range(number))

        def refuse(path: Path, data: bytes, left: object = left) -> Path:
            if next(left, None) is None:  # type: ignore[call-overload]
                raise OSError(28, "No space left on device")
            return write(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(worktree, "write_temporary", refuse)
            problem = bob.sync().problem
            assert problem is None or problem.kind == "disk-full"
        bob.synced()
        assert bob.files == ada.files


def test_repository_that_is_deleted_is_made_anew(pair: list[Machine]) -> None:
    """Under a running server."""
    ada, bob = pair
    shutil.rmtree(bob.repository)
    bob.remember("new")
    settle([bob, ada])
    assert ada.files == bob.files
    assert len(ada.files) == 31
    assert git(bob.repository, "fsck", "--no-dangling") == ""
