"""What toolsets share: how a function becomes a tool, and what that answers when it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from aiaml_server.errors import AiamlError, Refused
from aiaml_server.toolset import CRASHED, Tool


class Rule(NamedTuple):
    """What a parameter must be: in its annotation, beside its description and examples."""

    sentence: str


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
    rules: Mapping[str, str] | None = None,
    /,
    **hints: bool,
) -> Tool:
    """Return a tool with the name of a function; the other arguments are those of `Tool`.

    Args:
        call: the function.
        description: what agents read of it.
        shape: what it answers.
        rules: what each parameter must be; where tools differ, by "tool parameter". Without, each
            parameter's annotation has a `Rule`.
        hints: what is true of it beside.
    """
    name = call.__name__
    if rules is None:
        own = _stated(call)
    else:
        parameters = inspect.signature(call).parameters
        own = {each: rules.get(f"{name} {each}") or rules[each] for each in parameters}
    title = name.removeprefix("memory_").replace("_", " ").capitalize()
    return Tool(name, title, description, call, shape, own, failure, **hints)


def _stated(call: Callable[..., Any]) -> dict[str, str]:
    """Return the rule in the annotation of each parameter."""
    parameters = inspect.signature(call, eval_str=True).parameters
    return {
        name: next(each.sentence for each in one.annotation.__metadata__ if isinstance(each, Rule))
        for name, one in parameters.items()
    }
