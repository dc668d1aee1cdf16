"""Git runs without prompts, foreign configuration or processes that outlive a call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.errors import GitMissing
from aiaml_server.git import TIMED_OUT, Git, GitFailed
from waiting import wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the planted git is a shell script")


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Git]:
    """Return a function that installs a shell script as the only git on the PATH."""

    def install(script: str) -> Git:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        (tmp_path / "base").mkdir()
        return Git(tmp_path / "base", {"GIT_DIR": "/ours"})

    return install


def is_running(process_id: int) -> bool:
    """Return whether a process exists and is no zombie."""
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process_id)], check=False, capture_output=True, text=True
    )
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")


def test_environment_has_no_variable_that_redirects_git(
    plant: Callable[[str], Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables such as GIT_DIR are ours or absent; those that reach a remote stay."""
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INVENTED_TOMORROW", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, "/foreign")
    monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -v")
    lines = plant("env").run("version").decode().splitlines()
    assert {"GIT_DIR=/ours", "GIT_SSH_COMMAND=ssh -v", "GIT_TERMINAL_PROMPT=0"} <= {*lines}
    assert [line for line in lines if line.endswith("=/foreign")] == []


def test_only_network_commands_may_use_a_protocol(plant: Callable[[str], Git]) -> None:
    """A local command cannot fetch what a partial clone lacks."""
    git = plant("echo ${GIT_ALLOW_PROTOCOL-any}")
    assert git.run("status") == b"\n"
    assert git.run("fetch") == b"https:http:ssh:git:file:gcrypt\n"


def test_hanging_command_is_killed_with_its_children(
    plant: Callable[[str], Git], tmp_path: Path
) -> None:
    """The time limit ends the whole process group."""
    child = tmp_path / "child"
    child.touch()
    git = plant(f"sleep 600 & echo $! > {child}; wait")
    seconds = 1
    while not child.read_text():  # on a busy machine, a short limit ends before the child begins
        with pytest.raises(GitFailed, match=f"no answer within {seconds} s") as caught:
            git.run("version", seconds=seconds)
        assert caught.value.exit_code == TIMED_OUT
        seconds *= 2
    wait_until(lambda: not is_running(int(child.read_text())))


