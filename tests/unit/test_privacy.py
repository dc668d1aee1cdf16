"""What lies in the memory directory is for its owner alone, also where others can enter it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from machine import CLEAN, Machine, bare, git

pytestmark = [
    pytest.mark.usefixtures("nobodys_configuration"),
    pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes"),
]
NOBODY = 65534


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that everybody can enter, also from above; and programs make files for all."""
    before = os.umask(0o022)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        yield place
    os.umask(before)


def open_to_others(base: Path) -> list[str]:
    """Return what others than the owner can get at, by the modes on the way to it."""
    found = []
    for directory, names, files in os.walk(base):
        for name in (*names, *files):
            path = Path(directory) / name
            if path.lstat().st_mode & 0o077 and not path.is_symlink():
                found.append(str(path.relative_to(base)))
        names[:] = [name for name in names if (Path(directory) / name).stat().st_mode & 0o077]
    return found


def used(machine: Machine) -> None:
    """Do with a machine all that makes files."""
    memory = machine.remember("private words")
    machine.synced()
    machine.path(memory).write_bytes(machine.path(memory).read_bytes() + b"more")
    machine.bank.think(["private"])
    machine.synced()
    machine.bank.close()


def test_nothing_made_in_an_open_directory_is_open(open_place: Path) -> None:
    """A base with mode 0755, such as `mkdir` makes: git's files, status, index, locks are not."""
    base = open_place / "base"
    base.mkdir(mode=0o755)
    used(Machine(base, bare(open_place / "remote")))
    assert (base / ".git").is_dir() and (base / ".sync-status.json").is_file()
    assert open_to_others(base) == []


def test_nothing_new_in_the_repository_of_a_person_is_open(open_place: Path) -> None:
    """Its own modes stay as they are, but no memory can be read in it."""
    base = open_place / "base"
    base.mkdir(mode=0o755)
    git(base, "init", "--quiet", "--initial-branch=main")
    before = set(open_to_others(base))
    used(Machine(base, bare(open_place / "remote")))
    new = set(open_to_others(base)) - before
    assert not [each for each in new if (base / each).is_file()]


def test_all_that_git_makes_for_us_is_private_under_any_umask(open_place: Path) -> None:
    """Each directory 0700 and each file 0600 (an object 0400), whatever lies above it."""
    base = open_place / "base"
    base.mkdir(mode=0o755)
    git(base, "init", "--quiet", "--initial-branch=main")
    before = set(base.rglob("*"))
    os.umask(0)
    used(Machine(base, bare(open_place / "remote")))
    made = set(base.rglob("*")) - before
    assert (base / ".aiaml.git" / "aiaml" / "last-sync.json") in made
    assert [str(each) for each in made if each.lstat().st_mode & 0o077] == []


def test_a_remote_on_a_shared_disk_stays_as_open_as_it_was(open_place: Path) -> None:
    """What is pushed there is for whoever may read that repository."""
    remote = bare(open_place / "remote")
    used(Machine(open_place / "base", remote))
    files = [path for path in (remote / "objects").rglob("*") if path.is_file()]
    assert files and all(path.stat().st_mode & 0o044 for path in files)


@pytest.mark.skipif(
    not shutil.which("setpriv") or os.geteuid() != 0, reason="only root can be somebody else"
)
def test_another_user_can_read_nothing(open_place: Path) -> None:
    """Neither the files nor the history, whatever program they try it with."""
    base = open_place / "base"
    base.mkdir(mode=0o755)
    used(Machine(base, bare(open_place / "remote")))
    words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    found = subprocess.run(
        [*words, "find", str(base), "-mindepth", "1", "-readable"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout == ""
    shown = subprocess.run(
        [*words, "git", "-c", "safe.directory=*", f"--git-dir={base / '.git'}", "log", "-p"],
        capture_output=True, text=True, check=False, env={**os.environ, **CLEAN},
    )  # fmt: skip
    assert shown.returncode != 0 and "private words" not in shown.stdout


def test_doctor_names_what_is_open_and_mends_it(open_place: Path) -> None:
    """What earlier versions, or a person's git, made so is told; `--fix` closes it."""
    base = open_place / "base"
    base.mkdir(mode=0o755)
    used(Machine(base))
    for name in (".git", "files"):
        (base / name).chmod(0o755)
    (base / ".sync-status.json").chmod(0o644)

    def doctor(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "aiaml_server", "doctor", "access", *words],
            env={**os.environ, "AIAML_MEMORY_DIR": str(base)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    found = doctor()
    assert found.returncode == 1
    assert "others on this computer can read" in found.stdout
    fixed = doctor("--fix", "--yes")
    assert fixed.returncode == 0, fixed.stderr
    assert base.stat().st_mode & 0o077 == 0  # nobody else reaches what is in it
    assert doctor().returncode == 0
