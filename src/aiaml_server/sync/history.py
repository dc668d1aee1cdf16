"""What git remembers: the versions of memories, when they came, and conflicts that are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aiaml_server.sync.merge import is_memory_path, memory_id_of
from aiaml_server.sync.repository import LogRow, Repository, open_repository

_CONFLICTS_SHOWN = 50


class Version(NamedTuple):
    """What one commit did to one memory.

    Attributes:
        commit: the commit.
        time: when it was made, in seconds since 1970.
        author: by whom.
        action: "added", "edited", "deleted", "imported" or "copied" (for a conflict).
        name: the name of the file.
        before: the object name of the version until then; empty for none.
        after: the object name of the version from then on; empty for none.
    """

    commit: str
    time: int
    author: str
    action: str
    name: str
    before: str
    after: str


class History:
    """The history of one memory directory.

    Raises:
        GitMissing: git is not installed; also from the methods.
        GitFailed: the repository cannot be read; likewise.
        SyncError: the directory came from elsewhere.
    """

    def __init__(self, base: Path) -> None:
        self._repository = open_repository(base)
        self.head = self._repository.head() if self._repository.exists else ""

    def versions(self, names: Sequence[str] = (), *, limit: int = 0) -> Iterator[Version]:
        """Yield what happened, newest first.

        Args:
            names: the files to look at; all of them if empty.
            limit: how many commits to look at; 0 for all.
        """
        words = [f"--max-count={limit}"] if limit else []
        words += ["--", *(f"files/{name}" for name in names)]
        for row in self._repository.log(self.head, *words) if self.head else ():
            if is_memory_path(row.path):
                name = row.path.removeprefix("files/")
                start = row.commit, row.seconds, row.author, _action(row), name
                yield Version(*start, row.before, row.after)

    def of_memory(self, memory_id: str, names: Sequence[str] = ()) -> list[Version]:
        """Return what happened to a memory, newest first.

        Args:
            memory_id: its id, as it stands in the names of files, or the beginning of it.
            names: files that hold it under another name.
        """
        found = []
        for version in self.versions():
            has_id = memory_id_of(version.name).startswith(memory_id)
            if has_id or version.name in names:
                found.append(version)
        return found

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Map object names to their content. Bytes that are not UTF-8 become lone surrogates."""
        blobs = self._repository.blobs([name for name in names if name])
        return {name: data.decode("utf-8", "surrogateescape") for name, data in blobs.items()}


def _action(row: LogRow) -> str:
    if not row.after:
        return "deleted"
    if row.before:
        return "edited"
    kinds = {"Import": "imported", "Merge": "copied"}
    return kinds.get(row.subject.partition(" ")[0], "added")


def open_conflicts(repository: Repository, head: str) -> list[tuple[str, str]]:
    """Return the ids of two versions of one memory, while both are as the conflict left them."""
    if not head:
        return []
    words = ("-E", "--grep=^Conflict: ", f"--max-count={_CONFLICTS_SHOWN}")
    form = "--format=%H %(trailers:key=Conflict,valueonly,separator=%x2C)"
    found = []
    now = _by_id(repository, head)
    for line in repository.git.run("log", *words, form, head, "--").decode().splitlines():
        commit, _, trailers = line.partition(" ")
        then = _by_id(repository, commit)
        for trailer in trailers.split(","):
            kept, _, copy = trailer.partition(" ")
            same = all(each in now and now[each] == then.get(each) for each in (kept, copy))
            if same and (kept, copy) not in found:
                found.append((kept, copy))
    return found


def _by_id(repository: Repository, commit: str) -> dict[str, str]:
    return {memory_id_of(path): name for path, name in repository.tree(commit).items()}
