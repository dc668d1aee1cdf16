"""What an import will do: what is new, what has changed, and what is there already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aiaml_server.exchange.items import DIGEST, SOURCE, Item, Skipped, digest, mark, without_marks
from aiaml_server.format.memory import Memory


class Plan(NamedTuple):
    """What becomes of the items of a source.

    Attributes:
        new: items that become memories.
        changed: items that are not as they were when they were imported, with their memories.
        edited: items like these whose memories were edited here meanwhile, and stay.
        unchanged: items that are there already.
        skipped: what does not become a memory.
    """

    new: list[Item]
    changed: list[tuple[Memory, Item]]
    edited: list[Item]
    unchanged: list[Item]
    skipped: list[Skipped]


def make_plan(found: Iterable[Item | Skipped], existing: Iterable[Memory]) -> Plan:
    """Decide what becomes of each item; nothing is imported twice."""
    plan = Plan([], [], [], [], [])
    by_id = {memory.id: memory for memory in existing}
    by_place = {mark(memory, SOURCE): memory for memory in by_id.values()}
    digests = {digest(memory.content) for memory in by_id.values()}
    digests.update(mark(memory, DIGEST) for memory in by_id.values())
    for item in found:
        if isinstance(item, Skipped):
            plan.skipped.append(item)
            continue
        text = digest(item.memory.content)
        if item.has_id:
            known = by_id.get(item.memory.id)
            is_same = known is not None and without_marks(known) == without_marks(item.memory)
        else:
            known = by_place.get(item.place)
            is_same = text in digests
        if is_same:
            plan.unchanged.append(item)
        elif known is None:
            by_id[item.memory.id] = by_place[item.place] = item.memory
            digests.add(text)
            plan.new.append(item)
        elif digest(known.content) == mark(known, DIGEST):
            plan.changed.append((known, item))
        else:
            plan.edited.append(item)
    return plan
