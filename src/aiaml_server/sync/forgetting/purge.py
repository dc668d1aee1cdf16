"""Removing from the repository what only a history had that was rewritten.

git keeps what nothing leads to any more for weeks, in case that somebody wants it back. Here nobody
does. What goes is named one by one: of a git that runs beside us, nothing is taken that it may have
written a moment ago.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.files import Lock, check_own, read_own, replace_atomic
from aiaml_server.sync import place
from aiaml_server.sync.command import Git, GitFailed
from aiaml_server.sync.forgetting.erasure import present
from aiaml_server.sync.stream import SCRATCH, SENT

if TYPE_CHECKING:
    from aiaml_server.sync.repository import Repository

log = logging.getLogger(__name__)

_ROOTS = ("--all", "--reflog", "--indexed-objects")
_SECONDS = 3600.0
_PATIENCE = 10.0  # for a packing that is under way
_BESIDE = (".idx", ".pack", ".rev", ".bitmap", ".mtimes")  # the first makes the others known


def purge(repository: Repository) -> None:
    """Remove what is left of histories that were rewritten, but for what a person's refs lead to.

    It looks through all of the repository, so it is not done again before something there changes.

    Raises:
        GitFailed: git could not; it is tried again.
        OSError: the disk refused.
    """
    erasure = repository.erasure
    if erasure.has_tried(_state(repository)):
        return
    _clean_refs(repository)
    git = repository.git
    words = ("--expire=never", "--expire-unreachable=now", repository.branch, "HEAD")
    with suppress(GitFailed):  # there is no log
        git.run("reflog", "expire", *words)
    left = erasure.left()
    reachable = _objects(git, *_ROOTS)
    tips = present(git, left.tips)
    stale = _objects(git, *(each.decode() for each in tips)) if tips else set()
    gone = (stale | left.files) - reachable
    with Lock(repository.directory / "aiaml" / "tidying").held(_PATIENCE) as hold:
        if hold.acquired:
            _remove(git, repository.directory / "objects", gone)
    erasure.leave(present(git, left.tips), present(git, left.files))
    if not present(git, gone):
        erasure.tried(_state(repository))


def _state(repository: Repository) -> bytes:
    """Return what tells whether a person's refs, or git's logs of them, have changed."""
    left, tip = repository.erasure.left(), repository.head()
    found = [*sorted(left.tips | left.files)]
    names = []
    for name, oid in _refs(repository):
        if oid != tip:
            names.append(name)
            found.append(f"{name} {oid}".encode())
    logs = (repository.directory / "logs" / name for name in names)
    return b"\n".join([*found, *(b"%d" % path.stat().st_size for path in logs if path.is_file())])


def _refs(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yield the refs that are not ours: name and object."""
    format_ = "--format=%(refname) %(objectname)"
    for line in os.fsdecode(repository.git.run("for-each-ref", format_)).splitlines():
        name, _, oid = line.partition(" ")
        if name != repository.branch and not name.startswith("refs/aiaml/"):
            yield name, oid


def holders(repository: Repository, files: Iterable[bytes]) -> list[str]:
    """Say what of the person's own leads to files that are, or are to be, forgotten."""
    git, wanted = repository.git, set(files)
    refs = _refs(repository) if wanted else ()
    found = [_called(name) for name, _ in refs if wanted & _objects(git, name)]
    theirs = place.persons(repository.base)
    if theirs and wanted:
        directory, _ = place.git_directories(theirs)
        its = Git(repository.base)
        its.variables["GIT_DIR"] = str(directory)
        found += [f"the repository in {theirs}"] if present(its, wanted) else []
    return found


def held(repository: Repository) -> set[bytes]:
    """Return which of the objects that are to be gone are still there."""
    return present(repository.git, repository.erasure.left().files)


def _called(name: str) -> str:
    for start, kind in (("refs/heads/", "branch"), ("refs/tags/", "tag")):
        if name.startswith(start):
            return f"the {kind} {name.removeprefix(start)}"
    return name


def _clean_refs(repository: Repository) -> None:
    """Have no ref of ours lead to a history that was rewritten."""
    git, erasure = repository.git, repository.erasure
    lines = git.run("for-each-ref", "--format=%(refname) %(objectname)", "refs/aiaml").decode()
    for name, oid in (line.split(" ") for line in lines.splitlines()):
        if name in (SCRATCH, SENT):
            git.run("update-ref", "-d", name)
        elif name != "refs/aiaml/joining" and (new := erasure.cleaned(oid)) != oid:
            git.run("update-ref", name, new) if new else git.run("update-ref", "-d", name)
    # What the remote has, as it is told when it is asked.
    for path in (repository.directory / "aiaml" / "refs").rglob("*"):
        if path.suffix != ".lock" and not path.is_dir() and check_own(path):
            oid = read_own(path, 1024).decode("ascii").strip()
            if (new := erasure.cleaned(oid)) != oid:
                replace_atomic(path, f"{new}\n".encode(), 0o600) if new else path.unlink()


def _objects(git: Git, *roots: str) -> set[bytes]:
    """Return the names of all objects that roots lead to."""
    words = ("--objects", "--no-object-names", "--missing=allow-any")
    return set(git.run("rev-list", *words, *roots, seconds=_SECONDS).split())


def _remove(git: Git, objects: Path, names: set[bytes]) -> None:
    """Remove objects, loose ones and those in packs."""
    for name in names:
        text = name.decode()
        with suppress(OSError):
            (objects / text[:2] / text[2:]).unlink()
    graphs = objects / "info"  # what git notes of commits besides, and can do without
    for path in [graphs / "commit-graph", *(graphs / "commit-graphs").glob("*")]:
        path.unlink(missing_ok=True)
    for index in (objects / "pack").glob("*.idx"):
        if not index.with_suffix(".keep").exists():
            with suppress(OSError, GitFailed):
                _remove_from_pack(git, index, names)


def _remove_from_pack(git: Git, index: Path, names: set[bytes]) -> None:
    """Have a pack without some objects take the place of another, if that has any of them."""
    held = git.run("show-index", stdin=index.read_bytes()).splitlines()
    has = [line.split(b" ")[1] for line in held]
    kept = [name for name in has if name not in names]
    if len(kept) == len(has):
        return
    if kept:
        listed = b"".join(name + b"\n" for name in kept)
        words = ("--quiet", str(index.parent / "pack"))
        git.run("pack-objects", *words, stdin=listed, seconds=_SECONDS)
    with suppress(FileNotFoundError):  # an index of several packs, which git can do without
        (index.parent / "multi-pack-index").unlink()
    for suffix in _BESIDE:
        index.with_suffix(suffix).unlink(missing_ok=True)
