"""A repository that a power cut or a full disk has damaged: commits go on, from the files.

Nothing is taken from the files, which are the truth. What git has lost of the history is named in
the log; what it has not is kept.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from aiaml_server.files import replace_atomic
from aiaml_server.sync.command import REMOTE_VERBS, GitFailed
from aiaml_server.sync.disk import Objection, in_chunks
from aiaml_server.sync.messages import MEND
from aiaml_server.sync.repository import REMOTE, Repository
from aiaml_server.sync.worktree import Unfit, read

log = logging.getLogger(__name__)

_DAMAGE = re.compile(
    r"corrupt|is empty|bad (object|tree|signature)|broken|index file|unable to (read|find)"
    r"|missing (?!url)\w+|not a git repository: '|invalid sha1|could not parse|cannot read object"
    r"|no such ref|packfile|not a valid",
    re.IGNORECASE,
)
_LOST = re.compile(r"(missing|broken link|error:|fatal:) ?")
_NAME = re.compile(rb"[0-9a-f]{40,64}\n")
_BYTES = 16 * 1024 * 1024  # of memories that are held at once


def is_damage(error: GitFailed, repository: Repository) -> bool:
    """Whether git complains about its own repository.

    A command that talks to the remote repeats what that one says; so git is asked again, here.
    """
    if not _DAMAGE.search(error.output):
        return False
    return error.verb not in REMOTE_VERBS or _is_damaged(repository)


def _is_damaged(repository: Repository) -> bool:
    ours = repository.directory / "aiaml" / "refs"
    if any(not _NAME.fullmatch(path.read_bytes()) for path in ours.rglob("*") if path.is_file()):
        return True
    try:
        repository.git.run("fsck", "--no-dangling", "--no-progress")
    except GitFailed as complaint:
        # "error in tree …" is about an object that is as it was made, however strange.
        return any(_LOST.match(line) for line in complaint.output.splitlines())
    return False


def mend(repository: Repository, objection: Objection) -> None:
    """Make a damaged repository one that can be committed to.

    Args:
        repository: the repository.
        objection: says why git must not have a path with these bytes; None if it may.

    Raises:
        GitFailed: it is beyond that; the memories are not touched.
    """
    head = repository.directory / "HEAD"
    log.warning("The git repository in %s is damaged; mending it", repository.base)
    if not head.is_file() or not head.read_bytes().strip():
        replace_atomic(head, b"ref: refs/heads/main\n", 0o600)
    for name in ("objects", "refs"):
        (repository.directory / name).mkdir(mode=0o700, exist_ok=True)
    _remove_transport(repository.directory / "aiaml")
    _remove_empty(repository.directory / "objects")
    _remove_empty(repository.directory / "refs")
    _set_aside_packs(repository)
    _write_blobs(repository, objection)
    _restore(repository)


def _remove_transport(directory: Path) -> None:
    """Remove the repository that talks to the remote: nothing in it cannot be asked for again."""
    for name in ("HEAD", "config", "packed-refs"):
        (directory / name).unlink(missing_ok=True)
    for name in ("refs", "logs", "objects"):
        shutil.rmtree(directory / name, ignore_errors=True)


def _remove_empty(directory: Path) -> None:
    """Remove files that lost their bytes; git can neither use nor replace them."""
    for path in directory.rglob("*"):
        if path.is_file() and path.stat().st_size == 0 and path.suffix != ".lock":
            path.unlink()
            log.warning("Removed %s, which was empty", path)


def _set_aside_packs(repository: Repository) -> None:
    for index in (repository.directory / "objects" / "pack").glob("*.idx"):
        try:
            repository.git.run("verify-pack", str(index))
        except GitFailed as error:
            for path in (index, index.with_suffix(".pack")):
                with suppress(FileNotFoundError):
                    path.rename(path.with_name(f"{path.name}.damaged"))
            log.warning("Set aside %s and its pack: %s", index, error.output)


def _restore(repository: Repository) -> None:
    """Go back to the newest commit that is whole; none at all is a beginning as well."""
    name = repository.branch
    path = repository.directory / "logs" / name
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    before = [line.split(" ")[1] for line in reversed(lines) if line.count(" ") > 1]
    present = _commit_of(repository, name)
    if not present and not before:
        return
    for commit in dict.fromkeys((present, *before, _commit_of(repository, REMOTE))):
        if _is_whole(repository, commit):
            if commit != present:
                repository.git.run("update-ref", "-m", MEND, name, commit)
                log.warning("%s goes on from commit %s", name, commit)
            return
    (repository.directory / name).unlink(missing_ok=True)
    log.warning("No commit of %s is whole; beginning again from the files", name)


def _commit_of(repository: Repository, name: str) -> str:
    try:
        return repository.name_of(name)
    except GitFailed:
        return ""


def _is_whole(repository: Repository, commit: str) -> bool:
    try:
        repository.git.run("rev-list", "--quiet", commit)
        repository.git.run("rev-list", "--objects", "--quiet", "--no-walk", commit)
    except GitFailed:
        return False
    return bool(commit)


def _write_blobs(repository: Repository, objection: Objection) -> None:
    """Let git have the bytes of every memory again, but of what must not be in git."""
    paths = sorted((repository.base / "files").glob("*.md"))
    for chunk in in_chunks(_fit(paths, objection), len, len(paths) + 1, _BYTES):
        blobs = (b"blob\ndata %d\n%s\n" % (len(data), data) for data in chunk)
        repository.git.run("fast-import", "--quiet", "--done", stdin=b"".join((*blobs, b"done\n")))


def _fit(paths: Iterable[Path], objection: Objection) -> Iterator[bytes]:
    for path in paths:
        with suppress(Unfit):
            name = b"files/" + os.fsencode(path.name)
            if (data := read(path)) is not None and not objection(name, data):
                yield data
