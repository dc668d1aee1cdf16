"""Walks along the links between memories; only files are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from aiaml_server.format.invisible import marked_line
from aiaml_server.toolsets.citations.model import Link, Memory

ORDERS = ("bfs", "dfs")


class Edge(NamedTuple):
    """A link, with the memory that it starts from."""

    source: str
    target: str
    type: str


class Walk(NamedTuple):
    """What was reached.

    Attributes:
        nodes: the memories in the order in which they were visited, each with its distance from
            the first.
        edges: every link that was followed, each once.
        missing: the ids of the targets that are no memories.
    """

    nodes: dict[str, int]
    edges: list[Edge]
    missing: list[str]


def traverse(
    root: str,
    links: Callable[[str], Sequence[Link] | None],
    depth: int,
    types: Collection[str] | None = None,
    order: str = "bfs",
) -> Walk:
    """Walk from a memory along its links, each memory once.

    Args:
        root: where to begin.
        links: returns a memory's links; None where there is no such memory. Asked once for each.
        depth: how many links away from the first memory at most.
        types: the types of links to follow; None for all.
        order: `bfs`, level by level, or `dfs`, each branch to its end first.
    """
    distance = {root: 0}
    follow: dict[str, list[Link]] = {}
    known = {root: links(root) or ()}
    edges: dict[Edge, None] = {}
    missing: dict[str, None] = {}
    waiting = deque([root])
    while waiting:
        here = waiting.popleft()
        follow[here] = []
        for link in known[here] if distance[here] < depth else ():
            if types is not None and link.type not in types:
                continue
            edges[Edge(here, link.target, link.type)] = None
            if link.target not in distance and link.target not in missing:
                found = links(link.target)
                if found is None:
                    missing[link.target] = None
                    continue
                known[link.target] = found
                distance[link.target] = distance[here] + 1
                waiting.append(link.target)
            follow[here].append(link)
    nodes = distance if order == "bfs" else _deep_first(root, follow, distance)
    return Walk(nodes, list(edges), list(missing))


def _deep_first(
    root: str, follow: Mapping[str, Sequence[Link]], distance: Mapping[str, int]
) -> dict[str, int]:
    """Return the same nodes in the order in which each branch is walked to its end."""
    nodes: dict[str, int] = {}
    waiting = [root]
    while waiting:
        here = waiting.pop()
        if here not in nodes and here in distance:
            nodes[here] = distance[here]
            waiting += [link.target for link in reversed(follow[here])]
    return nodes


def related(target: str, memories: Iterable[Memory]) -> list[Edge]:
    """Return the links that lead to a memory, by where they come from."""
    found = {
        Edge(each.id, target, link.type)
        for each in memories
        for link in each.links
        if link.target == target
    }
    return sorted(found)


def roots(memories: Iterable[Memory]) -> list[str]:
    """Return the ids of the memories that no other one links to, in order."""
    every = list(memories)
    reached = {link.target for each in every for link in each.links if link.target != each.id}
    return sorted({each.id for each in every} - reached)


# --- pictures -------------------------------------------------------------------------------------


def mermaid(walk: Walk, subjects: Mapping[str, str]) -> str:
    """Return a graph as Mermaid draws it."""
    names = {each: f"m{at}" for at, each in enumerate([*walk.nodes, *walk.missing])}
    lines = ["graph LR"]
    for each, name in names.items():
        label = subjects.get(each, f"{each} (missing)")
        escaped = "".join(c if c.isalnum() or c in " -_.,:/" else f"#{ord(c)};" for c in label)
        lines.append(f'    {name}["{escaped}"]')
    lines += [
        f"    {names[edge.source]} -->|{edge.type}| {names[edge.target]}"
        for edge in walk.edges
        if edge.target in names
    ]
    return "\n".join(lines)


def dot(walk: Walk, subjects: Mapping[str, str]) -> str:
    """Return a graph in Graphviz' language."""
    lines = ["digraph memories {"]
    for each in [*walk.nodes, *walk.missing]:
        label = subjects.get(each, f"{each} (missing)")
        lines.append(f"    {_quoted(each)} [label={_quoted(label)}];")
    lines += [
        f"    {_quoted(edge.source)} -> {_quoted(edge.target)} [label={_quoted(edge.type)}];"
        for edge in walk.edges
    ]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + marked_line(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
