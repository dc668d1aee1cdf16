"""`aiaml install` and `aiaml uninstall`: entries and hooks in the configuration of AI clients."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path

import click

from aiaml_server import clients, toolsets
from aiaml_server.clients import BY_NAME, ENTRY, Change, Client, ConfigError, Machine, launch
from aiaml_server.identity import is_trusted_base, trust
from aiaml_server.settings import MEMORY_DIR, Settings
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    bold,
    echo,
    echo_json,
    json_option,
    notify,
    styled,
    wrap,
)
from aiaml_server.toolsets import DEFAULT

_COLOURS = {"+": "green", "-": "red"}
_SHOWN_CHARACTERS = 2_000  # of a line in a diff
_ADDRESS = re.compile(r"(\w://)[^/@\s\"']+@")
_SECRET = re.compile(
    r"([\w-]*(?:KEY|TOKEN|SECRET|PASSWORD)[\w-]*\"?\s*[:=]\s*)\"[^\"]+\"", re.IGNORECASE
)

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
    help="Only the hooks that show memories by themselves: claude-code, codex, gemini, cursor.",
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

    In a project's file nothing of this computer is written but what you name. Toolsets get an entry
    of their own there, such as aiaml-citations.

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
    if listing:
        return _show_clients(json)
    machine = clients.this_machine()
    variables = _variables(served, pairs, directory, is_project=project is not None)
    if printed:
        return _print(printed, machine, variables)
    found = [client.name for client in clients.CLIENTS if client.find(machine)[1]]
    chosen = _chosen(found if everything else names, project, hooks=hooks)
    if not chosen:
        notify("No client was found. `aiaml install --list` shows where each was looked for.")
        return EXIT_FAILED

    def connect(client: Client) -> Iterator[Change]:
        if hooks:
            return _add_hooks(client, machine, served, variables.get(MEMORY_DIR, ""))
        return iter([_entry(client, machine, served, variables)])

    if hooks:
        return _apply(chosen, connect, "set up with hooks", "aiaml uninstall {} --hooks", dry_run)
    undo = f"aiaml uninstall {{}}{' --project' if project else ''}"
    code = _apply(chosen, connect, "connected", undo, dry_run, by_hand=variables)
    if not (dry_run or project):
        _write_handshake(variables)
        _ask_trust(Settings.from_environ(variables))
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
    every = [each.name for each in clients.CLIENTS if each.project_file or not project]
    chosen = _chosen(names or ([*clients.HOSTS] if hooks else every), project, hooks=hooks)

    def disconnect(client: Client) -> Iterator[Change]:
        if hooks:
            yield clients.remove_hooks(client.name, machine)
        else:
            yield from clients.disconnect(client, machine)

    done, undo = ("without hooks", "{} --hooks") if hooks else ("disconnected", "{}")
    return _apply(chosen, disconnect, done, f"aiaml install {undo}", dry_run)


def _chosen(names: Sequence[str], project: Path | None, *, hooks: bool) -> list[Client]:
    """Return the clients of these names; with a project, as they are configured there.

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
    """Return the variables of an entry: those of the shell, unless it is for a project, and more.

    Raises:
        InvalidSetting: a setting, or the name of a toolset, cannot be used.
        UsageError: a pair is none.
    """
    variables: dict[str, str] = {}
    if not is_project:
        ours = [name for name in sorted(os.environ) if name.startswith("AIAML_")]
        variables = {name: os.environ[name] for name in ours if os.environ[name]}
        variables.pop("AIAML_LAUNCHER", None)
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"--env takes NAME=VALUE, not {pair!r}")
        variables[name] = value
    if directory:
        variables[MEMORY_DIR] = directory
    settings = Settings.from_environ(variables)
    if settings.remote_error:
        raise settings.remote_error
    if MEMORY_DIR in variables and not is_project:
        variables[MEMORY_DIR] = str(settings.base)
    toolsets.chosen(served, variables)
    return variables


def _entry_variables(client: Client, machine: Machine) -> Mapping[str, str]:
    """Return the variables of the client's present entry."""
    entries = clients.connections(machine, [client])
    return next((each.variables for each in entries if each.name == ENTRY), {})


def _entry(
    client: Client, machine: Machine, served: Sequence[str], variables: Mapping[str, str]
) -> Change:
    """Return the change that connects a client; toolsets are added to what its entry serves."""
    key = toolsets.TOOLSETS.name
    name, more = ENTRY, {}
    if served:
        present = variables.get(key) or _entry_variables(client, machine).get(key) or DEFAULT
        wanted = served if client.project else [present, *served]
        more = {key: ",".join(toolsets.known(toolsets.OPTION, ",".join(wanted)))}
    if client.project:
        name = "-".join([ENTRY, *(toolset for toolset in served if toolset != DEFAULT)])
    command = launch.portable_command() if client.project else launch.command()
    return clients.connect(client, machine, command, {**variables, **more}, name)


