"""Two histories made one, and the files brought up to that: no version of a memory is lost.

A merge is written without moving anything. Histories that crossed have several common ancestors;
these are merged first, as git does. For example, two machines start from commit B. Ada adds a.md in
commit A, Bob edits b.md in commit C and pushes first: Ada's commit is put on top of Bob's, so that
the history is B, C, A'. Had both edited b.md, a commit of two parents would have b.md in the
version with the larger object name, and the other version as a memory of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from aiaml_server.sync import stream
from aiaml_server.sync.checkout import check_out
from aiaml_server.sync.commit import Committed, sighting_of
from aiaml_server.sync.forgetting import telling
from aiaml_server.sync.forgetting.rewrite import FILE, Marks
from aiaml_server.sync.messages import JOIN, written
from aiaml_server.sync.reading import quiet
from aiaml_server.sync.rebase import MOST, is_by_sync, on_top
from aiaml_server.sync.repository import JOINING, Repository
from aiaml_server.sync.seen import Sighting
from aiaml_server.sync.status import Problem
from aiaml_server.sync.trees import Difference, changes_since
from aiaml_server.sync.union import Changes, is_safe, union


class Joined(NamedTuple):
    """What a join came to.

    Attributes:
        arrived: memories that are not here as they were.
        forgotten: how many of these are gone.
        kept_out: files that were not brought in, each with why.
    """

    arrived: int = 0
    forgotten: int = 0
    kept_out: Mapping[bytes, Problem] = MappingProxyType({})


def join(repository: Repository, theirs: str, committed: Committed) -> Joined:
    """Make the current commit one that holds `theirs` too, and bring the files up to it.

    The files come first. Before them it is noted what they are brought up to, so that a join that
    is interrupted can be finished, and is not taken for news.

    Raises:
        Busy: a file was changed since it was committed; nothing of it is lost.
        OSError: the disk refused.
    """
    ours = repository.head()
    merged = telling.tell(repository, _merge_cleaned(repository, ours, theirs, committed.grown))
    if merged == ours:
        return Joined()
    new = repository.changes(ours, merged)
    repository.git.run("update-ref", JOINING, merged)
    done = check_out(repository, new, committed.held_back, committed.waiting)
    # What is held back here stays on disk as it is, and is known to come from what was before.
    apart = new.keys() & committed.held_back
    unseen = apart - repository.seen.read().keys() if apart else set()
    before = ours or "0" * len(merged)
    steps = f"update {repository.branch} {merged} {before}\ndelete {JOINING}\n".encode()
    repository.git.run("update-ref", "-m", f"{JOIN}{theirs}", "--stdin", stdin=steps)
    repository.know(ours, merged, new)
    was = {path: sighting_of(new[path][0]) or Sighting(b"", None) for path in unseen}
    repository.seen.note(was | {path: sighting_of(new[path][1]) for path in done.here})
    forgotten = sum(not new[path][1] for path in done.here)
    return Joined(len(done.here), forgotten, done.refused)


def erase(repository: Repository, marks: Marks, committed: Committed) -> Joined:
    """Forget everywhere what has these marks, and what is noted so already.

    Raises:
        Busy: a file was changed since it was committed; nothing of it is lost.
        OSError: the disk refused.
    """
    erasure = repository.erasure
    erasure.add(marks)
    if not erasure.marks:
        return Joined()
    head = repository.head()
    is_done = erasure.is_clean(head) and erasure.marks <= erasure.told_by(head)
    return Joined() if is_done else join(repository, head, committed)


def _merge_cleaned(repository: Repository, ours: str, theirs: str, grown: tuple[str, str]) -> str:
    """Return a commit that holds both, but for what is forgotten everywhere."""
    erasure = repository.erasure
    mine, their = erasure.cleaned(ours), erasure.cleaned(theirs)
    if not mine or not their:
        return mine or their
    brought_back = their != theirs  # by a machine that still has the old history, perhaps
    if brought_back and repository.have_same_files(mine, their):
        words = ("--no-merges", "--max-count=1", their, f"^{mine}")
        if not repository.git.run("rev-list", *words):  # but for merges, nothing is new
            return mine
    return merge(repository, mine, their, grown)


def merge(repository: Repository, ours: str, theirs: str, grown: tuple[str, str] = ("", "")) -> str:
    """Write, or find, a commit that holds both; return its name.

    Commits that are only ours are put on top of theirs, where both touch different memories. A new
    machine, which has nothing but what every machine begins with, goes on from theirs. Of the two
    commits in `grown`, ours both, the first is known to lead to the second.
    """
    git = repository.git
    known = ours == theirs or grown == (theirs, ours)
    bases = [theirs] if known else quiet(git, "merge-base", "--all", ours, theirs).split()
    if theirs in bases:
        return ours
    if ours in bases:
        return theirs
    most = f"--max-count={MOST + 1}"
    ahead = git.run("rev-list", "--parents", most, ours, f"^{theirs}").splitlines()
    merges = [line for line in ahead if line.count(b" ") > 1]
    if ahead[0] in merges and (before := _before_merge(repository, ours, theirs)):
        return merge(repository, before, theirs)
    sides = _sides(repository, bases, ours, theirs)
    mine, their = ({path: after for path, (_, after) in side.items()} for side in sides)
    if mine.items() <= their.items() and repository.said_of(ours, "%P%n%s") == written("Set up"):
        return theirs  # ours is the first commit that we made, and has no memory yet
    is_straight = len(bases) == 1 and len(ahead) <= MOST and not merges
    if is_straight and (rebased := _rebase(repository, ours, theirs, their)):
        if rebased != theirs:
            repository.know(ours, rebased, sides[1])
        return rebased
    changes, copies = union(mine, their)
    copies = [copy for copy in copies if copy.entry.is_file and copy.path != FILE]
    changes |= repository.write_copies(copies, ours.encode())
    made = stream.join(ours, theirs, changes, repository.who())
    return repository.write_commits(made, "--force")


def _sides(
    repository: Repository, bases: Sequence[str], ours: str, theirs: str
) -> list[Difference]:
    """Return what each side changed since the two parted."""
    sides = (ours, theirs)
    if not bases:
        return [repository.changes("", side) for side in sides]
    base = bases[0]
    for other in bases[1:]:
        base = merge(repository, base, other)
    return changes_since(repository.git, base, sides)


def _before_merge(repository: Repository, ours: str, theirs: str) -> str:
    """Return what a merge of ours merged that never got to the remote; empty if it is none.

    Such a merge is made anew, instead of being merged with what came after it.
    """
    parents, _, subject = repository.said_of(ours, "%P%n%s").partition("\n")
    first, _, second = parents.partition(" ")
    if subject != written("Join") or not second:
        return ""
    alone = repository.git.run("rev-list", "--max-count=1", second, f"^{theirs}")
    return "" if alone else first


def _rebase(repository: Repository, ours: str, theirs: str, their: Changes) -> str:
    """Return what our commits become on top of theirs; empty where they must be merged.

    They must where they are not sync's, and where both sides touch the same memory, even if ours
    came to nothing in the end; unless theirs has all that ours did: so it is after a kill between
    the files and the branch.
    """
    export = repository.git.run("fast-export", *stream.EXPORTED, f"{theirs}..{ours}")
    commits = list(stream.exported(export))
    if not all(map(is_by_sync, commits)) or not all(map(is_safe, their)):
        return ""
    touched = {(touch.path, touch.oid) for commit in commits for touch in commit.touches}
    if touched <= {(path, entry.oid if entry else b"") for path, entry in their.items()}:
        return theirs
    if any(path in their for path, _ in touched):
        return ""
    return repository.write_commits([on_top(commits, theirs)], "--force")
