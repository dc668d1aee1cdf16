"""The plan of an import: which items are new, changed, or already stored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aiaml_server.exchange.items import DIGEST, SOURCE, Item, Skipped, digest, mark, without_marks
from aiaml_server.format.memory import Memory


class Plan(NamedTuple):
    """The items of a source, by what an import does with them.

    Attributes:
        new: items that become memories.
        changed: items that are not as they were when they were imported, with their memories.
        edited: items like these whose memories were edited here meanwhile, and stay.
        unchanged: items that are already stored.
        skipped: what does not become a memory.
    """

    new: list[Item]
    changed: list[tuple[Memory, Item]]
    edited: list[Item]
    unchanged: list[Item]
    skipped: list[Skipped]


def make_plan(found: Iterable[Item | Skipped], existing: Iterable[Memory]) -> Plan:
    """Sort items into new, changed, edited and unchanged; nothing is imported twice."""
    plan = Plan([], [], [], [], [])
    known = {memory.id: memory for memory in existing}
    memories = list(known.values())
    known |= {mark(memory, SOURCE): memory for memory in memories}
    digests = {digest(memory.content) for memory in memories}
    digests.update(mark(memory, DIGEST) for memory in memories)
    for item in found:
        if isinstance(item, Skipped):
            plan.skipped.append(item)
            continue
        text = digest(item.memory.content)
        key = item.memory.id if item.has_id else item.place
        before = known.get(key)
        is_same = text in digests
        if item.has_id:
            is_same = before is not None and without_marks(before) == without_marks(item.memory)
        if is_same:
            plan.unchanged.append(item)
        elif before is None:
            known[key] = item.memory
            digests.add(text)
            plan.new.append(item)
        elif digest(before.content) == mark(before, DIGEST):
            plan.changed.append((before, item))
        else:
            plan.edited.append(item)
    return plan
