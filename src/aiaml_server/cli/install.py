"""`install`, `uninstall`: AIAML in the configuration of AI clients."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from aiaml_server import clients, toolsets
from aiaml_server.clients import CLIENTS, Change, Client, ConfigError, Connection, launch
from aiaml_server.clients.entry import ENTRY, machine
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import Settings
from aiaml_server.terminal import (
    DONE,
    NOTHING,
    REFUSED,
    as_json,
    bold,
    dim,
    joined,
    note,
    out,
    out_json,
    styled,
    wrapped,
)

BY_NAME = {client.name: client for client in CLIENTS}
NAMES = click.Choice(list(BY_NAME))

with_hooks = click.option(
    "--hooks",
    is_flag=True,
    help="What the client starts by itself, instead of the entry: claude-code, codex, gemini.",
)
dry_run = click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
listed = click.option(
    "--list", "listing", is_flag=True, help="List the clients and how each stands."
)
in_project = click.option(
    "--project",
    metavar="[DIR]",
    is_flag=False,
    flag_value=".",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="In the file of a project (that of this directory if none is named), for all who open it.",
)


@click.command("install")
@click.argument("names", metavar="[CLIENT]...", nargs=-1, type=NAMES)
@click.option("--all", "everything", is_flag=True, help="Every client that is found here.")
@listed
@click.option(
    "--print",
    "printed",
    metavar="CLIENT",
    type=click.Choice([*BY_NAME, "generic"]),
    help="Print what to put in by hand; `generic` suits most clients.",
)
@click.option(
    "--toolset",
    "served",
    metavar="NAME",
    multiple=True,
    help="Have the entry serve this toolset, and no other; can be given several times.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Have the entry serve the memories of this directory: a path, or a name in `aiaml dirs`.",
)
@in_project
@with_hooks
@dry_run
@as_json
def install(
    names: Sequence[str],
    everything: bool,
    listing: bool,
    printed: str | None,
    served: Sequence[str],
    directory: str | None,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Connect AI clients, by an entry in their configuration files.

    \b
    Clients:
      claude-desktop, claude-code, cursor, vscode, vscode-insiders, codex,
      gemini, windsurf, zed, antigravity, copilot, cline, junie, jetbrains, kiro, goose,
      lm-studio, opencode

    Only the entry `aiaml` is written; all else in a file stays as it is, and
    the file as it was is kept beside it. The variables AIAML_... that are set
    now go into the entry. Doing it again brings the entry up to date. For Goose,
    what to put in by hand is printed. With --hooks, memories that a prompt is
    about come by themselves (docs/hooks.md); nothing else installs hooks.

    \b
    Examples:
      aiaml install cursor claude-code
      aiaml install --all --dry-run
      aiaml install zed --dir ~/work/memory
      aiaml install --print generic
      aiaml install cursor --toolset aiaml
      aiaml install claude-code --project
      aiaml install claude-code --hooks
    """
    if json and not listing:
        raise click.UsageError("--json goes with --list")
    if sum(map(bool, (names, everything, listing, printed))) != 1:
        raise click.UsageError("name clients, or say --all, --list or --print CLIENT")
    if project and not names:
        raise click.UsageError("--project goes with clients that are named")
    if listing or hooks:
        more = project or served or directory
        return _list(json) if listing else _hooks(names, more, dry_run, put=True)
    if directory is not None:
        from aiaml_server.cli.dirs import choose  # noqa: PLC0415 (reads the files of all clients)

        choose(directory)
    variables = _variables(os.environ, served)
    if printed:
        return _print(printed, variables)
    here = machine()
    wanted = _named(names, project) or _found(here)
    if not wanted:
        note("No client was found here; `aiaml install --list` shows where each was looked for.")
        return NOTHING
    command = launch.command()

    def one(client: Client) -> int:
        if client.form == "yaml":
            note(wrapped(f"{client.title} is connected by hand: AIAML edits no YAML.", 2))
            return _print(client.name, variables)
        change = clients.connect(ENTRY, client, here, command, variables)
        return _connect(change, clients.located(ENTRY, client, here)[1], variables, dry_run)

    return _each(wanted, one)


