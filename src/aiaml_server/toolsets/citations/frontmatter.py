"""Read and write the YAML above a memory.

The canonical form, which this program writes, is read by the standard library alone: one entry a
line, lists of scalars or of flat maps. PyYAML reads all other YAML where it is installed. Both
return every scalar as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from aiaml_server.toolsets.citations.errors import MalformedMemory

_DOCUMENT = re.compile(
    r"\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_ROW = re.compile(r"(  - |    )?(?:([A-Za-z_]\w*):(?: (.*)|()))", re.ASCII)
_ITEM = re.compile(r"  - (.*)")
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD])[0-9A-Fa-f]{4})*"')
_PLAIN = re.compile(r"(?![-?][ ]|-$|---)[\w./~+(-](?:[^#:\t]|:(?=[^\s])|(?<=\S)#)*(?<! )")
_TOP_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:\s|$)", re.ASCII)
_UNREADABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_WRITTEN_PLAIN = re.compile(r"[A-Za-z_](?:[\w./@+()-]| (?! ))*(?<! )", re.ASCII)
_RESERVED = re.compile(r"null|true|false|yes|no|on|off|y|n|nan|inf", re.IGNORECASE)


class PyYamlMissing(MalformedMemory):
    """A file is not in canonical form, and PyYAML, which could read it, is not installed."""


class Document(NamedTuple):
    """A text with frontmatter.

    Attributes:
        head: the YAML, without the lines that enclose it.
        start: the offset at which it begins.
        body: the offset at which the content begins.
    """

    head: str
    start: int
    body: int


def split(text: str) -> Document:
    """Divide a text into frontmatter and content.

    Raises:
        MalformedMemory: it has no frontmatter.
    """
    found = _DOCUMENT.match(text)
    if not found:
        raise MalformedMemory("line 1 must be ---, and another --- must close the frontmatter")
    return Document(found[1], found.start(1), found.end())


def parse(head: str) -> dict[str, Any]:
    """Return a YAML map, every scalar as text.

    Raises:
        PyYamlMissing: only PyYAML could read it.
        MalformedMemory: it is not a YAML map.
    """
    if found := _UNREADABLE.search(head):
        raise MalformedMemory(f"the frontmatter has the character U+{ord(found[0]):04X}")
    fields: object = parse_canonical(head)
    if fields is None:
        try:
            # Imported here because the standard library alone reads the canonical form.
            from aiaml_server.frontmatter import load_yaml  # noqa: PLC0415

            fields = load_yaml(head)
        except ImportError:
            message = "the YAML is not in canonical form; `pip install pyyaml` to have it read"
            raise PyYamlMissing(message) from None
    if not isinstance(fields, dict):
        raise MalformedMemory("the frontmatter is not a YAML map of keys and values")
    return fields


def parse_canonical(head: str) -> dict[str, Any] | None:
    """Return a map in canonical form, every scalar as text; None if it is not canonical."""
    fields: dict[str, Any] = {}
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
    return None if [] in fields.values() and "[]" not in head else fields


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
    lines = [line for key, value in fields.items() for line in render_entry(key, value)]
    return "\n".join(["---", *lines, "---", "", content, ""])


def render_entry(key: str, value: Any) -> list[str]:
    """Return the lines of one entry: a scalar, or a list of scalars or of flat maps."""
    if not isinstance(value, list):
        return [f"{key}: {render_scalar(value)}"]
    lines = [f"{key}:" if value else f"{key}: []"]
    for item in value:
        if isinstance(item, Mapping):
            entries = [f"{name}: {render_scalar(part)}" for name, part in item.items()]
            lines += [f"  - {entries[0]}", *(f"    {entry}" for entry in entries[1:])]
        else:
            lines.append(f"  - {render_scalar(item)}")
    return lines


def render_scalar(value: str | float | None) -> str:
    """Return a scalar: plain if every YAML reader takes it for the same text, else quoted."""
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = _WRITTEN_PLAIN.fullmatch(value) and not _RESERVED.fullmatch(value)
    if is_plain or _TIME.fullmatch(value):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def replace_entries(text: str, changes: Mapping[str, Any]) -> str:
    """Return a file with some top-level entries replaced and every other byte as it was.

    Raises:
        MalformedMemory: another entry depends on a replaced one.
    """
    document = split(text)
    newline = "\r\n" if "\r\n" in text[: document.start] else "\n"
    blocks = _blocks(document.head)
    for key, value in changes.items():
        comments = [line for line in blocks.get(key, []) if line.startswith("#")]
        blocks[key] = [line + newline for line in render_entry(key, value)] + comments
    head = "".join(line for lines in blocks.values() for line in lines)
    before, after = parse(document.head), parse(head)
    for key in {*before, *after} - {*changes}:
        if before.get(key) != after.get(key):
            raise MalformedMemory(f"{key} depends on what would be changed; edit the file by hand")
    return text[: document.start] + head + text[document.start + len(document.head) :]


def replace_content(text: str, content: str) -> str:
    """Return a file with another content below its frontmatter."""
    head = text[: split(text).body]
    newline = "\r\n" if "\r\n" in head else "\n"
    return head + f"\n{content}\n".replace("\n", newline)


def _blocks(head: str) -> dict[str, list[str]]:
    """Return the lines of each top-level entry by its key, in order."""
    blocks: dict[str, list[str]] = {"": []}
    key = ""
    for line in head.splitlines(keepends=True):
        if found := _TOP_KEY.match(line):
            key = found[1]
        blocks.setdefault(key, []).append(line)
    return blocks
