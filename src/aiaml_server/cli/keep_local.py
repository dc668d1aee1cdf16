"""`keep-local`: memories that stay on this computer; and letting one go that was held back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click

from aiaml_server.cli.context import opened, settings
from aiaml_server.cli.show import found_by
from aiaml_server.errors import AiamlError, StoreError
from aiaml_server.settings import Settings
from aiaml_server.sync import once
from aiaml_server.terminal import EXIT_FAILED, Exit, echo, echo_json, json_option, notify, plural


@click.command("keep-local")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--undo", is_flag=True, help="Let them travel again.")
@json_option
def keep_local(ids: Sequence[str], undo: bool, json: bool) -> None:
    """Keep memories on this computer: they travel no more.

    Agents here find them as before; no other machine gets them, and no later version of what
    others have already. It is noted in `.keep-local` in the memory directory. Lines of your own in
    `.gitignore` or `.git/info/exclude` there hold as well.

    \b
    Examples:
      aiaml keep-local 1b2c3d4e
      aiaml keep-local 1b2c --undo
    """
    from aiaml_server.sync import guard  # noqa: PLC0415
    from aiaml_server.sync.history import History  # noqa: PLC0415

    setting = settings()
    names = _names(ids)
    try:
        if undo:
            undone = [guard.let_go(setting.base, name) for name in names]
        else:
            for name in names:
                guard.keep_local(setting.base, name)
    except guard.Untold as error:
        raise Exit(f"{error}: {error.remedy}", EXIT_FAILED) from error
    except OSError as error:
        raise StoreError("write", setting.base / guard.KEEP_LOCAL, error) from error
    if undo:
        if not any(undone):
            raise Exit("not kept here by this verb; a line in .gitignore may name it")
        if json:
            let_in = [name for name, done in zip(names, undone, strict=True) if done]
            echo_json({"kept_local": [], "let_in": let_in})
            return
        echo(f"{plural(sum(undone), 'memory')} let travel again.")
        return
    if json:
        echo_json({"kept_local": names, "let_in": []})
    else:
        echo(f"{plural(len(names), 'memory')} kept on this computer.")
    known = set()  # of these files, those that some commit has
    with suppress(AiamlError):
        known = {change.name for change in History(setting.base).of({*names}.__contains__)}
    if known:
        what = (
            "what it had"
            if len(known) == len(names) == 1
            else f"what {plural(len(known), 'memory')} had"
        )
        notify(
            f"The history keeps {what} until now, here and wherever it was sent. `aiaml forget "
            "--everywhere` would remove that, and the memory."
        )


def _names(ids: Sequence[str]) -> list[str]:
    with opened() as bank:
        return list(dict.fromkeys(name for each in ids for name, _ in found_by(bank, each)))


def release(setting: Settings, ids: Sequence[str]) -> None:
    """Let memories travel that are held back, whatever they hold, in all later versions too.

    What is not the id of a memory may be the path of another file in the memory directory, which a
    person has committed.
    """
    from aiaml_server.sync import guard, survey  # noqa: PLC0415

    paths = [each for each in ids if "." in each and (setting.base / each).is_file()]
    paths += [f"files/{name}" for name in _names([each for each in ids if each not in paths])]
    if not survey.directory_of(setting.base).is_dir():  # in which it is noted
        once(setting, local=True)
    try:
        guard.release(setting.base, paths)
    except OSError as error:
        raise StoreError("write", setting.base, error) from error
