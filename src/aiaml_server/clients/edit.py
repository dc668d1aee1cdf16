"""Connect and disconnect clients, and report the state of our entries in their files.

Only entries of ours are touched. Every other byte of a file stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from aiaml_server.clients import files, jsonc
from aiaml_server.clients.registry import CLIENTS, Client, Machine
from aiaml_server.clients.text import ConfigError, RefusedEdit, dig, has_content
from aiaml_server.storage.programs import find

ENTRY = "aiaml"
"""The name of our entry. Further ones in a project's file are called `aiaml-` and a toolset."""


class Change(NamedTuple):
    """A planned edit of one file. Nothing is written before `save`.

    Attributes:
        path: the file.
        before: what it holds; None if it does not exist.
        after: what it is to hold; None if it is to be deleted.
        purpose: what the edit is for, such as `aiaml`. The backup has it in its name.
        is_new: whether the file has nothing of ours yet.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    purpose: str = ENTRY
    is_new: bool = False


class Connection(NamedTuple):
    """The state of one client.

    Attributes:
        path: the file, or where it would be.
        installed: whether the client was found on this machine.
        name: the name of our entry; empty if there is none.
        command: what the entry starts.
        problem: what is wrong with the entry or the file, as a sentence; empty if nothing is.
        variables: the environment that the entry gives the server.
    """

    client: Client
    path: Path
    installed: bool
    name: str
    command: tuple[str, ...]
    problem: str
    variables: Mapping[str, str]


def connect(
    client: Client,
    machine: Machine,
    command: Sequence[str],
    variables: Mapping[str, str],
    name: str = ENTRY,
) -> Change:
    """Return the change that adds or updates the entry that starts `command`.

    What an existing entry has besides, such as other environment variables, stays.

    Raises:
        ConfigError: the file cannot be read, or not be edited safely.
    """
    path, _ = client.find(machine)
    with files.opened(path) as (before, text):
        ours = _entries(client, text)
        entry = _entry(client, ours.get(name), command, variables)
        after = text if ours.get(name) == entry else _put(client, text, name, entry)
    return Change(path, before, after.encode(), is_new=not ours)


def disconnect(client: Client, machine: Machine) -> list[Change]:
    """Return the changes that remove our entries from all files of a client.

    A file that nobody has edited since `connect` gets back its original bytes. A file that
    `connect` made is deleted.

    Raises:
        ConfigError: a file cannot be read, or not be edited safely.
    """
    changes = []
    for path in client.existing(machine):
        with files.opened(path) as (before, text):
            ours = _entries(client, text)
            if ours:
                changes.append(Change(path, before, _without(client, path, text, ours)))
    return changes


def backup_of(path: Path, purpose: str = ENTRY) -> Path:
    """Return the path of the backup that is made before our first edit for a purpose."""
    return path.with_name(f"{path.name}.{purpose}-backup")


def save(change: Change) -> Path | None:
    """Write a change. Return the backup of the file, if there is one afterwards.

    Raises:
        ConfigError: the file has changed since it was read, or cannot be written.
    """
    backup = backup_of(change.path, change.purpose)
    first = files.read(backup)
    is_first = change.is_new or first is None
    files.replace(change.path, change.before, change.after, backup if is_first else None)
    if change.after in (None, first):
        backup.unlink(missing_ok=True)
    return backup if backup.exists() else None


def connections(machine: Machine, among: Sequence[Client] = CLIENTS) -> Iterator[Connection]:
    """Yield the state of each client: every entry of ours in each of its files."""
    for client in among:
        preferred, installed = client.find(machine)
        for path in client.existing(machine) or [preferred]:
            try:
                with files.opened(path) as (_, text):
                    entries = _entries(client, text) or {"": {}}
                    found = [
                        _connection(client, path, installed, *entry) for entry in entries.items()
                    ]
            except ConfigError as error:
                found = [Connection(client, path, installed, "", (), f"{error}.", {})]
            yield from found


def snippet(client: Client, command: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return what to add to a client's file by hand."""
    return _put(client, "", ENTRY, _entry(client, None, command, variables))


def project_variables(directory: Path) -> Mapping[str, str]:
    """Return the environment of our entry in the files of a project; empty if there is none."""
    machine = Machine("", directory, {})
    clients = [client.in_project(directory) for client in CLIENTS if client.project_file]
    entries = connections(machine, [client for client in clients if client.existing(machine)])
    return next((entry.variables for entry in entries if entry.name == ENTRY), {})


def _form(client: Client) -> ModuleType:
    if not client.is_toml:
        return jsonc
    from aiaml_server.clients import toml  # noqa: PLC0415 (slow, and only Codex needs it)

    return toml


def _put(client: Client, text: str, name: str, entry: Mapping[str, Any]) -> str:
    new: str = _form(client).put(text, (client.servers_key, name), entry)
    return new


def _entries(client: Client, text: str) -> dict[str, Any]:
    """Return our entries in a file, by their names, in the order of the file."""
    servers = dig(_form(client).load(text), (client.servers_key,)) or {}
    return {name: entry for name, entry in servers.items() if name.partition("-")[0] == ENTRY}


def _entry(
    client: Client, present: Any, command: Sequence[str], variables: Mapping[str, str]
) -> dict[str, Any]:
    """Return an entry that starts a command, with other keys of the present entry."""
    entry = {**client.extras, **(present or {}), "command": command[0], "args": list(command[1:])}
    if variables:
        entry["env"] = {**(entry.get("env") or {}), **variables}
    return entry


def _without(client: Client, path: Path, text: str, ours: Mapping[str, Any]) -> bytes | None:
    """Return the content of a file without our entries; None if it is to be deleted."""
    form, first = _form(client), files.read(backup_of(path))
    with suppress(RefusedEdit, UnicodeDecodeError):  # the original file may be another by now
        original = again = (first or b"").decode()
        for name, entry in ours.items():
            again = _put(client, again, name, entry)
        if again == text and not _entries(client, original):
            return first
    for name in ours:
        text = form.remove(text, (client.servers_key, name))
    return text.encode() if has_content(text) else None


def _connection(
    client: Client, path: Path, installed: bool, name: str, entry: Mapping[str, Any]
) -> Connection:
    """Return the state of an entry, or of a file without one if `name` is empty."""
    program = str(entry.get("command", ""))
    problem = ""
    if name and not find(program):
        what = f"the entry {name} starts {program or 'nothing'}, which was not found"
        problem = f"{path}: {what}; `aiaml install {client.name}` repairs it."
    command = (program, *map(str, entry.get("args") or ()))
    return Connection(client, path, installed, name, command, problem, entry.get("env") or {})
