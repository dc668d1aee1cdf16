"""`forget --everywhere`: out of the history, here, at the remote and on all computers."""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.cli.context import opened, settings
from aiaml_server.errors import AiamlError
from aiaml_server.sync import plan_forgetting, problem_of, sync_once
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    confirm,
    echo,
    echo_json,
    notify,
    plural,
    wrap,
)

_LOCK_SECONDS = 60.0
_OFF = "sync is off, so there is no history. Set AIAML_ENABLE_SYNC to true for this command"
_BEYOND = (
    "This does not reach backups, exports and clones, and a host may keep old objects for a while. "
    "A secret that was sent counts as known: change it."
)


def everywhere(ids: Sequence[str], *, yes: bool, dry_run: bool, json: bool) -> int:
    """Forget memories everywhere, after asking; return the exit code.

    Raises:
        Exit: sync is off, or no such memory was ever committed.
    """
    setting = settings()
    if not setting.sync:
        raise Exit(_OFF, EXIT_USAGE)
    with opened() as bank:
        bank.commit()
        names = [name for each in ids for name, _ in bank.find(each)]
        plan = plan_forgetting(setting.base, names, ids)
    if not plan.versions:
        raise Exit(f"no memory {', '.join(ids)} is in the history", EXIT_NOTHING)
    files = [path.removeprefix("files/") for path in plan.paths]
    fields = {"ids": list(ids), "files": files, "versions": plan.versions}
    takes = f"{plural(plan.versions, 'version')} in {plural(len(files), 'file')}"
    if not json and (dry_run or not yes):
        echo(wrap(f"{takes} will be removed from the history on all computers, for good."))
        echo(wrap(_BEYOND))
    if dry_run:
        if json:
            echo_json({**fields, "done": False, "problem": None})
        return EXIT_OK
    if not yes:
        confirm("Forget this everywhere, for good?")
    try:
        status, _ = sync_once(setting, forget=plan.sums, lock_seconds=_LOCK_SECONDS)
    except AiamlError as error:
        raise Exit(f"nothing was done: {problem_of(error).sentence}", EXIT_FAILED) from error
    with opened() as bank:
        bank.erase(files, [], list(ids))
    problem = status.problem
    if json:
        echo_json({**fields, "done": True, "problem": problem.sentence if problem else None})
    else:
        echo(wrap(f"Forgot {takes} everywhere."))
        if problem:
            echo(wrap(f"The remote still has them: {problem.sentence}. {problem.remedy}"))
        notify(wrap(_BEYOND))
    return EXIT_FAILED if problem else EXIT_OK
