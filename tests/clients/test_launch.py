"""What an entry starts: this installation, by a path that stays."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aiaml_server.clients import launch


def program(directory: Path, name: str) -> str:
    """Put an executable file into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / (name + (".exe" if sys.platform == "win32" else ""))
    path.write_text("")
    path.chmod(0o755)
    return str(path)


def test_a_checkout_is_started_by_its_script() -> None:
    """`run_server.sh` says what it is; a batch file goes through the shell that reads it."""
    environ = {"AIAML_LAUNCHER": "/c/run_server.sh"}
    assert launch.command_of(environ, "x", "/p", "/py") == ["/c/run_server.sh"]
    environ = {"AIAML_LAUNCHER": "C:\\my c\\run_server.cmd", "COMSPEC": "C:\\W\\cmd.exe"}
    command = launch.command_of(environ, "x", "/p", "/py")
    assert command == ["C:\\W\\cmd.exe", "/c", "call", environ["AIAML_LAUNCHER"]]


def test_what_uv_keeps_for_a_while_is_started_by_uvx(tmp_path: Path) -> None:
    """The environment in uv's cache goes; uvx makes it anew, with what a toolset needs."""
    uvx = program(tmp_path / "bin", "uvx")
    prefix = str(tmp_path / "uv" / "archive-v0" / "x")
    environ = {"PATH": str(tmp_path / "bin")}
    command = launch.command_of(environ, "x", prefix, "/py")
    assert (command[0], command[-1]) == (uvx, "aiaml-server")
    command = launch.command_of(environ, "x", prefix, "/py", "aiaml,semantic")
    assert command[1] == "--from" and command[2].startswith("aiaml-server[semantic]")


def test_an_installed_command_is_started_by_its_absolute_path(tmp_path: Path) -> None:
    """Beside what was started, or beside Python; else Python itself starts the module."""
    server = program(tmp_path / "bin", "aiaml-server")
    for argv0 in (server, program(tmp_path / "bin", "aiaml")):
        assert launch.command_of({}, argv0, "/p", "/py") == [server]
    module = "/site-packages/aiaml_server/__main__.py"
    assert launch.command_of({}, module, "/p", str(tmp_path / "bin" / "python")) == [server]
    assert launch.command_of({}, module, "/p", "/py") == ["/py", "-m", "aiaml_server"]
    assert Path(launch.command()[0]).is_absolute()


def test_a_command_for_other_computers_has_what_a_toolset_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through uvx, which is found by its name there too."""
    program(tmp_path, "uvx")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launch.portable_command("citations") == ["uvx", "aiaml-server"]
    with_extra = ["uvx", "--from", "aiaml-server[semantic]", "aiaml-server"]
    assert launch.portable_command("citations,semantic") == with_extra
