"""What git's refs name: read from its files where that is plain, and else asked of git.

A round asks some ten times, and each process of git takes as long as the rest of an idle round.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from aiaml_server.sync.command import Git, GitFailed

MAIN = "refs/heads/main"  # the branch that memories are committed to, here and at the remote

_NAME = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"(HEAD|refs/[\w/.-]+)(?:\^\{commit\})?")


def name_of(git: Git, directory: Path, revision: str) -> str:
    """Return the object name that git understands by a revision; empty where there is none.

    Args:
        git: git in the repository.
        directory: its git directory.
        revision: what is asked for, such as "HEAD:files".

    Raises:
        GitFailed: git could not tell.
    """
    match = _REF.fullmatch(revision)
    name = written(directory, match[1]) if match else ""
    if match and not name and _is_absent(directory, match[1]):
        return ""
    return name or quiet(git, "rev-parse", "--verify", "--quiet", revision)


def written(directory: Path, ref: str) -> str:
    """Return what the file of a ref, or HEAD, says plainly; empty where only git knows."""
    text = _text_of(directory / ref)
    if ref == "HEAD" and text.startswith("ref: refs/heads/"):
        text = _text_of(directory / text.removeprefix("ref: "))
    return text if _NAME.fullmatch(text) else ""


def _is_absent(directory: Path, ref: str) -> bool:
    """Whether there is no such ref for sure: no file of it and, looked at later, no packed one.

    git packs a ref before it removes its file. Where it keeps them in another way, it says so in
    the place of HEAD.
    """
    elsewhere = _text_of(directory / "HEAD") in ("", "ref: refs/heads/.invalid")
    if ref == "HEAD" or elsewhere or os.path.lexists(directory / ref):
        return False
    try:
        packed = (directory / "packed-refs").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return f" {ref}\n" not in packed


def quiet(git: Git, verb: str, *words: str) -> str:
    """Ask for a name that may not be there; empty where it is not.

    Raises:
        GitFailed: git could not tell.
    """
    try:
        return os.fsdecode(git.run(verb, *words)).strip()
    except GitFailed as error:
        if error.output:
            raise
        return ""


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
