"""An acknowledged memory is on disk, whole; a refused one left nothing; the server goes on."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import strace
from aiaml_server.bank import MemoryBank
from aiaml_server.errors import StoreError
from aiaml_server.files import TEMPORARY_NAME
from aiaml_server.format.memory import parse
from aiaml_server.settings import Settings
from client import SERVER, Client, ask, bank_process
from disk import contents, leftovers, memories
from loop_disk import memory_disk

IS_ROOT = sys.platform != "win32" and os.geteuid() == 0
linux = pytest.mark.skipif(sys.platform != "linux", reason="the means to test it are Linux's")
posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")


def refusal(answer: Any) -> str:
    """Return the reason that `remember` gave in the specification's error shape."""
    assert set(answer) == {"memory_id", "message"}
    assert answer["memory_id"] == ""
    start, _, reason = answer["message"].partition(": ")
    assert start == "Error storing memory"
    return str(reason)


def assert_remembers(client: Client, base: Path) -> None:
    """Check that the server goes on: a memory is stored, found and recalled."""
    text = f"afterwards {random.getrandbits(64)}"
    stored = client.remember(text)
    assert stored["memory_id"], stored
    assert memories(base)[stored["memory_id"]].content == text
    assert [hit["id"] for hit in client.call("think", keywords=[text])] == [stored["memory_id"]]
    assert client.call("recall", memory_ids=[stored["memory_id"]])[0]["content"] == text
    assert leftovers(base) == []


def assert_refuses(client: Client, base: Path, cause: str) -> None:
    """Check that a memory is refused for `cause` and leaves nothing, and reading still answers."""
    before = contents(base)
    reason = refusal(client.remember("z" * 20_000))
    assert cause in reason
    assert str(base.parent) in reason
    assert contents(base) == before
    assert leftovers(base) == []
    assert_reading_answers(client)


def assert_reading_answers(client: Client) -> None:
    """Check that `think` and `recall` answer in their own shapes, be it with an error."""
    found = client.call("think", keywords=["nowhere"])
    assert found == [] or re.match("Search failed: .", found[0]["error"])
    recalled = client.call("recall", memory_ids=["0000000a"])
    missing = [{"id": "0000000a", "error": "Memory with ID 0000000a not found"}]
    assert recalled == missing or re.match("Recall failed: .", recalled[0]["error"])


# --- the order of the system calls --------------------------------------------------------------

TRACED = "openat,open,creat,write,writev,pwrite64,truncate,ftruncate,fsync,fdatasync,mkdir,mkdirat"
TRACED += ",rename,renameat,renameat2,link,linkat"


def named(calls: list[strace.Call], name: str, *texts: str) -> list[strace.Call]:
    """Return the calls whose name begins so and whose text contains all of `texts`."""
    return [
        call
        for call in calls
        if call.name.startswith(name) and all(text in call.text for text in texts)
    ]


@strace.needed
def test_remember_syncs_the_file_and_its_name_before_it_answers(tmp_path: Path) -> None:
    """Written aside, synced, renamed, directory synced, answered; and never touched again."""
    base, log = tmp_path / "base", tmp_path / "log"
    which = "trace=" + ",".join(f"?{name}" for name in TRACED.split(","))
    with Client(base, command=[*strace.following(log, "-e", which), *SERVER]) as client:
        sent = [client.start_remember(f"memory {number}") for number in range(8)]
        ids = [client.value(each)["memory_id"] for each in sent]
    calls = strace.calls(log)
    assert len(set(ids)) == 8
    for memory_id in ids:
        (path,) = base.glob(f"files/*_{memory_id}.md")
        assert_durable_order(calls, path, memory_id)


