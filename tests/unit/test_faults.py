"""The index, and what lies under it, when a disk, a neighbour or a person does it harm."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.errors import StoreError
from aiaml_server.format.memory import format  # noqa: A004
from aiaml_server.format.scorer import Hit, rank
from aiaml_server.index import postings, records, tuning, view
from aiaml_server.index.database import Database, file_of, remove
from aiaml_server.index.records import FileEntry
from aiaml_server.storage import sqlite, watch
from aiaml_server.storage.derived import folder
from aiaml_server.storage.store import UNREADABLE, Store
from aiaml_server.storage.watch import is_local
from client import Client
from loop_disk import loop_disk
from waiting import wait_until

NOTE = Memory("a1b2c3d4", "2026-01-01T00:00:00+00:00", "claude", "marco", ("x",), "needle")


def write(base: Path, name: str, content: str = "needle") -> Path:
    """Put a memory into the store by hand."""
    path = base / "files" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(format(replace(NOTE, content=content)), encoding="utf-8", newline="")
    return path


def scan(base: Path, *keywords: str) -> list[Hit]:
    """Answer the slow, obvious way."""
    return rank(Store(base).scan(), keywords)


def found(bank: MemoryBank, *keywords: str) -> list[str]:
    """Return the files that match."""
    return sorted(hit.file_name for hit in bank.think(keywords))


# --- one bad file ---------------------------------------------------------------------------------


def test_a_destroyed_inode_hides_one_memory_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On ext4 its `lstat` says that the structure needs cleaning; the file is named in the log."""
    if not shutil.which("debugfs"):
        pytest.skip("there is no debugfs to destroy an inode with")
    with loop_disk(tmp_path, "ext4", 8) as disk:
        base = disk.place / "base"
        base.mkdir()
        paths = [write(base, f"{number}.md", f"needle word{number}") for number in range(6)]
        with closing(MemoryBank(Settings(base))) as bank:
            assert len(found(bank, "needle")) == 6
        inode = paths[3].stat().st_ino
        disk.unmount()
        destroy = ["debugfs", "-w", "-R", f"clri <{inode}>", str(disk.image)]
        subprocess.run(destroy, check=True, capture_output=True)
        disk.mount()
        for fresh in (False, True):
            if fresh:
                shutil.rmtree(base / ".index")
            with closing(MemoryBank(Settings(base))) as bank:
                assert found(bank, "needle") == [f"{number}.md" for number in (0, 1, 2, 4, 5)]
                assert found(bank, "word3") == []
                assert bank.find("a1b2c3d4")
        assert "3.md: it cannot be read" in caplog.text


