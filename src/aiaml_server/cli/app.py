"""The verbs, and the one place where what they raise becomes a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from aiaml_server import __version__, toolsets
from aiaml_server.cli.context import use_directory
from aiaml_server.errors import AiamlError, InvalidInput, InvalidSetting, StoreError
from aiaml_server.format.invisible import marked_line
from aiaml_server.settings import PAGER, SETTINGS
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    Exit,
    be_silent,
    configure_streams,
    echo,
    is_interactive,
    notify,
    terminal_width,
    wrap,
    wrap_line,
)
from aiaml_server.toolset import Manifest

if TYPE_CHECKING:
    pass

ALL_SETTINGS = (*SETTINGS, *toolsets.SETTINGS, PAGER)

HELP = """\
One memory, in plain files, for every AI agent that you use.

Agents reach it over MCP: `aiaml serve`, or `aiaml-server` without a word, is what their programs
start. The other verbs are for you.

\b
Examples:
  aiaml install --all                 connect the agents on this computer
  aiaml list                          the newest memories
  aiaml search when is the rehearsal  what answers your question
  aiaml doctor                        whether all is well, and what to do
"""

EXIT_CODES = {
    "0": "done",
    "1": "nothing found, not wanted after all, or it failed",
    "2": "wrong usage or setting",
    "130": "Ctrl-C; another signal: 128 and its number",
}


VERBS = {
    "list": ("show:list_", "List memories, newest first."),
    "show": ("show:show", "Show memories whole, their markdown rendered."),
    "search": ("show:search", "Find what answers a question in your own words, the best first."),
    "stats": ("stats:stats", "Count memories by agent, user, topic and month."),
    "remember": ("remember:remember", "Store a memory of your own, for every agent to find."),
    "edit": ("remember:edit", "Change a memory's file in your editor ($VISUAL, $EDITOR)."),
    "forget": (
        "forget:forget",
        "Delete memories, after showing them and asking: by their ids, or all that a filter means.",
    ),
    "web": ("web:web", "See, search, edit and forget memories in the browser."),
    "history": ("history:history", "Show every version that a memory has had, newest first."),
    "restore": ("history:restore", "Bring back an earlier version, or a forgotten memory."),
    "log": ("history:log", "Show what came, changed and went lately, and from where."),
    "status": ("status:status", "Show how sync stands, and what to do where it fails."),
    "sync": ("status:sync", "Save what is new now, and exchange it with your other computers."),
    "doctor": ("doctor:doctor", "Check everything, and say what to do."),
    "import": ("import_:import_", "Bring in memories and notes from other systems."),
    "export": ("export:export", "Write memories to one file, to keep, to read or to take along."),
    "install": ("install:install", "Connect AI clients, by an entry in their configuration files."),
    "uninstall": ("install:uninstall", "Take the entry out of AI clients' files again."),
    "trust": ("trust:trust_command", "List the directories that you trust, or trust one."),
    "demo": ("demo:demo", "Watch the tools at work, in a throw-away place."),
    "serve": ("app:serve_verb", "Serve one MCP client on standard input and output."),
}
"""Each verb, in the order that `--help` has them: where it is, imported only when used; and what it
says of itself."""

_TWO_COLUMNS = 56  # what names and meanings need side by side


class Help(click.HelpFormatter):
    """Writes what `--help` shows; on a terminal of any width, lines break between words."""

    def write_text(self, text: str) -> None:
        """Write a text; examples and tables, which click leaves as they are, break as well."""
        begin = len(self.buffer)
        super().write_text(text)
        self.buffer[begin:] = [wrap("".join(self.buffer[begin:]), 4)]

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write names and what they mean: below each other where columns would be too narrow."""
        rows = list(rows)
        room = self.width - self.current_indent
        if room >= _TWO_COLUMNS or max(len(name) for name, _ in rows) <= room / 3:
            super().write_dl(rows, col_max, col_spacing)
            return
        margin = " " * self.current_indent
        for name, meaning in rows:
            name = name if len(name) <= room else name.replace("|", "| ")  # noqa: PLW2901
            for text in (f"{margin}{name}", f"{margin}    {meaning}"):
                self.write("\n".join(wrap_line(text, self.width)) + "\n")


click.Context.formatter_class = Help  # of the toolsets' verbs as well


