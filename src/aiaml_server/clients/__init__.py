"""Our server in the configuration files of AI clients: put in, taken out, looked at.

Only entries of our name are touched; every other byte of a file is left as it is.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from aiaml_server.clients import file, jsonc, toml, yaml
from aiaml_server.clients.entry import ENTRY
from aiaml_server.clients.file import Backups, ConfigError
from aiaml_server.clients.packages import Other, packages
from aiaml_server.clients.places import CLIENTS, Client, Machine, Place
from aiaml_server.clients.text import Refused, position
from aiaml_server.storage.programs import find

__all__ = [
    "CLAUDE_CODE",
    "CLIENTS",
    "Change",
    "Client",
    "ConfigError",
    "Connection",
    "Machine",
    "Problem",
    "besides",
    "connect",
    "connected",
    "connections",
    "disconnect",
    "hook",
    "located",
    "save",
    "snippet",
    "unhook",
    "whole",
]

_FORMS = {"json": jsonc, "toml": toml, "yaml": yaml}
_MOST = {".toml": toml.MOST, ".yaml": yaml.MOST}  # bytes; of JSON, what `file` reads
CLAUDE_CODE = next(client for client in CLIENTS if client.name == "claude-code")


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
    backups: Backups
    before: bytes | None
    after: bytes | None
    new: bool
    kept: tuple[str, ...] = ()


class Problem(NamedTuple):
    """What is wrong with one client's file, and what to do about it, if that is known."""

    what: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return both as a sentence."""
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


class Connection(NamedTuple):
    """How one client stands.

    Attributes:
        path: the file, or where it would be.
        installed: whether the file, or a directory of the client, is there.
        connected: whether the file has an entry.
        command: what the entry starts.
        problems: what is wrong.
        variables: the environment that the entry gives the program.
        name: the entry's.
    """

    client: Client
    path: Path
    installed: bool
    connected: bool = False
    command: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    name: str = ""


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
                    "uses",
                    f"put in by hand what `aiaml install --print {client.name}` prints",
                )
            if found:
                return Path(found[0].file), True
    plain = next(place for place in client.places(machine) if "*" not in str(place.file))
    return Path(plain.file), False


def connect(
    client: Client,
    machine: Machine,
    command: Sequence[str],
    variables: Mapping[str, str],
    name: str = ENTRY,
) -> Change:
    """Work out the file with an entry that starts `command` with these environment variables.

    What an entry has besides stays. Nothing is written: see `save`.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely; it says where.
    """
    path, _ = located(client, machine)
    before, text = _read(path)
    with _told(path, text):
        form, keys = _FORMS[client.form], (*client.keys, name)
        current = form.entry(text, keys)
        after = form.put(text, keys, _wanted(name, client, current, command, variables))
    had = current.get(client.environment) if isinstance(current, dict) else None
    kept = tuple(each for each in had if each not in variables) if isinstance(had, dict) else ()
    backups = Backups.of(path, name)
    return Change(client, path, backups, before, _encoded(path, after), current is None, kept)


def disconnect(client: Client, machine: Machine, name: str = ENTRY) -> list[Change]:
    """Work out each file of a client, of which it may have an older one, without the entry.

    A file that nobody has edited since gets back the very bytes that it had before; one that was
    not there goes.

    Raises:
        ConfigError: a file cannot be read, or not be edited safely; it says where.
    """
    return [change for path in _files(client, machine) for change in _without(name, client, path)]


def save(change: Change) -> Path | None:
    """Write a change, and return where the file is kept as it was.

    Raises:
        ConfigError: the file has changed meanwhile, or the disk refused; it is as it was.
    """
    kept = file.save(change.path, change.before, change.after, change.backups)
    if change.after in (None, file.original(change.backups)):
        file.forget(change.backups)
        return None
    return kept


def connections(machine: Machine, among: Sequence[Client] = CLIENTS) -> list[Connection]:
    """Look at clients, at every file of them that is there, and at every entry of ours."""
    found: list[Connection] = []
    for client in among:
        files = _files(client, machine)
        found += [one for path in files for one in _connections(client, path)]
        try:
            found += [] if files else [Connection(client, *located(client, machine))]
        except ConfigError as error:
            found.append(_unusable(client, error))
    return found


def snippet(client: Client | None, command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return what to put into a client's file by hand; for None, what most clients take."""
    client = client or CLIENTS[0]
    wanted = _wanted(ENTRY, client, None, command, variables)
    text: str = _FORMS[client.form].put("", (*client.keys, ENTRY), wanted)
    return text


