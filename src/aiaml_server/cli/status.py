"""The commands status and sync."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import click

from aiaml_server.cli.context import opened, settings
from aiaml_server.cli.show import found_by
from aiaml_server.errors import AiamlError, LockTimeout
from aiaml_server.settings import Settings, hide_password
from aiaml_server.sync import (
    Counts,
    Problem,
    Status,
    current_status,
    problem_of,
    release_secret,
    setup_remote,
    sync_once,
)
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    echo,
    echo_json,
    join_words,
    json_option,
    notify,
    plural,
    prompt,
    show_status,
    wrap,
)
from aiaml_server.timestamps import format_elapsed, parse_timestamp

_LOCK_SECONDS = 60.0
_OFF = "Sync is off (AIAML_ENABLE_SYNC is false): memories are plain files without a history."
_ONE_COPY = (
    "There is no remote: if this disk breaks, the memories are gone. `aiaml sync --setup ADDRESS` "
    "keeps a copy in a private git repository and brings memories to your other computers."
)


@click.command("status")
@json_option
def status(json: bool) -> int:
    """Show how sync stands, and what to do if it fails.

    Nothing is sent. The exit code is 1 if sync fails or something waits for you.

    \b
    Examples:
      aiaml status
      aiaml status --json
    """
    setting = settings()
    found = current_status(setting)
    if json:
        echo_json(_fields(setting, found))
    else:
        for line in _lines(setting, found):
            echo(wrap(line))
    return _exit_code(found)


@click.command("sync")
@click.option("--forget", is_flag=True, help="Confirm the deletions that are held.")
@click.option("--bring-back", is_flag=True, help="Undo the deletions that are held.")
@click.option(
    "--setup",
    "address",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value="",
    help="Use a private git repository as the remote.",
)
@click.option("--release", "ids", metavar="ID", multiple=True, help="Send it: it is no secret.")
@json_option
def sync(
    forget: bool, bring_back: bool, address: str | None, ids: tuple[str, ...], json: bool
) -> int:
    """Commit what is new now, and exchange it with your other computers.

    A running server does this by itself. The exit code and --json are those of `status`.

    \b
    Examples:
      aiaml sync
      aiaml sync --setup git@github.com:you/memories.git
      aiaml sync --setup /media/stick/memories.git
      aiaml sync --bring-back
      aiaml sync --release 1b2c3d4e
    """
    setting = settings()
    if forget and bring_back:
        raise Exit("--forget and --bring-back exclude each other", EXIT_USAGE)
    if not setting.sync:
        raise Exit(_OFF.removesuffix("."), EXIT_USAGE)
    if address is not None:
        _set_up(setting, address)
        setting = settings()
    if ids:
        with opened() as bank:
            release_secret(bank.base, [name for each in ids for name, _ in found_by(bank, each)])
    logging.getLogger("aiaml_server.sync").setLevel(logging.ERROR)
    show_status("syncing …")
    answer = "delete" if forget else "restore" if bring_back else ""
    try:
        _, counts = sync_once(setting, on_deleted=answer, lock_seconds=_LOCK_SECONDS)
    except LockTimeout:
        raise
    except AiamlError as error:
        raise Exit(_failure(problem_of(error)), EXIT_FAILED) from error
    finally:
        show_status()
    found = current_status(setting)
    if json:
        echo_json(_fields(setting, found))
    else:
        echo(f"{summary(counts)}.")
        for line in (*_attention(found), *_conflicts(found)):
            notify(wrap(line))
    if found.problem:
        raise Exit(_failure(found.problem), EXIT_FAILED)
    return _exit_code(found)


def _set_up(setting: Settings, address: str) -> None:
    address = address or prompt("Address of an empty private git repository")
    show_status(f"asking {hide_password(address)} …")
    try:
        number = setup_remote(setting.base, address)
    except AiamlError as error:
        raise Exit(_failure(problem_of(error)), EXIT_FAILED) from error
    finally:
        show_status()
    notify(f"Remote set; it has {plural(number, 'memory')}.")


def summary(counts: Counts) -> str:
    """Return what a cycle did, in words."""
    done = {
        "saved": counts.saved,
        "deleted": counts.deleted,
        "restored": counts.restored,
        "received": counts.received,
        "deleted elsewhere": counts.deleted_elsewhere,
        "sent": counts.sent,
    }
    words = [f"{number:,} {what}" for what, number in done.items() if number]
    return join_words(words).capitalize() if words else "Nothing new"


def _failure(problem: Problem) -> str:
    return f"Sync fails: {problem.sentence}.\nWhat to do: {problem.remedy}"


def _exit_code(found: Status) -> int:
    if found.problem:
        return EXIT_FAILED
    return EXIT_NOTHING if found.needs_attention or found.deletions_waiting else EXIT_OK


def _lines(setting: Settings, found: Status) -> Iterator[str]:
    yield f"Memories are in {setting.base}."
    if not setting.sync:
        yield _OFF
        return
    times = {"committed": found.last_commit}
    if found.remote:
        yield f"The remote is {found.remote}. Whoever hosts it can read the memories."
        times |= {"fetched": found.last_fetch, "sent": found.last_push}
    else:
        yield _ONE_COPY
    words = [f"{what} {_elapsed(at)}" for what, at in times.items() if at]
    yield f"Last {join_words(words)}." if words else "Nothing is committed yet."
    if found.uncommitted:
        yield f"{plural(found.uncommitted, 'change')} not committed yet."
    if found.remote and found.unsent:
        yield f"{plural(found.unsent, 'memory')} not sent yet."
    if found.problem:
        since = _elapsed(found.failing_since)
        yield f"{bold('Sync fails')} since {since}: {found.problem.sentence}."
        yield f"  What to do: {found.problem.remedy}"
    yield from _attention(found)
    yield from _conflicts(found)
    if kept := found.kept_local:
        yield f"{plural(len(kept), 'memory')} kept on this computer (.keep-local)."
    if _exit_code(found) == EXIT_OK and found.remote and not (found.unsent or found.uncommitted):
        yield "All is well: the remote has every memory."


def _attention(found: Status) -> Iterator[str]:
    for name, why in found.needs_attention.items():
        yield f"{bold('Not committed')}: files/{name}, because {why.sentence}."
        yield f"  What to do: {why.remedy}"
    if number := found.deletions_waiting:
        yield (
            f"{plural(number, 'memory')} gone, which is too many to be deleted unasked. `aiaml sync"
            " --bring-back` restores them, `aiaml sync --forget` deletes them on all computers."
        )
    if files := found.placeholders:
        yield (
            f"A cloud program has replaced {plural(len(files), 'memory')} by placeholders, such as "
            f"{files[0]}. Have it keep the files on this computer."
        )


def _conflicts(found: Status) -> Iterator[str]:
    for kept, copy in found.conflicts:
        yield (
            f"{bold('Conflict')}: two computers edited one memory. Both versions are kept, as "
            f"{kept} and {copy}: edit one of them and forget the other."
        )


def _elapsed(time: str | None) -> str:
    return format_elapsed(parse_timestamp(time) if time else None)


def _fields(setting: Settings, found: Status) -> dict[str, Any]:
    problem = found.problem
    return {
        "directory": str(setting.base),
        "sync": setting.sync,
        "remote": found.remote or None,
        "last_commit": found.last_commit,
        "last_fetch": found.last_fetch,
        "last_push": found.last_push,
        "uncommitted": found.uncommitted,
        "unsent": found.unsent,
        "skipped": {name: why._asdict() for name, why in found.needs_attention.items()},
        "kept_local": found.kept_local,
        "conflicts": [list(ids) for ids in found.conflicts],
        "placeholders": found.placeholders,
        "deletions_waiting": found.deletions_waiting,
        "problem": problem.sentence if problem else None,
        "problem_kind": problem.kind if problem else None,
        "what_to_do": problem.remedy if problem else None,
        "failing_since": found.failing_since,
    }
