"""Walk along the links between memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from aiaml_server.toolsets.citations.models import JsonObject, Memory

Order = Literal["bfs", "dfs"]


def traverse(
    memories: Mapping[str, Memory],
    root: str,
    max_depth: int,
    types: Collection[str],
    order: Order = "bfs",
) -> JsonObject:
    """Walk from a memory along its links, visiting each memory once.

    Args:
        memories: all memories, by id.
        root: where to begin.
        max_depth: the largest distance from the root.
        types: the types of links to follow.
        order: `bfs`, level by level, or `dfs`, each branch to its end first.

    Returns:
        The `root`, the `nodes` in the order of the visit, the `edges` that were followed, and the
        targets that are `missing`.
    """
    depths = {root: 0}
    targets: dict[str, list[str]] = {}
    edges = []
    missing: dict[str, None] = {}
    for here in (visited := [root]):
        links = [link for link in dict.fromkeys(memories[here].links) if link.type in types]
        for link in links if depths[here] < max_depth else ():
            edges.append({"source": here, "target": link.target, "type": link.type})
            if link.target not in memories:
                missing[link.target] = None
                continue
            targets.setdefault(here, []).insert(0, link.target)
            if link.target not in depths:
                depths[link.target] = depths[here] + 1
                visited.append(link.target)
    if order == "dfs":
        visited = _depth_first(root, targets)
    nodes = {key: {"subject": memories[key].subject, "depth": depths[key]} for key in visited}
    return {"root": root, "nodes": nodes, "edges": edges, "missing": list(missing)}


def _depth_first(root: str, targets: Mapping[str, list[str]]) -> list[str]:
    visited: dict[str, None] = {}
    stack = [root]
    while stack:
        here = stack.pop()
        if here not in visited:
            visited[here] = None
            stack += targets.get(here, [])
    return list(visited)


def find_related(target: str, memories: Iterable[Memory]) -> list[dict[str, str]]:
    """Return the memories that link to a memory, with the type of each link."""
    related = []
    for memory in memories:
        kinds = [link.type for link in memory.links if link.target == target]
        source = {"id": memory.id, "subject": memory.subject}
        related += [{**source, "type": kind} for kind in dict.fromkeys(kinds)]
    return related


def find_roots(memories: Mapping[str, Memory]) -> list[str]:
    """Return the ids of the memories that no other memory links to."""
    linked = set()
    for memory in memories.values():
        linked |= {link.target for link in memory.links} - {memory.id}
    return sorted(memories.keys() - linked)
