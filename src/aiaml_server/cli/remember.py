"""`remember`, `edit` and `forget`: what a person changes."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.filtering import filtered
from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.filters import Filter
from aiaml_server.memory import ENDS, Memory, format, must_be, parse, with_until  # noqa: A004
from aiaml_server.moments import present, timestamp
from aiaml_server.programs import find
from aiaml_server.rendering import visible
from aiaml_server.terminal import (
    INTERRUPTED,
    REFUSED,
    USAGE,
    Ended,
    as_json,
    broken,
    columns,
    confirm,
    dim,
    is_terminal,
    joined,
    note,
    out,
    out_json,
    plural,
    width,
    wrapped,
    yes,
)

from .rows import print_lines
from .show import fields, found_by, nothing

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_PREVIEWED = 25  # memories that are shown of what a filter means
_SHOWN_LINES = 10  # of the text of each that is named
_NAMED = 8  # ids, or files, in one sentence

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
@click.option("--until", metavar="DATE", default="", help="The last day on which it holds.")
@as_json
def remember(
    content: str | None,
    topics: Sequence[str],
    user: str | None,
    agent: str,
    until: str,
    json: bool,
) -> None:
    """Store a memory of your own, for every agent to find.

    The text comes from the argument, from standard input (also as -), or from your editor.

    \b
    Examples:
      aiaml remember "Marco's dog Max is allergic to chicken." -t dog -t health
      pbpaste | aiaml remember -t recipe -t bread
      aiaml remember "Anna lends Marco her car." -t car --until 2027-01-31
      aiaml remember
    """
    with opened() as bank:
        topics = list(_single(topics))
        user = user or usual_user(memory for _, memory in islice(bank.newest(), 25))
        if content == "-" or (content is None and not sys.stdin.isatty()):
            try:
                content = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError as error:
                raise must_be("content") from error
        if content is not None and not topics:
            raise Ended("it needs a word to be found by: --topic WORD, as often as you like", USAGE)
        if content is None:
            form = _FORM.format(agent=agent, user=user, topics=", ".join(topics))
            memory = _written(bank, with_until(form, until))
        else:
            said = Memory.new(agent, user, topics, content)
            memory = bank.add(parse(with_until(format(said), until)))
        bank.own(memory)
    if json:
        out_json({"memory_id": memory.id, "file": memory.file_name})
    else:
        out(f"Stored {memory.id}, about {memory.user}.")


def _single(topics: Iterable[str]) -> Iterable[str]:
    """Return topics as single words, each once in any case and without the `#` of a tag.

    What becomes several is told.
    """
    words: dict[str, str] = {}
    for topic in topics:
        parts = [part.lstrip("#") for part in re.split(r"[\s,]+", topic)]
        parts = [part for part in parts if part]
        if len(topic.split()) > 1:
            note(f"A topic is one word, so {topic!r} becomes {joined(parts)}.")
        for part in parts:
            words.setdefault(part.casefold(), part)
    return words.values()


def usual_user(memories: Iterable[Memory]) -> str:
    """Return whom most memories are about, or else who is logged in."""
    for user, _ in Counter(memory.user for memory in memories).most_common():
        with suppress(InvalidInput):  # in a file that others wrote a name may be any text
            return checked_user(user)
    import getpass  # noqa: PLC0415 (for the first memory alone)

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user's number
        return "me"


def checked_user(user: str) -> str:
    """Return a name that a memory can be about.

    Raises:
        InvalidInput: it cannot be one.
    """
    return Memory.new("any", user, ["any"], "any").user


def _written(bank: MemoryBank, form: str) -> Memory:
    """Store what the person writes in an editor, under a head that they may change."""
    with closing(Draft("memory", form)) as draft:
        text = draft.edited()
        if text == form:
            raise Ended("nothing was written, so nothing is stored")
        with draft.kept_unless_stored():
            stated = parse(text.replace("---\n", "---\nid: new\ntimestamp: now\n", 1))
            said = Memory.new(stated.agent, stated.user, stated.topics, stated.content)
            _tell_open_end(stated)
            return bank.add(replace(said, extra=stated.extra))


def _tell_open_end(memory: Memory) -> None:
    """Say that what stands in the line `until` is no time."""
    if memory.until and memory.ends is None:
        note(f"until: {memory.until!r} is no time, so it holds without end; it must be {ENDS}.")


# --- edit -----------------------------------------------------------------------------------------


@click.command("edit")
@click.argument("memory_id", metavar="ID")
@click.option(
    "--until",
    metavar="DATE",
    help="Open no editor: set the last day on which it holds; `forever` takes it out.",
)
@as_json
def edit(memory_id: str, until: str | None, json: bool) -> None:
    """Change a memory's file in your editor ($VISUAL, $EDITOR).

    What no longer is a memory is refused, and your text kept; so is an agent, a user, topics or a
    content that is empty.

    \b
    Examples:
      EDITOR=nano aiaml edit 1b2c
      aiaml edit 1b2c --until 2027-01-31
    """
    with opened() as bank:
        found = found_by(bank, memory_id)
        if len(found) > 1:
            files = ", ".join(name for name, _ in found)
            several = f"several files carry the id {memory_id}: {files}"
            raise Ended(f"{several}; edit the right one yourself")
        name, memory = found[0]
        before = bank.text(name)
        if until is None:
            changed = _edited(bank, name, memory, before)
        else:
            after = with_until(before, "" if until == "forever" else until)
            changed = bank.edit(name, before, _changed(before, after))
        bank.own(changed)
    if json:
        out_json(fields(changed, name))
    else:
        out(f"Changed {memory.id}.")


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
            _tell_open_end(checked)
            return bank.edit(name, before, after)


def _changed(before: str, after: str) -> str:
    if after == before:
        raise Ended("nothing was changed")
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
        except (OSError, ValueError) as error:  # ValueError: a quote without its end
            said = Ended(f"{error}; $EDITOR says which one to use", REFUSED)
            with suppress(FileNotFoundError):
                if self._text() != self._before:
                    said = self.kept(said)
            raise said from error
        try:
            return self._text()
        except FileNotFoundError as error:
            raise Ended("the editor left no file, so nothing is stored", REFUSED) from error

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
            raise self.kept("of Ctrl-C", INTERRUPTED) from error
        except Exception as error:  # also what nobody expects: the text comes first
            raise self.kept(error) from error

    def kept(self, why: object, code: int = REFUSED) -> Ended:
        """Keep the text; return the error that says why and where."""
        self._kept = True
        return Ended(f"not stored, because {why}; your text is in {self._path}", code)


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


# --- forget ---------------------------------------------------------------------------------------


@click.command("forget")
@click.argument("said", nargs=-1, metavar="[ID|FIELD:VALUE]...")
@filtered
@click.option(
    "--export", "target", metavar="FILE", help="First write them to FILE: .jsonl or .zip."
)
@click.option("--everywhere", is_flag=True, help="Out of git's history too, on all machines.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@yes
@as_json
def forget(
    said: Sequence[str],
    target: str | None,
    everywhere: bool,
    dry_run: bool,
    yes: bool,
    json: bool,
    **options: Any,
) -> int | None:
    """Delete memories, after showing them and asking: by their ids, or all that a filter means.

    The files are gone at once, and no agent finds them any more, on none of your machines. Git's
    history, here and in your remote, still has them: `aiaml restore` brings them back.

    With --everywhere the history is rewritten without them, here, in the remote and, when they next
    hear of it, on your other machines; also those that were forgotten before. That cannot be
    undone. docs/sync.md ("Removing something for good") says how far it reaches.

    \b
    Examples:
      aiaml forget 1b2c3d4e 4e5f6a7b
      aiaml forget 1b2c --yes
      aiaml forget --topic work --until 90d --dry-run
      aiaml forget agent:claude since:2h --export gone.jsonl
      aiaml forget --everywhere 1b2c --dry-run
    """
    wanted, ids = Filter.of(**options).and_said(said)
    if everywhere and not (wanted or target):
        from .everywhere import everywhere as forget_everywhere  # noqa: PLC0415

        return forget_everywhere(ids, yes=yes, dry_run=dry_run, json=json)
    if everywhere or bool(wanted) == bool(ids):
        other = (
            "and neither a filter nor --export" if everywhere else "or a filter such as topic:food"
        )
        raise Ended(f"it takes IDs, {other}; `aiaml forget --help` tells more", USAGE)
    with opened() as bank:
        texts = _texts_of(bank, wanted, ids)
        found = {name: parse(text) for name, text in texts.items()}
        if not found:
            raise Ended(nothing(bank, wanted))
        if not json and (dry_run or not yes):
            _preview(list(found.values()), whole=bool(ids))
        if dry_run:
            if json:
                memories = [fields(memory, name) for name, memory in found.items()]
                out_json({"forgotten": 0, "memories": memories})
            else:
                told = f"{plural(len(found), 'memory')} would be forgotten; nothing was changed."
                out(wrapped(told))
            return None
        if not yes:
            confirm(f"Forget {plural(len(found), 'memory')}?")
        if target:
            from .export import write_before  # noqa: PLC0415

            write_before(target, bank, list(found.items()))
        began = timestamp(present(), "seconds")
        kept = bank.forget(texts)
    _answer(Forgotten(found, kept, began, target), json=json)
    return None


def _texts_of(bank: MemoryBank, wanted: Filter, ids: Sequence[str]) -> dict[str, str]:
    """Return the files that are meant, with what stands in them at this moment."""
    if ids:
        names = [name for each in ids for name, _ in found_by(bank, each)]
        return {name: bank.text(name) for name in names}
    texts = {}
    for _, name in bank.dated(wanted):
        with suppress(FileNotFoundError, MalformedFile):  # changed in this very moment
            text = bank.text(name)
            if wanted.matches(parse(text)):
                texts[name] = text
    return texts


def _preview(found: Sequence[Memory], *, whole: bool) -> None:
    """Show what is meant: the first of many in a row each, or of each the text."""
    if not whole:
        print_lines(found[:_PREVIEWED])
        if len(found) > _PREVIEWED:
            out(f"… and {len(found) - _PREVIEWED:,} more.")
        return
    for memory in found:
        print_lines([memory])
        lines = [line for line in visible(memory).content.splitlines() if line.strip()]
        if len(lines) > 1 or columns(memory.content) > width() // 3:
            for line in lines[:_SHOWN_LINES]:
                for each in broken(f"    {line}".rstrip(), width()) if is_terminal() else [line]:
                    out(each)
        if len(lines) > _SHOWN_LINES:
            out(dim(f"    … and {plural(len(lines) - _SHOWN_LINES, 'more line')}"))


@dataclass(frozen=True)
class Forgotten:
    """What was forgotten.

    Attributes:
        memories: by the names of their files.
        kept: the names of those that git's history has; None where it took nothing.
        began: a moment before.
        target: the file that they were written to first.
    """

    memories: Mapping[str, Memory]
    kept: set[str] | None
    began: str
    target: str | None

    @property
    def undo(self) -> str:
        """The command that brings back what git has; empty where that is nothing."""
        ids = [memory.id for name, memory in self.memories.items() if name in (self.kept or ())]
        if not ids:
            return ""
        named = len(ids) <= _NAMED
        return f"aiaml restore {_words(ids) if named else f'--since {self.began}'}"


def _answer(done: Forgotten, *, json: bool) -> None:
    missing = [name for name in done.memories if name not in (done.kept or ())]
    if json:
        out_json(
            {
                "forgotten": len(done.memories),
                "memories": [fields(memory, name) for name, memory in done.memories.items()],
                "not_in_history": missing,
                "exported": done.target,
                "undo": done.undo or None,
            }
        )
        return
    out(f"Forgot {plural(len(done.memories), 'memory')}.")
    if done.target:
        again = f"aiaml import {_words([done.target])}"
        out(f"{done.target} has what they were: `{again}` adds it again.")
    if done.undo:
        back = "that" if len(done.memories) == 1 else "them"
        out(f"Git's history still has what it had: `{done.undo}` brings {back} back.")
    gone = "" if done.target else ": gone for good"
    if missing and done.kept is not None:
        names = joined(missing[:_NAMED]) + (" and others" if len(missing) > _NAMED else "")
        out(f"Git's history does not have the last version of {names}{gone}.")
    elif missing and not done.target:
        out("What git does not have from before is gone for good.")


def _words(values: Iterable[str]) -> str:
    """Return words as a shell takes them; an id in a file that others wrote may be any text."""
    quoted = [shlex.quote(each) for each in values]
    return " ".join(["--", *quoted] if any(each[0] == "-" for each in quoted) else quoted)
