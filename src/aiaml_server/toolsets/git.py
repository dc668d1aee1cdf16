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
_SECONDS = 10.0  # as the message below says
_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_OPTIONAL_LOCKS": "0"}


def _find_top(root: str) -> str:
    """Return the nearest directory, upwards, that holds `.git`; empty if there is none."""
    tops = (top for top in (Path(root), *Path(root).parents) if os.path.lexists(top / ".git"))
    return os.fspath(next(tops, ""))


def can_answer(root: str) -> bool:
    """Return whether git is installed and the directory is in a repository."""
    return bool(programs.find("git") and _find_top(root))


def _run_git(root: str, *arguments: str, stdin: bytes = b"") -> tuple[bytes, str]:
    """Return what git printed, and why it failed; both are empty without git."""
    git, top = programs.find("git"), _find_top(root)
    if not (git and top):
        return b"", ""
    # Variables such as GIT_DIR, which a hook has, would lead to another repository. The work tree
    # is named, because the repository's configuration may name another one.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    environment |= {**_ENVIRONMENT, "GIT_WORK_TREE": top}
    try:
        done = subprocess.run(  # noqa: S603
            [git, "-C", root, *_OPTIONS, *arguments],
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b"", "it did not end within 10 seconds"
    except OSError as error:
        return b"", str(error)
    if done.returncode in (0, 1):  # 1: no path is ignored
        return done.stdout, ""
    return b"", " ".join(os.fsdecode(done.stderr).split())


def list_tracked(root: str) -> dict[str, str]:
    """Return the tag and mode of each file in the index, by path; empty if git cannot say."""
    printed, _ = _run_git(root, "ls-files", "-t", "--stage", "-z")
    rows = [
        entry.partition("\t") for entry in printed.decode("utf-8", "surrogateescape").split("\0")
    ]
    return {path: description for description, _, path in rows}


def find_ignored(root: str, paths: Sequence[str]) -> tuple[set[str], str]:
    """Return those of some paths that git ignores, and why it does not say; empty if it does.

    A tracked file is not ignored, whatever a pattern says (git-check-ignore(1)).
    """
    stdin = b"".join(os.fsencode(f"./{path}\0") for path in paths)
    printed, problem = _run_git(root, "check-ignore", "--stdin", "-z", stdin=stdin)
    ignored = {os.fsdecode(name).removeprefix("./") for name in printed.split(b"\0")}
    return ignored, problem and f"git does not say whether it ignores it ({problem})"
