"""Programs: which are started, from where, and with what words."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from aiaml_server.storage import programs
from client import SERVER, Client
from machine import CLEAN
from paths import ROOT
from printed import inherited
from waiting import wait_until

PACKAGE = ROOT / "src" / "aiaml_server"
posix = pytest.mark.skipif(os.name != "posix", reason="the planted programs are shell scripts")


# --- where they are looked for --------------------------------------------------------------------


def program(directory: Path, name: str) -> str:
    """Make a program."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (name + (".exe" if os.name == "nt" else ""))
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../here/bin"])
def test_a_relative_entry_of_the_path_is_passed_over(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty entry is the current directory, too; what stands behind it is found."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    program(tmp_path / "here", "git")
    program(tmp_path / "here" / "bin", "git")
    wanted = program(tmp_path / "real", "git")
    path = os.pathsep.join([entry, str(tmp_path / "real"), entry])
    assert programs.find("git", path) == wanted
    assert programs.find("git", entry) is None


def test_a_name_with_a_directory_has_to_be_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names one file, whatever the current directory is."""
    wanted = program(tmp_path / "bin", "vi")
    monkeypatch.chdir(tmp_path)
    assert programs.find(wanted, "") == wanted
    assert programs.find(os.path.join("bin", "vi"), str(tmp_path)) is None  # noqa: PTH118


def test_what_may_not_be_executed_is_no_program(tmp_path: Path) -> None:
    """Neither a directory nor a file without the permission."""
    (tmp_path / "git").mkdir()
    assert programs.find("git", str(tmp_path)) is None
    assert programs.find("", str(tmp_path)) is None
    if os.name == "posix":
        Path(program(tmp_path, "vi")).chmod(0o600)
        assert programs.find("vi", str(tmp_path)) is None


def test_a_path_of_nothing_but_relative_entries_becomes_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the empty one, which POSIX takes for the current directory."""
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "bin"]))
    assert Path(programs.variables()["PATH"]).is_absolute()


NAMES = ("git", "setpriv", "ssh", "sensible-editor", "vim", "nano", "vi", "mount", "uvx", "pipx",
         "xdg-open", "x-www-browser", "www-browser", "sh", "env", "python3", "ldconfig", "gcc",
         "ps", "uname", "stty", "tput", "which")  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A stranger's directory, full of programs that would leave a trace."""
    here = tmp_path / "hostile"
    here.mkdir()
    for name in NAMES:
        path = here / name
        path.write_text(f'#!/bin/sh\necho "$0 $*" >> {shlex.quote(str(tmp_path / "ran"))}\n')
        path.chmod(0o755)
    return here


def environment(home: Path, base: Path) -> dict[str, str]:
    """Return the variables of a person whose PATH begins with the current directory."""
    outer = inherited()
    path = os.pathsep.join([".", "", *outer["PATH"].split(os.pathsep)])
    for name in ("VISUAL", "EDITOR", "BROWSER"):
        outer.pop(name, None)
    own = {"PATH": path, "HOME": str(home), "AIAML_MEMORY_DIR": str(base), "DISPLAY": ":9"}
    return {**outer, **CLEAN, **own}


@pytest.mark.gate_cases(2)
@posix
@pytest.mark.parametrize(
    "line", ["sync", "status", "doctor --offline", "install --all --print", "log", "remember"]
)
def test_no_verb_runs_a_program_of_the_current_directory(
    line: str, hostile: Path, tmp_path: Path
) -> None:
    """Neither where the verb was typed, nor where git runs, which is the memory directory."""
    base = hostile  # a repository that somebody else has made may be the memory directory
    environ = environment(tmp_path / "home", base)
    words = [*SERVER, "remember", "-t", "test", "something"]
    subprocess.run(words, cwd=hostile, env=environ, check=True, capture_output=True, timeout=60)
    subprocess.run(
        [*SERVER, *line.split()],
        cwd=hostile,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert (base / ".git").is_dir()


@posix
def test_no_server_runs_a_program_of_the_directory_it_is_started_in(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients start it in the workspace."""
    monkeypatch.chdir(hostile)
    environ = environment(tmp_path / "home", hostile)
    environ["AIAML_ENABLE_SYNC"] = "true"
    command = [sys.executable, "-m", "aiaml_server"]
    with Client(hostile, command=command, environ=environ) as client:
        client.remember("something")
        wait_until((hostile / ".git").is_dir)
        assert client.close() == 0
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


@posix
def test_a_name_from_another_machine_is_no_word_of_a_command(tmp_path: Path) -> None:
    """The draft that an editor gets has a name of our own, whatever the file is called."""
    files = tmp_path / "base" / "files"
    files.mkdir(parents=True)
    (files / "20240101_000000_$(touch OWNED)aaaaaaaa.md").write_text(
        "---\nid: $(touch OWNED)\ntimestamp: 2024-01-01\nagent: a\nuser: u\ntopics: [x]\n---\n\nx\n"
    )
    editor = tmp_path / "an editor"
    editor.write_text('#!/bin/sh\nbasename "$1" > said\n')
    editor.chmod(0o755)
    environ = environment(tmp_path, tmp_path / "base")
    environ |= {"EDITOR": shlex.quote(str(editor)), "AIAML_ENABLE_SYNC": "false"}
    subprocess.run(
        [*SERVER, "edit", "$(touch OWNED)"],
        cwd=tmp_path, env=environ, check=False, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (tmp_path / "said").read_text() == "memory.md\n"
    assert not (tmp_path / "OWNED").exists()
