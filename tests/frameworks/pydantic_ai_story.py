"""Two runs and a sub-agent in pydantic-ai; `connect.py` is what the documentation shows."""

from __future__ import annotations

import sys

from connect import agent_with
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from aiaml_server.compartments import Compartments
from frameworks.script import FIRST, HELPER, LIMIT, SECOND, Actor, Step, end


def played(name: str, steps: list[Step]) -> FunctionModel:
    """Return a model that plays a part."""
    actor = Actor(name, steps)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        results = [
            str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart)
        ]
        step = actor.act(info.instructions or "", "\n".join(results))
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(tool, given) for tool, given in step])

    return FunctionModel(answer)


path = sys.argv[1]
with Compartments(path, limit=LIMIT) as memory:
    agent = agent_with(memory, played("first", FIRST))

    async def ask_helper(task: str) -> str:
        """Have a sub-agent do something."""
        with Compartments(path) as own:
            done = await agent_with(own, played("helper", HELPER)).run(task)
        return str(done.output)

    agent.tool_plain(ask_helper)
    assert agent.run_sync("Convert the orders.").output == "done"
with Compartments(path) as memory:
    assert agent_with(memory, played("second", SECOND)).run_sync("Go on.").output == "found"
end()
