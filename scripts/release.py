#!/usr/bin/env python3
"""Check that the repository is ready for a release, and build it.

    python scripts/release.py [--tag v1.2.3]

All files that name the version must agree. `dist/` then holds the wheel and the source archive,
and the wheel has been installed and started in an environment of its own. Nothing is uploaded:
`uv publish` does that. Needs uv.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONED_FILES = (
    "server.json",
    "plugin/.claude-plugin/plugin.json",
    ".claude-plugin/marketplace.json",
)


def package_version() -> str:
    """Return the version of the package."""
    text = (ROOT / "src/aiaml_server/__init__.py").read_text("utf-8")
    match = re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    if match is None:
        sys.exit("release.py: src/aiaml_server/__init__.py has no __version__")
    return match[1]


def find_problems(version: str, tag: str | None) -> list[str]:
    """Return what has to be changed before the release, one sentence each."""
    problems = []
    if tag is not None and tag != f"v{version}":
        problems.append(f"the tag is {tag}, and the version of the package {version}")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if f"## {version}" not in changelog and f"## [{version}]" not in changelog:
        problems.append(f"CHANGELOG.md has no section {version}")
    for name in VERSIONED_FILES:
        versions = set(re.findall(r'"version": "(.*)"', (ROOT / name).read_text("utf-8")))
        if versions != {version}:
            problems.append(f"{name} has version {', '.join(versions)}, the package {version}")
    if f"aiaml-server@{version}" not in (ROOT / "plugin/.mcp.json").read_text("utf-8"):
        problems.append(f"plugin/.mcp.json does not start aiaml-server@{version}")
    return problems


def build_and_start(out: Path) -> None:
    """Build into a directory, install the wheel elsewhere and run its demonstration."""
    subprocess.run(["uv", "build", "--quiet", "--out-dir", out, ROOT], check=True)
    (wheel,) = out.glob("*.whl")
    with tempfile.TemporaryDirectory() as directory:
        environment = Path(directory) / "environment"
        folder = "Scripts" if os.name == "nt" else "bin"
        python = environment / folder / "python"
        subprocess.run(["uv", "venv", "--quiet", environment], check=True)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, wheel], check=True)
        subprocess.run([python, "-m", "aiaml_server", "demo"], check=True, cwd=directory)


def main() -> None:
    """Check, build and start."""
    parser = argparse.ArgumentParser(description="Check and build a release.")
    parser.add_argument("--tag", help="the tag that is released, such as v1.2.3")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files go")
    arguments = parser.parse_args()
    if problems := find_problems(package_version(), arguments.tag):
        sys.exit("release.py: " + "; ".join(problems))
    if arguments.out.is_dir() and any(arguments.out.iterdir()):
        sys.exit(f"release.py: {arguments.out} is not empty")
    try:
        build_and_start(arguments.out)
    except subprocess.CalledProcessError as error:
        sys.exit(f"release.py: {error.cmd[0]} ended with {error.returncode}")


if __name__ == "__main__":
    main()
