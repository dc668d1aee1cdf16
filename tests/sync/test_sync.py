"""What two computers with one remote do: commit, exchange, merge, report."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from aiaml_server import files
from aiaml_server import sync as sync_module
from aiaml_server.git import Git, GitFailed
from aiaml_server.settings import Settings
from aiaml_server.sync import (
    Counts,
    Problem,
    Status,
    Syncer,
    history,
    last_sync,
    sync_once,
    worktree,
)
from aiaml_server.sync.cycle import current_status
from aiaml_server.sync.history import History
from aiaml_server.sync.merge import copy_of, merge_trees
from machine import Machine, append, bare, content_of, git, settle
from waiting import wait_until


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Return an empty remote."""
    return bare(tmp_path / "remote")


@pytest.fixture
def pair(tmp_path: Path, remote: Path) -> tuple[Machine, Machine]:
    """Return two computers that share the remote."""
    return Machine(tmp_path / "ada", remote), Machine(tmp_path / "bob", remote)


def test_each_memory_is_a_commit_on_main_with_the_specified_message(
    pair: tuple[Machine, Machine], remote: Path
) -> None:
    """Add, edit and delete are one commit each, of the path files/FILE, pushed to main."""
    ada, _ = pair
    first, second = ada.remember("one"), ada.remember("two")
    ada.synced()
    append(ada.path(first), "more")
    ada.path(second).unlink()
    ada.remember("three")
    ada.synced()
    messages = git(remote, "log", "--format=%s", "main").splitlines()
    assert messages[0] == f"Forget memory {second.id} ({second.file_name})"
    assert messages[1] == f"Update memory {first.id} ({first.file_name})"
    assert {*messages[3:]} == {
        f"Add memory {each.id} ({each.file_name})" for each in (first, second)
    }
    assert content_of(remote) == ada.files


def test_many_memories_that_git_first_sees_are_one_import(tmp_path: Path) -> None:
    """A directory that is taken over is one commit that lists the ids; later ones have one each."""
    machine = Machine(tmp_path / "base")
    memories = [machine.remember(f"old {number}") for number in range(25)]
    machine.synced()
    assert machine.messages() == ["Import 25 memories"]
    body = git(machine.repository, "log", "-1", "--format=%b")
    assert {*body.split()} == {memory.id for memory in memories}
    for number in range(25):
        machine.remember(f"new {number}")
    machine.synced()
    assert len(machine.messages()) == 26


def test_two_computers_converge_in_two_cycles(pair: tuple[Machine, Machine]) -> None:
    """Fifty memories each, stored offline, are everywhere after two cycles of each."""
    for machine in pair:
        for number in range(50):
            machine.remember(f"{machine.base.name} {number}")
    for machine in (*pair, *pair):
        machine.synced()
    assert pair[0].files == pair[1].files
    assert len(pair[0].files) == 100


def test_both_versions_of_an_edit_are_kept_and_reported(pair: tuple[Machine, Machine]) -> None:
    """The conflict is open, with both ids, until one of the two is edited or forgotten."""
    ada, bob = pair
    memory = ada.remember("tea")
    settle([ada, bob])
    append(ada.path(memory), "green")
    append(bob.path(memory), "black")
    settle([ada, bob])
    assert ada.files == bob.files
    texts = [data.decode() for data in ada.files.values()]
    assert ["green" in text for text in texts].count(True) == 1
    assert ["black" in text for text in texts].count(True) == 1
    assert not any("<<<<" in text for text in texts)
    copy = next(name for name in ada.files if memory.id not in name)[-11:-3]
    for machine in pair:
        assert machine.sync().conflicts == [(memory.id, copy)]
        assert f"id: {copy}" in machine.files[f"{memory.file_name[:-11]}{copy}.md"].decode()
    assert f"Conflict: {memory.id} {copy}" in git(ada.repository, "log", "--format=%b", "main")
    ada.bank.forget({memory.file_name: ada.bank.text(memory.file_name)})
    settle([ada, bob])
    assert ada.sync().conflicts == bob.sync().conflicts == []


def test_edit_wins_over_deletion(pair: tuple[Machine, Machine]) -> None:
    """Whichever came first."""
    ada, bob = pair
    for deleting, editing in (pair, pair[::-1]):
        memory = ada.remember("kept")
        settle([ada, bob])
        deleting.path(memory).unlink()
        append(editing.path(memory), "edited")
        settle([ada, bob])
        assert b"edited" in ada.files[memory.file_name]
        assert ada.files == bob.files


