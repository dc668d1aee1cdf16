"""One round of synchronisation: commit, fetch, join, push; and what follows when that fails."""

from __future__ import annotations

import logging
import os
import random
import re
import threading
import time
from dataclasses import asdict

from aiaml_server.errors import AiamlError
from aiaml_server.files import Lock, make_directory
from aiaml_server.settings import Settings

from .command import GitFailed, GitMissing
from .leaks import objection
from .mend import is_damage, mend
from .remote import Remote
from .repository import Busy, Repository
from .status import Progress, Status, now

log = logging.getLogger(__name__)

_ATTEMPTS = 5
_LONGEST_PAUSE = 600.0
_LONGEST_CALL = 900.0


class Rounds:
    """The rounds of one process on one base directory; used by one thread."""

    def __init__(
        self, settings: Settings, closing: threading.Event, progress: Progress | None = None
    ) -> None:
        self._settings = settings
        self.progress = progress or Progress()
        self.problem: str | None = None  # of the last round
        self._closing = closing
        self._lock = Lock(settings.base / ".sync.lock")
        self._repository = Repository(settings.base)
        self._remote: Remote | None = None
        if settings.remote:
            self._remote = Remote(self._repository, settings.remote, self._commit)
        self._failures = 0
        self._not_before = 0.0
        self._status = Status.read(settings.base)
        self._reported: set[str] = set()

    def run(self, *, last: bool = False) -> bool:
        """Do one round; the last one stays on this machine.

        Returns:
            Whether it was done; not when another server is at it.

        Raises:
            GitMissing: there is no git.
        """
        try:
            return self.attempt(last=last)
        except GitMissing:
            raise
        except Exception:
            log.exception("A round of sync crashed; the next one comes")
            return True

    def attempt(self, *, last: bool = False) -> bool:
        """Do the same, but raise what nobody has thought of, and an `OSError` of the directory."""
        if not self._remote and not self._settings.base.is_dir():
            return True  # nothing was ever remembered
        make_directory(self._settings.base)
        with self._lock.held(1.0 if last else 0.0) as hold:
            if hold.had:
                self._guarded(last=last)
            return hold.had

    def end_calls(self, *, local: bool) -> None:
        """Kill the git that talks to the remote, or also the one that works here; run no more."""
        if self._remote:
            self._remote.git.end()
        if local:
            self._repository.git.end()

    def _guarded(self, *, last: bool) -> None:
        before = asdict(self._status)
        self.problem = None
        self._status.remote = self._remote is not None
        try:
            try:
                self._round(last=last)
            except GitFailed as error:
                if last or not is_damage(error):
                    raise
                mend(self._repository)
                self._not_before = 0.0
                self._round(last=last)
        except (GitFailed, Busy, OSError) as error:
            if not self._closing.is_set():
                self._failed(error)
        else:
            if not (last and self._remote):  # the remote was not asked
                self._recovered()
        if asdict(self._status) != before:
            self._status.write(self._settings.base)

    def _round(self, *, last: bool) -> None:
        self._repository.prepare()
        committed = self._commit()
        if last:
            return
        self._repository.attach()
        try:
            self._exchange_when_due()
        finally:
            self._count()
        if committed:
            self._repository.tidy()

    # --- committing -----------------------------------------------------------------------------

    def _commit(self) -> int:
        self.progress.begin("committing")
        committed = self._repository.commit(self._objection)
        self.progress.committed += committed
        kept_out = self._repository.held_back | self._repository.unfit
        held_back = {os.fsdecode(path): why for path, why in kept_out.items()}
        self._status.held_back = held_back
        for path, reason in held_back.items():
            self._report(f"{path} is kept out of git: {reason}")
        if committed:
            self._status.last_commit = now()
            log.info("Committed %d memories", committed)
        return committed

    def _objection(self, data: bytes) -> str:
        return objection(data) if self._settings.check_secrets else ""

    # --- exchanging -----------------------------------------------------------------------------

    def _exchange_when_due(self) -> None:
        if not self._remote or time.monotonic() < self._not_before:
            return
        interval = self._settings.sync_interval
        try:
            self._remote.prepare()
            self._exchange(self._remote)
        except (AiamlError, OSError):
            self._failures += 1
            pause = min(interval * 2**self._failures, max(interval, _LONGEST_PAUSE))
            self._not_before = time.monotonic() + pause * random.uniform(0.5, 1.0)  # noqa: S311
            self._remote.seconds = min(self._remote.seconds * 2, _LONGEST_CALL)
            raise
        self._failures = 0

    def _exchange(self, remote: Remote) -> None:
        """Fetch, join and push, until the remote has what we have or refuses for good."""
        refused = None
        seen = ""
        for attempt in range(_ATTEMPTS):
            self.progress.begin("fetching")
            theirs, on_main = remote.look()
            self._status.last_fetch = now()
            if refused and theirs == seen:  # no other machine was faster: it is a refusal
                raise refused
            seen = theirs
            if theirs:
                self._join(theirs)
            ours = self._repository.head()
            if not ours or (on_main and ours == theirs):
                return
            self.progress.begin("pushing")
            try:
                remote.push(ours)
            except GitFailed as error:
                refused = error
                self._closing.wait(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311
            else:
                self._status.last_push = now()
                self.progress.pushed += self._repository.differing(theirs, ours)
                log.info("Pushed")
                return
        if refused:
            raise refused

    def _join(self, theirs: str) -> None:
        self.progress.begin("joining")
        for attempt in range(_ATTEMPTS + 1):
            try:
                self.progress.arrived += self._repository.join(theirs)
            except Busy:  # a file changed meanwhile: that version is committed, then joined
                if attempt == _ATTEMPTS:
                    raise
                self._commit()
            else:
                return

    def _count(self) -> None:
        if self._remote and self._repository.head():
            self._status.ahead, self._status.behind = self._repository.ahead_behind()

    # --- telling --------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        self.problem = in_words(error)
        self._status.failed(self.problem)
        self._report(
            f"Sync: {self.problem}; memories are safe on this machine, and it is tried again"
        )

    def _recovered(self) -> None:
        if self._failures:
            return  # the remote is not asked at the moment
        if self._status.problem:
            log.warning("Sync: all is well again")
            self._reported.clear()
        self._status.recovered()

    def _report(self, sentence: str) -> None:
        log.log(logging.INFO if sentence in self._reported else logging.WARNING, "%s", sentence)
        self._reported.add(sentence)


_WORDS = {
    r"could not resolve host|unable to look up": (
        "the remote's name cannot be resolved (is this machine offline?)"
    ),
    r"authentication failed|permission denied \(|could not read (username|password)|askpass"
    r"|host key verification": "the remote did not let us in: check the key, token or known host",
    r"no end after": "the remote did not answer in time",
    r"does not appear to be a git repository|repository .*not found": (
        "there is no git repository at the remote address, or we may not see it"
    ),
    r"connection (refused|timed out|reset)|(unable|failed) to connect|network is unreachable": (
        "the remote cannot be reached"
    ),
    r"no space left|disk quota": "a disk is full",
}


def in_words(error: Exception) -> str:
    """Say in plain words what failed."""
    if not isinstance(error, GitFailed):
        return str(error)
    for pattern, words in _WORDS.items():
        if re.search(pattern, error.output, re.IGNORECASE):
            return words
    lines = [line for line in error.output.splitlines() if line.strip()] or ["without a word"]
    telling = [line for line in lines if re.match(r"remote: |fatal: |error: |!", line)]
    return f"git {error.verb} failed: {' / '.join(telling or lines)[:300]}"
