"""How other programs start this very installation, from any directory and with any PATH."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from aiaml_server.storage.programs import find

SERVER = "aiaml-server"
COMPILED = {"UV_COMPILE_BYTECODE": "1"}
"""What an entry that starts uvx has in its environment: else the first start compiles, not uv."""


def command(packages: Sequence[str] = ()) -> list[str]:
    """Return the words that start the server of this installation.

    Args:
        packages: the names of those that offer what is served, besides this one.
    """
    besides = [f"{each} @ {source}" if (source := _source(each)) else each for each in packages]
    return command_of(os.environ, sys.argv[0], sys.prefix, sys.executable, _source(SERVER), besides)


def command_of(
    environ: Mapping[str, str],
    argv0: str,
    prefix: str,
    executable: str,
    source: str = "",
    besides: Sequence[str] = (),
) -> list[str]:
    """Return the words that start the server of an installation.

    Args:
        environ: the environment variables; `AIAML_LAUNCHER` is what `run_server.sh` calls itself,
            `UV` where uv says that it is.
        argv0: what the program was started as.
        prefix: the directory of its Python environment.
        executable: its Python.
        source: where it was installed from, if not from an index: a URL as pip takes it.
        besides: other packages that it needs, as pip takes them; an environment that is made anew
            for each start is made with them.
    """
    if launcher := environ.get("AIAML_LAUNCHER"):
        if launcher.lower().endswith((".cmd", ".bat")):  # Node.js, for one, does not start these
            shell = environ.get("COMSPEC") or find("cmd") or "cmd.exe"
            return [shell, "/c", "call", launcher]  # `call`: else "C:\\a (b)\\x.cmd" is cut there
        return [launcher]
    path = environ.get("PATH")
    cached = any(re.fullmatch(r"(archive|builds|environments)-v\d+", p) for p in _parts(prefix))
    words = _uvx(environ.get("UV", ""), path, source, besides) if cached else []
    if words:  # uv empties its cache at times
        return words
    runner = find("pipx", path)
    if runner and "pipx" in _parts(prefix) and "cache" in prefix.lower():
        spec = ["--spec", source] if source else []
        return [runner, "run", *_with(besides), *spec, SERVER]
    # With -m, Python would import what lies in the directory where the client starts it.
    return _script(argv0, path) or _beside(executable) or [executable, "-m", "aiaml_server"]


def anywhere(packages: Sequence[str] = ()) -> list[str]:
    """Return words that start the server on any computer that has it, or uv; see `command`."""
    by_uvx = Path(command()[0]).stem == "uvx" or find("uvx")
    return ["uvx", *_with(packages), SERVER] if by_uvx else [SERVER]


def _with(packages: Sequence[str]) -> list[str]:
    return [word for each in packages for word in ("--with", each)]


def compiled(words: Sequence[str]) -> dict[str, str]:
    """Return what the environment of a command has besides."""
    return COMPILED if Path(words[0]).stem == "uvx" else {}


def _parts(prefix: str) -> tuple[str, ...]:
    return tuple(re.split(r"[/\\]", prefix))


def _source(package: str) -> str:
    """Return the URL that a package was installed from, as its installer recorded it (PEP 610)."""
    from importlib import metadata  # noqa: PLC0415 (not needed by who completes a word)

    with suppress(metadata.PackageNotFoundError, ValueError, LookupError, TypeError):
        record = json.loads(metadata.distribution(package).read_text("direct_url.json") or "{}")
        if "vcs_info" in record:
            vcs, revision = record["vcs_info"]["vcs"], record["vcs_info"].get("requested_revision")
            return f"{vcs}+{record['url']}{f'@{revision}' if revision else ''}"
        return str(record["url"])
    return ""


def _uvx(uv: str, path: str | None, source: str, besides: Sequence[str]) -> list[str]:
    """Find uvx: by the name that the PATH has for it, which an upgrade of uv does not change."""
    where = ["--from", f"{SERVER} @ {source}"] if source else []
    what = [*_with(besides), *where, SERVER]
    known = find("uvx", path)
    beside = Path(uv).with_stem("uvx") if Path(uv).is_absolute() else None
    if known and not (beside and beside.is_file() and not beside.samefile(known)):
        return [known, *what]
    if beside:
        return [str(beside), *what] if beside.is_file() else [uv, "tool", "run", *what]
    return []


def _script(argv0: str, path: str | None) -> list[str]:
    """Find the command that was installed beside the one that was started."""
    if Path(argv0).stem not in (SERVER, "aiaml"):
        return []
    bare = Path(argv0).name == argv0
    program = find(argv0, path) if bare else argv0
    return _beside(program) if program else []


def _beside(program: str) -> list[str]:
    """Find the command in the directory of another program of the same environment."""
    started = Path(program).absolute()
    found = [started.with_name(SERVER + end) for end in ("", ".exe")]
    return [os.path.normpath(script) for script in found if script.is_file()][:1]
