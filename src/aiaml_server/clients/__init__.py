"""AIAML in the configuration files of AI clients: put in, taken out, looked at.

Only the entry `aiaml` is ours; every other byte of a file is left as it is.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import AiamlError, InvalidSetting
from aiaml_server.programs import find

from . import file, jsonc, toml
from .file import ConfigError
from .places import CLIENTS, Client, Machine, Place
from .text import Refused, position

__all__ = [
    "CLIENTS",
    "Change",
    "Client",
    "ConfigError",
    "Connection",
    "Machine",
    "connect",
    "connections",
    "disconnect",
    "here",
    "located",
    "save",
    "snippet",
]

NAME = "aiaml"
_FORMS = {"json": jsonc, "toml": toml}


class Change(NamedTuple):
    """What becomes of one file.

    Attributes:
        before: what it holds; None if it is not there.
        after: what it is to hold; None if it is to go.
        new: whether it had no entry before.
        kept: names of the variables that the entry had, and has still.
    """

    client: Client
    path: Path
    before: bytes | None
    after: bytes | None
    new: bool
    kept: tuple[str, ...] = ()


class Connection(NamedTuple):
    """How one client stands.

    Attributes:
        path: the file, or where it would be.
        installed: whether the file, or a directory of the client, is there.
        connected: whether the file has an entry.
        command: what the entry starts.
        problems: what is wrong, each a sentence that says what to do.
    """

    client: Client
    path: Path
    installed: bool
    connected: bool = False
    command: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def here() -> Machine:
    """Return this machine.

    Raises:
        InvalidSetting: nothing says where the person's files are.
    """
    try:
        return Machine(sys.platform, Path.home(), os.environ)
    except RuntimeError as error:
        name = "USERPROFILE" if sys.platform == "win32" else "HOME"
        raise InvalidSetting(name, "is not set; it must name your home directory") from error


def located(client: Client, machine: Machine) -> tuple[Path, bool]:
    """Return the file that a client reads, or would read, and whether the client is there.

    Raises:
        ConfigError: there are several, and nothing says which one is in use.
    """
    places = [_expanded(place) for place in client.places(machine)]
    for part in (0, 1):  # an existing file is a better sign than a directory
        for alike in places:
            found = [place for place in alike if Path(place[part]).exists()]
            if len(found) > 1:
                raise ConfigError(
                    Path(found[0].file),
                    f"{client.title} has more than one directory here, and nothing says which it "
                    f"uses; put in by hand what `aiaml install --print {client.name}` prints",
                )
            if found:
                return Path(found[0].file), True
    plain = next(place for place in client.places(machine) if "*" not in str(place.file))
    return Path(plain.file), False


def connect(
    client: Client, machine: Machine, command: Sequence[str], variables: Mapping[str, str]
) -> Change:
    """Work out the file with an entry that starts `command` with these environment variables.

    What an entry has besides stays. Nothing is written: see `save`.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely; it says where.
        StoreError: the disk refused.
    """
    path, _ = located(client, machine)
    before = file.read(path)
    text = _decoded(path, before)
    current = _entry(client, path, text)
    try:
        after = _FORMS[client.form].put(
            text, (*client.keys, NAME), _wanted(client, current, command, variables)
        )
    except Refused as refused:
        raise _where(path, text, refused) from None
    had = current.get("env") if isinstance(current, dict) else None
    kept = tuple(name for name in had if name not in variables) if isinstance(had, dict) else ()
    return Change(client, path, before, _encoded(path, after), current is None, kept)


def disconnect(client: Client, machine: Machine) -> list[Change]:
    """Work out each file of a client, of which it may have an older one, without our entry.

    A file that nobody has edited since gets back the very bytes that it had before; one that was
    not there goes.

    Raises:
        ConfigError: a file cannot be read, or not be edited safely; it says where.
        StoreError: the disk refused.
    """
    return [change for path in _files(client, machine) for change in _without(client, path)]


def save(change: Change) -> Path | None:
    """Write a change, and return where the file is kept as it was.

    Raises:
        ConfigError: the file has changed meanwhile.
        StoreError: the disk refused; the file is as it was.
    """
    kept = file.save(change.path, change.before, change.after)
    if change.after == file.original(change.path):
        file.forget_backups(change.path)
        return None
    return kept


def connections(machine: Machine | None = None) -> list[Connection]:
    """Look at every client, and at every file of it that is there."""
    machine = machine or here()
    found: list[Connection] = []
    for client in CLIENTS:
        files = _files(client, machine)
        found += [_connection(client, path) for path in files]
        if not files:
            found.append(_absent(client, machine))
    return found


def snippet(client: Client | None, command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return what to put into a client's file by hand; for None, what most clients take."""
    client = client or CLIENTS[0]
    entry = _wanted(client, None, command, variables)
    text: str = _FORMS[client.form].put("", (*client.keys, NAME), entry)
    return text


