"""Exceptions that this package raises on purpose.

    AiamlError
    ├── InvalidInput        a caller gave a wrong value: `field`, `reason`
    │   └── InvalidArguments  several are wrong
    ├── InvalidSetting      an environment variable is wrong: `variable`, `reason`
    ├── MalformedFile       a file does not have the format that is expected: `problems`
    │   └── TooLarge
    ├── FileChanged         a file changed after it was read
    ├── NotCommitted        the current version of a file is not in git yet
    ├── GitMissing          git is not installed
    ├── LockTimeout         another process is syncing the directory
    ├── UnsafePath          a path of ours is a link, a pipe or another user's file
    ├── NoStateDirectory    this user has no directory for state or caches: `reason`
    ├── StoreError          the disk refused an operation: `cause`
    └── ToolError           a toolset refused a call; the class's name is the error code
        ├── NotFound
        ├── Busy
        └── DiskError

`str()` of each is one sentence for a person. The tools and the command line translate the errors
into the specified shapes and into exit codes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence


class AiamlError(Exception):
    """Base of every error that this package raises on purpose."""


class ToolError(AiamlError):
    """A toolset refused a call and changed nothing. The class's name is the error code."""


class NotFound(ToolError):  # noqa: N818 (an error code)
    """Nothing has the id that was given."""


class Busy(ToolError):  # noqa: N818 (an error code)
    """Another process held the lock for too long. Try again."""


class DiskError(ToolError):
    """The disk refused, or a file is in the way. Nothing was changed."""


class InvalidInput(AiamlError):  # noqa: N818 (the words a reader looks for)
    """A value cannot be used. Nothing was changed.

    Attributes:
        field: the parameter's name.
        reason: what would be right.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidArguments(InvalidInput):
    """Arguments are missing or have the wrong type."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        """Make the error from what would be right, by parameter."""
        field, reason = next(iter(reasons.items()))
        super().__init__(field, reason)
        self.args = ("; ".join(f"{field}: {reason}" for field, reason in reasons.items()),)


class InvalidSetting(AiamlError):  # noqa: N818
    """An environment variable cannot be used.

    Attributes:
        variable: the variable's name.
        reason: what would be right.
    """

    def __init__(self, variable: str, reason: str) -> None:
        super().__init__(f"{variable} {reason}")
        self.variable = variable
        self.reason = reason


class MalformedFile(AiamlError):  # noqa: N818
    """A file does not have the expected format. Readers skip it and never rewrite it.

    Attributes:
        problems: everything that is wrong with it.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class TooLarge(MalformedFile):
    """A file exceeds the size limit."""


class FileChanged(AiamlError):  # noqa: N818
    """A file changed after it was read. Read it again and retry."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed by somebody else meanwhile; it is left as it is")


class NotCommitted(AiamlError):  # noqa: N818
    """Replacing a file would lose its current version, which is not in git."""


class GitMissing(AiamlError):  # noqa: N818
    """Git is not installed."""


class LockTimeout(AiamlError, TimeoutError):  # noqa: N818
    """Another process is syncing the directory and did not finish in time."""


class UnsafePath(AiamlError, OSError):  # noqa: N818
    """A path of ours is something that this program never creates there. It is left as it is.

    Following a link, a pipe or another user's file could change or read something elsewhere, or
    wait for ever.
    """

    def __init__(self, path: str | os.PathLike[str], what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}; move it away", os.fspath(path))
        self._sentence = f"{os.fspath(path)} is {what}; move it away"

    def __str__(self) -> str:
        return self._sentence


class NoStateDirectory(AiamlError, OSError):  # noqa: N818
    """There is no directory where state or caches of this user can be kept.

    Attributes:
        reason: what is in the way.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(errno.ENOENT, reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}; set XDG_STATE_HOME to a directory that only you can write to"


class StoreError(AiamlError):
    """The disk refused an operation, which was undone.

    Attributes:
        cause: the system's error.
    """

    def __init__(self, doing: str, path: str | os.PathLike[str], cause: OSError) -> None:
        super().__init__(f"cannot {doing} {os.fspath(path)}: {os_reason(cause)}")
        self.cause = cause


def os_reason(error: OSError) -> str:
    """Return the system's message, in lower case, for use inside a sentence."""
    message = error.strerror or str(error)
    return message[:1].lower() + message[1:]
