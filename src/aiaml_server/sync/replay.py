"""Our commits put on top of another machine's, so that the history has no joins but for conflicts.

Pure: what `git fast-export` says about our commits becomes what `git fast-import` makes of them.
Author, date and message stay, only what they stand on changes.
"""

from __future__ import annotations

import re

from aiaml_server.sync.messages import did

MOST = 20  # commits; more are joined, which costs the same however many they are
SCRATCH = "refs/aiaml/joined"  # the branch of what is written before anything moves

_FILE = rb'M 100(644|755) [0-9a-f]+ "?files/|D "?files/'
_KEPT = (b"mark ", b"author ", b"committer ", b"encoding ")


def on_top(exported: bytes, theirs: str) -> bytes:
    """Return a stream that puts exported commits on top of another one.

    Args:
        exported: of `git fast-export --no-data --reference-excluded-parents`.
        theirs: the commit that the first of them is to stand on.

    Returns:
        The stream, which ends by telling the last commit's name; empty where one of them was not
        made by sync, or has two parents.
    """
    lines: list[bytes] = []
    commits, start = 0, 0
    while start < len(exported):
        end = exported.index(b"\n", start) + 1
        line, start = exported[start:end], end
        if line.startswith(b"data "):
            end = start + int(line[5:])
            message, start = exported[start:end], end
            if not did(message.decode("utf-8", "surrogateescape").rstrip("\n")).is_to_memories:
                return b""
            lines += [line, message, b"\n"]
        elif line.startswith(b"commit "):
            commits += 1
            lines.append(b"commit %s\n" % SCRATCH.encode())
        elif line.startswith(b"from "):
            lines.append(b"from %s\n" % theirs.encode() if commits == 1 else line)
        elif line.startswith(_KEPT) or re.match(_FILE, line):
            lines.append(line)
        elif line != b"\n":
            return b""
    if not 0 < commits <= MOST:
        return b""
    return b"".join([*lines, b"get-mark :%d\ndone\n" % commits])
