"""Print to the terminal, for all commands.

Whatever a person sees is printed by `echo`, `notify` and the other functions here. They show
control characters, invisible characters and commands to CI instead of sending them (`safe`). No
other module prints, styles or logs to the terminal; `tests/cli/test_cli_output.py` checks that.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

import click

from aiaml_server.errors import AiamlError
from aiaml_server.format.invisible import INVISIBLE, inert, inert_json, marked
from aiaml_server.format.logs import LogFormatter

log = logging.getLogger(__name__)

EXIT_OK = 0  # exit codes, this and those below
EXIT_NOTHING = 1  # not found, no match, not wanted
EXIT_FAILED = 1  # the disk, git or a file refused; `doctor` found something
EXIT_USAGE = 2  # the words, or a setting, cannot be used
EXIT_INTERRUPTED = 130

MANY = 2000  # files that are worth showing progress for
_SHOWN_SECONDS = 0.2  # between two numbers on a terminal
_LOGGED_SECONDS = 10.0  # and elsewhere
Item = TypeVar("Item")


class Exit(AiamlError):  # noqa: N818 (it need not be an error)
    """The command ends with this sentence and exit code.

    Attributes:
        code: the exit code.
    """

    def __init__(self, sentence: str, code: int = EXIT_NOTHING) -> None:
        super().__init__(sentence)
        self.code = code


_JSON = "Print JSON, for programs."
json_option = click.option("--json", "json", is_flag=True, help=_JSON)
"""The option `--json` of a command."""


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
"""The option `--yes` of a command."""


# --- the one way out ------------------------------------------------------------------------------


def echo(text: str = "") -> None:
    """Print an answer."""
    click.echo(safe(text), sys.stdout)  # named, or click would send UTF-8 where ASCII is asked for


def notify(text: str) -> None:
    """Print a message to stderr, so that only the answer goes into a pipe."""
    click.echo(safe(wrap(text, err=True)), sys.stderr)


def show_status(text: str = "") -> None:
    """Show a transient status line on stderr. Empty text clears it."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{safe(dim(text))}\r" if text else "\r\x1b[K", sys.stderr, nl=False)


def echo_json(value: Any) -> None:
    """Print one JSON document. Invisible characters are escaped."""
    import json  # noqa: PLC0415 (most answers are no JSON)

    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    text = json.dumps(value, ensure_ascii=encoding != "utf8", indent=2)
    text = _INVISIBLE.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(inert_json(text), sys.stdout)


def echo_bytes(data: Iterable[bytes]) -> None:
    """Print UTF-8 texts byte for byte; on a terminal, print them with `safe`."""
    if sys.stdout.isatty():
        for each in data:
            click.echo(safe(each.decode("utf-8", "replace")), sys.stdout, nl=False)
        return
    sys.stdout.flush()
    sys.stdout.buffer.writelines(data)
    sys.stdout.buffer.flush()


def confirm(question: str) -> None:
    """Ask a yes-or-no question on the terminal.

    Raises:
        Exit: the answer is no, or there is no terminal.
    """
    if not sys.stdin.isatty():
        raise Exit("there is no terminal to ask on; confirm with --yes", EXIT_USAGE)
    if not click.confirm(safe(question), err=True):
        raise Exit("nothing was changed")


def prompt(question: str, usual: str | None = None) -> str:
    """Ask for a text on the terminal; Enter alone returns the default `usual`."""
    answer: str = click.prompt(safe(question), default=usual, show_default=bool(usual), err=True)
    return answer


def progress(items: Sequence[Item], doing: str, many: int = MANY) -> Iterator[Item]:
    """Yield the items. If there are at least `many`, show a progress bar, or a line at times."""
    if len(items) < many:
        yield from items
    elif not sys.stderr.isatty():
        yield from counted(items, doing, f" of {len(items):,}")
    else:
        with click.progressbar(items, label=safe(doing), file=sys.stderr) as shown:
            yield from shown


def counted(items: Iterable[Item], doing: str, of: str = "") -> Iterator[Item]:
    """Yield the items, and show at times how many there were: "Reading: 2,000"."""
    is_seen = sys.stderr.isatty()
    seconds = _SHOWN_SECONDS if is_seen else _LOGGED_SECONDS
    due = time.monotonic() + seconds
    for number, item in enumerate(items):
        if time.monotonic() >= due:
            due = time.monotonic() + seconds
            (show_status if is_seen else notify)(f"{doing}: {number:,}{of}")
        yield item
    show_status()


