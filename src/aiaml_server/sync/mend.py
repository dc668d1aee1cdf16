"""A repository that a power cut or a full disk has damaged: commits go on, from the files.

Nothing is taken from the files, which are the truth. What git has lost of the history is named in
the log; what it has not is kept.
"""

from __future__ import annotations

import logging
import re
import shutil
from contextlib import suppress
from pathlib import Path

from .command import GitFailed
from .repository import REMOTE, Repository

log = logging.getLogger(__name__)

_DAMAGE = re.compile(
    r"corrupt|is empty|bad (object|tree|signature)|broken|index file|unable to (read|find)"
    r"|missing (?!url)\w+|not a git repository: '|invalid sha1|could not parse|cannot read object"
    r"|no such ref|packfile|not a valid",
    re.IGNORECASE,
)


def is_damage(error: GitFailed) -> bool:
    """Whether git complains about its own repository."""
    return bool(_DAMAGE.search(error.output))


def mend(repository: Repository) -> None:
    """Make a damaged repository one that can be committed to.

    Raises:
        GitFailed: it is beyond that; the memories are not touched.
    """
    head = repository.directory / "HEAD"
    log.warning("The git repository in %s is damaged; mending it", repository.base)
    if not head.is_file() or not head.read_bytes().strip():
        head.write_text("ref: refs/heads/main\n", encoding="ascii")
    for name in ("objects", "refs"):
        (repository.common / name).mkdir(exist_ok=True)
    # Ours, and nothing in it that cannot be asked for again.
    shutil.rmtree(repository.common / "aiaml", ignore_errors=True)
    _remove_empty(repository.common / "objects")
    _remove_empty(repository.common / "refs")
    _set_aside_packs(repository)
    _restore_head(repository)
    _restore_index(repository)


def _remove_empty(directory: Path) -> None:
    """Remove files that lost their bytes; git can neither use nor replace them."""
    for path in directory.rglob("*"):
        if path.is_file() and path.stat().st_size == 0 and path.suffix != ".lock":
            path.unlink()
            log.warning("Removed %s, which was empty", path)


def _set_aside_packs(repository: Repository) -> None:
    for index in (repository.common / "objects" / "pack").glob("*.idx"):
        try:
            repository.git.verify_pack(str(index))
        except GitFailed as error:
            for path in (index, index.with_suffix(".pack")):
                with suppress(FileNotFoundError):
                    path.rename(path.with_name(f"{path.name}.damaged"))
            log.warning("Set aside %s and its pack: %s", index, error.output)


def _restore_head(repository: Repository) -> None:
    """Go back to the newest commit that is whole; none at all is a beginning as well."""
    git = repository.git
    _write_blobs(repository)
    branch = repository.branch()
    for commit in _candidates(repository, branch):
        if _is_whole(repository, commit):
            git.update_ref("-m", "aiaml: mend", "HEAD", commit)
            log.warning("Going on from commit %s", commit)
            return
    if branch != "HEAD":
        (repository.common / branch).unlink(missing_ok=True)
    log.warning("No commit is whole; beginning again from the files")


def _candidates(repository: Repository, branch: str) -> list[str]:
    """Return the commits that the branch has been at, newest first, and the remote's."""
    found = []
    for name in dict.fromkeys((branch, "HEAD")):
        path = repository.common / "logs" / name
        lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
        found += [line.split(" ")[1] for line in reversed(lines) if line.count(" ") > 1]
    return list(dict.fromkeys([repository.name_of("HEAD"), *found, repository.name_of(REMOTE)]))


def _is_whole(repository: Repository, commit: str) -> bool:
    try:
        repository.git.rev_list("--quiet", commit)
        repository.git.rev_list("--objects", "--quiet", "--no-walk", commit)
    except GitFailed:
        return False
    return bool(commit)


def _write_blobs(repository: Repository) -> None:
    """Let git have the bytes of every file again; what it has already is not written twice."""
    paths = sorted((repository.base / "files").glob("*.md"))
    lines = "".join(f"{path}\n" for path in paths if path.is_file() and "\n" not in path.name)
    repository.git.hash_object("-w", "--no-filters", "--stdin-paths", istream=lines.encode())


def _restore_index(repository: Repository) -> None:
    try:
        repository.git.ls_files("--", "files")
    except GitFailed:
        (repository.directory / "index").rename(repository.directory / "index.damaged")
        log.warning("The index was damaged; it is made anew")
    if not (repository.directory / "index").exists() and repository.head():
        repository.git.read_tree("HEAD")
