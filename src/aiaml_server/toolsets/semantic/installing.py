"""`install-hooks`, `uninstall-hooks`: what Claude Code starts for this toolset."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from aiaml_server import clients
from aiaml_server.clients import Change, ConfigError, launch
from aiaml_server.clients.entry import machine
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    Exit,
    bold,
    echo,
    echo_json,
    json_option,
    notify,
)

HOOKS = {
    "SessionStart": "",
    "UserPromptSubmit": "",
    "PostToolUse": "Bash|Write|Edit|MultiEdit",
    "PostToolUseFailure": "Bash",
    "SessionEnd": "",
}
"""The events at which Claude Code starts us, each with the tools to which that is limited."""

_SECONDS = 10  # that a hook may take
_COPIES = "aiaml-semantic-hooks"

in_project = click.option(
    "--project",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Only for a project: in its .claude/settings.local.json.",
)
dry_run = click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")


@click.command("install-hooks")
@in_project
@dry_run
@json_option
def install_hooks(project: Path | None, dry_run: bool, json: bool) -> int:
    """Have Claude Code start hooks: at the begin and end of a session, at prompts and tools.

    The events are SessionStart, UserPromptSubmit, PostToolUse, PostToolUseFailure, SessionEnd.
    Only entries of these hooks are put into its settings; all else in the file stays as it is,
    byte for byte, and the file as it was is kept beside it. Doing it again brings them up to date.

    \b
    Examples:
      aiaml semantic install-hooks
      aiaml semantic install-hooks --project .
    """
    with _refusals():
        wanted = [(event, _group(event)) for event in HOOKS]
        made = clients.hook(_COPIES, _settings(project), wanted, _is_ours)
        kept = _saved(made, dry_run)
    if made.before == made.after and not json:
        echo(f"The hooks are already installed: {made.path}")
    elif _told(made, "installed", kept, dry_run, json) and not dry_run:
        echo("  Start a new session of Claude Code; /hooks shows them in it.")
    return EXIT_OK


@click.command("uninstall-hooks")
@in_project
@dry_run
@json_option
def uninstall_hooks(project: Path | None, dry_run: bool, json: bool) -> int:
    """Take the hooks out of Claude Code's settings again.

    A file that was not edited since becomes again exactly what it was before.

    \b
    Examples:
      aiaml semantic uninstall-hooks
      aiaml semantic uninstall-hooks --project .
    """
    with _refusals():
        made = clients.unhook(_COPIES, _settings(project), _is_ours)
        kept = _saved(made, dry_run)
    if made.before == made.after and not json:
        notify(f"There are no hooks of it in {made.path}.")
    else:
        _told(made, "uninstalled", kept, dry_run, json)
    return EXIT_OK if made.before != made.after else EXIT_NOTHING


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what a settings file refuses into a sentence and an exit code.

    Raises:
        Ended: it cannot be read, or not be edited safely.
    """
    try:
        yield
    except ConfigError as error:
        raise Exit(f"{error}. Nothing was changed there.", EXIT_FAILED) from error


def _saved(made: Change, dry_run: bool) -> Path | None:
    """Write what changes, unless it is only tried; return where the file as it was is kept."""
    return None if dry_run or made.before == made.after else clients.save(made)


def _told(made: Change, what: str, kept: Path | None, dry_run: bool, json: bool) -> bool:
    """Say what was done, or would be; return whether that was said to a person."""
    if json:
        changed = made.before != made.after
        told = {"file": str(made.path), "changed": changed and not dry_run, "would_change": changed}
        echo_json(told)
        return False
    echo(f"{bold('The hooks')} {'would be' if dry_run else 'are'} {what}: {made.path}")
    if kept:
        echo(f"  as it was, the file is kept in {kept}")
    return True


def _settings(project: Path | None) -> Path:
    if project is not None:
        return project.resolve() / ".claude" / "settings.local.json"
    here = machine()
    return Path(here.directory("CLAUDE_CONFIG_DIR", here.home / ".claude") / "settings.json")


def _group(event: str) -> dict[str, Any]:
    """Return what an event's list has for our hook.

    The client gives the line to a shell, on Windows to Git's.
    """
    words = [*launch.command(), *_words(event)]
    if sys.platform == "win32":
        words = [word.replace("\\", "/") for word in words]
    command = {"type": "command", "command": shlex.join(words), "timeout": _SECONDS}
    matcher = {"matcher": HOOKS[event]} if HOOKS[event] else {}
    return {**matcher, "hooks": [command]}


def _words(event: str) -> list[str]:
    return ["semantic", "hook", event]


def _is_ours(command: str) -> bool:
    """Tell our commands from others, whatever installation they start."""
    endings = [shlex.join(_words(event)) for event in HOOKS]
    start = next((command.removesuffix(end) for end in endings if command.endswith(end)), "")
    return "aiaml" in start.rpartition("/")[2] or start.endswith("aiaml_server ")
