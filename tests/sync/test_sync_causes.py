"""Each kind of problem comes from a real cause: told by its word, and over when the cause is.

docs/sync.md has a row for each kind. `SHOWN` says by which test it is seen.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from aiaml_server.sync import once, problem
from aiaml_server.sync.status import LOCAL
from git_server import Terms, git_server
from loop_disk import memory_disk
from machine import Machine, bare, content_of, git
from paths import TESTS
from printed import completed

pytestmark = pytest.mark.usefixtures("nobodys_configuration")

HERE = TESTS
NOBODY = 65534
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts and modes of files")
root_only = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can do that, on Linux"
)

SHOWN = {
    "offline": "test_a_remote_that_cannot_be_reached_is_named_in_plain_words",
    "unreachable": "test_a_remote_that_cannot_be_reached_is_named_in_plain_words",
    "no-repository": "test_a_remote_that_cannot_be_reached_is_named_in_plain_words",
    "disk-away": "test_a_remote_that_cannot_be_reached_is_named_in_plain_words",
    "timeout": "test_a_call_that_takes_too_long_is_ended",
    "not-let-in": "test_a_wrong_password_is_told_and_not_asked_for",
    "helper-hangs": "test_a_credential_helper_that_hangs_is_told_within_ten_seconds",
    "portal": "test_what_a_web_server_answers_is_told_by_its_cause",
    "too-many": "test_what_a_web_server_answers_is_told_by_its_cause",
    "server-error": "test_what_a_web_server_answers_is_told_by_its_cause",
    "too-large": "test_one_memory_that_is_too_large_is_told_with_what_to_do",
    "too-much": "test_message_that_takes_hundreds_of_megabytes_is_refused",
    "refused": "test_a_remote_that_speaks_of_damage_starts_no_repair",
    "malformed": "test_an_object_that_git_cannot_read_is_named_with_what_to_do",
    "history-kept": "test_a_remote_that_refuses_is_told_as_such",
    "outrun": "test_a_race_that_is_lost_for_long_is_told_as_such",
    "address": "test_an_address_that_cannot_be_used_keeps_no_memory_away",
    "locked": "test_what_a_killed_git_left_locked_does_not_stop_commits",
    "waiting": "test_so_much_at_another_machines_word_waits_for_a_person",
    "not-exported": "test_what_gits_own_server_does_not_give_out",
    "read-only": "test_what_gits_own_server_does_not_give_out",
    "noisy-shell": "test_a_login_shell_that_prints",
    "remote": "test_words_that_nobody_knows_are_told_as_they_are",
    "git": "test_words_that_nobody_knows_are_told_as_they_are",
    "object-format": "test_a_remote_of_another_algorithm",
    "certificate": "test_a_certificate_that_nobody_vouches_for",
    "remote-disk-full": "test_a_full_disk_there_and_here",
    "disk-full": "test_a_full_disk_there_and_here",
    "disk-read-only": "test_a_disk_that_is_mounted_read_only",
    "disk": "test_a_path_that_leads_through_a_file",
    "remote-locked": "test_git_that_was_killed_in_the_remote_is_told_as_that",
    "remote-not-writable": "test_files_that_may_not_be_written_there_and_here",
    "not-ours": "test_files_that_may_not_be_written_there_and_here",
    "remote-ownership": "test_a_repository_of_another_user",
    "no-git": "test_no_git_and_an_old_one",
    "old-git": "test_no_git_and_an_old_one",
}


def kinds_in_code() -> set[str]:
    """Return each kind that sync can tell of, as its source has it."""
    tree = ast.parse(Path(problem.__file__).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(each.func.id, each.args) for each in calls if isinstance(each.func, ast.Name)]
    first = [arguments[0] for name, arguments in named if name == "Problem"]
    in_table = {cause.kind for cause in problem.causes()}
    return in_table | {
        node.value
        for argument in first
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def kinds_in_docs() -> list[str]:
    """Return the kinds that the table in docs/sync.md has rows for."""
    text = (HERE.parent / "docs" / "sync.md").read_text(encoding="utf-8")
    table = text.partition("| kind | what happened |")[2].partition("\n\n")[0]
    return re.findall(r"`([a-z-]+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)))


def sources_of_tests() -> dict[str, str]:
    """Return the source of each test of sync, with what it is given."""
    found = {}
    for path in HERE.glob("test_sync*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found[node.name] = "\n".join(text.splitlines()[start - 1 : node.end_lineno])
    return found


def test_each_kind_has_a_row_and_a_test_that_sees_it() -> None:
    """In the code, in the table and in a test: the same kinds, each once."""
    rows, tests = kinds_in_docs(), sources_of_tests()
    assert sorted(rows) == sorted(kinds_in_code())
    assert set(rows) >= LOCAL
    assert SHOWN.keys() == set(rows)
    for kind, name in SHOWN.items():
        assert f'"{kind}"' in tests[name], f"{name} does not see {kind}"


def kind_of(machine: Machine) -> str:
    """Do a round that fails, and return by what kind of problem."""
    trouble = once(machine.settings).trouble
    assert trouble
    assert trouble.remedy
    return trouble.kind


def works(machine: Machine, remote: Path) -> None:
    """See that all is well again, and nothing lost."""
    machine.remember("afterwards")
    assert once(machine.settings).problem is None
    assert content_of(remote) == machine.files


# --- the other end --------------------------------------------------------------------------------


@contextmanager
def daemon(root: Path, *options: str) -> Iterator[str]:
    """Serve repositories by git's own protocol, to this machine alone; give the address."""
    where = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    if not (Path(where.stdout.strip()) / "git-daemon").exists():
        pytest.skip("this git has no daemon")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr",
             f"--base-path={root}", "--informative-errors", *options]  # fmt: skip
    with subprocess.Popen(words, start_new_session=True, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield f"git://127.0.0.1:{port}"
        finally:
            os.killpg(server.pid, signal.SIGTERM)


@posix_only
def test_what_gits_own_server_does_not_give_out(tmp_path: Path, remote: Path) -> None:
    """Not at all, or for reading only."""
    with daemon(tmp_path) as root:
        machine = Machine(tmp_path / "ada", f"{root}/remote")
        machine.remember("hello")
        assert kind_of(machine) == "not-exported"
        (remote / "git-daemon-export-ok").touch()
        assert kind_of(machine) == "read-only"
        git(remote, "config", "daemon.receivepack", "true")
        works(machine, remote)


def at_ssh(script: Path, remote: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine whose ssh server does what a shell script says."""
    script.write_text(f"#!/bin/sh\nfor last; do :; done\n{text}\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    machine = Machine(script.parent / "ada", f"far-away:{remote}")
    machine.remember("hello")
    return machine


@posix_only
def test_a_login_shell_that_prints(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before git has a word."""
    script = tmp_path / "ssh"
    machine = at_ssh(script, remote, 'echo Welcome; exec sh -c "$last"', monkeypatch)
    assert kind_of(machine) == "noisy-shell"
    script.write_text(script.read_text().replace("echo Welcome; ", ""))
    works(machine, remote)


@posix_only
@pytest.mark.parametrize("kind", ["remote", "git"])
def test_words_that_nobody_knows_are_told_as_they_are(
    tmp_path: Path, remote: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the other end, or of git here."""
    script = tmp_path / "ssh"
    machine = at_ssh(script, remote, 'exec sh -c "$last"', monkeypatch)
    once(machine.settings)
    good = script.read_text()
    config = machine.base / ".git" / "config"
    before = config.read_text()
    if kind == "remote":
        script.write_text("#!/bin/sh\necho out of cheese >&2; exit 9\n")
    else:
        config.write_text(f"{before}[core]\n\tabbrev = cheese\n")
    assert kind_of(machine) == kind
    script.write_text(good)
    config.write_text(before)
    works(machine, remote)


def test_a_remote_of_another_algorithm(tmp_path: Path) -> None:
    """A repository that was made with SHA-256, and memories that were not."""
    other = tmp_path / "other"
    git(tmp_path, "init", "--quiet", "--bare", "--object-format=sha256", str(other))
    machine = Machine(tmp_path / "ada", other)
    machine.remember("hello")
    assert kind_of(machine) == "object-format"
    shutil.rmtree(other)
    works(machine, bare(other))


@pytest.mark.skipif(not shutil.which("openssl"), reason="nothing to make a certificate with")
def test_a_certificate_that_nobody_vouches_for(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the person's own server, until git is told of it."""
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with git_server(Terms(tmp_path), context) as root:
        machine = Machine(tmp_path / "ada", f"{root}/remote")
        machine.remember("hello")
        assert kind_of(machine) == "certificate"
        monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
        works(machine, remote)


# --- disks ----------------------------------------------------------------------------------------


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """Have no room on a disk."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):
        while stream.write(bytes(4096)):
            pass
    yield
    filler.unlink()


@root_only
@pytest.mark.parametrize("kind", ["remote-disk-full", "disk-full"])
def test_a_full_disk_there_and_here(tmp_path: Path, kind: str) -> None:
    """Until there is room."""
    with memory_disk(tmp_path / "disk", "size=1m") as place:
        there = kind == "remote-disk-full"
        remote = bare((place if there else tmp_path) / "remote")
        machine = Machine((tmp_path if there else place) / "ada", remote)
        machine.remember("one")
        assert once(machine.settings).problem is None
        machine.remember("two")
        with filled(place):
            assert kind_of(machine) == kind
        works(machine, remote)


@root_only
def test_a_disk_that_is_mounted_read_only(tmp_path: Path, remote: Path) -> None:
    """Until it can be written."""
    with memory_disk(tmp_path / "disk", "size=1m") as place:
        machine = Machine(place / "ada", remote)
        machine.remember("hello")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert kind_of(machine) == "disk-read-only"
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        works(machine, remote)


def aiaml(machine: Machine, *words: str, path: str = "", bound: bool = False) -> dict[str, object]:
    """Run a verb as a person does, and return its JSON.

    Args:
        machine: where.
        words: the verb.
        path: where programs are looked for; empty for where they usually are.
        bound: whether the modes of files bind it, also where root runs the tests.
    """
    command = [sys.executable, "-m", "aiaml_server", *words, "--json"]
    if bound and os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = completed(command, env=machine.environment(PATH=path or os.environ["PATH"]))
    found: dict[str, object] = json.loads(done.stdout or "{}")
    assert done.returncode == 1, done.stderr
    return found


@posix_only
@pytest.mark.parametrize("kind", ["remote-not-writable", "not-ours"])
def test_files_that_may_not_be_written_there_and_here(
    tmp_path: Path, remote: Path, kind: str
) -> None:
    """By their modes."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root is not bound by modes, and there is no setpriv to bind it")
    machine = Machine(tmp_path / "ada", remote)
    machine.remember("one")
    once(machine.settings)
    machine.remember("two")
    place = remote if kind == "remote-not-writable" else machine.base / ".git"
    directories = [path for path in (place / "objects").rglob("*") if path.is_dir()]
    directories.append(place / "objects")
    for path in directories:
        path.chmod(0o500)
    aiaml(machine, "sync", bound=True)
    assert aiaml(machine, "status", bound=True)["problem_kind"] == kind
    for path in directories:
        path.chmod(0o700)
    works(machine, remote)


@root_only
def test_a_repository_of_another_user(tmp_path: Path, remote: Path) -> None:
    """Git trusts none at the remote, and we none here."""
    machine = Machine(tmp_path / "ada", remote)
    machine.remember("hello")
    once(machine.settings)
    os.chown(remote, NOBODY, NOBODY)
    assert kind_of(machine) == "remote-ownership"
    os.chown(remote, 0, 0)
    os.chown(machine.base / ".git", NOBODY, NOBODY)
    assert kind_of(machine) == "not-ours"
    os.chown(machine.base / ".git", 0, 0)
    works(machine, remote)


def test_a_path_that_leads_through_a_file(tmp_path: Path, remote: Path) -> None:
    """Where a directory should be made."""
    (tmp_path / "file").touch()
    machine = Machine(tmp_path / "file" / "ada", remote)
    assert aiaml(machine, "status")["problem_kind"] == "disk"
    (tmp_path / "file").unlink()
    works(machine, remote)


@posix_only
@pytest.mark.parametrize(("version", "kind"), [("", "no-git"), ("git version 2.20.1", "old-git")])
def test_no_git_and_an_old_one(tmp_path: Path, remote: Path, version: str, kind: str) -> None:
    """Told by `status` before any round."""
    machine = Machine(tmp_path / "ada", remote)
    machine.remember("hello")
    directory = tmp_path / "bin"
    directory.mkdir()
    if version:
        (directory / "git").write_text(f"#!/bin/sh\necho {version}\n")
        (directory / "git").chmod(0o755)
    assert aiaml(machine, "status", path=str(directory))["problem_kind"] == kind
    works(machine, remote)


def test_sync_tells_a_failure_as_json_too(tmp_path: Path) -> None:
    """As `status` does."""
    machine = Machine(tmp_path / "ada", tmp_path / "nowhere")
    machine.remember("hello")
    told = aiaml(machine, "sync")["problem_kind"]
    assert told and told == aiaml(machine, "status")["problem_kind"]
