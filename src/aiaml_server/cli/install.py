"""`aiaml install` and `aiaml uninstall`: entries and hooks in the configuration of AI clients."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from aiaml_server import clients, toolsets
from aiaml_server.cli.context import changed_lines
from aiaml_server.clients import (
    BY_NAME,
    ENTRY,
    Change,
    Client,
    ConfigError,
    Connection,
    Machine,
    launch,
)
from aiaml_server.identity import is_trusted_base, trust
from aiaml_server.settings import MEMORY_DIR, Settings, parse_directory
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    bold,
    echo,
    echo_json,
    json_option,
    notify,
    safe,
    wrap,
)
from aiaml_server.toolsets import DEFAULT

_ADDRESS = re.compile(r"(\w://)[^/@\s\"']+@")
_SECRET = re.compile(
    r"([\w-]*(?:KEY|TOKEN|SECRET|PASSWORD)[\w-]*\"?\s*[:=]\s*)\"[^\"]+\"", re.IGNORECASE
)
_TOOLSETS = toolsets.TOOLSETS.name

Undoable = tuple[Change, Sequence[str]]
"""A change, and the commands that undo it."""
_HOOK_OPTIONS = re.compile(r"(--toolset \w+(?: --dir (?:'[^']+'|[^'\"\\]+))?)")

_names = click.argument("names", metavar="[CLIENT]...", nargs=-1, type=click.Choice([*BY_NAME]))
_list = click.option("--list", "listing", is_flag=True, help="List the clients and their entries.")
_project = click.option(
    "--project",
    metavar="[DIR]",
    is_flag=False,
    flag_value=".",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Use the file of a project (of this directory by default) instead of your own.",
)
_hooks = click.option(
    "--hooks",
    is_flag=True,
    help="Only hooks, which show memories without being asked: claude-code, codex, gemini, cursor.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, write nothing.")


@click.command("install")
@_names
@click.option("--all", "everything", is_flag=True, help="Connect every client that is found here.")
@_list
@click.option(
    "--print",
    "printed",
    metavar="CLIENT",
    type=click.Choice([*BY_NAME, "generic"]),
    help="Print what to add by hand; `generic` suits most other clients.",
)
@click.option(
    "--toolset", "served", metavar="NAME", multiple=True, help="Serve this toolset as well."
)
@click.option(
    "--env", "pairs", metavar="NAME=VALUE", multiple=True, help="Set a variable in the entry."
)
@click.option("--dir", "directory", metavar="DIR", help="Use the memories in this directory.")
@_project
@_hooks
@_dry_run
@json_option
def install(
    names: Sequence[str],
    everything: bool,
    listing: bool,
    printed: str | None,
    served: Sequence[str],
    pairs: Sequence[str],
    directory: str | None,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Connect AI clients by an entry in their configuration files.

    \b
    Clients:
      claude-desktop, claude-code, cursor, vscode, vscode-insiders, codex,
      gemini, windsurf, zed

    Only our entry is written. A backup of the file is kept beside it. The AIAML_... variables of
    your shell are copied into the entry, because most clients do not inherit them. Run the command
    again to update the entry.

    A project's file gets only the settings that you name, not those of your shell. Each toolset
    gets an entry of its own there, such as aiaml-citations.

    \b
    Examples:
      aiaml install cursor claude-code
      aiaml install --all --dry-run
      aiaml install cursor --toolset citations
      aiaml install zed --env AIAML_LOG_LEVEL=DEBUG
      aiaml install claude-code --project --dir ~/work/memory
      aiaml install claude-code --hooks
      aiaml install --print generic
    """
    if sum(map(bool, (names, everything, listing, printed))) != 1:
        raise click.UsageError("name clients, or use one of --all, --list and --print CLIENT")
    machine = clients.this_machine()
    if listing:
        return _show_clients(machine, project, json)
    variables = _variables(served, pairs, directory, is_project=project is not None)
    if printed:
        client = BY_NAME.get(printed, clients.CLIENTS[0])
        echo(_snippet(client, variables, served))
        if printed in BY_NAME:
            notify(f"Add this to {client.find(machine)[0]}. *** stands for a password.")
        return EXIT_OK
    found = [client.name for client in clients.CLIENTS if client.find(machine)[1]]
    chosen = _chosen(found if everything else names, project, hooks=hooks)
    words = ["--hooks"] if hooks else ["--project", str(project)] if project else []

    def connect(client: Client) -> Iterator[Undoable]:
        changes = (_add_hooks if hooks else _entry)(client, machine, served, variables)
        for number, change in enumerate(changes):
            removal = f"aiaml uninstall {shlex.join([client.name, *words])}"
            before = _install_commands(client, machine, change, hooks=hooks)
            # The first undoes them all.
            yield change, [] if number else [" && ".join([removal, *before])]

    done, by_hand = ("set up with hooks", None) if hooks else ("connected", variables)
    code = _apply(chosen, connect, done, dry_run, by_hand, served)
    if not (dry_run or project or hooks):
        from aiaml_server.server.handshake import write_in_background  # noqa: PLC0415 (slow)

        write_in_background(toolsets.chosen([], variables))  # so that no client waits for them
        settings = Settings.from_environ(variables)
        base = settings.base
        if base.is_dir() and not is_trusted_base(base, settings.remote):
            where = f"{base} was made on another computer or by somebody else."
            question = safe(f"{where} Use its history and sync?")
            if sys.stdin.isatty() and click.confirm(question, err=True):
                trust(base)
            else:
                notify(f"{where} `aiaml trust` lets its history be used and sent.")
    return code


