"""What the verbs share: settings, the bank, what is printed, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import AiamlError
from aiaml_server.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

DONE = 0
NOTHING = 1  # not found, no match, not wanted; or a warning of `doctor`
USAGE = 2
REFUSED = 3  # the disk, git or a file refused; or an error of `doctor`
INTERRUPTED = 130
PIPE_CLOSED = 141


class Ended(AiamlError):  # noqa: N818 (it need not be an error)
    """The verb ends here.

    Attributes:
        code: the exit code.
    """

    def __init__(self, sentence: str, code: int = NOTHING) -> None:
        super().__init__(sentence)
        self.code = code


as_json = click.option("--json", "json", is_flag=True, help="Print JSON, for programs.")
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def settings() -> Settings:
    """Return the settings of the environment.

    Raises:
        InvalidSetting: a variable cannot be used.
    """
    return Settings.from_environ(os.environ)


@contextmanager
def opened() -> Iterator[MemoryBank]:
    """Open the bank of the environment's settings, without any background work."""
    bank = MemoryBank(settings())
    try:
        yield bank
    finally:
        bank.close()


def out(text: str = "") -> None:
    """Print an answer; control characters that came from a file never reach the terminal."""
    click.echo(safe(text))


def note(text: str) -> None:
    """Tell the person something that is not the answer: on stderr, so that pipes stay clean."""
    click.echo(safe(text), err=True)


def out_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(value, ensure_ascii=not _utf8(), indent=2))


def confirm(question: str) -> None:
    """Ask on the terminal; without one nobody can answer.

    Raises:
        Ended: the answer is no, or there is nobody to ask.
    """
    if not sys.stdin.isatty():
        raise Ended("there is no terminal to ask on; `--yes` says yes", USAGE)
    if not click.confirm(question, err=True):
        raise Ended("nothing was changed")


def bold(text: str) -> str:
    """Return text that stands out on a terminal."""
    return click.style(text, bold=True)


def dim(text: str) -> str:
    """Return text that stands back on a terminal."""
    return click.style(text, dim=True)


def safe(text: str) -> str:
    """Show control characters instead of obeying them: a memory is data that anyone wrote.

    Tabs, line ends and plain colours, which are ours, stay.
    """
    if text.isprintable():
        return text
    pieces = re.split("(\x1b\\[(?:[0-2]|3[0-7])m)", text)
    return "".join(
        piece if number % 2 else "".join(map(_visible, piece))
        for number, piece in enumerate(pieces)
    )


def one_line(text: str, width: int) -> str:
    """Return the first words of a text, at most `width` characters of them."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def width() -> int:
    """Return the columns there are: the terminal's, `COLUMNS`, or 80."""
    return max(shutil.get_terminal_size().columns, 40)


def console() -> Console:
    """Return rich's view of standard output."""
    from rich.console import Console  # noqa: PLC0415 (a tenth of a second; few verbs need it)

    return Console(width=width(), highlight=False, soft_wrap=False)


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: "1 memory", "2,000 memories"."""
    many = nouns or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{number:,} {noun if number == 1 else many}"


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence has them: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _utf8() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


def _visible(character: str) -> str:
    if character in "\n\t" or character.isprintable() or character == "\u200d":
        return character
    if character.isspace():
        return " "
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"