# --- hooks of Claude Code -------------------------------------------------------------------------

_HOOKS = "hooks"
_Groups = Sequence[tuple[str, Mapping[str, Any]]]


def hook(
    name: str,
    path: Path,
    groups: _Groups,
    ours: Callable[[str], bool],
    besides: Mapping[str, Any] = MappingProxyType({}),
) -> Change:
    """Work out a settings file of Claude Code, or one like it, with hooks that start a program.

    Its older ones go, and nothing else of the file changes.

    Args:
        name: what the copies of the file have in their names.
        path: the file.
        groups: what each event's list is to have, with the event.
        ours: says of a command whether it is that program's.
        besides: what the file has to have besides, where it is not there.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely; it says where.
    """
    before, text = _read(path)
    with _told(path, text):
        had = _groups(text, ours)
        same = len(had) == len(groups) and all(each in groups for each in had)
        after = text if same else _hooked(_unhooked(text, had), groups, besides)
    backups = Backups.of(path, name)
    return Change(CLAUDE_CODE, path, backups, before, _encoded(path, after), not had)


def unhook(
    name: str,
    path: Path,
    ours: Callable[[str], bool],
    besides: Mapping[str, Any] = MappingProxyType({}),
) -> Change:
    """Work out a settings file of Claude Code, or one like it, without a program's hooks.

    A file that nobody has edited since gets back the very bytes that it had before; one that was
    not there goes. What it is given is as in `hook`.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely; it says where.
    """
    before, text = _read(path)
    backups = Backups.of(path, name)
    first = file.original(backups)
    with _told(path, text):
        groups = _groups(text, ours)
        if not groups:
            after = before
        elif _is_all_that_came(path, text, first, lambda old: _hooked(old, groups, besides)):
            after = first
        else:
            left = _unhooked(text, groups)
            is_made_by_us = first is None or bool(_groups(_decoded(path, first), ours))
            is_empty = is_made_by_us and jsonc.entry(left, ()) in ({}, dict(besides))
            after = None if is_empty else _encoded(path, left)
    return Change(CLAUDE_CODE, path, backups, before, after, new=False)


def whole(name: str, path: Path, text: str | None) -> Change:
    """Work out a file that is all ours; None has it be again what it was before, or go.

    Raises:
        ConfigError: it cannot be read.
    """
    before, _ = _read(path)
    backups = Backups.of(path, name)
    after = _encoded(path, text) if text is not None else file.original(backups)
    return Change(CLAUDE_CODE, path, backups, before, after, new=before is None)


