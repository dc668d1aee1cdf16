"""`tidy`: what could be tidied, applied on the person's word."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from aiaml_server.cli.context import opened
from aiaml_server.cli.picking import do, words_of
from aiaml_server.format.invisible import marked_line
from aiaml_server.format.memory import Memory
from aiaml_server.format.tidying import KINDS, Proposal, expired, proposals, unused
from aiaml_server.moments import age, instant, present
from aiaml_server.rendering import visible
from aiaml_server.storage.inbox import Apart
from aiaml_server.storage.uses import Summary
from aiaml_server.terminal import (
    Ended,
    as_rows,
    bold,
    choice,
    dim,
    is_terminal,
    note,
    out,
    out_rows,
    plural,
    progress,
    styled,
    wrapped,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

_UNUSED_DAYS = 30  # that the log of uses must go back
_LINES = 10  # of a memory that is not compared with another


@click.command("tidy")
@click.option(
    "--kind", "-k", "kinds", type=click.Choice(KINDS), multiple=True, help="Only this kind."
)
@click.option("--all", "everything", is_flag=True, help="All kinds, not only duplicates.")
@click.option("--again", is_flag=True, help="Also what was never to be proposed again.")
@as_rows
def tidy(kinds: Sequence[str], everything: bool, again: bool, data: str) -> None:
    """Propose what could be tidied, and do it where you say so.

    By itself it shows duplicates: memories of one person with the same text and topics. With --all,
    or a --kind, also those that are the same but for articles and punctuation, or that a newer one
    has whole (similar); that were to hold until a day that is over (expired); that a newer one
    differs from in a value or a "not" alone, so that they may no longer hold (differing); topics
    spelled in several ways; texts too long to be found well; and what no agent has been given in a
    month of `aiaml stats uses`. Where a name, a number or a negation differs, nothing is proposed
    to be forgotten.

    Each comes with the texts whole, what differs between [- -] and {+ +}, and the command that
    would mend it. On a terminal you are asked: yes, skip, all of this kind, never these again, or
    quit. Nothing is changed without your yes, and `aiaml undo` takes it back.

    \b
    Examples:
      aiaml tidy
      aiaml tidy --all
      aiaml tidy --kind similar --kind differing
      aiaml tidy --json
    """
    chosen = kinds or (KINDS if everything else KINDS[:1])
    with opened() as bank:
        memories = _by_id(bank.read(progress(bank.names(), "Reading")))
        every = [*_all(bank, memories)]
    try:
        apart = None if again else Apart()
        every = [each for each in every if not apart or _memories(each, memories) not in apart]
    except OSError as error:
        note(f"What was never to be proposed again cannot be told: {error}")
    found = [each for each in every if each.kind in chosen]
    others = Counter(each.kind for each in every if each.kind not in chosen)
    told = ", ".join(f"{kind} ({count:,})" for kind, count in others.items())
    rest = f"{told}: `aiaml tidy --all` shows them" if told and not kinds else ""
    if data:
        out_rows([{**asdict(each), "command": _line(*each.command)} for each in found], data)
    elif found and is_terminal() and sys.stdin.isatty():
        _ask(found, memories)
    else:
        for each in found:
            _show(each, memories)
    if not found:
        raise Ended(f"no duplicates; but {rest}" if rest else "there is nothing to tidy")
    if rest:
        note(dim(f"Besides {rest}."))


def _memories(proposal: Proposal, memories: Mapping[str, Memory]) -> list[Memory]:
    return [memories[each] for each in proposal.ids]


def _all(bank: MemoryBank, memories: Mapping[str, Memory]) -> Iterator[Proposal]:
    yield from expired(memories.values(), present())
    kept = set()
    for each in proposals(memories.values(), progress):
        if each.command[0] == "forget":
            kept.add(each.ids[0])
        yield each
    try:
        uses = Summary.of(bank.uses.read())
    except OSError as error:
        note(f"What agents never asked for cannot be told: {error}")
        return
    begun = instant(uses.since)
    if begun is not None and present() - begun > _UNUSED_DAYS * 86400_000_000:
        others = [each for name, each in memories.items() if name not in kept]
        yield from unused(others, uses.last, uses.since)


def _by_id(found: Iterable[tuple[str, Memory]]) -> dict[str, Memory]:
    """Return memories by their ids, of those that a line of a command can name.

    Not of several that carry one, which it would mean all, nor one of more than a line.
    """
    memories = [memory for _, memory in found]
    counted = Counter(memory.id for memory in memories)
    return {
        memory.id: memory
        for memory in memories
        if counted[memory.id] == 1 and marked_line(memory.id) == memory.id
    }


def _line(verb: str, *ids: str) -> str:
    """Return a command as a shell takes it; in a file that others wrote an id may be any text."""
    return shlex.join(["aiaml", *words_of(verb, *ids)])


def _show(proposal: Proposal, memories: Mapping[str, Memory]) -> None:
    out(f"{bold(proposal.kind)}: {wrapped(proposal.why)}")
    shown = [visible(each) for each in _memories(proposal, memories)]
    texts = [each.content.rstrip() for each in shown]
    if proposal.kind == "duplicate":
        texts = ["", texts[-1]]
    elif len(texts) == 2:
        texts = [*_differences(*texts)]
    for memory, text in zip(shown, texts, strict=True):
        head = f"{memory.agent}, {memory.user} · {', '.join(memory.topics)}"
        out(wrapped(f"{bold(memory.id)}  {age(memory.timestamp)}  {dim(head)}", 4))
        lines = wrapped("\n".join(f"    {each}".rstrip() for each in text.splitlines())).split("\n")
        shown_lines = lines if len(texts) > 1 else lines[:_LINES]
        for line in shown_lines:
            out(line)
        if lines[len(shown_lines) :]:
            out(dim("    …"))
    out(f"{dim(_line(*proposal.command))}\n")


def _differences(newer: str, older: str) -> tuple[str, str]:
    """Return two texts, the words marked that only one of them has."""
    from aiaml_server.rendering.differences import changed_words  # noqa: PLC0415 (for two texts that differ alone)

    newly, formerly = "", ""
    for gone, come in changed_words(older, newer):
        is_same = gone == come or not (come.strip() or gone.strip())
        newly += come if is_same else _mark(come, "{+", "+}", "green")
        formerly += gone if is_same else _mark(gone, "[-", "-]", "red")
    return newly, formerly


def _mark(text: str, begin: str, end: str, style: str) -> str:
    """Return a text with marks about its words, as `git diff --word-diff` has them."""
    words = text.strip()
    if not words:
        return text
    lines = "\n".join(styled(line, style) if line else "" for line in words.split("\n"))
    return text.replace(words, f"{begin}{lines}{end}", 1)


def _ask(found: Sequence[Proposal], memories: Mapping[str, Memory]) -> None:
    gone: set[str] = set()
    out(f"{plural(len(found), 'proposal')}. Nothing is changed without your yes.\n")
    for number, proposal in enumerate(found, 1):
        if gone.intersection(proposal.ids):
            continue
        _show(proposal, memories)
        forgets = proposal.command[0] == "forget"
        verb = "forget the last one" if forgets else "open the last one"
        every = "all of this kind, " if forgets else ""
        question = f"{number} of {len(found)}: {verb}? yes, skip, {every}never these again or quit"
        answer = choice(question, "ysanq" if forgets else "ysnq", "s")
        if answer == "q":
            return
        if answer == "n":
            try:
                Apart().add(_memories(proposal, memories))
            except OSError as error:
                note(f"That could not be noted: {error}")
        if answer not in "ya":
            continue
        same = [proposal]
        if answer == "a":
            left = [each for each in found[number:] if gone.isdisjoint(each.ids)]
            same += [each for each in left if each.kind == proposal.kind]
        ids = [each.ids[-1] for each in same]
        if do(proposal.command[0], *ids, yes=forgets) and forgets:
            gone.update(ids)