def assert_durable_order(calls: list[strace.Call], path: Path, memory_id: str) -> None:
    """Check all that was done about one memory."""
    (rename,) = named(calls, "rename", f'{path}"')
    source = re.findall(r'"([^"]+)"', rename.text)[0]
    assert Path(source).parent == path.parent
    written = named(calls, "write", f"<{source}>")
    synced = named(calls, "fsync", f"<{source}>")
    directory = named(calls, "fsync", f"<{path.parent}>)")
    (answer,) = named(calls, "write", f"successfully with ID: {memory_id}")
    assert written
    assert max(call.end for call in written) < synced[-1].begin
    assert synced[-1].end < rename.begin
    assert any(rename.end < call.begin and call.end < answer.begin for call in directory)
    touched = [call for call in calls if source in call.text or str(path) in call.text]
    assert {call.name for call in touched if call.begin > synced[-1].begin} == {rename.name}


@strace.needed
def test_remember_syncs_the_names_of_directories_that_it_creates(tmp_path: Path) -> None:
    """The first memory's directories are as durable as the memory is."""
    base, log = tmp_path / "new" / "base", tmp_path / "log"
    with bank_process() as bank, strace.attached(bank.pid, log, "-e", "trace=fsync,/^mkdir"):
        assert "id" in ask(bank, base, "first")
    calls = strace.calls(log)
    for directory in (tmp_path / "new", base, base / "files"):
        made = named(calls, "mkdir", f'"{directory}"', "= 0")
        assert any(
            made[0].end < call.begin for call in named(calls, "fsync", f"<{directory.parent}>)")
        )


# --- a fault in every system call ---------------------------------------------------------------


def calls_on_the_store(bank: subprocess.Popen[str], tmp_path: Path) -> list[tuple[str, int, bool]]:
    """Return (name, which of that name, whether it may fail) for what a `remember` calls.

    What is done to the lock may fail: a memory is stored without it.
    """
    base, log = tmp_path / "base-counted", tmp_path / "log-counted"
    assert "id" in ask(bank, tmp_path / "base-first", "what this imports, the others do not")
    with strace.attached(bank.pid, log, "-e", "trace=%file,%desc"):
        assert "id" in ask(bank, base, "counted")
    above, below = re.escape(str(tmp_path)), re.escape(str(base))
    touches = re.compile(f'(?:^|, )"(?:{above}"|{below})|<(?:{above}>|{below}[/>])')
    seen: dict[str, int] = {}
    found = []
    for call in strace.calls(log):
        seen[call.name] = seen.get(call.name, 0) + 1
        # A `read` has no number to rely on: the process waits in one when strace attaches.
        if call.name != "read" and touches.search(call.text):
            may_fail = "/.lock>" in call.text or not MUST_NOT_FAIL.fullmatch(call.name)
            found.append((call.name, seen[call.name], may_fail))
    assert {name for name, _, may_fail in found if not may_fail} > {"fsync", "write"}
    return found


MUST_NOT_FAIL = re.compile("mkdir.*|write|fsync|rename.*")


@strace.needed
@pytest.mark.parametrize("cause", ["EIO", "ENOSPC"])
def test_a_fault_in_any_system_call_leaves_a_whole_memory_or_none(
    tmp_path: Path, cause: str
) -> None:
    """Each call of a `remember` fails in turn: it is stored and said so, or neither."""
    with bank_process() as bank:
        for name, which, may_fail in calls_on_the_store(bank, tmp_path):
            base, log = tmp_path / f"base-{name}-{which}", tmp_path / f"log-{name}-{which}"
            fault = f"inject={name}:error={cause}:when={which}"
            with strace.attached(bank.pid, log, "-e", f"trace={name}", "-e", fault):
                answer = ask(bank, base, "the fault")
            assert "(INJECTED)" in log.read_text()
            place = f"{name} number {which}: {answer}"
            stored = ["the fault"] if "id" in answer else []
            assert contents(base) == stored, place
            assert leftovers(base) == [], place
            assert "error" in answer or may_fail, place
            assert "id" in ask(bank, base, "the next"), place
            assert contents(base) == sorted([*stored, "the next"]), place


