"""The git thread. It is told nothing; woken, it finds out what git does not know yet.

The rest of the house sees ten names: `Sync` and `once`, which do it; `with_remote_in_use`;
`Status`, `Progress` and `Problem`, which say how it stands; and four modules: `survey` (how it
stands, asked of git), `history` (which versions there were), `guard` (what stays here) and
`forgetting` (everywhere). These are loaded when they are asked for.

    __init__    the thread: woken, every minute, at the end
    rounds      one round: commit, fetch, join, push; and what follows when that fails
    pace        when the remote is asked again
    tidy        keeping the repository small
    problem     what an error means, and what to do about it
    remote      the other end
    address     where that is
    place       where the repository lies that is ours alone
    convert     how it is made, with what an earlier version left
    repository  that repository
    reading     the same, to be read alone
    commit      what is new on disk, committed in four steps
    merge       two histories made one
    checkout    the files brought up to a commit
    stream      commits, as git fast-import and fast-export have them
    worktree    files, read and replaced without a loss
    disk        the files compared with a commit
    asked       which deletions a person has asked for
    trees       what commits hold, and how they differ
    theirs      what a person's own git, beside ours, did to the files
    seen        which files this machine has had, and in which directory
    union       what becomes of a path that two machines changed (pure)
    rebase      our commits put on top of what came first (pure)
    mend        a damaged repository made one that can be used
    messages    what our commits and git's logs say of them, written and read
    command     running git
    status      how things stand, for others to read
    history     which versions there were, and who made them
    survey      how things stand, asked of git by another process
    guard       what stays on this machine: secrets, and what a person keeps here
    outgoing    what is about to be pushed, looked at once more
    forgetting  what is in no history any more, of no machine

Most of it is imported in the thread alone: it takes time that no answer should wait for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from aiaml_server.errors import GitMissing, InvalidSetting, LockTimeout, StoreError
from aiaml_server.settings import Settings, hide_password
from aiaml_server.storage.chosen import chosen_remote
from aiaml_server.sync import asked, place
from aiaml_server.sync.address import in_use, with_remote_in_use
from aiaml_server.sync.status import Missing, Problem, Progress, Status

if TYPE_CHECKING:
    from aiaml_server.sync.rounds import Rounds

__all__ = [
    "Problem",
    "Progress",
    "Status",
    "Sync",
    "forgetting",
    "guard",
    "history",
    "once",
    "survey",
    "with_remote_in_use",
]

log = logging.getLogger(__name__)

_START_SECONDS = 0.5  # a new server answers before it syncs
_GATHER_SECONDS = 0.2  # what is remembered together is committed together
_CLOSE_SECONDS = 1.4
_LISTEN_SECONDS = 0.2  # on Windows, Ctrl-C is heard between two waits
_PATIENCE_SECONDS = 5.0  # for a git that works on this machine, after Ctrl-C
_OCCUPIED_SECONDS = 0.1


def once(
    settings: Settings,
    *,
    local: bool = False,
    missing: Missing = "",
    seconds: float = 10.0,
    progress: Progress | None = None,
    erase: frozenset[bytes] = frozenset(),
) -> Status:
    """Do one round now, and return how things stand after it; `problem` is that of this round.

    Without sync in the settings, nothing is done. Ctrl-C ends it in an orderly way: the git that
    talks to the remote is killed, the one that works here may come to its end.

    Args:
        settings: which directory, and with which remote.
        local: only commit; the remote is not talked to, and what else fails is no problem.
        missing: what a person says about memories that were deleted: that all are to be forgotten,
            or brought back. Else a deletion of many at once is held.
        seconds: how long to wait while another process synchronises.
        progress: is told what goes on, from another thread.
        erase: marks of what is to be forgotten everywhere (see `rewrite`).

    Raises:
        GitMissing: there is no git.
        InvalidSetting: the remote is not the one that servers exchange the directory with.
        Occupied: another process synchronised all the time.
        StoreError: the directory cannot be used.
    """
    if not settings.sync:
        return Status.read(settings.base)
    from aiaml_server.sync.rounds import Rounds  # noqa: PLC0415

    place.check_base(settings.base)
    closing = threading.Event()
    usual = in_use(settings.base)
    is_another = settings.remote not in ("", usual, chosen_remote(settings.base))
    if usual and is_another and not (local or settings.remote_error):
        remedy = "unset it here, or have all use another by `aiaml sync --setup ADDRESS`"
        servers = f"not {hide_password(usual)}, which servers exchange this directory with"
        raise InvalidSetting("AIAML_GITHUB_REMOTE", f"is {servers}; {remedy}")
    rounds = Rounds(settings, closing, progress, missing, erase=erase)
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            _attempt(rounds, closing, local=local, seconds=seconds)
        except BaseException as error:  # noqa: BLE001 (raised below, in the thread that asked)
            failures.append(error)

    thread = threading.Thread(target=attempt, name="round")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LISTEN_SECONDS)
    except BaseException:
        closing.set()
        rounds.end_calls(local=False)
        try:
            thread.join(_PATIENCE_SECONDS)
        finally:  # a second Ctrl-C does not wait
            rounds.end_calls(local=True)
            thread.join()
        raise
    for error in failures:
        if isinstance(error, OSError) and not isinstance(error, LockTimeout):
            raise StoreError("synchronise", settings.base, error) from error
        raise error
    status = Status.read(settings.base)
    status.recovered()
    if rounds.problem and not (local and rounds.has_committed):
        status.failed(rounds.problem)
    return status


def _attempt(rounds: Rounds, closing: threading.Event, *, local: bool, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not rounds.run(last=local):
        if time.monotonic() > deadline:
            raise LockTimeout("another process is synchronising this directory; try again later")
        rounds.progress.begin("waiting for another process that synchronises")
        if closing.wait(_OCCUPIED_SECONDS):
            return
    if not local:
        rounds.progress.begin("tidying")
        rounds.tidy.wait()


class Sync:
    """Keeps one base directory in git. No method raises, and only `close` waits."""

    def __init__(self, settings: Settings, *, arrived: Callable[[], None] | None = None) -> None:
        """Make the sync of a directory; nothing happens before `open`.

        Args:
            settings: which directory, and with which remote.
            arrived: called in the git thread when another machine's files were brought in.
        """
        self._settings = settings
        self._arrived = arrived
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._pending = False
        self._rounds: Rounds | None = None
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    def open(self) -> None:
        """Start; the first round catches up with everything since the last one."""
        if self._settings.sync:
            self._thread.start()

    def wake(self) -> None:
        """Have a round soon."""
        self._pending = True
        self._woken.set()

    def forgotten(self, name: str) -> None:
        """Hear that a person had the file `name` deleted: it need not be confirmed."""
        if self._settings.sync:
            asked.record(self._settings.base, name)

    def close(self) -> None:
        """End within 1.5 s: commit what is new; what does not fit is found at the next start."""
        if not self._thread.is_alive():
            return
        self._closing.set()
        self._woken.set()
        if self._rounds:
            self._rounds.end_calls(local=False)
        self._thread.join(_CLOSE_SECONDS)
        if self._rounds:
            self._rounds.end_calls(local=True)

    def _run(self) -> None:
        self._closing.wait(_START_SECONDS)
        if self._closing.is_set() and not self._pending:
            return
        try:
            from aiaml_server.sync.rounds import Rounds  # noqa: PLC0415

            self._rounds = Rounds(self._settings, self._closing)
            while self._round(self._rounds):
                pass
        except GitMissing as error:
            log.warning("Sync is off: %s", error)
        except Exception:
            log.exception("Sync ended; memories are stored and found as before")

    def _round(self, rounds: Rounds) -> bool:
        """Do a round and wait for the next; return whether there is one."""
        self._woken.clear()
        self._pending = False
        last = self._closing.is_set()
        before = rounds.progress.arrived
        done = True
        try:
            done = rounds.run(last=last)
        except GitMissing:
            raise
        except Exception:
            log.exception("A round of sync crashed; the next one comes")
        if last:
            return False
        if self._arrived and rounds.progress.arrived > before:
            self._arrived()
        if self._woken.wait(rounds.pace.next_round(done=done)):
            self._closing.wait(_GATHER_SECONDS)
        return self._pending or not self._closing.is_set()
