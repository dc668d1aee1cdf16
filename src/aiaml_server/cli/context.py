"""What the verbs share: the settings, the bank, and a commit of what is new."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import AiamlError
from aiaml_server.invisible import marked, marked_line
from aiaml_server.memory import Memory
from aiaml_server.settings import Settings
from aiaml_server.sync import Occupied, Status, in_use, once
from aiaml_server.terminal import note

_PATIENCE = 10.0  # seconds for another process that synchronises


def settings() -> Settings:
    """Return the settings of the environment.

    A client may have told its servers of a remote that a person's shell does not know of. So where
    the variable is not set here, the address that was last used holds, as long as it is in use.

    Raises:
        InvalidSetting: a variable cannot be used.
    """
    return with_remote_in_use(Settings.from_environ(os.environ), os.environ)


def with_remote_in_use(chosen: Settings, environ: Mapping[str, str]) -> Settings:
    """Return settings with the remote that servers use, unless the environment names one."""
    if "AIAML_GITHUB_REMOTE" in environ:
        return chosen
    return replace(chosen, remote=in_use(chosen.base))


@contextmanager
def opened() -> Iterator[MemoryBank]:
    """Open the bank of the environment's settings, without any background work."""
    bank = MemoryBank(settings(), lasting=False)
    try:
        yield bank
    finally:
        bank.close()


def commit(chosen: Settings, *, first: bool = False) -> Status | None:
    """Commit what is new on this machine; a server or `aiaml sync` brings it to the others.

    Args:
        chosen: which directory.
        first: whether git must have it before something is changed: then another process that is at
            it is waited for. Otherwise the next round has it.

    Returns:
        How things stand; None when git does not have what is new.
    """
    if not chosen.sync:
        return None
    try:
        status = once(chosen, local=True, seconds=_PATIENCE if first else 0.0)
    except AiamlError as error:
        if first or not isinstance(error, Occupied):
            note(f"Not committed to git yet: {error}")
        return None
    if status.problem:
        note(f"Not committed to git yet: {status.problem}")
    return None if status.problem else status


def visible(memory: Memory) -> Memory:
    """Return a memory as it may be shown: `marked`, and on one line what has to be."""
    return replace(
        memory,
        id=marked_line(memory.id),
        timestamp=marked_line(memory.timestamp),
        agent=marked_line(memory.agent),
        user=marked_line(memory.user),
        topics=tuple(map(marked_line, memory.topics)),
        content=marked(memory.content),
    )