@strace.needed
def test_a_failed_sync_is_answered_as_an_error_in_words(tmp_path: Path) -> None:
    """First the rename fails, then the directory's sync after it; the server goes on."""
    base, log = tmp_path / "base", tmp_path / "log"
    base.mkdir()
    (base / "files").mkdir()
    with Client(base, command=SERVER) as client:
        assert_remembers(client, base)  # makes the directories for state and caches
    # In the thread that serves: fsync of the first file, of the second, of its directory.
    faults = ("inject=/^rename:error=EIO:when=1", "inject=fsync:error=EIO:when=3")
    options = ("-e", "trace=fsync,/^rename", "-e", faults[0], "-e", faults[1])
    with Client(base, command=[*strace.following(log, *options), *SERVER]) as client:
        assert_refuses(client, base, "input/output error")
        assert_refuses(client, base, "input/output error")
        assert_remembers(client, base)
    assert log.read_text().count("(INJECTED)") >= 2


@strace.needed
def test_a_directory_whose_name_could_not_be_synced_is_made_again(tmp_path: Path) -> None:
    """The next memory does not rest on a directory that a power cut could take away."""
    base, log = tmp_path / "base", tmp_path / "log"
    fault = ("-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=1")
    with bank_process() as bank:
        with strace.attached(bank.pid, log, *fault):
            assert "error" in ask(bank, base, "first")
        with strace.attached(bank.pid, log, "-e", "trace=fsync"):
            assert "id" in ask(bank, base, "second")
    assert named(strace.calls(log), "fsync", f"<{tmp_path}>)")


@linux
def test_a_place_that_takes_no_directory_is_refused_in_words() -> None:
    """What the system calls missing, although all above it is there, is not tried for ever."""
    bank = MemoryBank(Settings(Path("/proc/aiaml/base")))
    with pytest.raises(StoreError, match="cannot create /proc/aiaml: no such file"):
        bank.remember("claude", "marco", ["tests"], "nowhere")


# --- killed -------------------------------------------------------------------------------------


def assert_whole(base: Path, acknowledged: set[str]) -> None:
    """Check that each acknowledged memory is there, and that nothing is torn."""
    found = memories(base)
    assert acknowledged <= set(found)
    assert all(memory.content.endswith(" end") for memory in found.values())
    assert all(TEMPORARY_NAME.fullmatch(path.name) for path in leftovers(base))


def test_a_kill_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Forty kills, some milliseconds into four threads' writing: no loss, nothing torn."""
    acknowledged: set[str] = set()
    kills = random.Random(7)
    for number in range(40):
        with bank_process(str(tmp_path), "4", "10000") as bank:
            assert bank.stdin
            assert bank.stdout
            bank.stdin.write("go\n")
            bank.stdin.flush()
            lines = [bank.stdout.readline()] if number % 2 else []  # or perhaps none in time
            time.sleep(kills.uniform(0.001, 0.030))
            bank.kill()
            lines += [line for line in bank.stdout if line.endswith("\n")]
        acknowledged |= {json.loads(line)["id"] for line in lines}
    assert acknowledged
    assert_whole(tmp_path, acknowledged)


@pytest.mark.parametrize("answers", [1, 20])
def test_a_killed_server_had_stored_what_it_answered(tmp_path: Path, answers: int) -> None:
    """A server with a hundred calls before it is killed after some answers."""
    with Client(tmp_path) as client:
        sent = [client.start_remember(f"{'x' * 5000} {number} end") for number in range(100)]
        ids = {client.value(each)["memory_id"] for each in sent[:answers]}
        for late in client.kill().values():
            ids.add(json.loads(late["result"]["content"][0]["text"])["memory_id"])
    assert_whole(tmp_path, ids)


@strace.needed
@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_temporary_file_is_never_a_memory(tmp_path: Path, call: str) -> None:
    """What a kill left is neither found nor recalled; a process an hour later removes it."""
    (tmp_path / "files").mkdir()
    with bank_process() as bank:
        kill = ("-e", f"inject=/^{call}:signal=KILL:when=1")
        with strace.attached(bank.pid, tmp_path / "log", "-e", f"trace=/^{call}", *kill):
            assert ask(bank, tmp_path, "half written") == {}
    (leftover,) = leftovers(tmp_path)
    bank_here = MemoryBank(Settings(tmp_path))
    memory_id = parse(leftover.read_text(encoding="utf-8")).id
    assert bank_here.think(["half"]) == []
    assert bank_here.recall([memory_id]) == {memory_id: []}
    bank_here.remember("claude", "marco", ["tests"], "while it is young")
    assert leftovers(tmp_path) == [leftover]
    an_hour_ago = time.time() - 3610
    os.utime(leftover, (an_hour_ago, an_hour_ago))
    MemoryBank(Settings(tmp_path)).remember("claude", "marco", ["tests"], "when it is old")
    assert leftovers(tmp_path) == []
    assert contents(tmp_path) == ["when it is old", "while it is young"]


