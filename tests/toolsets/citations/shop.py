"""A small repository for the tests of `citations`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.toolsets.citations import Citation, MemoryService
from machine import as_person, git
from paths import ROOT
from printed import completed

FACT = "**Fact**: Prices are in cents.\n\n**Reasoning**: Rounding.\n\n**Action**: Divide late."
CODE = "def price(order):\n    return sum(order)  # in cents\n"
SCRIPT = ROOT / "scripts" / "citations.py"
BARE = [sys.executable, "-I", "-S", str(SCRIPT)]
"""The command in a Python that sees the standard library and the checkout alone."""
FULL = [sys.executable, "-m", "aiaml_server", "citations"]


def make_shop(path: Path) -> Path:
    """Make a git repository with a file of code."""
    path.mkdir(exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    write(path, "prices.py", CODE)
    return path


def write(root: Path, path: str, text: str) -> None:
    """Write a file of a repository."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text.encode())


def commit(root: Path) -> None:
    """Commit all files."""
    git(root, "add", "--all")
    as_person(root, "commit", "--quiet", "--message", "all")


def save(root: Path, *places: str, subject: str = "Prices are in cents") -> str:
    """Save a memory that cites places; return its id."""
    citations = [Citation(place) for place in places]
    return str(MemoryService(root).save(subject, FACT, citations)["id"])


def run(words: Sequence[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a repository."""
    return completed(words, cwd=cwd, env={**os.environ, **variables}, timeout=60)
