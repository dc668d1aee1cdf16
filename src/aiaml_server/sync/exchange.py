"""The part of a cycle with the remote: fetch, merge, push."""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass

from aiaml_server.git import GitFailed
from aiaml_server.sync import purge
from aiaml_server.sync.last_sync import FileState, LastSync
from aiaml_server.sync.merge import copy_of, is_memory_path, merge_trees
from aiaml_server.sync.reconcile import Reconciler, conflict_trailer
from aiaml_server.sync.remote import Outrun, Remote
from aiaml_server.sync.repository import (
    MAIN,
    SCRATCH,
    Change,
    NewCommit,
    changes_between,
    commit_message,
)
from aiaml_server.sync.skip import NEVER_SENT, SkipRules
from aiaml_server.sync.status import (
    Problem,
    SyncError,
    problem_of,
    timestamp_now,
)

_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.2
_OUTRUN = Problem(
    "outrun", "other computers were faster with every push", "Nothing. Sync tries again by itself."
)


@dataclass
class Exchange:
    """Brings the newest commit and the remote together; used for one cycle.

    Attributes:
        reconciler: brings the disk up to the newest commit.
        closing: set when the server closes.
        head: the newest commit here.
        theirs: the newest commit that the remote is known to have.
    """

    reconciler: Reconciler
    closing: threading.Event
    head: str
    theirs: str

    def __post_init__(self) -> None:
        """Take over what the reconciler uses."""
        self._repository = self.reconciler.repository
        self._status = self.reconciler.status

    def forget_everywhere(self) -> None:
        """Have the history lack what is forgotten everywhere, and tell other computers so."""
        if self.head:
            purged = self.reconciler.purged
            cleaned = purge.clean(self._repository, self.head, purged)
            self._move_to(purge.publish(self._repository, cleaned, purged))

    def exchange(self, remote: Remote) -> None:
        """Fetch, merge and push, until the remote has all that is here.

        Raises:
            GitFailed: the remote cannot be reached, or refuses.
            SyncError: it holds something other than memories, or others were faster each time.
        """
        is_remade = False
        for attempt in range(_ATTEMPTS):
            self.theirs = remote.fetch()
            self._status.last_fetch = timestamp_now()
            merged = self._merge_theirs()
            self._withhold(merged)
            if self.head == self.theirs:
                return
            try:
                self._push(remote, merged)
            except Outrun:
                pause = _FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311
                self.closing.wait(pause)
            except GitFailed as error:
                if is_remade or not self._remade_for_author(error):
                    raise
                is_remade = True
            else:
                return
        raise SyncError(_OUTRUN)

    def _push(self, remote: Remote, merged: str) -> None:
        tree = self._repository.tree
        sent = changes_between(tree(self.theirs), tree(self.head))
        remote.push(self.head, "" if merged == self.theirs else self.theirs)
        self.reconciler.counts.sent += sum(map(is_memory_path, sent))
        self._status.last_push = timestamp_now()
        self.theirs = self.head

    def _move_to(self, commit: str, *, is_arriving: bool = False) -> None:
        """Make a commit the newest one, and bring the disk up to it."""
        if commit != self.head:
            self._repository.point(MAIN, commit)
            self.head = self.reconciler.reconcile(commit, is_arriving=is_arriving)

    # --- merging --------------------------------------------------------------------------------

    def _merge_theirs(self) -> str:
        """Merge what was fetched; return it, without what is forgotten everywhere."""
        if not self.theirs:
            return ""
        repository = self._repository
        purged = purge.load_list(repository, self.head, self.theirs)
        purge.record(repository, purged.sums)
        self.reconciler.purged = purged
        theirs = purge.clean(repository, self.theirs, purged)
        ours = purge.clean(repository, self.head, purged)
        merged = self._merge(ours, theirs)
        self._move_to(purge.publish(repository, merged, purged), is_arriving=True)
        return theirs

    def _merge(self, ours: str, theirs: str) -> str:
        """Return a commit that holds both histories; nothing on disk is touched."""
        repository = self._repository
        if not ours or (theirs and repository.is_ancestor(ours, theirs)):
            return theirs
        if not theirs or repository.is_ancestor(theirs, ours):
            return ours
        base = repository.base_tree(ours, theirs)
        merged = merge_trees(base, repository.tree(ours), repository.tree(theirs))
        changes = [Change(path, name=name) for path, name in merged.changes.items()]
        others = repository.blobs([conflict.other for conflict in merged.conflicts])
        message = "Merge memories from another computer\n\n"
        for conflict in merged.conflicts:
            if is_memory_path(conflict.path) and conflict.other in others:
                copy, data = copy_of(conflict.path, conflict.other, others[conflict.other])
                changes.append(Change(copy, data))
                message += f"{conflict_trailer(conflict.path, copy)}\n"
        return repository.commit([NewCommit(message, changes)], ours, theirs, SCRATCH)

    # --- unsent commits, made anew --------------------------------------------------------------

    def _withhold(self, theirs: str) -> None:
        """Make unsent commits anew if they hold what must not be sent."""
        if not self.head or self.head == theirs:
            return
        rules = self.reconciler.rules
        words = ("--objects", "--filter=object:type=blob", "--filter-provided-objects", self.head)
        output = self._repository.git.run("rev-list", *words, *_without(theirs))
        rows = [line.partition(" ") for line in os.fsdecode(output).splitlines()]
        contents = self._repository.blobs([row[0] for row in rows])
        rules.prepare(row[2] for row in rows)
        for name, _, path in rows:
            if name in contents and _never_sent(rules, path, name, contents[name]):
                self._remake(theirs, rules)
                return

    def _remade_for_author(self, error: GitFailed) -> bool:
        """Make unsent commits anew if the host refuses the address that they were made with."""
        if problem_of(error).kind != "author-address":
            return False
        words = ("--format=%cn <%ce>", self.head, *_without(self.theirs), "--")
        authors = self._repository.git.run("log", *words).decode("utf-8", "replace")
        if set(authors.splitlines()) == {self._repository.author()}:
            return False
        self._remake(self.theirs, None)
        return True

    def _remake(self, theirs: str, rules: SkipRules | None) -> None:
        """Make the unsent commits anew from what they changed in the end.

        What `rules` does not let be sent is left out. It stays on disk, as a file that is not
        committed.
        """
        repository = self._repository
        before = repository.tree(theirs)
        changes = changes_between(before, repository.tree(self.head))
        contents = repository.blobs([name for name in changes.values() if name])
        record = LastSync.load(repository, repository.base / "files")
        commits = []
        for path, name in changes.items():
            if name and rules and _never_sent(rules, path, name, contents.get(name, b"")):
                record.files.pop(path, None)
                if path in before:
                    record.files[path] = FileState(before[path], None)
                continue
            action = "Forget" if not name else "Update" if path in before else "Add"
            message = commit_message(action, path) if is_memory_path(path) else purge.MESSAGE
            commits.append(NewCommit(message, [Change(path, name=name)]))
        record.save(repository)
        self._move_to(repository.commit(commits, theirs, ref=SCRATCH) if commits else theirs)


def _never_sent(rules: SkipRules, path: str, name: str, data: bytes) -> bool:
    reason = rules.reason(path, name, data)
    return reason is not None and reason.kind in NEVER_SENT


def _without(commit: str) -> tuple[str, ...]:
    """Return the words that leave a commit and its history out."""
    return (f"^{commit}",) if commit else ()
