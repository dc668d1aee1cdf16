"""The compartments in an agent of smolagents: `tools(memory)`, and a model with the run memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smolagents import ChatMessage, Model, Tool
from smolagents.models import MessageRole

if TYPE_CHECKING:
    from aiaml_server.toolsets.compartments.memory import Compartments
    from aiaml_server.toolsets.compartments.tools import Function


class MemoryTool(Tool):
    """One of the three tools."""

    output_type = "object"
    skip_forward_signature_validation = True

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.name, self.description = function.name, function.description
        self.inputs = {
            name: {
                "type": each["type"],
                "description": each["description"],
                "nullable": "default" in each,
            }
            for name, each in function.parameters["properties"].items()
        }
        self._call = function.call

    def forward(self, *positional: Any, **arguments: Any) -> dict[str, Any]:
        """Call it; code that a model writes gives some of them by their place."""
        return self._call(**dict(zip(self.inputs, positional)), **arguments)  # noqa: B905 (the rest are named)


def tools(memory: Compartments) -> list[Tool]:
    """Return the three tools on one run's memory."""
    return [MemoryTool(each) for each in memory.tools()]


class RunMemory(Model):
    """A model before which the run memory is put in each call, as the last message."""

    def __init__(self, model: Model, memory: Compartments) -> None:
        super().__init__(model_id=model.model_id)
        self._model, self._memory = model, memory

    def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
        """Ask the model."""
        return self._model.generate(self._with_memory(messages), **options)

    def generate_stream(self, messages: list[Any], **options: Any) -> Any:
        """Ask the model for its answer piece by piece."""
        return self._model.generate_stream(self._with_memory(messages), **options)

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # it is being made, or copied
            raise AttributeError(name)
        return getattr(self._model, name)

    def _with_memory(self, messages: list[Any]) -> list[Any]:
        text = self._memory.run_text()
        if not text:
            return messages
        content = [{"type": "text", "text": text}]
        return [*messages, ChatMessage(role=MessageRole.USER, content=content)]
