"""One sync cycle: commit what is new, fetch, merge, write what arrived, push."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path

from aiaml_server.errors import AiamlError, LockTimeout
from aiaml_server.files import Lock, make_directory
from aiaml_server.git import Git, GitFailed
from aiaml_server.settings import Settings, hide_password
from aiaml_server.sync import purge
from aiaml_server.sync.exchange import Exchange
from aiaml_server.sync.history import open_conflicts
from aiaml_server.sync.last_sync import LastSync, Stamp, settled
from aiaml_server.sync.merge import is_memory_path
from aiaml_server.sync.person_git import PersonGit
from aiaml_server.sync.reconcile import Reconciler
from aiaml_server.sync.remote import Remote, remote_in_use
from aiaml_server.sync.repository import (
    FETCHED,
    MAIN,
    ORIGIN,
    Repository,
    changes_between,
    open_repository,
)
from aiaml_server.sync.skip import KEEP_LOCAL
from aiaml_server.sync.status import (
    Counts,
    Problem,
    Status,
    check_git_version,
    problem_of,
    timestamp_now,
)
from aiaml_server.sync.worktree import scan, stat_directory
from aiaml_server.timestamps import parse_timestamp

log = logging.getLogger(__name__)

LOCK_FILE = ".sync.lock"
LOCAL_KINDS = {
    "no-git",
    "old-git",
    "git",
    "locked",
    "disk-full",
    "untrusted",
    "unreadable",
    "other",
}
"""The kinds of problems that a cycle without the remote would have as well."""


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
        self._lock_seconds = 0.0

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
            on_deleted: "delete" or "restore": what the person says about held deletions.
            purge_sums: what to forget everywhere.
            lock_seconds: how long to wait for another process that syncs.
            fetch_interval: do not ask the remote if nothing is to be sent and any process has
                asked it within these seconds.

        Raises:
            LockTimeout: another process was syncing all the time.
        """
        self._lock_seconds = lock_seconds
        make_directory(self._base)
        with Lock(self._base / LOCK_FILE).held(lock_seconds) as hold:
            if not (hold.acquired or hold.problem):
                raise LockTimeout("another process is syncing this directory")
            status = Status.read(self._base)
            before, skipped_before = status.problem, set(status.skipped)
            remote = "" if self._settings.remote_error else remote_in_use(self._settings)
            status.remote = hide_password(remote) if remote else ""
            try:
                if hold.problem:
                    raise hold.problem
                words_spoken = bool(on_deleted or purge_sums)
                if words_spoken or not self._is_idle(
                    status, "" if local else remote, fetch_interval
                ):
                    self._run(status, "" if local else remote, on_deleted, purge_sums)
                if self._settings.remote_error and not local:
                    raise self._settings.remote_error
            except (AiamlError, OSError) as error:
                self._unchanged_state = None
                if isinstance(error, LockTimeout):
                    raise
                if self._closing.is_set():
                    return status
                status.problem = problem_of(error)
                status.failing_since = status.failing_since or timestamp_now()
            else:
                if not local or (before and before.kind in LOCAL_KINDS):
                    status.problem = status.failing_since = None
            _log_change(before, status.problem)
            _log_skipped(skipped_before, status)
            status.write(self._base)
        return status

    def stop(self) -> None:
        """End the running git command; nothing is started any more."""
        if self._repository:
            self._repository.git.stop()

    def _run(
        self, status: Status, remote: str, on_deleted: str, purge_sums: frozenset[str]
    ) -> None:
        repository = open_repository(self._base, remote=self._settings.remote, create=True)
        self._repository = repository
        with repository.locked(self._lock_seconds):
            try:
                is_complete = self._steps(repository, status, remote, on_deleted, purge_sums)
            except GitFailed as error:
                if problem_of(error).kind != "git" or not repository.set_aside_if_damaged():
                    raise
                log.warning("The repository was damaged and is made anew; the old one is kept")
                is_complete = self._steps(repository, status, remote, on_deleted, purge_sums)
        self._unchanged_state = self._state() if is_complete else None

    def _steps(
        self,
        repository: Repository,
        status: Status,
        remote: str,
        on_deleted: str,
        purge_sums: frozenset[str],
    ) -> bool:
        """Do all steps; return whether nothing is left to do until something changes."""
        before, theirs = repository.resolve(MAIN, ORIGIN)
        purge.record(repository, purge_sums)
        purged = purge.load_list(repository, before)
        reconciler = Reconciler(repository, self._settings, status, self.counts, on_deleted, purged)
        head = reconciler.reconcile(before)
        exchange = Exchange(reconciler, self._closing, head, theirs)
        exchange.forget_everywhere()
        try:
            if remote:
                exchange.exchange(Remote(repository, remote))
        finally:
            if remote:
                tree = repository.tree
                unsent = changes_between(tree(exchange.theirs), tree(exchange.head))
                status.unsent = sum(map(is_memory_path, unsent))
        purge.finish(repository)
        repository.repack()
        if exchange.head != before or status.conflicts:
            status.conflicts = open_conflicts(repository, exchange.head)
        return reconciler.is_complete

    # --- idle cycles ----------------------------------------------------------------------------

    def _is_idle(self, status: Status, remote: str, fetch_interval: float) -> bool:
        """Return whether nothing has changed since the last cycle, here or at the remote."""
        repository = self._repository
        if not repository or self._unchanged_state is None:
            return False
        if self._unchanged_state != self._state():
            return False
        if not remote:
            return True
        fetched = parse_timestamp(status.last_fetch or "") or 0
        if time.time() - fetched / 1e6 >= fetch_interval:
            with repository.locked():
                Remote(repository, remote).download()
            status.last_fetch = timestamp_now()
        return self._unchanged_state == self._state()

    def _state(self) -> object:
        """Return what changes whenever there is something to do; None if it might not."""
        repository = self._repository
        assert repository  # noqa: S101
        watched = [self._base / KEEP_LOCAL, repository.directory / "config"]
        watched += [repository.directory / ref for ref in (MAIN, FETCHED, "packed-refs")]
        watched += [repository.notes / name for name in ("released", "forgotten", "deleted")]
        stamps = []
        for path in watched:
            with suppress(OSError):
                stamps.append((path, Stamp.of(path.stat())))
        for name, found in stat_directory(self._base / "files").items():
            stamps.append((Path(name), Stamp.of(found)))
        if any(settled(stamp) is None for _, stamp in stamps):
            return None
        return stamps, PersonGit(self._base).index_state()


