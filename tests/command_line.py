"""Commands of `aiaml` that tests run, in this process or in one of their own."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from aiaml_server.cli.app import run as run_command
from client import SERVER
from printed import completed


class Result(NamedTuple):
    """How a command ended.

    Attributes:
        code: the exit code.
        stdout: the answer.
        stderr: everything else that was printed.
    """

    code: int
    stdout: str
    stderr: str


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, with an empty input."""
    return completed([*SERVER, *words], env={**os.environ, **env})


def call(env: Mapping[str, str], *words: str, text: str = "") -> Result:
    """Run a command in this process, with `text` as its input."""
    log = logging.getLogger("aiaml_server.sync")
    level = log.level
    with CliRunner(env=env).isolation(input=text) as (out, err, _):
        code = run_command(words)
        result = Result(code, out.getvalue().decode(), err.getvalue().decode())
    log.setLevel(level)
    return result


def at(base: Path, **env: str) -> dict[str, str]:
    """Return an environment with memories of its own, and no git."""
    home = {name: str(base.parent) for name in ("HOME", "USERPROFILE")}
    own = {"AIAML_MEMORY_DIR": str(base), "AIAML_ENABLE_SYNC": "false"}
    return {**os.environ, **home, **own, **env}
