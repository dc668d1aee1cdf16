"""How other programs start this very installation, from any directory and with any PATH."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from aiaml_server.programs import find

SERVER = "aiaml-server"


def command() -> list[str]:
    """Return the words that start the server of this installation."""
    return of(os.environ, sys.argv[0], sys.prefix, sys.executable)


def of(environ: Mapping[str, str], argv0: str, prefix: str, executable: str) -> list[str]:
    """Return the words that start the server of an installation.

    Args:
        environ: the environment variables; `AIAML_LAUNCHER` is what `run_server.sh` calls itself,
            `UV` where uv says that it is.
        argv0: what the program was started as.
        prefix: the directory of its Python environment.
        executable: its Python.
    """
    if launcher := environ.get("AIAML_LAUNCHER"):
        return _batch(environ, launcher)
    path = environ.get("PATH")
    cached = any(re.fullmatch(r"(archive|builds|environments)-v\d+", p) for p in _parts(prefix))
    if cached and (words := _uvx(environ.get("UV", ""), path)):  # uv empties its cache at times
        return words
    runner = find("pipx", path)
    if runner and "pipx" in _parts(prefix) and "cache" in prefix.lower():
        return [runner, "run", SERVER]
    return _script(argv0, path) or [executable, "-m", "aiaml_server"]


def _parts(prefix: str) -> tuple[str, ...]:
    return tuple(re.split(r"[/\\]", prefix))


def _batch(environ: Mapping[str, str], launcher: str) -> list[str]:
    """Start a batch file through the shell that reads it: Node.js, for one, does not."""
    if launcher.lower().endswith((".cmd", ".bat")):
        return [environ.get("COMSPEC") or find("cmd") or "cmd.exe", "/c", launcher]
    return [launcher]


def _uvx(uv: str, path: str | None) -> list[str]:
    """Find uvx: by the name that the PATH has for it, which an upgrade of uv does not change."""
    known = find("uvx", path)
    beside = Path(uv).with_stem("uvx") if Path(uv).is_absolute() else None
    if known and not (beside and beside.is_file() and not beside.samefile(known)):
        return [known, SERVER]
    if beside:
        return [str(beside), SERVER] if beside.is_file() else [uv, "tool", "run", SERVER]
    return []


def _script(argv0: str, path: str | None) -> list[str]:
    """Find the command that was installed beside the one that was started."""
    if Path(argv0).stem not in (SERVER, "aiaml"):
        return []
    bare = Path(argv0).name == argv0
    if not (program := find(argv0, path) if bare else argv0):
        return []
    started = Path(program).absolute()
    found = [started.with_name(SERVER + end) for end in ("", ".exe")]
    return [os.path.normpath(script) for script in found if script.is_file()][:1]
