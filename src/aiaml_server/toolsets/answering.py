"""Shared by toolsets: make a tool of a function, and what it answers."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from aiaml_server.toolset import Answer, Tool, error_answer

_MAX_CHARACTERS = 200_000  # of a list, as JSON
_MAX_NOTES = 20


class Failure(TypedDict, total=False):
    """The answer of a tool after a failure: a code of a closed list, and a sentence."""

    error: str
    message: str


class Plain:
    """Lets the schema of an optional parameter name its type alone, without null.

    Null is accepted anyway. Command lines and small models cannot fill a choice of types.
    """

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(schema)
        kinds = [each for each in found.pop("anyOf", ()) if each != {"type": "null"}]
        return {**(kinds[0] if kinds else {}), **found}


PLAIN = Plain()


@dataclass(frozen=True)
class Whole(Plain):
    """Makes a parameter an optional whole number.

    Null and empty text count as left out, and 5.0 and "5" are accepted for 5: clients and
    small models send all of these.

    Attributes:
        least: the smallest.
        most: the largest; None for any.
    """

    least: int
    most: int | None = None

    def __get_pydantic_core_schema__(self, *_: object) -> CoreSchema:
        number = core_schema.int_schema(strict=True, ge=self.least, le=self.most)
        return core_schema.no_info_before_validator_function(
            as_number, core_schema.nullable_schema(number)
        )


@dataclass(frozen=True)
class Few:
    """Refuses a list or an object with too many members before it reads any of them.

    Attributes:
        most: how many it may have.
    """

    most: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._checked, handler(source))

    def _checked(self, value: object) -> object:
        if isinstance(value, (list, Mapping)) and len(value) > self.most:
            raise ValueError("too many")
        return value


def as_number(value: object) -> object:
    """Return a whole number that is written as a float or a text; None for an empty text."""
    if value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value


def limit_answer(answer: Any) -> Any:
    """Return an answer, with a list cut where hosts and models would refuse it.

    At least one member is returned, and a note says how many there are.
    """
    value, notes = answer if isinstance(answer, Answer) else (answer, ())
    if not isinstance(value, list):
        return answer
    sizes = accumulate(len(json.dumps(member)) for member in value)
    count = sum(size <= _MAX_CHARACTERS for size in sizes) or 1
    if count < len(value):
        cut = f"Only {count} of {len(value)} are here, since more would be too long to read."
        notes = [cut, *notes]
    return Answer(value[:count], notes[:_MAX_NOTES])


def tool(
    call: Callable[..., Any],
    description: str,
    shape: type,
    rules: Mapping[str, str],
    /,
    **hints: Any,
) -> Tool:
    """Return a tool with the name of a function; the other arguments are those of `Tool`.

    Args:
        call: the function.
        description: what agents read of it.
        shape: the shape of its answer.
        rules: what each parameter must be; where tools differ, by "tool parameter".
        hints: other attributes of `Tool`.
    """
    name = call.__name__
    parameters = inspect.signature(call).parameters
    own = {each: rules.get(f"{name} {each}") or rules[each] for each in parameters}
    title = name.removeprefix("memory_").replace("_", " ").capitalize()
    return Tool(name, title, description, call, shape, own, error_answer, **hints)
