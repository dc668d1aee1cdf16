"""File systems in files or in memory, for tests of what only one of their own does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class LoopDisk:
    """A file system in the file `image`, to be mounted over the directory `place`."""

    def __init__(self, image: Path, place: Path) -> None:
        self.image = image
        self.place = place

    def mount(self) -> None:
        """Mount it."""
        words = ["mount", "-o", "loop", str(self.image), str(self.place)]
        mounted = subprocess.run(words, capture_output=True, text=True, check=False)
        if mounted.returncode:
            pytest.skip(f"this root may not mount: {mounted.stderr.strip()}")

    def unmount(self) -> None:
        """Take it away; what is open in it does not hinder that."""
        subprocess.run(["umount", "--lazy", str(self.place)], check=True)


@contextmanager
def loop_disk(tmp_path: Path, kind: str, mebibytes: int) -> Iterator[LoopDisk]:
    """Make and mount a file system; skip the test where that cannot be done."""
    make = f"mkfs.{kind}"
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root may mount a file system, and this one is Linux's")
    if not shutil.which(make):
        pytest.skip(f"there is no {make}")
    disk = LoopDisk(tmp_path / "image", tmp_path / "disk")
    disk.place.mkdir()
    with disk.image.open("wb") as image:
        image.truncate(mebibytes * 1024 * 1024)
    subprocess.run([make, "-q", str(disk.image)], check=True, capture_output=True)
    disk.mount()
    try:
        yield disk
    finally:
        disk.unmount()


@contextmanager
def memory_disk(place: Path, options: str) -> Iterator[Path]:
    """Mount a file system in memory over a new directory; skip the test where that cannot be done.

    Args:
        place: the directory.
        options: how large it is, as `mount` wants it.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root may mount a file system, and this one is Linux's")
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this root may not mount: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
