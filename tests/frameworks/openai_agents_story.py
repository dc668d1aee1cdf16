"""Two runs and a sub-agent in the OpenAI Agents SDK; `connect.py` is what the page shows."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

from agents import Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from connect import agent_with
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from aiaml_server.compartments import Compartments
from frameworks.script import FIRST, HELPER, LIMIT, SECOND, Actor, Step, end

set_tracing_disabled(True)
NUMBERS = count()


class Played(Model):  # type: ignore[misc]
    """A model that plays a part."""

    def __init__(self, name: str, steps: list[Step]) -> None:
        self._actor = Actor(name, steps)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 (the SDK's word)
        *_args: Any,
        **_options: Any,
    ) -> ModelResponse:
        """Answer with the next step."""
        results: list[str] = []
        for each in input if isinstance(input, list) else []:
            if each.get("type") == "function_call":
                results = results if results and results[-1] == "" else [""]
            if each.get("type") == "function_call_output":
                said = str(each["output"])
                results.append(str(json.loads(said)) if said.startswith("{") else said)
        step = self._actor.act(system_instructions or "", "\n".join(results))
        return ModelResponse(output=_said(step), usage=Usage(), response_id=None)

    async def stream_response(self, *_args: Any, **_options: Any) -> AsyncIterator[Any]:
        """Nobody asks for it."""
        raise NotImplementedError
        yield


def _said(step: Step) -> list[Any]:
    if isinstance(step, str):
        text = ResponseOutputText(type="output_text", text=step, annotations=[])
        return [
            ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[text]
            )
        ]
    return [
        ResponseFunctionToolCall(
            type="function_call", call_id=f"{next(NUMBERS)}", name=tool, arguments=json.dumps(given)
        )
        for tool, given in step
    ]


path = sys.argv[1]
with Compartments(path, limit=LIMIT) as memory:
    agent = agent_with(memory, Played("first", FIRST))

    @function_tool  # type: ignore[untyped-decorator]
    async def ask_helper(task: str) -> str:
        """Have a sub-agent do something."""
        with Compartments(path) as own:
            done = await Runner.run(agent_with(own, Played("helper", HELPER)), task)
        return str(done.final_output)

    agent.tools.append(ask_helper)
    assert Runner.run_sync(agent, "Convert the orders.").final_output == "done"
with Compartments(path) as memory:
    second = agent_with(memory, Played("second", SECOND))
    assert Runner.run_sync(second, "Go on.").final_output == "found"
end()
