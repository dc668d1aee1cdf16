"""`install`, `uninstall`: AIAML in the configuration of AI clients."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from aiaml_server import clients, toolsets
from aiaml_server.cli.context import use_directory
from aiaml_server.clients import CLIENTS, Change, Client, ConfigError, Connection, launch
from aiaml_server.clients.entry import ENTRY, machine
from aiaml_server.errors import InvalidSetting
from aiaml_server.settings import MEMORY_DIR, Settings
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    bold,
    dim,
    echo,
    echo_rows,
    join_words,
    notify,
    rows_options,
    styled,
    wrap,
)
from aiaml_server.toolsets import DEFAULT

BY_NAME = {client.name: client for client in CLIENTS}
NAMES = click.Choice(list(BY_NAME))
_SHOWN = 2_000  # characters of a line in what would change

with_hooks = click.option(
    "--hooks",
    is_flag=True,
    help="What the client starts by itself, instead of the entry: claude-code, codex, gemini, "
    "cursor, copilot, opencode.",
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
    help="Have the entry serve this toolset as well; can be given several times.",
)
@click.option("--only", is_flag=True, help="Have it serve what is named, and no other toolset.")
@click.option("--required", is_flag=True, help="Have Codex wait for the server, at each start.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Have the entry, or the hooks, serve the memories of this directory.",
)
@in_project
@with_hooks
@dry_run
@rows_options
def install(
    names: Sequence[str],
    everything: bool,
    listing: bool,
    printed: str | None,
    served: Sequence[str],
    only: bool,
    required: bool,
    directory: str | None,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
    data: str,
) -> int:
    """Connect AI clients, by an entry in their configuration files.

    \b
    Clients:
      claude-desktop, claude-code, cursor, vscode, vscode-insiders, codex,
      gemini, windsurf, zed, antigravity, copilot, cline, junie, jetbrains, kiro, goose,
      lm-studio, opencode

    Only our entry is written; all else in a file stays as it is, and
    the file as it was is kept beside it. The variables AIAML_... that are set
    now go into the entry. Doing it again brings the entry up to date. For Goose,
    what to put in by hand is printed. With --hooks, memories that a prompt is
    about come by themselves (docs/hooks.md); nothing else installs hooks.

    A toolset that is named is added to what the entry serves; --only leaves that alone. In a
    project's file there is an entry of its own for each toolset, as `aiaml-citations`, which
    starts uvx or the program by its name, so that it works on the computers of all.

    \b
    Examples:
      aiaml install cursor claude-code
      aiaml install --all --dry-run
      aiaml install zed --dir ~/work/memory
      aiaml install --print generic
      aiaml install cursor --toolset citations
      aiaml install cursor --toolset aiaml --only
      aiaml install claude-code --project --toolset citations
      aiaml install codex --required
      aiaml install claude-code --hooks
      aiaml install claude-code --hooks --toolset citations
      aiaml install cursor --hooks --dir ~/work/memory
    """
    _check_usage(locals())
    if listing:
        return _list(data)
    if directory is not None:
        use_directory(directory)
    if hooks:
        return _hooks(names, project, dry_run, served or [DEFAULT])
    variables = _variables(os.environ, served)
    if printed:
        return _print(printed, variables)
    here = machine()
    wanted = _named(names, project) or _found(here)
    if not wanted:
        notify("No client was found here; `aiaml install --list` shows where each was looked for.")
        return EXIT_NOTHING

    def one(client: Client) -> int:
        if required:
            client = replace(client, extras={**client.extras, "required": True})
        if client.form == "yaml":
            notify(wrap(f"{client.title} is connected by hand: AIAML edits no YAML.", 2))
            return _print(client.name, variables)
        if project:
            return _connect_project(client, here, served, dry_run)
        return _connect_own(client, here, variables, only, dry_run)

    return _each(wanted, one)


def _check_usage(given: Mapping[str, Any]) -> None:
    """See that what is asked of `install` goes together.

    Raises:
        UsageError: it does not.
    """
    if given["data"] and not given["listing"]:
        raise click.UsageError(f"--{given['data']} goes with --list")
    if sum(bool(given[each]) for each in ("names", "everything", "listing", "printed")) != 1:
        raise click.UsageError("name clients, or say --all, --list or --print CLIENT")
    if given["project"] and not given["names"]:
        raise click.UsageError("--project goes with clients that are named")
    if given["project"] and given["directory"] is not None:
        raise click.UsageError("--dir names a directory of this computer, and --project is for all")
    if given["only"] and not given["served"]:
        raise click.UsageError("--only goes with --toolset")
    if given["required"] and set(given["names"]) != {"codex"}:
        raise click.UsageError("--required goes with codex alone")


def _connect_own(
    client: Client, here: clients.Machine, variables: Mapping[str, str], only: bool, dry_run: bool
) -> int:
    """Put an entry into the person's own file; only with `only` it serves nothing that it did.

    Raises:
        ConfigError: the file cannot be edited, or the entry would put a package out of service.
    """
    path, there = clients.connected(client, here)
    for other in () if there else clients.besides(client, here):
        if other.is_replaced:  # with all that was set for it
            raise ConfigError(path, f"{client.title} {other.what}", other.remedy)
    more = dict(variables)
    if not only and toolsets.TOOLSETS.name in variables and ENTRY in there:
        had = there[ENTRY].get(toolsets.TOOLSETS.name) or DEFAULT
        both = f"{had},{variables[toolsets.TOOLSETS.name]}"
        more[toolsets.TOOLSETS.name] = ",".join(toolsets.known(toolsets.OPTION, both))
    change = clients.connect(client, here, launch.command(), more)
    installed = clients.located(client, here)[1]
    return _connect(change, ENTRY, installed, more, dry_run, there)


def _connect_project(
    client: Client, here: clients.Machine, served: Sequence[str], dry_run: bool
) -> int:
    """Put an entry for each toolset into a project's file, with nothing of this computer in it."""
    worst = EXIT_OK
    _, own = clients.connected(BY_NAME[client.name], here)
    for each in toolsets.known(toolsets.OPTION, ",".join(served)) if served else [DEFAULT]:
        name, variables = ENTRY, dict[str, str]()
        if each != DEFAULT:  # which each has an entry of its own here
            name = f"{ENTRY}-{each}"
            variables[toolsets.TOOLSETS.name] = each
        command = launch.anywhere()
        variables |= launch.compiled(command)
        change = clients.connect(client, here, command, variables, name)
        worst = max(worst, _connect(change, name, True, variables, dry_run))
        aside = ", ".join(key for key in own.get(name, {}) if key not in launch.COMPILED)
        if aside and change.new:
            here_too = "Here it may stand in place of your own entry"
            echo(wrap(f"  {here_too}, with {aside} of it unused"))
    return worst