def _groups(text: str, ours: Callable[[str], bool]) -> list[tuple[str, Mapping[str, Any]]]:
    """Find the groups of hooks that all start a program, each with its event."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    events = jsonc.entry(text, (_HOOKS,))
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            each = group.get(_HOOKS, [group]) if isinstance(group, dict) else None
            commands = [one.get("command") for one in each or () if isinstance(one, dict)]
            if commands and all(isinstance(one, str) and ours(one) for one in commands):
                found.append((event, group))
    return found


def _hooked(text: str, groups: _Groups, besides: Mapping[str, Any]) -> str:
    for event, group in groups:
        text = jsonc.extend(text, (_HOOKS, event), [group])
    lacks = {key: each for key, each in besides.items() if jsonc.entry(text, (key,)) is None}
    return jsonc.put(text, (), lacks) if lacks else text


def _unhooked(text: str, groups: _Groups) -> str:
    for event, group in groups:
        text = jsonc.discard(text, (_HOOKS, event), group.__eq__)
        if jsonc.entry(text, (_HOOKS, event)) == []:
            text = jsonc.remove(text, (_HOOKS, event))
    is_empty = bool(groups) and jsonc.entry(text, (_HOOKS,)) == {}
    return jsonc.remove(text, (_HOOKS,)) if is_empty else text


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


def _read(path: Path) -> tuple[bytes | None, str]:
    """Return what a file holds, and the text that this is."""
    data = file.read(path, _MOST.get(path.suffix, file.MOST))
    return data, _decoded(path, data)


def _decoded(path: Path, data: bytes | None) -> str:
    """Return a file's text; a BOM stays in it."""
    if data is None:
        return ""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(path, "it is written in UTF-16", "save it as UTF-8 and try again")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        refused = Refused(len(before), "it is not text in UTF-8")
        raise _where(path, before, refused, "save it as UTF-8 and try again") from None


