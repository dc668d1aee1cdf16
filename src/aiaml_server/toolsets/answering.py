"""What toolsets share: how a function becomes a tool, and what that answers when it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import WithJsonSchema
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from aiaml_server.errors import AiamlError, Refused
from aiaml_server.toolset import CRASHED, Tool


class Failure(TypedDict, total=False):
    """What a tool answers when it fails: a code of a closed list, and a sentence."""

    error: str
    message: str


TEXT = WithJsonSchema({"type": "string"})
"""Of a text that may be left out: null is taken, and published is what every client can fill."""


@dataclass(frozen=True)
class Whole:
    """What makes a parameter a whole number that may be left out.

    Null and empty text count as left out, and a number is taken as 5.0 and as "5", too: clients
    and small models send all of these.

    Attributes:
        least: the smallest.
        most: the largest; None for any.
    """

    least: int
    most: int | None = None

    def __get_pydantic_core_schema__(self, *_: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "integer", **{name: n for name, n in bounds.items() if n is not None}}

    def _read(self, value: object) -> int | None:
        if value is None or value == "":
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
            value = int(value)
        if type(value) is int and self.least <= value and (self.most is None or value <= self.most):
            return value
        raise ValueError("no whole number of that range")


def failure(error: AiamlError | None) -> Failure:
    """Return what a tool answers when it fails; None is a crash."""
    if error is None:
        return {"error": "InternalError", "message": CRASHED}
    code = type(error).__name__ if isinstance(error, Refused) else "InvalidInput"
    return {"error": code, "message": str(error)}


def tool(
    call: Callable[..., Any],
    description: str,
    shape: type,
    rules: Mapping[str, str],
    **hints: bool,
) -> Tool:
    """Return a tool with the name of a function; the other arguments are those of `Tool`.

    Args:
        call: the function.
        description: what agents read of it.
        shape: what it answers.
        rules: what each parameter must be; where tools differ, by "tool parameter".
        hints: what is true of it beside.
    """
    name = call.__name__
    parameters = inspect.signature(call).parameters
    own = {each: rules.get(f"{name} {each}") or rules[each] for each in parameters}
    title = name.removeprefix("memory_").replace("_", " ").capitalize()
    return Tool(name, title, description, call, shape, own, failure, **hints)
