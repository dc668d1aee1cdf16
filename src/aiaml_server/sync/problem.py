"""What an error of git or of the system means; no other place reads their words.

It is told as a `Problem`, whose sentence nobody reads again to find out what was meant.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from aiaml_server.errors import GitMissing, InvalidSetting, StoreError, UnsafePath
from aiaml_server.sync.command import REMOTE_VERBS, GitFailed
from aiaml_server.sync.status import TRY_AGAIN, Busy, Problem

_READ = 32 * 1024  # characters at the beginning and the end of what git said
_LONGEST = 300  # characters of git's own words
_BOILERPLATE = re.compile(
    r"failed to push some refs|could not read from remote repository|correct access rights"
    r"|and the repository exists|^to |unpacker error$|pre-receive hook declined$|^$",
    re.IGNORECASE,
)


class Cause(NamedTuple):
    """One cause of failure that can be told from git's words.

    Attributes:
        kind: the problem's kind.
        words: what git says then, in lower case, as a regular expression.
        sentence: what that means.
        remedy: what to do about it.
        verbs: the commands of git that may say it; empty for all.
        quoted: whether git's own words are told as well.
    """

    kind: str
    words: str
    sentence: str
    remedy: str
    verbs: tuple[str, ...] = ()
    quoted: bool = True


@cache
def causes() -> tuple[Cause, ...]:
    """Return the rows of causes.toml; the first that fits holds."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 (only where something failed)
    else:
        import tomli as tomllib  # noqa: PLC0415
    from pkgutil import get_data  # noqa: PLC0415

    text = get_data(__name__, "causes.toml")
    found = []
    for row in tomllib.loads((text or b"").decode())["cause"]:
        row["words"] = "|".join(row["words"])
        row["verbs"] = tuple(row.get("verbs", ()))
        found.append(Cause(**row))
    return tuple(found)


def problem_of(error: Exception) -> Problem:
    """Say what an error of a round means."""
    if isinstance(error, GitMissing):
        return NO_GIT
    if isinstance(error, GitFailed):
        return _of_git(error.verb, error.output)
    if isinstance(error, Busy):
        return Problem("waiting", str(error), error.remedy)
    if isinstance(error, (StoreError, OSError)):
        return _of_system(str(error), error.cause if isinstance(error, StoreError) else error)
    if isinstance(error, InvalidSetting):
        return Problem("address", str(error), _CORRECT)
    return Problem("git", str(error), TRY_AGAIN)


_DIRECTORY = "name a directory in AIAML_MEMORY_DIR, or move away the file that is in its path."


def _of_git(verb: str, output: str) -> Problem:
    if len(output) > 2 * _READ:
        output = f"{output[:_READ]}\n{output[-_READ:]}"
    text = output.lower()
    for cause in causes():
        if (not cause.verbs or verb in cause.verbs) and re.search(cause.words, text):
            reason = _reason(output, ours=cause.quoted)
            return Problem(cause.kind, f"{cause.sentence}{reason}", cause.remedy)
    if verb == "push":
        return Problem("refused", f"{_REFUSED}{_reason(output, ours=True)}", _MAY_WRITE)
    words = " / ".join(_telling(output)) or "it failed without a word"
    sentence = f"git {verb} failed: {words[:_LONGEST]}"
    return Problem("remote" if verb in REMOTE_VERBS else "git", sentence, TRY_AGAIN)


def _of_system(sentence: str, error: OSError) -> Problem:
    if isinstance(error, UnsafePath):
        return Problem("not-ours", f"{error.path} is {error.what}", f"{error.remedy}{_OR_OWN}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Problem("disk-full", sentence, _MAKE_ROOM)
    if error.errno == errno.EROFS:
        return Problem("disk-read-only", sentence, _MOUNT)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Problem("not-ours", sentence, _OWN)
    return Problem("disk", sentence, _DIRECTORY if error.errno == errno.ENOTDIR else TRY_AGAIN)


def _reason(output: str, *, ours: bool) -> str:
    """Return the server's own words in brackets; with `ours`, those of our git where it has none.

    What comes over a connection bears the mark "remote: ", what an ssh server says often "ERROR: ".
    """
    lines = list(_telling(output))
    theirs = [line for line in lines if line.startswith(("remote: ", "ERROR: "))]
    said = [re.sub(r"^(remote|ERROR|fatal|error): (fatal: |error: )?", "", line) for line in
            theirs or (lines if ours else [])]  # fmt: skip
    words = "; ".join(dict.fromkeys(line for line in said if not _BOILERPLATE.search(line)))
    return f" ({words[:_LONGEST]})" if words else ""


def _telling(output: str) -> Iterator[str]:
    """Yield the lines that say why, or all where none is marked so."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    marked = [line for line in lines if re.match(r"remote: |fatal: |error: |ERROR: |!", line)]
    yield from marked or filter(None, lines)


# --- what to do ---------------------------------------------------------------------------------

_WITHOUT = "or set AIAML_ENABLE_SYNC to false to do without."
_BY_ITSELF = "It is tried again by itself."
_CORRECT = "correct it, or remove it, where the server's environment is set; memories stay here"
_MAKE_ROOM = "make room on the disk that holds the memories. Nothing is lost."
_MOUNT = "the disk is mounted read-only; mount it so that it can be written."
_OWN = "see that the memory directory and all in it belongs to you and can be written."
_OR_OWN = (
    "; or, where it is yours and only belongs to another user, make it your own (`chown`). Then "
    "sync goes on by itself."
)
_REFUSED = "the remote refuses what is pushed"
_MAY_WRITE = (
    "see that the key or token may write, and that no rule or hook of the host protects `main` or "
    "forbids what its words name."
)

NO_GIT = Problem(
    "no-git",
    "there is no git on this machine",
    f"install git (https://git-scm.com), version 2.33 or newer; {_WITHOUT}",
)
OUTRUN = Problem(
    "outrun",
    "other machines have been faster with every push",
    f"nothing: memories are safe on this computer, and those of the others arrive. {_BY_ITSELF}",
)


def too_old(version: str) -> Problem:
    """Say that a git is older than sync can use."""
    remedy = f"install git 2.33 or newer; {_WITHOUT}"
    return Problem("old-git", f"git {version} is too old", remedy)