class Verbs(click.Group):
    """The command line with all its verbs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the verbs, and of our toolsets that have some of their own."""
        return [*VERBS, *(each.name for each in _with_verbs())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a verb, or None where there is none of that name."""
        if cmd_name in VERBS:
            module, _, function = VERBS[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(f".{module}", __package__), function)
            return command
        try:
            manifest = toolsets.manifest(cmd_name)
        except LookupError:
            return None
        if not manifest.commands:
            return None
        group: click.Command = resolve_name(manifest.commands)
        return group

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs, each with its sentence, and the toolsets that have some."""
        with formatter.section("Verbs"):
            rows = [(name, summary) for name, (_, summary) in VERBS.items()]
            formatter.write_dl(rows)
        with formatter.section("Toolsets, each with verbs of its own"):
            formatter.write_dl([(each.name, each.summary) for each in _with_verbs()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write every setting and every exit code."""
        rows = []
        for each in ALL_SETTINGS:
            default = f"; default {each.default}" if each.default else ""
            rows.append((each.name, f"{each.help}{default}"))
        with formatter.section("Settings (environment variables)"):
            formatter.write_dl(rows)
        with formatter.section("Exit codes"):
            formatter.write_dl(list(EXIT_CODES.items()))


def _with_verbs() -> list[Manifest]:
    """Return the manifests of our toolsets that have verbs of their own."""
    return [each for each in map(toolsets.manifest, toolsets.OWN) if each.commands]


_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.command(cls=Verbs, name="aiaml", help=HELP, context_settings=_CONTEXT)
@click.version_option(
    __version__, "--version", "-V", prog_name="aiaml-server", message="%(prog)s %(version)s"
)
@click.option(
    toolsets.OPTION,
    "names",
    metavar="NAME",
    multiple=True,
    help="The toolset to serve, instead of remember, think and recall; can be given several times.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    help="Act on this memory directory instead of that of AIAML_MEMORY_DIR.",
)
@click.option("--no-pager", is_flag=True, help="Print long answers without $PAGER, or less.")
@click.pass_context
def aiaml(
    context: click.Context, names: tuple[str, ...], directory: str | None, no_pager: bool
) -> None:
    """Run one verb."""
    if directory is not None:
        use_directory(directory)
    if names and context.invoked_subcommand != "serve":
        raise click.UsageError(f"{toolsets.OPTION} goes with serve")
    context.obj = names
    if not no_pager and is_interactive():
        from aiaml_server.cli.paging import PAGED, paged  # noqa: PLC0415 (a pipe needs none)

        if context.invoked_subcommand in PAGED:
            context.with_resource(paged())


@click.command("serve")
@click.pass_obj
def serve_verb(names: Sequence[str]) -> int:
    """Serve one MCP client on standard input and output.

    Clients start it so; `aiaml-server` without a word does the same.
    """
    from aiaml_server.cli.serving import serve  # noqa: PLC0415 (no other verb speaks MCP)

    return serve(names)


def run(words: Sequence[str], name: str = "", group: str = "") -> int:
    """Run one command line; return the exit code.

    Args:
        words: what stands behind the program's name.
        name: what the program was called by; else it is looked up.
        group: the toolset whose verbs these are, where the program has no others.
    """
    name = name or program()
    configure_streams()
    if any(each.endswith("_COMPLETE") and each.startswith("_AIAML") for each in os.environ):
        be_silent()
    try:
        code = _run(name, words, group)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _abandoned(EXIT_FAILED)
    except OSError as error:  # the verbs have said what they know; here is what nobody expected
        with suppress(OSError):
            gone = isinstance(error, FileNotFoundError)
            other = "the working directory" if gone else "standard input or output"
            _complain(name, StoreError("use", error.filename or other, error))
        code = _abandoned(EXIT_FAILED)
    return code


def _run(name: str, words: Sequence[str], group: str) -> int:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # no-color.org
    try:
        verbs = (aiaml.get_command(click.Context(aiaml), group) if group else None) or aiaml
        code = verbs.main(
            list(words) or ["--help"],
            prog_name=name,
            standalone_mode=False,
            terminal_width=min(terminal_width(), 100) - 2,  # click's own never goes below 50
            color=False if plain else None,
            **(_CONTEXT if group else {}),
        )
    except (KeyboardInterrupt, click.Abort):
        notify("")
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        return _misused(name, error)
    except AiamlError as error:
        return _refused(name, error)
    except SystemExit as left:  # click leaves so after the Tab key, and with 1 at a closed pipe
        if left.code:
            raise BrokenPipeError from left
        return EXIT_OK
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 (a mistake of ours, told as a sentence)
        return _mistake(name, error)
    return code if isinstance(code, int) else EXIT_OK


def _misused(name: str, error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a toolset's name without a verb
        echo(error.format_message())
        return EXIT_OK
    _complain(name, error.format_message())
    return EXIT_USAGE


def _refused(name: str, error: AiamlError) -> int:
    if isinstance(error, Exit):
        notify(wrap(f"{name}: {error}", 2, err=True))
        return error.code
    _complain(name, error)
    return EXIT_USAGE if isinstance(error, (InvalidInput, InvalidSetting)) else EXIT_FAILED


def _complain(name: str, sentence: object) -> None:
    """Say on one line what went wrong, whatever names are in it."""
    notify(wrap(f"{name}: {marked_line(str(sentence))}", 2, err=True))


def _mistake(name: str, error: Exception) -> int:
    """Say that the program failed where it should not have, and where to report that."""
    if os.environ.get("AIAML_LOG_LEVEL", "").upper() == "DEBUG":
        from traceback import format_exception  # noqa: PLC0415 (hardly ever needed)

        notify("".join(format_exception(error)).rstrip())
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    told = "please report it, with what the same command shows under AIAML_LOG_LEVEL=DEBUG"
    _complain(name, f"a mistake in the program itself: {what}; {told}")
    return EXIT_FAILED


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
