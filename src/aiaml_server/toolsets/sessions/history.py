"""Whether every line of the logs that a revision of git has is still there, in its order.

A tool only ever appends; a person, a merge or another program may not. Git runs nothing of the
repository's own here: no hook, no filter and no file system monitor, and nothing is fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from aiaml_server.toolsets.failures import shorten
from aiaml_server.toolsets.git import ask
from aiaml_server.toolsets.sessions.failures import DiskError, NotARepository
from aiaml_server.toolsets.sessions.place import DIRECTORY, LOGS, MAX_FILE
from aiaml_server.toolsets.sessions.remarks import Remark

_MOST_SHOWN = 80  # characters of a line that is gone


def logs_at(root: Path, revision: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of each log that a revision and the present branch had in common.

    Where the revision has gone on since the branch began, what it has got meanwhile is not missed.

    Raises:
        NotARepository: git does not know the revision.
        DiskError: git cannot be run.
    """
    commit = ask_git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise NotARepository(
            f"git knows no {shorten(revision)!r} here; in CI the checkout needs the history, "
            "such as `fetch-depth: 0`"
        )
    name = (ask_git(root, "merge-base", "HEAD", commit.decode().strip()) or commit).decode().strip()
    listed = ask_git(root, "ls-tree", "-r", "-z", "-l", name, "--", "/".join(DIRECTORY)) or b""
    for row in filter(None, listed.split(b"\0")):
        about, _, path = row.partition(b"\t")
        mode, kind, blob, size = about.split()
        parts = os.fsdecode(path).split("/")
        is_log = parts[-2:-1] == [LOGS] and len(parts) == 5 and path.endswith(b".md")
        if is_log and kind == b"blob" and mode != b"120000" and int(size) <= MAX_FILE:
            data = ask_git(root, "cat-file", "blob", blob.decode())
            if data is not None:
                yield "/".join(parts), data


def lost(before: bytes, now: bytes | None, revision: str) -> Iterator[Remark]:
    """Yield what a log has lost of what it was: the first line that is not there in its order."""
    if now is None:
        yield Remark(1, f"this log of {revision} is gone; a log is only added to: bring it back")
        return
    lines = iter(enumerate(now.splitlines(), 1))
    number = 1
    for old, wanted in enumerate(before.splitlines(), 1):
        last = number
        for number, line in lines:  # noqa: B007 (where the next one is looked for)
            if line == wanted:
                break
        else:
            said = wanted.decode("utf-8", "replace")[:_MOST_SHOWN]
            what = f"line {old} of {revision} is not here any more, or in another order: {said!r}"
            yield Remark(last, f"{what}; a log is only added to: bring it back")
            return


def ask_git(root: Path, *words: str) -> bytes | None:
    """Return what git prints of words that run nothing of the repository's; None where it refuses.

    Raises:
        DiskError: there is no git, or it cannot be started, or does not end.
    """
    done = ask(str(root), *words)
    if done is None:
        raise DiskError("git is needed here, and is not on this machine or does not answer")
    return None if done.returncode else done.stdout
