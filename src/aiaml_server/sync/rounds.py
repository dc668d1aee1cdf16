"""One round of synchronisation: commit, fetch, join, push; and what follows when that fails."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiaml_server.errors import AiamlError, InvalidSetting
from aiaml_server.files import Lock, make_directory
from aiaml_server.settings import Settings
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.commit import Committed, commit
from aiaml_server.sync.forgetting.rewrite import Marks
from aiaml_server.sync.forgetting.telling import hear
from aiaml_server.sync.guard import Guard
from aiaml_server.sync.merge import Joined, erase, join
from aiaml_server.sync.outgoing import Outgoing
from aiaml_server.sync.pace import Pace
from aiaml_server.sync.repository import Repository
from aiaml_server.sync.status import LOCAL, Busy, Missing, Problem, Progress, Status, now
from aiaml_server.sync.tidy import Tidy
from aiaml_server.timestamps import parse_timestamp

if TYPE_CHECKING:
    from aiaml_server.sync.remote import Remote

log = logging.getLogger(__name__)

_ATTEMPTS = 5
_TOLD_AFTER = 10  # rounds in which other machines were faster each time

# Of a push that came too late: of git's own check, and of the host's.
_OUTRUN = (
    "fetch first|non-fast-forward|failed to update ref|cannot lock ref|incorrect old value"
    "|failed to lock|stale info|already exists"
)


class Outrun(AiamlError):  # noqa: N818
    """Other machines were faster with every push. It is no failure: their memories have arrived."""


class Rounds:
    """The rounds of one process on one base directory; used by one thread."""

    def __init__(
        self,
        settings: Settings,
        closing: threading.Event,
        progress: Progress | None = None,
        missing: Missing = "",
        *,
        erase: Marks = frozenset(),
    ) -> None:
        self._settings = settings
        self.progress = progress or Progress()
        self.problem: Problem | None = None  # of the last round
        self.has_committed = False  # whether that one came so far, whatever failed afterwards
        self._closing = closing
        self._missing: Missing = missing
        self._erase = erase
        self._lock = Lock(settings.base / ".sync.lock")
        self._repository = Repository(settings.base)
        self.tidy = Tidy(self._repository)
        self.pace = Pace(settings.sync_interval)
        self._remote: Remote | None = None
        if settings.remote and not settings.remote_error:
            from aiaml_server.sync.remote import Remote  # noqa: PLC0415 (many have none)

            self._remote = Remote(self._repository, settings.remote, self._commit, self.pace)
        self._outgoing = Outgoing(self._repository)
        self._guard: Guard | None = None
        self._committed = Committed(0, {})  # what the last commit came to
        self._kept_out: dict[bytes, Problem] = {}  # by that, and by joins since
        self._status = Status()
        self._asked = False  # whether the remote was, in this round
        self._succeeded: str | None = None  # when a round of this process last did all
        self._failed_at: str | None = None  # when the last one of this process that failed did
        self._reported: set[str] = set()

    def run(self, *, last: bool = False) -> bool:
        """Do one round; the last one stays on this machine.

        What fails for a reason that is known is told in the status.

        Returns:
            Whether it was done; not when another process synchronises.

        Raises:
            GitMissing: there is no git.
            OSError: the directory cannot be made.
        """
        if not self._remote and not self._settings.base.is_dir():
            return True  # nothing was ever remembered
        make_directory(self._settings.base)
        done = self.progress.committed + self.progress.arrived
        with self._lock.held(1.0 if last else 0.0) as hold:
            if not hold.acquired and not hold.problem:
                return False
            before = self._begin()
            try:
                if hold.problem:  # waiting would change nothing
                    raise hold.problem
                try:
                    self._round(last=last)
                except GitFailed as error:
                    from aiaml_server.sync.mend import is_damage, mend  # noqa: PLC0415 (hardly ever needed)

                    if last or not is_damage(error, self._repository):
                        raise
                    mend(self._repository, self._new_guard())
                    self.pace.hurry()
                    self._round(last=last)
            except (GitFailed, Busy, Outrun, InvalidSetting, OSError) as error:
                if not self._closing.is_set():
                    self._failed(error)
            else:
                self._done()
            self._tell(before)
        if not last and self.progress.committed + self.progress.arrived > done:
            self.tidy.begin()  # when others may have their round
        return True

    def end_calls(self, *, local: bool) -> None:
        """Kill the git that talks to the remote, or also the one that works here; run no more."""
        if self._remote:
            self._remote.git.end()
        self.tidy.end()
        if local:
            self._repository.git.end()

    def _begin(self) -> Status:
        """Take up what any process achieved meanwhile; return it as it was."""
        self._status, before = Status.read(self._settings.base), Status.read(self._settings.base)
        self.problem = None
        self.has_committed = self._asked = False
        self._status.remote = bool(self._settings.remote)
        return before

    def _tell(self, before: Status) -> None:
        if self._status != before:
            self._status.write(self._settings.base)

    def _round(self, *, last: bool) -> None:
        self._repository.prepare()
        self._commit()
        self.has_committed = True
        try:
            if unfinished := self._repository.joining():
                self._join(unfinished)
            # Have no history here with anything that is forgotten everywhere.
            if self._erase:
                self.progress.begin("rewriting the history")
            self._until_quiet(lambda: erase(self._repository, self._erase, self._committed))
            if not last and self._remote and self.pace.is_due():
                self._exchange(self._remote)
        finally:
            if not last:
                if self._remote and self._repository.head():
                    self._status.ahead, self._status.behind = self._repository.ahead_behind()
                self._purge()
        if last:
            return
        if error := self._settings.remote_error:
            raise error

    # --- committing -----------------------------------------------------------------------------

    def _commit(self) -> None:
        self.progress.begin("saving")
        guard = self._new_guard()
        if not self._guard or guard.choices != self._guard.choices:
            self._guard = guard  # else the one stays that remembers what it has looked into
        committed = commit(self._repository, self._guard, self._missing)
        self.progress.committed += committed.number
        self.progress.forgotten += committed.forgotten
        self.progress.brought_back += committed.brought_back
        if back := committed.brought_back:
            memories = "1 memory" if back == 1 else f"{back} memories"
            log.warning("Brought back %s that git had and the disk had not", memories)
        self._committed, self._kept_out = committed, committed.kept_out
        self._tell_kept_out()
        self._outgoing.note(committed.passed, self._guard)
        if committed.number:
            self._status.last_commit = now()
            log.info("Committed %d memories", committed.number)

    def _purge(self) -> None:
        """Have nothing left of it in the repository."""
        try:
            if any(self._repository.erasure.left()):
                from aiaml_server.sync.forgetting.purge import purge  # noqa: PLC0415 (hardly ever needed)

                self.progress.begin("removing what nothing leads to any more")
                purge(self._repository)
        except (GitFailed, OSError) as error:
            log.info("Not all that was forgotten is removed from the repository: %s", error)

    def _new_guard(self) -> Guard:
        return Guard(self._repository, secrets=self._settings.check_secrets)

    def _tell_kept_out(self) -> None:
        held_back = self._outgoing.held | self._kept_out
        self._status.held_back = {os.fsdecode(path): why for path, why in held_back.items()}
        for path, why in self._status.kept_out.items():
            self._report(f"{path} is kept out of git: {why.sentence}")

    # --- exchanging -----------------------------------------------------------------------------

    def _exchange(self, remote: Remote) -> None:
        try:
            remote.prepare()
            if remote.was_another:
                remote.was_another = False  # told once: what follows is of this one
                self._status.last_fetch = self._status.last_push = self._status.last_success = None
            try:
                pushed = self._pushed(remote)
            finally:
                remote.record()
        except Outrun:
            raise
        except (AiamlError, OSError):
            self.pace.failed()
            raise
        self._asked = True
        self.pace.succeeded(pushed=pushed)

    def _pushed(self, remote: Remote) -> bool:
        """Fetch, join and push, until the remote has what we have or refuses for good.

        Returns:
            Whether something was pushed.

        Raises:
            Outrun: other machines were faster each time.
            GitFailed: the remote cannot be reached, or refuses.
        """
        refused, seen = None, ""
        for attempt in range(_ATTEMPTS + 1):
            started = time.monotonic()
            self.progress.begin("receiving")
            theirs, on_main = remote.fetch()
            self._status.last_fetch = now()
            if refused and theirs == seen:  # no other machine was faster: it is a refusal
                raise refused
            seen = theirs
            if theirs:
                self._join(theirs)
            clean = self._cleaned(theirs)
            ours = self._pushable(clean)
            if not ours or (on_main and ours == theirs):
                self._repository.erasure.settle(theirs)
                return False
            if refused and attempt == _ATTEMPTS:
                if not re.search(_OUTRUN, refused.output):
                    raise refused
                self.pace.gave_up(time.monotonic() - started, attempt)
                raise Outrun from refused
            self.progress.begin("sending")
            try:
                remote.push(ours, theirs if clean != theirs and on_main else "")
            except GitFailed as error:
                refused = error
                self._closing.wait(self.pace.lost(time.monotonic() - started, attempt))
            else:
                self._status.last_push = now()
                if ours != self._repository.head() and not self._repository.go_on_from(ours):
                    self._join(ours)
                self.progress.pushed += self._repository.differing(clean, ours)
                self._repository.erasure.settle(ours)
                log.info("Pushed")
                return True
        raise AssertionError  # the last attempt returns or raises

    def _cleaned(self, theirs: str) -> str:
        """Return what the remote is to have of its history; tell if it was there so before."""
        erasure = self._repository.erasure
        clean = erasure.cleaned(theirs)
        if clean != theirs and erasure.is_settled():
            author = self._repository.said_of(theirs, "%an")
            self._notice(
                "something that was forgotten everywhere came back to the remote and is removed "
                f"again: a program or person with the old history pushed (last was {author}). "
                "Update AIAML on every machine, and clone anew where you use git by hand"
            )
        return clean

    def _notice(self, sentence: str) -> None:
        self._status.notice, self._status.noticed_at = sentence, now()
        self._report(f"Sync: {sentence}")

    def _pushable(self, theirs: str) -> str:
        """Return what may be pushed; empty for nothing."""
        ours = self._repository.head()
        if not ours:
            return ours
        guard, secrets = self._guard or self._new_guard(), self._settings.check_secrets
        ours = self._outgoing.pushable(theirs, ours, guard, secrets=secrets)
        self._tell_kept_out()
        if self._outgoing.message:
            self._notice(
                f"the message of a commit seems to hold {self._outgoing.message}; its files are "
                "pushed in commits that say other words, and it stays on this machine under "
                "refs/aiaml/unpushed"
            )
        return ours

    def _join(self, theirs: str) -> None:
        self.progress.begin("joining")
        if notice := hear(self._repository, theirs, follow=self._missing == "forget"):
            self._notice(notice)
        joined = self._until_quiet(lambda: join(self._repository, theirs, self._committed))
        self.progress.arrived += joined.arrived
        self.progress.forgotten_elsewhere += joined.forgotten
        self._kept_out = {**self._kept_out, **joined.kept_out}
        self._tell_kept_out()

    def _until_quiet(self, attempt: Callable[[], Joined]) -> Joined:
        for _ in range(_ATTEMPTS):
            try:
                return attempt()
            except Busy:  # a file changed meanwhile: that version is committed, then joined
                self._commit()
        return attempt()

    # --- telling --------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        from aiaml_server.sync.problem import OUTRUN, problem_of  # noqa: PLC0415 (regular expressions by the dozen)

        if isinstance(error, Outrun):
            if self.pace.outrun < _TOLD_AFTER:
                self._status.recovered()  # the remote answers, and what others did has arrived
                return
            self.problem = OUTRUN
        else:
            self.problem = problem_of(error)
        told = not self._another_succeeds()
        self._failed_at = now(exactly=True)
        if told:
            self._status.failed(self.problem)
        safe = "memories are safe on this machine, and it is tried again"
        level = logging.WARNING if told else logging.INFO
        self._report(f"Sync: {self.problem.sentence}; {safe}", level)

    def _another_succeeds(self) -> bool:
        """Whether a process of this directory got through since this one last failed to.

        Then memories travel, and that one of several programs cannot reach the remote (it was
        started without the key, say) is no problem of the directory.
        """
        success, failure = (
            parse_timestamp(self._status.last_success or ""),
            parse_timestamp(self._failed_at or ""),
        )
        if success is None or failure is None or self._status.last_success == self._succeeded:
            return False
        return success >= failure

    def _done(self) -> None:
        if self._asked:
            self._succeeded = self._status.last_success = now(exactly=True)
            self._failed_at = None
        elif self._remote and self._status.problem_kind not in LOCAL:
            return  # only a round that asked the remote can say that it is there again
        if self._status.problem:
            log.warning("Sync: all is well again")
            self._reported.clear()
        self._status.recovered()

    def _report(self, sentence: str, level: int = logging.WARNING) -> None:
        log.log(logging.INFO if sentence in self._reported else level, "%s", sentence)
        self._reported.add(sentence)
