"""Ask git about a repository that anybody may have made, without running anything of it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from aiaml_server.errors import AiamlError
from aiaml_server.git import TIMED_OUT, Git, GitFailed

_SECONDS = 30.0
_SILENT = 60.0  # seconds for which git is not run again in a directory where it did not end
_silent: dict[str, float] = {}  # when git did not end in a directory


def ask(
    root: str, *words: str, seconds: float = _SECONDS, given: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Run git in a directory and return the result; None without git or after the time limit.

    `given` is its standard input.

    Commands that compare files with commits, such as `git diff` and `git status`, would run filters
    of the repository. Do not use them.
    """
    if time.monotonic() < _silent.get(root, 0.0):
        return None
    try:
        output = Git(Path(root)).run(*words, stdin=given or None, seconds=seconds)
    except GitFailed as error:
        if error.exit_code != TIMED_OUT:
            errors = error.output.encode()
            return subprocess.CompletedProcess(words, error.exit_code, error.stdout, errors)
        _silent[root] = time.monotonic() + _SILENT
        return None
    except (AiamlError, OSError, ValueError):
        return None
    return subprocess.CompletedProcess(words, 0, output, b"")
