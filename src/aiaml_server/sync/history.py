"""What git remembers: which versions of a memory there were, since when, and by whom.

Nothing is written. One call lists all commits, one more says what those that matter have changed:
our own commits name the only file that they touch, so most need not be looked into (in a repository
of 10,000 memories, comparing the trees of every commit takes git seconds).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.command import GitFailed
from aiaml_server.sync.messages import JOIN, did
from aiaml_server.sync.reading import NOBODY, Reading
from aiaml_server.sync.trees import Sides, listed, pairs_of
from aiaml_server.sync.union import Entry, is_memory
from aiaml_server.timestamps import format_timestamp

__all__ = ["TOGETHER_SECONDS", "Change", "Commit", "Entry", "History"]

Wanted = Callable[[str], bool]
"""Whether a file of this name in `files/` is asked for."""

_AT_ONCE = 64  # commits that are compared in one call, at first
TOGETHER_SECONDS = 2  # between what is done at once
_LATELY = 2000  # commits that the Tab key looks at
_LONGEST = 330  # columns of a message that are read: a file has a name of 255 bytes at most
_FIELDS = f"%H%x00%P%x00%ct%x00%<(100,trunc)%an%x00%<({_LONGEST},trunc)%s"
_LATEST_TIME = 253_370_764_800  # the year 9999, after which no calendar of Python's has a name
_ARRIVED = (JOIN, "clone", "pull", "merge")


class Commit(NamedTuple):
    """A commit.

    Attributes:
        oid: its object name.
        parents: those of the commits before it.
        time: when it was made, in seconds since 1970; None where what it says is no time.
        author: the name that it is by.
        subject: the first line of its message.
    """

    oid: str
    parents: Sequence[str]
    time: int | None
    author: str
    subject: str

    @property
    def when(self) -> str | None:
        """When it was made, as ISO 8601 in UTC."""
        return None if self.time is None else format_timestamp(self.time * 1_000_000, "seconds")


class Change(NamedTuple):
    """What a commit did to one memory.

    Attributes:
        commit: the commit.
        name: the file's name.
        what: Added, Imported, Updated, Forgotten; Restored, where it had been forgotten before; or
            Kept, for the copy of a version that two machines had edited at once.
        before: the object of the file until then; None where there was none.
        after: the object of the file from then on; None where it is gone.
        arrived: whether the commit came from another machine; None where git does not know.
    """

    commit: Commit
    name: str
    what: str
    before: Entry | None
    after: Entry | None
    arrived: bool | None

    @property
    def machine(self) -> str | None:
        """The name that the commit is by, where it was not made here; None where there is none."""
        author = self.commit.author
        return None if self.arrived is False or author == NOBODY else author

    def together_with(self, other: Change) -> bool:
        """Whether a person did both at once: forgot them, or brought them back."""
        is_same = self.what in ("Forgotten", "Restored") and self.what == other.what
        return is_same and self.near(other)

    def near(self, other: Change) -> bool:
        """Whether both were done within moments, at one place."""
        one, two = self.commit, other.commit
        if one.time is None or two.time is None or abs(one.time - two.time) > TOGETHER_SECONDS:
            return False
        return (one.author, self.arrived) == (two.author, other.arrived)


class History:
    """The history of one base directory up to its present commit.

    Raises:
        GitMissing: there is no git.
        GitFailed: the repository cannot be read; also from the methods.
    """

    def __init__(self, base: Path) -> None:
        self._repository = Reading(base)
        self.head = self._repository.head() if self._repository.find() else ""

    @cached_property
    def commits(self) -> list[Commit]:
        """All commits, newest first."""
        if not self.head:
            return []
        words = ("-z", "--date-order", "--no-show-signature", "--encoding=UTF-8")
        told = f"--format={_FIELDS}"
        output = self._repository.git.run("log", *words, told, self.head, "--")
        fields = iter(output.decode("utf-8", "surrogateescape").split("\0"))
        return [
            Commit(oid, tuple(parents.split()), time_of(time), author.rstrip(), subject.rstrip())
            for oid, parents, time, author, subject in zip(*[fields] * 5, strict=False)
        ]

    def latest(self, since: float = 0.0) -> Iterator[list[Change]]:
        """Yield what each commit since then did to memories, newest first."""
        commits = [each for each in self.commits if (each.time or 0) >= since]
        start, size = 0, _AT_ONCE
        while start < len(commits):
            yield from self._changes(commits[start : start + size])
            start, size = start + size, size * 4

    def rows(
        self, since: float = 0.0, *, many: int, together: bool = True
    ) -> Iterator[list[Change]]:
        """Yield what is told as one, newest first.

        That is one change, all those of a commit that has more than `many`, or what was forgotten
        or brought back `together`, which has a commit each.
        """
        row: list[Change] = []
        for changes in self.latest(since):
            changes = sorted(changes, key=lambda each: each.name, reverse=True)  # noqa: PLW2901
            for each in [changes] if len(changes) > many else [[change] for change in changes]:
                if together and row and len(each) == 1 and each[0].together_with(row[-1]):
                    row += each
                    continue
                if row:
                    yield row
                row = each
        if row:
            yield row

    def of(self, wanted: Wanted) -> list[Change]:
        """Return all that happened to the files asked for, newest first."""
        commits = []
        for each in self.commits:
            name = did(each.subject).name
            if not name or " " in name or wanted(name):  # one blank may be several in the file's
                commits.append(each)
        found = [change for group in self._changes(commits) for change in group]
        return [change for change in found if wanted(change.name)]

    def forgotten(self) -> list[Change]:
        """Return every deletion of a memory, newest first."""
        others = [each for each in self.commits if did(each.subject).verb not in ("Add", "Update")]
        found = [change for group in self._changes(others) for change in group]
        return [change for change in found if not change.after]

    def lately_forgotten(self) -> list[str]:
        """Return the files that the newest commits forgot, as far as their messages name them."""
        if not self.head:
            return []
        words = (f"--max-count={_LATELY}", "--no-show-signature", f"--format={_FIELDS}", "-z")
        output = self._repository.git.run("log", *words, self.head, "--")
        subjects = output.decode("utf-8", "surrogateescape").split("\0")[4::5]
        done = (did(each.rstrip()) for each in subjects)
        return [each.name for each in done if each.verb == "Forget"]

    def texts(self, entries: Iterable[Entry | None]) -> dict[Entry, str]:
        """Return what files held; what is larger than a memory, or lost, is not among it.

        Bytes that are no UTF-8 are lone surrogates in it, as `os.fsdecode` has them.
        """
        asked = [each for each in entries if each and each.is_file]
        blobs = self._repository.small_objects((entry.oid for entry in asked), MAX_FILE)
        texts = {oid: data.decode("utf-8", "surrogateescape") for oid, data in blobs.items()}
        return {entry: texts[entry.oid] for entry in asked if entry.oid in texts}

    def blobs(self, oids: Iterable[str]) -> dict[str, str]:
        """Return the texts that git has under these names, as `texts` does."""
        if not self.head:
            return {}
        wanted = {each: Entry(b"100644", each.encode()) for each in oids if each}
        texts = self.texts(wanted.values())
        return {oid: texts[entry] for oid, entry in wanted.items() if entry in texts}

    def commit(self, revision: str) -> str:
        """Return the commit that git understands by `revision`; empty where there is none."""
        if not revision or revision.startswith("-") or not self.head:
            return ""
        try:
            return self._repository.name_of(f"{revision}^{{commit}}")
        except GitFailed:  # such as an ambiguous beginning of a name
            return ""

    def entry(self, commit: str, name: str) -> Entry | None:
        """Return the file of a memory as it was at a commit; None where there was none."""
        output = self._repository.git.run("ls-tree", "-z", commit, "--", f"files/{name}")
        mode, _, rest = output.partition(b" ")
        return Entry(mode, rest.split(b" ")[1].partition(b"\t")[0]) if rest else None

    # --- what commits changed -------------------------------------------------------------------

    def _changes(self, commits: Sequence[Commit]) -> Iterator[list[Change]]:
        """Yield the changes of each commit that has some; of a join only those that it made."""
        if not commits:
            return
        pairs = pairs_of(self._repository.git, [(each.oid, each.parents) for each in commits])
        differences = listed(self._repository.git, set(pairs))
        start = 0
        for commit in commits:
            sides = pairs[start : start + (len(commit.parents) or 1)]
            start += len(sides)
            first, *others = [differences.get(pair, {}) for pair in sides]
            group = [
                self._change(commit, name, [first[name], *(other[name] for other in others)])
                for name in first
                if all(name in other for other in others) and is_memory(b"files/" + name)
            ]
            if group:
                yield group

    def _change(self, commit: Commit, path: bytes, differences: Sequence[Sides]) -> Change:
        sides = [*(before for before, _ in differences), differences[0][1]]
        what = "Updated"
        if not sides[-1]:
            what = "Forgotten"
        elif not sides[0]:
            what = "Added"
        if what == "Added" and (len(differences) > 1 or did(commit.subject).verb == "Import"):
            what = "Kept" if len(differences) > 1 else "Imported"
        name = os.fsdecode(path)
        if what == "Added" and self._place[commit.oid] < self._forgotten.get(name, -1):
            what = "Restored"
        return Change(commit, name, what, sides[0], sides[-1], self._arrived.get(commit.oid))

    @cached_property
    def _place(self) -> dict[str, int]:
        """The place of each commit, counted from the newest."""
        return {each.oid: place for place, each in enumerate(self.commits)}

    @cached_property
    def _forgotten(self) -> dict[str, int]:
        """The place of the first commit of ours that forgot a file alone, by the file's name."""
        done = ((did(each.subject), place) for place, each in enumerate(self.commits))
        return {what.name: place for what, place in done if what.verb == "Forget"}

    @cached_property
    def _arrived(self) -> dict[str, bool]:
        """Say of each commit whether it came from elsewhere, by what the branch's log tells.

        Each line of it has the commits before and after, that of a join also the one that arrived.
        What is new came with that one; the join itself, and what was put on top of it, did not.
        """
        log = self._repository.directory / "logs" / self._repository.branch
        lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
        parents = {each.oid: each.parents for each in self.commits}
        found: dict[str, bool] = {}
        seen: set[str] = set()
        for line in lines:
            ends, _, reason = line.partition("\t")
            before, after = [*ends.split(" "), "", ""][:2]
            if before not in seen:  # at the beginning, and where the history was rewritten
                seen.update(_reach(before, parents, seen))
            new = _reach(after, parents, seen)
            joined = reason.partition(JOIN)[2]
            theirs = _reach(joined, parents, seen) if joined in parents else new
            seen.update(new)
            arrived = reason.startswith(_ARRIVED)
            found.update({each: arrived and each in theirs for each in new})
            if len(own := parents.get(after, ())) > 1 and own[0] == before:
                found[after] = False
        return found


def _reach(oid: str, parents: dict[str, Sequence[str]], seen: set[str]) -> set[str]:
    """Return a commit and all before it, but those that were seen."""
    found, ahead = set(), [oid]
    while ahead:
        each = ahead.pop()
        if each in parents and each not in seen and each not in found:
            found.add(each)
            ahead += parents[each]
    return found


def time_of(text: str) -> int | None:
    """Return what a commit says of its time; None where git or no calendar can read it."""
    if not text.isdecimal() or len(text) > len(str(_LATEST_TIME)):
        return None
    return time if (time := int(text)) < _LATEST_TIME else None
