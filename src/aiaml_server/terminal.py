"""Print to the terminal, for all commands.

Whatever a person sees is printed by `echo`, `notify` and the other functions here. They show
control characters, invisible characters and commands to CI instead of sending them (`safe`).
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterable
from itertools import chain
from typing import Any

import click
from rich.cells import cell_len, set_cell_size

from aiaml_server.errors import AiamlError
from aiaml_server.format.invisible import INVISIBLE, inert, inert_json, marked
from aiaml_server.format.logs import LogFormatter

log = logging.getLogger(__name__)

EXIT_OK = 0  # exit codes, this and those below
EXIT_NOTHING = 1  # not found, no match, not wanted
EXIT_FAILED = 1  # the disk, git or a file refused; `doctor` found something
EXIT_USAGE = 2  # wrong arguments or settings
EXIT_INTERRUPTED = 130


class Exit(AiamlError):  # noqa: N818 (it need not be an error)
    """The command ends with this sentence and exit code.

    Attributes:
        code: the exit code.
    """

    def __init__(self, sentence: str, code: int = EXIT_NOTHING) -> None:
        super().__init__(sentence)
        self.code = code


json_option = click.option("--json", "json", is_flag=True, help="Print JSON, for programs.")
"""The option `--json` of a command."""


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
"""The option `--yes` of a command."""


# --- the one way out ------------------------------------------------------------------------------


def echo(text: str = "") -> None:
    """Print an answer."""
    click.echo(safe(text), sys.stdout)  # else click sends UTF-8 to an ASCII stream


def notify(text: str) -> None:
    """Print a message to stderr, so that only the answer goes into a pipe."""
    click.echo(safe(wrap(text)), sys.stderr)


def show_status(text: str = "") -> None:
    """Show a transient status line on stderr. Empty text clears it."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{safe(dim(text))}\r" if text else "\r\x1b[K", sys.stderr, nl=False)


def echo_json(value: Any) -> None:
    """Print one JSON document. Invisible characters are escaped."""
    is_utf8 = sys.stdout.encoding.lower() in ("utf-8", "utf8")
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=2)
    text = _INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(inert_json(text), sys.stdout)


def echo_bytes(data: bytes) -> None:
    """Print a UTF-8 text byte for byte; on a terminal, print it with `safe`."""
    if sys.stdout.isatty():
        click.echo(safe(data.decode("utf-8", "replace")), sys.stdout, nl=False)
    else:
        click.echo(data, sys.stdout, nl=False)


def confirm(question: str) -> None:
    """Ask a yes-or-no question on the terminal.

    Raises:
        Exit: the answer is no, or there is no terminal.
    """
    if not sys.stdin.isatty():
        raise Exit("there is no terminal to ask on; confirm with --yes", EXIT_USAGE)
    if not click.confirm(safe(question), err=True):
        raise Exit("nothing was changed")


def configure_streams() -> None:
    """Prepare the standard streams for commands.

    Log records and exceptions of threads are printed with `safe` as well.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed; a file of ours must not get its number
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    # Unbuffered (PYTHONUNBUFFERED), what a full disk cuts short would count as written.
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = os.fdopen(1, "w", 1, encoding=sys.stdout.encoding, closefd=False)
    for stream in (sys.stdout, sys.stderr):  # what an old terminal cannot show is no reason to fail
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort:
        logging.lastResort.setFormatter(LogFormatter())
    threading.excepthook = lambda end: log.error("A thread ended", exc_info=end.exc_value)


def echo_paged(lines: Iterable[str]) -> None:
    """Print an answer, with a pager if it does not fit on the terminal."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        for line in lines:
            echo(line)
        return
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return
    os.environ.setdefault("LESS", "FRX")  # less ends by itself if all fits on the screen
    texts = chain([safe(first)], (f"\n{safe(line)}" for line in rest))  # click adds the last one
    click.echo_via_pager(texts, color=not os.environ.get("NO_COLOR"))


# --- how it looks ---------------------------------------------------------------------------------


def bold(text: str) -> str:
    """Return text in bold."""
    return styled(text, "bold")


def dim(text: str) -> str:
    """Return dimmed text."""
    return styled(text, "dim")


def styled(text: str, style: str | None) -> str:
    """Return text in a style of `_STYLES`; None changes nothing."""
    return f"{_KEY}{_STYLES[style]}m{text}{_KEY}0m" if style else text


def safe(text: str) -> str:
    """Return text with control and invisible characters as code points.

    Line feeds, tabs and our own styles stay. Commands to CI are made inert as well (`inert`).
    """
    pieces = _STYLE.split(text)
    pieces[::2] = map(marked, pieces[::2])
    pieces[1::2] = [f"\x1b[{number}m" for number in pieces[1::2]]
    return inert("".join(pieces))


_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
# A style stands in a text as a mark that no other text can hold, since it is drawn at each start;
# so a colour that a memory or a remote wrote itself is shown and not obeyed.
_KEY = f"\x1b{os.urandom(12).hex()}:"
_STYLE = re.compile(rf"{_KEY}(\d+)m")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def truncate(text: str, most: int) -> str:
    """Return a text on one line, `marked`; on a terminal at most `most` columns of it."""
    is_cut = is_terminal()
    line = " ".join(marked(text[: 4 * most] if is_cut else text).split())
    if not is_cut or cell_len(line) <= most:
        return line
    return set_cell_size(line, most - 1).rstrip() + "…"


def wrap(text: str, hang: int = 0) -> str:
    """Break lines between words at the width of the terminal.

    Elsewhere, in a pipe or a file, lines are not broken, so that they can be searched.

    Args:
        text: the text; continued lines have the indentation of their line.
        hang: additional columns of indentation.
    """
    if not sys.stdout.isatty():
        return text
    return "\n".join(_wrap_line(line, hang) for line in text.split("\n"))


def _wrap_line(line: str, hang: int) -> str:
    indent = " " * (len(line) - len(line.lstrip(" ")) + hang)
    rows = [""]
    for word in re.findall(" *[^ ]+", line):
        if rows[-1] and cell_len(_STYLE.sub("", rows[-1] + word)) > terminal_width():
            rows.append(indent + word.lstrip(" "))
        else:
            rows[-1] += word
    return "\n".join(rows)


def is_terminal() -> bool:
    """Return whether output is for a person: stdout is a terminal, or FORCE_TTY is set."""
    return bool(os.environ.get("FORCE_TTY")) or sys.stdout.isatty()


def terminal_width() -> int:
    """Return the width in columns: `COLUMNS`, that of the terminal, or 80."""
    return max(shutil.get_terminal_size().columns, 40)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: "1 memory", "2,000 memories"."""
    many = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"
