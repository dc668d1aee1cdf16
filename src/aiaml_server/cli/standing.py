"""`status`, `sync` and `where`: how things stand, and where they are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiaml_server import toolsets
from aiaml_server.errors import AiamlError
from aiaml_server.settings import Settings, without_password
from aiaml_server.sync import Occupied, Progress, Status, once

from .terminal import (
    DONE,
    NOTHING,
    REFUSED,
    USAGE,
    Ended,
    as_json,
    bold,
    dim,
    in_bytes,
    joined,
    note,
    out,
    out_json,
    plural,
    settings,
)

if TYPE_CHECKING:
    from aiaml_server.sync.survey import Survey

_LONG = 3600  # seconds that commits may wait for the remote before that is worth a word
_PATIENCE = 60.0  # seconds for another process that is at it
_OFF = (
    "Sync is off (AIAML_ENABLE_SYNC is false): memories are plain files, and git has no part in it"
)
_TURN_ON = "Set AIAML_ENABLE_SYNC to true, here and where your client starts the server"
_ADD_REMOTE = "AIAML_GITHUB_REMOTE can name a private git repository to exchange memories with"


# --- status -------------------------------------------------------------------------------------


@click.command("status")
@as_json
def status(json: bool) -> int:
    """Show how sync stands, and what to do where it fails.

    Nothing is sent: ahead and behind are counted against the remote as it was last seen. The exit
    code is 0 when all is well or sync is off, 1 when something waits for you, 3 when it fails.

    \b
    Examples:
      aiaml status
      aiaml status --json
    """
    standing = Standing.now(settings())
    if json:
        out_json(standing.fields())
    else:
        for line in standing.lines():
            out(line)
    return standing.code


@dataclass(frozen=True)
class Standing:
    """How sync stands: what it wrote when it last ran, and what git says now."""

    settings: Settings
    last: Status
    survey: Survey

    @classmethod
    def now(cls, setting: Settings) -> Standing:
        """Find out, without the network."""
        from aiaml_server.sync.survey import Survey, survey  # noqa: PLC0415

        found = survey(setting) if setting.sync else Survey()
        return cls(setting, Status.read(setting.base), found)

    @property
    def problem(self) -> str:
        """What fails, in a sentence; empty when nothing does."""
        if not self.settings.sync:
            return ""
        if not self.survey.git:
            return self.survey.complaint or "there is no git on this machine"
        if self.survey.git_is_too_old:
            return f"git {self.survey.git} is too old"
        return self.last.problem or self.survey.complaint

    @property
    def waits_long(self) -> bool:
        """Whether commits have been waiting for the remote for long."""
        since = self.survey.ahead_since
        return since is not None and datetime.now(timezone.utc).timestamp() - since > _LONG

    @property
    def code(self) -> int:
        """The exit code."""
        if self.problem:
            return REFUSED
        return NOTHING if self.survey.kept_out or self.waits_long else DONE

    def lines(self) -> Iterator[str]:
        """Tell it in plain words."""
        if not self.settings.sync:
            yield f"{_OFF}."
            yield f"{_TURN_ON}, to switch it on."
            return
        yield _where_to(self.settings)
        yield from self._times()
        if self.survey.occupied:
            yield "A process synchronises it at this moment."
        yield from self._waiting()
        for name, reason in sorted(self.survey.kept_out.items()):
            yield f"{bold('Kept out of git:')} {name}, because {reason}."
            yield f"  What to do: {remedy(reason)}"
        if self.problem:
            since = f" since {ago(self.last.failing_since)}" if self.last.problem else ""
            yield f"{bold('It fails')}{since}: {self.problem}."
            yield f"  What to do: {remedy(self.problem)}"
        elif self.code == DONE and not (self.survey.ahead or self._not_committed()):
            yield "All is well."

    def _times(self) -> Iterator[str]:
        times = {"committed": self.last.last_commit}
        if self.settings.remote:
            times |= {"fetched": self.last.last_fetch, "pushed": self.last.last_push}
        yield f"{joined([_ago(what, time) for what, time in times.items()]).capitalize()}."

    def _waiting(self) -> Iterator[str]:
        found = self.survey
        if number := self._not_committed():
            how = "a server does it while it runs, or `aiaml sync` now"
            yield f"{plural(number, 'memory')} not committed yet: {how}."
        if self.settings.remote and found.repository:
            yield _compared(found) if self.last.last_fetch else _unasked(found)
            if self.waits_long:
                since = datetime.fromtimestamp(found.ahead_since or 0, timezone.utc).isoformat()
                yield f"The oldest is of {ago(since)}: no server ran since, or the remote was away."
                yield "  What to do: `aiaml sync` tries it now."

    def _not_committed(self) -> int:
        if self.survey.repository:
            return self.survey.waiting or 0
        return len(list((self.settings.base / "files").glob("*.md")))

    def fields(self) -> dict[str, Any]:
        """Tell it to programs."""
        last, found = self.last, self.survey
        remote = self.settings.remote
        return {
            "sync": self.settings.sync,
            "remote": without_password(remote) if remote else None,
            "git": found.git or None,
            "repository": found.repository,
            "last_commit": last.last_commit,
            "last_fetch": last.last_fetch,
            "last_push": last.last_push,
            "not_committed": self._not_committed(),
            "ahead": found.ahead,
            "behind": found.behind,
            "ahead_at_last_sync": last.ahead,
            "behind_at_last_sync": last.behind,
            "under_way": found.occupied,
            "held_back": found.kept_out,
            "problem": self.problem or None,
            "failing_since": last.failing_since,
            "what_to_do": remedy(self.problem) if self.problem else None,
        }


def _where_to(setting: Settings) -> str:
    if setting.remote:
        return f"Sync is on, with {without_password(setting.remote)}."
    return f"Sync is on, on this computer only. {_ADD_REMOTE}."


def _compared(found: Survey) -> str:
    ahead = f"lacks {plural(found.ahead, 'commit')} of ours" if found.ahead else "has all of ours"
    behind = f", and {plural(found.behind, 'commit')} more" if found.behind else ""
    return f"The remote, as it was last seen, {ahead}{behind}."


def _unasked(found: Survey) -> str:
    waiting = f"; {plural(found.ahead, 'commit')} to push" if found.ahead else ""
    return f"The remote was not asked yet{waiting}."


def _ago(what: str, moment: str | None) -> str:
    return f"{what} {ago(moment)}" if moment else f"never {what}"


def ago(moment: str | None) -> str:
    """Return how long ago a moment was: "3 minutes ago"; "never" where there is none."""
    if not moment:
        return "never"
    seconds = (datetime.now(timezone.utc) - datetime.fromisoformat(moment)).total_seconds()
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{plural(int(seconds // length), unit)} ago"
    return "a moment ago"


# --- what to do ---------------------------------------------------------------------------------


def remedy(problem: str) -> str:
    """Say what to do about a problem of sync, as its status words it."""
    for pattern, words in _REMEDIES.items():
        if re.search(pattern, problem, re.IGNORECASE):
            return words
    return (
        "`aiaml sync` tries it now; AIAML_LOG_LEVEL=INFO has a server say more in its log. "
        "Memories are safe on this computer meanwhile."
    )


_REMEDIES = {
    "no git on this machine": (
        "install git (https://git-scm.com), version 2.33 or newer; or set AIAML_ENABLE_SYNC to "
        "false to do without."
    ),
    "is too old": "install git 2.33 or newer; or set AIAML_ENABLE_SYNC to false to do without.",
    "name cannot be resolved": (
        "check the network, and the host's name in AIAML_GITHUB_REMOTE. A server tries it again."
    ),
    "did not let us in": (
        "`git ls-remote` with the remote's address must answer without a question, as the user who "
        "runs the server: it takes an SSH key without a passphrase (or in an agent) and a known "
        "host, or a credential helper that has a valid token."
    ),
    "no git repository at": (
        "compare AIAML_GITHUB_REMOTE with the address that the host shows; make the repository "
        "(empty and private) if there is none; see that your key or token may read and write it."
    ),
    "did not answer in time": (
        "check the network or the VPN. It is tried again by itself, with more patience each time."
    ),
    "cannot be reached": (
        "check the network, the host and the port in AIAML_GITHUB_REMOTE, and any proxy. It is "
        "tried again by itself."
    ),
    r"certificate|SSL|TLS": (
        "the remote's certificate is not trusted: check the clock and the network, or tell git of "
        "your organisation's certificates (`git config --global http.sslCAInfo FILE`)."
    ),
    r"transport .* not allowed|unable to find remote helper|not a valid|malformed|bad port": (
        "AIAML_GITHUB_REMOTE must be a git URL (https, http, ssh, git, file), host:path or a path."
    ),
    r"disk is full|no space left|quota": (
        "make room on the disk that holds the memories (or on the remote's). Nothing is lost."
    ),
    r"read-only": "the disk is mounted read-only; mount it so that it can be written.",
    r"\.lock'|\.lock:|another git process": (
        "another git is at work in the memory directory: let it end. If none runs, delete the file "
        "that the message names."
    ),
    r"MERGE_HEAD|CHERRY_PICK_HEAD|REVERT_HEAD|rebase-|conflicts in files": (
        "go to the memory directory, where `git status` says what to finish or how to abort it "
        "(such as `git merge --abort`)."
    ),
    r"git push failed|rejected|protected branch|pre-receive": (
        "the remote refuses what is pushed: see that the key or token may write, that no rule or "
        "hook of the host protects `main`, and that there is room."
    ),
    r"permission denied|not permitted|access is denied": (
        "see that the memory directory and all in it belongs to you and can be written."
    ),
    r"seems to hold": (
        "take the secret out with `aiaml edit`, and the memory is committed; if it is none, "
        "AIAML_CHECK_SECRETS=false switches the check off."
    ),
    r"symbolic link|not a regular file": "put a regular file in its place, or move it elsewhere.",
    r"the directory .* is missing": (
        "put it back (is a disk not mounted?); or make it anew, empty, and all memories that git "
        "has come back. Nothing is done meanwhile, and nothing forgotten."
    ),
    r"larger than": "cut it into several memories, or move it elsewhere.",
    r"cannot be read": "see that the file belongs to you and can be read.",
    r"dubious ownership": "make the memory directory your own (`chown`).",
}


# --- sync ---------------------------------------------------------------------------------------


@click.command("sync")
def sync() -> None:
    """Commit what is new now, and exchange it with the remote.

    A running server does this by itself. The exit code is 3 when it fails.

    \b
    Examples:
      aiaml sync
      AIAML_GITHUB_REMOTE=git@github.com:you/memories.git aiaml sync
    """
    setting = settings()
    if not setting.sync:
        raise Ended(f"{_OFF[0].lower()}{_OFF[1:]}. {_TURN_ON}", USAGE)
    _quiet_log()
    told = _Told()
    try:
        after = once(setting, seconds=_PATIENCE, progress=told)
    except Occupied:
        raise
    except AiamlError as error:
        raise Ended(_failure(str(error)), REFUSED) from error
    finally:
        told.clear()
    for name, reason in sorted(after.held_back.items()):
        note(f"Kept out of git: {name}, because {reason}. What to do: {remedy(reason)}")
    if after.problem:
        done = f"{told.summary()}. " if told.something else ""
        raise Ended(done + _failure(after.problem), REFUSED)
    out(f"{told.summary()}." if told.something else _nothing_new(setting))
    if not setting.remote and setting.base.is_dir():
        note(dim(f"{_ADD_REMOTE}."))


def _failure(problem: str) -> str:
    return f"It fails: {problem}.\nWhat to do: {remedy(problem)}"


class _Told(Progress):
    """Shows the phase on a terminal, in one line that is gone in the end."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""

    @property
    def something(self) -> bool:
        return bool(self.committed or self.arrived or self.pushed)

    def begin(self, doing: str) -> None:
        if doing == self._shown:
            return
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[K{dim(f'{doing} …')}", nl=False, err=True)
        elif doing.startswith("waiting"):
            note(f"{doing} …")
        self._shown = doing

    def clear(self) -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)

    def summary(self) -> str:
        counts = {"committed": self.committed, "arrived": self.arrived, "pushed": self.pushed}
        parts = [(number, what) for what, number in counts.items() if number]
        first, *rest = parts
        words = [f"{plural(first[0], 'memory')} {first[1]}"]
        return joined([*words, *(f"{number:,} {what}" for number, what in rest)])


