"""Two runs and a sub-agent in smolagents; `connect.py` is what the documentation shows."""

from __future__ import annotations

import sys
from typing import Any

from connect import agent_with as connected
from smolagents import ChatMessage, LogLevel, Model, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from aiaml_server.compartments import Compartments
from frameworks.script import FIRST, HELPER, LIMIT, SECOND, Actor, Step, end


class Played(Model):  # type: ignore[misc]
    """A model that plays a part."""

    def __init__(self, name: str, steps: list[Step]) -> None:
        super().__init__()
        self._actor = Actor(name, steps)

    def generate(self, messages: list[Any], **_options: Any) -> ChatMessage:
        """Answer with the next step."""
        words = [str(part["text"]) for part in messages[-1].content]
        text = "\n".join(word for word in words if "Memory of this run" in word)
        results = "\n".join(
            str(part["text"])
            for each in messages[-2:]
            for part in each.content
            if "Observation" in str(part["text"])
        )
        step = self._actor.act(text, results)
        if isinstance(step, str):
            step = [("final_answer", {"answer": step})]
        calls = [
            ChatMessageToolCall(
                id=str(number),
                type="function",
                function=ChatMessageToolCallFunction(name=tool, arguments=given),
            )
            for number, (tool, given) in enumerate(step)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


def agent_with(
    memory: Compartments, who: str, steps: list[Step], **options: Any
) -> ToolCallingAgent:
    """Return an agent that has the memory."""
    options["verbosity_level"] = LogLevel.OFF
    agent: ToolCallingAgent = connected(memory, Played(who, steps), **options)
    return agent


path = sys.argv[1]
with Compartments(path, limit=LIMIT) as memory, Compartments(path) as own:
    helper = agent_with(own, "helper", HELPER, name="ask_helper", description="Does something.")
    agent = agent_with(memory, "first", FIRST, managed_agents=[helper])
    assert agent.run("Convert the orders.") == "done"
with Compartments(path) as memory:
    assert agent_with(memory, "second", SECOND).run("Go on.") == "found"
end()
