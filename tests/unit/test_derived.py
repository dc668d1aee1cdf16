"""Where what is derived lies: in a folder that only its user can name, or nowhere."""

from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from aiaml_server import Memory, MemoryBank, Settings
from aiaml_server.cli import app
from aiaml_server.errors import NoStateDirectory
from aiaml_server.format.memory import format as format_of
from aiaml_server.identity import cache_directory
from aiaml_server.storage import derived
from aiaml_server.storage.derived import folder, key, key_file
from client import Client
from printed import completed, inherited

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes or owners")
root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can be another user"
)
MONTH = 30 * 86400
STRANGER, NEIGHBOUR = 64001, 64002
KEY = "from aiaml_server.storage.derived import key; print(key().hex())"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path of a key that is not there yet, of a user of this test's own."""
    for name in ("XDG_STATE_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "state"))
    derived._sought.cache_clear()
    yield key_file()
    derived._sought.cache_clear()


def again() -> bytes:
    """Return the key as the next process finds it."""
    derived._sought.cache_clear()
    return key()


def as_user(user: int, work: Callable[[], str]) -> str:
    """Have a process of another user do something; return what it returns, or its error."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            said = work()
        except BaseException as error:  # noqa: BLE001 (the parent is told)
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def filled(base: Path, *contents: str) -> Path:
    """Make a base with memories."""
    (base / "files").mkdir(parents=True)
    for content in contents:
        memory = Memory.new("claude", "marco", ["x"], content)
        (base / "files" / memory.file_name).write_text(format_of(memory), "utf-8")
    return base


def found(base: Path, word: str) -> list[str]:
    """Return what a process finds."""
    with closing(MemoryBank(Settings(base, sync=False), lasting=False)) as bank:
        return [hit.id for hit in bank.think([word])]


# --- the key --------------------------------------------------------------------------------------


def test_key_is_private_and_lasts(state: Path) -> None:
    """The next process has the same."""
    assert len(key()) == 32 and again() == again() == state.read_bytes()
    if sys.platform != "win32":
        assert (state.stat().st_mode & 0o777, state.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_key_is_the_same_for_processes_that_begin_at_once(state: Path) -> None:
    """Whoever makes it, over a torn one as well."""
    state.parent.mkdir(parents=True)
    state.write_bytes(b"torn")
    running = [
        subprocess.Popen([sys.executable, "-c", KEY], stdout=subprocess.PIPE, text=True)
        for _ in range(12)
    ]
    assert {process.communicate(timeout=120)[0] for process in running} == {f"{key().hex()}\n"}
    assert not list(state.parent.glob(".*.tmp"))


@pytest.mark.parametrize("size", [0, 1, 31, 33, 5000])
def test_key_of_another_size_is_replaced(state: Path, size: int) -> None:
    """It was torn by a full disk or a kill; what was derived under it is made anew."""
    first = key()
    state.write_bytes((first * 200)[:size])
    assert len(again()) == 32 and key() != first and again() == state.read_bytes()


@posix
def test_key_that_others_could_read_is_replaced(state: Path) -> None:
    """They may know the names of the folders."""
    first = key()
    state.chmod(0o644)
    assert again() != first and state.stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "another user's"])
def test_key_that_is_something_else_is_left_alone(state: Path, tmp_path: Path, kind: str) -> None:
    """Then there is none, and the sentence says what to move away."""
    state.parent.mkdir(parents=True)
    real = tmp_path / "real"
    real.write_bytes(b"k" * 32)
    if kind == "link":
        state.symlink_to(real)
    elif kind == "pipe":
        os.mkfifo(state)
    elif kind == "directory":
        state.mkdir()
    elif os.geteuid() != 0:
        pytest.skip("only root gives files to another user")
    else:
        state.write_bytes(b"k" * 32)
        os.chown(state, STRANGER, STRANGER)
    before = state.lstat()
    with pytest.raises(NoStateDirectory, match=f"{state} is .*move it away"):
        key()
    assert state.lstat() == before and real.read_bytes() == b"k" * 32


def test_key_that_finds_no_room_is_none(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves nothing half behind; the next process with room makes it."""

    def refuse(path: Path, _: bytes) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(derived, "write_temporary", refuse)
        with pytest.raises(NoStateDirectory, match="the disk is full"):
            key()
        with pytest.raises(NoStateDirectory, match="the disk is full"):
            key()
    assert not list(state.parent.iterdir()) and len(again()) == 32


@root
def test_key_is_not_made_in_the_directory_of_another_user(state: Path, tmp_path: Path) -> None:
    """As by root with a person's HOME: that one could not use the directory any more."""
    os.chown(tmp_path, STRANGER, STRANGER)
    with pytest.raises(NoStateDirectory, match=f"{tmp_path} belongs to another user"):
        key()
    assert not state.parent.exists() and not (tmp_path / "state").exists()


# --- no place -------------------------------------------------------------------------------------

NOWHERE: dict[str, Mapping[str, str]] = {
    "a file for a home": {"HOME": "/dev/null", "XDG_STATE_HOME": ""},
    "a home that cannot be made": {"HOME": "/proc/nothing", "XDG_STATE_HOME": ""},
    "no state directory": {"XDG_STATE_HOME": "/proc/nothing"},
}


@pytest.mark.slow
@posix
@pytest.mark.parametrize("where", NOWHERE)
def test_nothing_is_kept_without_a_place_for_the_key(tmp_path: Path, where: str) -> None:
    """Answers are right, the log says once why, and nothing is left in the base."""
    base = filled(tmp_path / "base", "a needle")
    environ = NOWHERE[where]
    with Client(base, environ=environ) as client:
        assert len(client.call("think", keywords=["needle"])) == 1
        client.remember("another needle")
        assert len(client.call("think", keywords=["needle"])) == 2
        client.close()
        log = client.log()
    assert log.count("kept in memory") == 1 and len(log.splitlines()) == 1, log
    environ = {**inherited(), **environ, "AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "true"}
    said = {
        verb: completed([sys.executable, "-m", "aiaml_server", *verb.split()], env=environ)
        for verb in ("doctor --offline index", "list", "sync", "status", "remember x -t y")
    }
    assert not [each for each in said.values() if "Traceback" in each.stderr]
    assert "kept in memory" in said["doctor --offline index"].stdout
    assert said["list"].stdout.count("needle") == 2
    assert said["sync"].returncode == 0 and said["remember x -t y"].returncode == 0
    assert not (base / ".index").exists() and not (base / ".git" / "aiaml" / "seen").exists()


@root
def test_nothing_is_kept_for_a_user_that_the_system_does_not_know() -> None:
    """As in a container that is started with any number for a user, and no HOME."""

    def sought() -> str:
        for name in [name for name in os.environ if name == "HOME" or name.startswith("XDG_")]:
            del os.environ[name]
        derived._sought.cache_clear()
        try:
            return key().hex()
        except NoStateDirectory as error:
            return str(error)

    assert "there is no home directory" in as_user(STRANGER, sought)


# --- the folder -----------------------------------------------------------------------------------


def test_folder_is_named_by_the_base_and_the_user(tmp_path: Path) -> None:
    """Neither a path nor a link makes another one; another base or another key does."""
    one, other = filled(tmp_path / "one"), filled(tmp_path / "other")
    assert derived._NAME.fullmatch(folder(one).name) and folder(one).name != folder(other).name
    name = folder(one, make=True).name
    with suppress(OSError):
        (tmp_path / "link").symlink_to(one)
        assert folder(tmp_path / "link").name == name
    one.rename(tmp_path / "moved")
    assert folder(tmp_path / "moved").name != name


@posix
def test_folder_is_closed_again_that_a_person_has_opened(tmp_path: Path) -> None:
    """As by `chmod -R`."""
    place = folder(filled(tmp_path / "base"), make=True)
    place.chmod(0o777)
    assert folder(tmp_path / "base", make=True) == place and place.stat().st_mode & 0o777 == 0o700


def aged(place: Path, seconds: float) -> Path:
    """Have a folder's things be as old as that."""
    for path in (*place.iterdir(), place):
        os.utime(path, (time.time() - seconds,) * 2, follow_symlinks=False)
    return place


def other_folder(base: Path, digit: str) -> Path:
    """Make a folder as it has another name elsewhere."""
    place = base / ".index" / (digit * 32)
    place.mkdir(parents=True)
    (place / "9-00000000-00000000.sqlite").write_bytes(b"whatever")
    return place


@posix
def test_folder_that_is_a_link_or_of_another_user_stays(tmp_path: Path) -> None:
    """However old it is."""
    base = filled(tmp_path / "base", "a needle")
    real = other_folder(tmp_path / "elsewhere", "a")
    (base / ".index").mkdir()
    link = base / ".index" / ("a" * 32)
    link.symlink_to(real)
    os.utime(link, (0, 0), follow_symlinks=False)
    aged(real, 2 * MONTH)
    theirs = aged(other_folder(base, "b"), 2 * MONTH)
    if os.geteuid() == 0:
        os.chown(theirs, STRANGER, STRANGER)
    found(base, "needle")
    assert link.is_symlink() and len(list(real.iterdir())) == 1
    assert theirs.exists() == (os.geteuid() == 0)


# --- a base that changes its place ----------------------------------------------------------------


def swapped(one: Path, other: Path) -> None:
    """Have two directories change names."""
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def moved_away_and_back(one: Path, other: Path) -> None:
    """Put another directory in the place of one that is moved."""
    one.rename(one.with_name("moved"))
    shutil.copytree(other, one)


def renamed(one: Path, _: Path) -> None:
    """Move a directory, and move it back."""
    one.rename(one.with_name("moved"))
    time.sleep(0.1)
    one.with_name("moved").rename(one)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A base of one user in which another may write, and a home for each."""
    top = Path(f"/tmp/aiaml-shared-{os.urandom(4).hex()}")  # noqa: S108 (others must reach it)
    top.mkdir(mode=0o755)
    base = filled(top / "base", "a needle", "a secret needle")
    for path in (base, base / "files", *(base / "files").iterdir()):
        os.chown(path, STRANGER, STRANGER)
        path.chmod(0o777 if path.is_dir() else 0o666)
    for user in (STRANGER, NEIGHBOUR):
        (top / str(user)).mkdir(mode=0o700)
        os.chown(top / str(user), user, user)
    yield base
    shutil.rmtree(top)


def in_base(base: Path, home: Path, *words: str) -> Callable[[], str]:
    """Return what runs a verb and returns what it prints."""

    def run() -> str:
        for name in [name for name in os.environ if name.startswith("XDG_")]:
            del os.environ[name]
        os.environ |= {"HOME": str(home), "AIAML_MEMORY_DIR": str(base)}
        os.environ |= {"AIAML_ENABLE_SYNC": "false", "COLUMNS": "200"}
        derived._sought.cache_clear()
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            app.run([*words])
        return printed.getvalue()

    return run


def test_cache_lies_apart_from_the_key(state: Path) -> None:
    """What holds nothing of a person's may be deleted by whoever clears caches."""
    assert sys.platform == "win32" or cache_directory() not in state.parents
