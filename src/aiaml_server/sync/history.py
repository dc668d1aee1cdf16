"""What git remembers: the versions of memories, when they came, and conflicts that are open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

from aiaml_server.sync.merge import is_memory_path, memory_id_of
from aiaml_server.sync.repository import MAIN, Repository, open_repository

_CONFLICTS_SHOWN = 50
COMMITS_AT_ONCE = 1000


class Version(NamedTuple):
    """What one commit did to one file.

    Attributes:
        commit: the commit.
        time: when it was made, in seconds since 1970.
        author: by whom.
        subject: the first line of its message.
        path: the path of the file in the repository.
        before: the object name of the version until then; empty for none.
        after: the object name of the version from then on; empty for none.
    """

    commit: str
    time: int
    author: str
    subject: str
    path: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """The name of a memory file."""
        return self.path.removeprefix("files/")

    @property
    def action(self) -> str:
        """What was done: "added", "edited", "deleted", "imported" or "copied" (for a conflict)."""
        if self.before:
            return "edited" if self.after else "deleted"
        kinds = {"Import": "imported", "Merge": "copied"}
        return kinds.get(self.subject.partition(" ")[0], "added")


class History:
    """The history of one memory directory.

    Raises:
        GitMissing: git is not installed; also from the methods.
        GitFailed: the repository cannot be read; likewise.
        SyncError: the directory came from elsewhere.
    """

    def __init__(self, base: Path) -> None:
        self._repository = open_repository(base)
        self.head = self._repository.resolve(MAIN) if self._repository.exists else ""

    def versions(self, names: Sequence[str] = ()) -> Iterator[Version]:
        """Yield what happened to files, or to all of them, newest first.

        The history is read in parts, so who needs only the beginning does not pay for all.
        """
        rows = log(self._repository, self.head, *(f"files/{name}" for name in names))
        return (row for row in rows if is_memory_path(row.path))

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Map object names to their content. Bytes that are not UTF-8 become lone surrogates."""
        blobs = self._repository.blobs(names)
        return {name: data.decode("utf-8", "surrogateescape") for name, data in blobs.items()}


def log(repository: Repository, commit: str, *paths: str) -> Iterator[Version]:
    """Yield what each commit in the history of one did to each file, newest first.

    Of a merge that is what it did other than both of its parents.

    Args:
        repository: the repository.
        commit: the newest commit; an empty string for none.
        paths: the files to look at; all of them if there are none.
    """
    options = ("-c", "--raw", "--no-abbrev", "--no-renames", "-z", "--date-order")
    form = "--format=%x01%H%x00%ct%x00%an%x00%s%x00"
    for start in count(0, COMMITS_AT_ONCE) if commit else ():
        page = (f"--skip={start}", f"--max-count={COMMITS_AT_ONCE}", commit, "--", *paths)
        _, *texts = os.fsdecode(repository.git.run("log", *options, form, *page)).split("\x01")
        for text in texts:
            newest, seconds, author, subject, *fields = text.split("\0")
            rows = [field.lstrip("\n") for field in fields if field]
            for about, path in zip(rows[::2], rows[1::2], strict=False):
                parents = len(about) - len(about.lstrip(":"))
                names = [name.strip("0") and name for name in about.split(" ")[parents + 1 :]]
                yield Version(newest, int(seconds), author, subject, path, names[0], names[-2])
        if len(texts) < COMMITS_AT_ONCE:
            return


def all_versions(repository: Repository, commit: str) -> set[tuple[str, str]]:
    """Return path and object name of every version of a file in the history of a commit."""
    return {(row.path, row.after) for row in log(repository, commit) if row.after}


def open_conflicts(repository: Repository, head: str) -> list[tuple[str, str]]:
    """Return the ids of two versions of one memory, while both are as the conflict left them."""
    if not head:
        return []
    options = ("-E", "--grep=^Conflict: ", f"--max-count={_CONFLICTS_SHOWN}")
    form = "--format=%H %(trailers:key=Conflict,valueonly,separator=%x2C)"
    found = []
    now = _by_id(repository, head)
    for line in repository.git.run("log", *options, form, head, "--").decode().splitlines():
        commit, _, trailers = line.partition(" ")
        then = _by_id(repository, commit)
        for trailer in trailers.split(","):
            kept, _, copy = trailer.partition(" ")
            same = all(now.get(each, "") == then.get(each) for each in (kept, copy))
            if same and (kept, copy) not in found:
                found.append((kept, copy))
    return found


def _by_id(repository: Repository, commit: str) -> dict[str, str]:
    return {memory_id_of(path): name for path, name in repository.tree(commit).items()}
