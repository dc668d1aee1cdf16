"""Python environments beside the one that the tests run in, made by the uv that is in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = str(Path(sys.executable).with_name("uv" + (".exe" if os.name == "nt" else "")))


def environment(directory: Path, *wanted: str) -> Path:
    """Make an environment of the same Python; return its interpreter.

    Args:
        directory: where; there is nothing yet.
        wanted: what is installed, as `uv pip install` takes it.
    """
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(directory)],
        ["pip", "install", "--quiet", "--python", str(python), *wanted],
    ):
        subprocess.run([UV, *words], check=True, timeout=900)
    return python
