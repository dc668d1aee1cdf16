"""How things stand at this moment, asked of git on this machine: no network, no thread."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.errors import AiamlError, GitMissing
from aiaml_server.files import Lock
from aiaml_server.format.memory import NAMED
from aiaml_server.settings import Settings
from aiaml_server.sync.address import path_of
from aiaml_server.sync.place import check_base, directory_of
from aiaml_server.sync.status import KEPT_LOCAL, Problem, Status

if TYPE_CHECKING:
    from aiaml_server.sync.remote import Remote

__all__ = [
    "ONE_DISK",
    "Contents",
    "Survey",
    "ask_remote",
    "directory_of",
    "look",
    "on_one_disk",
    "survey",
    "useless",
    "version",
]

OLDEST_GIT = (2, 33)
ONE_DISK = (
    "it is on the same disk as the memories, and no protection: if that disk breaks, both are gone"
)


@dataclass
class Survey:
    """What git on this machine knows.

    Attributes:
        git: its version, such as "2.39.5"; empty where there is none.
        repository: whether the base directory has one.
        waiting: memories that are not committed yet; None where git cannot tell.
        forgotten: how many of these are gone.
        kept_out: files that will not be committed, each with why.
        kept_local: files that a person keeps on this machine, each with why.
        ahead: commits that the remote, as last seen, has not.
        behind: commits that it had and this machine has not.
        ahead_since: when the oldest of those ahead was made, in seconds since 1970.
        still_held: what has something that was forgotten everywhere.
        occupied: whether a process synchronises the directory right now.
        problem: why git could not answer, or cannot be used; None where it can.
    """

    git: str = ""
    repository: bool = False
    waiting: int | None = None
    forgotten: int = 0
    kept_out: dict[str, Problem] = field(default_factory=dict)
    kept_local: dict[str, Problem] = field(default_factory=dict)
    ahead: int = 0
    behind: int = 0
    ahead_since: int | None = None
    still_held: list[str] = field(default_factory=list)
    occupied: bool = False
    problem: Problem | None = None


def survey(settings: Settings) -> Survey:
    """Ask; nothing is changed."""
    found = Survey()
    try:
        check_base(settings.base)
        found.occupied = _occupied(settings.base / ".sync.lock")
        found.git = version(settings.base)
        found.problem = useless(found.git)
        if found.git:
            _ask(found, settings)
    except (AiamlError, OSError, ValueError) as error:
        found.problem = found.problem or Problem.of(error)
    return found


def ask_remote(settings: Settings, seconds: float, *, make: bool = False) -> dict[str, str]:
    """Return what `Remote.refs` does; nothing in the directory is touched, or fetched.

    With `make`, there is a repository then, if there was none.

    Raises:
        GitMissing: there is no git.
        AiamlError: the remote cannot be reached in these seconds.
    """
    with _asked(settings, seconds) as remote:
        if make:
            remote.make()
        return remote.refs()


@contextmanager
def _asked(settings: Settings, seconds: float) -> Iterator[Remote]:
    """Open the remote from a repository of its own, which is gone afterwards."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    from aiaml_server.sync.pace import Pace  # noqa: PLC0415
    from aiaml_server.sync.remote import Remote  # noqa: PLC0415
    from aiaml_server.sync.repository import Repository  # noqa: PLC0415

    with TemporaryDirectory(prefix="aiaml-ask-") as place:
        repository = Repository(Path(place))
        repository.prepare()
        pace = Pace(settings.sync_interval)
        pace.call = seconds
        remote = Remote(repository, settings.remote, lambda: None, pace)
        remote.prepare()
        yield remote


@dataclass
class Contents:
    """What a remote has where memories would be joined with it.

    Attributes:
        branch: the branch's name; empty where it has others only.
        memories: how many files have the name that ours have.
        others: the other files' paths.
        author: by whom the newest commit is.
        time: when that was made, in seconds since 1970.
    """

    branch: str = ""
    memories: int = 0
    others: list[str] = field(default_factory=list)
    author: str = ""
    time: int = 0


