"""`status` and `sync`: how things stand."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from aiaml_server.cli.context import settings
from aiaml_server.errors import AiamlError, InvalidSetting, LockTimeout
from aiaml_server.settings import Settings, hide_password
from aiaml_server.storage.chosen import chosen_remote
from aiaml_server.sync import Problem, Progress, Status, once, with_remote_in_use
from aiaml_server.sync.survey import ONE_DISK, on_one_disk
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    dim,
    echo,
    echo_json,
    join_words,
    json_option,
    notify,
    plural,
    show_status,
    wrap,
    yes_option,
)
from aiaml_server.timestamps import format_elapsed, now, parse_timestamp

if TYPE_CHECKING:
    from aiaml_server.sync.survey import Survey

_LONG = 3600  # seconds that commits may wait for the remote before that is worth a word
_NOTICED = 7 * 86400  # seconds for which a notice stands in the status
_NAMED = 5  # memories that stay here, in the status
_PATIENCE = 60.0  # seconds for another process that synchronises
_OFF = (
    "Sync is off (AIAML_ENABLE_SYNC is false): memories are plain files, and git has no part in it"
)
_TURN_ON = "Set AIAML_ENABLE_SYNC to true, here and where your client starts the server"
_SET_REMOTE = "To change it, set AIAML_GITHUB_REMOTE where your client starts the server"
_CHOOSE_REMOTE = "`aiaml sync --setup ADDRESS` changes it"
_ADD_REMOTE = "`aiaml sync --setup` exchanges memories with a private git repository"
_ONE_COPY = (
    "Kept on this computer only: if its disk breaks, they are gone. `aiaml export --to FILE` makes "
    "a copy now; `aiaml sync --setup` has one in a private repository from now on, and brings "
    "memories to your other computers (docs/safe.md)."
)
_ANOTHER = "`aiaml sync --setup` names another disk, or a repository elsewhere (docs/safe.md)"
_HOSTED = "Whoever hosts that can read them"


# --- status -------------------------------------------------------------------------------------


@click.command("status")
@json_option
def status(json: bool) -> int:
    """Show how sync stands, and what to do where it fails.

    Nothing is sent: ahead and behind are counted against the remote as it was last seen. The exit
    code is 0 when all is well or sync is off, 1 when something waits for you or fails.

    \b
    Examples:
      aiaml status
      aiaml status --json
    """
    standing = Standing.now(settings())
    if json:
        echo_json(standing.fields())
    else:
        for line in standing.lines():
            echo(wrap(line))
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
    def problem(self) -> Problem | None:
        """What fails; None when nothing does."""
        if not self.settings.sync:
            return None
        unusable = self.survey.problem and self.survey.problem.kind in ("no-git", "old-git")
        return self.survey.problem if unusable else self.last.trouble or self.survey.problem

    @property
    def waits_long(self) -> bool:
        """Whether commits have been waiting for the remote for long."""
        since = self.survey.ahead_since
        return since is not None and now().timestamp() - since > _LONG

    @property
    def code(self) -> int:
        """The exit code."""
        if self.problem:
            return EXIT_FAILED
        waits = self.survey.kept_out or self.survey.still_held or self.waits_long
        return EXIT_NOTHING if waits else EXIT_OK

    def lines(self) -> Iterator[str]:
        """Tell it in plain words."""
        if self.settings.base.is_dir():
            yield self._place()
        if not self.settings.sync:
            yield f"{_OFF}."
            yield f"{_TURN_ON}, to switch it on."
            yield _ONE_COPY
            return
        yield from self._how()
        if self.survey.occupied:
            yield "A process synchronises it at this moment."
        yield from self._waiting()
        for name, why in sorted(self.survey.kept_out.items()):
            yield f"{bold('Kept here:')} {name}, because {why.sentence}."
            yield f"  What to do: {why.remedy}"
        if kept := self.survey.kept_local:
            names = [*sorted(kept)[:_NAMED], *(["others"] if len(kept) > _NAMED else [])]
            yield f"{plural(len(kept), 'memory')} kept on this computer: {join_words(names)}."
        if self.problem:
            since = f" since {_since(self.last.failing_since)}" if self.last.problem else ""
            yield f"{bold('It fails')}{since}: {self.problem.sentence}."
            yield f"  What to do: {self.problem.remedy}"
        if held := self.survey.still_held:
            yield f"What was forgotten everywhere is still in git here. {still(held)}"
        noticed = parse_timestamp(self.last.noticed_at) if self.last.noticed_at else None
        if self.last.notice and noticed and now().timestamp() - noticed / 1e6 < _NOTICED:
            yield f"{bold('Of note')}, {format_elapsed(noticed)}: {self.last.notice}."
        yield from self._copy()

    def _how(self) -> Iterator[str]:
        """Say with what it is exchanged, and when it last was."""
        remote = self.settings.remote
        if remote:
            yield f"Sync is on, with {hide_password(remote)}. {_HOSTED}."
        else:
            yield "Every version of each is kept, on this computer."
        usual = with_remote_in_use(self.settings, {}).remote
        if remote and usual not in ("", remote):
            how = _CHOOSE_REMOTE if chosen_remote(self.settings.base) else _SET_REMOTE
            usual = hide_password(usual)
            yield f"Servers here use another, {usual}, of which the following is. {how}."
        times = {"saved": self.last.last_commit}
        if remote:
            times["received"] = self.last.last_fetch
        if remote and (self.last.last_push or self.survey.ahead or not self.last.last_fetch):
            times["sent"] = self.last.last_push  # else there was nothing to send yet
        told = [
            f"{what} {_since(at)}" if at else f"nothing {what} yet" for what, at in times.items()
        ]
        yield f"{join_words(told).capitalize()}."

    def _copy(self) -> Iterator[str]:
        """Say whether there is a copy elsewhere, and how old it is."""
        if not self.settings.remote:
            yield _ONE_COPY
        elif self.code == EXIT_OK and not (self.survey.ahead or self._not_committed()):
            at = _since(self.last.last_push or self.last.last_fetch)
            if on_one_disk(self.settings):
                yield f"The remote has all, as of {at}, but {ONE_DISK}. {_ANOTHER}."
            else:
                yield f"All is well: there is a copy, of {at}."

    def _place(self) -> str:
        """Say where the memories are, and who on this computer can read them."""
        base = self.settings.base
        inside = [each for each in (base, base / "files") if each.is_dir()]
        is_open = sys.platform != "win32" and all(each.stat().st_mode & 0o077 for each in inside)
        if is_open:
            return (
                f"Memories are in {base}, which other users of this computer can look into: "
                "`aiaml doctor --fix` closes it."
            )
        return f"Memories are in {base}; no other user of this computer can read them."

    def _waiting(self) -> Iterator[str]:
        found = self.survey
        if number := self._not_committed():
            how = "a server sees to it while it runs, or `aiaml sync` now"
            gone = f" ({self.survey.forgotten:,} forgotten)" if self.survey.forgotten else ""
            yield f"{plural(number, 'memory')} not in the history yet{gone}: {how}."
        if self.settings.remote and found.repository:
            yield _compared(found, asked=bool(self.last.last_fetch))
            if self.waits_long:
                since = (found.ahead_since or 0) * 1_000_000
                elapsed = format_elapsed(since)
                yield f"The oldest is of {elapsed}: no server ran since, or the copy was away."
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
            "directory": str(self.settings.base),
            "sync": self.settings.sync,
            "remote": hide_password(remote) if remote else None,
            "on_one_disk": on_one_disk(self.settings),
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
            "held_back": {name: why._asdict() for name, why in found.kept_out.items()},
            "kept_local": sorted(found.kept_local),
            "still_held_by": found.still_held,
            "problem": self.problem.sentence if self.problem else None,
            "problem_kind": self.problem.kind if self.problem else None,
            "failing_since": last.failing_since,
            "notice": last.notice,
            "noticed_at": last.noticed_at,
            "what_to_do": self.problem.remedy if self.problem else None,
        }


def still(holders: Sequence[str]) -> str:
    """Say what to do about what of the person's own has what was forgotten everywhere."""
    return (
        f"Yours, and left as it is, though it has them too: {join_words([*holders])}. Delete it, "
        "or "
        "take them out of it; docs/sync.md tells more."
    )


