"""What has a name of ours in a base directory and is not ours: nothing is followed or waited for.

A base directory may have been cloned, unpacked or shared. A clone is used as it is (docs/sync.md),
so whatever lies in it must be harmless.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import MalformedFile, StoreError, TooLarge, UnsafePath
from aiaml_server.files import (
    TEMPORARY_NAME,
    hold_lock,
    make_own_directory,
    open_own,
    read_own,
    read_regular,
    remove_own,
    remove_stale_temporaries,
    replace_atomic,
)
from aiaml_server.settings import Settings
from aiaml_server.sync import Status
from client import NOTE, SERVER, Client
from machine import CLEAN, Machine

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root gives files to another user"
)
SECONDS = 60.0  # no call may take longer, whatever is in its way
STRANGER = 65534
OLD = (1, 1)


def link_to_file(path: Path, canary: Path) -> None:
    """Point to another program's file."""
    path.symlink_to(canary / "authorized_keys")


def link_to_directory(path: Path, canary: Path) -> None:
    """Point to another program's directory, which has databases of its own."""
    path.symlink_to(canary)


def link_to_nothing(path: Path, canary: Path) -> None:
    """Point to where a file would be made."""
    path.symlink_to(canary / "made")


def link_to_endless(path: Path, _: Path) -> None:
    """Point to what can be read for ever."""
    path.symlink_to("/dev/zero")


def pipe(path: Path, _: Path) -> None:
    """Wait for a writer that never comes."""
    os.mkfifo(path)


def listening(path: Path, _: Path) -> None:
    """Be a socket; its name must be short, so it is made from within its directory."""
    here = Path.cwd()
    os.chdir(path.parent)
    with closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(path.name)
    os.chdir(here)


def other_name(path: Path, canary: Path) -> None:
    """Be another program's file itself, under a second name, as an archive can unpack one."""
    path.hardlink_to(canary / "authorized_keys")


def directory(path: Path, _: Path) -> None:
    """Be a directory with something in it."""
    path.mkdir()
    (path / "something").write_text("of somebody")


def strangers(path: Path, _: Path) -> None:
    """Belong to another user: a directory or a file, as ours would be."""
    path.write_text("{}")
    os.chown(path, STRANGER, STRANGER)


KINDS: list[Callable[[Path, Path], None]] = [
    link_to_file,
    link_to_directory,
    link_to_nothing,
    link_to_endless,
    pipe,
    listening,
    other_name,
    directory,
]
kinds = pytest.mark.parametrize(
    "kind",
    [*KINDS, pytest.param(strangers, marks=root)],
    ids=lambda kind: getattr(kind, "__name__", ""),
)
PLACES = [
    ".lock",
    ".sync.lock",
    ".sync-status.json",
    ".sync-status.json.new",
    ".sync-forget",
]


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """A directory of another program; afterwards it is as it was."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "authorized_keys").write_text("ssh-ed25519 AAAA somebody\n")
    for name in ("other.sqlite", "1-0123abcd.sqlite", ".x.md.tmp"):
        (outside / name).write_text(f"precious {name}")
        os.utime(outside / name, OLD)
    before = state(outside)
    yield outside
    found = state(outside)
    found[str(outside)] = before[str(outside)]  # its time; a test may have made a repository there
    assert found == before


def state(top: Path) -> dict[str, tuple[int, int, str]]:
    """Return the mode, time and content of everything in a tree."""
    found = {}
    for path in [top, *sorted(top.rglob("*"))]:
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(data).hexdigest()
        found[str(path)] = (status.st_mode, status.st_mtime_ns, digest)
    return found


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base directory with a memory, in git."""
    machine = Machine(tmp_path / "base")
    machine.remember("kept")
    machine.synced()
    machine.bank.think(["kept"])
    machine.bank.close()
    return machine.base


def plant(base: Path, place: str, kind: Callable[[Path, Path], None], canary: Path) -> None:
    """Put something in the place of what is ours."""
    path = base / place
    path.parent.mkdir(exist_ok=True)
    remove_own(path)
    kind(path, canary)