@click.command("uninstall")
@_names
@click.option("--all", "everything", is_flag=True, help="Every client that is connected.")
@_project
@_hooks
@_dry_run
def uninstall(
    names: Sequence[str],
    everything: bool,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
) -> int:
    """Remove our entries from AI clients' configuration files.

    No memory is touched. A file that was not edited since `aiaml install` becomes exactly what it
    was before.

    \b
    Examples:
      aiaml uninstall cursor
      aiaml uninstall --all --dry-run
      aiaml uninstall claude-code --hooks
    """
    if bool(names) == everything:
        raise click.UsageError("name clients, or use --all")
    machine = clients.this_machine()
    every = [client.name for client in clients.CLIENTS if client.project_file or not project]
    chosen = _chosen(names or ([*clients.HOSTS] if hooks else every), project, hooks=hooks)

    def disconnect(client: Client) -> Iterator[Undoable]:
        remove = clients.remove_hooks if hooks else clients.disconnect
        for change in remove(client, machine):
            yield change, _install_commands(client, machine, change, hooks=hooks)

    return _apply(chosen, disconnect, "without hooks" if hooks else "disconnected", dry_run)


def _install_commands(
    client: Client, machine: Machine, change: Change, *, hooks: bool
) -> list[str]:
    """Return the commands that install the present entries or hooks of a file again."""
    options = [
        _options(entry)
        for entry in clients.connections(machine, [client])
        if entry.path == change.path and entry.name
    ]
    if hooks:
        found = _HOOK_OPTIONS.findall((change.before or b"").decode())
        options = [f"--hooks {option}" for option in dict.fromkeys(found)]
    return [f"aiaml install {client.name} {option}".rstrip() for option in options]


def _options(entry: Connection) -> str:
    """Return the options of `aiaml install` that make this entry, and a remark on its passwords.

    A shell refuses the remark, so that no entry without them is written.
    """
    project = entry.client.project
    words = ["--project", str(project)] if project else []
    hidden = []
    for toolset in entry.name.split("-")[1:]:
        words += ["--toolset", toolset]
    for name, value in entry.variables.items():
        pair = f'{name}="{value}"'
        if _masked(pair) == pair:
            words += ["--env", f"{name}={value}"]
        else:
            hidden.append(name)
    remark = f" (add --env for {', '.join(hidden)}: not shown here)" if hidden else ""
    return shlex.join(words) + remark


def _chosen(names: Sequence[str], project: Path | None, *, hooks: bool) -> list[Client]:
    """Return the clients with these names; with a project, those of its files.

    Raises:
        UsageError: one of them starts no hooks, or reads no file of a project.
    """
    if hooks and (project or not set(names) <= clients.HOSTS.keys()):
        raise click.UsageError(f"--hooks goes with these clients: {', '.join(clients.HOSTS)}")
    found = [BY_NAME[name] for name in dict.fromkeys(names)]
    if project is None:
        return found
    for client in found:
        if not client.project_file:
            raise click.UsageError(f"{client.title} reads no file of a project")
    return [client.in_project(project) for client in found]


def _variables(
    served: Sequence[str], pairs: Sequence[str], directory: str | None, *, is_project: bool
) -> dict[str, str]:
    """Return the variables of an entry: those of the shell (not for a project) and of the options.

    Raises:
        InvalidSetting: a setting, or the name of a toolset, cannot be used.
        UsageError: a pair has no `=`.
    """
    variables: dict[str, str] = {}
    if not is_project:
        ours = re.compile("AIAML_(?!LAUNCHER$)")
        variables = {
            name: value for name, value in sorted(os.environ.items()) if value and ours.match(name)
        }
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"--env takes NAME=VALUE, not {pair!r}")
        variables[name] = value
    if directory:
        parse_directory("--dir", directory)
        variables[MEMORY_DIR] = directory
    settings = Settings.from_environ(variables)
    if MEMORY_DIR in variables and not is_project:
        variables[MEMORY_DIR] = str(settings.base)
    toolsets.chosen(served, variables)
    return variables


def _entry_variables(client: Client, machine: Machine) -> Mapping[str, str]:
    """Return the variables of the client's present entry."""
    entries = clients.connections(machine, [client])
    return next((entry.variables for entry in entries if entry.name == ENTRY), {})


