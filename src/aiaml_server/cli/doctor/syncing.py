"""git and the remote: there, new enough, in order, within reach."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.cli.terminal import joined, plural
from aiaml_server.settings import Settings
from aiaml_server.sync.status import Status

from .finding import Finding
from .scene import Scene

if TYPE_CHECKING:
    from aiaml_server.sync.repository import Repository

_OLDEST = (2, 33)
_REMOTE_SECONDS = 10.0
_STALE_SECONDS = 600.0  # longer than any git of ours runs on this computer
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


def git(scene: Scene) -> Iterator[Finding]:
    """Look for git, if it is wanted."""
    settings = scene.settings
    if settings and not settings.sync:
        found = "not used: sync is off (AIAML_ENABLE_SYNC); memories are in files only"
        yield Finding("git", "ok", found)
        return
    from aiaml_server.sync.command import Command, GitMissing  # noqa: PLC0415 (imports GitPython)

    try:
        said = Command(Path(tempfile.gettempdir())).version().decode().strip()
    except GitMissing:
        remedy = "install git (https://git-scm.com/downloads), or set AIAML_ENABLE_SYNC=false"
        found = "there is no git: memories are stored and found, but have no history and no copy"
        yield Finding("git", "warning", found, remedy)
        return
    version = tuple(map(int, re.findall(r"\d+", said)[:2]))
    if version < _OLDEST:
        remedy = "install git 2.33 or newer (https://git-scm.com/downloads)"
        yield Finding("git", "error", f"{said} is too old", remedy)
    else:
        yield Finding("git", "ok", said)


def status(scene: Scene) -> Iterator[Finding]:
    """Say what the last sync said, and what is in its way."""
    settings, base = scene.settings, scene.base
    if not settings or not base or not settings.sync:
        return
    last = Status.read(base)
    if last.problem:
        found = f"failing since {last.failing_since}: {last.problem}"
        yield Finding("sync", "error", found, remedy(last.problem))
    for path, reason in last.held_back.items():
        found = f"{path} is kept out of git: {reason}"
        todo = "take the secret out; or, if it is none, set AIAML_CHECK_SECRETS=false"
        yield Finding("sync", "warning", found, todo if "seems to hold" in reason else _MAKE_FILE)
    if (base / ".git").exists():
        yield from _repository(base, last)
    elif not last.problem:
        found = "no git repository yet; the next server, or `aiaml sync`, makes one"
        yield Finding("sync", "ok", found)


_MAKE_FILE = "make it a plain file of at most 4 MiB"


def _repository(base: Path, last: Status) -> Iterator[Finding]:
    from aiaml_server.sync.command import Command, GitFailed, GitMissing  # noqa: PLC0415

    command = Command(base)
    try:
        directory = base / command.rev_parse("--git-dir").decode().rstrip("\n")
        said = command.status("--porcelain", "-z", "--untracked-files=all", "--", "files")
    except GitMissing:
        return
    except GitFailed as error:
        todo = "memories are safe in files/; the next sync tries to mend it: see `aiaml status`"
        yield Finding("sync", "error", f"git cannot read its repository: {error.output}", todo)
        return
    in_the_way = list(_obstacles(directory))
    yield from in_the_way
    known = {path.encode() for path in last.held_back}
    paths = {record[3:] for record in said.split(b"\0")} - known
    new = len([path for path in paths if path.endswith(b".md")])
    if new:
        found = f"{plural(new, 'memory')} not committed yet"
        yield Finding("sync", "warning", found, "a running server does so within a minute, and "
                      "`aiaml sync` at once")  # fmt: skip
    elif not (last.problem or in_the_way or last.held_back):
        yield Finding("sync", "ok", f"all memories are committed{_told(last)}")


def _told(last: Status) -> str:
    times = {"last commit": last.last_commit, "last fetch": last.last_fetch}
    times["last push"] = last.last_push
    return "".join(f", {name} {value}" for name, value in times.items() if value)


def _obstacles(directory: Path) -> Iterator[Finding]:
    unfinished = [name for name in _UNFINISHED if (directory / name).exists()]
    if unfinished:
        found = f"git is in the middle of something ({joined(unfinished)} in {directory})"
        todo = f"finish or abort it: `git -C {directory.parent} status` says how; sync waits for it"
        yield Finding("sync", "error", found, todo)
    for path in sorted(directory.glob("*.lock")):
        if time.time() - path.lstat().st_mtime > _STALE_SECONDS:
            found = f"{path} was left by a git that died"
            todo = f"the next sync removes it, if no git is running; else `rm {path}`"
            yield Finding("sync", "warning", found, todo)


def remote(scene: Scene) -> Iterator[Finding]:
    """Ask the remote what it has, with no prompt and a time limit; fetch nothing."""
    settings = scene.settings
    if "AIAML_GITHUB_REMOTE" in scene.wrong or not settings or not settings.sync:
        return
    if not settings.remote:
        yield Finding("remote", "ok", "none set: memories stay on this computer")
        return
    yield from _exposed(settings.remote)
    if scene.offline:
        yield Finding("remote", "ok", "not asked (--offline)")
        return
    from aiaml_server.sync.command import GitFailed, GitMissing  # noqa: PLC0415
    from aiaml_server.sync.rounds import in_words  # noqa: PLC0415

    start = time.perf_counter()
    try:
        refs = _asked(settings)
    except GitMissing:
        return
    except GitFailed as error:
        problem = in_words(error)
        yield Finding("remote", "error", problem, remedy(problem))
        return
    found = f"answered in {time.perf_counter() - start:.1f} s"
    yield Finding("remote", "ok", f"{found}, {'has memories' if refs else 'is empty'}")


def _asked(settings: Settings) -> dict[str, str]:
    """Ask from a throw-away repository, so that nothing in the real one is touched."""
    from aiaml_server.sync.remote import Remote  # noqa: PLC0415
    from aiaml_server.sync.repository import Repository  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="aiaml-doctor-") as place:
        repository: Repository = Repository(Path(place))
        repository.prepare()
        asked = Remote(repository, settings.remote, lambda: None)
        asked.seconds = _REMOTE_SECONDS
        asked.prepare()
        return asked.refs()


def _exposed(address: str) -> Iterator[Finding]:
    if re.match(r"\w+://[^/@]*:[^/@]+@", address):
        found = "AIAML_GITHUB_REMOTE holds a password, which others on this computer can see"
        todo = "use an SSH key or a credential helper instead (docs/sync.md)"
        yield Finding("remote", "warning", found, todo)
    if re.match(r"(http|git)://", address):
        found = "memories travel to AIAML_GITHUB_REMOTE unencrypted"
        yield Finding("remote", "warning", found, "use an https:// or ssh address")


def remedy(problem: str) -> str:
    """Return what to do about a failure of sync."""
    for pattern, words in _REMEDIES.items():
        if re.search(pattern, problem):
            return words
    return "memories are safe here and sync goes on trying; docs/sync.md says what it needs"


_REMEDIES = {
    "cannot be resolved|cannot be reached|in time": (
        "check the network and the address; memories are safe here and sync goes on trying"
    ),
    "let us in|may not see it": (
        "`git ls-remote` with the address must answer without a question: see docs/sync.md"
    ),
    "disk is full": "free some space",
}
