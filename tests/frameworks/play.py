"""Run a recipe of docs/toolsets/compartments-recipes.md: play.py FRAMEWORK MEMORY_FILE.

`recipe.py` is what the page shows. The models follow `STEPS`, and note before each step what is
put before them: their instructions, and the result of the last call. That is printed as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from recipe import make_agent

from aiaml_server.toolsets.compartments import Compartments

STEPS: list[dict[str, Any]] = [
    {"name": "save_memory", "compartment": "run", "content": "12 of 40 are read."},
    {"name": "save_memory", "compartment": "session", "content": "Invoices are in euros."},
    {"name": "save_memory", "compartment": "run", "content": "x" * 100},
    {"name": "get_memory", "compartment": "session", "query": "euros", "limit": 3},
]
seen: list[list[str]] = []


def next_step(instructions: object, result: object) -> tuple[str, dict[str, Any]] | None:
    """Note what a model is given; return the next call, or None for the last words."""
    seen.append([str(instructions), str(result)])
    if len(seen) > len(STEPS):
        return None
    arguments = dict(STEPS[len(seen) - 1])
    return arguments.pop("name"), arguments


def play_pydantic_ai(memory: Compartments) -> object:
    """Run an agent with its `FunctionModel`."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: Any, info: Any) -> Any:
        step = next_step(info.instructions, messages[-1].parts[-1].content)
        return ModelResponse(parts=[ToolCallPart(*step) if step else TextPart("done")])

    return make_agent(memory, FunctionModel(answer)).run_sync("Go on.").output


def play_openai_agents(memory: Compartments) -> object:
    """Run an agent with a model that needs no account."""
    from agents import Model, ModelResponse, Runner, Usage, set_tracing_disabled
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Script(Model):  # type: ignore[misc]
        async def get_response(self, *_: Any, **given: Any) -> Any:
            items = given["input"]
            last = items if isinstance(items, str) else items[-1].get("output")
            step = next_step(given["system_instructions"], last)
            if step is None:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                output: Any = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            else:
                output = ResponseFunctionToolCall(
                    type="function_call",
                    call_id=str(len(seen)),
                    name=step[0],
                    arguments=json.dumps(step[1]),
                )
            return ModelResponse(output=[output], usage=Usage(), response_id=None)

        async def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    set_tracing_disabled(True)
    return Runner.run_sync(make_agent(memory, Script()), "Go on.").final_output


def play_smolagents(memory: Compartments) -> object:
    """Run an agent with a model that needs no account."""
    from smolagents import ChatMessage, Model
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    class Script(Model):  # type: ignore[misc]
        def generate(self, messages: Any, **_: Any) -> Any:
            *_others, result, last = [message.content[-1]["text"] for message in messages]
            step = next_step(last, result) or ("final_answer", {"answer": "done"})
            function = ChatMessageToolCallFunction(name=step[0], arguments=step[1])
            call = ChatMessageToolCall(id=str(len(seen)), type="function", function=function)
            return ChatMessage(role="assistant", content="", tool_calls=[call])

    return make_agent(memory, Script()).run("Go on.")


def play_langgraph(memory: Compartments) -> object:
    """Run a graph with LangChain's model of prepared messages."""
    from langchain_core.language_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Script(GenericFakeChatModel):  # type: ignore[misc]
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

        def _generate(self, messages: Any, *_: Any, **options: Any) -> Any:
            step = next_step(messages[0].content, messages[-1].content)
            call = {"name": step[0], "args": step[1], "id": str(len(seen))} if step else None
            self.messages = iter(
                [AIMessage("" if step else "done", tool_calls=[call] if call else [])]
            )
            return super()._generate(messages, **options)

    graph = make_agent(memory, Script(messages=iter([])))
    return graph.invoke({"messages": [("user", "Go on.")]})["messages"][-1].content


if __name__ == "__main__":
    with Compartments(sys.argv[2], limit={"run": 60}) as compartments:
        answer = globals()[f"play_{sys.argv[1]}"](compartments)
    json.dump({"answer": answer, "seen": seen}, sys.stdout)
