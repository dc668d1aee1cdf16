"""Rehearses every way to install, without an index: python scripts/rehearse.py [--python 3.12 …].

For each Python and for the lowest and the highest versions that are allowed, a folder is filled
with the wheel and all that it needs. From that folder alone uvx, uv, pip and pipx install it, and
each time the installed program holds a conversation with a real client (`aiaml demo`) and says its
version. Ends with 1 where one of them fails. Needs uv; Pythons that are not found are named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
RESOLUTIONS = ("lowest-direct", "highest")
WAYS = ("uvx", "uv", "pip", "pipx")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
UV = (
    shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath])) or "uv"
)


class Failed(Exception):  # noqa: N818 (an outcome, not a mistake of ours)
    """A step did not succeed; what it printed."""


def run(*words: str | Path, **environ: str) -> str:
    """Run a program and return what it prints.

    Raises:
        Failed: it did not succeed.
    """
    done = subprocess.run(
        [str(word) for word in words],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        timeout=600,
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, words))}\n{done.stdout}")
    return done.stdout


def found(python: str) -> str:
    """Return the interpreter of a version, also one of pyenv's; empty where there is none."""
    try:
        return run(UV, "python", "find", "--no-python-downloads", python).strip()
    except Failed:
        versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
        return next(map(str, versions.glob(f"{python}.*/bin/python")), "")


def fill(folder: Path, wheel: Path, python: str, resolution: str, place: Path) -> None:
    """Fill a folder with the wheel and the versions of all that it needs."""
    wanted = place / "wanted.in"
    wanted.write_text(f"aiaml-server @ {wheel.as_uri()}\n", encoding="utf-8")
    pinned = place / "pinned.txt"
    compiled = ("--quiet", "--no-header", "--no-annotate", "--no-emit-package", "aiaml-server")
    run(UV, "pip", "compile", *compiled, "--python", python, "--resolution", resolution,
        "--output-file", pinned, wanted)  # fmt: skip
    run(UV, "venv", "--quiet", "--seed", "--python", python, place / "seeded")
    pip = (place / "seeded" / SCRIPTS / "python", "-m", "pip", "--quiet")
    run(*pip, "download", "--no-deps", "--dest", folder, "--requirement", pinned)
    run(*pip, "download", "--no-deps", "--dest", folder, "pip", "setuptools", "wheel")
    (folder / wheel.name).write_bytes(wheel.read_bytes())


def installed(way: str, folder: Path, python: str, place: Path) -> list[str | Path]:
    """Install in one way, from a folder; return the words that start the program."""
    alone = ("--no-index", "--find-links", str(folder))
    tools = {
        "UV_TOOL_DIR": str(place / "tools"),
        "UV_TOOL_BIN_DIR": str(place / "bin"),
        "PIPX_HOME": str(place / "pipx"),
        "PIPX_BIN_DIR": str(place / "bin"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "UV_NO_INDEX": "1",  # which pipx uses where it finds it
        "UV_FIND_LINKS": str(folder),
    }
    if way == "uvx":
        isolated = ("--quiet", "--isolated", "--offline", "--python", python)
        return [UV, "tool", "run", *isolated, *alone, "--from", "aiaml-server", "aiaml"]
    if way == "uv":
        run(UV, "tool", "install", "--quiet", "--offline", "--python", python, *alone,
            "aiaml-server", **tools)  # fmt: skip
    elif way == "pip":
        run(UV, "venv", "--quiet", "--seed", "--python", python, place)
        run(place / SCRIPTS / "python", "-m", "pip", "--quiet", "install", *alone, "aiaml-server")
        return [place / SCRIPTS / "aiaml"]
    else:
        run(UV, "venv", "--quiet", "--python", python, place)
        run(UV, "pip", "install", "--quiet", "--python", place / SCRIPTS / "python", "pipx>=1.7,<2")
        run(place / SCRIPTS / "pipx", "install", "--python", python, "aiaml-server", **tools)
    return [place / "bin" / "aiaml"]


def rehearsals(wheel: Path, python: str, place: Path) -> Iterator[tuple[str, str, str]]:
    """Yield for each resolution and way what went wrong; nothing where all is well."""
    for resolution in RESOLUTIONS:
        folder = place / resolution
        folder.mkdir(parents=True)
        fill(folder, wheel, python, resolution, folder)
        for way in WAYS:
            try:
                program = installed(way, folder, python, place / f"{resolution} {way}")
                base = {"AIAML_MEMORY_DIR": str(place / "memory")}
                assert wheel.name.split("-")[1] in run(*program, "--version", **base)  # noqa: S101
                run(*program, "demo", **base)
            except Failed as error:
                yield resolution, way, str(error)
            else:
                yield resolution, way, ""


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION")
    given = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="aiaml-rehearsal-") as directory:
        place = Path(directory)
        run(UV, "build", "--quiet", "--wheel", "--out-dir", place, ROOT)
        (wheel,) = place.glob("*.whl")
        for wanted in given.python:
            python = found(wanted)
            if not python:
                print(f"{wanted}: not on this machine")  # noqa: T201
                continue
            for resolution, way, wrong in rehearsals(wheel, python, place / wanted):
                print(f"{wanted}, {resolution}, {way}: {wrong or 'ok'}", flush=True)  # noqa: T201
                failures += bool(wrong)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
