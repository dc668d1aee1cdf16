"""The command group `aiaml`, and the translation of errors into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from traceback import format_exception

import click

from aiaml_server import __version__, toolsets
from aiaml_server.cli.context import use_directory
from aiaml_server.errors import AiamlError, InvalidInput, InvalidSetting, os_reason
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
)

SECTIONS = {
    "Memories": {
        "list": "show:list_",
        "search": "show:search",
        "show": "show:show",
        "stats": "stats:stats",
        "remember": "write:remember",
        "edit": "write:edit",
        "forget": "forget:forget",
        "log": "history:log",
        "restore": "history:restore",
    },
    "Copies and checks": {
        "status": "sync:status",
        "sync": "sync:sync",
        "import": "import_:import_",
        "export": "export:export",
        "doctor": "doctor:doctor",
        "trust": "trust:trust_command",
    },
    "Setup": {
        "install": "install:install",
        "uninstall": "install:uninstall",
        "web": "web:web",
        "demo": "demo:demo",
    },
}
"""Each section of `--help`: the commands with their places, which are imported when used."""

COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}
TOOLSETS = [name for name in toolsets.OWN if name != toolsets.DEFAULT]
"""The toolsets, each of which is a group of commands."""

# click suggests names of these; the commands themselves come from `_load`.
_NAMES = dict.fromkeys([*COMMANDS, *TOOLSETS], click.Command(""))
EXIT_CODES = "Exit codes: 0 done, 1 failed or not found, 2 wrong usage, 130 interrupted."
_BUG = "Please report it, with the output under AIAML_LOG_LEVEL=DEBUG"


class Commands(click.Group):
    """The group of all commands. A module is imported when its command is used."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a command, or the group of a toolset's commands; None if there is none."""
        return _load(cmd_name) if cmd_name in _NAMES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands by section, and the names of the toolsets."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _load(name).get_short_help_str(99)) for name in names])
        formatter.write_paragraph()
        formatter.write_text(f"Toolsets with commands: {', '.join(TOOLSETS)}")
        settings = [setting.name for setting in (*SETTINGS, *toolsets.SETTINGS)]
        formatter.write_text(f"Environment variables: {', '.join(settings)}")
        formatter.write_text(EXIT_CODES)


def _load(name: str) -> click.Command:
    place = f"{__package__}.{COMMANDS[name]}" if name in COMMANDS else ""
    command: click.Command = resolve_name(place or toolsets.manifest(name).commands)
    return command


@click.command(
    cls=Commands,
    name="aiaml",
    commands=_NAMES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(
    __version__, "--version", "-V", prog_name="aiaml-server", message="%(prog)s %(version)s"
)
@click.option("--dir", "directory", metavar="DIR", help="Use the memories in this directory.")
def aiaml(directory: str | None) -> None:
    """One memory for all your AI agents, in plain files. Begin with `aiaml demo`.
    AI clients start `aiaml-server` without arguments: it serves over stdio.
    """  # noqa: D205 (one paragraph)
    if directory is not None:
        use_directory(directory)


def run(words: Sequence[str]) -> int:
    """Run one command line; return the exit code."""
    name = Path(sys.argv[0]).stem
    name = name if name == "aiaml-server" else "aiaml"
    configure_streams()
    try:
        code = _call(name, words)
        sys.stdout.flush()
    except OSError as error:
        with suppress(OSError):
            if not isinstance(error, BrokenPipeError):
                notify(f"{name}: cannot read or write: {os_reason(error)}")
        nowhere = os.open(os.devnull, os.O_WRONLY)  # for what the interpreter flushes at its end
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        return EXIT_FAILED
    return code


def _call(name: str, words: Sequence[str]) -> int:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        code = aiaml.main(
            list(words) or ["--help"],
            prog_name=name,
            standalone_mode=False,
            terminal_width=min(terminal_width(), 100) - 2,
            color=False if plain else None,
        )
    except SystemExit as end:  # click ends so after completing a word, and if a pipe is closed
        if end.code:
            raise BrokenPipeError from end
        code = EXIT_OK
    except (Exception, KeyboardInterrupt) as error:  # a bug becomes a sentence too
        if isinstance(error, OSError) and not isinstance(error, AiamlError):
            raise
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
    notify(f"{name}: {text}")
    return code
