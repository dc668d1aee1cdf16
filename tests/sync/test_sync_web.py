"""A remote behind a web server: what it refuses is understood, and no password is shown."""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from git_server import Terms, git_server
from machine import Machine, content_of

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the helper")


@pytest.fixture
def terms(remote: Path) -> Terms:
    """How the web server in front of the remote behaves."""
    return Terms(remote.parent)


@pytest.fixture
def address(terms: Terms, remote: Path) -> Iterator[str]:
    """The address of the remote behind the web server."""
    with git_server(terms) as root:
        yield f"{root}/{remote.name}"


@contextmanager
def watched() -> Iterator[set[bytes]]:
    """Read the command line of every process of this machine, again and again."""
    seen: set[bytes] = set()
    end = threading.Event()

    def look() -> None:
        while not end.is_set():
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    seen.add(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows command lines in /proc")
def test_a_password_stands_on_no_command_line(
    tmp_path: Path, terms: Terms, address: str, remote: Path
) -> None:
    """Neither while fetching nor while pushing; and it is the one that lets us in."""
    terms.login = 'ada:h/u"n $ter@2'
    url = address.replace("http://", "http://ada:h%2Fu%22n%20$ter%402@")
    ada, bob = Machine(tmp_path / "ada", url), Machine(tmp_path / "bob", url)
    with watched() as seen:
        ada.remember("hello")
        ada.synced()
        bob.synced()
    assert bob.files == ada.files == content_of(remote)
    words = b"\n".join(seen)
    assert b"remote-http" in words  # what was looked for was seen
    assert b"ter@2" not in words
    assert b"ter%402" not in words


def test_a_wrong_password_is_told_and_not_asked_for(
    tmp_path: Path, terms: Terms, address: str
) -> None:
    """And it stays in its file, for the next try."""
    terms.login = "ada:right"
    machine = Machine(tmp_path / "ada", address.replace("http://", "http://ada:wrong@"))
    machine.remember("hello")
    for _ in range(2):
        status = machine.sync()
        assert status.problem_kind == "not-let-in"
    assert "wrong" not in str(status)


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((429, "slow down"), "too-many"),
        ((500, "oh"), "server-error"),
        ((503, "later"), "server-error"),
        ((200, "<html>Welcome to the hotel. Sign in</html>"), "portal"),
        ((403, "no"), "not-let-in"),
        ((404, "nothing"), "no-repository"),
    ],
)
def test_what_a_web_server_answers_is_told_by_its_cause(
    tmp_path: Path, terms: Terms, address: str, answer: tuple[int, str], kind: str
) -> None:
    """As git words it, from a real server."""
    terms.answer = answer
    machine = Machine(tmp_path / "ada", address)
    machine.remember("hello")
    assert machine.sync().problem_kind == kind


@pytest.mark.slow
@pytest.mark.parametrize("number", [30, 600])
def test_what_is_too_large_for_a_web_server_goes_in_pieces(
    tmp_path: Path, terms: Terms, address: str, remote: Path, number: int
) -> None:
    """Servers are shipped with a limit for a request, which a first push may exceed."""
    terms.largest = 1_000_000
    machine = Machine(tmp_path / "ada", address)
    directory = machine.base / "files"
    directory.mkdir(parents=True)
    for each in range(number):
        text = secrets.token_hex(3_000_000 // number)
        (directory / f"20240101_000000_{each:08x}.md").write_text(text)
    machine.synced()
    assert content_of(remote) == machine.files
    assert max(terms.sizes) > terms.largest  # the first try was refused


def test_one_memory_that_is_too_large_is_told_with_what_to_do(
    tmp_path: Path, terms: Terms, address: str
) -> None:
    """No pieces are small enough then."""
    terms.largest = 100_000
    machine = Machine(tmp_path / "ada", address)
    machine.remember(secrets.token_hex(200_000))
    status = machine.sync()
    assert status.problem_kind == "too-large"
    assert "client_max_body_size" in str(status.what_to_do)


@pytest.mark.slow
@posix_only
def test_a_credential_helper_that_hangs_is_told_within_ten_seconds(
    tmp_path: Path, terms: Terms, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a window that nobody sees; nothing of it is left running."""
    terms.login = "ada:right"
    helper = tmp_path / "helper"
    helper.write_text("#!/bin/sh\nsleep 60\n")
    helper.chmod(0o755)
    config = tmp_path / "config"
    config.write_text(f"[credential]\n\thelper = {helper}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    machine = Machine(tmp_path / "ada", address)
    machine.remember("hello")
    status = machine.sync()
    assert status.problem_kind == "helper-hangs"
    assert not (machine.base / ".git" / "aiaml" / "trace").exists()
