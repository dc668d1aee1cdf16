"""The index, and what lies under it, when a disk, a neighbour or a person does it harm."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.database import file_of
from aiaml_server.errors import StoreError
from aiaml_server.memory import format  # noqa: A004
from aiaml_server.scorer import Hit, rank
from aiaml_server.store import Store
from loop_disk import loop_disk

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
    monkeypatch.setattr("aiaml_server.index.SLICE_SECONDS", -1.0)
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
    monkeypatch.setattr("aiaml_server.index.SLICE_SECONDS", -1.0)
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
    "UPDATE vocabulary SET runs = NULL",
    "UPDATE vocabulary SET runs = 5",
    "UPDATE files SET modified = 'soon'",
    "UPDATE directory SET modified = NULL",
    "DELETE FROM directory",
]


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
    (path,) = (tmp_path / ".index").glob("*.sqlite")
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
        other = tmp_path / ".index" / "2-00000000.sqlite"
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
        assert file_of(tmp_path / ".index").exists()
