"""What agents and programs are answered: the values as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from aiaml_server.toolsets.citations.graph import Edge, Walk
from aiaml_server.toolsets.citations.memories import Found, Memories, Verified
from aiaml_server.toolsets.citations.model import Citation, Memory, place


def cited(citation: Citation) -> dict[str, Any]:
    """Return a citation; what is not known is left out."""
    return {key: value for key, value in vars(citation).items() if value is not None}


MOST_LISTED = 1000  # of what is named by an id or a sentence alone
_NAMED = 20  # files in one sentence
_MOST = 200_000  # characters of an answer, beyond which no agent reads it


def bounded(stated: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return as many as an answer may hold, at least one, and what is to be said of the others."""
    kept: list[dict[str, Any]] = []
    size = left = 0
    for each in stated:
        size += 0 if left else len(json.dumps(each, ensure_ascii=False))
        if kept and (left or size > _MOST):
            left += 1
        else:
            kept.append(each)
    said = f"{left:,} more are left out, for the answer would be too long: ask for fewer"
    return kept, [said] if left else []


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
        stale = [
            f"{each.memory.id} ({each.memory.subject}: {places(each)})" for each in result.left_out
        ]
        said.append(f"Left out, because citations of them are stale: {_named(stale)}")
    return said + unreadable(result.broken)


def places(checked: Verified) -> str:
    """Return the stale citations of a memory in a few words."""
    return ", ".join(f"{place(each.citation)} {each.verdict}" for each in checked.stale)


def unreadable(broken: dict[str, str]) -> list[str]:
    """Return what is to be said of files that are no memories."""
    return [f"Cannot be read: {_named([*broken.values()])}"] if broken else []


def _named(sentences: Sequence[str]) -> str:
    more = f"; and {len(sentences) - _NAMED:,} more" if len(sentences) > _NAMED else ""
    return "; ".join(sentences[:_NAMED]) + more


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
    nodes = list(walk.nodes.items())[:MOST_LISTED]
    edges = walk.edges[:MOST_LISTED]
    left = len(walk.nodes) - len(nodes) + len(walk.edges) - len(edges)
    answer: dict[str, Any] = {
        "root": root,
        "nodes": {
            each: {"subject": memories.get(each).subject, "depth": depth} for each, depth in nodes
        },
        "edges": [edge._asdict() for edge in edges],
        "missing": walk.missing[:MOST_LISTED],
    }
    return {**answer, "left_out": left} if left else answer


def related(memories: Memories, edges: Sequence[Edge]) -> list[dict[str, Any]]:
    """Return the memories that links come from."""
    return [
        {"id": each.source, "subject": memories.get(each.source).subject, "type": each.type}
        for each in edges
    ]
