"""The repository stays small, whoever made its commits, and nobody waits for that."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from aiaml_server.sync import tidy
from machine import Machine, content_of, git
from waiting import wait_until

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts stand in for git")


def size(machine: Machine) -> int:
    """Return the bytes of a machine's repository."""
    return sum(path.stat().st_size for path in (machine.base / ".git").rglob("*") if path.is_file())


def filled(machine: Machine, number: int) -> None:
    """Have many memories committed."""
    directory = machine.base / "files"
    directory.mkdir(parents=True, exist_ok=True)
    for each in range(number):
        (directory / f"20240101_000000_{each:08x}.md").write_text(f"memory {each}")
    machine.synced()


@pytest.mark.slow
def test_who_only_receives_is_tidied(
    ada: Machine, bob: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most two kilobytes for each memory, and its part of what any repository may have."""
    monkeypatch.setattr(tidy, "_LEAST", 256 * 1024)
    monkeypatch.setattr(tidy, "_FOR_EACH", 64)
    filled(ada, 2000)
    bob.synced()
    for _ in range(20):
        ada.remember("x")
        ada.synced()
        bob.synced()
        bob.rounds.tidy.wait()
    assert bob.files == ada.files
    assert size(bob) <= 2048 * 2020
    left, _ = bob.rounds.tidy._lying_about()  # each arrival brings some 75 KB
    assert left <= 2 * 256 * 1024
    assert bob.git("fsck", "--no-dangling") == ""


def test_what_lies_about_is_counted_while_git_packs(ada: Machine) -> None:
    """A directory of objects that cannot be listed, as one that is gone by then, hides no pack."""
    filled(ada, 3)
    whole = ada.rounds.tidy._lying_about()
    (ada.base / ".git" / "objects" / "zz").write_bytes(b"")
    assert ada.rounds.tidy._lying_about() == whole
    assert whole[1]


@posix_only
def test_a_round_does_not_wait_for_it(
    ada: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes; and it ends with the server."""
    slow = tmp_path / "slow"
    slow.write_text(f'#!/bin/sh\ntouch {tmp_path}/begun\nsleep 60\nexec "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(tidy, "_LEAST", 0)
    monkeypatch.setattr(tidy, "_FOR_EACH", 0)
    ada.rounds.tidy._git.prefix = [str(slow)]
    ada.remember("one")
    ada.synced()
    wait_until((tmp_path / "begun").exists)
    memory = ada.remember("two")
    ada.synced()
    assert memory.id in ada.messages()[0]
    ada.rounds.end_calls(local=False)
    ada.rounds.tidy.wait()


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1])
def test_a_kill_in_the_middle_harms_nothing(
    ada: Machine, remote: Path, after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that was in git still is."""
    monkeypatch.setattr(tidy, "_LEAST", 1 << 40)
    filled(ada, 300)
    for number in range(5):
        ada.remember(f"{number}")
        ada.synced()
    before = git(ada.base, "rev-list", "--all", "--objects", "--count")
    monkeypatch.setattr(tidy, "_LEAST", 0)
    monkeypatch.setattr(tidy, "_FOR_EACH", 0)
    ada.rounds.tidy.begin()
    time.sleep(after)
    for process in list(ada.rounds.tidy._git._running):
        process.send_signal(signal.SIGKILL)
    ada.rounds.tidy.wait()
    assert ada.git("fsck", "--no-dangling") == ""
    assert git(ada.base, "rev-list", "--all", "--objects", "--count") == before
    ada.remember("more")
    ada.restart()
    ada.synced()
    assert content_of(remote) == ada.files
