"""What the verbs share: settings, the bank, what is printed, exit codes."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from aiaml_server.bank import MemoryBank
from aiaml_server.errors import AiamlError
from aiaml_server.memory import Memory
from aiaml_server.settings import Settings
from aiaml_server.sync import Occupied, Status, once, remembered

DONE = 0
NOTHING = 1  # not found, no match, not wanted; or a warning of `doctor`
USAGE = 2
REFUSED = 3  # the disk, git or a file refused; or an error of `doctor`
INTERRUPTED = 130
PIPE_CLOSED = 141

_PATIENCE = 10.0  # seconds for another process that synchronises
MANY = 2000  # files that are worth showing progress for
Item = TypeVar("Item")


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

    A client may have told its servers of a remote that a person's shell does not know of. So where
    the variable is not set here, the address that was last used holds, as long as it is in use.

    Raises:
        InvalidSetting: a variable cannot be used.
    """
    chosen = Settings.from_environ(os.environ)
    if "AIAML_GITHUB_REMOTE" in os.environ or not Status.read(chosen.base).remote:
        return chosen
    return replace(chosen, remote=remembered(chosen.base))


@contextmanager
def opened() -> Iterator[MemoryBank]:
    """Open the bank of the environment's settings, without any background work."""
    bank = MemoryBank(settings(), lasting=False)
    try:
        yield bank
    finally:
        bank.close()


def commit(chosen: Settings, *, first: bool = False) -> Status | None:
    """Commit what is new on this machine; a server or `aiaml sync` brings it to the others.

    Args:
        chosen: which directory.
        first: whether git must have it before something is changed: then another process that is at
            it is waited for. Otherwise the next round has it.

    Returns:
        How things stand; None when git does not have what is new.
    """
    if not chosen.sync:
        return None
    try:
        status = once(chosen, local=True, seconds=_PATIENCE if first else 0.0)
    except AiamlError as error:
        if first or not isinstance(error, Occupied):
            note(f"Not committed to git yet: {error}")
        return None
    if status.problem:
        note(f"Not committed to git yet: {status.problem}")
    return None if status.problem else status


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
    return text if text.isprintable() else _UNSAFE.sub(lambda m: m[1] or _visible(m[0]), text)


def visible(memory: Memory) -> Memory:
    """Return a memory as it may be shown, without colours of its own."""
    whole = "\0".join((memory.agent, memory.user, memory.content, *memory.topics, memory.id))
    if "\x1b" not in whole:
        return memory
    shown = replace(memory, topics=tuple(each.replace("\x1b", "\\x1b") for each in memory.topics))
    texts = {name: getattr(shown, name) for name in ("id", "timestamp", "agent", "user", "content")}
    return replace(shown, **{name: text.replace("\x1b", "\\x1b") for name, text in texts.items()})


_UNSAFE = re.compile("(\x1b\\[(?:[0-2]|3[0-7])m)|[^\\n\\t -~]")


def one_line(text: str, most: int) -> str:
    """Return the first words of a text on one line, at most `most` columns of them."""
    line = " ".join(text[: 4 * most].split())
    if columns(line) <= most:
        return line
    end, room = 0, most - 1
    while (room := room - columns(line[end])) >= 0:
        end += 1
    return f"{line[:end].rstrip()}…"


def padded(text: str, most: int) -> str:
    """Return a text that takes exactly `most` columns, or `one_line` of it."""
    text = one_line(text, most)
    return text + " " * (most - columns(text))


def columns(text: str) -> int:
    """Return how many columns a text takes: two for a wide character, none for a mark on one."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def progress(items: Sequence[Item], doing: str) -> Iterator[Item]:
    """Return the items one by one, and show how far it is where a person waits for many."""
    if len(items) < MANY or not sys.stderr.isatty():
        yield from items
        return
    with click.progressbar(items, label=doing, file=sys.stderr) as shown:
        yield from shown


def width() -> int:
    """Return the columns there are: the terminal's, `COLUMNS`, or 80."""
    return max(shutil.get_terminal_size().columns, 40)


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: "1 memory", "2,000 memories"."""
    many = nouns or (f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s")
    return f"{number:,} {noun if number == 1 else many}"


def in_bytes(count: float) -> str:
    """Return a size in words: "187 bytes", "4.7 KiB", "260 MiB"."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return (
                f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
            )
        count /= 1024
    return f"{count:,.1f} GiB"


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
