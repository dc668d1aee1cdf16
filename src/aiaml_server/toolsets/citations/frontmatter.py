"""Read and write the YAML above a memory.

The canonical form, which this program writes, is read by the standard library alone: one entry a
line, lists of scalars or of flat maps. PyYAML reads all other YAML where it is installed. Both
return every scalar as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aiaml_server.format.frontmatter import format_scalar, load_yaml, split
from aiaml_server.toolsets.citations.errors import MalformedMemory
from aiaml_server.toolsets.citations.models import JsonObject

_ROW = re.compile(r"(  - |    )?(?:([A-Za-z_]\w*):(?: (.*)|()))", re.ASCII)
_ITEM = re.compile(r"  - (.*)")
_CONFLICT_MARK = re.compile(r"^(?:<{7}|>{7})(?: |\r?$)", re.MULTILINE)
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD])[0-9A-Fa-f]{4})*"')
_PLAIN = re.compile(r"(?![-?][ ]|-$|---)[\w./~+(-](?:[^#:\t]|:(?=[^\s])|(?<=\S)#)*(?<! )")
_UNREADABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
# The rest of an entry: its line, and the lines below it that are indented or items of a list.
_ENTRY_REST = r"[ \t]*:.*\n(?:(?:[ \t]*\r?\n)*(?=[ \t]+\S|-\s).*\n)*"
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


class PyYamlMissing(MalformedMemory):
    """A file is not in canonical form, and PyYAML, which could read it, is not installed."""


def parse(head: str) -> JsonObject:
    """Return a YAML map, every scalar as text.

    Raises:
        PyYamlMissing: only PyYAML could read it.
        MalformedMemory: it is not a YAML map, has aliases, or is in the middle of a merge.
    """
    if found := _UNREADABLE.search(head):
        raise MalformedMemory(f"the frontmatter has the character {found[0]!a}")
    if _CONFLICT_MARK.search(head):
        raise MalformedMemory("a line is left of an unfinished merge; resolve the conflict")
    fields: object = parse_canonical(head)
    if fields is None:
        try:
            fields = load_yaml(head)
        except ImportError:
            message = "the YAML is not in canonical form; `pip install pyyaml` to have it read"
            raise PyYamlMissing(message) from None
    if not isinstance(fields, dict):
        raise MalformedMemory("the frontmatter is not a YAML map of keys and values")
    return fields


def parse_canonical(head: str) -> JsonObject | None:
    """Return a map in canonical form, every scalar as text; None if it is not canonical."""
    fields: JsonObject = {}
    items: Any = None  # the list that is being read
    try:
        for line in head.splitlines():
            if found := _ROW.fullmatch(line):
                indent, key, value, is_list = found.groups()
                if indent == "  - ":
                    items.append({})
                target = items[-1] if indent else fields
                if key in target or (indent and is_list is not None):
                    return None
                if not indent:
                    items = None if is_list is None else []
                target[key] = _parse_scalar(value) if is_list is None else items
            elif found := _ITEM.fullmatch(line):
                items.append(_parse_scalar(found[1]))
            else:
                return None
    except (ValueError, IndexError, TypeError, AttributeError):
        return None
    return fields


def _parse_scalar(value: str) -> Any:
    if value == "[]":
        return []
    if _DOUBLE_QUOTED.fullmatch(value):
        return json.loads(value)
    if not _PLAIN.fullmatch(value):
        raise ValueError(value)
    return value


def render(fields: Mapping[str, Any], content: str) -> str:
    """Return a new file in canonical form."""
    head = "".join(f"{key}:{render_value(value)}\n" for key, value in fields.items())
    return f"---\n{head}---\n\n{content}\n"


def render_value(value: Any) -> str:
    """Return what stands behind a key's colon: a scalar, or a list of scalars or flat maps."""
    if not isinstance(value, list):
        return f" {_scalar(value)}"
    lines = []
    for item in value:
        entries = [_scalar(item)]
        if isinstance(item, Mapping):
            entries = [f"{name}: {_scalar(part)}" for name, part in item.items()]
        lines.append("\n  - " + "\n    ".join(entries))
    return "".join(lines) or " []"


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    return value if _TIME.fullmatch(value) else format_scalar(value)


def update(text: str, changes: Mapping[str, Any]) -> str:
    """Return a file with some entries replaced, or its content, and every other byte as it was."""
    head, body, line_end = split(text)
    new_head = head
    for key in changes.keys() - {"content"}:
        entry = f"{key}:{render_value(changes[key])}\n".replace("\n", line_end)
        found = re.search(rf"^{key}{_ENTRY_REST}", new_head, re.MULTILINE)
        start, end = found.span() if found else (len(new_head), len(new_head))
        new_head = new_head[:start] + entry + new_head[end:]
    new = text.replace(head, new_head, 1)
    if "content" in changes:
        new = new.removesuffix(body) + f"\n{changes['content']}\n".replace("\n", line_end)
    return new
