"""Which tools are served: those for an agent at work, and the others."""

from __future__ import annotations

from aiaml_server.errors import InvalidSetting

AGENTS = ("memory_search", "memory_save", "memory_get", "memory_verify")
"""What an agent needs at work; every other tool costs it context for what is rarely asked."""
OTHERS = (
    "memory_list",
    "memory_graph_traverse",
    "memory_graph_related",
    "memory_delete",
    "memory_batch_verify",
    "memory_sync_index",
)


def served(name: str, value: str) -> tuple[str, ...]:
    """Read which tools are served: the agents' four, `all`, or others by name beside the four."""
    named = {each.strip() for each in value.split(",") if each.strip()}
    if "all" in named:
        return (*AGENTS, *OTHERS)
    for each in sorted(named - {"agent", *AGENTS, *OTHERS}):
        raise InvalidSetting(
            name, f"names {each[:100]!r}; it must be agent, all, or some of {', '.join(OTHERS)}"
        )
    return (*AGENTS, *(each for each in OTHERS if each in named))