def _entry(
    client: Client, machine: Machine, served: Sequence[str], variables: Mapping[str, str]
) -> Iterator[Change]:
    """Yield the change that connects a client; toolsets are added to what its entry serves."""
    name = ENTRY
    present = _entry_variables(client, machine).get(_TOOLSETS, DEFAULT)
    if client.project:
        name = "-".join([ENTRY, *(toolset for toolset in served if toolset != DEFAULT)])
    variables = _serving(variables, served, "" if client.project else present)
    make_command = launch.portable_command if client.project else launch.command
    command = make_command(variables.get(_TOOLSETS, present))
    yield clients.connect(client, machine, command, variables, name)


def _serving(
    variables: Mapping[str, str], served: Sequence[str], present: str = DEFAULT
) -> Mapping[str, str]:
    """Return the variables of an entry that serves more toolsets than at present."""
    if not served:
        return variables
    names = ",".join([variables.get(_TOOLSETS, present), *served])
    return {**variables, _TOOLSETS: ",".join(toolsets.known(toolsets.OPTION, names))}


def _snippet(client: Client, variables: Mapping[str, str], served: Sequence[str]) -> str:
    """Return an entry to be added by hand, with masked passwords."""
    variables = _serving(variables, served)
    command = launch.command(variables.get(_TOOLSETS, ""))
    return _masked(clients.snippet(client, command, variables)).rstrip("\n")


def _add_hooks(
    client: Client, machine: Machine, served: Sequence[str], variables: Mapping[str, str]
) -> Iterator[Change]:
    """Yield the changes that add the hooks of toolsets to a client."""
    base = variables.get(MEMORY_DIR) or _entry_variables(client, machine).get(MEMORY_DIR, "")
    for toolset in served or [DEFAULT]:
        events = toolsets.manifest(toolset).hooks
        yield clients.add_hooks(client.name, machine, toolset, events, base)


def _apply(
    chosen: Sequence[Client],
    make_changes: Callable[[Client], Iterator[Undoable]],
    done: str,
    dry_run: bool,
    by_hand: Mapping[str, str] | None = None,
    served: Sequence[str] = (),
) -> int:
    """Save the changes of each client, then print what was done.

    Nothing is printed before everything is saved, so a closed pipe cannot interrupt it.

    Args:
        chosen: the clients.
        make_changes: yields the changes of one client.
        done: what a client is afterwards, such as "connected".
        dry_run: whether the changes are only shown.
        by_hand: the variables of an entry that is printed where a file refuses it.
        served: the toolsets that it serves besides.

    Returns:
        The exit code.
    """
    lines: list[str] = []
    code = EXIT_OK
    for client in chosen:
        try:
            for change, undo in make_changes(client):
                if change.before == change.after:
                    lines.append(f"{bold(client.title)} is already {done}: {change.path}")
                elif dry_run:
                    texts = [
                        (data or b"").decode("utf-8", "replace")
                        for data in (change.before, change.after)
                    ]
                    lines += [bold(str(change.path)), *changed_lines(*map(_masked, texts))]
                else:
                    backup = clients.save(change)
                    lines.append(f"{bold(client.title)} is {done}: {change.path}")
                    note = "; do not commit it" if client.project else ""
                    lines += [f"  Backup: {backup}{note}"] if backup else []
                    lines += [f"  {client.next_step}"] if by_hand is not None else []
                    lines += [f"  Undo: {command}" for command in undo]
        except ConfigError as error:
            code = EXIT_FAILED
            lines.append(f"{client.title}: {error}. Nothing was changed.")
            if by_hand is not None:
                lines += ["Add this by hand:", *_snippet(client, by_hand, served).splitlines()]
    if dry_run:
        lines.append("Nothing was written.")
    elif lines:
        lines += [_masked(f'With {name}="{value}"') for name, value in (by_hand or {}).items()]
    for line in lines or ["Nothing to do. `aiaml install --list` shows which clients were found."]:
        echo(wrap(line, 2))
    return code


def _show_clients(machine: Machine, project: Path | None, json: bool) -> int:
    among: Sequence[Client] = clients.CLIENTS
    if project:
        among = [client.in_project(project) for client in among if client.project_file]
    rows = [
        {
            "client": entry.client.name,
            "state": "connected" if entry.name else "found" if entry.installed else "not found",
            "file": str(entry.path),
            "entry": entry.name,
            "command": entry.command,
            "problem": entry.problem,
        }
        for entry in clients.connections(machine, among)
    ]
    if json:
        echo_json(rows)
        return EXIT_OK
    for row in rows:
        echo(f"{row['client']:15}  {row['state']:9}  {row['file']}")
        if row["problem"]:
            echo(wrap(f"  {row['problem']}", 2))
    return EXIT_OK


def _masked(text: str) -> str:
    """Mask passwords in addresses, and values of variables with names like API_KEY."""
    return _SECRET.sub(r'\1"***"', _ADDRESS.sub(r"\1***@", text))
