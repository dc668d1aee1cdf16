"""Asks git about a repository that anybody may have made: it runs nothing of it, and ends."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from aiaml_server.errors import AiamlError
from aiaml_server.git import TIMED_OUT, Git, GitFailed

_SECONDS = 30.0
_SILENT = 60.0  # seconds in which a directory is not asked again where git did not end
_silent: dict[str, float] = {}  # when git did not end in a directory


def ask(
    root: str, *words: str, seconds: float = _SECONDS, given: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Return how git ended in a directory; None where there is no git, or it does not end in time.

    `given` is what it reads.

    Filters of the repository would be run by what compares files with commits, such as `git diff`
    and `git status`: these are not to be asked for.
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
