"""What the verbs share: the settings, the bank, and how it is opened."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aiaml_server.errors import MalformedFile
from aiaml_server.settings import MEMORY_DIR, Settings
from aiaml_server.terminal import notify

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

REMOTE = "AIAML_GITHUB_REMOTE"


def settings() -> Settings:
    """Return the settings of the environment.

    Raises:
        InvalidSetting: a variable cannot be used.
    """
    return Settings.from_environ(os.environ)


def use_directory(path: str) -> None:
    """Have all that follows act on another memory directory.

    A remote that the environment names belongs to the environment's directory. It is not used for
    another one.
    """
    base = Settings.from_environ(os.environ).base
    chosen = Path(path).expanduser().absolute()
    os.environ[MEMORY_DIR] = str(chosen)
    if os.environ.get(REMOTE) and chosen.resolve() != base.resolve():
        del os.environ[REMOTE]
        notify(f"{REMOTE} is for {base}, so it is not used for {chosen}.")


@contextmanager
def opened() -> Iterator[MemoryBank]:
    """Open the bank of the environment's settings, without any background work.

    What is changed is committed at the end; other machines get it from a server or `aiaml sync`.
    """
    from aiaml_server.bank import MemoryBank  # noqa: PLC0415 (a fifth of the start of a verb)

    with closing(MemoryBank(settings(), lasting=False, told=notify)) as bank:
        yield bank


def text_in(bank: MemoryBank, name: str) -> str | None:
    """Return what a file holds; None where it is not there, or no text."""
    with suppress(FileNotFoundError, MalformedFile):
        return bank.text(name)
    return None


def quoted(values: Iterable[str]) -> str:
    """Return words as a shell takes them; an id in a file that others wrote may be any text."""
    words = [shlex.quote(each) for each in values]
    return " ".join(["--", *words] if any(each[0] == "-" for each in words) else words)