@click.command("uninstall")
@click.argument("names", metavar="[CLIENT]...", nargs=-1, type=NAMES)
@click.option("--all", "everything", is_flag=True, help="Every client that is connected.")
@listed
@in_project
@with_hooks
@dry_run
@as_json
def uninstall(
    names: Sequence[str],
    everything: bool,
    listing: bool,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Take the entry out of AI clients' files again.

    No memory is touched. A file that was not edited since `aiaml install`
    becomes again exactly what it was before.

    \b
    Examples:
      aiaml uninstall cursor
      aiaml uninstall --all --dry-run
      aiaml uninstall --list
      aiaml uninstall claude-code --hooks
    """
    if json and not listing:
        raise click.UsageError("--json goes with --list")
    if sum(map(bool, (names, everything, listing))) != 1:
        raise click.UsageError("name clients, or say --all or --list")
    if project and not names:
        raise click.UsageError("--project goes with clients that are named")
    if listing:
        return _list(json)
    if hooks:
        return _hooks(names, project, dry_run, put=False)
    here = machine()
    if everything:
        names = [one.client.name for one in clients.connections(ENTRY, here) if one.connected]
    if not names:
        note("No client is connected.")
        return NOTHING

    def one(client: Client) -> int:
        changes = clients.disconnect(ENTRY, client, here)
        if not changes:
            note(f"{client.title} is not connected.")
        return max([_disconnect(change, dry_run) for change in changes], default=NOTHING)

    return _each(_named(names, project), one)


def _hooks(names: Sequence[str], more: object, dry_run: bool, *, put: bool) -> int:
    """Put hooks into the settings of clients that are named, or take them out.

    Raises:
        UsageError: one of them starts none that we serve, or more was asked for.
    """
    from aiaml_server.cli.hooks import HOSTS, hooked, unhooked  # noqa: PLC0415 (a verb's rare half)

    if more or not names or any(name not in HOSTS for name in names):
        raise click.UsageError(
            f"--hooks goes alone with clients that are named: {joined([*HOSTS])}"
        )
    here = machine()

    def one(client: Client) -> int:
        change = hooked(client, here, os.environ) if put else unhooked(client, here)
        if change.before == change.after:
            state = "has its hooks already" if put else "has no hooks of AIAML"
            note(wrapped(f"{client.title} {state}: {change.path}", 2))
            return DONE if put else NOTHING
        if dry_run:
            return _show(change)
        kept = clients.save(change)
        done = "has hooks" if put else "has no hooks of AIAML any more"
        out(wrapped(f"{bold(client.title)} {done}: {change.path}", 2))
        if kept:
            out(wrapped(f"  as it was, the file is kept in {kept}"))
        if put:
            out(
                wrapped(
                    "  A new session is told what is remembered; AIAML_HOOKS=false turns it off"
                )
            )
        return DONE

    return _each(_named(names, None), one)


def _named(names: Sequence[str], project: Path | None) -> list[Client]:
    """Return the clients of these names, each once; as they are in a project, if there is one.

    Raises:
        UsageError: one of them reads no file of a project.
    """
    found = [BY_NAME[name] for name in dict.fromkeys(names)]
    for client in found if project else ():
        if not client.project:
            raise click.UsageError(f"{client.title} reads no file of a project")
    return [client.within(project) for client in found] if project else found


def _each(wanted: Sequence[Client], one: Callable[[Client], int]) -> int:
    """Do one after the other, also after a failure; return the worst exit code."""
    worst = DONE
    for client in wanted:
        try:
            code = one(client)
        except ConfigError as error:
            note(f"{client.title}: {error}. Nothing was changed there.")
            code = REFUSED
        worst = max(worst, code)
    return worst


def _connect(change: Change, installed: bool, variables: Mapping[str, str], dry_run: bool) -> int:
    client = change.client
    if change.before == change.after:
        out(wrapped(f"{bold(client.title)} is already connected: {change.path}", 2))
        return DONE
    if dry_run:
        return _show(change)
    kept = clients.save(change)
    anew = "" if change.new else " anew"
    out(wrapped(f"{bold(client.title)} is connected{anew}: {change.path}", 2))
    if not installed:
        missing = f"  {client.title} was not found here; it will read this once it is installed"
        out(wrapped(missing))
    for name, value in variables.items():
        out(f"  with {name}={_masked(value)}")
    if change.kept:
        out(f"  {joined(change.kept)} as before")
    if kept:
        out(wrapped(f"  as it was, the file is kept in {kept}"))
    out(wrapped(f"  {client.then.format(name=ENTRY.name)}"))
    return DONE


def _disconnect(change: Change, dry_run: bool) -> int:
    if dry_run:
        return _show(change)
    kept = clients.save(change)
    out(wrapped(f"{bold(change.client.title)} is disconnected: {change.path}", 2))
    if kept:
        out(wrapped(f"  as it was, the file is kept in {kept}"))
    return DONE


def _show(change: Change) -> int:
    """Print what would change, as `diff -u` does."""
    name = str(change.path)
    old, new = _lines(change.before), _lines(change.after)
    source, target = (
        os.devnull if data is None else name for data in (change.before, change.after)
    )
    for line in unified_diff(old, new, source, target, lineterm=""):
        out(styled(_masked(line), {"+": "green", "-": "red"}.get(line[0])))
    note(dim("Nothing was written."))
    return DONE


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").removeprefix("\ufeff").splitlines()


def _print(name: str, variables: Mapping[str, str]) -> int:
    client = BY_NAME.get(name)
    text = clients.snippet(ENTRY, client, launch.command(), variables)
    out(_masked(text).rstrip("\n"))
    if client:
        try:
            note(dim(f"This goes into {clients.located(ENTRY, client, machine())[0]}"))
        except (ConfigError, InvalidSetting) as error:
            note(dim(str(error)))
    if _masked(text) != text:
        note("A password is not shown: put it in place of ***.")
    return DONE


def _list(json: bool) -> int:
    found = clients.connections(ENTRY, machine())
    if json:
        out_json([_fields(one) for one in found])
        return DONE
    for one in found:
        state = "connected" if one.connected else "not connected" if one.installed else "not found"
        line = f"{one.client.name:15}  {state:13}  {one.path}"
        out(wrapped(line if one.installed else dim(line), 2))
        for problem in one.problems:
            out(wrapped(f"  {problem}"))
    return DONE


def _fields(one: Connection) -> dict[str, Any]:
    return {
        "client": one.client.name,
        "title": one.client.title,
        "file": str(one.path),
        "installed": one.installed,
        "connected": one.connected,
        "command": list(one.command),
        "problems": list(map(str, one.problems)),
    }


def _found(here: clients.Machine) -> list[Client]:
    """Return the clients that are there; one that is there twice is for `_each` to refuse."""
    wanted = []
    for client in CLIENTS:
        try:
            installed = clients.located(ENTRY, client, here)[1]
        except ConfigError:
            installed = True
        if installed:
            wanted.append(client)
    return wanted


def _variables(environ: Mapping[str, str], served: Sequence[str]) -> dict[str, str]:
    """Return the settings that go into an entry: those that are set here, and what it serves.

    Raises:
        InvalidSetting: one cannot be used.
    """
    settings = Settings.from_environ(environ)
    if settings.remote_error:
        raise settings.remote_error
    manifests = toolsets.chosen(served, environ)
    theirs = {each.name: each for manifest in manifests for each in manifest.variables}
    for name, variable in theirs.items():
        if environ.get(name):
            variable.value(environ)
    found = {
        name: value
        for name, value in sorted(environ.items())
        if (name.startswith("AIAML_") or name in theirs) and value and name != "AIAML_LAUNCHER"
    }
    if "AIAML_MEMORY_DIR" in found:
        found["AIAML_MEMORY_DIR"] = str(settings.base)
    if served:
        found[toolsets.VARIABLE.name] = ",".join(manifest.name for manifest in manifests)
    return found


def _masked(text: str) -> str:
    """Hide passwords and tokens in addresses."""
    text = re.sub(r"(https?://)[^/@\s\"']+@", r"\1***@", text)
    return re.sub(r"(\w://[^/:@\s\"']*):[^/@\s\"']+@", r"\1:***@", text)
