"""What is missing on disk is forgotten only if a person deleted it there."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aiaml_server.sync import commit, disk, once, worktree
from aiaml_server.sync.survey import survey
from loop_disk import loop_disk
from machine import Machine, content_of, git, settle

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

links = pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")


def aiaml(machine: Machine, *verb: str) -> subprocess.CompletedProcess[str]:
    """Run a verb at a machine."""
    return machine.aiaml(*verb, HOME=str(machine.base.parent))


def copied(source: Path, target: Path) -> None:
    """Copy a directory as a backup does, with times and modes."""
    shutil.copytree(source, target, symlinks=True)


# --- ways to have an incomplete disk ------------------------------------------------------------


def away(base: Path) -> None:
    """The directory is moved, or the disk that holds it is not mounted."""
    (base / "files").rename(base.parent / "elsewhere")


def emptied(base: Path) -> None:
    """An empty directory stands there, as where a disk would be mounted."""
    away(base)
    (base / "files").mkdir()


def replaced(base: Path) -> None:
    """The directory is deleted and made anew, most likely under the same inode number."""
    shutil.rmtree(base / "files")
    (base / "files").mkdir()


def half_there(base: Path) -> None:
    """A copy that broke off stands in place of the directory."""
    files = sorted((base / "files").glob("*.md"))
    replaced(base)
    (base / "files" / files[0].name).write_bytes(git_blob(base, files[0].name))


def copied_in_part(base: Path) -> None:
    """The directory is a copy of what it was, with its hidden files, and some memories miss."""
    copied(base / "files", base.parent / "copy")
    shutil.rmtree(base / "files")
    for path in sorted((base.parent / "copy").glob("*.md"))[1:]:
        path.unlink()
    copied(base.parent / "copy", base / "files")


def linked(base: Path) -> None:
    """The directory is a link to another one, such as a folder of notes."""
    away(base)
    (base.parent / "vault").mkdir()
    (base / "files").symlink_to(base.parent / "vault")


def git_alone(base: Path) -> None:
    """Nothing but `.git` is carried to a new machine."""
    copied(base / ".git", base.parent / "git")
    shutil.rmtree(base)
    base.mkdir()
    (base.parent / "git").rename(base / ".git")


def cloned_without_files(base: Path) -> None:
    """A person clones the repository without a checkout."""
    url = base.parent / "remote"
    shutil.rmtree(base)
    git(base.parent, "clone", "--quiet", "--no-checkout", str(url), str(base))


def checkout_broke_off(base: Path) -> None:
    """A person's clone is interrupted when few files are there."""
    cloned_without_files(base)
    git(base, "reset", "--quiet")
    name = git(base, "ls-files", "files").splitlines()[0]
    git(base, "checkout", "--quiet", "--", name)


def record_lost(base: Path) -> None:
    """The record of what was seen is gone, and half of the files."""
    shutil.rmtree(base / ".git" / "aiaml")
    shutil.rmtree(base / ".index")
    for path in sorted((base / "files").glob("*.md"))[:3]:
        path.unlink()


def git_blob(base: Path, name: str) -> bytes:
    """Return what git has under a name."""
    return content_of(base)[name]


DISASTERS = [away, emptied, replaced, half_there, copied_in_part,
             pytest.param(linked, marks=links), git_alone, cloned_without_files,
             checkout_broke_off, record_lost]  # fmt: skip