def _add_hooks(
    client: Client, machine: Machine, served: Sequence[str], base: str
) -> Iterator[Change]:
    """Yield the changes that have a client start the hooks of toolsets."""
    base = base or _entry_variables(client, machine).get(MEMORY_DIR, "")
    for toolset in served or [DEFAULT]:
        events = toolsets.manifest(toolset).hooks
        yield clients.add_hooks(client.name, machine, toolset, events, base)


def _apply(
    chosen: Sequence[Client],
    make_changes: Callable[[Client], Iterator[Change]],
    done: str,
    undo: str,
    dry_run: bool,
    by_hand: Mapping[str, str] | None = None,
) -> int:
    """Save the changes of each client, and print what was done at the end: the reader may leave.

    Args:
        chosen: the clients.
        make_changes: yields the changes of one client.
        done: what a client is afterwards, such as "connected".
        undo: the command that reverses it, with `{}` for the clients.
        dry_run: whether the changes are only shown.
        by_hand: the variables of an entry that is printed where a file refuses it.

    Returns:
        The exit code.
    """
    lines: list[str] = []
    changed: list[str] = []
    code = EXIT_OK
    for client in chosen:
        try:
            for change in make_changes(client):
                lines += _difference(change) if dry_run else _saved(client, change, done)
                changed += [client.name] if change.before != change.after else []
        except ConfigError as error:
            code = EXIT_FAILED
            lines.append(f"{client.title}: {error}. Nothing was changed.")
            if by_hand is not None:
                text = clients.snippet(client, launch.command(), by_hand)
                lines += ["Add this by hand:", *_masked(text).splitlines()]
        if by_hand is not None and client.name in changed:
            lines.append(f"  {client.next_step}")
    if dry_run:
        lines.append("Nothing was written.")
    elif changed:
        lines += [_masked(f'With {name}="{value}"') for name, value in (by_hand or {}).items()]
        lines.append(f"Undo: {undo.format(' '.join(dict.fromkeys(changed)))}")
    for line in lines or ["Nothing to do."]:
        echo(wrap(line, 2))
    return code


def _saved(client: Client, change: Change, done: str) -> list[str]:
    """Save a change; return the lines that tell what was done."""
    if change.before == change.after:
        return [f"{bold(client.title)} is already {done}: {change.path}"]
    backup = clients.save(change)
    lines = [f"{bold(client.title)} is {done}: {change.path}"]
    return [*lines, f"  Backup: {backup}"] if backup else lines


def _difference(change: Change) -> list[str]:
    """Return what a change does as `diff -u` shows it, with masked passwords."""
    old = (change.before or b"").decode("utf-8", "replace").splitlines()
    new = (change.after or b"").decode("utf-8", "replace").splitlines()
    lines = unified_diff(old, new, str(change.path), str(change.path), lineterm="")
    return [styled(_masked(line)[:_SHOWN_CHARACTERS], _COLOURS.get(line[0])) for line in lines]


def _print(name: str, machine: Machine, variables: Mapping[str, str]) -> int:
    """Print an entry to be added by hand."""
    client = BY_NAME.get(name, clients.CLIENTS[0])
    echo(_masked(clients.snippet(client, launch.command(), variables)).rstrip("\n"))
    if name in BY_NAME:
        notify(f"Add this to {client.find(machine)[0]}. *** stands for a password.")
    return EXIT_OK


def _show_clients(json: bool) -> int:
    rows = [
        {
            "client": each.client.name,
            "state": "connected" if each.name else "found" if each.installed else "not found",
            "file": str(each.path),
            "entry": each.name,
            "command": each.command,
            "problem": each.problem,
        }
        for each in clients.connections(clients.this_machine())
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
    """Hide passwords in addresses, and the values of variables that are called like secrets."""
    return _SECRET.sub(r'\1"***"', _ADDRESS.sub(r"\1***@", text))


def _write_handshake(variables: Mapping[str, str]) -> None:
    """Have the first answers of the server prepared, so that no client waits for them."""
    from aiaml_server.server.handshake import Handshake, write_in_background  # noqa: PLC0415 (slow)

    manifests = toolsets.chosen([], variables)
    if not Handshake(manifests).is_cached:
        write_in_background(manifests)


def _ask_trust(settings: Settings) -> None:
    """Ask whether a memory directory that was made on another computer is trusted."""
    base = settings.base
    if not base.is_dir() or is_trusted_base(base, settings.remote):
        return
    question = f"{base} was made on another computer or by somebody else. Use its history and sync?"
    if sys.stdin.isatty() and click.confirm(question, err=True):
        trust(base)
    else:
        notify(f"{base} was made elsewhere. `aiaml trust` lets its history be used and sent.")
