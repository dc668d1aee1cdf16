"""Sync: every memory is committed to git, and exchanged with the person's other computers.

Each cycle compares `files/` with the newest commit, so nothing needs to be queued. An agent never
waits for it, and no failure of it keeps a memory from being stored.

    cycle        one cycle, and when it is idle
    replica      its part on this computer: commit and write
    transfer     its part with the remote: fetch, merge, push
    worktree     the files on disk, compared and written
    last_sync    what the disk held when it was last in sync
    person_git   the person's own repository in or around the directory
    skip         which files are not committed, and why
    merge        the three-way merge (pure)
    repository   the git repository
    remote       the address of the remote, and what may be in it
    purge        forgetting everywhere
    history      versions of memories, open conflicts
    status       what sync reports, and what errors mean

What a server needs at its start is here. Everything else is imported from these modules when it is
needed, because loading them takes time that no answer should wait for.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from aiaml_server.errors import GitMissing, LockTimeout
from aiaml_server.settings import Settings
from aiaml_server.sync.status import Counts, Problem, Status

if TYPE_CHECKING:
    from aiaml_server.sync.cycle import Cycle

__all__ = ["Counts", "Problem", "Status", "Syncer", "sync_once"]

log = logging.getLogger(__name__)

_START_SECONDS = 0.5  # a new server answers first
_GATHER_SECONDS = 0.2  # memories that are stored together are committed together
_CLOSE_SECONDS = 1.2
_LONGEST_PAUSE_SECONDS = 600.0  # between two attempts while the remote is away


def sync_once(
    settings: Settings,
    *,
    local: bool = False,
    on_deleted: str = "",
    forget: frozenset[str] = frozenset(),
    lock_seconds: float = 10.0,
) -> tuple[Status, Counts]:
    """Do one cycle now; return how things stand after it and what it did.

    Args:
        settings: which directory, and with which remote.
        local: only commit; do not talk to the remote.
        on_deleted: "delete" or "restore": what the person answers about deletions that wait.
        forget: what to forget everywhere, as `plan_forgetting` returns it in `sums`.
        lock_seconds: how long to wait for another process that syncs.

    Raises:
        GitMissing: git is not installed.
        LockTimeout: another process was syncing all the time.
    """
    from aiaml_server.sync.cycle import Cycle  # noqa: PLC0415

    if not settings.sync:
        return Status(), Counts()
    cycle = Cycle(settings)
    status = cycle.run(
        local=local, on_deleted=on_deleted, purge_sums=forget, lock_seconds=lock_seconds
    )
    return status, cycle.counts


class Syncer:
    """Syncs a memory directory in a background thread. No method raises; only `close` waits."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._is_pending = False
        self._cycle: Cycle | None = None
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    def start(self) -> None:
        """Start the thread, if sync is on. The first cycle catches up with everything."""
        if self._settings.sync:
            self._thread.start()

    def wake(self) -> None:
        """Start a cycle soon, because a file was written or deleted."""
        self._is_pending = True
        self._woken.set()

    def close(self) -> None:
        """Commit what is new and end the thread, within 1.5 seconds.

        What does not fit is found at the next start.
        """
        if not self._thread.is_alive():
            return
        self._closing.set()
        self._woken.set()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive() and self._cycle:
            self._cycle.stop()

    def _run(self) -> None:
        self._closing.wait(_START_SECONDS)
        try:
            from aiaml_server.sync.cycle import Cycle  # noqa: PLC0415

            self._cycle = Cycle(self._settings, self._closing)
            interval = pause = self._settings.sync_interval
            while not self._closing.is_set() or self._is_pending:
                pause = min(2 * pause, max(interval, _LONGEST_PAUSE_SECONDS))
                if self._run_cycle(self._cycle):
                    pause = interval
                if self._closing.is_set():
                    break
                if self._woken.wait(pause):
                    self._closing.wait(_GATHER_SECONDS)
        except GitMissing as error:
            log.warning("Sync is off: %s", error)
        except Exception:
            log.exception("Sync has ended; memories are stored and found as before")

    def _run_cycle(self, cycle: Cycle) -> bool:
        """Do one cycle; return whether it succeeded."""
        self._woken.clear()
        is_pending, self._is_pending = self._is_pending, False
        try:
            status = cycle.run(
                local=self._closing.is_set(),
                fetch_interval=0.0 if is_pending else 0.9 * self._settings.sync_interval,
            )
        except LockTimeout:  # the other process may have looked before this change
            if is_pending:
                self.wake()
            return True
        return status.problem is None
