"""Import and export JSON lines: one memory on each line, or the official memory server's file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from aiaml_server.errors import InvalidInput
from aiaml_server.exchange.items import (
    Item,
    Skipped,
    checked,
    digest,
    extra_lines,
    is_own_id,
    printable,
    topics_of,
    without_marks,
    words_of,
)
from aiaml_server.format.memory import Memory

_FIELDS = ("id", "timestamp", "agent", "user", "topics", "content", "extra", "tags")


def export_jsonl(memories: Iterable[Memory]) -> bytes:
    """Return each memory as a line of JSON, which `import_jsonl` takes back.

    Other lines of a memory's frontmatter are members of their own if their values are JSON; else
    they stand in the list `extra`, as those about an import always do.
    """
    lines = []
    for memory in map(without_marks, memories):
        marks = [line for line in memory.extra if line.startswith("imported-")]
        others = [line for line in memory.extra if line not in marks]
        flat = _members(others)
        if extra_lines(flat) != tuple(others):
            marks, flat = [*marks, *others], {}
        record = {**memory.fields(), **flat}
        if marks:
            record["extra"] = marks
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def _members(lines: Iterable[str]) -> dict[str, Any]:
    """Return lines of frontmatter as members of an object; none if a value is not JSON."""
    pairs = [line.partition(": ") for line in lines]
    with suppress(ValueError):
        return {key: json.loads(value) for key, _, value in pairs}
    return {}


def import_jsonl(data: bytes, where: str, user: str) -> Iterator[Item | Skipped]:
    """Yield a memory for each line of JSON; members that a memory does not have are kept.

    Args:
        data: the lines.
        where: what stands before their numbers.
        user: the person whom a memory is about that does not say it.
    """
    for place, record in _records(data, where):
        try:
            yield checked(_item(record, user))
        except Exception as error:  # noqa: BLE001 (a line that others wrote may hold anything)
            reason = f"it is not a memory: {error}" if record else "it is not a JSON object"
            yield Skipped(place, reason)


def import_mcp_memory(data: bytes, where: str, user: str) -> Iterator[Item | Skipped]:
    """Yield a memory for each entity of the official memory server's file, with its relations."""
    lines: dict[str, list[str]] = {}
    for place, record in _records(data, where):
        name = printable(str(record.get("name") or record.get("from") or ""))
        if not name:
            yield Skipped(place, "it is neither an entity nor a relation")
            continue
        texts = lines.setdefault(name, [])
        if "relationType" in record:
            texts.append(f"{record['relationType']} {record.get('to')}")
        else:
            texts += map(str, [record.get("entityType"), *(record.get("observations") or ())])
    for name, texts in lines.items():
        items = ["- " + text.replace("\n", "\n  ") for text in dict.fromkeys(texts)]
        content = "\n".join([f"# {name}", "", *items])
        topics = topics_of(words_of(f"{name} {texts[0]}"), "mcp-memory")
        place = f"mcp-memory:{where}#{name[:200]}"
        try:
            yield Item(place, Memory.new("mcp-memory", user, topics, content))
        except InvalidInput as error:
            yield Skipped(place, str(error))


def _records(data: bytes, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the place and the JSON object of each line; an empty one if it is not an object."""
    for number, line in enumerate(data.split(b"\n"), 1):
        record: Any = None
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
        if line.strip():
            yield f"{where}:{number}", record if isinstance(record, dict) else {}


def _item(record: Mapping[str, Any], user: str) -> Item:
    """Return the item of a record.

    Raises:
        Exception: it cannot be a memory.
    """
    own_id = str(record.get("id", ""))
    is_own = is_own_id(own_id)
    agent, about = record.get("agent") or "import", record.get("user") or user
    new = Memory.new(agent, about, ["any"], record.get("content", ""))
    topics = record.get("topics") or record.get("tags") or []
    topics = [topics] if isinstance(topics, str) else topics
    memory = new._replace(
        id=own_id if is_own else new.id,
        timestamp=str(record.get("timestamp") or new.timestamp),
        topics=tuple(topics if is_own else topics_of(topics, "import")),
        extra=(*record.get("extra", ()), *extra_lines(record, _FIELDS)),
    )
    return Item(f"jsonl:{printable(own_id) or digest(new.content)}", memory, is_own)
