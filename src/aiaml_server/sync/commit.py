"""Committing what the disk has and the current commit has not, in four steps.

Each step returns what it found or did: the files are compared with the commit, it is decided which
deletions are meant, what is new is written, and what the disk has only lost is brought back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from aiaml_server.sync import asked, stream
from aiaml_server.sync.checkout import check_out
from aiaml_server.sync.disk import Disk, Objection, in_chunks, listing
from aiaml_server.sync.forgetting.rewrite import mark
from aiaml_server.sync.repository import AT_ONCE_BYTES, Repository
from aiaml_server.sync.seen import Sighting
from aiaml_server.sync.status import Busy, Missing, Problem
from aiaml_server.sync.stream import Step
from aiaml_server.sync.trees import Difference
from aiaml_server.sync.union import Copy, Entry, is_memory

IMPORT_FROM = 500  # more new memories than this, where git has none yet, share a commit
_CHUNK = 200  # files that are committed at once
_IMPORTED = 5000
_IMPORTED_BYTES = 1024 * 1024  # so that a commit passes the limit that web servers are shipped with
_MANY = 20  # deletions at once that need no word of a person's, also of all memories
_SHARE = 5  # more are held if they are more than a fifth
_SAY = (
    "`aiaml sync --bring-back` brings them back from git; `aiaml sync --forget` forgets them, on "
    "all your machines. If a disk is not mounted or a copy not complete, mend that."
)
_PUT_BACK = (
    "put it back (is a disk not mounted?); or make it anew, empty, and all memories that git has "
    "come back. Nothing is done meanwhile, and nothing forgotten."
)

Found = tuple[Step, Sighting | None]
"""What is to be committed, with what was seen of the file; None where it is gone."""


class Committed(NamedTuple):
    """What a commit came to.

    Attributes:
        number: memories that were committed.
        kept_out: files that are not committed as they are, each with why.
        brought_back: memories that git had and the disk had lost.
        forgotten: how many of the number are gone.
        passed: paths, each with the name of the object, to which there was no objection.
        held_back: those kept out since they must not be in git, whatever the disk has.
        waiting: paths whose deletion waits for a person's word.
        grown: the commits before and after.
        missing: what a person has said about memories that were deleted.
    """

    number: int
    kept_out: dict[bytes, Problem]
    brought_back: int = 0
    forgotten: int = 0
    passed: Sequence[tuple[bytes, bytes]] = ()
    held_back: frozenset[bytes] = frozenset()
    waiting: frozenset[bytes] = frozenset()
    grown: tuple[str, str] = ("", "")
    missing: Missing = ""


def commit(repository: Repository, objection: Objection, missing: Missing = "") -> Committed:
    """Commit every memory that is not on disk as it is in the current commit.

    What the disk lacks, and was never seen there, is brought back instead. Where much has been
    deleted at once, that is not committed unless a person has said so. While a git of the person's
    beside ours may be changing files, only what is new is.

    Args:
        repository: where to.
        objection: says why a path with these bytes must not be committed; None if it may.
        missing: what a person has said about memories that were deleted.

    Raises:
        Busy: the directory that had the files is not there.
    """
    head = repository.head() or repository.commit_own_files()
    named = asked.recorded(repository.base)
    theirs = repository.theirs
    state = theirs.state()
    repository.seen.mark()
    disk = compare(repository, head)
    # What their git takes away or writes just now is not deleted or edited.
    unmerged = theirs.unmerged(repository.git) if disk.moved else set()
    at_work = theirs.is_at_work(state) or bool(unmerged)
    for name in unmerged:
        disk.here.pop(b"files/" + name, None)
    held = frozenset(repository.seen.held())
    deletions = _Deletions((), held, {}) if at_work else _decided(disk, named, held, missing)
    if deletions.waiting != held:
        repository.seen.hold(deletions.waiting)
    written = _write(repository, disk, head, objection, deletions.meant, None if at_work else state)
    brought_back, refused = 0, written.refused
    if not written.at_work:
        brought_back, not_taken = _bring_back(repository, disk, deletions.waiting, missing)
        refused |= not_taken
        asked.clear(repository.base, named)
        theirs.note(state)
    return Committed(
        written.number,
        disk.held_back | disk.unfit | deletions.problem_by_path | refused,
        brought_back,
        written.forgotten,
        written.passed,
        frozenset(disk.held_back),
        deletions.waiting,
        (head, written.head),
        missing,
    )


def pending(repository: Repository, objection: Objection) -> tuple[Committed, frozenset[bytes]]:
    """Say what `commit` would do now, and which files are to be brought in; nothing is changed."""
    head = repository.head()
    disk = compare(repository, head)
    named, held = asked.recorded(repository.base), frozenset(repository.seen.held())
    deletions = _decided(disk, named, held, "")
    missing = frozenset(disk.missing())
    added = sum(1 for _ in _news(repository, disk, head, objection))
    kept_out = disk.held_back | disk.unfit | deletions.problem_by_path
    forgotten = len(deletions.meant)
    return Committed(added + forgotten, kept_out, forgotten=forgotten), missing


# --- first: the files and the commit --------------------------------------------------------------


def compare(repository: Repository, head: str) -> Disk:
    """Compare the files with the commit `head`; empty for none.

    Raises:
        Busy: the directory that had the files is not there.
    """
    directory = repository.base / "files"
    tree, seen = repository.tree(head), repository.seen
    known = seen.read()
    here = listing(directory, known)
    if not seen.is_same():  # what was listed may be another one
        known = {}
    moved = repository.theirs.moved()  # later than the listing, so that it has all of it
    if here is None and tree and seen.anything() and not moved:
        raise Busy(f"the directory {directory} is missing", _PUT_BACK)
    certain = frozenset[bytes]()
    if moved:
        certain = frozenset(seen.held() | asked.recorded(repository.base))
    arriving: dict[bytes, Entry | None] = {}
    if joining := repository.joining():  # an interrupted join has brought this, or has still to
        changes = repository.changes(head, joining)
        arriving = {path: after for path, (_, after) in changes.items() if is_memory(path)}
    return Disk(repository.base, tree, here or {}, known, moved, certain, arriving)


# --- second: what was deleted ---------------------------------------------------------------------


class _Deletions(NamedTuple):
    """Which deletions are to be committed, which wait for a person's word, and what that is."""

    meant: Sequence[bytes]
    waiting: frozenset[bytes]
    problem_by_path: dict[bytes, Problem]


