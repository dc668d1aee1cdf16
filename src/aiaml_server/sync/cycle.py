"""One sync cycle: commit what is new, fetch, merge, write what arrived, push."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import AiamlError, LockTimeout
from aiaml_server.files import hold_lock, make_directory
from aiaml_server.git import Git, GitFailed
from aiaml_server.settings import Settings, hide_password
from aiaml_server.sync import purge
from aiaml_server.sync.history import open_conflicts
from aiaml_server.sync.last_sync import LastSync, Stamp, settled
from aiaml_server.sync.person_git import PersonGit
from aiaml_server.sync.remote import Remote, remote_in_use
from aiaml_server.sync.replica import Replica
from aiaml_server.sync.repository import (
    FETCHED,
    MAIN,
    NOTES,
    UNTRUSTED,
    Repository,
    changes_between,
    open_repository,
)
from aiaml_server.sync.skip import KEEP_LOCAL
from aiaml_server.sync.status import (
    DISK_FULL,
    LOCAL_KINDS,
    Counts,
    Problem,
    Status,
    check_git_version,
    problem_of,
    timestamp_now,
)
from aiaml_server.sync.transfer import count_unsent, exchange, merge_remote
from aiaml_server.sync.worktree import scan, stat_directory
from aiaml_server.timestamps import parse_timestamp

log = logging.getLogger(__name__)

LOCK_FILE = ".sync.lock"
_WATCHED = (  # in the repository's directory
    f"../{KEEP_LOCAL}",
    "config",
    "packed-refs",
    MAIN,
    FETCHED,
    *(f"{NOTES}/{name}" for name in ("released", "forgotten", "deleted")),
)
_LEAST_FREE = 1_000_000  # bytes; the status itself could not be written with less


class Cycle:
    """Sync of one memory directory; used by one thread.

    Attributes:
        counts: what all cycles together did.
    """

    def __init__(self, settings: Settings, closing: threading.Event | None = None) -> None:
        self.counts = Counts()
        self._settings = settings
        self._base = settings.base
        self._closing = closing or threading.Event()
        self._repository: Repository | None = None
        self._unchanged_state: object = None

    def run(
        self,
        *,
        local: bool = False,
        on_deleted: str = "",
        purge_sums: frozenset[str] = frozenset(),
        lock_seconds: float = 0.0,
        fetch_interval: float = 0.0,
    ) -> Status:
        """Do one cycle and return how things stand after it; what fails is in the status.

        Args:
            local: only commit; do not talk to the remote.
            on_deleted: "delete" or "restore": what the person answers about deletions that wait.
            purge_sums: what to forget everywhere.
            lock_seconds: how long to wait for another process that syncs.
            fetch_interval: do not ask the remote if nothing is to be sent and any process has
                asked it within these seconds.

        Raises:
            LockTimeout: another process was syncing all the time.
        """
        make_directory(self._base)
        with hold_lock(self._base / LOCK_FILE, lock_seconds) as hold:
            if not any(hold):  # another process has it
                raise LockTimeout("another process is syncing this directory")
            status = Status.read(self._base)
            before, skipped_before = status.problem, status.skipped
            address = remote_in_use(self._settings)
            status.remote = hide_password(address)
            remote = "" if local else address
            try:
                if hold.problem:
                    raise hold.problem
                has_orders = bool(on_deleted or purge_sums)
                if has_orders or not self._is_idle(status, remote, fetch_interval):
                    self._run(status, remote, on_deleted, purge_sums)
            except LockTimeout:
                raise
            except (AiamlError, OSError) as error:
                self._unchanged_state = None
                if self._closing.is_set():
                    return status
                status.problem = problem_of(error)
                status.failing_since = status.failing_since or timestamp_now()
            else:
                if not local or (before and before.kind in LOCAL_KINDS):
                    status.problem = status.failing_since = None
            _log_changes(before, skipped_before, status)
            status.write(self._base)
        return status

    def stop(self) -> None:
        """End the running git command; nothing is started any more."""
        if self._repository:
            self._repository.git.stop()

    def _run(
        self,
        status: Status,
        remote: str,
        on_deleted: str,
        purge_sums: frozenset[str],
        *,
        is_repaired: bool = False,
    ) -> None:
        """Do all steps; note the state in which nothing is left to do until something changes.

        All begins anew, once, where the repository turns out to be damaged.
        """
        repository = open_repository(self._base, remote=self._settings.remote, create=True)
        self._repository = repository
        try:
            with repository.locked():
                purge.record(repository, purge_sums)
                replica = Replica(repository, self._settings, status, self.counts, on_deleted)
                before = replica.head
                replica.reconcile()
                merge_remote(replica)
                if status.remote:
                    count_unsent(replica)
                if remote:
                    exchange(replica, Remote(repository, remote), self._closing)
                purge.finish(repository)
                repository.repack()
                if replica.head != before or status.conflicts:
                    status.conflicts = open_conflicts(repository, replica.head)
        except GitFailed as error:
            is_other = is_repaired or problem_of(error).kind != "git"
            if is_other or not repository.set_aside_if_damaged():
                raise
            log.warning("The repository was damaged and is made anew; the old one is kept")
            self._run(status, remote, on_deleted, purge_sums, is_repaired=True)
        else:
            self._unchanged_state = self._state(repository) if replica.is_complete else None

    # --- idle cycles ----------------------------------------------------------------------------

    def _is_idle(self, status: Status, remote: str, fetch_interval: float) -> bool:
        """Return whether nothing has changed since the last cycle, here or at the remote."""
        state, repository = self._unchanged_state, self._repository
        if not repository or state is None or state != self._state(repository):
            return False
        fetched = parse_timestamp(status.last_fetch or "") or 0
        if remote and time.time() - fetched / 1e6 >= fetch_interval:
            with repository.locked():
                Remote(repository, remote).download()
            status.last_fetch = timestamp_now()
        return state == self._state(repository)

    def _state(self, repository: Repository) -> object:
        """Return what changes whenever there is something to do; None if it might not."""
        found = stat_directory(self._base / "files")
        for name in _WATCHED:
            with suppress(OSError):
                found[name] = (repository.directory / name).stat()
        stamps = {path: settled(Stamp.of(status)) for path, status in found.items()}
        return None if None in stamps.values() else (stamps, PersonGit(self._base).index_time())


def current_status(settings: Settings) -> Status:
    """Return how sync stands now: what the last cycle wrote, and what has changed since then."""
    if not settings.sync:
        return Status()
    status = Status.read(settings.base)
    try:
        repository = open_repository(settings.base, remote=settings.remote)
        check_git_version(Git(Path("/")))  # it may be missing
        if status.problem and status.problem.kind == UNTRUSTED.kind:  # it is trusted by now
            status.problem = status.failing_since = None
        record = LastSync.load(repository, settings.base / "files").files
        found = scan(settings.base / "files", record).files
        known = {path: state.name for path, state in record.items()}
        paths = changes_between(known, {path: file.name for path, file in found.items()})
        changed = {path.removeprefix("files/") for path in paths} | status.skipped.keys()
        status.uncommitted = len(changed.difference(status.kept_local, status.placeholders))
        if status.uncommitted and not status.problem:
            status.problem = _obstacle(settings.base)
    except (AiamlError, OSError) as error:
        problem = problem_of(error)
        if problem == UNTRUSTED:  # what the last cycle wrote is about another directory
            status = Status()
        status.problem = problem
    status.remote = hide_password(remote_in_use(settings))
    return status


def _obstacle(base: Path) -> Problem | None:
    """Return what keeps a server from committing, if it could not report that itself."""
    if shutil.disk_usage(base).free < _LEAST_FREE:
        return DISK_FULL
    with hold_lock(base / LOCK_FILE, 2.0) as hold:  # a commit takes no longer
        return None if hold.acquired else problem_of(hold.problem or LockTimeout())


def _log_changes(before: Problem | None, skipped_before: Collection[str], status: Status) -> None:
    after = status.problem
    if after and (before is None or before.kind != after.kind):
        log.warning("Sync fails: %s. %s", after.sentence, after.remedy)
    elif before and not after:
        log.info("Sync works again")
    for name, why in status.needs_attention.items():
        if name not in skipped_before:
            log.warning("files/%s is not committed: %s", name, why.sentence)
