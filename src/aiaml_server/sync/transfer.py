"""The part of a cycle with the remote: fetch, merge, push."""

from __future__ import annotations

import os
import random
import threading

from aiaml_server.git import GitFailed
from aiaml_server.sync import purge
from aiaml_server.sync.last_sync import FileState, LastSync
from aiaml_server.sync.merge import copy_of, is_memory_path, merge_trees
from aiaml_server.sync.remote import PushRejected, Remote
from aiaml_server.sync.replica import Replica, conflict_trailer
from aiaml_server.sync.repository import (
    SCRATCH,
    Change,
    NewCommit,
    Repository,
    changes_between,
    memory_commit,
)
from aiaml_server.sync.skip import NEVER_SENT, SkipRules
from aiaml_server.sync.status import Problem, SyncError, problem_of, timestamp_now

_ATTEMPTS = 5
_REJECTED = Problem(
    "outrun", "other computers were faster with every push", "Nothing. Sync tries again by itself."
)


def exchange(replica: Replica, remote: Remote, closing: threading.Event) -> None:
    """Fetch, merge and push, until the remote has all that is here.

    Args:
        replica: the memory directory.
        remote: its remote.
        closing: set when the server closes.

    Raises:
        GitFailed: the remote cannot be reached, or refuses.
        SyncError: it holds something other than memories, or others were faster each time.
    """
    for attempt in range(_ATTEMPTS):
        replica.remote_head = remote.fetch()
        replica.status.last_fetch = timestamp_now()
        fetched = merge_remote(replica)
        _withhold(replica, fetched)
        count_unsent(replica)
        if replica.head == replica.remote_head:
            return
        try:
            _push(replica, remote, fetched)
        except PushRejected:
            closing.wait(random.uniform(0.1, 0.3) * 2**attempt)  # noqa: S311
        except GitFailed as error:
            if attempt or problem_of(error).kind != "author-address":
                raise
            _remake(replica, fetched)  # with the address that the person has set by now
        else:
            return
    raise SyncError(_REJECTED)


def _push(replica: Replica, remote: Remote, fetched: str) -> None:
    known = replica.remote_head
    remote.push(replica.head, "" if fetched == known else known)
    replica.remote_head = replica.head
    replica.counts.sent += replica.status.unsent
    replica.status.unsent = 0
    replica.status.last_push = timestamp_now()


def count_unsent(replica: Replica) -> None:
    """Count the memories that the remote does not have in their present version."""
    tree = replica.repository.tree
    replica.status.unsent = sum(
        map(is_memory_path, changes_between(tree(replica.remote_head), tree(replica.head)))
    )


# --- merging --------------------------------------------------------------------------------------


def merge_remote(replica: Replica) -> str:
    """Merge the newest commit of the remote; return it, without what is forgotten everywhere."""
    repository = replica.repository
    purged = purge.load_list(repository, replica.head, replica.remote_head)
    purge.record(repository, purged)
    replica.purged = purged
    fetched = purge.clean(repository, replica.remote_head, purged)
    merged = _merge(repository, purge.clean(repository, replica.head, purged), fetched)
    if merged:
        replica.move_to(purge.publish(repository, merged, purged), is_arriving=True)
    return fetched


def _merge(repository: Repository, ours: str, theirs: str) -> str:
    """Return a commit that holds both histories; nothing on disk is touched."""
    if not ours or (theirs and repository.is_ancestor(ours, theirs)):
        return theirs
    if not theirs or repository.is_ancestor(theirs, ours):
        return ours
    base = repository.base_tree(ours, theirs)
    merged = merge_trees(base, repository.tree(ours), repository.tree(theirs))
    changes = [Change(path, name=name) for path, name in merged.changes.items()]
    contents = repository.blobs(merged.conflicts.values())
    message = "Merge memories from another computer\n\n"
    for path, name in merged.conflicts.items():
        if is_memory_path(path) and name in contents:
            copy, data = copy_of(path, name, contents[name])
            changes.append(Change(copy, data))
            message += f"{conflict_trailer(path, copy)}\n"
    return repository.commit([NewCommit(message, changes)], ours, theirs, SCRATCH)


# --- unsent commits, made anew --------------------------------------------------------------------


def _withhold(replica: Replica, sent: str) -> None:
    """Make unsent commits anew if they hold what must not be sent."""
    if replica.head == sent:
        return
    rules = replica.rules()
    options = ("--objects", "--filter=object:type=blob", "--filter-provided-objects", replica.head)
    output = replica.repository.git.run("rev-list", *options, *([f"^{sent}"] if sent else []))
    rows = [line.partition(" ") for line in os.fsdecode(output).splitlines()]
    contents = replica.repository.blobs(row[0] for row in rows)
    rules.prepare(row[2] for row in rows)
    for name, _, path in rows:
        if name in contents and _is_never_sent(rules, path, name, contents[name]):
            _remake(replica, sent, rules)
            return


def _remake(replica: Replica, sent: str, rules: SkipRules | None = None) -> None:
    """Make the unsent commits anew from what they changed in the end.

    What `rules` does not let be sent is left out. It stays on disk, as a file that is not
    committed.
    """
    repository = replica.repository
    before = repository.tree(sent)
    changes = changes_between(before, repository.tree(replica.head))
    contents = repository.blobs(changes.values())
    record = LastSync.load(repository, repository.base / "files")
    commits = []
    for path, name in changes.items():
        if name and rules and _is_never_sent(rules, path, name, contents.get(name, b"")):
            record.files.pop(path, None)
            if path in before:
                record.files[path] = FileState(before[path], None)
            continue
        action = "Forget" if not name else "Update" if path in before else "Add"
        commits.append(memory_commit(action, Change(path, name=name)))
    record.save(repository)
    replica.move_to(repository.commit(commits, sent, ref=SCRATCH) if commits else sent)


def _is_never_sent(rules: SkipRules, path: str, name: str, data: bytes) -> bool:
    reason = rules.reason(path, name, data)
    return reason is not None and reason.kind in NEVER_SENT
