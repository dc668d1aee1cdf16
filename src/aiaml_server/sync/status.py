"""What sync reports: the status, and what errors mean. No other module reads git's messages."""

from __future__ import annotations

import errno
import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import (
    AiamlError,
    GitMissing,
    InvalidSetting,
    LockTimeout,
    UnsafePath,
)
from aiaml_server.files import read_own, replace_atomic
from aiaml_server.git import NETWORK_COMMANDS, Git, GitFailed
from aiaml_server.settings import hide_password
from aiaml_server.timestamps import format_timestamp, now_micros

STATUS_FILE = ".sync-status.json"
_MAX_BYTES = 16 * 1024 * 1024
KEPT_LOCAL = "kept-local"
LOCAL_KINDS = {
    "no-git",
    "old-git",
    "git",
    "locked",
    "disk-full",
    "untrusted",
    "no-state",
    "unreadable",
    "other",
}
"""The kinds of problems that a cycle without the remote would have as well."""


class Problem(NamedTuple):
    """Why sync fails, or why it skips a file.

    Attributes:
        kind: a word for programs, such as "offline".
        sentence: what is wrong, for a person, without a full stop.
        remedy: what to do about it.
    """

    kind: str
    sentence: str
    remedy: str


class SyncError(AiamlError):
    """Sync cannot go on. Its problem says what to do."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.sentence}. {problem.remedy}")
        self.problem = problem


@dataclass
class Status:
    """How sync of one memory directory stands, as the last cycle wrote it.

    Attributes:
        remote: the address of the remote, without a password; empty for none.
        last_commit, last_fetch, last_push: when each last succeeded (ISO 8601), or None.
        failing_since: when sync began to fail; None while it works.
        problem: why it fails; None while it works.
        uncommitted: how many files are not committed as they are, without those that the person
            keeps on this computer; only in `current_status`.
        unsent: how many memories the remote does not have in their present version.
        skipped: the files that are not committed as they are, each with the reason.
        conflicts: ids of two versions of one memory that nobody has edited or forgotten since.
        placeholders: files that a cloud program has replaced by placeholders.
        deletions_waiting: deletions that wait for confirmation.
    """

    remote: str = ""
    last_commit: str | None = None
    last_fetch: str | None = None
    last_push: str | None = None
    failing_since: str | None = None
    problem: Problem | None = None
    uncommitted: int = 0
    unsent: int = 0
    skipped: dict[str, Problem] = field(default_factory=dict)
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)
    deletions_waiting: int = 0

    @classmethod
    def read(cls, base: Path) -> Status:
        """Return what the last cycle wrote; an empty status where there is none."""
        try:
            status = cls(**json.loads(read_own(base / STATUS_FILE, _MAX_BYTES)))
            status.problem = Problem(*status.problem) if status.problem else None
            status.skipped = {name: Problem(*why) for name, why in status.skipped.items()}
            status.conflicts = [(kept, copy) for kept, copy in status.conflicts]
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return cls()
        return status

    def write(self, base: Path) -> None:
        """Write the status file. A disk that refuses is ignored: the next cycle writes it again."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        with suppress(OSError):
            replace_atomic(base / STATUS_FILE, text.encode())

    @property
    def kept_local(self) -> list[str]:
        """The files that the person keeps on this computer."""
        return sorted(name for name, why in self.skipped.items() if why.kind == KEPT_LOCAL)

    @property
    def needs_attention(self) -> dict[str, Problem]:
        """The files that are skipped for another reason than the person's choice."""
        return {name: why for name, why in self.skipped.items() if why.kind != KEPT_LOCAL}


def timestamp_now() -> str:
    """Return the present time as it stands in a status."""
    return format_timestamp(now_micros(), "seconds")


@dataclass
class Counts:
    """What one cycle did.

    Attributes:
        saved: memories that were committed, without deletions.
        deleted: deletions that were committed.
        restored: memories that the disk had lost.
        received: memories that arrived from the remote.
        deleted_elsewhere: memories that were deleted on another computer.
        sent: memories that were sent, deletions included.
    """

    saved: int = 0
    deleted: int = 0
    restored: int = 0
    received: int = 0
    deleted_elsewhere: int = 0
    sent: int = 0


# --- what errors mean -----------------------------------------------------------------------------

_NEEDED = "2.33"
_NEEDED_VERSION = (2, 33)
_RETRIED = "Sync tries again by itself."
_LOCAL_SAFE = "Memories are safe on this computer meanwhile."


class Cause(NamedTuple):
    """A row of the table below; `pattern` matches what git prints then."""

    kind: str
    pattern: str
    sentence: str
    remedy: str
    commands: tuple[str, ...] = NETWORK_COMMANDS