class _Log(logging.Handler):
    """Prints what the package logs while no server runs."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError, ValueError):  # standard error is closed: nobody is there to tell
            notify(self.format(record))


def configure_streams() -> None:
    """Prepare the standard streams for a command, and print log records with `notify`.

    Errors that end a thread are logged too.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if (
            getattr(sys, name) is None
        ):  # closed; a file that is opened later must not get its number
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
    # Unbuffered (PYTHONUNBUFFERED), what a full disk cuts short would count as written.
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = os.fdopen(1, "w", 1, encoding=sys.stdout.encoding, closefd=False)
    for stream in (sys.stdout, sys.stderr):  # do not fail at a character that the terminal lacks
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    handler = _Log(logging.WARNING)
    handler.setFormatter(LogFormatter())
    logging.lastResort = handler
    threading.excepthook = _thread_ended


def echo_paged(lines: Iterable[str]) -> None:
    """Print an answer, with a pager if it does not fit on the terminal."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        for line in lines:
            echo(line)
        return
    os.environ.setdefault("LESS", "FRX")  # less ends by itself if all fits on the screen
    with click.get_pager_file(color=not os.environ.get("NO_COLOR")) as pager:
        for line in lines:
            pager.write(f"{safe(line)}\n")


def _thread_ended(args: threading.ExceptHookArgs) -> None:
    if args.exc_value and not isinstance(args.exc_value, SystemExit):
        log.error("A thread ended", exc_info=args.exc_value)


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


def unstyled(text: str) -> str:
    """Return the text without styles."""
    return _STYLE.sub("", text)


def safe(text: str) -> str:
    """Return text with control and invisible characters as code points.

    Line feeds, tabs and our own styles stay. Commands to CI are made inert as well (`inert`).
    """
    pieces = _STYLE.split(text)
    pieces[::2] = map(marked, pieces[::2])
    pieces[1::2] = [f"\x1b[{number}m" for number in pieces[1::2]]
    return inert("".join(pieces))


_STYLES = {
    "bold": 1, "dim": 2, "italic": 3, "underline": 4, "struck": 9,
    "red": 31, "green": 32, "yellow": 33, "cyan": 36,
}  # fmt: skip
# A style begins with a random mark that is drawn at each start, so no other text can contain it:
# an escape sequence in a memory is shown as code points.
_KEY = f"\x1b{os.urandom(12).hex()}:"
_STYLE = re.compile(rf"{_KEY}(\d+)m")
_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def truncate(text: str, most: int) -> str:
    """Return the beginning of a text on one line of at most `most` columns, `marked`."""
    line = " ".join(marked(text[: 4 * most]).split())
    if display_width(line) <= most:
        return line
    end, room = 0, most - display_width("…")
    while (room := room - display_width(line[end])) >= 0:
        end += 1
    return f"{line[:end].rstrip()}…"


def wrap(text: str, hang: int = 0, *, err: bool = False) -> str:
    """Break lines between words at the width of the terminal.

    In a pipe or a file the text stays as it is.

    Args:
        text: the text; continued lines keep the indentation of their first line.
        hang: how many columns continued lines are indented more.
        err: whether it is printed to stderr.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        return text
    room = terminal_width(err=err)
    return "\n".join(each for line in text.split("\n") for each in wrap_line(line, room, hang))


def wrap_line(line: str, room: int, hang: int = 0) -> list[str]:
    """Break a line at `room` columns; a longer word stays whole."""
    rest = line.lstrip(" ")
    indent = len(line) - len(rest)
    lines = [line[:indent]]
    used = indent
    indent = min(indent + hang, room // 2)
    gap = ""
    for piece in re.split("( +)", rest):
        if piece.startswith(" "):
            gap = piece
            continue
        size = display_width(marked(unstyled(piece)))
        if used + len(gap) + size > room and lines[-1].strip(" "):
            lines.append(" " * indent)
            used, gap = indent, ""
        lines[-1] += gap + piece
        used += len(gap) + size
        gap = ""
    return lines


def display_width(text: str) -> int:
    """Return how many columns a text takes: 2 for a wide character, 0 for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


@lru_cache(1 << 12)
def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def is_terminal() -> bool:
    """Return whether output is for a person: stdout is a terminal, or FORCE_TTY is set."""
    return bool(os.environ.get("FORCE_TTY")) or sys.stdout.isatty()


def terminal_width(*, err: bool = False) -> int:
    """Return the width in columns: `COLUMNS`, that of the terminal, or 80."""
    columns = os.environ.get("COLUMNS", "")
    found = int(columns) if columns.isdecimal() else 0
    with suppress(OSError):  # closed, or no terminal; `shutil` has this, and is slow
        found = found or os.get_terminal_size(2 if err else 1).columns
    return max(found or 80, 40)


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: "1 memory", "2,000 memories"."""
    many = nouns or (f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s")
    return f"{number:,} {noun if number == 1 else many}"


def join_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
