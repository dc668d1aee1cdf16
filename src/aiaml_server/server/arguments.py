"""What a tool takes: its schema in plain types, and what clients send as its arguments.

Command lines, proxies and small models fill in what a schema says by its first `type`, send empty
text for what they leave out, and numbers as text. What can only be meant in one way is taken so.

The SDK's own check reads whatever text comes for a parameter that may also be null as JSON, so that
`null` and `{"a": 1}` are no texts there (`FuncMetadata.pre_parse_json`, mcp 2.3, 2026-11-25).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from aiaml_server.errors import InvalidArguments
from aiaml_server.toolset import Tool

_SCALARS = {"string", "integer", "number", "boolean"}
_WHOLE = re.compile(r"-?[0-9]{1,15}(\.0+)?")
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_TEXT = {"type": "string"}
_TRUTH = {"true": True, "false": False}
_FORMS = {"array": "list", "object": "object"}


class Arguments:
    """The arguments of one tool.

    Attributes:
        schema: as clients are told it.
    """

    def __init__(self, tool: Tool) -> None:
        """Derive the schema from the annotations of the tool's function."""
        self._tool = tool
        parameters = inspect.signature(tool.call, eval_str=True).parameters.values()
        keys: dict[str, Any] = {}
        for each in parameters:
            may_be_absent = each.default is not each.empty
            kind = cast(Any, NotRequired)[each.annotation] if may_be_absent else each.annotation
            keys[each.name] = kind
        self._adapter: TypeAdapter[Any] = TypeAdapter(TypedDict("Given", keys))  # type: ignore[operator]
        told = self._adapter.json_schema()
        self.schema = plain(told, told.get("$defs", {}))
        self._parameters: dict[str, dict[str, Any]] = self.schema["properties"]
        for each in parameters:
            if each.default is not each.empty and each.default is not None:
                self._parameters[each.name]["default"] = each.default
        if not tool.ignores_unknown:
            self.schema["additionalProperties"] = False

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the tool's function is called with; it has defaults for what is left out.

        Raises:
            InvalidArguments: some are missing, are of the wrong type, or are none of this tool's.
        """
        unknown = [name for name in given if name not in self._parameters]
        if unknown and not self._tool.ignores_unknown:
            from difflib import get_close_matches  # noqa: PLC0415 (hardly ever needed)

            takes = ", ".join(self._parameters) or "none"
            first = unknown[0][:100]
            near = get_close_matches(first, self._parameters, 1) if len(unknown) == 1 else ()
            meant = f"did you mean {near[0]}?" if near else f"it takes {takes}"
            raise InvalidArguments(
                {name[:100]: f"is no argument of this tool; {meant}" for name in unknown}
            )
        taken = _taken(given, self.schema, self._tool.allow_empty)
        try:
            read: dict[str, Any] = self._adapter.validate_python(taken)
        except ValidationError as error:
            raise self._wrong_types(error, given) from error
        return read

    def _wrong_types(self, error: ValidationError, given: Mapping[str, Any]) -> InvalidArguments:
        """Say of each parameter what it must be; the given values are private, and not said."""
        details = error.errors(include_url=False, include_input=False)
        reasons: dict[str, list[str]] = {}
        for each in details:
            field, *inner = each["loc"]
            is_missing = each["type"] == "missing" and not inner
            said = reasons.setdefault(str(field), [
                f"{'is missing, it ' if is_missing else ''}must be {self._tool.rules[str(field)]}"
            ])  # fmt: skip
            kind = self._parameters[str(field)].get("type")
            if not inner and isinstance(given.get(str(field)), str) and kind in _FORMS:
                said.append(self._sent_as_text(str(field), _FORMS[kind]))
            elif more := _within(*each["loc"], kind=each["type"]):
                said.append(more)
        return InvalidArguments({field: "; ".join(said) for field, said in reasons.items()})

    def _sent_as_text(self, field: str, form: str) -> str:
        """Say how a list or an object is sent that came as text, be it as JSON in a text."""
        examples = self._parameters[field].get("examples")
        such = f", such as {json.dumps(examples[0], ensure_ascii=False)}" if examples else ""
        return f"it came as text: send the {form} itself{such}"


def plain(schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose every part says its one type, without titles, references and null."""
    schema = _resolved(schema, known)
    if "anyOf" in schema:
        (only,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
        return plain({**only, **{name: schema[name] for name in schema if name != "anyOf"}}, known)
    left_out = ("title", "$defs", "default")
    found = {name: each for name, each in schema.items() if name not in left_out}
    if "enum" in found:
        found["enum"] = [each for each in found["enum"] if each is not None]
    if "properties" in found:
        parts = found["properties"]
        found["properties"] = {name: plain(each, known) for name, each in parts.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), dict):
            found[name] = plain(found[name], known)
    return found


def terse(schema: Mapping[str, Any], known: Mapping[str, Any], levels: int) -> dict[str, Any]:
    """Return a schema of answers in few words: the types of their fields.

    Args:
        schema: as pydantic derives it.
        known: what it may refer to, by name.
        levels: how many objects, one in another, have their fields told.
    """
    schema = _resolved(schema, known)
    if "anyOf" in schema:
        options = [terse(each, known, levels) for each in schema["anyOf"]]
        if all(each.keys() == {"type"} for each in options):
            return {"type": [each["type"] for each in options]}
        return {"anyOf": options}
    found: dict[str, Any] = {"type": schema["type"]}
    if isinstance(schema.get("items"), dict):
        found["items"] = terse(schema["items"], known, levels)
    if levels and "properties" in schema:
        if "required" in schema:
            found["required"] = schema["required"]
        parts = schema["properties"]
        found["properties"] = {name: terse(each, known, levels - 1) for name, each in parts.items()}
    return found


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema, or what it refers to."""
    named = known[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    return {**named, **{name: each for name, each in schema.items() if name != "$ref"}}


def _taken(  # noqa: PLR0911 (one for each kind)
    value: Any, schema: Mapping[str, Any], empties: Collection[str] = ()
) -> Any:
    """Take a value for the only thing that it can mean by its schema; leave all else to the check.

    Args:
        value: what was sent.
        schema: as `plain` makes it.
        empties: names of texts that mean something when they are empty.
    """
    kind = schema.get("type")
    if kind in ("integer", "number") and isinstance(value, bool):
        return str(value)  # which is no number, as this is none: Python counts it as one
    if kind == "integer" and isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value.partition(".")[0])
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "number" and isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if kind == "boolean" and isinstance(value, str):
        return _TRUTH.get(value.lower(), value)
    if isinstance(value, list) and len(value) > schema.get("maxItems", len(value)):
        return value
    if isinstance(value, list) and schema.get("items", _TEXT).get("type") != "string":
        return [_taken(each, schema["items"]) for each in value]
    if isinstance(value, Mapping) and "properties" in schema:
        parts, required = schema["properties"], schema.get("required", ())
        optional = {name: parts[name] for name in parts if name not in required}
        return {
            name: _taken(each, parts.get(name, {}))
            for name, each in value.items()
            if name not in optional or not _is_absent(each, optional[name], name in empties)
        }
    return value


def _is_absent(value: Any, schema: Mapping[str, Any], may_be_empty: bool) -> bool:
    """Say whether a value stands for none: null, and empty text in the place of one value."""
    return value is None or (value == "" and not may_be_empty and schema.get("type") in _SCALARS)


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
