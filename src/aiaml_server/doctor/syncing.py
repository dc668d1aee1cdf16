"""git and the remote: there, new enough, in order, within reach."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from aiaml_server.doctor.context import Context
from aiaml_server.errors import AiamlError, GitMissing
from aiaml_server.settings import Settings
from aiaml_server.sync import Problem, Status, with_remote_in_use
from aiaml_server.sync.survey import (
    ONE_DISK,
    Survey,
    ask_remote,
    directory_of,
    on_one_disk,
    survey,
    useless,
    version,
)
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding

_REMOTE_SECONDS = 10.0
_ELSEWHERE = "`aiaml export --to FILE` writes a copy; docs/safe.md tells how to have one always"
_STALE_SECONDS = 600.0  # longer than any git of ours runs on this computer


def git(context: Context) -> Iterator[Finding]:
    """Look for git, if it is wanted."""
    settings = context.settings
    if settings and not settings.sync:
        found = "not used: sync is off (AIAML_ENABLE_SYNC); memories are in files only"
        yield Finding("git", "ok", found)
        return
    found = version(settings.base if settings else Path(tempfile.gettempdir()))
    if not (problem := useless(found)):
        yield Finding("git", "ok", f"version {found}")
        return
    told = problem.sentence + ("" if found else ": memories have no history and no copy")
    yield Finding("git", "error" if found else "warning", told, problem.remedy)


def status(context: Context) -> Iterator[Finding]:
    """Say what the last sync said, what git says now, and what is in the way."""
    settings, base = context.settings, context.base
    if not settings or not base or not settings.sync:
        return
    last, now = Status.read(base), survey(settings)
    if not now.git:
        return
    found = list(_troubles(base, last, now, context.told))
    yield from found
    if now.waiting:
        todo = "a running server does so within a minute, and `aiaml sync` at once"
        told = f"{plural(now.waiting, 'memory')} not committed yet"
        yield Finding("sync", "warning", told, todo)
    elif not now.repository:
        told = "no git repository yet; the next server, or `aiaml sync`, makes one"
        yield Finding("sync", "ok", told)
    elif not found:
        times = {"commit": last.last_commit, "fetch": last.last_fetch, "push": last.last_push}
        told = "".join(f", last {name} {value}" for name, value in times.items() if value)
        yield Finding("sync", "ok", f"all memories are committed{told}")


def _troubles(base: Path, last: Status, now: Survey, told_already: set[str]) -> Iterator[Finding]:
    if last.trouble:
        told_already.add(last.trouble.sentence)
        told = f"failing since {last.failing_since}: {last.trouble.sentence}"
        yield Finding("sync", "error", told, last.trouble.remedy)
    told = now.problem.sentence if now.problem else ""
    if now.problem and now.problem.kind != "old-git" and told not in told_already:  # told by `git`
        if now.problem.kind != "waiting":
            told = f"git cannot read its repository: {told}"
        yield Finding("sync", "error", told, now.problem.remedy)
    for path, why in now.kept_out.items():
        told = f"{path} is kept out of git: {why.sentence}"
        yield Finding("sync", "warning", told, why.remedy)
    for lock in sorted(directory_of(base).glob("*.lock")):
        if time.time() - lock.lstat().st_mtime > _STALE_SECONDS:
            told = f"{lock} was left by a git that died"
            todo = f"the next sync removes it, if no git is running; else `rm {lock}`"
            yield Finding("sync", "warning", told, todo)


def remote(context: Context) -> Iterator[Finding]:
    """Ask the remote what it has, with no prompt and a time limit; fetch nothing."""
    settings = context.settings
    if "AIAML_GITHUB_REMOTE" in context.wrong or not settings or not settings.sync:
        return
    if not settings.remote:
        found = "none set: memories are on this computer only, and gone if its disk breaks"
        yield Finding("remote", "ok", found, _ELSEWHERE)
        return
    if re.match(r"\w+://[^/@:]*:[^/@]+@", settings.remote):
        is_set = context.environ.get("AIAML_GITHUB_REMOTE")
        where = "AIAML_GITHUB_REMOTE, so your client's configuration," if is_set else "its address"
        found = f"{where} holds a password"
        todo = "use an SSH key or a credential helper instead (docs/sync.md)"
        yield Finding("remote", "warning", found, todo)
    if re.match(r"(http|git)://", settings.remote):
        found = "memories travel to it unencrypted"
        yield Finding("remote", "warning", found, "use an https:// or ssh address")
    if context.offline:
        yield Finding("remote", "ok", "not asked (--offline)")
        return
    start = time.perf_counter()
    try:
        refs = ask_remote(settings, _REMOTE_SECONDS)
    except GitMissing:
        return
    except AiamlError as error:
        problem = Problem.of(error)
        if problem.sentence not in context.told:
            yield Finding("remote", "error", problem.sentence, problem.remedy)
        return
    yield _copy(settings, f"answered in {time.perf_counter() - start:.1f} s", refs, context.told)


def _copy(
    settings: Settings, found: str, refs: Mapping[str, str], told_already: set[str]
) -> Finding:
    """Say whether a remote that answers has what is here."""
    last, now = Status.read(settings.base), survey(settings)
    in_use = with_remote_in_use(settings, {}).remote in ("", settings.remote)
    lacks = now.repository and (not refs or (in_use and now.ahead))
    if in_use and last.trouble and lacks:
        since = f" of what is newer than {last.last_push}" if last.last_push else ""
        why = last.trouble.sentence
        why = ", for the reason that sync has" if why in told_already else f": {why}"
        told = f"{found}, but there is no copy{since}{why}"
        return Finding("remote", "error", told, last.trouble.remedy)
    if lacks:
        told = f"lacks {plural(now.ahead, 'commit')} of ours: of these" if refs else "is empty:"
        todo = "a running server pushes within a minute, and `aiaml sync` at once"
        return Finding("remote", "warning", f"{found}, but {told} there is no copy", todo)
    if refs and on_one_disk(settings):
        return Finding("remote", "ok", f"{found}, but {ONE_DISK}", _ELSEWHERE)
    return Finding("remote", "ok", f"{found}, {'has memories' if refs else 'is empty'}")