def _compared(found: Survey, *, asked: bool) -> str:
    if not asked:
        waiting = f"; {plural(found.ahead, 'change')} to send" if found.ahead else ""
        return f"The copy was not looked at yet{waiting}."
    ahead = f"lacks {plural(found.ahead, 'change')} of ours" if found.ahead else "has all of ours"
    behind = f", and {plural(found.behind, 'change')} more" if found.behind else ""
    return f"The copy, as it was last seen, {ahead}{behind}."


def _since(time: str | None) -> str:
    return format_elapsed(parse_timestamp(time) if time else None)


# --- sync ---------------------------------------------------------------------------------------


@click.command("sync")
@click.option("--forget", is_flag=True, help="Forget what was deleted, however much it is.")
@click.option("--bring-back", is_flag=True, help="Bring back what was deleted.")
@click.option(
    "--setup",
    "address",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value="",
    help="Choose a private repository for the memories: try it, remember it, exchange.",
)
@yes_option
@click.option("--release", "ids", metavar="ID", multiple=True, help="Let it travel as it is.")
@json_option
def sync(
    forget: bool,
    bring_back: bool,
    address: str | None,
    yes: bool,
    ids: tuple[str, ...],
    json: bool,
) -> int:
    """Save what is new now, and exchange it with your other computers.

    A running server does this by itself. The exit code, and --json, are those of `status`. Where
    more than 20 and a fifth of all memories were deleted at once, other than by `aiaml forget`, one
    of the two options says what is meant; until then nothing of it is saved. A memory that is
    kept here for a secret that is none, `--release` lets into it, in all its later versions
    too.

    \b
    Examples:
      aiaml sync
      aiaml sync --setup git@github.com:you/memories.git
      aiaml sync --setup /media/stick/memories.git
      aiaml sync --setup you@nas:memories.git
      aiaml sync --bring-back
      aiaml sync --release 1b2c3d4e
      AIAML_GITHUB_REMOTE=git@github.com:you/memories.git aiaml sync
    """
    setting = settings()
    if forget and bring_back:
        raise Exit("--forget and --bring-back exclude each other", EXIT_USAGE)
    if not setting.sync:
        raise Exit(f"{_OFF[0].lower()}{_OFF[1:]}. {_TURN_ON}", EXIT_USAGE)
    setting = _prepared(setting, address, ids, yes=yes)
    missing: Literal["", "forget", "bring back"] = (
        "forget" if forget else "bring back" if bring_back else ""
    )
    # What a round puts into a server's log is told by the verb in its own words.
    logging.getLogger("aiaml_server.sync.rounds").setLevel(logging.ERROR)
    told, before = Told(), Status.read(setting.base)
    try:
        after = once(setting, missing=missing, seconds=_PATIENCE, progress=told)
    except (InvalidSetting, LockTimeout):
        raise
    except AiamlError as error:
        raise Exit(_failure(Problem.of(error)), EXIT_FAILED) from error
    finally:
        show_status()
    for name, why in sorted(after.kept_out.items()):
        notify(f"Kept here: {name}, because {why.sentence}. What to do: {why.remedy}")
    standing = Standing.now(setting)
    _tell_notice(before, after, standing.survey)
    if json:
        echo_json(standing.fields())
    if after.trouble:
        done = f"{told.summary()}. " if told.something else ""
        raise Exit(done + _failure(after.trouble), EXIT_FAILED)
    if not json:
        _tell_done(told, setting)
    return standing.code


