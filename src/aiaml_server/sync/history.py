"""What git remembers: the versions of memories, when they came, and conflicts that are open."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from aiaml_server.git import GitFailed
from aiaml_server.sync.merge import is_memory_path, memory_id_of
from aiaml_server.sync.repository import Repository, open_repository

_FORMAT = "--format=%x01%H%x00%ct%x00%an%x00%s%x00"
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
        if not self.head:
            return
        options = ["-c", "--raw", "--no-abbrev", "--no-renames", "-z", "--date-order"]
        options += [f"--max-count={limit}"] if limit else []
        paths = [f"files/{name}" for name in names]
        output = self._repository.git.run("log", *options, _FORMAT, self.head, "--", *paths)
        for text in os.fsdecode(output).split("\x01")[1:]:
            commit, seconds, author, subject, *fields = text.split("\0")
            rows = [field.lstrip("\n") for field in fields if field]
            for about, path in zip(rows[::2], rows[1::2], strict=False):
                if is_memory_path(path):
                    before, after, action = _action(about, subject)
                    name = path.removeprefix("files/")
                    yield Version(commit, int(seconds), author, action, name, before, after)

    def of_memory(self, memory_id: str, names: Sequence[str] = ()) -> list[Version]:
        """Return what happened to a memory, newest first.

        Args:
            memory_id: its id, as it stands in the names of files, or the beginning of it.
            names: the files that hold it now.
        """
        found = []
        for version in self.versions():
            is_its_name = memory_id_of(version.name).startswith(memory_id)
            if version.name in names or is_its_name:
                found.append(version)
        return found

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """Map object names to their content. Bytes that are not UTF-8 become lone surrogates."""
        blobs = self._repository.blobs([name for name in names if name])
        return {name: data.decode("utf-8", "surrogateescape") for name, data in blobs.items()}

    def resolve(self, revision: str) -> str:
        """Return the commit that a revision names; an empty string if there is none."""
        if not self.head or revision.startswith("-"):
            return ""
        try:
            words = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
            return self._repository.git.run("rev-parse", *words).decode().strip()
        except GitFailed:
            return ""

    def files_at(self, commit: str) -> dict[str, str]:
        """Map the names of the memory files of a commit to their object names."""
        tree = self._repository.tree(commit)
        return {
            path.removeprefix("files/"): name for path, name in tree.items() if is_memory_path(path)
        }


def _action(about: str, subject: str) -> tuple[str, str, str]:
    """Return the versions before and after, and the action, from a line of `git log --raw`."""
    parents = len(about) - len(about.lstrip(":"))
    names = about.split(" ")[parents + 1 : -1]
    before, after = ("" if set(name) == {"0"} else name for name in (names[0], names[-1]))
    if not after:
        return before, after, "deleted"
    if parents > 1:
        return before, after, "edited" if before else "copied"
    if before:
        return before, after, "edited"
    return before, after, "imported" if subject.startswith("Import ") else "added"


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