def test_no_zombie_stays(plant: Callable[[str], Git], monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed command is reaped."""
    killed: list[int] = []
    killpg = os.killpg

    def kill(group: int, number: int) -> None:
        killed.append(group)
        killpg(group, number)

    monkeypatch.setattr(os, "killpg", kill)
    git = plant("exec sleep 60")
    with pytest.raises(GitFailed):
        git.run("version", seconds=0.2)
    with pytest.raises(ChildProcessError):
        os.waitpid(killed[0], os.WNOHANG)


def test_stop_kills_what_runs_and_refuses_new_commands(plant: Callable[[str], Git]) -> None:
    """Closing a server waits for no git."""
    git = plant("sleep 60")
    threading.Timer(0.3, git.stop).start()
    with pytest.raises(GitFailed):
        git.run("version")
    with pytest.raises(GitFailed, match="the server is closing"):
        git.run("version")


def test_lock_stays_held_while_a_command_of_a_killed_process_runs(tmp_path: Path) -> None:
    """Nobody else works in a repository while a git command of a killed server still does."""
    fcntl = pytest.importorskip("fcntl")
    lock, ready, go = tmp_path / "lock", tmp_path / "ready", tmp_path / "go"
    os.mkfifo(go)
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\ntouch {ready}\nread line < {go}\n")
    git.chmod(0o755)
    script = (
        "import fcntl, sys; from pathlib import Path; from aiaml_server.git import Git\n"
        f"stream = open({os.fspath(lock)!r}, 'w'); fcntl.flock(stream, fcntl.LOCK_EX)\n"
        f"git = Git(Path({os.fspath(tmp_path)!r})); git.inherited = (stream.fileno(),)\n"
        "git.run('status')"
    )
    environment = {**os.environ, "PATH": f"{git.parent}{os.pathsep}{os.environ['PATH']}"}
    server = subprocess.Popen([sys.executable, "-c", script], env=environment)
    while not ready.exists():
        assert server.poll() is None
    server.kill()
    server.wait()
    with lock.open("w") as stream:
        with pytest.raises(BlockingIOError):
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        go.write_text("\n")
        fcntl.flock(stream, fcntl.LOCK_EX)


def test_import_of_gitpython_runs_no_program(tmp_path: Path) -> None:
    """Neither a git in the current directory nor one that a variable names is run."""
    for name in ("git", "named"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (tmp_path / name).chmod(0o755)
    script = (
        "from pathlib import Path; from aiaml_server.git import Git, GitFailed\n"
        "from aiaml_server.errors import GitMissing\n"
        "try: Git(Path('.')).run('version')\nexcept GitMissing: print('missing')"
    )
    variables = {"PATH": ".:", "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "named")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "missing\n"
    assert not (tmp_path / "ran").exists()


def test_missing_directory_or_program_is_an_error(
    plant: Callable[[str], Git], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git never runs in the current directory instead."""
    with pytest.raises(GitFailed, match="cannot be entered"):
        Git(tmp_path / "nowhere").run("version")
    git = plant("exit 0")
    (tmp_path / "bin" / "git").unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(GitMissing):
        git.run("version")


def test_password_in_an_address_is_hidden_in_errors(plant: Callable[[str], Git]) -> None:
    """Errors show no password."""
    git = plant("echo cannot read https://ada:sesame@example.org/x >&2; exit 3")
    with pytest.raises(GitFailed) as caught:
        git.run("fetch")
    assert "sesame" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A program that leaves a file if it runs."""
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    return program


def test_hostile_configuration_of_a_repository_runs_nothing(tmp_path: Path, evil: Path) -> None:
    """Hooks, filters, signing and whatever else a repository configures are not used."""
    git, other = Git(tmp_path), Git(tmp_path / "other")
    git.run("init", "--quiet")
    git.run("init", "--quiet", "other")
    for key in (
        "core.fsmonitor", "gpg.program", "core.pager", "core.editor", "filter.evil.clean",
        "core.alternateRefsCommand",
    ):  # fmt: skip
        git.run("config", key, os.fspath(evil))
    for key in ("commit.gpgSign", "log.showSignature"):
        git.run("config", key, "true")
    git.run("config", "core.attributesFile", os.fspath(tmp_path / "attributes"))
    (tmp_path / "attributes").write_text("* filter=evil\n")
    alternates = tmp_path / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{tmp_path / 'other' / '.git' / 'objects'}\n")
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(evil.read_text())
    hook.chmod(0o755)
    (tmp_path / "note").write_text("text")
    git.run("add", "note")
    for each in (git, other):
        each.variables = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "a")
        each.variables |= dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@b.test")
        each.run("commit", "--quiet", "--allow-empty", "-m", each.directory.name)
    git.run("status")
    git.run("fetch", "--quiet", os.fspath(other.directory), "HEAD")
    head, _, message = git.run("cat-file", "commit", "HEAD").partition(b"\n\n")
    signed = (
        head + b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\n" + message
    )
    name = git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed).decode().strip()
    assert git.run("log", "--format=%s", "--max-count=1", name)
    assert not (tmp_path / "ran").exists()


def test_bare_repository_that_nobody_names_is_not_used(tmp_path: Path) -> None:
    """A directory of a clone can hold one, with a configuration of its own."""
    if Git(tmp_path).run("version") < b"git version 2.38":
        pytest.skip("this git knows no safe.bareRepository")
    Git(tmp_path).run("init", "--quiet", "--bare", "inner")
    with pytest.raises(GitFailed, match="bare"):
        Git(tmp_path / "inner").run("rev-parse", "--git-dir")


def test_nobody_is_asked_for_a_password(tmp_path: Path, evil: Path, forbidding: str) -> None:
    """Neither by a program that the repository names nor on a terminal."""
    git = Git(tmp_path)
    git.run("init", "--quiet")
    git.run("config", "core.askPass", os.fspath(evil))
    with pytest.raises(GitFailed, match="could not read Username"):
        git.run("ls-remote", f"http://{forbidding}/memories.git")
    assert not (tmp_path / "ran").exists()
