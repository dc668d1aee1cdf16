"""The files brought up to what a commit has, in chunks, and no file that somebody has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from aiaml_server.storage.store import MAX_FILE
from aiaml_server.sync.disk import in_chunks
from aiaml_server.sync.repository import AT_ONCE, AT_ONCE_BYTES, Repository
from aiaml_server.sync.status import CUT, Busy, Problem
from aiaml_server.sync.union import Entry, is_memory
from aiaml_server.sync.worktree import Change, Changed, bring

_TOO_LARGE = Problem("too-large", f"it is larger than {MAX_FILE // 1024 // 1024} MiB", CUT)


class CheckedOut(NamedTuple):
    """What came of it.

    Attributes:
        here: the paths that are up to date.
        refused: those that are not, each with why.
    """

    here: list[bytes]
    refused: dict[bytes, Problem]


class _Wanted(NamedTuple):
    path: bytes
    before: Entry | None
    after: Entry | None


def check_out(
    repository: Repository,
    changes: Mapping[bytes, tuple[Entry | None, Entry | None]],
    held_back: Collection[bytes] = (),
    waiting: Collection[bytes] = (),
) -> CheckedOut:
    """Do on disk what `changes` says about memories.

    Args:
        repository: the repository that has them.
        changes: what each file was in the commit before, and is to be; None for no file.
        held_back: paths that stay as they are, since what is there must not be committed.
        waiting: paths whose deletion waits for a person's word: no file is expected there.

    Raises:
        Busy: a file was changed since it was committed; nothing of it is lost.
        OSError: the disk refused.
    """
    wanted = [
        _Wanted(path, None if path in waiting else before, after)
        for path, (before, after) in changes.items()
        if is_memory(path) and path not in held_back and (not after or after.is_file)
    ]
    # What is new comes first: a kill must find the copy of a version that loses its name made
    # before the name is taken from it.
    wanted.sort(key=lambda each: changes[each.path][0] is not None)
    sizes = repository.sizes([each.after.oid for each in wanted if each.after])

    def size(each: _Wanted) -> int:
        return sizes[each.after.oid] if each.after else 0

    done = CheckedOut([], {})
    for each in wanted:
        if size(each) > MAX_FILE:
            done.refused[each.path] = _refusal(_TOO_LARGE)
    fit = [each for each in wanted if each.path not in done.refused]
    for chunk in in_chunks(fit, size, AT_ONCE, AT_ONCE_BYTES):
        refused = _bring(repository, chunk)
        done.refused.update(refused)
        done.here.extend(each.path for each in chunk if each.path not in refused)
    return done


def _bring(repository: Repository, chunk: Sequence[_Wanted]) -> dict[bytes, Problem]:
    """Bring files in; return those that stayed as they were, each with why."""
    blobs = repository.objects([each.after.oid for each in chunk if each.after])
    paths = {repository.file(each.path): each.path for each in chunk}
    changes = [
        Change(
            repository.file(each.path),
            each.before.oid if each.before else None,
            blobs[each.after.oid] if each.after else None,
        )
        for each in chunk
    ]
    try:
        refused = bring(repository.base / "files", changes)
    except Changed as error:
        raise Busy(f"{error} was changed while another version of it arrived") from error
    return {paths[file]: _refusal(why) for file, why in refused.items()}


def _refusal(why: Problem) -> Problem:
    sentence = f"another machine's version cannot be brought in: {why.sentence}"
    return why._replace(sentence=sentence)
