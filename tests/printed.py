"""Programs that are run to their end: what they are given, and what they print."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def inherited(*without: str) -> dict[str, str]:
    """Return the variables that the tests run with, but for those of this program.

    Args:
        without: how the names of others begin that are left out as well.
    """
    own = ("AIAML_", *without)
    return {key: value for key, value in os.environ.items() if not key.startswith(own)}


def printed(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a program that gets no input; `stdout` has all that it printed."""
    return subprocess.run(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=timeout,
    )


def completed(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run a program that gets no input; answers and errors are apart."""
    return subprocess.run(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=timeout,
    )
