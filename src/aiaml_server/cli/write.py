"""The commands remember and edit."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from aiaml_server.cli.context import found_by, opened, quoted
from aiaml_server.cli.filtering import MemoryId
from aiaml_server.format.languages import common, language_of
from aiaml_server.format.memory import MAX_CONTENT, Memory, must_be, usual_user
from aiaml_server.format.secrets import find_secret
from aiaml_server.index import Question
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Exit,
    echo,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

Result = TypeVar("Result")
_WORDS_COMPARED = 64
_NEWEST = 100  # memories that tell whom most are about
_EDITOR_FAILED = (
    "the editor failed, was not found, or left no text in UTF-8. Set EDITOR to another one, such "
    "as EDITOR=nano"
)
_NO_TOPIC = (
    "no topic can be made of this text: it is empty, has only common words, or seems to contain a "
    "password or key. Name a topic with --topic WORD"
)


@click.command("remember")
@click.argument("words", metavar="[CONTENT]", nargs=-1)
@click.option(
    "--topic",
    "-t",
    "topics",
    metavar="WORD",
    multiple=True,
    help="A topic; repeatable. Without one, the two rarest words of the text.",
)
@click.option(
    "--user",
    "-u",
    metavar="NAME",
    help="Whom it is about; by default the user that most of your memories are about.",
)
@click.option(
    "--agent", "-a", metavar="NAME", default="human", help="Who says so; human by default."
)
def remember(words: Sequence[str], topics: Sequence[str], user: str | None, agent: str) -> None:
    """Store a memory.

    Without CONTENT, or if it is `-`, the text is read from standard input. On a terminal your
    editor ($VISUAL, $EDITOR) opens instead.

    \b
    Examples:
      aiaml remember "Max sees the vet on Tuesdays."
      aiaml remember "Max is allergic to chicken." -t dog -t health
      aiaml remember -t recipe < bread.md
    """
    content = " ".join(words)
    if len(words) > 1:
        raise Exit(f'put the text in quotes: aiaml remember "{content}"', EXIT_USAGE)
    with opened() as bank:
        about = user or usual_user(memory for _, memory in islice(bank.newest(), _NEWEST))

        def store(text: str) -> Memory:
            named = topics or _rarest_words(bank, text)
            return bank.add(Memory.new(agent, about, named, text))

        if not words and sys.stdin.isatty():
            memory = _edit_text("", store)
        else:
            memory = store(content if words and content != "-" else _read_input())
        echo(f"Stored {memory.id} about {memory.user}. Topics: {', '.join(memory.topics)}.")
        echo(f"Undo: aiaml forget {memory.id}")


def _read_input() -> str:
    try:
        return sys.stdin.buffer.read(MAX_CONTENT + 2).decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise must_be("content") from error


def _rarest_words(bank: MemoryBank, content: str) -> list[str]:
    """Return the two rarest words of a text, without common words.

    Raises:
        Exit: there is none, or the text holds a secret, of which no topic must be made.
    """
    words = re.findall(r"\w{2,40}", content.lower())[:_WORDS_COMPARED]
    if find_secret(content) or common(language_of(words)).issuperset(words):
        raise Exit(_NO_TOPIC, EXIT_USAGE)
    answer = bank.index.search(Question.parse(words), part=slice(1))  # common words are left out
    rarest = sorted(answer.words, key=lambda word: (-round(word.rarity, 6), -len(word.text)))
    return [word.text for word in rarest[:2]]


@click.command("edit")
@click.argument("memory_id", metavar="ID", type=MemoryId())
def edit(memory_id: str) -> None:
    """Edit a memory in your editor.

    The editor is that of $VISUAL or $EDITOR. An invalid edit is rejected, and your text is kept.

    \b
    Example:
      EDITOR=nano aiaml edit 1b2c
    """
    with opened() as bank:
        name, memory = found_by(bank, [memory_id])[0]
        before = bank.text(name)
        is_saved = _edit_text(before, lambda after: bank.edit(name, before, after))
    echo(f"Changed {memory.id}.")
    if is_saved:
        echo(f"Undo: aiaml restore {quoted([memory.id])}")


def _edit_text(text: str, store: Callable[[str], Result]) -> Result:
    """Open an editor with a text, and store the result. What cannot be stored is kept in a file.

    Raises:
        Exit: nothing was changed, or it cannot be stored; the sentence says where the text is.
    """
    directory = Path(tempfile.mkdtemp(prefix="aiaml-"))
    path = directory / "memory.md"
    path.write_bytes(text.encode())
    try:
        result = store(_edited(text, path))
    except BaseException as error:
        if not path.exists() or path.read_bytes() == text.encode():
            shutil.rmtree(directory, ignore_errors=True)
            raise
        code = EXIT_INTERRUPTED if isinstance(error, KeyboardInterrupt) else EXIT_FAILED
        reason = str(error) or "interrupted"
        raise Exit(f"not stored: {reason}. Your text is in {path}", code) from error
    shutil.rmtree(directory, ignore_errors=True)
    return result


def _edited(before: str, path: Path) -> str:
    """Open the editor; return what it left in the file."""
    try:
        click.edit(filename=os.fspath(path))
        after = path.read_bytes().decode()
    except (click.ClickException, FileNotFoundError, ValueError) as error:
        raise Exit(_EDITOR_FAILED) from error
    if after == before:
        raise Exit("nothing was changed")
    return after
