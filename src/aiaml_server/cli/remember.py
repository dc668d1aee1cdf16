"""`remember` and `edit`: what a person writes."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiaml_server.cli.context import opened, quoted, settings
from aiaml_server.format.memory import (
    MAX_CONTENT,
    Memory,
    must_be,
    parse,
    usual_user,
)
from aiaml_server.storage.programs import find
from aiaml_server.terminal import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    Exit,
    echo,
    echo_json,
    join_words,
    json_option,
    notify,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_FORM = """\
---
agent: {agent}
user: {user}
topics: [{topics}]
---

"""


# --- remember -------------------------------------------------------------------------------------


@click.command("remember")
@click.argument("content", required=False)
@click.option(
    "--topic", "-t", "topics", metavar="WORD", multiple=True, help="A word to find it by."
)
@click.option("--user", "-u", metavar="NAME", help="Whom it is about; as in your last memories.")
@click.option(
    "--agent", "-a", metavar="NAME", default="human", help="Who says so; human if not said."
)
@json_option
def remember(
    content: str | None,
    topics: Sequence[str],
    user: str | None,
    agent: str,
    json: bool,
) -> None:
    """Store a memory of your own, for every agent to find.

    The text comes from the argument, from standard input (also as -), or from your editor.

    \b
    Examples:
      aiaml remember "Marco's dog Max is allergic to chicken." -t dog -t health
      pbpaste | aiaml remember -t recipe -t bread
      aiaml remember
    """
    with opened() as bank:
        topics = list(_single(topics))
        user = user or usual_user(memory for _, memory in islice(bank.newest(), 25))
        if content == "-" or (content is None and not sys.stdin.isatty()):
            try:
                content = sys.stdin.buffer.read(MAX_CONTENT + 2).decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError as error:
                raise must_be("content") from error
        if content is not None and not topics:
            raise Exit(
                "it needs a word to be found by: --topic WORD, as often as you like", EXIT_USAGE
            )
        if content is None:
            form = _FORM.format(agent=agent, user=user, topics=", ".join(topics))
            memory = _written(bank, form)
        else:
            memory = bank.add(Memory.new(agent, user, topics, content))
        if json:  # it is stored, so this is said before git is asked to take it
            echo_json({"memory_id": memory.id, "file": memory.file_name})
        else:
            undo = f"`aiaml forget {memory.id}` takes it back."
            echo(f"Stored {memory.id}, about {memory.user}. {undo}")


def _single(topics: Iterable[str]) -> Iterable[str]:
    """Return topics as single words, each once in any case and without the `#` of a tag.

    What becomes several is told.
    """
    words: dict[str, str] = {}
    for topic in topics:
        parts = [part.lstrip("#") for part in re.split(r"[\s,]+", topic)]
        parts = [part for part in parts if part]
        if len(topic.split()) > 1:
            notify(f"A topic is one word, so {topic!r} becomes {join_words(parts)}.")
        for part in parts:
            words.setdefault(part.casefold(), part)
    return words.values()


def _written(bank: MemoryBank, form: str) -> Memory:
    """Store what the person writes in an editor, under a head that they may change."""
    with closing(Draft("memory", form)) as draft:
        text = draft.edited()
        if text == form:
            raise Exit("nothing was written, so nothing is stored")
        with draft.kept_unless_stored():
            stated = parse(text.replace("---\n", "---\nid: new\ntimestamp: now\n", 1))
            said = Memory.new(stated.agent, stated.user, stated.topics, stated.content)
            return bank.add(replace(said, extra=stated.extra))


# --- edit -----------------------------------------------------------------------------------------


@click.command("edit")
@click.argument("memory_id", metavar="ID")
@json_option
def edit(memory_id: str, json: bool) -> None:
    """Change a memory's file in your editor ($VISUAL, $EDITOR).

    What no longer is a memory is refused, and your text kept; so is an agent, a user, topics or a
    content that is empty.

    \b
    Example:
      EDITOR=nano aiaml edit 1b2c
    """
    from aiaml_server.cli.show import fields, found_by  # noqa: PLC0415 (`remember` shows nothing)

    with opened() as bank:
        found = found_by(bank, memory_id)
        if len(found) > 1:
            files = ", ".join(name for name, _ in found)
            several = f"several files carry the id {memory_id}: {files}"
            raise Exit(f"{several}; edit the right one yourself")
        name, memory = found[0]
        before = bank.text(name)
        changed = _edited(bank, name, memory, before)
        if json:
            echo_json(fields(changed, name))
        else:
            echo(f"Changed {memory.id}.")
            if settings().sync:
                echo(f"`aiaml restore {quoted([memory.id])}` takes it back.")


def _edited(bank: MemoryBank, name: str, memory: Memory, before: str) -> Memory:
    """Store what the person makes of a file in an editor."""
    # Not the file's name, nor any other id: they may come from another machine.
    title = memory.id if re.fullmatch(r"[0-9a-f]{8}", memory.id) else "memory"
    with closing(Draft(title, before)) as draft:
        after = _changed(before, draft.edited())
        with draft.kept_unless_stored():
            checked = parse(after)
            for field in ("agent", "user", "topics", "content"):  # which `remember` needs, too
                if not getattr(checked, field) and getattr(memory, field):
                    raise must_be(field)
            return bank.edit(name, before, after)


def _changed(before: str, after: str) -> str:
    if after == before:
        raise Exit("nothing was changed")
    return after


class Draft:
    """A text in a temporary file that nobody else can read, for an editor to change."""

    def __init__(self, name: str, text: str) -> None:
        import tempfile  # noqa: PLC0415 (for an editor alone)

        self._directory = Path(tempfile.mkdtemp(prefix="aiaml-"))
        self._path = self._directory / f"{name}.md"
        self._path.write_bytes(text.encode())
        self._before = text
        self._kept = False

    def close(self) -> None:
        """Remove the file, unless it was kept."""
        if not self._kept:  # with what the editor put beside it
            import shutil  # noqa: PLC0415 (for an editor alone)

            shutil.rmtree(self._directory, ignore_errors=True)

    def edited(self) -> str:
        """Open the editor, and return the text after it.

        Raises:
            Ended: there is no editor, or what it left is no text.
        """
        try:
            _edit(self._path)
        except KeyboardInterrupt as error:  # the editor may still be at it
            raise self.kept("it was interrupted", EXIT_INTERRUPTED) from error
        except (OSError, ValueError) as error:  # ValueError: a quote without its end
            said = Exit(f"{error}; $EDITOR says which one to use", EXIT_FAILED)
            with suppress(FileNotFoundError):
                if self._text() != self._before:
                    said = self.kept(said)
            raise said from error
        try:
            return self._text()
        except FileNotFoundError as error:
            raise Exit("the editor left no file, so nothing is stored", EXIT_FAILED) from error

    def _text(self) -> str:
        try:
            return self._path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.kept(error) from error

    @contextmanager
    def kept_unless_stored(self) -> Iterator[None]:
        """Keep the text whatever goes wrong inside the `with`.

        Raises:
            Ended: it went wrong; the sentence says why and where the text is.
        """
        try:
            yield
        except KeyboardInterrupt as error:
            raise self.kept("it was interrupted", EXIT_INTERRUPTED) from error
        except Exception as error:  # also what nobody expects: the text comes first
            raise self.kept(error) from error

    def kept(self, why: object, code: int = EXIT_FAILED) -> Exit:
        """Keep the text; return the error that says why and where."""
        self._kept = True
        return Exit(f"not stored, because {why}; your text is in {self._path}", code)


def _edit(path: Path) -> None:
    """Have the person change a file in their editor, and wait for its end.

    Raises:
        OSError: there is none, or it failed.
        ValueError: what they say it is cannot be read.
    """
    import subprocess  # noqa: PLC0415 (for an editor alone)

    program, *words = _editor()
    if not (found := find(program)):
        raise OSError(f"there is no editor {program!r} on the PATH")
    if code := subprocess.Popen([found, *words, str(path)]).wait():  # noqa: S603 (theirs)
        raise OSError(f"the editor {program!r} failed with the exit code {code}")


def _editor() -> list[str]:
    """Return the words that start an editor: what the person says, or what there is."""
    if said := (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip():
        return [said] if find(said) else shlex.split(said)  # a path may hold spaces
    usual = ("notepad",) if sys.platform == "win32" else ("sensible-editor", "vim", "nano", "vi")
    return [next(filter(find, usual), usual[-1])]