def _nothing_new(setting: Settings) -> str:
    if not setting.remote and not setting.base.is_dir():
        return "There are no memories yet."
    return "Nothing new, here or at the remote." if setting.remote else "Nothing new."


def _quiet_log() -> None:
    """What a round would put into a server's log is told by the verb in its own words."""
    import logging  # noqa: PLC0415

    logging.getLogger("aiaml_server.sync.rounds").setLevel(logging.ERROR)


# --- where --------------------------------------------------------------------------------------


@click.command("where")
@as_json
def where(json: bool) -> None:
    """Show every place and every setting in use.

    \b
    Examples:
      aiaml where
      aiaml where --json
    """
    setting = settings()
    places = list(_places(setting))
    if json:
        out_json({"paths": [each.fields() for each in places], "settings": _sources(setting)})
        return
    for place in places:
        out(f"{bold(str(place.path))}")
        out(f"    {place.what}{place.size_in_words}")
    out()
    out("Settings (environment variables):")
    for each in _sources(setting):
        out(f"    {each['variable']:20}  {each['value']}  {dim('(' + each['source'] + ')')}")
    out()
    out("The log goes to standard error, and nowhere else; there is no configuration file.")


@dataclass(frozen=True)
class _Place:
    path: Path
    what: str
    count: int | None = None
    size: int | None = None

    @property
    def size_in_words(self) -> str:
        if self.size is None:
            return "; not there yet"
        count = f"{plural(self.count, 'memory')}, " if self.count is not None else ""
        return f": {count}{in_bytes(self.size)}"

    def fields(self) -> dict[str, Any]:
        there = self.size is not None
        counts = {} if self.count is None else {"memories": self.count}
        return {
            "path": str(self.path),
            "what": self.what,
            "there": there,
            "bytes": self.size,
            **counts,
        }


