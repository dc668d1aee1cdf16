"""Ask git which files a repository has and which it ignores, on the standard library alone.

Only commands that read are used, and nothing that the repository names is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aiaml_server.storage import programs

SUBMODULE = "160000"  # git-ls-files(1): the mode of a submodule
_SECONDS = 10.0
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_OPTIONAL_LOCKS": "0"}


def _find_top(root: str) -> str:
    """Return the nearest directory, upwards, that holds `.git`; empty if there is none."""
    tops = (top for top in (Path(root), *Path(root).parents) if os.path.lexists(top / ".git"))
    return os.fspath(next(tops, ""))


def can_answer(root: str) -> bool:
    """Return whether git is installed and the directory is in a repository."""
    return bool(programs.find("git") and _find_top(root))


def _run_git(root: str, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """Return what git printed; None if it failed, did not end in time or is not there."""
    if not can_answer(root):
        return None
    # Variables such as GIT_DIR, which a hook has, would lead to another repository. The work tree
    # is named, because the repository's configuration may name another one.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    environment |= {**_ENVIRONMENT, "GIT_WORK_TREE": _find_top(root)}
    try:
        done = subprocess.run(  # noqa: S603
            [programs.find("git") or "git", "-C", root, *_OPTIONS, *arguments],
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode in (0, 1) else None  # 1: no path is ignored


def list_tracked(root: str) -> dict[str, str]:
    """Return the tag and mode of each file in the index, by path; empty if git cannot say."""
    printed = _run_git(root, "ls-files", "-t", "--stage", "-z") or b""
    entries = printed.decode("utf-8", "surrogateescape").split("\0")
    rows = [entry.partition("\t") for entry in entries]
    return {path: description for description, _, path in rows}


def find_ignored(root: str, paths: Sequence[str]) -> set[str] | None:
    """Return those of some paths that git ignores; None if git cannot say.

    A tracked file is not ignored, whatever a pattern says (git-check-ignore(1)).
    """
    stdin = b"".join(os.fsencode(f"./{path}\0") for path in paths)
    printed = _run_git(root, "check-ignore", "--stdin", "-z", stdin=stdin)
    if printed is None:
        return None
    return {os.fsdecode(name).removeprefix("./") for name in printed.split(b"\0")}
