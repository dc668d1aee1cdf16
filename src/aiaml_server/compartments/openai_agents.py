"""The compartments in an agent of the OpenAI Agents SDK: `Agent(**connected(memory))`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents import FunctionTool

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.memory import Compartments
    from aiaml_server.toolsets.compartments.tools import Function


def tools(memory: Compartments) -> list[FunctionTool]:
    """Return the three tools on one run's memory; they do not block the loop."""
    return [_tool(each) for each in memory.tools()]


def connected(memory: Compartments, instructions: str = "") -> dict[str, Any]:
    """Return the arguments of `Agent` by which it has the tools, and the run memory in each call.

    Args:
        memory: the run's.
        instructions: what the agent is told besides.
    """

    def told(_context: Any, _agent: Any) -> str:
        return "\n\n".join(filter(None, (instructions, memory.run_text())))

    return {"tools": tools(memory), "instructions": told}


def _tool(function: Function) -> FunctionTool:
    async def invoke(_context: Any, arguments: str) -> str:
        """Call the function with arguments in JSON; a failure is a value, for the model to read."""
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            given = None
        if not isinstance(given, dict):
            message = "the arguments must be an object in JSON"
            return json.dumps({"error": "InvalidInput", "message": message})
        return json.dumps(await function.acall(**given), ensure_ascii=False)

    return FunctionTool(
        name=function.name,
        description=function.description,
        params_json_schema=function.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
