"""The memory directories of one person: that in use, and those that the clients' entries name.

Nothing is noted of them anywhere else: what a client is connected with is what there is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aiaml_server.clients import Connection, connections
from aiaml_server.clients.entry import machine
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import BASE, Settings
from aiaml_server.toolsets import DEFAULT, VARIABLE


class Directory(NamedTuple):
    """A memory directory.

    Attributes:
        name: the last part of its path, without a dot before it; of two that are called alike, as
            many parts as tell them apart.
        path: the absolute path.
        clients: the names of the clients whose entries serve it.
    """

    name: str
    path: Path
    clients: tuple[str, ...] = ()


def known(*bases: Path) -> list[Directory]:
    """Return the person's directories: `bases` first, of which the first one is in use.

    Then those that the entries of clients name, and the default one if there is something in it.

    Raises:
        InvalidSetting: nothing says where the person's files are.
    """
    served = [(path, one.client.name) for one in connections(machine()) for path in served_by(one)]
    usual = Settings.from_environ({}).base
    paths = [
        *bases,
        *(path for path, _ in served),
        *([usual] if (usual / "files").exists() else []),
    ]
    by_place: dict[str, Path] = {}
    for path in paths:
        by_place.setdefault(_real(path), path)
    distinct = list(by_place.values())
    return [
        Directory(
            _name(path, distinct),
            path,
            tuple(client for other, client in served if alike(other, path)),
        )
        for path in distinct
    ]


def found(word: str, directories: Iterable[Directory]) -> Path:
    """Return the directory that a person names: by its name here, or by its path.

    Raises:
        InvalidSetting: it is neither.
    """
    names = {each.name: each.path for each in directories}
    if word in names:
        return names[word]
    with suppress(RuntimeError):  # ~nobody
        path = Path(word).expanduser()
        if word and (path.is_dir() or len(path.parts) > 1):
            return path.absolute()
    raise InvalidSetting(
        "--dir", f"is {word!r}, which is no directory; `aiaml dirs` names {', '.join(names)}"
    )


def served_by(one: Connection) -> list[Path]:
    """Return the directory that a client's entry serves, if it serves one."""
    toolsets = one.variables.get(VARIABLE.name) or DEFAULT
    if not one.connected or DEFAULT not in toolsets.replace(" ", "").split(","):
        return []
    with suppress(InvalidSetting):  # `doctor` tells of that
        return [base_of(one.variables)]
    return []


def base_of(variables: Mapping[str, str]) -> Path:
    """Return the directory that an entry with this environment is for.

    Raises:
        InvalidSetting: it names none.
    """
    return Settings.from_environ({BASE: variables.get(BASE, "")}).base


def alike(one: Path, other: Path) -> bool:
    """Say whether two paths are of one directory."""
    return _real(one) == _real(other)


def _real(path: Path) -> str:
    return os.path.normcase(os.path.realpath(path))


def _name(path: Path, others: Sequence[Path]) -> str:
    """Return the last parts of a path, as many as no other one ends with."""
    for count in range(1, len(path.parts)):
        if not any(other != path and _tail(other, count) == _tail(path, count) for other in others):
            return _tail(path, count)
    return str(path)


def _tail(path: Path, count: int) -> str:
    return "/".join(path.parts[-count:]).removeprefix(".")