# The first row that matches holds, so what is special stands before what is general.
_CAUSES = (
    Cause(
        "author-address",
        r"gh007|private e-?mail|e-?mail address.{0,80}(not|refus|reject|publish)",
        "the host refuses the e-mail address of the commits",
        "Set another one with `git config --global user.email ADDRESS` (GitHub shows yours under "
        "Settings, Emails), then run `aiaml sync`: what was not sent yet is committed anew.",
    ),
    Cause(
        "protected-branch",
        r"protected branch|gh006|not allowed to (force )?push|non-fast-forward"
        r"|force.push.{0,60}(not|denied|disallow)|cannot force.push",
        "the host protects the branch `main`",
        "Allow pushes to `main`, and force pushes for `aiaml forget --everywhere`, in the "
        "repository's settings.",
    ),
    Cause(
        "push-rule",
        r"gh013|repository rule|push rule|hook declined|push declined|returned error: 413",
        "a rule of the host refuses the push",
        "Read the host's message above, and change the rule at the host.",
    ),
    Cause(
        "host-key",
        r"host key verification failed|remote host identification has changed|authenticity of host",
        "the host's SSH key is unknown or has changed",
        "Run `ssh -T HOST` once by hand, compare the key with the one that the host publishes, and "
        "accept it.",
    ),
    Cause(
        "key-refused",
        r"permission denied \(|authentication failed|could not read (username|password)"
        r"|invalid (username|credentials)|terminal prompts disabled|returned error: 401",
        "the host did not accept your key, token or password",
        "`git ls-remote ADDRESS` must answer without a question: add your SSH key at the host, or "
        "store a valid token with a credential helper.",
    ),
    Cause(
        "no-permission",
        r"permission.{0,200} denied to |write access|read.only|returned error: 403"
        r"|insufficient permission|unable to create temporary object directory|not permitted",
        "your key or token lacks a permission at the remote repository",
        "Give it the right to read and write, or ask the owner of the repository.",
    ),
    Cause(
        "remote-disk-full",
        r"no space left|disk quota|quota exceeded",
        "the disk of the remote repository is full",
        "Make room there.",
        ("push",),
    ),
    Cause(
        "disk-full",
        r"no space left|disk quota|out of diskspace|couldn't write '",
        "the disk is full",
        "Make room on the disk that holds the memories. Nothing is lost.",
        (),
    ),
    Cause(
        "offline",
        r"could not resolve host|unable to look up|connection (refused|timed out|reset|closed)"
        r"|(unable|failed) to connect|network is unreachable|no route to host|no answer within"
        r"|operation too slow|remote end hung up|early eof|returned error: 5\d\d",
        "the remote cannot be reached",
        f"Check the network. {_RETRIED} {_LOCAL_SAFE}",
    ),
    Cause(
        "no-repository",
        r"does not appear to be a git repository|repository .{0,400}not found|returned error: 404"
        r"|not exported|no such file or directory",
        "there is no repository at the remote's address, or you may not see it",
        "Compare the address, make an empty private repository there, or plug in its disk.",
    ),
    Cause(
        "locked",
        r"\.lock['\":]|another git process|cannot lock ref(?!.*broken)",
        "another git process is working in the repository",
        f"Let it end. {_RETRIED} If none runs, delete the lock file that the message names.",
        (),
    ),
)


DISK_FULL = Problem("disk-full", "the disk is full", "Make room. Nothing is lost.")
_TYPES: dict[type[Exception], Problem] = {
    GitMissing: Problem("no-git", "git is not installed", f"Install git {_NEEDED} or newer."),
    LockTimeout: Problem(
        "locked",
        "another process is syncing this directory",
        "Wait until it has ended. If it never does, end that process.",
    ),
}


def problem_of(error: Exception) -> Problem:
    """Return what an error of sync, git or the system means."""
    if isinstance(error, SyncError):
        return error.problem
    if isinstance(error, GitFailed):
        return _git_problem(error)
    if problem := _TYPES.get(type(error)):
        return problem
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return DISK_FULL
    if isinstance(error, (InvalidSetting, UnsafePath)):
        return Problem("setting", str(error), "Correct that. Nothing is sent meanwhile.")
    return Problem("other", str(error), f"Run `aiaml sync` to try again. {_LOCAL_SAFE}")


def _git_problem(error: GitFailed) -> Problem:
    text = error.output[-20_000:].lower()
    for cause in _CAUSES:
        if (not cause.commands or error.command in cause.commands) and re.search(
            cause.pattern, text
        ):
            return Problem(cause.kind, cause.sentence + _quoted(error), cause.remedy)
    sentence = f"git {error.command} failed{_quoted(error)}"
    return Problem("git", sentence, f"Run `aiaml sync` to try again. {_LOCAL_SAFE}")


def _quoted(error: GitFailed) -> str:
    """Return the host's message, or else git's, in brackets."""
    lines = re.findall(r"(?m)^remote: *(.+)", error.output) or error.output.splitlines()
    quoted = " / ".join(filter(None, map(str.strip, lines)))
    quoted = re.sub(r"\S+://\S+", lambda found: hide_password(found[0]), quoted)[:300]
    return f' ("{quoted}")' if quoted else ""


def check_git_version(git: Git) -> None:
    """Check that git is there and new enough.

    Raises:
        GitMissing: it is not installed.
        SyncError: git is too old.
    """
    found = re.search(r"(\d+)\.(\d+)", git.run("version").decode())
    if found and tuple(map(int, found.groups())) < _NEEDED_VERSION:
        sentence = f"git {found[0]} is too old"
        raise SyncError(Problem("old-git", sentence, f"Install git {_NEEDED} or newer."))
