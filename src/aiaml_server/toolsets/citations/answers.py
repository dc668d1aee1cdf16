"""What agents and programs are answered: the values as JSON has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .graph import Edge, Walk
from .memories import Found, Memories, Verified
from .model import Citation, Memory, place


def cited(citation: Citation) -> dict[str, Any]:
    """Return a citation; what is not known is left out."""
    return {key: value for key, value in vars(citation).items() if value is not None}


def summary(memories: Memories, memory: Memory) -> dict[str, Any]:
    """Return what a list says of a memory."""
    return {
        "id": memory.id,
        "subject": memory.subject,
        "path": memories.store.path(memory.id),
        "tags": list(memory.tags),
        "created": memory.created or None,
        "verified": memory.verified or None,
        "confidence": memory.confidence,
        "days_since_verified": memories.age(memory),
        "overdue": memories.is_overdue(memory),
    }


def whole(memories: Memories, memory: Memory, checked: Verified | None = None) -> dict[str, Any]:
    """Return all that a memory says, and what became of its citations if that was looked at."""
    answer = {
        **summary(memories, memory),
        "content": memory.content,
        "citations": [cited(each) for each in memory.citations],
        "links": [vars(each) for each in memory.links],
    }
    if checked:
        answer |= {
            "valid": checked.valid,
            "stale_citations": [each.stated() for each in checked.stale],
        }
    return answer


def found(memories: Memories, result: Found) -> list[dict[str, Any]]:
    """Return a search's hits."""
    answers = []
    for hit in result.hits:
        answer = whole(memories, hit.memory, result.checked.get(hit.memory.id))
        answer["score"] = round(hit.score, 4)
        if hit.superseded_by:
            answer["superseded_by"] = list(hit.superseded_by)
        answers.append(answer)
    return answers


def remarks(result: Found) -> list[str]:
    """Return what is to be said beside a search's hits."""
    said = list(result.notes)
    if result.left_out:
        names = "; ".join(
            f"{each.memory.id} ({each.memory.subject}: {places(each)})" for each in result.left_out
        )
        said.append(f"Left out, because citations of them are stale: {names}")
    return said + unreadable(result.broken)


def places(checked: Verified) -> str:
    """Return the stale citations of a memory in a few words."""
    return ", ".join(f"{place(each.citation)} {each.verdict}" for each in checked.stale)


def unreadable(broken: dict[str, str]) -> list[str]:
    """Return what is to be said of files that are no memories."""
    return ["Cannot be read: " + "; ".join(broken.values())] if broken else []


def verified(memories: Memories, result: Verified) -> dict[str, Any]:
    """Return what became of a memory's citations."""
    memory = memories.get(result.memory.id) if result.updated else result.memory
    more: dict[str, Any] = {"leak": result.leak._asdict()} if result.leak else {}
    if result.unwritten:
        more["unwritten"] = result.unwritten
    return {
        **more,
        "id": memory.id,
        "subject": memory.subject,
        "path": result.path,
        "valid": result.valid,
        "stale_citations": [each.stated() for each in result.stale],
        "citations": [each.stated() for each in result.checked],
        "confidence": result.confidence,
        "verified": memory.verified or None,
        "updated": result.updated,
        "days_since_verified": memories.age(memory),
        "overdue": memories.is_overdue(memory),
    }


def walked(memories: Memories, root: str, walk: Walk) -> dict[str, Any]:
    """Return what was reached from a memory."""
    return {
        "root": root,
        "nodes": {
            each: {"subject": memories.get(each).subject, "depth": depth}
            for each, depth in walk.nodes.items()
        },
        "edges": [edge._asdict() for edge in walk.edges],
        "missing": walk.missing,
    }


def related(memories: Memories, edges: Sequence[Edge]) -> list[dict[str, Any]]:
    """Return the memories that links come from."""
    return [
        {"id": each.source, "subject": memories.get(each.source).subject, "type": each.type}
        for each in edges
    ]
