"""`sync --release`: let memories travel that are held back for a secret."""

from __future__ import annotations

from collections.abc import Sequence

from aiaml_server.cli.context import opened
from aiaml_server.cli.show import found_by
from aiaml_server.errors import StoreError
from aiaml_server.settings import Settings
from aiaml_server.sync import once


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
