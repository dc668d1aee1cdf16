"""`TOOLSET install-hooks`, `uninstall-hooks`: what Claude Code starts for a toolset."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from aiaml_server import clients, launch
from aiaml_server.clients import Change, ConfigError
from aiaml_server.entry import machine
from aiaml_server.terminal import (
    DONE,
    NOTHING,
    REFUSED,
    Ended,
    as_json,
    bold,
    joined,
    note,
    out,
    out_json,
)
from aiaml_server.toolset import Hook, Manifest

in_project = click.option(
    "--project",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Only for a project: in its .claude/settings.local.json.",
)
dry_run = click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")


def add(group: click.Group, manifest: Manifest) -> None:
    """Give a toolset's verbs those that its hooks are installed by."""
    if "install-hooks" in group.commands:
        return
    name = manifest.name
    events = joined(list(dict.fromkeys(each.event for each in manifest.hooks)))

    @group.command(
        "install-hooks",
        help=f"Have Claude Code start hooks: at {events}.\n\nOnly entries of these hooks are put"
        " into its settings; all else in the file stays as it is, byte for byte, and the file as it"
        " was is kept beside it. Doing it again brings them up to date.\n\n\b\nExamples:\n"
        f"  aiaml {name} install-hooks\n  aiaml {name} install-hooks --project .",
    )
    @in_project
    @dry_run
    @as_json
    def install_hooks(project: Path | None, dry_run: bool, json: bool) -> int:
        def change(path: Path) -> Change:
            wanted = [(each.event, _group(manifest, each)) for each in manifest.hooks]
            return clients.hook(_copies(manifest), path, wanted, _is_ours(manifest))

        return _done(project, change, dry_run, json, "installed")

    @group.command(
        "uninstall-hooks",
        help="Take the hooks out of Claude Code's settings again.\n\nA file that was not edited"
        " since becomes again exactly what it was before.\n\n\b\nExamples:\n"
        f"  aiaml {name} uninstall-hooks\n  aiaml {name} uninstall-hooks --project .",
    )
    @in_project
    @dry_run
    @as_json
    def uninstall_hooks(project: Path | None, dry_run: bool, json: bool) -> int:
        def change(path: Path) -> Change:
            return clients.unhook(_copies(manifest), path, _is_ours(manifest))

        return _done(project, change, dry_run, json, "uninstalled")


def _done(
    project: Path | None,
    change: Callable[[Path], Change],
    dry_run: bool,
    json: bool,
    what: str,
) -> int:
    path = _settings(project)
    try:
        made = change(path)
        kept = None if dry_run or made.before == made.after else clients.save(made)
    except ConfigError as error:
        raise Ended(f"{error}. Nothing was changed there.", REFUSED) from error
    changed = made.before != made.after
    if json:
        out_json({"file": str(path), "changed": changed and not dry_run, "would_change": changed})
        return DONE if changed or what == "installed" else NOTHING
    if not changed:
        if what == "uninstalled":
            note(f"There are no hooks of it in {path}.")
            return NOTHING
        out(f"The hooks are already {what}: {path}")
        return DONE
    out(f"{bold('The hooks')} {'would be' if dry_run else 'are'} {what}: {path}")
    if kept:
        out(f"  as it was, the file is kept in {kept}")
    if what == "installed" and not dry_run:
        out("  Start a new session of Claude Code; /hooks shows them in it.")
    return DONE


def _settings(project: Path | None) -> Path:
    if project is not None:
        return project.resolve() / ".claude" / "settings.local.json"
    here = machine()
    return Path(here.directory("CLAUDE_CONFIG_DIR", here.home / ".claude") / "settings.json")


def _copies(manifest: Manifest) -> str:
    return f"aiaml-{manifest.name}-hooks"


def _group(manifest: Manifest, hook: Hook) -> dict[str, Any]:
    """Return what an event's list has for a hook.

    The client gives the line to a shell, on Windows to Git's.
    """
    words = [*launch.command(), manifest.name, *hook.words]
    if sys.platform == "win32":
        words = [word.replace("\\", "/") for word in words]
    command = {"type": "command", "command": shlex.join(words), "timeout": hook.seconds}
    return {**({"matcher": hook.matcher} if hook.matcher else {}), "hooks": [command]}


def _is_ours(manifest: Manifest) -> Callable[[str], bool]:
    """Return what tells our commands from others, whatever installation they start."""
    endings = [shlex.join([manifest.name, *each.words]) for each in manifest.hooks]

    def ours(command: str) -> bool:
        start = next((command.removesuffix(end) for end in endings if command.endswith(end)), "")
        return "aiaml" in start.rpartition("/")[2] or start.endswith("aiaml_server ")

    return ours