def _places(setting: Settings) -> Iterator[_Place]:
    base = setting.base
    address = f", exchanged with {without_password(setting.remote)}" if setting.remote else ""
    yield _Place(base, "everything", size=_size(base))
    files = base / "files"
    names = [each for each in files.glob("*.md") if not each.name.startswith(".")]
    yield _Place(files, "the memories", len(names), _size(files))
    for name, what in {
        ".git": f"their history in git{address}",
        ".gitignore": "what git leaves alone",
        ".gitattributes": "that git keeps memories byte for byte",
        ".index": "what makes search fast; made of the memories, and safe to delete",
        ".sync-status.json": "how sync went last; `aiaml status` tells it",
        ".lock": "one writer at a time",
        ".sync.lock": "one sync at a time",
    }.items():
        yield _Place(base / name, what, size=_size(base / name))


def _size(path: Path) -> int | None:
    """Return how many bytes lie there; None where nothing does."""
    try:
        if not path.is_dir():
            return path.lstat().st_size
    except OSError:
        return None
    total = 0
    for directory, _, names in os.walk(path):
        for name in names:
            total += _size(Path(directory) / name) or 0
    return total


def _sources(setting: Settings) -> list[dict[str, str]]:
    values = {
        each.name: (without_password(value) or "none") if each.secret else value
        for each, value in setting.by_variable()
    }
    values[toolsets.VARIABLE.name] = ", ".join(toolsets.VARIABLE.value(os.environ))
    return [
        {"variable": name, "value": _shown(value), "source": _source(name, value)}
        for name, value in values.items()
    ]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _source(name: str, value: object) -> str:
    if os.environ.get(name):
        return "from the environment"
    if name == "AIAML_GITHUB_REMOTE" and value != "none":
        return "as last used here"
    return "the default"
