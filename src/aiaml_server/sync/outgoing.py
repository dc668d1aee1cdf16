"""What is about to be pushed, looked at once more: nothing that must stay here leaves.

A commit may hold a secret although sync makes none that does: a person committed by hand, the check
was switched off for a while, or an earlier version knew fewer forms. Its history cannot be pushed
then, but all else can: as new commits on top of what the remote has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from .disk import Objection, in_chunks
from .leaks import leak
from .repository import Repository
from .status import Problem

_LARGEST = 16 * 1024 * 1024  # bytes; no memory, and more than a secret needs
_TOGETHER = 16 * 1024 * 1024


class Outgoing:
    """Looks at what one repository is about to push; what it has seen it does not look at again."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._seen: dict[tuple[bytes, bytes], Problem | None] = {}  # by path and object
        self._objection: Objection | None = None
        self.held: dict[bytes, Problem] = {}  # what stays here as it is now
        self.message = ""  # the secret that is in a message of the last commits, by its kind

    def pushable(self, theirs: str, ours: str, objection: Objection, *, secrets: bool) -> str:
        """Return the commit to push: `ours`, or one that lacks what must not travel.

        Args:
            theirs: the commit that the remote has; empty for none.
            ours: the commit that it is to have.
            objection: says why a path with these bytes must not travel; None if it may.
            secrets: whether the messages of commits are looked into for secrets.

        Returns:
            `theirs` where nothing else is left to push. `held` and `message` are set.
        """
        self.held, self.message = {}, ""
        found = self.found(theirs, ours, objection) if theirs != ours else {}
        self.message = self._in_messages(theirs, ours) if theirs != ours and secrets else ""
        if not found and not self.message:
            return ours
        commit, left_out = self._repository.without(theirs, ours, set(found))
        self.held = {path: found[entry.oid] for path, entry in left_out.items()}
        return commit

    def staying(self, theirs: str, ours: str, objection: Objection) -> dict[bytes, Problem]:
        """Return the files that would not be pushed in their present version, each with why."""
        found = self.found(theirs, ours, objection)
        changed = self._repository.entries(theirs, ours) if found else {}
        return {path: found[each.oid] for path, each in changed.items() if each.oid in found}

    def found(self, theirs: str, ours: str, objection: Objection) -> dict[bytes, Problem]:
        """Return the objects that are new to the remote and must not travel, and why."""
        if objection != self._objection:
            self._seen, self._objection = {}, objection
        new = list(self._new(theirs, ours))
        unseen = [each for each in new if each[:2] not in self._seen]
        for chunk in in_chunks(unseen, lambda each: each[2], len(unseen) + 1, _TOGETHER):
            blobs = self._repository.objects([oid for _, oid, _ in chunk])
            for path, oid, _ in chunk:
                self._seen[path, oid] = objection(path, blobs[oid])
        reasons = ((path, oid, self._seen[path, oid]) for path, oid, _ in new)
        return {oid: self._told(why, theirs, ours, oid) for _, oid, why in reasons if why}

    def _in_messages(self, theirs: str, ours: str) -> str:
        """Name the first secret in a message of a commit to be pushed; empty for none."""
        span = f"{theirs}..{ours}" if theirs else ours
        words = ("--no-show-signature", "--format=%B", span, "--")
        return leak(self._repository.git.run("log", *words))

    def _new(self, theirs: str, ours: str) -> Iterator[tuple[bytes, bytes, int]]:
        """Yield path, name and size of each file that some commit to be pushed has."""
        git = self._repository.git
        objects = git.run("rev-list", "--objects", ours, *([f"^{theirs}"] if theirs else []))
        asked = "--batch-check=%(objecttype) %(objectname) %(objectsize) %(rest)"
        for line in git.run("cat-file", asked, stdin=objects).splitlines():
            kind, _, rest = line.partition(b" ")
            if kind == b"blob":
                oid, size, path = rest.split(b" ", 2)
                if int(size) <= _LARGEST:
                    yield path, oid, int(size)

    def _told(self, why: Problem, theirs: str, ours: str, oid: bytes) -> Problem:
        """Return a reason with the commit that brought the object in."""
        span = f"{theirs}..{ours}" if theirs else ours
        words = ("--format=%h", "--reverse", f"--find-object={os.fsdecode(oid)}", span, "--")
        commits = self._repository.git.run("log", *words).split()
        also = f", in the commit {commits[0].decode()}" if commits else ""
        return why._replace(sentence=why.sentence + also)
