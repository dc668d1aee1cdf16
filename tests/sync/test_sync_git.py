"""git is run through GitPython, and none of what that does by itself reaches a memory directory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from aiaml_server.errors import GitMissing
from aiaml_server.sync import command
from aiaml_server.sync.command import Git, GitFailed
from machine import Machine
from printed import inherited
from waiting import wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the planted git is a shell script")


@pytest.fixture
def planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[str], Git]:
    """Return what plants a script as the only git, and returns what runs it."""

    def plant(script: str) -> Git:
        path = tmp_path / "bin" / "git"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        command._program.cache_clear()
        request.addfinalizer(command._program.cache_clear)
        (tmp_path / "base").mkdir()
        return Git(tmp_path / "base")

    return plant


def test_gitpython_destructor_kills_nothing(
    planted: Callable[[str], Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that works while garbage is collected comes to its end."""
    monkeypatch.setattr(command, "_MEANWHILE_SECONDS", 0.05)
    git = planted("sleep 0.5; echo done")
    collected: list[int] = []
    assert git.run("version", meanwhile=lambda: collected.append(gc.collect())) == b"done\n"
    assert collected


def test_gitpython_environment_is_cleared(
    planted: Callable[[str], Git], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What steers git elsewhere is handed on by nobody, and still there for others afterwards."""
    astray = {"GIT_DIR": "/x", "GIT_OBJECT_DIRECTORY": "/x", "GIT_INVENTED_TOMORROW": "/x"}
    for name, value in {**astray, "GIT_SSH_COMMAND": "ssh -v"}.items():
        monkeypatch.setenv(name, value)
    git = planted("env")
    monkeypatch.setenv("GIT_TRACE", "/x")  # later than our own look at the environment
    told = git.run("version", variables={"GIT_DIR": "/ours"}).decode().splitlines()
    found = {line for line in told if line.startswith("GIT_")}
    assert {"GIT_DIR=/ours", "GIT_SSH_COMMAND=ssh -v", "GIT_TERMINAL_PROMPT=0"} <= found
    assert not [line for line in found if line.endswith("=/x")]
    assert {name: os.environ[name] for name in astray} == astray
    assert os.environ["GIT_TRACE"] == "/x"


def test_gitpython_timeout_is_ours(planted: Callable[[str], Git], tmp_path: Path) -> None:
    """A git that hangs is killed in time, with the programs that it started."""
    git = planted(f"sleep 60 & echo $! > {tmp_path / 'child'}; wait")
    with pytest.raises(GitFailed, match=r"no end after 0\.5 s"):
        git.run("version", seconds=0.5)
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not _runs(child))


def _runs(process: int) -> bool:
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True)  # noqa: PLW1510
    return bool(done.stdout.strip()) and not done.stdout.startswith(b"Z")


def test_gitpython_end_kills_what_runs(planted: Callable[[str], Git]) -> None:
    """Closing a server waits for no git, and starts none afterwards."""
    git = planted("sleep 60")
    threading.Timer(0.3, git.end).start()
    with pytest.raises(GitFailed):
        git.run("version")
    with pytest.raises(GitFailed, match="the server is closing"):
        git.run("version")


def test_gitpython_import_runs_no_program(tmp_path: Path) -> None:
    """Neither a git of the current directory nor one that a variable names; nor is that lost."""
    for name in ("git", "named"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        (tmp_path / name).chmod(0o755)
    script = (
        "import os; from aiaml_server.sync.command import _launcher; _launcher(); "
        "print(os.environ['GIT_PYTHON_GIT_EXECUTABLE'], 'GIT_PYTHON_REFRESH' in os.environ)"
    )
    named = str(tmp_path / "named")
    environ = {**inherited(), "PATH": f".{os.pathsep}", "GIT_PYTHON_GIT_EXECUTABLE": named}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, env=environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{named} False\n"
    assert not (tmp_path / "ran").exists()


def test_gitpython_directory_gone_is_told(tmp_path: Path) -> None:
    """Git is not run in the current directory instead."""
    with pytest.raises(GitFailed, match="is gone"):
        Git(tmp_path / "nowhere").run("version")


def test_gitpython_program_gone_is_told(planted: Callable[[str], Git], tmp_path: Path) -> None:
    """A git that was uninstalled under a running server is named as missing."""
    git = planted("exit 0")
    git.run("version")
    (tmp_path / "bin" / "git").unlink()
    with pytest.raises(GitMissing):
        git.run("version")


def test_gitpython_stays_off_the_way_to_an_answer(tmp_path: Path) -> None:
    """It is imported where git is asked, and by no verb that does without."""
    machine = Machine(tmp_path / "base")
    machine.remember("hello")
    script = (
        "import sys; from aiaml_server.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print('git' in sys.modules)"
    )
    for verb, asks in {"list": False, "status": True}.items():
        done = subprocess.run(
            [sys.executable, "-c", script, verb],
            env=machine.environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == str(asks)
