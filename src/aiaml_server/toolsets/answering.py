"""What toolsets share: how a function becomes a tool, and what that answers when it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from typing_extensions import TypedDict

from aiaml_server.errors import AiamlError, Refused
from aiaml_server.toolset import CRASHED, Tool


class Failure(TypedDict, total=False):
    """What a tool answers when it fails: a code of a closed list, and a sentence."""

    error: str
    message: str


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
    **hints: Any,
) -> Tool:
    """Return a tool with the name of a function; the other arguments are those of `Tool`.

    Args:
        call: the function.
        description: what agents read of it.
        shape: what it answers.
        rules: what each parameter must be; where tools differ, by "tool parameter".
        hints: what is true of it beside, as `Tool` has it.
    """
    name = call.__name__
    parameters = inspect.signature(call).parameters
    own = {each: rules.get(f"{name} {each}") or rules[each] for each in parameters}
    title = name.removeprefix("memory_").replace("_", " ").capitalize()
    return Tool(name, title, description, call, shape, own, failure, **hints)