def _decided(disk: Disk, named: set[bytes], held: frozenset[bytes], missing: Missing) -> _Deletions:
    """Decide about what was deleted.

    Args:
        disk: the comparison.
        named: what a verb of ours deleted on a person's word.
        held: what waited for a word before, whatever has come or gone since.
        missing: the word for all of it.
    """
    deleted = disk.deleted()
    if missing:
        return _Deletions(list(deleted) if missing == "forget" else [], frozenset(), {})
    unasked = deleted.keys() - named
    if len(unasked) <= _MANY or _SHARE * len(unasked) <= len(disk.tree):
        unasked &= held
    problem = {}
    if unasked:
        problem[b"files"] = Problem(
            "many-deleted",
            f"{len(unasked)} of its {len(disk.tree)} memories are gone, and so many are not "
            "forgotten unless you say so",
            _SAY,
        )
    meant = [path for path in deleted if path not in unasked]
    return _Deletions(meant, frozenset(unasked), problem)


# --- third: writing -------------------------------------------------------------------------------


class _Written(NamedTuple):
    """The commits that were made.

    Attributes:
        head: the last of them.
        number: the memories in them.
        forgotten: how many of these are gone.
        passed: paths, each with the name of the object, to which there was no objection.
        refused: copies that the disk did not take, each with why.
        at_work: whether a git of the person's was, and only what is new was committed.
    """

    head: str
    number: int
    forgotten: int
    passed: list[tuple[bytes, bytes]]
    refused: dict[bytes, Problem]
    at_work: bool


