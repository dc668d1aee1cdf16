"""What every test gets."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from machine import Machine, bare

# Under nohup, or in the background of a script, signals are ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if os.name == "posix":
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# `HYPOTHESIS_EXAMPLES=20000 tests/run.sh` looks longer.
settings.register_profile(
    "aiaml", max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "200")), deadline=None
)
settings.load_profile("aiaml")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """An empty remote."""
    return bare(tmp_path / "remote")


@pytest.fixture
def ada(tmp_path: Path, remote: Path) -> Machine:
    """A machine."""
    return Machine(tmp_path / "ada", remote)


@pytest.fixture
def bob(tmp_path: Path, remote: Path) -> Machine:
    """Another machine with the same remote."""
    return Machine(tmp_path / "bob", remote)
