"""An environment for each server, made once in a cache folder, by pip or npm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .adapter import Adapter

CHECKOUT = Path(__file__).parent.parent
LONGEST = 1800.0  # seconds that an installation may take


class MissingError(Exception):
    """A server cannot be installed or started here; the text says why."""


def cache() -> Path:
    """Return where environments are: `LAB_CACHE`, or below the user's cache."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("LAB_CACHE") or usual / "memory-lab")


def ready(kind: type[Adapter]) -> Adapter:
    """Return the adapter of a server that is installed, which is done where it is not.

    Raises:
        MissingError: it cannot be.
    """
    name = kind.package.replace("/", "-").replace(" ", "-").replace("..", "checkout")
    home = cache() / (name or "nothing")
    way, _, package = kind.package.partition(" ")
    if not way:
        return kind(home, "of this checkout")
    source = package.replace("..", str(CHECKOUT)) if package.startswith("..") else package
    wanted = f"{source} {_commit()}" if package.startswith("..") else source
    noted = home / "installed.json"
    if not noted.exists() or json.loads(noted.read_text())["wanted"] != wanted:
        noted.unlink(missing_ok=True)  # first: a removal that is stopped is no installation
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        install = {"pip": _pip, "npm": _npm}[way]
        version = install(home, source, kind.python)
        noted.write_text(json.dumps({"wanted": wanted, "version": version}))
    version = json.loads(noted.read_text())["version"]
    return kind(home, f"{version} ({_commit()})" if package.startswith("..") else version)


def _commit() -> str:
    """Return the checkout's commit, with `+` where sources differ from it."""
    git = ["git", "-C", str(CHECKOUT)]
    done = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD:src"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src"], check=False)
    return (done.stdout.strip() or "no git") + ("+" if changed.returncode else "")


def _pip(home: Path, source: str, python: str) -> str:
    interpreter = _interpreter(python)
    _run(interpreter, "-m", "venv", "--without-pip", str(home))
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    _run(*pip, "install", "--quiet", source)
    code = (
        "import importlib.metadata as m, sys; name = sys.argv[1]; "
        "print(m.version('aiaml-server' if '/' in name else name))"
    )
    return _run(str(home / "bin" / "python"), "-c", code, source).strip()


def _npm(home: Path, source: str, _: str) -> str:
    if not shutil.which("npm"):
        raise MissingError("npm is not installed")
    (home / "package.json").write_text('{"private": true}')
    _run("npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", source)
    found = json.loads((home / "node_modules" / source / "package.json").read_text())
    return str(found["version"])


def _interpreter(wanted: str) -> str:
    """Return a Python in which an expression is true, the one that runs this first.

    Raises:
        MissingError: there is none.
    """
    names = [sys.executable, "/usr/bin/python3"]
    names += [shutil.which(f"python3.{minor}") or "" for minor in range(10, 16)]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    names += [str(path) for path in sorted(root.glob("versions/3.*/bin/python"))]
    for name in names:
        command = [name, "-c", f"raise SystemExit(not ({wanted}))"]
        if name and not subprocess.run(command, capture_output=True, check=False).returncode:
            return name
    raise MissingError(f"no Python here for which this is true: {wanted}")


def _run(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(str(error)) from None
    if done.returncode:
        raise MissingError(f"{' '.join(words[:4])} …: {done.stderr.strip()[-500:]}")
    return done.stdout
