"""The commands status and sync."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from aiaml_server.cli.context import found_by, opened, quoted, settings
from aiaml_server.errors import AiamlError
from aiaml_server.format.filters import Filter
from aiaml_server.index import index_file
from aiaml_server.settings import Settings, hide_password
from aiaml_server.storage.activity import Activity, read_activity
from aiaml_server.sync import Problem, Status, sync_once
from aiaml_server.sync.cycle import current_status
from aiaml_server.sync.remote import remote_in_use, setup_remote
from aiaml_server.sync.skip import release_secret
from aiaml_server.sync.status import problem_of
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    bold,
    echo,
    echo_json,
    json_option,
    notify,
    plural,
    show_status,
    wrap,
)
from aiaml_server.timestamps import format_elapsed, format_timestamp, now_micros, parse_timestamp

_LOCK_SECONDS = 60.0
_OFF = "Sync is off (AIAML_ENABLE_SYNC is false). Memories are plain files without a history."
_ONE_COPY = (
    "There is no remote: if this disk breaks, the memories are gone. `aiaml sync --setup ADDRESS` "
    "keeps a copy in a private git repository and brings memories to your other computers."
)


# --- status ---------------------------------------------------------------------------------------


@click.command("status")
@json_option
def status(json: bool) -> int:
    """Show whether memories are saved and synced.

    Nothing is sent. The exit code is 0 if all is well or sync is off, else 1.

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


def _lines(setting: Settings, found: Status) -> Iterator[str]:
    yield f"{bold(plural(_count(), 'memory'))} in {setting.base}"
    yield f"Index: a cache with the texts of the memories, {index_file(setting.base)}"
    for activity in read_activity(setting.base):
        asked, stored = format_elapsed(activity.asked), format_elapsed(activity.stored)
        yield f"{activity.client}: last asked {asked}, last stored {stored}"
    if not setting.sync:
        yield _OFF
        return
    yield f"{_last('committed', found.last_commit)}; {found.uncommitted:,} not committed."
    if found.remote:
        yield f"Remote: {found.remote}. Whoever hosts it can read the memories."
        last = f"{_last('received', found.last_fetch)}. {_last('sent', found.last_push)}"
        yield f"{last}; {found.unsent:,} not sent."
    else:
        yield _ONE_COPY
    if found.problem:
        yield f"{bold('Sync fails')}: {found.problem.sentence}."
        yield f"  What to do: {found.problem.remedy}"
    yield from _attention(found)
    if kept := found.kept_local:
        yield f"{plural(len(kept), 'memory')} excluded from sync by .keep-local."


def _last(what: str, time: str | None) -> str:
    return f"Last {what}: {format_elapsed(parse_timestamp(time or ''))}"


def _attention(found: Status) -> Iterator[str]:
    """Yield what waits for the person."""
    for name, why in found.needs_attention.items():
        yield f"{bold('Not committed')}: {name}, because {why.sentence}. {why.remedy}"
    if number := found.deletions_waiting:
        yield (
            f"Sync waits: {plural(number, 'memory file')} vanished at once. `aiaml sync "
            "--bring-back` restores them, `aiaml sync --forget` deletes them on all computers."
        )
    if files := found.placeholders:
        yield (
            f"A cloud program has replaced {plural(len(files), 'memory')} by placeholders, such as "
            f"{files[0]}. Have it keep the files on this computer."
        )
    for kept, copy in found.conflicts:
        yield (
            f"{bold('Conflict')}: two computers edited one memory, and both versions are kept: "
            f"{kept} and {copy}. Edit or forget one of them."
        )


def _exit_code(found: Status) -> int:
    waits = found.problem or found.needs_attention or found.deletions_waiting
    return EXIT_FAILED if waits else EXIT_OK


def _count() -> int:
    with opened() as bank:
        return bank.index.counts(Filter()).matching


