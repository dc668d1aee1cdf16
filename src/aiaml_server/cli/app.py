"""The verbs, and the one place where what they raise becomes a sentence and an exit code."""

from __future__ import annotations

import os
import sys
import textwrap
import traceback
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import click

from aiaml_server import __version__, toolsets
from aiaml_server.errors import AiamlError, InvalidInput, InvalidSetting, StoreError
from aiaml_server.invisible import marked_line
from aiaml_server.settings import VARIABLES
from aiaml_server.terminal import (
    DONE,
    INTERRUPTED,
    PIPE_CLOSED,
    REFUSED,
    USAGE,
    Ended,
    note,
    out,
    take_streams,
    wrapped,
)
from aiaml_server.toolset import at

SETTINGS = (*VARIABLES, toolsets.VARIABLE)

HELP = """\
One memory, in plain files, for every AI agent that you use.

Agents reach it over MCP: `aiaml serve`, or `aiaml-server` without a word, is what their programs
start. The other verbs are for you.

\b
Examples:
  aiaml install --all                 connect the agents on this computer
  aiaml list                          the newest memories
  aiaml search dinner vegetarian      what an agent would find
  aiaml doctor                        whether all is well, and what to do
"""

EXIT_CODES = """\
Exit codes:
  0    done
  1    nothing found, or not wanted after all
  2    wrong usage or setting
  3    a disk, git or a file refused
  130  Ctrl-C
  141  whoever read the output went away
"""


def epilog() -> str:
    """Return what `--help` ends with: every setting, every exit code."""
    width = max(len(each.name) for each in SETTINGS) + 4
    lines = [
        textwrap.fill(
            f"{each.help}; default {each.default}" if each.default else each.help,
            80,
            initial_indent=f"  {each.name}".ljust(width),
            subsequent_indent=" " * width,
        )
        for each in SETTINGS
    ]
    settings = "\n".join(["Settings (environment variables):", *lines])
    return f"\b\n{settings}\n\n\b\n{EXIT_CODES}"


VERBS = {
    "list": "show:list_",
    "show": "show:show",
    "search": "show:search",
    "topics": "stats:topics",
    "stats": "stats:stats",
    "remember": "remember:remember",
    "edit": "remember:edit",
    "forget": "remember:forget",
    "web": "web:web",
    "history": "history:history",
    "restore": "history:restore",
    "log": "history:log",
    "status": "status:status",
    "sync": "status:sync",
    "keep-local": "keep_local:keep_local",
    "doctor": "doctor:doctor",
    "where": "status:where",
    "toolsets": "toolsets:toolsets",
    "import": "import_export:import_",
    "export": "import_export:export",
    "install": "install:install",
    "uninstall": "install:uninstall",
    "completion": "completion:completion",
    "demo": "serve:demo_verb",
    "serve": "serve:serve_verb",
}
"""Each verb, in the order that `--help` has them, and where it is: imported only when used."""


class Verbs(click.Group):
    """The command line with all its verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the verbs, and of the toolsets that have some of their own."""
        return [*VERBS, *_groups()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return a verb; a wrong name is answered with the nearest."""
        if cmd_name in (groups := _groups()):
            group: click.Command = at(groups[cmd_name])
            if (door := toolsets.door(cmd_name)).hooks and isinstance(group, click.Group):
                from .hooks import add  # noqa: PLC0415 (the other toolsets have none)

                add(group, door)
            return group
        if cmd_name not in VERBS:
            near = get_close_matches(cmd_name, [*VERBS, *groups], 1)
            hint = f", but {near[0]!r}" if near else ""
            raise click.UsageError(f"there is no verb {cmd_name!r}{hint}", ctx)
        module, _, function = VERBS[cmd_name].partition(":")
        verb: click.Command = getattr(import_module(f".{module}", __package__), function)
        return verb


def _groups() -> dict[str, str]:
    """Return the place of each toolset's verbs, by its name."""
    return {name: place for name in toolsets.NAMES if (place := toolsets.door(name).verbs)}


@click.command(
    cls=Verbs,
    name="aiaml",
    help=HELP,
    epilog=epilog(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="aiaml-server", message="%(prog)s %(version)s")
@click.option(
    toolsets.OPTION,
    "names",
    metavar="NAME",
    multiple=True,
    help="The toolset to serve or to demonstrate, instead of remember, think and recall; can be"
    " given several times. `aiaml toolsets` lists them.",
)
@click.pass_context
def aiaml(context: click.Context, names: tuple[str, ...]) -> None:
    """Run one verb."""
    if names and context.invoked_subcommand not in ("serve", "demo"):
        raise click.UsageError(f"{toolsets.OPTION} goes with serve and demo")
    context.obj = names


def run(words: Sequence[str]) -> int:
    """Run one command line; return the exit code."""
    name = program()
    take_streams()
    try:
        code = _run(name, words)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _abandoned(PIPE_CLOSED)
    except OSError as error:  # the verbs have said what they know; here is what nobody expected
        with suppress(OSError):
            place = error.filename or "standard input or output"
            _complain(name, StoreError("use", place, error))
        code = _abandoned(REFUSED)
    return code


def _run(name: str, words: Sequence[str]) -> int:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # no-color.org
    try:
        code = aiaml.main(
            list(words) or ["--help"],
            prog_name=name,
            standalone_mode=False,
            color=False if plain else None,
        )
    except (KeyboardInterrupt, click.Abort):
        note("")
        return INTERRUPTED
    except click.ClickException as error:
        return _misused(name, error)
    except AiamlError as error:
        return _refused(name, error)
    except SystemExit as left:  # click leaves so after the Tab key, and with 1 at a closed pipe
        if left.code:
            raise BrokenPipeError from left
        return DONE
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 (a mistake of ours, told as a sentence)
        return _mistake(name, error)
    return code if isinstance(code, int) else DONE


def _misused(name: str, error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a toolset's name without a verb
        out(error.format_message())
        return DONE
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else name
    say = " ".join(error.format_message().split()).rstrip(".?")
    _complain(name, f"{say}; `{path} --help` tells more")
    return USAGE


def _refused(name: str, error: AiamlError) -> int:
    if isinstance(error, Ended):
        note(wrapped(f"{name}: {error}", 2, err=True))
        return error.code
    _complain(name, error)
    return USAGE if isinstance(error, (InvalidInput, InvalidSetting)) else REFUSED


def _complain(name: str, sentence: object) -> None:
    """Say on one line what went wrong, whatever names are in it."""
    note(wrapped(f"{name}: {marked_line(str(sentence))}", 2, err=True))


def _mistake(name: str, error: Exception) -> int:
    """Say that the program failed where it should not have, and where to report that."""
    if os.environ.get("AIAML_LOG_LEVEL", "").upper() == "DEBUG":
        note("".join(traceback.format_exception(error)).rstrip())
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    told = "please report it, with what the same command shows under AIAML_LOG_LEVEL=DEBUG"
    _complain(name, f"a mistake in the program itself: {what}; {told}")
    return REFUSED


def _abandoned(code: int) -> int:
    """Give up what could not be written, which the interpreter flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return code


def program() -> str:
    """Return the name that the program was called by: `aiaml`, or `aiaml-server`."""
    stem = Path(sys.argv[0]).stem
    return stem if stem in ("aiaml", "aiaml-server") else "aiaml"