@pytest.mark.parametrize("code", ["EIO", "ESTALE", "EACCES", "ENOMEM"])
def test_a_file_of_which_the_system_says_nothing_is_skipped_until_it_does(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever `lstat` fails with; in a running process, in a new one, and without an index."""
    monkeypatch.setattr(watch.Watch, "begin", lambda *_: None)  # which would be told of nothing
    monkeypatch.setattr("aiaml_server.index.tuning.UNTOLD_SECONDS", 1e-9)
    bad, _ = write(tmp_path, "bad.md"), write(tmp_path, "good.md")
    bank = MemoryBank(Settings(tmp_path))
    assert found(bank, "needle") == ["bad.md", "good.md"]
    lstat = os.lstat

    def failing(path: os.PathLike[str] | str, *, dir_fd: int | None = None) -> os.stat_result:
        if os.fspath(path) == str(bad):
            raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)), path)
        return lstat(path, dir_fd=dir_fd)

    time.sleep(0.1)
    assert found(bank, "needle") == ["bad.md", "good.md"]
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", failing)
        assert found(bank, "needle") == ["good.md"]
        with closing(MemoryBank(Settings(tmp_path))) as other:
            assert found(other, "needle") == ["good.md"]
            assert [name for name, _ in other.find("a1b2c3d4")] == ["good.md"]
        shutil.rmtree(tmp_path / ".index")
        assert found(bank, "needle") == ["good.md"]
        assert "bad.md: it cannot be read" in caplog.text
    assert found(bank, "needle") == ["bad.md", "good.md"]
    bank.close()


def test_a_directory_whose_files_cannot_be_looked_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told "nothing found" when it is the directory itself that refuses."""
    write(tmp_path, "first.md")
    lstat = os.lstat

    def failing(path: os.PathLike[str] | str) -> os.stat_result:
        if os.fspath(path).startswith(f"{tmp_path / 'files'}{os.sep}"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return lstat(path)

    with closing(MemoryBank(Settings(tmp_path))) as bank:
        with monkeypatch.context() as patched:
            patched.setattr(os, "lstat", failing)
            with pytest.raises(StoreError, match="permission denied"):
                bank.think(["needle"])
        assert found(bank, "needle") == ["first.md"]


@pytest.mark.parametrize("code", ["EIO", "ENOMEM"])
def test_a_file_that_could_not_be_read_once_is_read_again(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A passing failure of the disk leaves nothing that only an edit would mend."""
    monkeypatch.setattr(watch.Watch, "begin", lambda *_: None)  # which would be told of nothing
    monkeypatch.setattr("aiaml_server.index.tuning.UNTOLD_SECONDS", 1e-9)
    bad = write(tmp_path, "bad.md")
    time.sleep(0.1)
    opened = os.open

    def failing(path: str, flags: int, mode: int = 0o777) -> int:
        if os.fspath(path) == str(bad):
            raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)), path)
        return opened(path, flags, mode)

    with closing(MemoryBank(Settings(tmp_path))) as bank:
        with monkeypatch.context() as patched:
            patched.setattr(os, "open", failing)
            assert found(bank, "needle") == []
        assert found(bank, "needle") == ["bad.md"]


# --- a damaged index ------------------------------------------------------------------------------

DAMAGES = [
    "UPDATE files SET name = x'c2' WHERE id = 1",
    "UPDATE files SET name = NULL",
    "UPDATE texts SET content = NULL",
    "UPDATE texts SET content = 7",
    "UPDATE postings SET totals = NULL",
    "UPDATE postings SET totals = 'text'",
    "UPDATE vocabulary SET terms = NULL",
    "UPDATE vocabulary SET terms = 5",
    "UPDATE files SET modified = 'soon'",
    "UPDATE directory SET modified = NULL",
    "DELETE FROM directory",
]


@pytest.mark.gate_cases(4)
@pytest.mark.parametrize("damage", DAMAGES)
def test_an_index_that_makes_no_sense_is_made_anew(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever error it leads to; other processes then have a good one."""
    for number in range(70):
        write(tmp_path, f"{number}.md", f"needle c++ word{number}")
    time.sleep(0.1)
    for _ in range(2):  # nothing of this very moment is recorded as such
        with closing(MemoryBank(Settings(tmp_path))) as bank:
            found(bank, "needle")
    (path,) = folder(tmp_path).glob("*.sqlite")
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(damage)
    for _ in range(2):
        with closing(MemoryBank(Settings(tmp_path))) as bank:
            for keywords in (["needle"], ["c++"], ["word7"], ["needle", "c+"]):
                assert bank.think(keywords) == scan(tmp_path, *keywords)
    assert caplog.text.count("is made anew") <= 1
    assert "kept in memory" not in caplog.text


def test_an_index_of_another_kind_survives_a_remember(tmp_path: Path) -> None:
    """Only what was forgotten or changed must not linger in it; a new memory never was there."""
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        bank.remember("claude", "marco", ["x"], "needle")
        assert len(found(bank, "needle")) == 1
        other = folder(tmp_path) / "2-00000000.sqlite"
        other.write_bytes(b"of another time zone")
        time.sleep(0.1)
        bank.remember("claude", "marco", ["x"], "needle")
        assert len(found(bank, "needle")) == 2
        time.sleep(0.1)
        assert len(found(bank, "needle")) == 2
        os.utime(next((tmp_path / "files").glob("*.md")))
        assert len(found(bank, "needle")) == 2
        assert other.exists()
        next((tmp_path / "files").glob("*.md")).unlink()
        assert len(found(bank, "needle")) == 1
        assert not other.exists()
        assert file_of(folder(tmp_path)).exists()


# --- files cut under running servers --------------------------------------------------------------


def truncate(path: Path) -> None:
    """Do what `truncate -s0` does."""
    os.truncate(path, 0)


def halve(path: Path) -> None:
    """Lose the end."""
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    """Do what `cp` of a small file over it does."""
    with path.open("r+b") as stream:
        stream.truncate(0)
        stream.write(b"something else entirely" * 100)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [truncate, halve, overwrite])
def test_no_server_dies_of_an_index_that_is_cut_under_it(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Two servers go on, and answer as the files do, whichever file of the index it is."""
    for number in range(300):
        write(tmp_path, f"{number}.md", f"needle word{number} " * 20)
    with Client(tmp_path) as one, Client(tmp_path) as two:
        for turn in range(6):
            for client in (one, two):
                stored = client.remember(f"turn{turn} needle")["memory_id"]
                assert client.call("think", keywords=[f"turn{turn}"])[0]["id"] == stored
            paths = [path for path in folder(tmp_path).iterdir() if path.is_file()]
            assert any(path.name.endswith(".sqlite") for path in paths)
            for path in paths:
                with suppress(FileNotFoundError):
                    harm(path)
            for client in (one, two):
                for word in ("needle", "word7", f"turn{turn}"):
                    hits = [hit["id"] for hit in client.call("think", keywords=[word])]
                    assert hits == [hit.id for hit in scan(tmp_path, word)]
        assert "Traceback" not in one.log() + two.log()


def test_a_full_btrfs_disk_ends_no_server(tmp_path: Path) -> None:
    """There, writing a block again needs a new one; whoever maps a file dies when there is none."""
    with loop_disk(tmp_path, "btrfs", 120) as disk:
        base = disk.place / "base"
        base.mkdir()
        for number in range(200):
            write(base, f"{number}.md", f"needle word{number} " * 20)
        filler = disk.place / "filler"
        with Client(base) as one, Client(base) as two:
            for client in (one, two):
                assert len(client.call("think", keywords=["needle"])) == 25
                assert client.remember("needle")["memory_id"]
            with filler.open("wb", buffering=0) as stream:
                for size in (1024 * 1024, 65536, 4096, 4096, 4096):
                    with suppress(OSError):
                        while stream.write(os.urandom(size)):
                            pass
                    subprocess.run(["sync", "-f", str(disk.place)], check=False)
            for turn in range(8):
                for client in (one, two):
                    client.remember(f"turn{turn} " * 2000)
                    subprocess.run(["sync", "-f", str(disk.place)], check=False)
                    hits = [hit["id"] for hit in client.call("think", keywords=["needle"])]
                    assert hits == [hit.id for hit in scan(base, "needle")]
                    assert client.process.poll() is None
            filler.unlink()
            subprocess.run(["sync", "-f", str(disk.place)], check=True)
            for client in (one, two):
                stored = client.remember("afterwards")["memory_id"]
                assert stored in {
                    hit["id"] for hit in client.call("think", keywords=["afterwards"])
                }


@pytest.mark.slow
def test_a_stopped_neighbour_keeps_nobody_from_an_answer(tmp_path: Path) -> None:
    """One that was stopped in the middle of its first indexing; what it holds is made anew."""
    if os.name != "posix":
        pytest.skip("Windows cannot stop a process so")
    for number in range(3000):
        write(tmp_path, f"{number}.md", f"needle word{number} " * 20)
    with Client(tmp_path) as stopped:
        wait_until(lambda: list(tmp_path.glob(".index/*/*-journal")))
        stopped.process.send_signal(signal.SIGSTOP)
        with Client(tmp_path) as client:
            assert len(client.call("think", keywords=["needle"])) == 25
        stopped.process.send_signal(signal.SIGCONT)
        assert len(stopped.call("think", keywords=["needle"])) == 25


@pytest.mark.slow
def test_a_slow_neighbour_is_waited_for(tmp_path: Path) -> None:
    """As long as it shows that it goes on, its work is not thrown away."""
    write(tmp_path, "first.md")
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        assert found(bank, "needle") == ["first.md"]
    file = file_of(folder(tmp_path))
    slow = Database(file)

    def entries() -> Iterator[FileEntry]:
        for number in range(30):
            time.sleep(0.1)
            yield FileEntry(f"{number}.md", UNREADABLE, "slow")

    def work() -> None:
        with slow.transaction():
            slow.add(entries())

    with ThreadPoolExecutor() as pool:
        working = pool.submit(work)
        time.sleep(0.2)
        write(tmp_path, "second.md")
        with closing(MemoryBank(Settings(tmp_path))) as bank:
            assert found(bank, "needle") == ["first.md", "second.md"]
        working.result()
    slow.close()
    assert file_of(folder(tmp_path)) == file


# --- what was not safe on disk --------------------------------------------------------------------


def test_an_index_that_a_crash_of_the_machine_may_have_harmed_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One whose server ended is; one that was open when the machine started again is not."""
    if not is_local(tmp_path):
        pytest.skip("here, writing waits for the disk")
    write(tmp_path, "first.md")
    boots = [f"boot{number}" for number in range(4)]
    monkeypatch.setattr(sqlite, "boot", lambda: boots[0])
    for clean in (True, False):
        bank = MemoryBank(Settings(tmp_path))
        assert found(bank, "needle") == ["first.md"]
        bank.remember("claude", "marco", ["x"], "thread")
        assert len(found(bank, "thread")) == 1 + (not clean)
        if clean:
            bank.close()
        file = file_of(folder(tmp_path))
        del boots[0]
        with closing(MemoryBank(Settings(tmp_path))) as after:
            assert found(after, "needle") == ["first.md"]
        assert (file_of(folder(tmp_path)) == file) == clean
        assert ("the machine went down" in caplog.text) == (not clean)


def test_a_file_that_is_removed_takes_nothing_of_the_next(tmp_path: Path) -> None:
    """What SQLite keeps beside a file bears its name, and no two files ever have the same."""
    names = set()
    for _ in range(20):
        path = file_of(tmp_path)
        with closing(Database(path)):
            assert file_of(tmp_path) == path
            names.add(path)
        remove(path)
    assert len(names) == 20
    assert list(tmp_path.iterdir()) == []


# --- large texts of many different words ----------------------------------------------------------

MANY_WORDS = """
import random, sys
from dataclasses import replace
from pathlib import Path
from random import Random
from aiaml_server import MemoryBank, Settings
base = Path(sys.argv[1])
rng = random.Random(1)
def words(count):
    return " ".join(f"{rng.getrandbits(24):x}" for _ in range(count))
def asked(bank, keyword):
    return len(bank.think([keyword]))
bank = MemoryBank(Settings(base))
(base / "files").mkdir(parents=True)
memory = bank.remember("claude", "marco", ["x"], "needle")
text = (base / "files" / memory.file_name).read_text()
for size, count in ((150_000, 30), (8_000, 300), (1_000, 1000)):
    for number in range(count):
        path = base / "files" / f"{size}-{number}.md"
        path.write_text(text.replace("needle", f"needle {words(size)} n{number}z"))
print(asked(bank, "needle"), asked(bank, "n7z"))
for number in range(4):
    bank.remember("claude", "marco", ["x"], f"{words(140_000)} last{number}z")
    print(asked(bank, f"last{number}z"))
# Not getrusage, whose maximum a program inherits from the process that started it.
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, memory is counted otherwise")
def test_large_texts_of_different_words_take_little_memory(tmp_path: Path) -> None:
    """Such as logs and tables: 30 of a megabyte, 300 of 50 KB and 1,000 of 7 KB."""
    words = [sys.executable, "-c", MANY_WORDS, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    *answers, mebibytes = done.stdout.split()
    assert answers == ["25", "3", "1", "1", "1", "1"]
    assert float(mebibytes) < 300
    assert scan(tmp_path, "n7z") == MemoryBank(Settings(tmp_path)).think(["n7z"])


FIRST_INDEXING = """
import sys
from pathlib import Path
from aiaml_server import MemoryBank, Settings

def most():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024

with MemoryBank(Settings(Path(sys.argv[1]), sync=False)).opened() as bank:
    before = most()
    assert len(bank.think(["needle"])) == 25
    print(most() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, memory is counted otherwise")
def test_a_first_indexing_holds_few_memories_at_a_time(tmp_path: Path) -> None:
    """Of 4,000 with 8 MB together: 12 MiB, and not twice that."""
    for number in range(4_000):
        write(tmp_path, f"{number}.md", f"needle {number} {'all of it ' * 200}")
    words = [sys.executable, "-c", FIRST_INDEXING, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 18


@pytest.mark.parametrize("different", [19_000, 400_000])
def test_one_large_memory_takes_less_than_a_second(tmp_path: Path, different: int) -> None:
    """Of 4 MB, with as many terms as are indexed or with any number; new, edited and forgotten."""
    terms = " ".join(f"{number * 7919 % 1048573:05x}" for number in range(different))
    text = f"{terms} {'abcdefg ' * ((4_000_000 - len(terms)) // 8)}"
    for number in range(1000):
        write(tmp_path, f"{number}.md", f"needle word{number}")
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        assert len(found(bank, "needle")) == 25
        large = tmp_path / "files" / "large.md"
        changes: list[Callable[[], object]] = [
            lambda: write(tmp_path, large.name, f"first1z {text}"),
            lambda: write(tmp_path, large.name, f"{text} last2z"),
            large.unlink,
        ]
        for change, names in zip(changes, ([large.name], [large.name], []), strict=True):
            change()
            assert found(bank, "first1z", "last2z") == names


# --- random damage --------------------------------------------------------------------------------

QUESTIONS = (
    ["wor"],
    ["c++ a"],
    ["needle"],
    ["word7"],
    ["c++"],
    ["ord1", "x"],
    ["word1", "a b"],
    ["zzz"],
    ["late3"],
)
TABLES = (
    *("files", "texts", "unindexed", "sums"),
    *("vocabulary", "postings", "term_sums"),
)


def flip_bit(path: Path, rng: Random) -> None:
    """Change one bit anywhere."""
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def overwrite_bytes(path: Path, rng: Random) -> None:
    """Put 1 to 64 other bytes anywhere."""
    data = bytearray(path.read_bytes())
    start, length = rng.randrange(len(data)), rng.randint(1, 64)
    data[start : start + length] = rng.randbytes(min(length, len(data) - start))
    path.write_bytes(data)


def swap_pages(path: Path, rng: Random) -> None:
    """Put one page, or nothing, in the place of another."""
    data = bytearray(path.read_bytes())
    pages = len(data) // 8192
    to, source = rng.randrange(pages), rng.randrange(pages)
    page = data[source * 8192 : source * 8192 + 8192] if rng.random() < 0.7 else bytes(8192)
    data[to * 8192 : to * 8192 + 8192] = page
    path.write_bytes(data)


def change_rows(path: Path, rng: Random) -> None:
    """Delete, double or change rows by SQL."""
    table = rng.choice(TABLES)
    with closing(sqlite3.connect(path)) as sql, suppress(sqlite3.IntegrityError), sql:
        columns = [row[1] for row in sql.execute(f"PRAGMA table_info({table})")]
        some = f"rowid IN (SELECT rowid FROM {table} ORDER BY random() LIMIT {rng.randint(1, 40)})"
        column = rng.choice(columns)
        value = rng.choice(["NULL", "1", "'x'", "x'0a'", "zeroblob(10)", "substr({0}, 2)", "-{0}"])
        if rng.random() < 0.5:
            sql.execute(f"DELETE FROM {table} WHERE {some}")
        else:
            sql.execute(f"UPDATE {table} SET {column} = {value.format(column)} WHERE {some}")


def exchange_values(path: Path, rng: Random) -> None:
    """Give two rows each other's values."""
    table, column = rng.choice(
        [
            *(
                ("postings", "totals"),
                ("texts", "content"),
                ("texts", "agent"),
                ("files", "instant"),
            ),
            *(("files", "memory_id"), ("files", "timestamp"), ("vocabulary", "terms")),
        ]
    )
    with closing(sqlite3.connect(path)) as sql, sql:
        rows = sql.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        (one, here), (other, there) = rng.choice(rows), rng.choice(rows)
        sql.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (there, one))
        sql.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (here, other))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of 150 memories, some of which are not indexed yet, with its index."""
    base = tmp_path_factory.mktemp("indexed")
    rng = Random(7)
    for number in range(150):
        words = " ".join(f"word{rng.randrange(900)}" for _ in range(60))
        note = replace(
            NOTE,
            id=f"{number:08x}",
            timestamp=f"2026-01-{number % 28 + 1:02}T00:00:00+00:00",
            content=f"{words} {'needle ' * (number % 3)} c++ a b",
        )
        (base / "files").mkdir(exist_ok=True)
        (base / "files" / f"{number}.md").write_text(format(note), encoding="utf-8", newline="")
    time.sleep(0.1)
    with closing(MemoryBank(Settings(base))) as bank:
        bank.think(["needle"])
        for number in range(4):
            write(base, f"late{number}.md", f"late{number} needle")
            bank.think(["needle"])
        time.sleep(0.1)
        bank.think(["needle"])
    return base


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage", [flip_bit, overwrite_bytes, swap_pages, change_rows, exchange_values]
)
def test_no_damage_gives_a_wrong_answer(
    indexed: Path,
    damage: Callable[[Path, Random], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred of each kind: every answer is that of the scan, and of the files by id, too.

    Half of the time, common words are counted in all texts.
    """
    file = file_of(folder(indexed))
    sound = file.read_bytes()
    expected = [scan(indexed, *question) for question in QUESTIONS]
    noticed = 0
    for seed in range(100):
        shutil.rmtree(indexed / ".index")
        folder(indexed, make=True)
        file.write_bytes(sound)
        damage(file, Random(seed))
        monkeypatch.setattr(tuning, "WIDE", (7500, 100)[seed % 2])
        monkeypatch.setattr(tuning, "SCANNED", (3000, 50)[seed % 2])
        monkeypatch.setattr(tuning, "TIES", (2000, 20)[seed % 3 % 2])
        caplog.clear()
        with closing(MemoryBank(Settings(indexed), lasting=False)) as bank:
            assert [bank.think(question) for question in QUESTIONS] == expected, seed
            assert len(bank.recall([f"{seed:08x}"])[f"{seed:08x}"]) == 1, seed
        assert "kept in memory" not in caplog.text
        noticed += "is made anew" in caplog.text
    assert noticed > 10
    shutil.rmtree(indexed / ".index")
    folder(indexed, make=True)
    file.write_bytes(sound)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [2000, 20], ids=["looked up", "met on the way"])
def test_each_bit_of_what_breaks_ties_is_compared(
    indexed: Path, ties: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The moment in a file's row; in SQLite's order of moments that, and the file's number."""
    monkeypatch.setattr(tuning, "TIES", ties)
    file = file_of(folder(indexed))
    sound = file.read_bytes()
    expected = scan(indexed, "c++")
    with closing(sqlite3.connect(file)) as sql:
        ((timestamp, instant, name, number),) = sql.execute(
            "SELECT timestamp, instant, name, id FROM files"
            " ORDER BY instant DESC, name DESC LIMIT 1 OFFSET 9"
        )
    moment = instant.to_bytes(8, "big")
    in_row = sound.index(timestamp.encode() + moment, sound.index(name[:-3])) + len(timestamp)
    in_order = sound.index(moment + name + bytes([number]))
    bits = [8 * (in_row if ties == 2000 else in_order) + bit for bit in range(64)]
    if ties == 20:
        bits += [8 * (in_order + 8 + len(name)) + bit for bit in range(8)]
    for bit in bits:
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        shutil.rmtree(indexed / ".index")
        folder(indexed, make=True)
        file.write_bytes(damaged)
        caplog.clear()
        with closing(MemoryBank(Settings(indexed), lasting=False)) as bank:
            assert bank.think(["c++"]) == expected, bit - bits[0]
        assert "is made anew" in caplog.text, bit - bits[0]
    shutil.rmtree(indexed / ".index")
    folder(indexed, make=True)
    file.write_bytes(sound)


def test_a_text_with_the_number_of_another_is_noticed(
    indexed: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One flipped bit of SQLite's own makes it the text of a memory that was read before."""
    monkeypatch.setattr(tuning, "WIDE", 100)
    monkeypatch.setattr(tuning, "SCANNED", 50)
    file = file_of(folder(indexed))
    sound = file.read_bytes()
    expected = scan(indexed, "wor")
    with closing(sqlite3.connect(file)) as sql:
        (text,) = sql.execute("SELECT content FROM texts WHERE id = 34").fetchone()
    # Before a row stand its length (two bytes), its number, the length of its header and that.
    number = sound.rindex(bytes([34]), 0, sound.index(text.encode()) - 6)
    assert sound[number - 2] >= 128
    damaged = bytearray(sound)
    damaged[number] ^= 2
    shutil.rmtree(indexed / ".index")
    folder(indexed, make=True)
    file.write_bytes(damaged)
    with closing(sqlite3.connect(file)) as sql:
        assert sql.execute("SELECT count(*) FROM texts WHERE id = 34").fetchone() == (0,)
    with closing(MemoryBank(Settings(indexed), lasting=False)) as bank:
        assert bank.think(["wor"]) == expected
    assert "is made anew" in caplog.text
    shutil.rmtree(indexed / ".index")
    folder(indexed, make=True)
    file.write_bytes(sound)


def test_a_file_that_is_recorded_twice_is_given_out_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite finds no name any more, in a damaged index of names, and lets a second row in."""
    write(tmp_path, "one.md", "needle one")
    write(tmp_path, "two.md", "needle two")
    time.sleep(0.1)
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        bank.think(["needle"])
    file = file_of(folder(tmp_path))
    with closing(sqlite3.connect(file)) as sql:
        (page,) = sql.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_files_1'"
        ).fetchone()
    damaged = bytearray(file.read_bytes())
    damaged[(page - 1) * 8192 + 3 : (page - 1) * 8192 + 7] = b"\0\0\x20\0"  # no cells
    file.write_bytes(damaged)
    (tmp_path / "files" / "two.md").touch()
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        assert found(bank, "needle") == ["one.md", "two.md"]
    assert "is made anew" in caplog.text


def change_bytes_in_place(path: Path) -> None:
    """Change a letter of every text, and no checksum, behind SQLite's back."""
    with path.open("r+b") as stream:
        data = stream.read()
        stream.seek(0)
        stream.write(data.replace(b"needle c++ ", b"needle c-- "))


def change_by_sql(path: Path) -> None:
    """Do the same as another process would write."""
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute("UPDATE texts SET content = replace(content, 'needle c++', 'needle c--')")


@pytest.mark.parametrize("damage", [change_bytes_in_place, change_by_sql])
def test_damage_under_a_running_process_is_seen(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """What agreed with its checksums is compared again once anybody has written to the file."""
    for number in range(300):  # more than SQLite keeps in memory
        write(tmp_path, f"{number}.md", f"needle c++ {'x y ' * 2500}")
    time.sleep(0.1)
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        expected = scan(tmp_path, "c++")
        assert [bank.think(["c++"]) for _ in range(3)] == [expected] * 3
        assert "made anew" not in caplog.text
        damage(file_of(folder(tmp_path)))
        assert bank.think(["c++"]) == expected
    assert "made anew" in caplog.text


def test_what_a_long_question_compared_need_not_be_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It touches the file now and then, so that writers wait for it; that is no damage."""
    monkeypatch.setattr(tuning, "WIDE", 5)
    for number in range(2000):
        write(tmp_path, f"{number}.md", f"needle word{number}")
    time.sleep(0.1)
    compared = [0]

    def counted(data: bytes, start: int = 0) -> int:
        compared[0] += 1
        return zlib.crc32(data, start)

    for module in (postings, records, view):
        monkeypatch.setattr(module, "crc32", counted)
    with closing(MemoryBank(Settings(tmp_path))) as bank:
        expected = scan(tmp_path, "w")
        assert bank.think(["w"]) == bank.think(["w"]) == expected
        assert bank.think(["word7"]) == scan(tmp_path, "word7")
        assert compared[0] > 2000
        monkeypatch.setattr("aiaml_server.storage.sqlite.BEAT", -1.0)
        file = file_of(folder(tmp_path))
        before = file.stat().st_mtime_ns
        compared[0] = 0
        assert bank.think(["w"]) == bank.think(["w"]) == expected
        assert len(bank.think(["word7"])) == 25
        assert file.stat().st_mtime_ns > before
        assert compared == [0]
