"""The memory files compared with a commit: what is new, what was deleted, what is only missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from aiaml_server.storage.store import Stamp
from aiaml_server.sync.messages import Verb
from aiaml_server.sync.seen import Sighting
from aiaml_server.sync.status import Problem
from aiaml_server.sync.stream import Step
from aiaml_server.sync.union import Entry, is_memory
from aiaml_server.sync.worktree import Unfit, object_name, read

Item = TypeVar("Item")
Objection = Callable[[bytes, bytes], "Problem | None"]
"""Says why a path with these bytes must not travel; None if it may."""


def listing(directory: Path, known: Mapping[bytes, Sighting]) -> dict[bytes, Stamp | None] | None:
    """Return the paths in `files/` that may be memories, with their stamps; None without it.

    A stamp so new that a change might not alter it counts as unknown, and so does one that the
    system does not tell. What is `known` is only compared, which takes half of the time.

    Raises:
        OSError: the directory is there, but cannot be listed.
    """
    found = {}
    try:
        with os.scandir(os.fsencode(directory)) as entries:
            for entry in entries:
                path = b"files/" + entry.name
                sighting = known.get(path)
                if sighting or is_memory(path):
                    found[path] = _stamp(entry, sighting.stamp if sighting else None)
    except FileNotFoundError:
        return None
    return found


def _stamp(entry: os.DirEntry[bytes], before: Stamp | None) -> Stamp | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if before == (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size):
        return before
    stamp = Stamp.of(status)
    return stamp if stamp.settled else None


@dataclass
class Disk:
    """What is on disk beside what a commit has. What is found out by reading is kept here.

    Attributes:
        base: the base directory.
        tree: the memories of the commit.
        here: the files, with their stamps.
        known: what was seen in this directory before.
        moved: when a git of the person's last changed files, in nanoseconds since 1970; 0 if not.
        certain: files whose deletion is not its doing.
        arriving: what a join that was interrupted makes of files; it is no news that they are so.
        held_back: files that must not be committed, and why.
        unfit: what has a memory's name and is none, and why.
        same: files that are as in the commit.
        outdated: files that are as in an earlier commit, and not by a person's doing: with their
            entries on disk and in the commit.
        diverged: files that differ both from the commit and from what it had when they were last
            seen, as when an edit was held back here; with their entries in the commit.
    """

    base: Path
    tree: Mapping[bytes, Entry]
    here: dict[bytes, Stamp | None]
    known: Mapping[bytes, Sighting]
    moved: int = 0
    certain: Container[bytes] = frozenset()
    arriving: Mapping[bytes, Entry | None] = field(default_factory=dict)
    held_back: dict[bytes, Problem] = field(default_factory=dict)
    unfit: dict[bytes, Problem] = field(default_factory=dict)
    same: dict[bytes, Sighting] = field(default_factory=dict)
    outdated: dict[bytes, tuple[Entry, Entry | None]] = field(default_factory=dict)
    diverged: dict[bytes, Entry] = field(default_factory=dict)

    @cached_property
    def candidates(self) -> list[bytes]:
        """The files that may be other than in the commit."""
        same = {
            path
            for path, sighting in self.known.items()
            if sighting.stamp
            and self.here.get(path) is sighting.stamp
            and path in self.tree
            and self.tree[path].oid == sighting.oid
        }
        return sorted(self.here.keys() - same)

    def deleted(self) -> dict[bytes, Entry]:
        """Return what is gone after it was seen here as the commit has it, and not by git."""
        return {
            path: entry
            for path, entry in self._absent()
            if self._was_deleted(path, entry) and self.arriving.get(path, entry)
        }

    def missing(self) -> dict[bytes, Entry]:
        """Return what is not here, and that by no person's doing, as far as is known."""
        return {
            path: entry
            for path, entry in self._absent()
            if not self._was_deleted(path, entry) and self.arriving.get(path, entry)
        }

    def _absent(self) -> Iterator[tuple[bytes, Entry]]:
        absent = ((path, self.tree[path]) for path in sorted(self.tree.keys() - self.here.keys()))
        return ((path, entry) for path, entry in absent if entry.is_file)

    def _was_deleted(self, path: bytes, entry: Entry) -> bool:
        sighting = self.known.get(path)
        was_here = sighting is not None and sighting.oid == entry.oid
        return was_here and (not self.moved or path in self.certain)

    def steps(
        self,
        like: bytes,
        objection: Objection,
        was_there: Callable[[bytes, bytes], bool],
    ) -> Iterator[tuple[Step, Sighting]]:
        """Read the candidates, and yield what is to be committed, with what was seen.

        Args:
            like: any object name of the repository.
            objection: says why a path with these bytes must not be committed; None if it may.
            was_there: whether a path had a version, by its object name, in an earlier commit.
        """
        for path in self.candidates:
            try:
                data = read(self.base / os.fsdecode(path))
            except Unfit as error:
                entry = self.tree.get(path)
                if not entry or entry.is_file:  # else git has no file there either
                    self.unfit[path] = error.why
                continue
            if data is None:
                continue
            oid = object_name(data, like)
            if not self._is_news(path, oid, was_there):
                continue
            if why := objection(path, data):
                also = ", and other machines have changed it since" if path in self.diverged else ""
                self.held_back[path] = why._replace(sentence=why.sentence + also)
                continue
            verb: Verb = "Update" if path in self.tree else "Add"
            yield Step(verb, path, data), Sighting(oid, self.here[path])

    def _is_gits(self, path: bytes) -> bool:
        """Whether a git of the person's may have written a file."""
        with suppress(OSError):
            status = (self.base / os.fsdecode(path)).stat()
            return status.st_mtime_ns <= self.moved
        return bool(self.moved)

    def _is_news(self, path: bytes, oid: bytes, was_there: Callable[[bytes, bytes], bool]) -> bool:
        entry, arriving = self.tree.get(path), self.arriving.get(path)
        if arriving and arriving.oid == oid:
            return False
        if entry and entry.oid == oid:
            self.same[path] = Sighting(oid, self.here[path])
            return False
        before = self.known.get(path)
        others = entry if before and entry and before.oid != entry.oid else None
        may_be_old = entry and (not before or self._is_gits(path))
        is_old = may_be_old and was_there(path, oid)
        if is_old or (others and before and before.oid == oid):
            self.outdated[path] = (Entry(b"100644", oid), entry)
            return False
        if others:
            self.diverged[path] = others
        return True


def in_chunks(
    items: Iterable[Item], size: Callable[[Item], int], number: int, most: int
) -> Iterator[list[Item]]:
    """Cut what comes into lists of at most `number` items and, together, `most` bytes.

    A single item that is larger makes a list of its own.
    """
    chunk: list[Item] = []
    total = 0
    for item in items:
        if chunk and (len(chunk) == number or total + size(item) > most):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += size(item)
    if chunk:
        yield chunk
