"""The input schema of a tool, and lenient reading of the arguments that clients send.

Some clients, proxies and small models send a list or an object as JSON text, a number as text, and
an empty text or null for what they leave out. Each value is read as the type in the schema if it
can mean only one thing; text parameters are never changed.

The SDK's own validation is not used: it parses any text for an optional parameter as JSON, so that
`null` or `{"a": 1}` would not be accepted as text (`FuncMetadata.pre_parse_json` in mcp 2.3).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from aiaml_server.errors import InvalidArguments
from aiaml_server.toolset import Tool, replace_surrogates

_CONTAINERS = ("array", "object")
_MAX_NAME = 100  # characters of a client's own name that an error repeats


class Arguments:
    """The arguments of one tool.

    Attributes:
        schema: the JSON schema that clients see.
    """

    def __init__(self, tool: Tool) -> None:
        """Derive the schema from the annotations of the tool's function."""
        self._tool = tool
        fields: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for name, parameter in inspect.signature(tool.call, eval_str=True).parameters.items():
            fields[name] = parameter.annotation
            if parameter.default is not parameter.empty:
                fields[name] = cast(Any, NotRequired)[parameter.annotation]
                defaults[name] = parameter.default
        self._adapter: TypeAdapter[Any] = TypeAdapter(TypedDict("Arguments", fields))  # type: ignore[operator]
        schema = self._adapter.json_schema()
        self.schema = plain_schema(schema, schema.get("$defs", {}))
        self._parameters: dict[str, dict[str, Any]] = self.schema["properties"]
        for name, default in defaults.items():
            if default is not None:
                self._parameters[name]["default"] = default
        if not tool.ignores_unknown:
            self.schema["additionalProperties"] = False

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments for the tool's function.

        Raises:
            InvalidArguments: some are missing, have a wrong type, or are unknown to this tool.
        """
        if not self._tool.ignores_unknown:
            self._check_names(arguments)
        converted = convert_members(arguments, self.schema, self._tool.allow_empty)
        try:
            read: dict[str, Any] = self._adapter.validate_python(converted)
        except ValidationError as error:
            raise self._explain(error) from error
        return read

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        unknown = [name[:_MAX_NAME] for name in arguments if name not in self._parameters]
        if unknown:
            known = ", ".join(self._parameters) or "none"
            reason = f"is no argument of this tool; it takes {known}"
            raise InvalidArguments(dict.fromkeys(unknown, reason))

    def _explain(self, error: ValidationError) -> InvalidArguments:
        """Name each wrong argument and what it must be, without repeating its private value."""
        reasons: dict[str, str] = {}
        for detail in error.errors(include_url=False, include_input=False):
            name, *inner = (_describe(part) for part in detail["loc"])
            if name not in reasons:
                is_missing = detail["type"] == "missing" and not inner
                prefix = "is missing, it " if is_missing else ""
                reasons[name] = f"{prefix}must be {self._tool.rules[name]}"
            if inner:
                reasons[name] += f"; {' of '.join(reversed(inner))}: {detail['msg']}"
        return InvalidArguments(reasons)


def _describe(part: int | str) -> str:
    """Return a name in an object, or a place in a list, counted from 1."""
    return f"item {part + 1}" if isinstance(part, int) else part[:_MAX_NAME]


# --- values ---------------------------------------------------------------------------------------

_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": (int, float),
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
"""The types of JSON values that a text may stand for."""


def convert(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value as the type that its schema names, or unchanged if it is not clearly one."""
    kind = schema.get("type", "")
    if isinstance(value, str) and kind in _TYPES:
        value = _parse(value, _TYPES[kind])
    if kind in ("integer", "number") and isinstance(value, bool):
        return str(value)  # Python would accept it as 0 or 1
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list) and len(value) <= schema.get("maxItems", len(value)):
        return [convert(item, schema.get("items", {})) for item in value]
    if isinstance(value, Mapping) and "properties" in schema:
        return convert_members(value, schema)
    return value


def convert_members(
    value: Mapping[str, Any], schema: Mapping[str, Any], allow_empty: Collection[str] = ()
) -> dict[str, Any]:
    """Convert the members of an object; drop null and empty text of optional ones.

    Args:
        value: the object.
        schema: its schema, with `properties`.
        allow_empty: the members for which an empty text has a meaning.
    """
    members, required = schema["properties"], schema.get("required", ())
    converted = {}
    for name, member in value.items():
        is_optional = name in members and name not in required
        is_scalar = members.get(name, {}).get("type") not in _CONTAINERS
        is_empty = member == "" and is_scalar and name not in allow_empty
        if not (is_optional and (member is None or is_empty)):
            converted[name] = convert(member, members.get(name, {}))
    return converted


def _parse(text: str, types: type | tuple[type, ...]) -> Any:
    """Return the JSON value in a text if it has one of these types, or else the text."""
    try:
        parsed = json.loads(repair_surrogates(text.lower() if types is bool else text))
    except (ValueError, RecursionError):
        return text
    return parsed if isinstance(parsed, types) else text


def repair_surrogates(text: str) -> str:
    r"""Replace escaped halves of surrogate pairs in JSON text, such as `\ud83d` alone."""
    if "\\ud" not in text.lower():
        return text
    try:
        return replace_surrogates(json.dumps(json.loads(text), ensure_ascii=False))
    except (ValueError, RecursionError):
        return text


# --- schemas --------------------------------------------------------------------------------------


_HIDDEN = ("title", "$defs", "default")


def plain_schema(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], *, output: bool = False
) -> dict[str, Any]:
    """Return a schema without titles and references.

    An optional parameter names one type alone, because command lines and small models fill in what
    they find as the first `type`. Answers are checked by clients, so there a null stays.

    Args:
        schema: the schema as pydantic derives it.
        definitions: what it refers to, by name.
        output: whether it is of an answer; descriptions are then left out.
    """
    plain = dict(schema)
    hidden = (*_HIDDEN, "description") if output else _HIDDEN
    if "$ref" in plain:
        plain = {**definitions[plain.pop("$ref").rpartition("/")[2]], **plain}
    plain = {key: value for key, value in plain.items() if key not in hidden}

    def simplify(part: Mapping[str, Any]) -> dict[str, Any]:
        return plain_schema(part, definitions, output=output)

    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    if "anyOf" in plain:
        options = [x for x in plain.pop("anyOf") if output or x.get("type") != "null"]
        parts = [simplify(option) for option in options]
        plain = {**parts[0], **plain} if len(parts) == 1 else {"anyOf": parts, **plain}
    if "properties" in plain:
        members = plain["properties"].items()
        plain["properties"] = {name: simplify(part) for name, part in members}
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict):
            plain[key] = simplify(plain[key])
    return plain
