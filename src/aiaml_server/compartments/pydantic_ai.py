"""The compartments in an agent of pydantic-ai: `Agent(model, **connected(memory))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.memory import Compartments


def tools(memory: Compartments) -> list[Tool]:
    """Return the three tools on one run's memory; they do not block the loop."""
    return [
        Tool.from_schema(each.acall, each.name, each.description, each.parameters)
        for each in memory.tools()
    ]


def connected(memory: Compartments) -> dict[str, Any]:
    """Return the arguments of `Agent` by which it has the tools, and the run memory in each call.

    The instructions are asked for anew before each call of the model.
    """

    def run_memory() -> str:
        # Of an empty text, pydantic-ai 2.68 sends the one before once more.
        return memory.run_text() or "The run memory is empty."

    return {"tools": tools(memory), "instructions": run_memory}
