"""Items that an importer finds: future memories, and what it skips."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.format.frontmatter import format_scalar
from aiaml_server.format.memory import (
    MAX_TOPIC,
    MAX_TOPICS,
    OURS,
    Memory,
    format,  # noqa: A004 (the word for it)
    parse,
)

SOURCE = "imported-from"
DIGEST = "imported-digest"
RUN = "imported-at"
_RESERVED = {*OURS, RUN, "content", "extra", "tags"}


class Item(NamedTuple):
    """Something that becomes a memory.

    Attributes:
        place: where it was found, such as `obsidian:vault/Bread.md`. It stands in the memory's
            frontmatter, and the item is known by it again.
        memory: the memory.
        has_id: whether it is a memory of ours, which keeps its id and is known by it again.
        remark: what a person should know about it.
    """

    place: str
    memory: Memory
    has_id: bool = False
    remark: str = ""


class Skipped(NamedTuple):
    """Something that does not become a memory, and why."""

    place: str
    reason: str


def is_own_id(text: str) -> bool:
    """Return whether an id is one of ours. Any other must not become part of a file's name."""
    return bool(re.fullmatch("[0-9a-f]{8}", text))


def printable(name: str) -> str:
    """Return a name as text in one Unicode form, which can stand in double quotes."""
    text = name.encode("utf-8", "replace").decode().translate({34: "'", 92: "/"})
    return " ".join(unicodedata.normalize("NFC", text).split())


def digest(text: str) -> str:
    """Return a short hash that identifies a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def topics_of(texts: Iterable[str], otherwise: str) -> list[str]:
    """Return the words of texts as topics of a memory; `otherwise` if there are none."""
    words = re.split(r"[\s,]+", printable(" ".join(texts)))
    topics = dict.fromkeys(word.strip("#[]\"'") for word in words)
    fit = [topic for topic in topics if 0 < len(topic) <= MAX_TOPIC and topic.isprintable()]
    return fit[:MAX_TOPICS] or [otherwise]


def words_of(text: str) -> list[str]:
    """Return the words of a name or a title in lower case, without numbers and single letters."""
    return [
        word for word in re.findall(r"[^\W_]{2,}", printable(text).lower()) if not word.isdigit()
    ]


def extra_lines(fields: Mapping[str, object], without: Collection[str] = ()) -> tuple[str, ...]:
    """Return other properties as lines of frontmatter: YAML whose values are JSON.

    A property that is called like a field of a memory gets `source-` before its name.

    Args:
        fields: the properties.
        without: names of those that are left out.
    """
    lines: list[str] = []
    for name, value in fields.items():
        if name not in without and value not in (None, "", [], {}):
            key = f"source-{name}" if name in _RESERVED else name
            lines.append(f"{format_scalar(key)}: {json.dumps(value)}")
    return tuple(lines)


def checked(item: Item) -> Item:
    """Return the item if its memory can be stored.

    Raises:
        MalformedFile: it would be another one when it is read again; its properties are too long.
    """
    if parse(format(item.memory)) != item.memory:
        raise MalformedFile(["it would not be the same when it is read again"])
    return item


def mark(memory: Memory, key: str) -> str:
    """Return the value of an import mark in the frontmatter; empty if there is none."""
    found = re.search(rf'^{key}: "(.*)"$', "\n".join(memory.extra), re.MULTILINE)
    return found[1] if found else ""


def with_marks(item: Item, run: str) -> Memory:
    """Return an item's memory with marks of its source and of the run of import."""
    marks = {DIGEST: digest(item.memory.content), RUN: run}
    if not item.has_id:
        marks[SOURCE] = item.place
    lines = [f'{key}: "{value}"' for key, value in marks.items()]
    bare = without(item.memory, marks)
    return bare._replace(extra=(*lines, *bare.extra))


def without_marks(memory: Memory) -> Memory:
    """Return a memory without the marks that are only valid on this computer."""
    return without(memory, (RUN,) if mark(memory, SOURCE) else (RUN, DIGEST))


def without(memory: Memory, keys: Iterable[str]) -> Memory:
    """Return a memory without lines of its frontmatter that begin with these keys."""
    extra = (line for line in memory.extra if line.partition(": ")[0] not in keys)
    return memory._replace(extra=tuple(extra))
