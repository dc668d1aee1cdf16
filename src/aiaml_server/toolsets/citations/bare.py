"""The command on a bare Python: `python -m aiaml_server.toolsets.citations`, or a zip file of it.

This is the one module of the command lines that writes to the terminal by itself: the room that all
others use needs a library.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from aiaml_server.format.invisible import inert, inert_json, marked, marked_line
from aiaml_server.toolsets.citations.command import (
    COULD_NOT,
    VERBS,
    Kept,
    Option,
    Screen,
    Verb,
    run,
)
from aiaml_server.toolsets.citations.failures import ToolError

INTERRUPTED, PIPE_CLOSED = 130, 141


class _Screen(Screen):
    """The standard streams; what nobody would see is shown as code points."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")

    def out(self, line: str) -> None:
        sys.stdout.write(f"{inert(marked_line(line))}\n")

    def out_command(self, text: str) -> None:
        sys.stdout.write(f"::{inert(marked_line(text))}\n")

    def out_text(self, text: str) -> None:
        sys.stdout.write(f"{inert(marked(text))}\n")

    out_source = out_text

    def note(self, line: str) -> None:
        sys.stderr.write(f"{inert(marked_line(line))}\n")

    fail = note

    def out_json(self, value: Any) -> None:
        sys.stdout.write(f"{inert_json(json.dumps(value, indent=2))}\n")

    def confirm(self, question: str) -> None:
        if not sys.stdin.isatty():
            raise ToolError("there is no terminal to ask on; `--yes` says yes")
        sys.stderr.write(f"{inert(marked_line(question))} [y/N]: ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Kept("nothing was changed")


def parser(prog: str | None = None) -> argparse.ArgumentParser:
    """Return what reads the command's words."""
    top = argparse.ArgumentParser(prog, description=_SUMMARY)
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        examples = "\n".join(f"  {each}" for each in verb.examples)
        each = verbs.add_parser(
            verb.name,
            help=verb.does.partition("\n")[0],
            description=verb.does,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for option in verb.options:
            _add(each, option)
        each.set_defaults(run=verb)
    return top


_SUMMARY = "Memories of a code base that cite its lines, and know when they are stale."


def _add(to: argparse.ArgumentParser, option: Option) -> None:
    words: dict[str, Any] = {"help": option.help}
    if not option.metavar:
        words["action"] = "store_true"
    else:
        words |= {"metavar": option.metavar, "default": option.default}
        if option.choices:
            words["choices"] = option.choices
            words["metavar"] = "|".join(option.choices)
        if option.number:
            words["type"] = int
        if option.many and option.name.startswith("-"):
            words["action"] = "append"
            words["default"] = []
        elif option.many:
            words["nargs"] = "+" if option.needed else "*"
        elif option.unsaid or not (option.name.startswith("-") or option.needed):
            words |= {"nargs": "?", "const": option.unsaid or None}
    to.add_argument(option.name, **words)


def main(words: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run the command; return the exit code."""
    given = vars(parser(prog).parse_args(words))
    verb: Verb = given.pop("run")
    screen = _Screen()
    try:
        code = run(verb, screen, given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        screen.note(str(error))
        return COULD_NOT
    except Exception:  # noqa: BLE001 (a fault of this program is no verdict: 1 would mean stale)
        traceback.print_exc()
        return COULD_NOT
    return code
