"""Our commits put on top of another machine's, so that the history is straight but for conflicts.

Pure: what `git fast-export` says about our commits becomes what `git fast-import` makes of them.
Author, date and message stay, only what they stand on changes.
"""

from __future__ import annotations

import re

from aiaml_server.sync.messages import did
from aiaml_server.sync.stream import Commit, exported, rewritten

MOST = 20  # commits; more are merged, which costs the same however many they are

_FILE = rb'M 100(644|755) [0-9a-f]+ "?files/|D "?files/'


def on_top(stream: bytes, theirs: str) -> bytes:
    """Return a stream that puts exported commits on top of another one.

    Args:
        stream: of `git fast-export` (see `stream.EXPORTED`).
        theirs: the commit that the first of them is to stand on.

    Returns:
        The stream, which ends by telling the last commit's name; empty where there are more than
        `MOST`, or one was not made by sync, or has two parents.
    """
    commits = list(exported(stream))
    if not 0 < len(commits) <= MOST or not all(map(_is_ours, commits)):
        return b""
    lines: list[bytes] = []
    parent = theirs.encode()
    for commit in commits:
        lines += rewritten(commit, [parent], [touch.line for touch in commit.touches])
        parent = commit.mark
    return b"".join([*lines, b"get-mark %s\ndone\n" % parent])


def _is_ours(commit: Commit) -> bool:
    """Whether a commit changes memories alone, and is by sync."""
    message = commit.message.decode("utf-8", "surrogateescape").rstrip("\n")
    files = all(re.match(_FILE, touch.line) for touch in commit.touches)
    return len(commit.parents) < 2 and files and did(message).is_to_memories
