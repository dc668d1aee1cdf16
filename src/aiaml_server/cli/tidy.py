"""`tidy`: what could be tidied, applied on the person's word."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from aiaml_server.cli.app import aiaml
from aiaml_server.cli.context import opened
from aiaml_server.cli.rows import print_lines
from aiaml_server.format.filters import as_word
from aiaml_server.format.memory import Memory
from aiaml_server.format.tidying import Proposal, expired, proposals, unused
from aiaml_server.moments import instant, present
from aiaml_server.storage.uses import Summary
from aiaml_server.terminal import (
    Ended,
    as_json,
    bold,
    choice,
    dim,
    is_terminal,
    note,
    out,
    out_json,
    plural,
    progress,
    wrapped,
)

if TYPE_CHECKING:
    from aiaml_server.bank import MemoryBank

KINDS = ("expired", "duplicate", "similar", "differing", "topics", "long", "unused")
_UNUSED_DAYS = 30  # that the log of uses must go back


@click.command("tidy")
@click.option(
    "--kind", "-k", "kinds", type=click.Choice(KINDS), multiple=True, help="Only this kind."
)
@as_json
def tidy(kinds: Sequence[str], json: bool) -> None:
    """Propose what could be tidied, and do it where you say so.

    Memories that were to hold until a day that is over; that say the same or nearly so; that differ
    in a number, a date or a "not" alone, so that one may no longer hold; topics spelled in several
    ways; texts too long to be found well; and what no agent has been given in a month of
    `aiaml uses`. Each comes with the command that would mend it. On a terminal you are asked for
    each; elsewhere they are listed. Nothing is changed without your yes, and `aiaml restore` brings
    back what was forgotten.

    Words are compared, not their meaning: what is alike may still be meant so.

    \b
    Examples:
      aiaml tidy
      aiaml tidy --kind duplicate --kind similar
      aiaml tidy --json
    """
    with opened() as bank:
        memories = _by_id(bank.read(progress(bank.names(), "Reading")))
        found = [each for each in _all(bank, memories) if not kinds or each.kind in kinds]
    if json:
        out_json([{**asdict(each), "command": _line(*each.command)} for each in found])
    elif found and is_terminal() and sys.stdin.isatty():
        _ask(found, memories)
    else:
        for each in found:
            _show(each, memories)
    if not found:
        raise Ended("there is nothing to tidy")


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
    """Return memories by their ids; none of several that carry one: a command means them all."""
    memories = [memory for _, memory in found]
    counted = Counter(memory.id for memory in memories)
    return {memory.id: memory for memory in memories if counted[memory.id] == 1}


def _line(verb: str, *ids: str) -> str:
    """Return a command as a shell takes it; in a file that others wrote an id may be any text."""
    return shlex.join(["aiaml", *_words(verb, *ids)])


def _words(verb: str, *ids: str) -> list[str]:
    """Return the words of a command that means these memories and no other."""
    dashes = ["--"] if any(each.startswith("-") for each in ids) else []
    return [verb, *dashes, *(map(as_word, ids) if verb == "forget" else ids)]


def _show(proposal: Proposal, memories: Mapping[str, Memory]) -> None:
    out(f"{bold(proposal.kind)}: {wrapped(proposal.why)}")
    print_lines(memories[each] for each in proposal.ids)
    if len(proposal.ids) > 1:
        out(dim(_line("show", *proposal.ids)))
    out(f"{dim(_line(*proposal.command))}\n")


def _ask(found: Sequence[Proposal], memories: Mapping[str, Memory]) -> None:
    gone: set[str] = set()
    out(f"{plural(len(found), 'proposal')}. Nothing is changed without your yes.\n")
    for number, proposal in enumerate(found, 1):
        if gone.intersection(proposal.ids):
            continue
        _show(proposal, memories)
        verb = "forget the last one" if proposal.command[0] == "forget" else "open it"
        answer = choice(f"{number} of {len(found)}: {verb}? yes, skip or quit", "ysq", "s")
        if answer == "q":
            return
        if answer == "y" and _apply(proposal) and proposal.command[0] == "forget":
            gone.add(proposal.command[1])


def _apply(proposal: Proposal) -> bool:
    """Run the command; say whether it was done."""
    verb, *words = _words(*proposal.command)
    words = [verb, *(["--yes"] if verb == "forget" else []), *words]
    try:
        aiaml.main(words, prog_name="aiaml", standalone_mode=False)
    except Ended as ended:
        note(str(ended))
        return False
    return True
