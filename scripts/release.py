#!/usr/bin/env python3
"""Makes everything that a release publishes, and uploads nothing.

python scripts/release.py [--tag v1.2.3] [--out dist]

The directory then holds wheel and source archive (checked as an index does), the bundle for Claude
Desktop, a bill of materials and checksums. The wheel has been started in an environment of its own.
With `--tag`, the version and the changelog have to be those of the tag. Needs uv, and npx for the
bundle.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MCPB = "@anthropic-ai/mcpb@2.1.2"
TWINE, CONTENTS, SBOM = "twine>=6,<8", "check-wheel-contents>=0.6,<1", "cyclonedx-bom>=7,<8"


def run(*words: str | Path, cwd: Path = ROOT) -> None:
    """Run a program, of which each has to succeed."""
    subprocess.run([str(word) for word in words], cwd=cwd, check=True)


def program(name: str) -> str:
    """Return where a program is: beside this Python, or on the PATH."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        sys.exit(f"release.py: {name} is needed, and not on the PATH")
    return found


def version() -> str:
    """Return the package's version."""
    text = (ROOT / "src/aiaml_server/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE)
    assert found, "the package has no version"  # noqa: S101 (a mistake of ours)
    return found[1]


def check_tag(tag: str) -> None:
    """End unless the repository is ready for a tag."""
    if tag != f"v{version()}":
        sys.exit(f"release.py: the tag is {tag}, and the package's version {version()}")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[{re.escape(version())}\]", changelog, re.MULTILINE):
        sys.exit(f"release.py: CHANGELOG.md has no section [{version()}]")


def make(out: Path) -> None:
    """Make and check all files."""
    run(sys.executable, ROOT / "scripts/manifests.py", "--check")
    uv = program("uv")
    run(uv, "build", "--quiet", "--out-dir", out, ROOT)
    (out / ".gitignore").unlink(missing_ok=True)
    (wheel,) = out.glob("*.whl")
    (source,) = out.glob("*.tar.gz")
    tool = (uv, "tool", "run", "--quiet", "--from")
    run(*tool, TWINE, "twine", "check", "--strict", wheel, source)
    run(*tool, CONTENTS, "check-wheel-contents", "--no-config", wheel)
    with tempfile.TemporaryDirectory() as place:
        environment = Path(place) / "environment"
        run(uv, "venv", "--quiet", "--python", sys.executable, environment)
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        python = scripts / ("python.exe" if os.name == "nt" else "python")
        run(uv, "pip", "install", "--quiet", "--python", python, wheel)
        run(python, "-m", "aiaml_server", "demo", cwd=Path(place))
        for each in environment.rglob("aiaml_server-*.dist-info/direct_url.json"):
            each.unlink()  # it says where the wheel lay on this machine
        bill = out / f"{source.name.removesuffix('.tar.gz')}.cdx.json"
        words = ("environment", python, "--output-reproducible", "--output-file", bill)
        run(*tool, SBOM, "cyclonedx-py", *words)
    bundle = out / f"aiaml-server-{version()}.mcpb"
    run(program("npx"), "--yes", MCPB, "pack", ROOT / "mcpb", bundle)
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    sums = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def main() -> int:
    """Read the words, and make a release; return the exit code."""
    parser = argparse.ArgumentParser(description="Makes everything that a release publishes.")
    parser.add_argument("--tag", help="the tag that is released")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where it is put")
    words = parser.parse_args()
    if words.tag is not None:
        check_tag(words.tag)
    out = words.out.resolve()
    if out.is_dir() and any(out.iterdir()):
        sys.exit(f"release.py: {out} is not empty")
    out.mkdir(parents=True, exist_ok=True)
    try:
        make(out)
    except subprocess.CalledProcessError as error:
        sys.exit(f"release.py: {' '.join(error.cmd)} ended with {error.returncode}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
