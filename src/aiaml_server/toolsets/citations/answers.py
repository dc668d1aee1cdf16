"""Results as JSON values, the same for tools and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiaml_server.toolsets.citations.graph import Edge, Walk
from aiaml_server.toolsets.citations.models import Memory
from aiaml_server.toolsets.citations.service import MemoryService, SearchResult, VerifiedMemory

_MAX_CHARACTERS = 200_000  # of an answer, beyond which no agent reads it
_MAX_NAMED = 20  # items in one sentence


def truncate(items: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return as many items as an answer may hold, and a note if there are more."""
    kept: list[dict[str, Any]] = []
    size = 0
    for item in items:
        size += len(json.dumps(item, ensure_ascii=False))
        if kept and size > _MAX_CHARACTERS:
            return kept, ["More are left out, because the answer would be too long: ask for fewer"]
        kept.append(item)
    return kept, []


def memory_to_dict(memories: MemoryService, memory: Memory) -> dict[str, Any]:
    """Return a whole memory."""
    return {
        **memory.to_dict(),
        "path": memories.store.path(memory.id),
        "days_since_verified": memories.days_since_verified(memory),
        "overdue": memories.is_overdue(memory),
    }


def summary_to_dict(memories: MemoryService, memory: Memory) -> dict[str, Any]:
    """Return a memory without its content, citations and links."""
    fields = memory_to_dict(memories, memory)
    return {key: fields[key] for key in fields if key not in ("content", "citations", "links")}


def verified_to_dict(memories: MemoryService, verified: VerifiedMemory) -> dict[str, Any]:
    """Return the verdicts on a memory's citations."""
    return {
        **summary_to_dict(memories, verified.memory),
        "valid": verified.is_valid,
        "stale_citations": [entry.to_dict() for entry in verified.stale],
        "citations": [entry.to_dict() for entry in verified.checked],
        "confidence": verified.confidence,
        "updated": verified.is_updated,
        "problem": verified.problem,
    }


def hits_to_list(memories: MemoryService, result: SearchResult) -> list[dict[str, Any]]:
    """Return the memories that a search found."""
    return [
        {
            **memory_to_dict(memories, hit.memory),
            "score": round(hit.score, 4),
            "superseded_by": list(hit.superseded_by),
        }
        for hit in result.hits
    ]


def search_notes(result: SearchResult) -> list[str]:
    """Return what a caller should know beside the hits."""
    notes = [result.note] if result.note else []
    if result.left_out:
        stale = [
            f"{verified.memory.id} ({verified.memory.subject}: {verified.stale_places})"
            for verified in result.left_out
        ]
        notes.append(f"Left out, because their citations are stale: {_enumerate(stale)}")
    return notes + unread_notes(result.unread)


def unread_notes(unread: Mapping[str, str]) -> list[str]:
    """Return a note about the files that could not be read."""
    return [f"Not read: {_enumerate([*unread.values()])}"] if unread else []


def _enumerate(items: Sequence[str]) -> str:
    more = f"; and {len(items) - _MAX_NAMED:,} more" if len(items) > _MAX_NAMED else ""
    return "; ".join(items[:_MAX_NAMED]) + more


def walk_to_dict(memories: MemoryService, root: str, walk: Walk) -> dict[str, Any]:
    """Return the memories that a traversal reached, as nodes and edges."""
    nodes = {
        memory_id: {"subject": memories.get(memory_id).subject, "depth": depth}
        for memory_id, depth in walk.nodes.items()
    }
    edges = [edge._asdict() for edge in walk.edges]
    return {"root": root, "nodes": nodes, "edges": edges, "missing": walk.missing}


def edges_to_list(memories: MemoryService, edges: Sequence[Edge]) -> list[dict[str, Any]]:
    """Return the memories from which some links start."""
    return [
        {"id": edge.source, "subject": memories.get(edge.source).subject, "type": edge.type}
        for edge in edges
    ]
