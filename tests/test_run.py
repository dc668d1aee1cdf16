"""`tests/run.sh`: its stages, when each is skipped, and that a failing one fails the whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from environments import ROOT
from printed import inherited, printed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="it is a shell script")

STAND_IN = """#!/bin/sh
name=${0##*/}
case "$*" in *--version) exit ;; esac
echo "$name $*" >>"$LOG"
echo "${HYPOTHESIS_EXAMPLES-all}" >"$LOG.examples"
case "$FAIL" in "$name") exit 1 ;; esac
"""
"""A program that writes down how it was called."""


class Checkout:
    """A checkout whose environment has stand-ins for its programs."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.log = place / "log"
        (place / "tests").mkdir()
        (place / "src/aiaml_server").mkdir(parents=True)
        shutil.copy(ROOT / "tests/run.sh", place / "tests")
        (place / "pyproject.toml").write_text("[project]\n")
        (place / "src/aiaml_server/__init__.py").write_text("__version__ = '1'\n")
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        programs = place / f".cache/test-{version}-highest/bin"
        programs.mkdir(parents=True)
        (place / "found").mkdir()
        (place / "found/python3").symlink_to(sys.executable)
        for name in ("python", "ruff", "uv"):
            path = programs / name
            path.write_text(STAND_IN)
            path.chmod(0o755)

    def run(self, *words: str, fail: str = "") -> tuple[int, list[str], str]:
        """Run the script; return its exit code, which programs it ran, and what it printed."""
        self.log.write_text("")
        environ = {
            **inherited("PYTEST", "HYPOTHESIS"),
            "PATH": f"{self.place / 'found'}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "LOG": str(self.log),
            "FAIL": fail,
        }
        done = printed(["sh", "tests/run.sh", *words], cwd=self.place, env=environ)
        calls = self.log.read_text().splitlines()
        return done.returncode, [" ".join(each.split()[:3]) for each in calls], done.stdout

    def tests(self) -> str:
        """Return how pytest was called."""
        calls = [each for each in self.log.read_text().splitlines() if "-m pytest" in each]
        return calls[0].partition("-m pytest ")[2] if calls else ""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout in which nothing was done yet."""
    return Checkout(tmp_path)


INSTALL = "uv pip install"
LINT = ["ruff check --quiet", "ruff format --quiet"]
TYPES = "python -m mypy"
TESTS = "python -m pytest"


def test_run_each_stage_once(checkout: Checkout) -> None:
    """What passed is not done again while nothing changed, and the script says so."""
    assert checkout.run()[:2] == (0, [INSTALL, *LINT, TYPES, TESTS])
    code, calls, said = checkout.run()
    assert (code, calls) == (0, [TESTS])
    assert said.count("nothing has changed since it passed") == 3
    assert checkout.run("--fresh")[1] == [INSTALL, *LINT, TYPES, TESTS]


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("src/aiaml_server/new.py", [*LINT, TYPES]),
        ("pyproject.toml", [INSTALL, *LINT, TYPES]),
        ("README.md", []),
    ],
)
def test_run_after_a_change(checkout: Checkout, name: str, again: list[str]) -> None:
    """Only what reads the file that changed is done again."""
    checkout.run()
    (checkout.place / name).write_text("# changed\n")
    assert checkout.run()[1] == [*again, TESTS]


def test_run_installs_after_a_week(checkout: Checkout) -> None:
    """Packages are upgraded now and then, though nothing here changed."""
    checkout.run()
    (stamp,) = checkout.place.glob(".cache/*/.passed/install-all")
    old = stamp.stat().st_mtime - 8 * 86400
    os.utime(stamp, (old, old))
    assert INSTALL in checkout.run()[1]


def test_run_quick(checkout: Checkout) -> None:
    """A small group is installed, types are left out, examples are few; `all` holds it too."""
    assert checkout.run("--quick")[1] == [INSTALL, *LINT, TESTS]
    assert checkout.tests() == "--numprocesses auto -m quick"
    assert checkout.run()[1][0] == INSTALL
    assert checkout.tests() == "--numprocesses auto -m not slow"
    assert checkout.run("--quick")[1] == [TESTS]


def test_run_full(checkout: Checkout) -> None:
    """Nothing is left out."""
    checkout.run("--full")
    assert checkout.tests() == "--numprocesses auto -m "


@pytest.mark.parametrize(
    ("words", "examples"),
    [
        (["--quick"], "10"),
        ([], "50"),
        (["-k", "index"], "all"),
        (["--full"], "all"),
    ],
)
def test_run_examples(checkout: Checkout, words: list[str], examples: str) -> None:
    """The shorter a run is to be, the fewer; what is named, and what decides, has all."""
    checkout.run(*words)
    assert checkout.log.with_name("log.examples").read_text().strip() == examples


@pytest.mark.parametrize(
    ("words", "tests"),
    [
        (["-k", "index"], "--numprocesses auto -m not slow -k index"),
        (["tests/test_packaging.py"], "--numprocesses auto -m  tests/test_packaging.py"),
        (["tests/test_x.py::test_y"], "--numprocesses 0 -m  tests/test_x.py::test_y"),
        (["--pdb", "-k", "x"], "--numprocesses 0 -m not slow --pdb -k x"),
        (["--quick", "-x"], "--numprocesses auto -m quick -x"),
    ],
)
def test_run_with_arguments(checkout: Checkout, words: list[str], tests: str) -> None:
    """They go to pytest, at once: no lint, no types; what is named runs, slow or not."""
    assert checkout.run(*words)[1] == [INSTALL, TESTS]
    assert checkout.tests() == tests


@pytest.mark.parametrize("failing", ["ruff", "python"])
def test_run_fails_with_its_stage(checkout: Checkout, failing: str) -> None:
    """A stage that fails ends the run, and is done again the next time."""
    code, calls, _ = checkout.run(fail=failing)
    assert code and TESTS not in calls
    assert calls[-1] in checkout.run(fail=failing)[1]


def test_run_lint_and_types_alone(checkout: Checkout) -> None:
    """As this repository's hooks for pre-commit call them."""
    assert checkout.run("--lint")[1] == [INSTALL, *LINT]
    assert checkout.run("--types")[1] == [INSTALL, TYPES]


def test_run_help() -> None:
    """It says what each option does, and nothing is done."""
    done = subprocess.run(
        [ROOT / "tests/run.sh", "--help"], capture_output=True, text=True, check=True
    )
    for word in ("--quick", "--full", "--lint", "--types", "--fresh", "--all", "--lowest"):
        assert word in done.stdout
    assert "set -eu" not in done.stdout
