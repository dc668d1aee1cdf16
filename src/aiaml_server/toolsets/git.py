"""Ask git which files a repository has and which it ignores, on the standard library alone.

Only commands that read are used, and nothing that the repository names is run.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiaml_server.errors import AiamlError
from aiaml_server.git import Git, GitFailed, Process
from aiaml_server.storage import programs

SUBMODULE = "160000"  # git-ls-files(1): the mode of a submodule
GIT_SECONDS = 10.0


class _StandardGit(Git):
    """Runs git without GitPython, which `citations` need not have."""

    def execute(self, words: Sequence[str], **options: Any) -> Process:
        """Start a process with the standard library."""
        return subprocess.Popen(  # noqa: S603
            words,
            cwd=self.directory,
            env=os.environ | options.pop("env"),
            stdin=options.pop("istream") or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )


def _find_top(root: str) -> str:
    """Return the nearest directory, upwards, that holds `.git`; empty if there is none."""
    tops = (top for top in (Path(root), *Path(root).parents) if os.path.lexists(top / ".git"))
    return os.fspath(next(tops, ""))


def can_answer(root: str) -> bool:
    """Return whether git is installed and the directory is in a repository."""
    return bool(programs.find("git") and _find_top(root))


def _run_git(root: str, *arguments: str, stdin: bytes = b"") -> tuple[bytes, str]:
    """Return what git printed, and why it failed; both are empty without git or a repository."""
    if not can_answer(root):
        return b"", ""
    # The work tree is named, because the repository's configuration may name another one.
    git = _StandardGit(Path(root), {"GIT_WORK_TREE": _find_top(root)})
    try:
        return git.run(*arguments, stdin=stdin, seconds=GIT_SECONDS), ""
    except GitFailed as error:
        if error.exit_code == 1:  # no path is ignored
            return error.stdout, ""
        return b"", " ".join(error.output.split())
    except (AiamlError, OSError) as error:
        return b"", str(error)


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