def look(settings: Settings, refs: Mapping[str, str], seconds: float) -> Contents:
    """Look what the branch holds that memories would be joined with.

    Raises:
        AiamlError: it cannot be looked into.
    """
    from aiaml_server.sync.forgetting.rewrite import FILE  # noqa: PLC0415
    from aiaml_server.sync.remote import joined_branch  # noqa: PLC0415

    branch = joined_branch(refs)
    if not branch:
        return Contents()
    with _asked(settings, seconds) as remote:
        paths, author, time = remote.look(branch, seconds)
    ours = {FILE, b".gitignore", b".gitattributes"}
    names = [os.fsdecode(each) for each in paths if each not in ours]
    others = [each for each in names if not _is_memory(each)]
    name = branch.removeprefix("refs/heads/")
    return Contents(name, len(names) - len(others), others, author, time)


def _is_memory(name: str) -> bool:
    directory, _, file = name.partition("/")
    return directory == "files" and bool(NAMED.fullmatch(file))


def on_one_disk(settings: Settings) -> bool:
    """Say whether the remote is on the disk of the memories, as far as the system tells."""
    with suppress(OSError):
        path = path_of(settings.remote, settings.base) if settings.remote else None
        return path is not None and path.stat().st_dev == settings.base.stat().st_dev
    return False


def useless(version: str) -> Problem | None:
    """Say why sync cannot use this version of git; None where it can."""
    if version and tuple(map(int, version.split("."))) >= OLDEST_GIT:
        return None
    from aiaml_server.sync.problem import NO_GIT, too_old  # noqa: PLC0415 (hardly ever needed)

    return too_old(version) if version else NO_GIT


def version(base: Path) -> str:
    """Return the version of git; empty where there is none."""
    from aiaml_server.sync.command import Git  # noqa: PLC0415

    somewhere = next(each for each in (base, *base.parents) if each.is_dir())
    try:
        said = Git(somewhere).run("version")
    except GitMissing:
        return ""
    match = re.search(r"(?<!\d)\d+(\.\d+)+", said.decode("utf-8", "replace"))
    return match[0] if match else "0"


def _ask(found: Survey, settings: Settings) -> None:
    from aiaml_server.sync.commit import pending  # noqa: PLC0415
    from aiaml_server.sync.forgetting.plan import still_held  # noqa: PLC0415
    from aiaml_server.sync.guard import Guard  # noqa: PLC0415
    from aiaml_server.sync.outgoing import Outgoing  # noqa: PLC0415
    from aiaml_server.sync.repository import REMOTE, Repository  # noqa: PLC0415

    repository = Repository(settings.base)
    found.repository = repository.find()
    if not found.repository:
        return
    found.still_held = still_held(repository)
    guard = Guard(repository, secrets=settings.check_secrets)
    would, missing = pending(repository, guard)
    found.waiting, found.forgotten = would.number, would.forgotten
    refused = {os.fsencode(p): why for p, why in Status.read(settings.base).held_back.items()}
    refused = {path: why for path, why in refused.items() if path in missing}
    kept_out = would.kept_out | refused
    head, theirs = settings.remote and repository.head(), repository.name_of(REMOTE)
    if head and head != theirs:
        kept_out = Outgoing(repository).staying(theirs, head, guard) | kept_out
    for path, why in kept_out.items():
        place = found.kept_local if why.kind == KEPT_LOCAL else found.kept_out
        place[path.decode("utf-8", "replace")] = why
    if head and head != theirs:
        found.ahead, found.behind = repository.ahead_behind()
        found.ahead_since = repository.ahead_since()


def _occupied(path: Path) -> bool:
    """Whether another process has the lock.

    Raises:
        OSError: it is no lock that any process could have.
    """
    if not os.path.lexists(path):
        return False
    with Lock(path).held(0) as hold:
        if hold.problem:
            raise hold.problem
        return not hold.acquired
