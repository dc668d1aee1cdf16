"""What can go wrong, and what to do about it.

    AiamlError
    ├── InvalidInput      the caller gave a wrong value: `field`, `reason`
    │   └── InvalidArguments  several, or of the wrong type: `reasons`
    ├── InvalidSetting    an environment variable is wrong: `variable`, `reason`
    ├── MalformedFile     a file is not as its program writes it: `problems`; it is left as it is
    ├── ChangedMeanwhile  a file is not as it was when it was read: `name`; it is left as it is
    ├── NotInGit          the present version would be lost: `name`, `reason`; it is left as it is
    ├── GitMissing        there is no git on this machine
    ├── Occupied          another process synchronises the directory
    ├── NotOurs           something else has the name of a file of ours: `path`, `what`
    ├── StoreError        the disk refused: `path`, `cause`; nothing was half done
    └── Refused           a toolset other than the three tools refused a call
        ├── NotFound      there is nothing of that id
        ├── Busy          another process is writing
        └── DiskError     the disk refused, or something is in the way

Each carries its data and, as `str()`, one sentence for a person. They are translated once, at the
edges: the tools turn them into the specification's error shapes, the command line into exit codes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

__all__ = [
    "AiamlError",
    "Busy",
    "DiskError",
    "InvalidArguments",
    "InvalidInput",
    "InvalidSetting",
    "MalformedFile",
    "NotFound",
    "NotOurs",
    "Refused",
    "StoreError",
    "TooLarge",
    "said_by_system",
]


class AiamlError(Exception):
    """Root of everything this package raises on purpose."""


class Refused(AiamlError):  # noqa: N818 (the subclasses' names are the codes)
    """A call of a toolset that was refused; nothing was changed. The class's name is the code."""


class NotFound(Refused):
    """There is nothing of that id."""


class Busy(Refused):
    """Another process is writing and did not end in time; trying again is right."""


class DiskError(Refused):
    """The disk refused, or something is in the way; what was there is as it was."""


def said_by_system(error: OSError) -> str:
    """Return what the system says of a failure, to stand inside a sentence."""
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]


class InvalidInput(AiamlError):  # noqa: N818 (the words a reader looks for)
    """A value that cannot be used; nothing was changed.

    Attributes:
        field: the parameter's name.
        reason: what would be right.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class InvalidArguments(InvalidInput):
    """Arguments that are missing or of the wrong type; nothing was done.

    Attributes:
        reasons: for each parameter, what would be right.
    """

    def __init__(self, reasons: Mapping[str, str]) -> None:
        field, reason = next(iter(reasons.items()))
        super().__init__(field, reason)
        self.reasons = dict(reasons)

    def __str__(self) -> str:
        return "; ".join(f"{field}: {reason}" for field, reason in self.reasons.items())


class InvalidSetting(AiamlError):  # noqa: N818
    """An environment variable that cannot be used; the server does not start.

    Attributes:
        variable: the variable's name.
        reason: what would be right.
    """

    def __init__(self, variable: str, reason: str) -> None:
        super().__init__(f"{variable} {reason}")
        self.variable = variable
        self.reason = reason


class MalformedFile(AiamlError):  # noqa: N818
    """A file that is not as its program writes it, such as one that is no memory.

    Readers skip it, name it once, and never rewrite it.

    Attributes:
        problems: everything that is wrong with it, not only the first.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class TooLarge(MalformedFile):
    """One that is larger than its program writes any."""


class ChangedMeanwhile(AiamlError):  # noqa: N818
    """A file that somebody else changed since it was read. Reading it again is right.

    Attributes:
        name: the file's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed by somebody else meanwhile; it is left as it is")
        self.name = name


class NotInGit(AiamlError):  # noqa: N818
    """A file whose present version git has not got: replacing it would lose that.

    Attributes:
        name: the file's name.
        reason: why git has not got it; empty where that is not known.
    """

    def __init__(self, name: str, reason: str = "") -> None:
        because = f", because {reason}" if reason else ""
        super().__init__(
            f"the present version of files/{name} would be lost, since git has not got it{because}"
            ": have git take it first, or move the file away, and try again"
        )
        self.name = name
        self.reason = reason


class GitMissing(AiamlError):  # noqa: N818
    """There is no git on this machine."""


class Occupied(AiamlError, TimeoutError):  # noqa: N818
    """Another process synchronises the directory, and did not end in the time given."""


class NotOurs(AiamlError, OSError):  # noqa: N818
    """Under a name that is ours stands what this program never puts there. It is left as it is.

    A link, a pipe, a device, another user's file: whoever made it, following it could change or
    read something elsewhere, or wait for ever. Moving it away is right.

    Attributes:
        path: where.
        what: what it is, such as "a symbolic link".
        remedy: what to do about it.
    """

    def __init__(
        self, path: str | os.PathLike[str], what: str, remedy: str = "move it away"
    ) -> None:
        super().__init__(errno.EINVAL, f"it is {what}; {remedy}", os.fspath(path))
        self.path = path
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{os.fspath(self.path)} is {self.what}; {self.remedy}"


class Nowhere(AiamlError, OSError):  # noqa: N818
    """Nothing that is derived from the memories can be kept for this user. All works without.

    Attributes:
        why: what is in the way.
    """

    def __init__(self, why: str) -> None:
        super().__init__(errno.ENOENT, why)
        self.why = why

    def __str__(self) -> str:
        return f"{self.why}; it needs a state directory that only you can write in (XDG_STATE_HOME)"


class StoreError(AiamlError):
    """The disk refused. What was begun has been undone; trying again later is right.

    Attributes:
        path: where.
        cause: the system's own error.
    """

    def __init__(self, doing: str, path: str | os.PathLike[str], cause: OSError) -> None:
        why = _WORDS.get(cause.errno or 0) or said_by_system(cause)
        super().__init__(f"cannot {doing} {os.fspath(path)}: {why}")
        self.path = path
        self.cause = cause


_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the system does not allow a file of this size",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "the system does not permit it",
    errno.ENOTDIR: "part of the path is a file, not a directory",
    errno.EEXIST: "it exists and is not a directory",
    errno.EIO: "the disk reported an input/output error",
    errno.EMFILE: "this process has too many files open",
    errno.ENFILE: "the system has too many files open",
}
