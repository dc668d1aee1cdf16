"""The wheel holds everything that the program needs, and works where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from aiaml_server.toolsets.citations import Citation, MemoryService
from client import Client
from environments import UV
from machine import git
from paths import ROOT
from printed import inherited


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout and unpacked as an installer does, without others."""
    place = tmp_path_factory.mktemp("wheel")
    build = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--offline"]
    subprocess.run([*build, "--python", sys.executable, "--out-dir", place, ROOT], check=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place / "site")
    return place / "site"


def test_the_wheel_works_where_it_is_installed(site: Path, tmp_path: Path) -> None:
    """Built from this checkout and installed elsewhere, it remembers, finds and lists."""
    source = ROOT / "src" / "aiaml_server"
    files = {path.relative_to(source) for path in source.rglob("*") if path.is_file()}
    installed = site / "aiaml_server"
    assert {path for path in files if "__pycache__" not in path.parts} == {
        path.relative_to(installed) for path in installed.rglob("*") if path.is_file()
    }
    base = tmp_path / "base"
    environ = {"PYTHONPATH": str(site)}
    with Client(base, environ=environ) as client:
        memory_id = client.remember("Max is a dog.")["memory_id"]
        assert [hit["id"] for hit in client.call("think", keywords=["dog"])] == [memory_id]
    script = (
        "import sys, aiaml_server.cli as cli; print(cli.__file__); sys.exit(cli.main(['list']))"
    )
    own = {**inherited(), **environ, "AIAML_MEMORY_DIR": str(base)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=own, capture_output=True, text=True, check=True
    )
    where, *listed = done.stdout.splitlines()
    assert where.startswith(str(site) + os.sep)
    assert "Max is a dog." in "\n".join(listed)


def test_the_wheel_alone_verifies_citations(site: Path, tmp_path: Path) -> None:
    """Without any dependency, it reads, searches and verifies memories in canonical form."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "prices.py").write_text("price = 1\n")
    saved = MemoryService(tmp_path).save("One price", "In cents.", [Citation("prices.py", 1)])
    start = f"import runpy, sys; sys.path.insert(0, {str(site)!r})"
    start += "; runpy.run_module('aiaml_server.toolsets.citations', run_name='__main__')"
    for text, words, code in (
        ("price = 1\n", ("get", saved["id"]), 0),
        ("price = 1\n", ("list",), 0),
        ("price = 1\n", ("search", "cents"), 0),
        ("price = 1\n", ("verify",), 0),
        ("price = 2\n", ("verify",), 1),
    ):
        (tmp_path / "prices.py").write_text(text)
        command = [sys.executable, "-I", "-S", "-c", start, *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=inherited(), capture_output=True, text=True, check=False
        )
        assert done.returncode == code, (words, done.stderr)
        assert saved["id"] in done.stdout or words == ("verify",)
