"""The command that starts this installation from any directory and with any PATH."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from aiaml_server.storage.programs import find

SERVER = "aiaml-server"
_UV_CACHE = re.compile(r"[/\\](archive|builds|environments)-v\d+([/\\]|$)")


def command(served: str = "") -> list[str]:
    """Return the command that starts the server of this installation, with these toolsets."""
    return command_of(os.environ, sys.argv[0], sys.prefix, sys.executable, served)


def command_of(
    environ: Mapping[str, str], argv0: str, prefix: str, executable: str, served: str = ""
) -> list[str]:
    """Return the command that starts the server of an installation.

    Args:
        environ: the environment variables. `AIAML_LAUNCHER` is the path of `run_server.sh`, which
            sets it.
        argv0: what the program was started as.
        prefix: the directory of its Python environment.
        executable: its Python.
        served: the toolsets that it is to serve.
    """
    if launcher := environ.get("AIAML_LAUNCHER"):
        if not launcher.lower().endswith((".cmd", ".bat")):
            return [launcher]
        # Without `call`, a path with blanks is cut.
        return [environ.get("COMSPEC", "cmd.exe"), "/c", "call", launcher]
    uvx = find("uvx", environ.get("PATH"))
    if uvx and _UV_CACHE.search(prefix):  # uv empties its cache at times
        return [uvx, *_package(served, _source()), SERVER]
    # With -m, Python would import what lies in the directory where the client starts it.
    return (
        (Path(argv0).stem in (SERVER, "aiaml") and _beside(argv0))
        or _beside(executable)
        or [executable, "-m", "aiaml_server"]
    )


def portable_command(served: str) -> list[str]:
    """Return a command that works on other computers: `uvx`, or the server in the PATH."""
    return ["uvx", *_package(served), SERVER] if find("uvx") else [SERVER]


def _package(served: str, source: str = "") -> list[str]:
    """Return the options of uvx for a package that has what these toolsets need."""
    name = f"{SERVER}[semantic]" if "semantic" in served else SERVER
    wanted = f"{name} @ {source}" if source else name
    return ["--from", wanted] if wanted != SERVER else []


def _source() -> str:
    """Return the URL that this package was installed from (PEP 610); empty if unknown."""
    from importlib import metadata  # noqa: PLC0415 (slow, and few commands need it)

    record = json.loads(metadata.distribution(SERVER).read_text("direct_url.json") or "{}")
    vcs = record.get("vcs_info", {}).get("vcs")
    return f"{vcs}+{record['url']}" if vcs else str(record.get("url", ""))


def _beside(program: str) -> list[str]:
    """Return the server's command in the directory of another program; empty if there is none."""
    script = find(SERVER, str(Path(program).absolute().parent))
    return [script] if script else []