@pytest.mark.gate_cases(10)
@pytest.mark.parametrize("who", ["ada", "bob"])
@pytest.mark.parametrize("disaster", DISASTERS)
def test_an_incomplete_disk_is_no_wish_to_forget(
    ada: Machine, bob: Machine, remote: Path, disaster: Callable[[Path], None], who: str
) -> None:
    """Whoever remembers next, here or elsewhere, no memory is lost anywhere, and all come back."""
    for number in range(8):
        ada.remember(f"number {number}")
    settle([ada, bob])
    before = dict(ada.files)
    disaster(ada.base)
    ada.restart()
    ada.sync()
    {"ada": ada, "bob": bob}[who].remember("one more")
    for machine in (ada, bob, ada, bob):
        machine.sync()
    if who == "bob" and disaster is away:  # nothing is done until there is `files`
        (ada.base / "files").mkdir()
    settle([ada, bob])
    assert len(before) == 8
    assert before.items() <= content_of(remote).items()
    assert ada.files == bob.files == content_of(remote)
    assert len(ada.files) == 9


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("disaster", [emptied, replaced, half_there, copied_in_part])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_disaster_in_the_middle_of_a_round_is_none_either(
    ada: Machine, bob: Machine, disaster: Callable[[Path], None], moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Just when the directory is about to be listed, or has been."""
    for number in range(8):
        ada.remember(f"number {number}")
    settle([ada, bob])
    before = dict(ada.files)
    listing, happens = disk.listing, [disaster]

    def while_it_happens(*words: Any) -> Any:
        if happens and moment == "before":
            happens.pop()(ada.base)
        found = listing(*words)
        if happens:
            happens.pop()(ada.base)
        return found

    monkeypatch.setattr(commit, "listing", while_it_happens)
    ada.sync()
    assert not happens
    settle([ada, bob])
    assert ada.files == bob.files == before


@pytest.mark.parametrize("disaster", [emptied, replaced])
def test_what_was_read_before_a_disaster_was_not_seen_after_it(
    ada: Machine, bob: Machine, disaster: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very first round: all files are read, and then the directory is another one."""
    for number in range(8):
        ada.remember(f"number {number}")
    before, reading, left = dict(ada.files), worktree.read, [disaster, *[None] * 7]

    def while_it_happens(path: Path) -> bytes | None:
        data = reading(path)
        if left and (happens := left.pop()):
            happens(ada.base)
        return data

    monkeypatch.setattr(disk, "read", while_it_happens)
    ada.sync()
    assert not left
    assert ada.files == {}
    settle([ada, bob])
    assert ada.files == bob.files == before


def test_bringing_back_that_is_interrupted_goes_on(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen in the old directory does not count for the new one meanwhile."""
    for number in range(8):
        ada.remember(f"number {number}")
    settle([ada, bob])
    replaced(ada.base)
    ada.remember("one more")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the power is gone")

    monkeypatch.setattr(worktree, "rename_over", fail)
    assert "the power is gone" in str(ada.sync().problem)
    monkeypatch.undo()
    ada.restart()
    settle([ada, bob])
    assert ada.files == bob.files
    assert len(ada.files) == 9


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize("disaster", DISASTERS)
def test_after_a_disaster_a_deletion_is_one_again(
    ada: Machine, bob: Machine, disaster: Callable[[Path], None]
) -> None:
    """What was brought back can be deleted as ever."""
    memories = [ada.remember(f"number {number}") for number in range(8)]
    settle([ada, bob])
    disaster(ada.base)
    (ada.base / "files").mkdir(exist_ok=True)
    ada.restart()
    settle([ada, bob])
    for memory in memories[:2]:
        ada.path(memory).unlink()
    settle([ada, bob])
    assert set(bob.files) == {memory.file_name for memory in memories[2:]}


def test_a_directory_that_is_missing_is_told_and_waited_for(ada: Machine, bob: Machine) -> None:
    """An unmounted disk: nothing is done without it, and nothing deleted when it is back."""
    memory = ada.remember("one")
    settle([ada, bob])
    away(ada.base)
    bob.remember("two")
    bob.synced()
    assert "files is missing" in str(ada.sync().problem)
    assert not (ada.base / "files").exists()
    (ada.base.parent / "elsewhere").rename(ada.base / "files")
    settle([ada, bob])
    assert memory.file_name in ada.files
    assert ada.files == bob.files
    assert len(ada.files) == 2


def test_what_was_deleted_while_nothing_ran_is_forgotten(ada: Machine, bob: Machine) -> None:
    """A person's deletion counts also when the directory was moved and is back."""
    memories = [ada.remember("one"), ada.remember("two")]
    settle([ada, bob])
    away(ada.base)
    ada.restart()
    (ada.base.parent / "elsewhere").rename(ada.base / "files")
    ada.path(memories[0]).unlink()
    settle([ada, bob])
    assert set(bob.files) == {memories[1].file_name}


@links
@pytest.mark.parametrize("moment", ["at the start", "later"])
def test_a_directory_that_is_a_link_is_as_good_as_any(
    ada: Machine, bob: Machine, moment: str
) -> None:
    """A folder of notes elsewhere: memories are committed, travel, arrive and are forgotten."""
    vault = ada.base.parent / "vault"
    vault.mkdir()
    if moment == "at the start":
        ada.base.mkdir()
    else:
        ada.remember("before")
        settle([ada, bob])
        for path in (ada.base / "files").iterdir():
            path.rename(vault / path.name)
        (ada.base / "files").rmdir()
    (ada.base / "files").symlink_to(vault)
    mine, other = ada.remember("mine"), ada.remember("other")
    theirs = bob.remember("theirs")
    settle([ada, bob])
    assert {mine.file_name, theirs.file_name, other.file_name} <= set(bob.files)
    assert ada.files == bob.files
    (vault / other.file_name).unlink()
    settle([ada, bob])
    assert other.file_name not in bob.files
    assert (ada.base / "files").is_symlink()


def test_an_edit_and_a_deletion_are_seen_without_the_index(ada: Machine, bob: Machine) -> None:
    """The files alone tell; there is no index."""
    kept, gone = ada.remember("kept"), ada.remember("gone")
    settle([ada, bob])
    assert not (ada.repository / "index").exists()
    ada.path(kept).write_bytes(ada.path(kept).read_bytes() + b"more\n")
    ada.path(gone).unlink()
    settle([ada, bob])
    assert b"more" in bob.files[kept.file_name]
    assert gone.file_name not in bob.files


def test_an_older_backup_takes_no_edit_back(ada: Machine, bob: Machine) -> None:
    """A directory restored as it was before: what is older than git has it is not news."""
    memory = ada.remember("first words")
    settle([ada, bob])
    copied(ada.base / "files", ada.base.parent / "backup")
    ada.path(memory).write_bytes(ada.path(memory).read_bytes() + b"second words\n")
    ada.remember("newer")
    settle([ada, bob])
    before = dict(ada.files)
    shutil.rmtree(ada.base / "files")
    copied(ada.base.parent / "backup", ada.base / "files")
    (ada.base / "files" / "20240101_000000_aaaaaaaa.md").write_text("written since")
    settle([ada, bob])
    assert before.items() <= bob.files.items()
    assert ada.files == bob.files
    assert len(ada.files) == 3


def test_a_disk_that_is_rolled_back_forgets_nothing(
    tmp_path: Path, ada: Machine, bob: Machine
) -> None:
    """Its own snapshot, so that the very directory is there as it was before."""
    with loop_disk(tmp_path, "ext4", 8) as volume:
        ada.base.mkdir()
        (ada.base / "files").symlink_to(volume.place / "files")
        (volume.place / "files").mkdir()
        ada.remember("one")
        settle([ada, bob])
        volume.unmount()
        snapshot = shutil.copy(volume.image, tmp_path / "snapshot")
        volume.mount()
        for number in range(5):
            ada.remember(f"later {number}")
        settle([ada, bob])
        before = dict(ada.files)
        volume.unmount()
        shutil.copy(snapshot, volume.image)
        volume.mount()
        assert len(ada.files) == 1
        ada.restart()
        settle([ada, bob])
        assert ada.files == bob.files == before
        assert len(before) == 6


# --- much at once -------------------------------------------------------------------------------


@pytest.fixture
def many(ada: Machine, bob: Machine) -> list[Path]:
    """Thirty memories of ada's that both machines have."""
    (ada.base / "files").mkdir(parents=True)
    paths = [ada.base / "files" / f"20240101_000000_{number:08x}.md" for number in range(30)]
    for path in paths:
        path.write_text(
            f"---\nid: {path.stem[-8:]}\ntimestamp: 2024-01-01T00:00:00+00:00\nagent: x\n"
            f"user: x\ntopics: [x]\n---\n\nmemory {path.stem}\n"
        )
    settle([ada, bob])
    return paths


def delete(paths: list[Path]) -> None:
    """Delete files as a person does."""
    for path in paths:
        path.unlink()


def test_a_deletion_of_much_is_held_until_a_person_speaks(
    ada: Machine, bob: Machine, many: list[Path]
) -> None:
    """Nothing of it is committed; all else goes on, and nothing comes back or is lost."""
    delete(many[:25])
    ada.remember("new here")
    bob.remember("new there")
    settle([ada, bob])
    ada.restart()
    settle([ada, bob])
    assert len(bob.files) == 32
    assert len(ada.files) == 7
    assert "25 of its 32" in ada.synced().held_back["files"].sentence
    status = once(ada.settings, missing="forget")
    assert status.kept_out == {}
    settle([ada, bob])
    assert ada.files == bob.files
    assert len(bob.files) == 7


def test_what_is_held_stays_so_whatever_comes(ada: Machine, bob: Machine, many: list[Path]) -> None:
    """Many new memories make the deletion a small part of all; that is no word of a person's."""
    delete(many[:21])
    settle([ada])
    for number in range(100):
        (ada.base / "files" / f"20240102_000000_{number:08x}.md").write_text(f"more {number}")
    settle([ada, bob, ada, bob])
    assert len(bob.files) == 130


def test_what_was_held_can_be_brought_back(ada: Machine, bob: Machine, many: list[Path]) -> None:
    """Every file is as it was, and nothing is held any more."""
    before = dict(ada.files)
    delete(many[:25])
    settle([ada, bob])
    assert len(ada.files) == 5
    once(ada.settings, missing="bring back")
    settle([ada, bob])
    assert ada.files == bob.files == before
    assert ada.synced().kept_out == {}


@pytest.mark.parametrize("number", [20, 21])
def test_few_deletions_need_no_word(
    ada: Machine, bob: Machine, many: list[Path], number: int
) -> None:
    """Up to twenty at once are what a person does in a file manager."""
    delete(many[:number])
    settle([ada, bob])
    assert len(bob.files) == (10 if number == 20 else 30)


def test_a_fifth_of_many_needs_no_word(ada: Machine, bob: Machine, many: list[Path]) -> None:
    """Twenty-one of a hundred and five are forgotten, and the next twenty-one of fewer held."""
    for number in range(75):
        name = f"20240102_000000_{number:08x}.md"
        (ada.base / "files" / name).write_text(f"more {number}")
    settle([ada, bob])
    delete(many[:21])
    settle([ada, bob])
    assert len(bob.files) == 84
    delete(sorted((ada.base / "files").glob("*.md"))[:21])
    settle([ada, bob])
    assert len(bob.files) == 84


def test_what_changes_elsewhere_meanwhile_arrives(
    ada: Machine, bob: Machine, many: list[Path]
) -> None:
    """Of what is held, one is edited and one forgotten on the other machine."""
    delete(many[:25])
    settle([ada])
    (bob.base / "files" / many[0].name).write_text("edited")
    (bob.base / "files" / many[1].name).unlink()
    settle([bob, ada])
    assert many[0].read_text() == "edited"
    assert not many[1].exists()
    assert len(ada.files) == 6
    assert len(bob.files) == 29
    once(ada.settings, missing="forget")
    settle([ada, bob])
    assert ada.files == bob.files
    assert len(ada.files) == 6


def test_what_our_own_verb_forgets_is_never_held(
    ada: Machine, bob: Machine, many: list[Path]
) -> None:
    """A person's word for all of them was enough."""
    ada.bank.forget({path.name: path.read_text() for path in many})
    settle([ada, bob])
    assert bob.files == {}
    assert not (ada.base / ".sync-forget").exists()


@pytest.mark.slow
def test_all_that_was_forgotten_comes_back_at_once(
    ada: Machine, bob: Machine, many: list[Path]
) -> None:
    """`restore --since` undoes the forgetting of many, also that of another machine."""
    before = dict(ada.files)
    long_ago = ada.git("log", "-1", "--format=%cI")
    delete(many[:12])
    (bob.base / "files" / many[20].name).unlink()
    settle([ada, bob, ada])
    assert len(ada.files) == len(bob.files) == 17
    assert aiaml(ada, "restore", many[0].stem[-8:], "--since", "1h").returncode == 2
    assert aiaml(ada, "restore").returncode == 2
    assert "no memory was forgotten" in aiaml(ada, "restore", "--since", "2999-01-01").stderr
    done = aiaml(ada, "restore", "--since", long_ago, "--yes")
    assert "Restored 13 memories" in done.stdout, done.stderr
    settle([ada, bob])
    assert ada.files == bob.files == before
    assert aiaml(ada, "restore", "--since", long_ago, "--yes").returncode == 1


def test_a_person_is_told_what_is_held_and_what_to_do(ada: Machine, many: list[Path]) -> None:
    """`status` and `doctor` name both ways out, and the verb takes them."""
    delete(many[:25])
    ada.synced()
    told = aiaml(ada, "status")
    assert told.returncode == 1
    assert "25 of its 30 memories are gone" in told.stdout
    assert "aiaml sync --bring-back" in told.stdout
    assert "aiaml sync --forget" in aiaml(ada, "doctor", "sync", "--offline").stdout
    assert aiaml(ada, "sync", "--forget", "--bring-back").returncode == 2
    done = aiaml(ada, "sync", "--bring-back")
    assert "25 memories brought back" in done.stdout
    assert done.stderr == ""  # it is told once
    assert len(ada.files) == 30
    assert aiaml(ada, "status").returncode == 0


# --- joins that are interrupted -----------------------------------------------------------------


def killed_while_joining(machine: Machine, files: int) -> None:
    """Have a process sync, and kill it when that many files have arrived."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(machine.base), machine.settings.remote, str(files)]
    ) as process:
        assert process.wait(60) == 9


KILLED = """
import os, sys, threading
from pathlib import Path
from aiaml_server import Settings
from aiaml_server.sync import rounds, worktree

rename_over, left = worktree.rename_over, int(sys.argv[3])

def take_few(source, target):
    global left
    if not left:
        os._exit(9)
    left -= 1
    rename_over(source, target)

worktree.rename_over = take_few
settings = Settings(Path(sys.argv[1]), remote=sys.argv[2])
rounds.Rounds(settings, threading.Event()).run()
"""


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("files", [0, 1, 15, 29])
def test_a_first_join_that_was_killed_brings_nothing_back(
    ada: Machine, bob: Machine, many: list[Path], tmp_path: Path, files: int
) -> None:
    """What arrived before the kill is not news: deletions and edits made meanwhile stand."""
    cy = Machine(tmp_path / "cy", ada.settings.remote)
    killed_while_joining(cy, files)
    assert len(cy.files) == files
    many[0].unlink()
    many[1].write_bytes(many[1].read_bytes() + b"edited\n")
    settle([ada, bob, cy, ada])
    assert ada.files == bob.files == cy.files
    assert len(cy.files) == 29
    assert b"edited" in cy.files[many[1].name]


@pytest.mark.parametrize("files", [10, 25])
def test_a_join_that_was_killed_is_finished_without_the_remote(
    ada: Machine, many: list[Path], remote: Path, tmp_path: Path, files: int
) -> None:
    """All memories are there at the next start, though nothing can be fetched; none is news."""
    cy = Machine(tmp_path / "cy", ada.settings.remote)
    killed_while_joining(cy, files)
    remote.rename(remote.with_name("away"))
    cy.sync()
    assert cy.files == ada.files
    assert len(many) == 30
    added = [[m for m in machine.messages() if m.startswith("Add")] for machine in (ada, cy)]
    assert added[0] == added[1]


def test_what_is_written_before_a_killed_join_is_finished_is_kept(
    ada: Machine, bob: Machine, many: list[Path], remote: Path
) -> None:
    """An edit here of a file that was about to change: both versions stand in the end."""
    for path in many[:3]:
        (bob.base / "files" / path.name).write_bytes(path.read_bytes() + b"by bob\n")
    bob.synced()
    killed_while_joining(ada, 1)
    for path in many[:3]:
        path.write_bytes(path.read_bytes() + b"by ada\n")
    many[5].unlink()
    away = remote.rename(remote.with_name("away"))
    ada.sync()
    away.rename(remote)
    settle([ada, bob, ada])
    assert ada.files == bob.files
    assert many[5].name not in bob.files
    texts = [data for data in bob.files.values() if b"by " in data]
    assert sum(b"by ada" in text for text in texts) == 3
    assert sum(b"by bob" in text for text in texts) >= 3


def test_a_join_that_is_finished_hides_nothing(ada: Machine, bob: Machine) -> None:
    """An edit that is taken back makes the file as it came, and is news all the same."""
    memory = ada.remember("the original")
    settle([ada, bob])
    original = bob.path(memory).read_bytes()
    for text in (original + b"more\n", original):
        bob.path(memory).write_bytes(text)
        settle([bob, ada])
        assert ada.files[memory.file_name] == text


# --- names --------------------------------------------------------------------------------------


@pytest.mark.gate_cases(2)
@pytest.mark.parametrize("length", [250, 251, 252, 254, 255, 256, 300])
def test_a_name_of_any_length_stops_nothing(
    ada: Machine, bob: Machine, remote: Path, length: int
) -> None:
    """A name that fits arrives; one that the disk refuses is told; all else goes on."""
    name = "x" * (length - 3) + ".md"
    put_at_the_remote(remote, {name: b"long", "20240101_000000_aaaaaaaa.md": b"short"})
    ada.remember("mine")
    status = ada.sync()
    assert status.problem is None
    assert (name in ada.files) == (length <= 255)
    assert ("files/" + name in status.held_back or "files/" + name in ada.sync().held_back) == (
        length > 255
    )
    assert "20240101_000000_aaaaaaaa.md" in ada.files
    bob.synced()
    assert len(bob.files) == len(ada.files)
    assert name in content_of(remote)


def put_at_the_remote(remote: Path, files: dict[str, bytes]) -> None:
    """Commit files there without a working tree."""
    lines = [b"commit refs/heads/main\ncommitter x <x> 1700000000 +0000\ndata 0\n"]
    for name, data in files.items():
        lines.append(b'M 100644 inline "files/%s"\ndata %d\n' % (name.encode(), len(data)))
        lines.append(data + b"\n")
    subprocess.run(["git", "fast-import", "--quiet"], cwd=remote, input=b"".join(lines), check=True)


@pytest.fixture
def folding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes `A` and `a` for one name; where it does not, what sync sees of it does."""
    (tmp_path / "case").touch()
    if (tmp_path / "CASE").exists():
        return

    def real(path: Path) -> Path:
        names = {each.name.casefold(): each.name for each in path.parent.iterdir()}
        return path.with_name(names.get(path.name.casefold(), path.name))

    read, state = worktree.read, worktree._state
    monkeypatch.setattr(worktree, "read", lambda path: read(real(path)))
    monkeypatch.setattr(worktree, "_state", lambda path: state(real(path)))


@pytest.mark.usefixtures("folding")
@pytest.mark.parametrize("same", [True, False])
def test_names_that_a_disk_takes_for_one_stop_nothing(
    remote: Path, tmp_path: Path, same: bool
) -> None:
    """The second is set aside and told; nothing of either is lost, and all else arrives."""
    names = {"A note.md": b"upper", "a note.md": b"upper" if same else b"lower"}
    put_at_the_remote(remote, {**names, "20240101_000000_aaaaaaaa.md": b"x"})
    machine = Machine(tmp_path / "disk", remote)
    machine.remember("mine")
    for _ in range(3):
        status = machine.sync()
        assert status.problem is None
        assert len(machine.files) == 3
        assert names.items() <= content_of(remote).items()
    for held in (status.held_back, survey(machine.settings).kept_out):
        assert any("differs in case" in why.sentence for why in held.values())
    (machine.base / "files" / "20240101_000000_aaaaaaaa.md").unlink()
    there = next(name for name in names if name in machine.files)
    away = next(name for name in names if name not in machine.files)
    git_remove(remote, away)
    machine.synced()
    assert there in machine.files
    assert content_of(remote).keys() == machine.files.keys()
    assert machine.synced().kept_out == {}


def git_remove(remote: Path, name: str) -> None:
    """Delete a file at the remote."""
    lines = (
        "commit refs/heads/main\ncommitter x <x> 1700000001 +0000\ndata 0\n"
        f'from refs/heads/main^0\nD "files/{name}"\n'
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=remote, input=lines.encode(), check=True)


def test_a_version_that_was_never_here_cannot_be_deleted_here(
    ada: Machine, bob: Machine, remote: Path
) -> None:
    """A person deletes a memory, and takes its edited version into the branch by git alone."""
    memory = ada.remember("first words")
    settle([ada, bob])
    bob.path(memory).write_bytes(bob.path(memory).read_bytes() + b"edited\n")
    bob.synced()
    ada.path(memory).unlink()
    ada.git("fetch", "--quiet", str(remote), "main")
    ada.git("update-ref", "refs/heads/main", "FETCH_HEAD")
    settle([ada, bob])
    assert b"edited" in ada.files[memory.file_name]
    assert ada.files == bob.files
