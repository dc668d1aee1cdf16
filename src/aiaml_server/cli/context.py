"""Helpers of all commands: settings, the memory bank, memories by ID, differences."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiaml_server.errors import MalformedFile
from aiaml_server.format.filters import Filter
from aiaml_server.format.invisible import marked
from aiaml_server.format.memory import SHORTEST_ID, Memory
from aiaml_server.rendering import unified_diff
from aiaml_server.settings import MEMORY_DIR, Settings
from aiaml_server.terminal import Exit, notify, styled

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_COLOURS = {"+": "green", "-": "red"}
_HINT = f"{SHORTEST_ID} characters of an id are enough; `aiaml search` finds memories by words"


def settings() -> Settings:
    """Return the settings of the environment.

    Raises:
        InvalidSetting: a variable cannot be used.
    """
    return Settings.from_environ(os.environ)


def use_directory(path: str) -> None:
    """Use another memory directory from now on, without the remote of the environment."""
    os.environ[MEMORY_DIR] = str(Path(path).expanduser().absolute())
    os.environ.pop("AIAML_GITHUB_REMOTE", None)


@contextmanager
def opened() -> Iterator[MemoryBank]:
    """Open the memory bank of the settings. Changes are committed when it is closed.

    Why git could not commit is printed once.
    """
    from aiaml_server.bank import MemoryBank  # noqa: PLC0415 (`--help` needs none)

    with closing(MemoryBank(settings(), lasting=False, report=cache(notify))) as bank:
        yield bank


def found_by(bank: MemoryBank, ids: Iterable[str]) -> list[tuple[str, Memory]]:
    """Return the memories with these ids, or whose ids begin so, and the names of their files.

    Raises:
        Exit: there is none with one of the ids.
        InvalidInput: several ids begin so.
    """
    rows = []
    for memory_id in ids:
        found = bank.find(memory_id) or bank.find(memory_id.lower())
        if not found:
            raise Exit(f"no memory has the id {memory_id} ({_HINT})")
        rows += found
    return rows


def fields(memory: Memory, name: str) -> dict[str, Any]:
    """Return a memory as `--json` prints it: the fields of `recall`, and the file."""
    return {**memory.fields(), "file": name}


def why_nothing(bank: MemoryBank, wanted: Filter) -> str:
    """Return a sentence that explains an empty answer."""
    if wanted or bank.names():
        return "No memories match. `aiaml doctor` names files that cannot be read."
    return f"There are no memories in {bank.base}. Agents store them, or you with `aiaml remember`."


def text_in(bank: MemoryBank, name: str) -> str | None:
    """Return the text of a file; None if there is no such file or it is not text."""
    with suppress(FileNotFoundError, MalformedFile):
        return bank.text(name)
    return None


def quoted(values: Iterable[str]) -> str:
    """Quote arguments for a shell; ids that other programs wrote may contain any text."""
    words = list(values)
    return shlex.join(["--", *words] if any(word[:1] == "-" for word in words) else words)


def changed_lines(before: str | None, after: str | None) -> list[str]:
    """Return the differences of two texts as indented, coloured lines."""
    lines = unified_diff(marked(before or ""), marked(after or ""))
    return [styled(f"    {line}".rstrip(), _COLOURS.get(line[:1])) for line in lines]
