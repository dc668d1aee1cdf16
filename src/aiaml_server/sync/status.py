"""How things stand, in a file that other processes can read."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from aiaml_server.errors import AiamlError
from aiaml_server.files import read_own, replace_atomic
from aiaml_server.timestamps import format_timestamp, now_micros, parse_timestamp

_MOST = 4 * 1024 * 1024  # bytes; each file that is kept out takes some dozens


@dataclass
class Status:
    """How synchronisation stands. Times are ISO 8601 in UTC; None: not yet.

    Attributes:
        remote: whether there is one (its address, which may hold a password, is not told).
        last_commit: when memories were last committed.
        last_fetch: when the remote was last asked, and answered.
        last_push: when the remote last accepted commits.
        last_success: when a round of any process last did all that there was to do with the remote.
        ahead: commits that the remote had not when last asked.
        behind: commits that the remote had and this machine has not.
        problem: what failed last and why, in plain words; None while all is well.
        problem_kind: the same in a word for programs (see `Problem`).
        what_to_do: and what to do about it.
        failing_since: when that began.
        held_back: the files that are not committed as they are, each with why.
        notice: what happened last that a person should hear of, though nothing failed.
        noticed_at: when that was.
    """

    FILE: ClassVar = ".sync-status.json"

    remote: bool = False
    last_commit: str | None = None
    last_fetch: str | None = None
    last_push: str | None = None
    last_success: str | None = None
    ahead: int = 0
    behind: int = 0
    problem: str | None = None
    problem_kind: str | None = None
    what_to_do: str | None = None
    failing_since: str | None = None
    held_back: dict[str, Problem] = field(default_factory=dict)
    notice: str | None = None
    noticed_at: str | None = None

    @classmethod
    def read(cls, base: Path) -> Status:
        """Return what the last sync of a base directory wrote; all empty when there is none.

        What is missing, as in the file of an older version, or of no use is left empty.
        """
        import json  # noqa: PLC0415 (most verbs ask for no status)

        try:
            values = json.loads(read_own(base / cls.FILE, _MOST))
        except (OSError, ValueError, RecursionError):
            return cls()
        known = {each.name for each in fields(cls)}
        usable = values.items() if isinstance(values, dict) else ()
        status = cls(**{name: each for name, each in usable if name in known and _fits(name, each)})
        status.held_back = {path: Problem(*why) for path, why in status.held_back.items()}
        return status

    def write(self, base: Path) -> None:
        """Put it into its file, for whoever reads to see whole. A disk that refuses is let be."""
        import json  # noqa: PLC0415 (see `read`)

        text = json.dumps(asdict(self), indent=2, ensure_ascii=True) + "\n"
        with suppress(OSError):
            replace_atomic(base / self.FILE, text.encode(), 0o600)

    @property
    def kept_out(self) -> dict[str, Problem]:
        """What is held back other than by a person's wish."""
        return {path: why for path, why in self.held_back.items() if why.kind != KEPT_LOCAL}

    @property
    def trouble(self) -> Problem | None:
        """What failed last, as a value; None while all is well."""
        if self.problem is None:
            return None
        return Problem(self.problem_kind or "unknown", self.problem, self.what_to_do or TRY_AGAIN)

    def failed(self, problem: Problem) -> None:
        """Note a failure."""
        self.problem_kind, self.problem, self.what_to_do = problem
        self.failing_since = self.failing_since or now()

    def recovered(self) -> None:
        """Note that all is well."""
        self.problem = self.problem_kind = self.what_to_do = self.failing_since = None


class Problem(NamedTuple):
    """Why sync does not work, or keeps a file out of git.

    Attributes:
        kind: a word for programs, such as "offline".
        sentence: what fails, or why, for a person; without a full stop.
        remedy: what to do about it.
    """

    kind: str
    sentence: str
    remedy: str

    @classmethod
    def of(cls, error: Exception) -> Problem:
        """Say what an error of sync, or of its history, means."""
        from aiaml_server.sync.problem import problem_of  # noqa: PLC0415 (regular expressions by the dozen)

        return problem_of(error)


class Busy(AiamlError):  # noqa: N818
    """Not now: a disk is missing, a person has to say a word, or a file changed meanwhile.

    Attributes:
        remedy: what to do about it.
    """

    def __init__(self, sentence: str, remedy: str = "") -> None:
        super().__init__(sentence)
        self.remedy = remedy or "nothing: it is committed, and tried again by itself."


Missing = Literal["", "forget", "bring back"]
"""What a person says about memories that were deleted; nothing, where many at once are held."""

LOCAL = frozenset(
    {"no-git", "old-git", "git", "waiting", "locked", "not-ours"}
    | {"disk", "disk-full", "disk-read-only"}
)
"""The kinds that have nothing to do with the remote: a round that did not ask it can end them."""

KEPT_LOCAL = "kept-local"
"""The kind of what a person keeps on this machine."""

MOVE = "put a regular file that you can read in its place, or move it elsewhere."
CUT = "cut it into several memories, or move it elsewhere."


TRY_AGAIN = (
    "`aiaml sync` tries it now; AIAML_LOG_LEVEL=INFO has a server say more in its log. "
    "Memories are safe on this computer meanwhile."
)
_NUMBERS = ("ahead", "behind")


def _fits(name: str, value: object) -> bool:
    """Whether a value from a file can be what its name says."""
    if name == "held_back":
        return isinstance(value, dict) and all(map(_is_problem, value.values()))
    if name == "remote":
        return isinstance(value, bool)
    if name in _NUMBERS:
        return isinstance(value, int) and value >= 0
    if not isinstance(value, str):
        return value is None
    is_time = name.startswith(("last_", "failing_", "noticed_"))
    return not is_time or parse_timestamp(value) is not None


def _is_problem(value: object) -> bool:
    words = value if isinstance(value, list) else []
    return len(words) == len(Problem._fields) and all(isinstance(each, str) for each in words)


class Progress:
    """Counts what rounds do. `begin` does nothing here; a verb that shows progress overrides it.

    Attributes:
        committed: memories that were committed.
        forgotten: how many of these are gone.
        brought_back: memories that git had and the disk had lost.
        arrived: memories that came from the remote, in a version that was not here.
        forgotten_elsewhere: how many of these are gone.
        pushed: memories that the remote had not in this version.
    """

    def __init__(self) -> None:
        self.committed = self.forgotten = self.brought_back = 0
        self.arrived = self.forgotten_elsewhere = self.pushed = 0

    def begin(self, doing: str) -> None:
        """Hear what is done now: "saving", "receiving", "joining", "sending" or "tidying"."""


def now(*, exactly: bool = False) -> str:
    """Return the time as it stands in a status."""
    return format_timestamp(now_micros(), "microseconds" if exactly else "seconds")
