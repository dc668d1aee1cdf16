"""The wheel holds everything that the program needs, and works where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from client import Client
from environments import UV
from paths import ROOT
from printed import inherited


def test_the_wheel_works_where_it_is_installed(tmp_path: Path) -> None:
    """Built from this checkout and installed elsewhere, it remembers, finds and lists."""
    build = [UV, "build", "--quiet", "--wheel", "--no-build-isolation", "--offline"]
    subprocess.run([*build, "--python", sys.executable, "--out-dir", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
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
