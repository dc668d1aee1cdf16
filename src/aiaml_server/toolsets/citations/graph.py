"""Walk along the links between memories."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from aiaml_server.toolsets.citations.models import Memory

ORDERS = ("bfs", "dfs")


class Edge(NamedTuple):
    """A link with the memory that it starts from."""

    source: str
    target: str
    type: str


class Walk(NamedTuple):
    """What a traversal reached.

    Attributes:
        nodes: the ids in the order of the visit, each with its distance from the root.
        edges: every link that was followed, once.
        missing: the targets that are not memories.
    """

    nodes: dict[str, int]
    edges: list[Edge]
    missing: list[str]


def traverse(
    memories: Mapping[str, Memory],
    root: str,
    max_depth: int,
    types: Collection[str],
    order: str = "bfs",
) -> Walk:
    """Walk from a memory along its links, visiting each memory once.

    Args:
        memories: all memories, by id.
        root: where to begin.
        max_depth: the largest distance from the root.
        types: the types of links to follow.
        order: `bfs`, level by level, or `dfs`, each branch to its end first.
    """
    distance = {root: 0}
    targets: dict[str, list[str]] = {}
    edges: dict[Edge, None] = {}
    for here in (queue := [root]):
        links = [link for link in memories[here].links if link.type in types]
        for link in links if distance[here] < max_depth else ():
            edges[Edge(here, link.target, link.type)] = None
            if link.target in memories:
                targets.setdefault(here, []).insert(0, link.target)
                if link.target not in distance:
                    distance[link.target] = distance[here] + 1
                    queue.append(link.target)
    nodes: dict[str, int] = {}
    stack = [root] if order == "dfs" else queue[::-1]
    while stack:
        here = stack.pop()
        if here not in nodes:
            nodes[here] = distance[here]
            stack += targets.get(here, []) if order == "dfs" else []
    missing = dict.fromkeys(edge.target for edge in edges if edge.target not in memories)
    return Walk(nodes, list(edges), list(missing))


def find_related(target: str, memories: Iterable[Memory]) -> list[Edge]:
    """Return the links that lead to a memory."""
    edges = {
        Edge(memory.id, link.target, link.type) for memory in memories for link in memory.links
    }
    return sorted(edge for edge in edges if edge.target == target)


def find_roots(memories: Mapping[str, Memory]) -> list[str]:
    """Return the ids of the memories that no other memory links to."""
    linked = set()
    for memory in memories.values():
        linked |= {link.target for link in memory.links} - {memory.id}
    return sorted(memories.keys() - linked)