def _expanded(place: Place) -> list[Place]:
    """Return a place, or the places on this disk that a `*` in its name stands for."""
    if "*" not in str(place.sign):
        return [place]
    parts = place.file.relative_to(place.sign)
    signs = sorted(Path(place.sign.parent).glob(place.sign.name))
    return [Place(sign / parts, sign) for sign in signs]


def _files(client: Client, machine: Machine) -> list[Path]:
    places = [place for pattern in client.places(machine) for place in _expanded(pattern)]
    return [Path(place.file) for place in places if Path(place.file).exists()]


def _decoded(path: Path, data: bytes | None) -> str:
    """Return a file's text; a BOM stays in it."""
    if data is None:
        return ""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(path, "it is written in UTF-16; save it as UTF-8 and try again")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        reason = "it is not text in UTF-8; save it as UTF-8 and try again"
        raise _where(path, before, Refused(len(before), reason)) from None


def _encoded(path: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        reason = "the command or a variable holds bytes that are no text, which no client can read"
        raise ConfigError(path, reason) from None


def _where(path: Path, text: str, refused: Refused) -> ConfigError:
    line, column = position(text, refused.offset)
    return ConfigError(path, f"line {line}, column {column}: {refused.reason}")


def _entry(client: Client, path: Path, text: str) -> Any:
    try:
        return _FORMS[client.form].entry(text, (*client.keys, NAME))
    except Refused as refused:
        raise _where(path, text, refused) from None


def _wanted(
    client: Client, current: Any, command: Sequence[str], variables: Mapping[str, str]
) -> dict[str, Any]:
    had = current if isinstance(current, dict) else {}
    wanted = {name: value for name, value in client.extras.items() if name not in had}
    wanted |= {"command": command[0], "args": list(command[1:])}
    return wanted | ({"env": dict(variables)} if variables else {})


def _without(client: Client, path: Path) -> list[Change]:
    before = file.read(path)
    text = _decoded(path, before)
    entry = _entry(client, path, text)
    if entry is None:
        return []
    first = file.original(path)
    if _is_all_that_came(client, path, text, entry, first):
        return [Change(client, path, before, first, new=False)]
    try:
        edited = _FORMS[client.form].remove(text, (*client.keys, NAME))
    except Refused as refused:
        raise _where(path, text, refused) from None
    return [Change(client, path, before, edited.encode("utf-8"), new=False)]


def _is_all_that_came(
    client: Client, path: Path, text: str, entry: Any, first: bytes | None
) -> bool:
    """Say whether our entry is all that has come to a file since its first state."""
    if first is None and path.is_symlink():
        return False
    with suppress(Refused, ConfigError, AttributeError):
        old, keys, form = _decoded(path, first), (*client.keys, NAME), _FORMS[client.form]
        return form.entry(old, keys) is None and form.put(old, keys, entry) == text
    return False


def _absent(client: Client, machine: Machine) -> Connection:
    try:
        return Connection(client, *located(client, machine))
    except ConfigError as error:
        return Connection(client, error.path, installed=True, problems=(str(error),))


def _connection(client: Client, path: Path) -> Connection:
    try:
        entry = _entry(client, path, _decoded(path, file.read(path)))
    except AiamlError as error:
        return Connection(client, path, installed=True, problems=(str(error),))
    if entry is None:
        return Connection(client, path, installed=True)
    command = _command(entry)
    again = f"`aiaml install {client.name}` puts it right"
    problems = tuple(
        f"{path}: the entry aiaml {problem}" for problem in _problems(entry, command, again)
    )
    return Connection(client, path, True, True, command, problems)


def _command(entry: Any) -> tuple[str, ...]:
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str):
        return ()
    words = entry.get("args")
    return (entry["command"], *(map(str, words) if isinstance(words, list) else ()))


def _problems(entry: Any, command: Sequence[str], again: str) -> list[str]:
    if not command:
        return [f"has no command; {again}"]
    found = []
    program = Path(command[2] if command[1:2] == ("/c",) else command[0])
    with suppress(RuntimeError):  # ~ without a home
        program = program.expanduser()
    if not program.is_absolute():
        if not find(command[0]):
            found.append(f"starts {command[0]}, which is not on the PATH; {again}")
    elif not program.is_file():
        found.append(f"starts {program}, which is not there; {again}")
    elif not os.access(program, os.X_OK):
        found.append(f"starts {program}, which may not be executed; {again}")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        found.append("is switched off there; switch it on in the client, or in the file")
    return found