def current_status(settings: Settings) -> Status:
    """Return how sync stands now: what the last cycle wrote, and what has changed since then."""
    if not settings.sync:
        return Status()
    status = Status.read(settings.base)
    status.remote = hide_password(remote_in_use(settings))
    try:
        check_git_version(Git(Path(settings.base.anchor)).run("version").decode())
        repository = open_repository(settings.base, remote=settings.remote)
        record = LastSync.load(repository, settings.base / "files")
        disk = scan(settings.base / "files", record.files)
        found = {path: file.name for path, file in disk.files.items()}
        recorded = {path: state.name for path, state in record.files.items()}
        changed = {path.removeprefix("files/") for path, _ in found.items() ^ recorded.items()}
        status.uncommitted = len((changed | status.skipped.keys()).difference(status.kept_local))
    except (AiamlError, OSError) as error:
        status.problem = problem_of(error)
    return status


def _log_change(before: Problem | None, after: Problem | None) -> None:
    if after and (before is None or before.kind != after.kind):
        log.warning("Sync fails: %s. %s", after.sentence, after.remedy)
    elif before and not after:
        log.info("Sync works again")


def _log_skipped(before: set[str], status: Status) -> None:
    for name, why in status.needs_attention.items():
        if name not in before:
            log.warning("files/%s is not committed: %s", name, why.sentence)
