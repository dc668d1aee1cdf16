"""How other programs start this very installation, from any directory and with any PATH."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

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
    if any(re.fullmatch(r"(archive|builds|environments)-v\d+", part) for part in _parts(prefix)):
        return _uvx(environ.get("UV", ""), path)  # uv's cache, which is emptied now and then
    runner = shutil.which("pipx", path=path)
    if runner and "pipx" in _parts(prefix) and "cache" in prefix.lower():
        return [runner, "run", SERVER]
    return _script(argv0, path) or [executable, "-m", "aiaml_server"]


def _parts(prefix: str) -> tuple[str, ...]:
    return tuple(re.split(r"[/\\]", prefix))


def _batch(environ: Mapping[str, str], launcher: str) -> list[str]:
    """Start a batch file through the shell that reads it: Node.js, for one, does not."""
    if launcher.lower().endswith((".cmd", ".bat")):
        return [environ.get("COMSPEC") or "cmd.exe", "/c", launcher]
    return [launcher]


def _uvx(uv: str, path: str | None) -> list[str]:
    """Find uvx: by the name that the PATH has for it, which an upgrade of uv does not change."""
    known = shutil.which("uvx", path=path)
    beside = Path(uv).with_stem("uvx") if uv else None
    if known and not (beside and beside.is_file() and not beside.samefile(known)):
        return [str(Path(known).absolute()), SERVER]
    if beside and not beside.is_file():
        return [uv, "tool", "run", SERVER]
    return [str(beside or "uvx"), SERVER]


def _script(argv0: str, path: str | None) -> list[str]:
    """Find the command that was installed beside the one that was started."""
    if Path(argv0).stem not in (SERVER, "aiaml"):
        return []
    bare = Path(argv0).name == argv0
    started = Path((bare and shutil.which(argv0, path=path)) or argv0).absolute()
    found = [started.with_name(SERVER + end) for end in ("", ".exe")]
    return [os.path.normpath(script) for script in found if script.is_file()][:1]
