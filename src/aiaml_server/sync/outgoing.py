"""What is about to be pushed, looked at once more: nothing that must stay here leaves.

A commit may hold a secret although sync makes none that does: a person committed by hand, the check
was switched off for a while, or an earlier version knew fewer forms. Its history cannot be pushed
then, but all else can: as new commits on top of what the remote has.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from aiaml_server.format.secrets import find_secret
from aiaml_server.sync.disk import Objection, in_chunks
from aiaml_server.sync.repository import Repository
from aiaml_server.sync.status import CUT, Problem

_TOGETHER = 16 * 1024 * 1024  # bytes that are looked into at once
_TOO_LARGE = Problem("too-large", "it is larger than 16 MiB, and not looked into for secrets", CUT)


class Outgoing:
    """Looks at what one repository is about to push; what it has seen it does not look at again."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._seen: dict[tuple[bytes, bytes], Problem | None] = {}  # by path and object
        self._objection: Objection | None = None
        self.held: dict[bytes, Problem] = {}  # what stays here as it is now
        self.message = ""  # the secret that is in a message of the last commits, by its kind

    def note(self, files: Iterable[tuple[bytes, bytes]], objection: Objection) -> None:
        """Hear of paths and objects to which there was no objection when they were committed."""
        self._use(objection)
        self._seen.update(dict.fromkeys(files))

    def _use(self, objection: Objection) -> None:
        if objection is not self._objection:
            self._seen, self._objection = {}, objection

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
        if theirs == ours:
            return ours
        files, messages = self._new(theirs, ours)
        found = self._objected(files, theirs, ours, objection)
        secret = find_secret(messages) if secrets else None
        self.message = secret.kind if secret else ""
        if not found and not self.message:
            return ours
        commit, left_out = self._repository.without(theirs, ours, set(found))
        self.held = {path: found[entry.oid] for path, entry in left_out.items()}
        return commit

    def staying(self, theirs: str, ours: str, objection: Objection) -> dict[bytes, Problem]:
        """Return the files that would not be pushed in their present version, each with why."""
        files, _ = self._new(theirs, ours)
        found = self._objected(files, theirs, ours, objection)
        changed = self._repository.entries(theirs, ours) if found else {}
        return {path: found[each.oid] for path, each in changed.items() if each.oid in found}

    def _objected(
        self, files: Iterable[tuple[bytes, bytes]], theirs: str, ours: str, objection: Objection
    ) -> dict[bytes, Problem]:
        """Return the objects that must not travel, and why."""
        self._use(objection)
        unseen = [each for each in files if each not in self._seen]
        sizes = self._repository.sizes([oid for _, oid in unseen])
        for each in unseen:
            self._seen[each] = _TOO_LARGE if sizes[each[1]] > _TOGETHER else None
        unseen = [each for each in unseen if not self._seen[each]]
        for chunk in in_chunks(unseen, lambda each: sizes[each[1]], len(unseen) + 1, _TOGETHER):
            blobs = self._repository.objects([oid for _, oid in chunk])
            for path, oid in chunk:
                self._seen[path, oid] = objection(path, blobs[oid])
        reasons = ((oid, self._seen[path, oid]) for path, oid in files)
        return {oid: self._told(why, theirs, ours, oid) for oid, why in reasons if why}

    def _new(self, theirs: str, ours: str) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return path and name of each file in some commit to be pushed, and all messages."""
        words = ("--objects", "--filter=object:type=blob", "--format=%B%x00", ours)
        known = [f"^{theirs}"] if theirs else []
        output = self._repository.git.run("rev-list", *words, *known)
        *commits, objects = output.split(b"\0\n")
        lines = (line.partition(b" ") for line in objects.split(b"\n") if line)
        messages = b"\n".join(commit.partition(b"\n")[2] for commit in commits)
        return [(path, oid) for oid, _, path in lines], messages

    def _told(self, why: Problem, theirs: str, ours: str, oid: bytes) -> Problem:
        """Return a reason with the commit that brought the object in."""
        span = f"{theirs}..{ours}" if theirs else ours
        words = ("--format=%h", "--reverse", f"--find-object={os.fsdecode(oid)}", span, "--")
        commits = self._repository.git.run("log", *words).split()
        also = f", in the commit {commits[0].decode()}" if commits else ""
        return why._replace(sentence=why.sentence + also)
