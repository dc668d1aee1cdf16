"""Results as JSON values, the same for tools and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from aiaml_server.toolsets.citations.graph import Walk
from aiaml_server.toolsets.citations.models import Memory
from aiaml_server.toolsets.citations.service import MemoryService, SearchResult, VerifiedMemory
from aiaml_server.toolsets.citations.verify import mean_confidence

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
    state = {
        "path": memories.store.path(memory.id),
        "days_since_verified": memories.days_since_verified(memory),
        "overdue": memories.is_overdue(memory),
    }
    return {**memory.to_dict(), **state}


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
        "confidence": mean_confidence(verified.checked),
        "updated": verified.is_updated,
        "problem": verified.problem,
    }


def hits_to_list(memories: MemoryService, result: SearchResult) -> list[dict[str, Any]]:
    """Return the memories that a search found."""
    hits = []
    for memory, score, newer in result.hits:
        found = {"score": round(score, 4), "superseded_by": list(newer)}
        hits.append({**memory_to_dict(memories, memory), **found})
    return hits


def search_notes(result: SearchResult) -> list[str]:
    """Return what a caller should know beside the hits."""
    notes = [result.note] if result.note else []
    for verified in result.left_out[:_MAX_NAMED]:
        stale = ", ".join(f"{entry.citation} {entry.verdict}" for entry in verified.stale)
        memory = verified.memory
        notes.append(f"Left out as stale: {memory.id} ({memory.subject}: {stale})")
    return notes + unread_notes(result.unread)


def unread_notes(unread: Mapping[str, str]) -> list[str]:
    """Return notes about the files that could not be read."""
    return [f"Not read: {sentence}" for sentence in list(unread.values())[:_MAX_NAMED]]


def walk_to_dict(memories: MemoryService, root: str, walk: Walk) -> dict[str, Any]:
    """Return the memories that a traversal reached, as nodes and edges."""
    known = memories.store.scan().memories
    nodes = {key: {"subject": known[key].subject, "depth": n} for key, n in walk.nodes.items()}
    edges = [edge._asdict() for edge in walk.edges]
    return {"root": root, "nodes": nodes, "edges": edges, "missing": walk.missing}
