"""The real AI programs from their registry, and a person with a home to run them in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT
from printed import completed, printed

MCPB = "@anthropic-ai/mcpb@2.1.2"
CLAUDE, CODEX, GEMINI = (
    "@anthropic-ai/claude-code@2.1.330",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
)
PROGRAMS = {
    MCPB: ".bin/mcpb",
    CLAUDE: "@anthropic-ai/claude-code-*-*/claude",  # what its install script would link to
    CODEX: ".bin/codex",
    GEMINI: ".bin/gemini",
}


def host(package: str) -> str:
    """Return a host's program from the npm registry, kept in `.cache/hosts/`."""
    npm = shutil.which("npm")
    if not npm or os.name == "nt":
        pytest.skip("needs npm, and a shell script for uvx")
    place = ROOT / ".cache/hosts" / re.sub(r"\W+", "-", package).strip("-")
    modules = place / "node_modules"
    if not any(modules.glob(PROGRAMS[package])):
        words = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        try:
            done = completed([*words, "--prefix", str(place), package])
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not install {package} in two minutes")
        if done.returncode:
            pytest.skip(f"npm does not install {package}: {done.stderr[-300:]}")
    programs = sorted(modules.glob(PROGRAMS[package]), key=lambda path: len(str(path)))
    if not programs:
        pytest.skip(f"{package} has no program for this machine")
    return str(programs[0])


class Person:
    """Somebody with an empty home directory, whose `uvx` starts this very source."""

    def __init__(self, home: Path) -> None:
        self.home = home
        bin_ = home / "bin"
        bin_.mkdir(parents=True)
        uvx = bin_ / "uvx"
        uvx.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m aiaml_server\n', encoding="utf-8")
        uvx.chmod(0o755)
        kept = ("PATH", "LANG", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")
        self.environ = {
            **{key: value for key, value in os.environ.items() if key in kept},
            "HOME": str(home),
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def run(self, *words: str, code: int = 0) -> str:
        """Run a program that ends with this exit code; return all that it prints."""
        done = printed(words, cwd=self.home, env=self.environ, timeout=100)
        assert done.returncode == code, done.stdout
        return done.stdout