def test_deletion_reaches_the_other_computer_and_is_counted(pair: tuple[Machine, Machine]) -> None:
    """A cycle counts what it did, deletions as deletions."""
    ada, bob = pair
    memory = ada.remember("gone")
    ada.remember("stays")
    settle([ada, bob])
    assert (ada.cycle.counts.saved, bob.cycle.counts.received) == (2, 2)
    ada.path(memory).unlink()
    ada.synced()
    bob.synced()
    assert memory.file_name not in bob.files
    assert (ada.cycle.counts.deleted, bob.cycle.counts.deleted_elsewhere) == (1, 1)


@pytest.mark.parametrize("count", [3, pytest.param(400, marks=pytest.mark.slow)])
def test_edit_saved_while_files_arrive_is_kept(
    count: int, pair: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that somebody saves during the write-back is neither overwritten nor lost."""
    ada, bob = pair
    memories = [ada.remember(f"memory {number}") for number in range(count)]
    settle([ada, bob])
    for memory in memories:
        append(ada.path(memory), "from ada")
    ada.synced()
    last = max(memories, key=lambda memory: memory.file_name)
    rename = files.rename_over
    calls = iter(range(10_000))

    def save_meanwhile(source: Path, target: Path) -> None:
        rename(source, target)
        if next(calls) == count // 4:
            append(bob.path(last), "saved meanwhile")

    monkeypatch.setattr(worktree, "rename_over", save_meanwhile)
    bob.synced()
    settle([ada, bob])
    assert ada.files == bob.files
    assert len(ada.files) == count + 1
    assert any(b"saved meanwhile" in data for data in ada.files.values())
    assert sum(b"from ada" in data for data in ada.files.values()) == count


def test_unrelated_histories_are_joined(pair: tuple[Machine, Machine]) -> None:
    """Two computers that committed before they had a remote."""
    for machine in pair:
        machine.remember(machine.base.name)
        machine.sync(local=True)
    settle([*pair])
    assert pair[0].files == pair[1].files
    assert len(pair[0].files) == 2


def test_merge_of_trees() -> None:
    """The rule in one table: base, ours, theirs, result, whether both versions are kept."""
    for base, ours, theirs, result, is_conflict in (
        ("a", "a", "b", "b", False),
        ("a", "b", "a", "b", False),
        ("a", "b", "b", "b", False),
        ("a", "a", "", "", False),
        ("a", "", "a", "", False),
        ("a", "", "b", "b", False),
        ("a", "b", "", "b", False),
        ("a", "b", "c", "c", True),
        ("a", "c", "b", "c", True),
        ("", "a", "b", "b", True),
        ("", "a", "", "a", False),
        ("", "", "a", "a", False),
    ):
        trees = [{"files/x.md": name} if name else {} for name in (base, ours, theirs)]
        merged = merge_trees(*trees)
        after = merged.changes.get("files/x.md", ours)
        assert (after or "", bool(merged.conflicts)) == (result, is_conflict), (base, ours, theirs)


def test_copy_has_an_id_of_its_own_that_is_the_same_everywhere() -> None:
    """It is no number in any notation, and the rest of the text is untouched."""
    data = b"---\nid: 1b2c3d4e\ntimestamp: x\n---\n\nid: in the text\n"
    path, text = copy_of("files/20260101_000000_1b2c3d4e.md", "a" * 40, data)
    memory_id = path[-11:-3]
    assert path == f"files/20260101_000000_{memory_id}.md"
    assert text == data.replace(b"id: 1b2c3d4e", f"id: {memory_id}".encode(), 1)
    assert {*memory_id} & {*"acdf"}
    assert copy_of("files/20260101_000000_1b2c3d4e.md", "a" * 40, data) == (path, text)


def test_interrupted_write_back_goes_on(pair: tuple[Machine, Machine]) -> None:
    """A commit that is ahead of the disk, as after a kill, is brought to the disk."""
    ada, bob = pair
    old = ada.remember("old")
    settle([ada, bob])
    append(ada.path(old), "edited")
    new = ada.remember("new")
    ada.synced()
    git(bob.repository, "fetch", "--quiet", str(bob.settings.remote), "+main:main")
    bob.restart()
    bob.synced()
    assert bob.files == ada.files
    assert new.file_name in bob.files


def test_own_commit_of_a_killed_cycle_is_no_conflict(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the record does not have it, the next edit simply follows it."""
    machine = Machine(tmp_path / "base", remote)
    memory = machine.remember("one")
    machine.synced()
    append(machine.path(memory), "two")
    with monkeypatch.context() as patch:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(last_sync.LastSync, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            machine.sync()
    machine.restart()
    append(machine.path(memory), "three")
    machine.synced()
    assert {*machine.files} == {memory.file_name}
    assert content_of(remote) == machine.files


def test_locks_and_leftovers_of_a_killed_git_are_removed_at_once(
    pair: tuple[Machine, Machine],
) -> None:
    """Only a holder of our lock can have made them."""
    ada, _ = pair
    ada.remember("one")
    ada.synced()
    for name in (
        "refs/heads/main.lock",
        "refs/aiaml/fetched.lock",
        "packed-refs.lock",
        "HEAD.lock",
        "objects/pack/tmp_pack_1b2c3d",
        "objects/pack/pack-1b2c3d.keep",
    ):
        (ada.repository / name).touch()
    ada.remember("two")
    ada.synced()
    assert not list(ada.repository.rglob("*1b2c3d*"))
    assert len(content_of(Path(ada.settings.remote))) == 2


@pytest.mark.parametrize("damaged", ["objects/pack/*", "refs/heads/main"])
def test_damaged_repository_is_made_anew(damaged: str, pair: tuple[Machine, Machine]) -> None:
    """As after a power cut; the files and the remote have everything, and the old one is kept."""
    ada, bob = pair
    ada.remember("one")
    settle([ada, bob])
    for path in ada.repository.glob(damaged):
        path.chmod(0o600)
        path.write_bytes(b"")
    memory = ada.remember("two")
    ada.restart()
    ada.synced()
    bob.synced()
    assert memory.file_name in bob.files
    assert ada.files == bob.files
    assert list(ada.base.glob(".git.damaged-*"))


def test_damaged_pack_of_which_no_ref_knows_is_noticed(pair: tuple[Machine, Machine]) -> None:
    """The power failed after a fetch wrote it, and before a ref named what it holds."""
    ada, bob = pair
    ada.remember("one")
    settle([ada, bob])
    directory = ada.repository / "refs"
    refs = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    packs = {*ada.repository.glob("objects/pack/*.pack")}
    memory = bob.remember("two")
    settle([bob, ada])
    for path in {*ada.repository.glob("objects/pack/*.pack")} - packs:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    for path, text in refs.items():
        path.write_bytes(text)
    ada.restart()
    ada.synced()
    assert memory.file_name in ada.files
    assert ada.files == bob.files


@pytest.mark.parametrize("is_running", [True, False])
def test_stopped_git_is_no_damage(
    is_running: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a server closes during a long cycle: a git that was killed, or not started."""
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    machine.synced()
    machine.remember("two")
    run = Git.run

    def stop(self: Git, command: str, *words: str, **options: object) -> bytes:
        if command == "fast-import":
            machine.cycle.stop()
            if is_running:
                raise GitFailed(command, "", -9)
        return run(self, command, *words, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Git, "run", stop)
        assert machine.sync().problem
    machine.synced()
    assert not list(machine.base.glob(".git.damaged-*"))
    assert len(machine.messages()) == 2


def test_idle_server_runs_at_most_two_git_commands_and_none_without_a_remote(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing changed, here or there."""
    monkeypatch.setattr(last_sync, "RACY_NS", -1)
    commands: list[str] = []
    run = Git.run

    def record(self: Git, command: str, *words: str, **options: object) -> bytes:
        commands.append(command)
        return run(self, command, *words, **options)  # type: ignore[arg-type]

    for name, address, expected in (("with", str(remote), ["fetch"]), ("without", "", [])):
        machine = Machine(tmp_path / name, address)
        machine.remember("quiet")
        machine.synced()
        machine.synced()
        with monkeypatch.context() as patch:
            patch.setattr(Git, "run", record)
            commands.clear()
            machine.synced()
            assert commands == expected
            machine.remember("busy")
            machine.synced()
            assert len(commands) > 3


def test_idle_servers_share_one_look_at_the_remote(tmp_path: Path, remote: Path) -> None:
    """A server does not fetch if another one has just done so."""
    machine = Machine(tmp_path / "base", remote)
    machine.remember("one")
    before = machine.synced()
    other = Machine(tmp_path / "other", remote)
    other.remember("two")
    other.synced()
    status = machine.cycle.run(fetch_interval=3600)
    assert len(machine.files) in (1, 2)  # a cycle that is not idle yet may fetch
    assert status.problem is None
    assert before.last_fetch


def test_thread_commits_soon_and_at_the_end(tmp_path: Path, remote: Path) -> None:
    """A server's thread is woken by a change; closing it commits what is new."""
    machine = Machine(tmp_path / "base", remote)
    syncer = Syncer(machine.settings)
    syncer.start()
    machine.remember("one")
    syncer.wake()
    wait_until(lambda: git(remote, "branch", "--list", "main") and len(content_of(remote)) == 1)
    machine.remember("two")
    syncer.wake()
    syncer.close()
    assert len(machine.messages("main")) in (1, 2)  # else the next start finds it
    other = Machine(tmp_path / "other", remote)
    other.remember("three")
    other.synced()
    syncer = Syncer(machine.settings)
    syncer.start()
    wait_until(lambda: len(machine.files) == 3)
    syncer.close()


def test_pauses_grow_while_sync_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is twice as long as the one before, up to ten minutes."""
    pauses: list[float | None] = []
    done = threading.Event()

    class Hurried(threading.Event):
        """Notes how long it was to wait, and waits for nothing."""

        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            return False

    class Failing:
        """A cycle that fails; the sixth is the last."""

        def __init__(self, _settings: Settings, closing: threading.Event) -> None:
            self.counts = Counts()
            self._closing = closing
            self._left = 6

        def run(self, **_: object) -> Status:
            self._left -= 1
            if not self._left:
                self._closing.set()
                done.set()
            return Status(problem=Problem("offline", "The remote is away", "Wait."))

    stand_in = SimpleNamespace(Event=Hurried, Thread=threading.Thread)
    monkeypatch.setattr(sync_module, "threading", stand_in)
    monkeypatch.setattr("aiaml_server.sync.cycle.Cycle", Failing)
    syncer = Syncer(Settings(tmp_path, sync=True, sync_interval=60.0))
    syncer.start()
    assert done.wait(60)
    syncer.close()
    assert pauses[1:] == [120.0, 240.0, 480.0, 600.0, 600.0]


def test_sync_that_is_off_does_nothing(tmp_path: Path) -> None:
    """No repository, no status."""
    machine = Machine(tmp_path / "base", sync=False)
    machine.remember("plain")
    status, counts = sync_once(machine.settings)
    assert (status.last_commit, counts.saved) == (None, 0)
    assert not machine.repository.exists()
    assert current_status(machine.settings) == Status()


def test_current_status_counts_what_waits(pair: tuple[Machine, Machine], remote: Path) -> None:
    """Uncommitted changes, and memories that the remote lacks, by content."""
    ada, _ = pair
    ada.remember("sent")
    ada.synced()
    away = remote.rename(remote.with_name("away"))
    ada.remember("not sent")
    assert ada.sync().problem
    ada.remember("committed alone")
    ada.sync(local=True)
    ada.remember("not committed")
    status = current_status(ada.settings)
    assert (status.uncommitted, status.unsent) == (1, 2)
    assert status.problem
    assert status.problem.kind == "no-repository"
    away.rename(remote)
    ada.synced()
    assert current_status(ada.settings).unsent == 0
    assert json.loads((ada.base / ".sync-status.json").read_text())["problem"] is None


def test_status_says_what_a_server_could_not_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes no status, and who waits for a lock writes none."""
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
        problem = current_status(machine.settings).problem
        assert problem
        assert problem.kind == "disk-full"
    with files.hold_lock(machine.base / ".sync.lock", 0):
        problem = current_status(machine.settings).problem
        assert problem
        assert problem.kind == "locked"
    machine.synced()
    with files.hold_lock(machine.base / ".sync.lock", 0):
        assert current_status(machine.settings).problem is None


def test_history_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever needs the newest versions alone does not read the whole log."""
    machine = Machine(tmp_path / "base")
    for number in range(5):
        machine.remember(f"memory {number}")
        machine.synced()
    whole = [*History(machine.base).versions()]
    commands: list[str] = []
    run = Git.run

    def record(self: Git, command: str, *words: str, **options: object) -> bytes:
        commands.append(command)
        return run(self, command, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "run", record)
    monkeypatch.setattr(history, "COMMITS_AT_ONCE", 2)
    assert next(History(machine.base).versions()) == whole[0]
    assert commands.count("log") == 1
    assert [*History(machine.base).versions()] == whole
    assert commands.count("log") == 4


def test_git_of_the_person_works_in_the_repository(tmp_path: Path) -> None:
    """Log and clone work; what needs a work tree is refused by git itself."""
    machine = Machine(tmp_path / "base")
    machine.remember("one")
    machine.synced()
    assert "Add memory" in git(machine.base, "log", "--format=%s")
    git(machine.base, "clone", "--quiet", str(machine.base), str(tmp_path / "clone"))
    assert [*(tmp_path / "clone" / "files").iterdir()]
    for words in (["status"], ["add", "-A"], ["checkout", "main"], ["stash"], ["clean", "-fd"]):
        done = subprocess.run(["git", *words], cwd=machine.base, capture_output=True, text=True)  # noqa: PLW1510
        assert done.returncode != 0
        assert "work tree" in done.stderr
