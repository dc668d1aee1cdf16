"""The recipe of docs/safe.md: a remote that git-remote-gcrypt encrypts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from aiaml_server.sync.remote import setup_remote
from machine import Machine, append, bare, git, settle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("git-remote-gcrypt") and shutil.which("gpg")),
        reason="git-remote-gcrypt and gpg are not installed",
    ),
]


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a key without a passphrase, and return its name."""
    with TemporaryDirectory(prefix="gpg-") as home:  # short: it holds a socket
        monkeypatch.setenv("GNUPGHOME", home)
        words = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key"]
        subprocess.run([*words, "memories"], check=True, capture_output=True)
        yield "memories"
        subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


@pytest.fixture
def machines(tmp_path: Path, key: str) -> list[Machine]:
    """Return two computers that are set up as the page says."""
    remote = bare(tmp_path / "remote")
    found = []
    for name in ("ada", "bob"):
        machine = Machine(tmp_path / name)
        machine.sync()
        git(machine.base, "config", "gcrypt.participants", key)
        git(machine.base, "config", "user.signingkey", key)
        setup_remote(machine.base, f"gcrypt::{remote}")
        found.append(machine)
    return found


def test_encrypted_remote(machines: list[Machine], tmp_path: Path) -> None:
    """Store, edit, forget, forget everywhere; the host sees neither content nor names."""
    ada, bob = machines
    stays, goes, secret = (ada.remember(text) for text in ("stays", "goes", "for nobody"))
    settle(machines)
    assert ada.files == bob.files
    assert len(bob.files) == 3
    append(bob.path(stays), "edited by bob")
    bob.path(goes).unlink()
    settle([bob, ada])
    assert ada.files == bob.files
    assert b"edited by bob" in ada.files[stays.file_name]
    ada.purge_sums = ada.sums(secret.file_name)
    settle(machines)
    ada.path(secret).unlink(missing_ok=True)
    bob.remember("afterwards")
    settle([bob, ada])
    assert ada.files == bob.files
    assert secret.file_name not in ada.files
    for machine in machines:
        history = git(machine.repository, "log", "--name-only", "--format=%s", "main")
        assert secret.file_name not in history
    third = Machine(tmp_path / "third")
    third.sync()
    setup_remote(third.base, f"gcrypt::{tmp_path / 'remote'}")
    third.synced()
    assert third.files == ada.files
    on_host = b"".join(
        path.read_bytes() for path in (tmp_path / "remote").rglob("*") if path.is_file()
    )
    assert b"edited by bob" not in on_host
    assert stays.file_name.encode() not in on_host