# --- a disk that refuses ------------------------------------------------------------------------


@contextmanager
def limited(client: Client, name: str, soft: int) -> Iterator[None]:
    """Lower a limit of the running server, inside the `with`."""
    if sys.platform != "linux":
        pytest.skip("only Linux sets the limits of another process")
    import resource

    which = getattr(resource, name)
    before = resource.prlimit(client.process.pid, which)
    resource.prlimit(client.process.pid, which, (soft, before[1]))
    try:
        yield
    finally:
        resource.prlimit(client.process.pid, which, before)


def lowest_free_descriptor(client: Client) -> int:
    """Return the number that the server's next open file would have, once it has opened its own."""
    lowest = []
    for _ in range(20):  # a thread may just have one open, and close it
        used = {int(path.name) for path in Path(f"/proc/{client.process.pid}/fd").iterdir()}
        lowest.append(min(set(range(len(used) + 1)) - used))
        time.sleep(0.01)
    return min(lowest)


def test_a_file_that_may_not_grow_is_refused(tmp_path: Path) -> None:
    """The limit on file sizes stands for a full disk where nobody is root."""
    base = tmp_path / "base"
    with Client(base) as client:
        with limited(client, "RLIMIT_FSIZE", 4096):
            assert_refuses(client, base, "file too large")
        assert_remembers(client, base)
        with limited(client, "RLIMIT_FSIZE", 4096):
            assert_refuses(client, base, "file too large")
        assert_remembers(client, base)


@pytest.mark.slow
@linux
@pytest.mark.parametrize("exists", [False, True])
def test_too_few_descriptors_are_refused(tmp_path: Path, exists: bool) -> None:
    """With none or one to open, from the first call on; and with enough, all is well again."""
    base = tmp_path / "base"
    if exists:
        (base / "files").mkdir(parents=True)
    with Client(base) as client:
        assert client.call("think", keywords=["anything"]) == []  # the SDK is there
        for spare in (0, 1):
            with limited(client, "RLIMIT_NOFILE", lowest_free_descriptor(client) + spare):
                assert_refuses(client, base, "too many open files")
        assert_remembers(client, base)
        for spare in (0, 1):
            with limited(client, "RLIMIT_NOFILE", lowest_free_descriptor(client) + spare):
                assert_refuses(client, base, "too many open files")
        assert_remembers(client, base)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 128 KiB and 32 files, in memory."""
    with memory_disk(tmp_path / "disk", "size=128k,nr_inodes=32") as place:
        yield place


def test_a_full_disk_is_refused_until_there_is_room(small_disk: Path) -> None:
    """Neither bytes nor files to be had: refused, in these words, and then again stored."""
    base, filler = small_disk / "base", small_disk / "filler"
    with Client(base) as client:
        assert_remembers(client, base)
        with filler.open("wb", buffering=0) as stream, suppress(OSError):
            while stream.write(bytes(4096)):
                pass
        assert_refuses(client, base, "no space left on device")
        filler.unlink()
        assert_remembers(client, base)
        filler.mkdir()
        with suppress(OSError):
            for number in range(32):
                (filler / str(number)).touch()
        assert_refuses(client, base, "no space left on device")
        shutil.rmtree(filler)
        assert_remembers(client, base)


def test_a_read_only_disk_is_refused_until_it_is_writable(small_disk: Path) -> None:
    """Both with and without the directories; reading goes on meanwhile."""
    base = small_disk / "base"
    with Client(base) as client:
        for _ in range(2):
            subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
            assert_refuses(client, base, "read-only file system")
            assert "Stor" not in client.log()
            subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
            assert_remembers(client, base)


def without_privilege() -> list[str]:
    """Return the words that make root obey the modes of files."""
    if not IS_ROOT:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root is not bound by modes, and there is no setpriv to bind it")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@posix
def test_a_directory_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    """First the base without `files`, then `files`; permitted again, all is well."""
    base = tmp_path / "base"
    base.mkdir()
    with Client(base, command=[*without_privilege(), *SERVER]) as client:
        for directory in (base, base / "files"):
            directory.chmod(0o500)
            assert_refuses(client, base, "permission denied")
            directory.chmod(0o700)
            assert_remembers(client, base)


@pytest.mark.parametrize("where", ["base", "above", "files"])
def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path: Path, where: str) -> None:
    """The base, something above it, or `files`: said in words, and once it is gone, no more."""
    above = tmp_path / "above"
    base = above / "base"
    obstacle = {"base": base, "above": above, "files": base / "files"}[where]
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.write_text("not a directory")
    with Client(base) as client:
        assert_refuses(client, base, "not a directory")
        assert obstacle.read_text() == "not a directory"
        obstacle.unlink()
        assert_remembers(client, base)


# --- modes --------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    """Return the permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