def _fields(setting: Settings, found: Status) -> dict[str, Any]:
    """Return what `--json` has: the fields of the status, and of the directory."""
    return {
        "directory": str(setting.base),
        "memories": _count(),
        "index": str(index_file(setting.base)),
        "clients": [_client_fields(activity) for activity in read_activity(setting.base)],
        "sync": setting.sync,
        **asdict(found),
        "skipped": {name: why._asdict() for name, why in found.skipped.items()},
        "problem": found.problem._asdict() if found.problem else None,
    }


def _client_fields(activity: Activity) -> dict[str, Any]:
    times = {"asked": activity.asked, "stored": activity.stored}
    texts = {what: time and format_timestamp(time, "seconds") for what, time in times.items()}
    return {**activity._asdict(), **texts}


# --- sync -----------------------------------------------------------------------------------------


@click.command("sync")
@click.option(
    "--forget", "on_deleted", flag_value="delete", default="", help="Confirm deletions that wait."
)
@click.option("--bring-back", "on_deleted", flag_value="restore", help="Undo deletions that wait.")
@click.option(
    "--setup",
    "address",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value="",
    help="Use a private git repository as the remote.",
)
@click.option(
    "--release",
    "ids",
    metavar="ID",
    multiple=True,
    help="Sync a memory that was held back as a secret by mistake.",
)
def sync(on_deleted: str, address: str | None, ids: tuple[str, ...]) -> int:
    """Commit new memories and sync them with the remote.

    A running server does this by itself. The exit code is that of `aiaml status`.

    \b
    Examples:
      aiaml sync
      aiaml sync --setup git@github.com:you/memories.git
      aiaml sync --setup /media/stick/memories.git
      aiaml sync --bring-back
      aiaml sync --release 1b2c3d4e
    """
    setting = settings()
    if not setting.sync:
        raise Exit(_OFF.removesuffix("."), EXIT_USAGE)
    if address is not None:
        _set_up(setting, address)
    if ids:
        with opened() as bank:
            release_secret(bank.base, [name for name, _ in found_by(bank, ids)])
    logging.getLogger("aiaml_server.sync").setLevel(logging.ERROR)
    start = format_timestamp(now_micros(), "seconds")
    with _reporting("syncing"):
        after, counts = sync_once(setting, on_deleted=on_deleted, lock_seconds=_LOCK_SECONDS)
    found = current_status(setting)
    found.problem = found.problem or after.problem  # a full disk does not take the status file
    if found.problem:
        notify(f"aiaml: {_failure(found.problem)}")
    for line in _attention(found):
        notify(line)
    code = _exit_code(found)
    done = [f"{n:,} {what.replace('_', ' ')}" for what, n in asdict(counts).items() if n]
    if done or not code:
        echo(f"{', '.join(done) or 'Nothing new'}.")
    if counts.deleted and on_deleted == "delete":
        echo(f"Undo: aiaml restore --since {start}")
    return code


def _set_up(setting: Settings, address: str) -> None:
    address = address or click.prompt("Address of an empty private git repository", err=True)
    before = remote_in_use(setting)
    try:
        with _reporting(f"asking {hide_password(address)}"):
            number = setup_remote(setting.base, address)
    except Exit:
        if before:
            notify(f"The remote is still {hide_password(before)}.")
        raise
    notify(f"Connected; the remote has {plural(number, 'file')}.")
    if before:
        notify(f"Undo: aiaml sync --setup {quoted([hide_password(before)])}")


@contextmanager
def _reporting(doing: str) -> Iterator[None]:
    """Show what is done meanwhile; an error becomes a sentence with what to do."""
    show_status(f"{doing} …")
    try:
        yield
    except AiamlError as error:
        raise Exit(_failure(problem_of(error))) from error
    finally:
        show_status()


def _failure(problem: Problem) -> str:
    return f"sync fails: {problem.sentence}.\nWhat to do: {problem.remedy}"