def _get_ready(variables: Mapping[str, str]) -> None:
    """Have the copy of the first answers made meanwhile: no host waits for a server any more."""
    from aiaml_server.cli.copying import begin, copy_of  # noqa: PLC0415 (a listing goes without)

    manifests = toolsets.chosen([], variables)
    greeting = copy_of(manifests)
    if greeting and not greeting.known:
        begin(greeting, [each.name for each in manifests])


@click.command("uninstall")
@click.argument("names", metavar="[CLIENT]...", nargs=-1, type=NAMES)
@click.option("--all", "everything", is_flag=True, help="Every client that is connected.")
@listed
@in_project
@with_hooks
@dry_run
@rows_options
def uninstall(
    names: Sequence[str],
    everything: bool,
    listing: bool,
    project: Path | None,
    hooks: bool,
    dry_run: bool,
    data: str,
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
    if data and not listing:
        raise click.UsageError(f"--{data} goes with --list")
    if sum(map(bool, (names, everything, listing))) != 1:
        raise click.UsageError("name clients, or say --all or --list")
    if project and not names:
        raise click.UsageError("--project goes with clients that are named")
    if listing or hooks:
        return _list(data) if listing else _hooks(names, project, dry_run)
    here = machine()
    if everything:
        names = [one.client.name for one in clients.connections(here) if one.connected]
    if not names:
        notify("No client is connected.")
        return EXIT_NOTHING

    def one(client: Client) -> int:
        codes = []
        names = [each.name for each in clients.connections(here, [client]) if each.connected]
        for name in dict.fromkeys([*reversed(names), ENTRY]):  # each finds what was before it
            changes = clients.disconnect(client, here, name)
            codes += [_saved(change, "is disconnected", dry_run) for change in changes]
        if not codes:
            notify(f"{client.title} is not connected.")
        return max(codes, default=EXIT_NOTHING)

    return _each(_named(names, project), one)


def _hooks(names: Sequence[str], more: object, dry_run: bool, served: Sequence[str] = ()) -> int:
    """Put hooks of toolsets into the settings of clients that are named; of none: take them out.

    Raises:
        UsageError: a client starts none that we serve, a toolset has none, or more was asked for.
    """
    from aiaml_server.cli.hooks import HOSTS, unhooked  # noqa: PLC0415 (a verb's rare half)

    if more or not names or any(name not in HOSTS for name in names):
        raise click.UsageError(
            f"--hooks goes alone with clients that are named: {join_words([*HOSTS])}"
        )
    for each in toolsets.chosen(served, {}) if served else ():
        if each.name != DEFAULT and not each.hooks:
            raise click.UsageError(f"{each.name} tells nothing by hooks")
    here = machine()

    def one(client: Client) -> int:
        if served:
            return _hook(client, here, toolsets.known(toolsets.OPTION, ",".join(served)), dry_run)
        changes = [each for each in unhooked(client, here) if each.before != each.after]
        codes = [_saved(each, "has no hooks of AIAML any more", dry_run) for each in changes]
        if not codes:
            notify(f"{client.title} has no hooks of AIAML.")
        return max(codes, default=EXIT_NOTHING)

    return _each(_named(names, None), one)


def _hook(client: Client, here: clients.Machine, served: Sequence[str], dry_run: bool) -> int:
    """Put hooks of toolsets into a client's settings, for the directory that is chosen or served.

    Raises:
        ConfigError: see `hooked`.
    """
    from aiaml_server.cli.hooks import hooked  # noqa: PLC0415 (a verb's rare half)

    worst, base = EXIT_OK, os.environ.get(MEMORY_DIR) or _base_of(client, here)
    for each in served:
        change = hooked(client, here, base, each)
        if change.before == change.after:
            notify(wrap(f"{client.title} has its hooks already: {change.path}", 2))
            continue
        worst = max(worst, _saved(change, "has hooks", dry_run))
    if not dry_run:
        where = f" in {base}" if base else ""
        said = f"A new session is told what is remembered{where}; AIAML_HOOKS=false turns it off"
        echo(wrap(f"  {said}"))
    return worst


def _base_of(client: Client, here: clients.Machine) -> str:
    """Return the directory that a client's entry serves; empty for the usual one."""
    _, there = clients.connected(client, here)
    return there.get(ENTRY, {}).get(MEMORY_DIR, "")


def _saved(change: Change, done: str, dry_run: bool) -> int:
    """Save a change and say what is done by it, or show it."""
    if dry_run:
        return _show(change)
    kept = clients.save(change)
    echo(wrap(f"{bold(change.client.title)} {done}: {change.path}", 2))
    if kept:
        echo(wrap(f"  as it was, the file is kept in {kept}"))
    return EXIT_OK


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
    worst = EXIT_OK
    for client in wanted:
        try:
            code = one(client)
        except ConfigError as error:
            notify(f"{client.title}: {error}. Nothing was changed there.")
            code = EXIT_FAILED
        worst = max(worst, code)
    return worst


def _connect(
    change: Change,
    entry: str,
    installed: bool,
    variables: Mapping[str, str],
    dry_run: bool,
    there: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> int:
    client, had = change.client, there.get(entry, {})
    if change.before == change.after:
        echo(wrap(f"{bold(client.title)} is already connected: {change.path}", 2))
        _tell_besides(client)
        return EXIT_OK
    if dry_run:
        return _show(change)
    kept = clients.save(change)
    _get_ready(variables)
    anew = "" if change.new else " anew"
    echo(wrap(f"{bold(client.title)} is connected{anew}: {change.path}", 2))
    if not installed:
        missing = f"  {client.title} was not found here; it will read this once it is installed"
        echo(wrap(missing))
    for name, value in variables.items():
        before = f", before: {_masked(had[name])}" if had.get(name, value) != value else ""
        echo(f"  with {name}={_masked(value)}{before}")
    if change.kept:
        echo(f"  {join_words(change.kept)} as before")
    if kept:
        echo(wrap(f"  as it was, the file is kept in {kept}"))
    if names := variables.get(toolsets.TOOLSETS.name):
        only = "; with --only, what is named and no other" if "," in names else ""
        echo(wrap(f"  it serves {join_words(names.split(','))}{only}"))
    _tell_besides(client)
    echo(wrap(f"  {client.then.format(name=entry)}"))
    return EXIT_OK


def _tell_besides(client: Client) -> None:
    for other in clients.besides(client, machine()):
        echo(wrap(f"  {client.title} {other.what}: {other.remedy}"))


def _show(change: Change) -> int:
    """Print what would change, as `diff -u` does."""
    name = str(change.path)
    old, new = _lines(change.before), _lines(change.after)
    source, target = (
        os.devnull if data is None else name for data in (change.before, change.after)
    )
    for line in unified_diff(old, new, source, target, lineterm=""):
        shown = _masked(line)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}… ({len(shown):,} characters)"
        echo(styled(shown, {"+": "green", "-": "red"}.get(line[0])))
    notify(dim("Nothing was written."))
    return EXIT_OK


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").removeprefix("\ufeff").splitlines()


def _print(name: str, variables: Mapping[str, str]) -> int:
    client = BY_NAME.get(name)
    text = clients.snippet(client, launch.command(), variables)
    echo(_masked(text).rstrip("\n"))
    if client:
        try:
            notify(dim(f"This goes into {clients.located(client, machine())[0]}"))
        except (ConfigError, InvalidSetting) as error:
            notify(dim(str(error)))
    if _masked(text) != text:
        notify("A password is not shown: put it in place of ***.")
    return EXIT_OK


def _list(data: str) -> int:
    found = clients.connections(machine())
    if data:
        echo_rows([_fields(one) for one in found], data)
        return EXIT_OK
    for one in found:
        state = "connected" if one.connected else "not connected" if one.installed else "not found"
        which = f", as {one.name}" if one.connected and one.name != ENTRY else ""
        line = f"{one.client.name:15}  {state:13}  {one.path}{which}"
        echo(wrap(line if one.installed else dim(line), 2))
        for problem in one.problems:
            echo(wrap(f"  {problem}"))
        for other in clients.besides(one.client, machine()) if one.name == ENTRY else ():
            echo(wrap(f"  it {other.what}: {other.remedy}"))
    return EXIT_OK


def _fields(one: Connection) -> dict[str, Any]:
    return {
        "client": one.client.name,
        "title": one.client.title,
        "file": str(one.path),
        "installed": one.installed,
        "connected": one.connected,
        "entry": one.name,
        "command": list(one.command),
        "problems": list(map(str, one.problems)),
    }


def _found(here: clients.Machine) -> list[Client]:
    """Return the clients that are there; one that is there twice is for `_each` to refuse."""
    wanted = []
    for client in CLIENTS:
        try:
            installed = clients.located(client, here)[1]
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
    theirs = {each.name: each for manifest in manifests for each in manifest.settings}
    for name, variable in theirs.items():
        if environ.get(name):
            variable.value(environ)
    found = {
        name: value
        for name, value in sorted(environ.items())
        if (name.startswith("AIAML_") or name in theirs) and value and name != "AIAML_LAUNCHER"
    }
    if MEMORY_DIR in found:
        found[MEMORY_DIR] = str(settings.base)
    if served:
        found[toolsets.TOOLSETS.name] = ",".join(manifest.name for manifest in manifests)
    return found | launch.compiled(launch.command())


def _masked(text: str) -> str:
    """Hide passwords and tokens in addresses."""
    if "://" not in text:
        return text
    text = re.sub(r"(https?://)[^/@\s\"']+@", r"\1***@", text)
    return re.sub(r"(\w://[^/:@\s\"']*):[^/@\s\"']+@", r"\1:***@", text)
