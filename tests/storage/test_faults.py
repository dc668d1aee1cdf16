"""Disks and directories that fail: one bad file hides no other, and an error is said in words."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from aiaml_server.errors import StoreError
from aiaml_server.format.memory import Memory, format  # noqa: A004
from aiaml_server.index import Index, delete_index
from aiaml_server.storage.store import Store
from loop_disk import loop_disk

NOTE = Memory("a1b2c3d4", "2026-01-01T00:00:00+00:00", "claude", "marco", ("x",), "needle")


def write(base: Path, name: str) -> Path:
    """Write a memory by hand."""
    path = base / "files" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(format(NOTE), encoding="utf-8")
    return path


def found(index: Index) -> list[str]:
    """Return the files that hold the needle."""
    return sorted(hit.file_name for hit in index.think(["needle"]))


def test_a_destroyed_inode_hides_one_memory_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On ext4 its `lstat` says that the structure needs cleaning; the file is named in the log."""
    if not shutil.which("debugfs"):
        pytest.skip("there is no debugfs to destroy an inode with")
    with loop_disk(tmp_path, "ext4", 8) as disk:
        base = disk.place / "base"
        base.mkdir()
        paths = [write(base, f"{number}.md") for number in range(6)]
        with closing(Index(Store(base))) as index:
            assert len(found(index)) == 6
        inode = paths[3].stat().st_ino
        disk.unmount()
        destroy = ["debugfs", "-w", "-R", f"clri <{inode}>", str(disk.image)]
        subprocess.run(destroy, check=True, capture_output=True)
        disk.mount()
        for _ in range(2):
            with closing(Index(Store(base))) as index:
                assert found(index) == [f"{number}.md" for number in (0, 1, 2, 4, 5)]
            delete_index(base)
        assert "3.md: it cannot be read" in caplog.text


@pytest.mark.parametrize("function", ["lstat", "open"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOMEM])
def test_a_file_that_cannot_be_read_is_skipped_until_it_can(
    tmp_path: Path, function: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the system fails with; in a running process, and in a new one."""
    bad, _ = write(tmp_path, "bad.md"), write(tmp_path, "good.md")
    original = getattr(os, function)

    def failing(path: str, *rest: int, **more: int) -> object:
        if os.fspath(path) == str(bad):
            raise OSError(code, os.strerror(code), path)
        return original(path, *rest, **more)

    with closing(Index(Store(tmp_path), rescan_seconds=0)) as index:
        with monkeypatch.context() as patched:
            patched.setattr(os, function, failing)
            assert found(index) == ["good.md"]
            with closing(Index(Store(tmp_path))) as other:
                assert found(other) == ["good.md"]
        assert found(index) == ["bad.md", "good.md"]


def test_a_directory_whose_files_cannot_be_looked_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is told "nothing found" when it is the directory itself that refuses."""
    write(tmp_path, "first.md")
    lstat = os.lstat

    def failing(path: str) -> os.stat_result:
        if os.fspath(path).startswith(f"{tmp_path / 'files'}{os.sep}"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return lstat(path)

    with closing(Index(Store(tmp_path))) as index:
        with monkeypatch.context() as patched:
            patched.setattr(os, "lstat", failing)
            with pytest.raises(StoreError, match="permission denied"):
                index.think(["needle"])
        assert found(index) == ["first.md"]
