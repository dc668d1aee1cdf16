"""What a tool takes: its schema, and what clients send as its arguments.

The SDK's own check reads whatever text comes for a parameter that may also be null as JSON, so that
`null` and `{"a": 1}` are no texts there (`FuncMetadata.pre_parse_json`, mcp 2.3, 2026-11-25).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from aiaml_server.errors import InvalidArguments
from aiaml_server.toolset import Tool


class Arguments:
    """The arguments of one tool.

    Attributes:
        schema: as clients are told it.
    """

    def __init__(self, tool: Tool) -> None:
        """Derive the schema from the annotations of the tool's function."""
        self._tool = tool
        parameters = inspect.signature(tool.call, eval_str=True).parameters.values()
        keys = {each.name: _annotation(each) for each in parameters}
        self._adapter: TypeAdapter[Any] = TypeAdapter(TypedDict("Given", keys))  # type: ignore[operator]
        self.schema = self._adapter.json_schema()
        self._parameters: dict[str, dict[str, Any]] = self.schema.setdefault("properties", {})
        for each in parameters:
            if each.default is not each.empty:
                self._parameters[each.name]["default"] = each.default
        if not tool.lenient:
            self.schema["additionalProperties"] = False

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the tool's function is called with; it has defaults for what is left out.

        Raises:
            InvalidArguments: some are missing, are of the wrong type, or are none of this tool's.
        """
        unknown = [name for name in given if name not in self._parameters]
        if unknown and not self._tool.lenient:
            known = ", ".join(self._parameters)
            there = f"there are {known}" if known else "it takes none"
            raise InvalidArguments(
                {name[:100]: f"is no argument of this tool; {there}" for name in unknown}
            )
        taken = {name: self._taken(name, value) for name, value in given.items()}
        try:
            read: dict[str, Any] = self._adapter.validate_python(taken)
        except ValidationError as error:
            raise _wrong_types(error, self._tool.rules) from error
        return read

    def _taken(self, name: str, value: Any) -> Any:
        """Read a list or an object that came as text."""
        kind = self._parameters.get(name, {})
        types = {each.get("type") for each in kind.get("anyOf", [kind])}
        if isinstance(value, str) and "string" not in types:
            with suppress(ValueError, RecursionError):
                found = json.loads(value)
                if isinstance(found, (list, dict)):
                    return found
        return value


def _annotation(parameter: inspect.Parameter) -> Any:
    """Return a parameter's annotation as that of a key; one with a default may be left out."""
    if parameter.default is parameter.empty:
        return parameter.annotation
    return cast(Any, NotRequired)[parameter.annotation]


def _wrong_types(error: ValidationError, rules: Mapping[str, str]) -> InvalidArguments:
    """Say for each parameter what it must be; the given values, which are private, are not said."""
    details = error.errors(include_url=False, include_input=False)
    missing = {
        str(each["loc"][0]): each["type"] == "missing" and len(each["loc"]) == 1 for each in details
    }
    return InvalidArguments(
        {
            field: "; ".join(
                [
                    f"{'is missing, it ' if absent else ''}must be {rules[field]}",
                    *filter(None, (
                        _within(*each["loc"], kind=each["type"])
                        for each in details if each["loc"][0] == field
                    )),
                ]
            )
            for field, absent in missing.items()
        }
    )  # fmt: skip


_WRONG = {
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
}
"""What is said of a part of a parameter, by the kind of error."""


def _within(*where: int | str, kind: str) -> str:
    """Say what is wrong with a key of an object, or of an item of a list; items count from 1."""
    said = _WRONG.get(kind, "is not so")
    match where:
        case (_, str(), int(item)):
            return f"item {item + 1} of {'.'.join(str(each) for each in where[:2])} {said}"
        case (_, int(item), str(key)):
            return f"{key[:100]!r} of item {item + 1} {said}"
        case (_, str(), *inner) if not any(isinstance(each, int) for each in inner):
            return f"{'.'.join(str(each)[:100] for each in where)} {said}"
    return ""
