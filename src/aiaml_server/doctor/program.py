"""The installation: which program this is, on which Python, with which packages."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from aiaml_server import __version__
from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding

NAME = "aiaml-server"
AGAIN = "install it anew: `uv tool install --force aiaml-server` or `pip install -U aiaml-server`"


def version(_: Context) -> Iterator[Finding]:
    """Say which program this is, and where it came from."""
    place = Path(__file__).parents[2]
    yield Finding("version", "ok", f"{NAME} {__version__}, {_installed()}, in {place}")


def python(_: Context) -> Iterator[Finding]:
    """Say what it runs on, and whether it was tested there."""
    where = f"Python {platform.python_version()} on {platform.platform()}"
    found = f"{where}, SQLite {sqlite3.sqlite_version}, started as {sys.argv[0]}"
    tested = _tested()
    if tested and "{}.{}".format(*sys.version_info) not in tested:
        remedy = f"it is tested on Python {tested[0]} to {tested[-1]}: use one of these"
        yield Finding("python", "warning", found, remedy)
    else:
        yield Finding("python", "ok", found)


def packages(_: Context) -> Iterator[Finding]:
    """Say which versions of other packages there are, and whether they are those it needs."""
    good = []
    for name, bounds in _needed():
        have = ""
        with suppress(metadata.PackageNotFoundError):
            have = metadata.version(name)
        if have and all(_within(have, bound) for bound in bounds):
            good.append(f"{name} {have}")
            continue
        found = f"{name} {have} does not fit: {NAME} needs {name}{','.join(bounds)}"
        yield Finding("packages", "error", found if have else f"{name} is not installed", AGAIN)
    if good:
        yield Finding("packages", "ok", ", ".join(good))


def _installed() -> str:
    """Say how the program came here, as the installer has left it on record."""
    if launcher := os.environ.get("AIAML_LAUNCHER"):
        return f"started by {launcher}"
    try:
        files = metadata.distribution(NAME)
    except metadata.PackageNotFoundError:
        return "not installed but started from its source"
    if _editable(files):
        return "installed as editable source"
    installer = (files.read_text("INSTALLER") or "").strip()
    return f"installed by {installer}" if installer else "installed"


def _editable(files: metadata.Distribution) -> bool:
    """Say whether it runs from its source; the record is PEP 610's, absent after an index."""
    with suppress(ValueError, LookupError, TypeError):
        return bool(json.loads(files.read_text("direct_url.json") or "{}")["dir_info"]["editable"])
    return False


def _tested() -> list[str]:
    with suppress(metadata.PackageNotFoundError):
        classifiers = metadata.metadata(NAME).get_all("Classifier") or []
        found = [re.search(r"Python :: (3\.\d+)$", each) for each in classifiers]
        return [match[1] for match in found if match]
    return []


def _needed() -> Iterator[tuple[str, list[str]]]:
    """Return each package that it needs here, with the bounds of its version: ">=2.1", "<3"."""
    requirements: list[str] = []
    with suppress(metadata.PackageNotFoundError):
        requirements = metadata.requires(NAME) or []
    for each in requirements:
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?([^;]*)$", each)
        if match:  # no marker: it is needed everywhere
            yield match[1], [bound.strip() for bound in match[2].split(",") if bound.strip()]


def _within(version: str, bound: str) -> bool:
    """Compare numbers; a bound of another kind than `>=` and `<` is not ours to judge."""
    match = re.fullmatch(r"(>=|<)\s*([\d.]+)", bound)
    if not match:
        return True
    have, limit = _numbers(version), _numbers(match[2])
    return have >= limit if match[1] == ">=" else have < limit


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
