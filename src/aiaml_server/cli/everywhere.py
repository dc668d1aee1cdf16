"""`forget --everywhere`: out of git's history too, here, in the remote and on all machines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from aiaml_server.cli.context import opened, settings
from aiaml_server.cli.history import Past
from aiaml_server.cli.status import Told, still
from aiaml_server.errors import AiamlError, MalformedFile
from aiaml_server.format.memory import parse
from aiaml_server.settings import Settings, hide_password
from aiaml_server.sync import Problem, Status, once
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    confirm,
    echo,
    echo_json,
    join_words,
    notify,
    plural,
    show_status,
    terminal_width,
    truncate,
    wrap,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank
    from aiaml_server.sync.forgetting.plan import Plan
    from aiaml_server.sync.history import History

_PATIENCE = 60.0  # seconds for another process that synchronises
_OFF = (
    "sync is off (AIAML_ENABLE_SYNC is false), and git's history is its business: set it to true, "
    "for this command at least"
)
_BEYOND = (
    "What git cannot reach: backups, exports, copies and clones that you made, and what a host "
    "keeps for a while of what nothing leads to any more (a remote of your own: `git gc "
    "--prune=now` there; a hosted one: ask its support). A secret counts as known: change it."
)


def everywhere(ids: Sequence[str], *, yes: bool, dry_run: bool, json: bool) -> int:
    """Forget memories everywhere, after showing what that takes and asking; return the exit code.

    Raises:
        Ended: sync is off, there is no such memory, or it is not wanted after all.
    """
    setting = settings()
    if not setting.sync:
        raise Exit(_OFF, EXIT_USAGE)
    meant = _meant(ids, setting)
    if dry_run:
        _answer(meant, None, [], setting, json=json)
        return EXIT_OK
    if not yes:
        _preview(meant, setting)
        confirm(f"Forget {plural(len(meant.ids), 'memory')} everywhere, for good?")
    after, left = _done(meant, setting)
    from aiaml_server.sync.forgetting.plan import still_held_in  # noqa: PLC0415

    ours = still_held_in(setting.base)
    unread = (f"files/{name}, which cannot be read" for name in left)
    held = list(dict.fromkeys((*meant.plan.holders, *ours, *unread)))  # a tag is in both
    _answer(meant, after, held, setting, json=json)
    return EXIT_FAILED if after.problem else EXIT_OK


_BEGUN = (
    "it was begun, and cannot be undone; the next round goes on with it: that of a server, or "
    "`aiaml sync`"
)


class Meant(NamedTuple):
    """The memories that are meant.

    Attributes:
        ids: their ids.
        words: the first words of each.
        names: the names of their files.
        plan: what it takes.
    """

    ids: Sequence[str]
    words: Sequence[str]
    names: Sequence[str]
    plan: Plan


def _meant(ids: Sequence[str], setting: Settings) -> Meant:
    from aiaml_server.sync.forgetting.plan import plan  # noqa: PLC0415

    with opened() as bank:
        known = bank.history()
        show_status("looking through the history …")
        pasts = list(
            {past.id: past for past in (_past(each, bank, known) for each in ids)}.values()
        )
        there = [bank.find(past.id) for past in pasts]
    words = [
        memories[0][1].content if memories else past.words()
        for memories, past in zip(there, pasts, strict=True)
    ]
    names = list(dict.fromkeys(name for past in pasts for name in past.names))
    found = [past.id for past in pasts]

    def is_one(data: bytes) -> bool | None:
        with suppress(MalformedFile, UnicodeDecodeError):
            return parse(data.decode()).id in found
        return None

    takes = plan(setting.base, names, is_one)
    show_status()
    return Meant(found, words, names, takes)


def _past(memory_id: str, bank: MemoryBank, known: History) -> Past:
    try:
        return Past.of(memory_id, bank, known)
    except Exit as error:
        if not bank.find(memory_id):
            raise
        said = f"the history has no version of it, so `aiaml forget {memory_id}` is enough"
        raise Exit(f"memory {memory_id} is on this computer alone: {said}") from error


def _done(meant: Meant, setting: Settings) -> tuple[Status, list[str]]:
    told = Told()
    try:
        after = once(setting, seconds=_PATIENCE, progress=told, erase=meant.plan.marks)
    except AiamlError as error:
        raise Exit(f"it is not done: {Problem.of(error).sentence}", EXIT_FAILED) from error
    except KeyboardInterrupt as error:
        from aiaml_server.sync.forgetting.erasure import erased_in  # noqa: PLC0415

        begun = meant.plan.marks <= erased_in(setting.base)
        raise Exit(_BEGUN if begun else "nothing was changed", EXIT_INTERRUPTED) from error
    finally:
        show_status()
    with opened() as bank:
        return after, bank.erase(meant.plan.names, meant.plan.shared, meant.ids)


# --- telling --------------------------------------------------------------------------------------


def _preview(meant: Meant, setting: Settings) -> None:
    for identity, words in zip(meant.ids, meant.words, strict=True):
        echo(f"{bold(truncate(identity, 20))}  {truncate(words, max(terminal_width() - 24, 20))}")
    echo()
    for line in _takes(meant, setting):
        echo(wrap(line))
    echo(wrap("It cannot be undone. " + _BEYOND))


def _takes(meant: Meant, setting: Settings) -> list[str]:
    plan = meant.plan
    versions = f"{plural(plan.versions, 'version')} in {plural(len(plan.names), 'file')}"
    changes = f"{plural(plan.commits, 'change')} in it will be rewritten"
    lines = [f"{versions} will be removed from the history, for which {changes}."]
    if copies := sorted(set(plan.names) - set(meant.names)):
        lines.append(f"Among them are copies, or earlier names: {join_words(copies)}.")
    if setting.remote:
        who = f" (changes are by {join_words([*plan.authors[:5]])})" if plan.authors else ""
        where = hide_password(setting.remote)
        lines.append(
            f"{where} will be given the new history; every machine that uses it{who} follows at "
            "its next round."
        )
    if plan.holders:
        lines.append(still(plan.holders))
    return lines


def _answer(
    meant: Meant, after: Status | None, held: Sequence[str], setting: Settings, *, json: bool
) -> None:
    if json:
        echo_json(_fields(meant, after, held, setting))
        return
    if not after:
        _preview(meant, setting)
        echo("Nothing was changed.")
        return
    counts = f"{plural(meant.plan.versions, 'version')}, {plural(meant.plan.commits, 'change')}"
    echo(wrap(f"Forgot {plural(len(meant.ids), 'memory')} everywhere: {counts} rewritten."))
    if after.trouble:
        how = "The next server or `aiaml sync` that reaches it removes them there. What to do:"
        still_there = f"The copy still has them: {after.trouble.sentence}."
        echo(wrap(f"{still_there} {how} {after.trouble.remedy}"))
    elif setting.remote:
        echo(wrap("The copy has the new history; other machines follow at their next round."))
    if held:
        echo(wrap(still(held)))
    notify(_BEYOND)


def _fields(
    meant: Meant, after: Status | None, held: Sequence[str], setting: Settings
) -> dict[str, Any]:
    plan = meant.plan
    return {
        "ids": list(meant.ids),
        "files": list(plan.names),
        "versions": plan.versions,
        "commits": plan.commits,
        "authors": list(plan.authors),
        "done": after is not None,
        "remote": None if not setting.remote else bool(after and not after.problem),
        "problem": after.problem if after else None,
        "still_held_by": list(held if after else plan.holders),
    }