def _prepared(setting: Settings, address: str | None, ids: Sequence[str], *, yes: bool) -> Settings:
    """Do what is wanted before a round; return the settings that it takes."""
    if address is not None:
        from aiaml_server.cli.setup import set_up  # noqa: PLC0415 (once in a life)

        setting = set_up(setting, address, yes=yes)
    if ids:
        from aiaml_server.cli.release import release  # noqa: PLC0415 (hardly ever needed)

        release(setting, ids)
    return setting


def _failure(problem: Problem) -> str:
    return f"It fails: {problem.sentence}.\nWhat to do: {problem.remedy}"


def _tell_done(told: Told, setting: Settings) -> None:
    what = "Nothing new, here or there." if setting.remote else "Nothing new."
    if not setting.remote and not setting.base.is_dir():
        what = "There are no memories yet."
    echo(wrap(f"{told.summary()}.") if told.something else what)
    if not setting.remote and setting.base.is_dir():
        notify(dim(f"{_ADD_REMOTE}."))


def _tell_notice(before: Status, after: Status, now: Survey) -> None:
    if after.notice and after.noticed_at != before.noticed_at:
        notify(f"Of note: {after.notice}.")
        if now.still_held:
            notify(still(now.still_held))


class Told(Progress):
    """Shows the phase on a terminal, in one line that is gone in the end."""

    def __init__(self) -> None:
        super().__init__()
        self._shown = ""

    @property
    def something(self) -> bool:
        """Whether anything was done."""
        return bool(self.committed or self.brought_back or self.arrived or self.pushed)

    def begin(self, doing: str) -> None:
        """Show what is done now."""
        if doing == self._shown:
            return
        show_status(f"{doing} …")
        if doing.startswith("waiting") and not sys.stderr.isatty():
            notify(f"{doing} …")
        self._shown = doing

    def summary(self) -> str:
        """Return what was done, in words."""
        counts = {
            "saved": self.committed - self.forgotten,
            "forgotten": self.forgotten,
            "brought back": self.brought_back,
            "arrived": self.arrived - self.forgotten_elsewhere,
            "forgotten elsewhere": self.forgotten_elsewhere,
            "sent": self.pushed,
        }
        parts = [(number, what) for what, number in counts.items() if number]
        first, *rest = parts
        words = [f"{plural(first[0], 'memory')} {first[1]}"]
        return join_words([*words, *(f"{number:,} {what}" for number, what in rest)])
