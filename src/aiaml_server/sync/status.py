"""How things stand, in a file that other processes can read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timezone
from pathlib import Path

NAME = ".sync-status.json"


@dataclass
class Status:
    """How synchronisation stands. Times are ISO 8601 in UTC; None: not yet.

    Attributes:
        remote: whether there is one (its address, which may hold a password, is not told).
        last_commit: when memories were last committed.
        last_fetch: when the remote was last asked, and answered.
        last_push: when the remote last accepted commits.
        ahead: commits that the remote had not when last asked.
        behind: commits that the remote had and this machine has not.
        problem: what failed last and why, in plain words; None while all is well.
        failing_since: when that began.
        held_back: the files that are not committed, each with the reason.
    """

    remote: bool = False
    last_commit: str | None = None
    last_fetch: str | None = None
    last_push: str | None = None
    ahead: int = 0
    behind: int = 0
    problem: str | None = None
    failing_since: str | None = None
    held_back: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, base: Path) -> Status:
        """Return what the last sync of a base directory wrote; all empty when there is none."""
        try:
            values = json.loads((base / NAME).read_text(encoding="utf-8"))
            return cls(**{each.name: values[each.name] for each in fields(cls)})
        except (OSError, ValueError, LookupError, TypeError):
            return cls()

    def write(self, base: Path) -> None:
        """Put it into its file, for whoever reads to see whole. A disk that refuses is let be."""
        text = json.dumps(asdict(self), indent=2, ensure_ascii=True) + "\n"
        new = base / f"{NAME}.new"
        with suppress(OSError):
            new.write_text(text, encoding="utf-8")
            os.replace(new, base / NAME)  # noqa: PTH105

    def failed(self, problem: str) -> None:
        """Note a failure."""
        self.problem = problem
        self.failing_since = self.failing_since or now()

    def recovered(self) -> None:
        """Note that all is well."""
        self.problem = self.failing_since = None


class Progress:
    """What a round does, told to whoever waits for it; a server's thread has nobody listen.

    Attributes:
        committed: memories that were committed.
        arrived: memories that came from the remote, in a version that was not here.
        pushed: memories that the remote had not in this version.
    """

    def __init__(self) -> None:
        self.committed = self.arrived = self.pushed = 0

    def begin(self, doing: str) -> None:
        """Hear what is done now: "committing", "fetching", "joining" or "pushing"."""


def now() -> str:
    """Return the time as it stands in a status."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
