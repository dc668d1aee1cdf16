"""The command group `aiaml`, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from traceback import format_exception
from typing import Any

import click

from aiaml_server import __version__, toolsets
from aiaml_server.cli.context import use_directory
from aiaml_server.errors import AiamlError, InvalidInput, InvalidSetting, os_reason
from aiaml_server.format.invisible import marked_line
from aiaml_server.settings import SETTINGS
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    configure_streams,
    echo,
    notify,
    terminal_width,
    wrap,
)

SECTIONS = {
    "Memories": {
        "list": ("show:list_", "List memories, newest first."),
        "search": ("show:search", "Find memories by words, best match first."),
        "show": ("show:show", "Show memories in full."),
        "stats": ("stats:stats", "Count memories by agent, user, topic and month."),
        "remember": ("write:remember", "Store a memory."),
        "edit": ("write:edit", "Edit a memory in your editor."),
        "forget": ("forget:forget", "Delete memories by ID or filter."),
        "log": ("history:log", "Show recent changes, or the versions of one memory."),
        "restore": ("history:restore", "Restore earlier versions or forgotten memories."),
    },
    "Copies and checks": {
        "status": ("sync:status", "Show whether memories are saved and synced."),
        "sync": ("sync:sync", "Commit new memories and sync them with the remote."),
        "import": ("import_:import_", "Import memories and notes from other programs."),
        "export": ("export:export", "Export memories to JSON lines or to a folder of markdown."),
        "doctor": ("doctor:doctor", "Check the installation and suggest fixes."),
        "trust": ("trust:trust_command", "List the directories that you trust, or trust one."),
    },
    "Setup": {
        "install": (
            "install:install",
            "Connect AI clients by an entry in their configuration files.",
        ),
        "uninstall": (
            "install:uninstall",
            "Remove our entries from AI clients' configuration files.",
        ),
        "web": ("web:web", "Search, read, edit and forget memories in the browser."),
        "demo": ("demo:demo", "Show the tools at work in a temporary directory."),
    },
}
"""Each section of `--help`: the commands with their place, imported when used, and summary."""

COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
EXIT_CODES = "Exit codes: 0 done, 1 failed or not found, 2 wrong usage, 130 interrupted."
_BUG = "Please report it, with the output under AIAML_LOG_LEVEL=DEBUG"
_OPTIONS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """The group of all commands. A module is imported when its command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands and of the toolsets that have commands."""
        return [*COMMANDS, *_groups()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, or the group of a toolset's commands; None if there is none."""
        if cmd_name in COMMANDS:
            command: click.Command = resolve_name(f"{__package__}.{COMMANDS[cmd_name][0]}")
            return command
        if cmd_name in _groups():
            group: click.Command = resolve_name(toolsets.manifest(cmd_name).commands)
            return group
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, and the names of the toolsets."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in commands.items()])
        formatter.write_paragraph()
        formatter.write_text(f"Toolsets, each with its own commands: {', '.join(_groups())}")
        names = [setting.name for setting in (*SETTINGS, *toolsets.SETTINGS)]
        formatter.write_text(f"Environment variables: {', '.join(names)}")
        formatter.write_text(EXIT_CODES)


def _groups() -> list[str]:
    return [name for name in toolsets.OWN if toolsets.manifest(name).commands]


# click suggests names of `commands`; the commands themselves come from `get_command`.
_NAMES = dict.fromkeys(COMMANDS, click.Command(""))


@click.command(cls=Commands, name="aiaml", commands=_NAMES, context_settings=_OPTIONS)
@click.version_option(
    __version__, "--version", "-V", prog_name="aiaml-server", message="%(prog)s %(version)s"
)
@click.option("--dir", "directory", metavar="DIR", help="Use the memories in this directory.")
def aiaml(directory: str | None) -> None:
    """One memory for all your AI agents, in plain files. Begin with `aiaml demo`."""
    if directory is not None:
        use_directory(directory)


def run(words: Sequence[str], name: str = "", group: str = "") -> int:
    """Run one command line; return the exit code.

    Args:
        words: the arguments.
        name: the name that the program was called by, if it is not in `sys.argv`.
        group: the toolset whose commands these are, if the program has no others.
    """
    name = name or _program()
    configure_streams()
    try:
        code = _call(name, words, group)
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            if not isinstance(error, BrokenPipeError):
                _complain(name, f"cannot read or write: {os_reason(error)}")
        nowhere = os.open(os.devnull, os.O_WRONLY)  # for what the interpreter flushes at its end
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        return EXIT_FAILED
    return code


def _call(name: str, words: Sequence[str], group: str) -> int:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    command = aiaml.get_command(click.Context(aiaml), group) if group else aiaml
    assert command  # noqa: S101 (a toolset that is named has commands)
    try:
        code = command.main(
            list(words) or ["--help"],
            prog_name=name,
            standalone_mode=False,
            terminal_width=min(terminal_width(), 100) - 2,
            color=False if plain else None,
            **(_OPTIONS if group else {}),
        )
    except SystemExit as end:  # click ends so after completing a word, and if a pipe is closed
        if end.code:
            raise BrokenPipeError from end
        code = EXIT_OK
    except OSError:
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (a bug becomes a sentence too)
        code = _report(name, error)
    return code if isinstance(code, int) else EXIT_OK


def _report(name: str, error: BaseException) -> int:
    """Print an error as a sentence; return the exit code."""
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        notify("")
        return EXIT_INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        echo(error.format_message())
        return EXIT_OK
    code = EXIT_FAILED
    text = str(error)
    if isinstance(error, click.ClickException):
        code, text = EXIT_USAGE, " ".join(error.format_message().split())
    elif isinstance(error, Exit):
        code = error.code
    elif isinstance(error, (InvalidInput, InvalidSetting)):
        code = EXIT_USAGE
    elif not isinstance(error, AiamlError):
        if os.environ.get("AIAML_LOG_LEVEL") == "DEBUG":
            notify("".join(format_exception(error)).rstrip())
        text = f"this is a bug ({type(error).__name__}: {error}). {_BUG}"
    _complain(name, text)
    return code


def _complain(name: str, sentence: str) -> None:
    """Print an error; a name in it cannot add lines."""
    lines = "\n".join(map(marked_line, sentence.split("\n")))
    notify(wrap(f"{name}: {lines}", 2, err=True))


def _program() -> str:
    stem = Path(sys.argv[0]).stem
    return stem if stem in ("aiaml", "aiaml-server") else "aiaml"