@posix
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_memories_are_for_their_owner_alone(tmp_path: Path, umask: int) -> None:
    """Directories 0700 and files 0600, whatever the umask."""
    base = tmp_path / "new" / "base"
    with bank_process(umask=umask) as bank:
        assert "id" in ask(bank, base, "private")
    assert [mode(path) for path in (base.parent, base, base / "files")] == [0o700] * 3
    files = [path for path in base.rglob("*") if path.is_file()]
    assert files
    assert {mode(path) for path in files} == {0o600}


@posix
def test_directories_that_exist_keep_their_modes(tmp_path: Path) -> None:
    """Somebody who shares a directory on purpose is not overruled."""
    base = tmp_path / "base"
    for directory, bits in ((base, 0o755), (base / "files", 0o2750)):
        directory.mkdir()
        directory.chmod(bits)
    MemoryBank(Settings(base)).remember("claude", "marco", ["tests"], "shared")
    assert [mode(path) for path in (base, base / "files")] == [0o755, 0o2750]


EDIT = "Store(path.parent.parent).replace(path.name, 'old', 'new')"


def with_failing_disk(path: Path, change: str, *where: str) -> int:
    """Make a change while the first fsync of each thread fails; return the exit code.

    Args:
        path: the file that is changed.
        change: the statement that changes it.
        where: options of strace that say which files' fsync fails; all, if there are none.
    """
    script = (
        "import sys; from pathlib import Path; from aiaml_server.storage.store import Store; "
        f"path = Path(sys.argv[1]); {change}"
    )
    faults = ["-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=1", *where]
    command = strace.following(path.parent.parent / "log", *faults)
    return subprocess.run([*command, sys.executable, "-c", script, str(path)]).returncode  # noqa: PLW1510


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that holds a word."""
    path = tmp_path / "files" / "memory.md"
    path.parent.mkdir()
    path.write_text("old", encoding="utf-8")
    return path


@strace.needed
@pytest.mark.parametrize("which", ["file", "directory"])
def test_a_failing_change_loses_no_version(old: Path, which: str) -> None:
    """When the disk fails in the middle, the file holds what it held, or what it was to hold."""
    where = ["-P", str(old.parent)] if which == "directory" else []
    assert with_failing_disk(old, EDIT, *where) == 1  # the fault was met
    assert old.read_text(encoding="utf-8") == ("old" if which == "file" else "new")


@strace.needed
def test_a_deletion_is_durable_before_it_is_acknowledged(old: Path) -> None:
    """If the directory cannot be synced, the deletion is not called a success."""
    change = "Store(path.parent.parent).replace(path.name, 'old', None)"
    assert with_failing_disk(old, change, "-P", str(old.parent)) == 1
    assert not old.exists()