def _write(
    repository: Repository,
    disk: Disk,
    head: str,
    objection: Objection,
    meant: Sequence[bytes],
    state: str | None,
) -> _Written:
    """Commit what is new and what is meant to be gone.

    Args:
        repository: where to.
        disk: the comparison.
        head: the commit that it was made with.
        objection: says why a path with these bytes must not be committed; None if it may.
        meant: the paths of what is gone.
        state: of a git of the person's, when they were compared; None if it is at work.
    """
    gone = ((Step("Forget", path, None), None) for path in meant)
    found = chain(_news(repository, disk, head, objection), gone)
    adopting = not disk.tree and len(disk.here) > IMPORT_FROM
    most = (_IMPORTED, _IMPORTED_BYTES) if adopting else (_CHUNK, AT_ONCE_BYTES)
    at_work = state is None
    number = forgotten = 0
    passed: list[tuple[bytes, bytes]] = []
    refused: dict[bytes, Problem] = {}
    for chunk in in_chunks(found, lambda each: len(each[0].data or b""), *most):
        at_work = at_work or repository.theirs.is_at_work(state or "")
        sure = [each for each in chunk if not at_work or each[0].verb == "Add"]
        passed += [(step.path, sighting.oid) for step, sighting in sure if sighting]
        copies, not_taken = _copied(repository, [step.path for step, _ in sure], disk, head)
        refused |= not_taken
        sure += copies
        steps = [step for step, _ in sure]
        if steps:
            groups = [steps] if adopting else [[step] for step in steps]
            old = head
            made = stream.commits(groups, repository.branch, head, repository.who())
            head = repository.write_commits(made)
            changed: Difference = {}
            for step, sighting in sure:
                entry = Entry(b"100644", sighting.oid) if sighting else None
                changed[step.path] = disk.tree.get(step.path), entry
            repository.know(old, head, changed)
            repository.seen.note({step.path: sighting for step, sighting in sure})
        number += len(steps)
        forgotten += sum(step.data is None for step in steps)
    repository.seen.note(disk.same)
    return _Written(head, number, forgotten, passed, refused, at_work)


def _news(repository: Repository, disk: Disk, head: str, objection: Objection) -> Iterator[Found]:
    def was_there(path: bytes, oid: bytes) -> bool:
        erased = mark(path) in repository.erasure.marks
        return erased or (path, oid) in repository.versions(head)

    return disk.steps(head.encode(), objection, was_there)


def _copied(
    repository: Repository, paths: Iterable[bytes], disk: Disk, head: str
) -> tuple[list[Found], dict[bytes, Problem]]:
    """Have a file of its own made of what others made of a memory that was edited here."""
    diverged = [Copy(path, disk.diverged[path]) for path in paths if path in disk.diverged]
    kept = repository.write_copies(diverged, head.encode())
    kept = {path: entry for path, entry in kept.items() if path not in disk.tree}
    changes: Difference = {path: (None, entry) for path, entry in kept.items()}
    done = check_out(repository, changes, disk.held_back)
    blobs = repository.objects([kept[path].oid for path in done.here])
    found: list[Found] = []
    for path in done.here:
        oid = kept[path].oid
        found.append((Step("Add", path, blobs[oid]), Sighting(oid, None)))
    return found, done.refused


# --- fourth: what the disk has lost ---------------------------------------------------------------


def _bring_back(
    repository: Repository, disk: Disk, waiting: frozenset[bytes], missing: Missing
) -> tuple[int, dict[bytes, Problem]]:
    """Have on disk what no person deleted or changed there, as the commit has it.

    Returns:
        How many memories were brought back, and what the disk did not take, each with why.
    """
    lost = disk.missing() | (disk.deleted() if missing == "bring back" else {})
    changes: Difference = {path: (None, entry) for path, entry in lost.items()}
    changes |= disk.outdated
    done = check_out(repository, changes, disk.held_back, waiting)
    repository.seen.note({path: sighting_of(changes[path][1]) for path in done.here})
    return sum(1 for path in done.here if changes[path][1]), done.refused


def sighting_of(entry: Entry | None) -> Sighting | None:
    """Return what was seen of a file that was brought in so."""
    return Sighting(entry.oid, None) if entry else None
