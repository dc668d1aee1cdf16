"""What sync reports: problems with their remedies, and the status file that other programs read."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import AiamlError
from aiaml_server.files import read_own, replace_atomic
from aiaml_server.timestamps import format_timestamp, now_micros

STATUS_FILE = ".sync-status.json"
_MAX_BYTES = 16 * 1024 * 1024
KEPT_LOCAL = "kept-local"


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
        uncommitted: how many files have changed since the last cycle; only in `current_status`.
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
            values = json.loads(read_own(base / STATUS_FILE, _MAX_BYTES))
            known = {each.name for each in fields(cls)}
            status = cls(**{name: value for name, value in values.items() if name in known})
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
        """The files that are skipped for another reason than the person's wish."""
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