@pytest.mark.gate_cases(11)
@posix
@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", PLACES)
@kinds
def test_memory_works_whatever_has_our_names(
    base: Path, canary: Path, place: str, kind: Callable[[Path, Path], None]
) -> None:
    """It is stored, found, read and committed at once; nothing outside is touched."""
    plant(base, place, kind, canary)
    machine = Machine(base)
    memory = machine.remember("new")
    assert [hit.id for hit in machine.bank.think(["new"])] == [memory.id]
    assert machine.bank.recall([memory.id]) == {memory.id: [memory]}
    status = machine.sync()
    problem = status.problem or ""
    machine.bank.close()
    if place == ".sync.lock" and kind is not other_name:  # who cannot lock may not commit
        assert f"{base / place} is " in str(problem)
    else:
        assert (problem, status.problem) == ("", None)
        assert any(memory.id in subject for subject in machine.messages())


@pytest.mark.slow
@posix
@pytest.mark.timeout(300)
@kinds
def test_no_verb_waits_or_reaches_out(
    base: Path, canary: Path, kind: Callable[[Path, Path], None]
) -> None:
    """With all our names taken at once, each verb ends in seconds, and says what it has to."""
    for place in (".lock", ".sync.lock", ".sync-status.json"):
        plant(base, place, kind, canary)
    lines = canary.parent / "one.jsonl"
    lines.write_text(json.dumps({**NOTE, "content": "brought"}) + "\n", "utf-8")
    environ = {"AIAML_ENABLE_SYNC": "true", **CLEAN}
    with Client(base, environ=environ) as client:
        memory_id = client.call("remember", **NOTE, content="needle")["memory_id"]
        assert [hit["id"] for hit in client.call("think", keywords=["needle"])] == [memory_id]
        assert client.call("recall", memory_ids=[memory_id])[0]["content"] == "needle"
    for line in (
        f"show {memory_id}", "list", "search needle", "stats", "remember x -t y",
        f"log {memory_id}", "log", "status", "doctor --offline disk files index sync",
        "sync", "export --to -", f"import {lines} --yes",
        f"forget --everywhere {memory_id} --dry-run", f"forget {memory_id} --yes",
        f"restore {memory_id}",
    ):  # fmt: skip
        done = subprocess.run(
            [*SERVER, *line.split()],
            env={**os.environ, **environ, "AIAML_MEMORY_DIR": str(base)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert "Traceback" not in done.stderr, (line, done.stderr)
        assert done.returncode in (0, 1, 2), (line, done.stderr)
        if line == "sync" and kind is not other_name:
            assert f"{base / '.sync.lock'} is " in done.stderr
            assert "another process" not in done.stderr
        usable = kind is other_name
        if line.startswith("doctor"):
            assert (f"{base / '.sync.lock'} is " in done.stdout) is not usable, done.stdout
        if line.startswith("remember"):
            assert (f"lock file {base / '.lock'}: it is " in done.stderr) is not usable, done


@posix
def test_what_has_our_name_is_seen_before_it_is_opened(tmp_path: Path, canary: Path) -> None:
    """Opening a device can have effects of its own, and opening a pipe never ends."""
    path = tmp_path / "own"
    for kind in (each for each in KINDS if each is not other_name):
        kind(path, canary)
        for call in (read_own, open_own):
            with pytest.raises(UnsafePath, match=f"{path} is a .*; move it away"):
                call(path, os.O_RDONLY)
        with hold_lock(path, 5.0) as hold:
            assert not hold.acquired
            assert isinstance(hold.problem, UnsafePath)
        if kind is not directory:
            with pytest.raises(UnsafePath):
                make_own_directory(path)
        remove_own(path)
        assert not os.path.lexists(path)


@root
@posix
def test_a_file_is_ours_where_its_directory_is_by_the_same_user(tmp_path: Path) -> None:
    """In a container, a person's files may belong to a number that is not ours."""
    for owners in ((STRANGER, STRANGER), (0, 0), (STRANGER, 0)):
        path = tmp_path / "file"
        path.write_text("text")
        for each, owner in zip((tmp_path, path), owners, strict=True):
            os.chown(each, owner, owner)
        assert read_own(path, 4) == b"text"
    os.chown(tmp_path, 0, 0)
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(UnsafePath, match="another user's"):
        read_own(path, 4)


def test_more_than_is_ever_written_is_not_read(tmp_path: Path) -> None:
    """What is too large for a file of ours was made by something else."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1025)
    with pytest.raises(UnsafePath, match="larger than 1,024 bytes"):
        read_own(path, 1024)
    path.write_bytes(b"x" * 1024)
    assert read_own(path, 1024) == b"x" * 1024


def test_a_limit_is_named(tmp_path: Path) -> None:
    """By whatever reads a file, and also where the error says it in a sentence of the disk's."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 2001)
    with pytest.raises(UnsafePath, match="larger than 2,000 bytes;") as refused:
        read_own(path, 2000)
    assert "larger than 2,000 bytes;" in str(StoreError("read", path, refused.value))
    with pytest.raises(TooLarge, match="larger than 2,000 bytes: 2,001"):
        read_regular(str(path), 2000)


@posix
def test_what_replaces_a_file_before_it_is_opened_is_not_read(tmp_path: Path, canary: Path) -> None:
    """A link, a pipe or a larger file may have its name a moment after it was examined."""
    path = tmp_path / "file"
    path.write_bytes(b"text")
    status = os.lstat(path)
    assert read_regular(str(path), 4, status) == b"text"
    path.write_bytes(b"larger")
    with pytest.raises(TooLarge):
        read_regular(str(path), 4, status)
    for kind in (each for each in KINDS if each is not other_name):
        remove_own(path)
        kind(path, canary)
        with pytest.raises((OSError, MalformedFile)):
            read_regular(str(path), 4, status)


@posix
def test_a_link_of_the_person_s_own_is_followed(tmp_path: Path) -> None:
    """`files/` may be a folder in a notes vault, and the base directory a link."""
    vault, real = tmp_path / "vault", tmp_path / "real"
    vault.mkdir()
    real.mkdir()
    (real / "files").symlink_to(vault)
    (tmp_path / "base").symlink_to(real)
    machine = Machine(tmp_path / "base")
    memory = machine.remember("in a vault")
    assert (vault / memory.file_name).is_file()
    assert [hit.id for hit in machine.bank.think(["vault"])] == [memory.id]
    machine.bank.close()


def test_only_names_of_our_own_are_deleted(tmp_path: Path) -> None:
    """In a notes vault, the hidden temporary files of other programs are theirs."""
    bank = MemoryBank(Settings(tmp_path))
    bank.remember("claude", "marco", ["x"], "one")
    files = tmp_path / "files"
    others = [".other.tmp", ".~lock.note.odt#.tmp", ".aiaml-notes.tmp", ".aiaml-2026.tmp"]
    others += [".notes.md.tmp", ".notes.md.0a1b2c3d.tmp"]
    ours = [".aiaml-0123456789abcdef0.tmp"]
    for path in [files / name for name in others + ours]:
        path.write_text("half")
        os.utime(path, OLD)
    fresh = MemoryBank(Settings(tmp_path))
    memory = fresh.remember("claude", "marco", ["x"], "two")
    fresh.forget({memory.file_name: fresh.text(memory.file_name)})
    assert fresh.think(["one"])
    fresh.close()
    assert {name for name in others + ours if (files / name).exists()} == set(others)


@posix
def test_remove_left_takes_old_files_of_this_user_alone(tmp_path: Path, canary: Path) -> None:
    """Of what has our mark: no link, no directory, nothing young."""
    names = [f".aiaml-{number:017x}.tmp" for number in range(4)]
    old, young, link, directory = (tmp_path / name for name in names)
    old.write_text("half")
    young.write_text("half")
    link.symlink_to(canary)
    directory.mkdir()
    for path in (old, link, directory):
        os.utime(path, OLD, follow_symlinks=False)
    remove_stale_temporaries(tmp_path, names, 3600)
    assert [os.path.lexists(tmp_path / name) for name in names] == [False, True, True, True]
    remove_stale_temporaries(tmp_path, names, 0)
    assert [os.path.lexists(tmp_path / name) for name in names] == [False, False, True, True]


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    """What is written under another name at first needs no longer one than it has in the end."""
    path = tmp_path / f"{'a' * 252}.md"
    replace_atomic(path, b"text")
    assert path.read_bytes() == b"text"
    assert TEMPORARY_NAME.fullmatch(f".aiaml-{os.urandom(8).hex()}.tmp")


@posix
def test_a_status_that_is_not_ours_is_none(tmp_path: Path, canary: Path) -> None:
    """Whoever asks how sync stands hears that nothing is known, and is not kept waiting."""
    for kind in KINDS:
        kind(tmp_path / ".sync-status.json", canary)
        assert Status.read(tmp_path) == Status()
        with suppress(OSError):
            Status(unsent=1).write(tmp_path)
        remove_own(tmp_path / ".sync-status.json")
    Status(unsent=1).write(tmp_path)
    assert Status.read(tmp_path).unsent == 1