def _encoded(path: Path, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        reason = "the command or a variable holds bytes that are no text, which no client can read"
        raise ConfigError(path, reason) from None


def _where(path: Path, text: str, refused: Refused, remedy: str = "") -> ConfigError:
    line, column = position(text, refused.offset)
    return ConfigError(path, f"line {line}, column {column}: {refused.reason}", remedy)


@contextmanager
def _told(path: Path, text: str) -> Iterator[None]:
    """Have a refusal say where in the file it is."""
    try:
        yield
    except Refused as refused:
        raise _where(path, text, refused) from None


def _wanted(
    name: str,
    client: Client,
    current: Any,
    command: Sequence[str],
    variables: Mapping[str, str],
) -> dict[str, Any]:
    had = current if isinstance(current, dict) else {}
    extras = {"name": name, **client.extras} if client.named else client.extras
    wanted = {key: value for key, value in extras.items() if key not in had}
    if client.one_list:
        wanted[client.program] = list(command)
    else:
        wanted |= {client.program: command[0], "args": list(command[1:])}
    return wanted | ({client.environment: dict(variables)} if variables else {})


def _without(name: str, client: Client, path: Path) -> list[Change]:
    before, text = _read(path)
    keys, form = (*client.keys, name), _FORMS[client.form]
    with _told(path, text):
        current = form.entry(text, keys)
    if current is None:
        return []
    backups = Backups.of(path, name)
    first = file.original(backups)

    def again(old: str) -> str | None:
        return form.put(old, keys, current) if form.entry(old, keys) is None else None

    if _is_all_that_came(path, text, first, again):
        after = first
    else:
        with _told(path, text):
            left = form.remove(text, keys)
        emptied = left == _emptied(client, name) and not path.is_symlink()
        gone = emptied and _is_ours(name, client, path, first)
        after = None if gone else left.encode("utf-8")
    return [Change(client, path, backups, before, after, new=False)]


def _emptied(client: Client, name: str) -> str:
    """Return what is left of a file in which there was an entry and nothing else."""
    form, keys = _FORMS[client.form], (*client.keys, name)
    text: str = form.remove(form.put("", keys, {client.program: ""}), keys)
    return text


def _is_ours(name: str, client: Client, path: Path, first: bytes | None) -> bool:
    """Say whether a file's first state has entries of ours and nothing else, or there was none."""
    form = _FORMS[client.form]
    with suppress(Refused, ConfigError):
        text = _decoded(path, first)
        servers = form.entry(text, client.keys)
        for each in servers if isinstance(servers, dict) else ():
            if f"{each}-".startswith(f"{ENTRY}-"):
                text = form.remove(text, (*client.keys, each))
        return first is None or (bool(servers) and text == _emptied(client, name))
    return False


def _is_all_that_came(
    path: Path, text: str, first: bytes | None, again: Callable[[str], str | None]
) -> bool:
    """Say whether what is done `again` to a file's first state makes the text that it has now."""
    if first is None and path.is_symlink():
        return False
    with suppress(Refused, ConfigError, AttributeError):
        return again(_decoded(path, first)) == text
    return False


def _unusable(client: Client, error: ConfigError) -> Connection:
    problem = Problem(f"{error.path}: {error.reason}", error.remedy)
    return Connection(client, error.path, installed=True, problems=(problem,))


def _connections(client: Client, path: Path) -> list[Connection]:
    """Return how a file stands, once for each entry of ours; once where it has none."""
    try:
        _, text = _read(path)
        with _told(path, text):
            servers = _FORMS[client.form].entry(text, client.keys)
            if servers is not None and not isinstance(servers, dict):
                _FORMS[client.form].entry(text, (*client.keys, ENTRY))  # refuses, and says why
    except ConfigError as error:
        return [_unusable(client, error)]
    ours = {
        name: current
        for name, current in (servers or {}).items()
        if current is not None and f"{name}-".startswith(f"{ENTRY}-")
    }
    found = [_connection(client, path, name, current) for name, current in ours.items()]
    return found or [Connection(client, path, installed=True)]


def _connection(client: Client, path: Path, name: str, current: Any) -> Connection:
    command = _command(client, current)
    again = f"`aiaml install {client.name}` puts it right"
    problems = tuple(
        Problem(f"{path}: the entry {name} {what}", remedy)
        for what, remedy in _problems(current, command, again)
    )
    given = current.get(client.environment) if isinstance(current, dict) else None
    variables = {str(k): str(v) for k, v in given.items()} if isinstance(given, dict) else {}
    return Connection(client, path, True, True, command, problems, variables, name)


def connected(client: Client, machine: Machine) -> tuple[Path, dict[str, Mapping[str, str]]]:
    """Return the file that a client reads, and the environments of its entries by their names.

    Raises:
        ConfigError: there are several, and nothing says which one is in use.
    """
    path, _ = located(client, machine)
    found = _connections(client, path)
    return path, {each.name: each.variables for each in found if each.connected}


def besides(client: Client, machine: Machine) -> Iterator[Other]:
    """Yield how else a client has the program that our entry starts.

    That is a package of the client's own, or the file of the project of the current directory.
    """
    yield from packages(client, machine)
    path = Path.cwd() / client.project
    if not client.project or not path.is_file() or located(client, machine)[0] == path:
        return
    if any(each.name == ENTRY for each in _connections(client, path)):
        what = f"has it by the project's {client.project} as well, and starts one of the two here"
        yield Other(what, f"`aiaml uninstall {client.name} --project` takes the latter out")


def _command(client: Client, entry: Any) -> tuple[str, ...]:
    command = entry.get(client.program) if isinstance(entry, dict) else None
    if client.one_list:
        return tuple(map(str, command)) if isinstance(command, list) else ()
    if not isinstance(command, str):
        return ()
    words = entry.get("args")
    return (command, *(map(str, words) if isinstance(words, list) else ()))


def _problems(entry: Any, command: Sequence[str], again: str) -> list[tuple[str, str]]:
    if not command:
        return [("has no command", again)]
    found = []
    batch = [word for word in command[2:4] if word != "call"] if command[1:2] == ("/c",) else []
    program = Path((batch or command)[0])
    with suppress(RuntimeError):  # ~ without a home
        program = program.expanduser()
    if not program.is_absolute():
        if not find(command[0]):
            found.append((f"starts {command[0]}, which is not on the PATH", again))
    elif not program.is_file():
        found.append((f"starts {program}, which is not there", again))
    elif not os.access(program, os.X_OK):
        found.append((f"starts {program}, which may not be executed", again))
    if entry.get("disabled") is True or entry.get("enabled") is False:
        found.append(("is switched off there", "switch it on in the client, or in the file"))
    return found
