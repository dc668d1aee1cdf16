"""Checks of git and the remote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aiaml_server.doctor.context import Context, warning
from aiaml_server.errors import AiamlError
from aiaml_server.sync.cycle import current_status
from aiaml_server.sync.remote import remote_in_use, try_remote
from aiaml_server.sync.status import problem_of
from aiaml_server.terminal import plural
from aiaml_server.toolset import Finding, Level

_GIT = ("no-git", "old-git")  # kinds of problems without which everything but sync works
_COPY = "`aiaml export --to FILE` writes a copy; `aiaml sync --setup` keeps one"


def status(context: Context) -> Iterator[Finding]:
    """Report the result of the last sync, and open decisions."""
    settings = context.settings
    if settings and not settings.sync:
        yield Finding("sync", "ok", "off (AIAML_ENABLE_SYNC)")
    if not settings or not context.base or not settings.sync:
        return
    found = current_status(settings)
    if found.problem:
        level: Level = "warning" if found.problem.kind in _GIT else "error"
        since = f"failing since {found.failing_since}: " if found.failing_since else ""
        yield Finding("sync", level, since + found.problem.sentence, found.problem.remedy)
    for name, why in found.needs_attention.items():
        yield warning("sync", f"files/{name} is not committed: {why.sentence}", why.remedy)
    for name, copy in found.conflicts:
        sentence = f"two computers edited one memory; both versions are kept, as {name} and {copy}"
        yield warning("sync", sentence, "edit or forget one of them")
    if found.deletions_waiting:
        sentence = f"{plural(found.deletions_waiting, 'deletion')} waiting for confirmation"
        yield warning("sync", sentence, "run `aiaml sync` with --forget or --bring-back")
    if found.placeholders:
        sentence = f"{plural(len(found.placeholders), 'memory')} replaced by cloud placeholders"
        yield warning("sync", sentence, "have the cloud program keep files locally")
    if found.uncommitted:
        sentence = f"{plural(found.uncommitted, 'change')} not committed"
        remedy = "a running server commits what it can; so does `aiaml sync`"
        yield warning("sync", sentence, remedy)
    elif not found.problem:
        yield Finding("sync", "ok", "all memories are committed")


def remote(context: Context) -> Iterator[Finding]:
    """Ask the remote for its branches, without a prompt and with a time limit."""
    settings = context.settings
    if "AIAML_GITHUB_REMOTE" in context.wrong or not settings or not settings.sync:
        return
    if not remote_in_use(settings):
        yield Finding("remote", "ok", "none set: memories are on this computer only", _COPY)
        return
    if re.match(r"\w+://[^/@:]*:[^/@]+@", settings.remote):
        sentence = "AIAML_GITHUB_REMOTE, so your client's configuration, holds a password"
        yield warning("remote", sentence, "use an SSH key or a credential helper")
    if context.offline:
        yield Finding("remote", "ok", "not contacted (--offline)")
        return
    try:
        is_empty = not try_remote(settings)
    except AiamlError as error:
        problem = problem_of(error)
        if problem.kind not in _GIT:
            yield Finding("remote", "error", problem.sentence, problem.remedy)
        return
    unsent = current_status(settings).unsent
    remedy = "a running server sends them; so does `aiaml sync`"
    if unsent:
        yield warning("remote", f"it lacks {plural(unsent, 'memory')}", remedy)
    elif is_empty:
        yield warning("remote", "it answers, but has no memories", remedy)
    else:
        yield Finding("remote", "ok", "it answers, and had every committed memory at the last sync")
