"""Our commits put on top of another machine's, so that the history is straight but for conflicts.

Pure: what `git fast-export` says about our commits becomes what `git fast-import` makes of them.
Author, date and message stay, only what they stand on changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.sync.messages import did
from aiaml_server.sync.stream import Commit, Touch, rewritten
from aiaml_server.sync.union import is_memory

MOST = 20  # commits; more are merged, which costs the same however many they are


def on_top(commits: Sequence[Commit], theirs: str) -> bytes:
    """Return a stream that puts commits on top of another one; it tells the last one's name."""
    lines: list[bytes] = []
    parent = theirs.encode()
    for commit in commits:
        lines += rewritten(commit, [parent], [touch.line for touch in commit.touches])
        parent = commit.mark
    return b"".join([*lines, b"get-mark %s\ndone\n" % parent])


def is_by_sync(commit: Commit) -> bool:
    """Whether a commit changes memories alone, and its message is one of sync's."""
    message = commit.message.decode("utf-8", "surrogateescape").rstrip("\n")
    return all(map(_is_memory, commit.touches)) and did(message).is_to_memories


def _is_memory(touch: Touch) -> bool:
    return is_memory(touch.path) and (touch.oid != b"" or touch.line.startswith(b"D "))
