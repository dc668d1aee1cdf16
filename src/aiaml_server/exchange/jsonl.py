"""JSON Lines: our own, one memory a line, and those of the official MCP memory server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidInput, os_reason
from aiaml_server.exchange.found import Kept, Note, Skip, printable
from aiaml_server.exchange.notes import words
from aiaml_server.exchange.walk import first_time, place
from aiaml_server.format.memory import Memory

MAX_PARTS = 2_000_000  # objects and lists in one JSON text, each some hundred bytes of memory
MAX_COMMAS = 10_000_000
MAX_LINE = 32 * 1024 * 1024  # bytes; the largest file of a memory, with each byte escaped


class Record(NamedTuple):
    """One line's object, and where it stands."""

    place: str
    value: Mapping[str, Any]


def records(path: Path) -> Iterator[Record | Skip]:
    """Yield the object on each line of a file; any other line is skipped with its number."""
    where = place(path, path)
    if not path.is_file():
        yield Skip(where, "it is not a regular file")
        return
    try:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                yield _record(f"{where}:{number}", line)
    except OSError as error:
        yield Skip(where, f"it cannot be read: {os_reason(error)}")


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while line := stream.readline(MAX_LINE + 1):
            yield line.removeprefix(b"\xef\xbb\xbf")
            while len(line) > MAX_LINE and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE + 1) or b"\n"  # the rest of it


def parsed(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is none.
        InvalidInput: it has so many parts that they would fill the memory.
    """
    if data.count(b"{") + data.count(b"[") > MAX_PARTS or data.count(b",") > MAX_COMMAS:
        raise InvalidInput(
            "import",
            f"has more than {MAX_PARTS:,} objects and lists, or {MAX_COMMAS:,} values; split it,"
            " or put each record on a line of its own, in a file that ends with .jsonl",
        )
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError("it is no JSON") from error


def _record(where: str, line: bytes) -> Record | Skip:
    if len(line) > MAX_LINE:
        return Skip(where, f"the line is longer than {MAX_LINE // 1024 // 1024} MiB")
    try:
        value = parsed(line)
    except InvalidInput as error:
        return Skip(where, str(error).replace("import", "the line", 1))
    except ValueError:
        return Skip(where, "the line is no JSON")
    if not isinstance(value, dict):
        return Skip(where, "the line is no JSON object")
    return Record(where, value)


# --- our own ----------------------------------------------------------------------------------


def memories_in(path: Path) -> Iterator[Kept | Skip]:
    """Read our own JSON Lines, as `aiaml export` writes them."""
    for record in records(path):
        yield record if isinstance(record, Skip) else _kept(record)


def _kept(record: Record) -> Kept | Skip:
    values = {"extra": [], **record.value}
    for name in Memory.__dataclass_fields__:
        value = values.get(name)
        if name in ("topics", "extra"):
            if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
                return Skip(record.place, f"{name!r} is missing, or no list of texts")
            values[name] = tuple(value)
        elif not isinstance(value, str):
            return Skip(record.place, f"{name!r} is missing, or no text")
    return Kept(
        record.place, Memory(**{name: values[name] for name in Memory.__dataclass_fields__})
    )


# --- the MCP memory server's ------------------------------------------------------------------


class _Entity:
    """An entity with what all its lines say, and the relations that are told with it."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        self.name = text_of(first["name"])
        self.type = text_of(first.get("entityType"))
        self.created = text_of(first.get("createdAt") or first.get("timestamp"))
        self.observations: dict[str, None] = {}
        self.relations: dict[str, None] = {}

    @property
    def content(self) -> str:
        """The entity as markdown."""
        title = f"# {' '.join(self.name.split())}" + (f" ({self.type})" if self.type else "")
        parts = [title, _bullets(self.observations), _bullets(self.relations)]
        return "\n\n".join(part for part in parts if part)


def entities_in(path: Path) -> Iterator[Note | Skip]:
    """Read the knowledge graph of the official MCP memory server: an entity becomes a note.

    A relation is told with the entity that it goes out from, or else with the one it leads to.
    """
    entities: dict[str, _Entity] = {}
    relations: list[Record] = []
    for record in records(path):
        if isinstance(record, Skip):
            yield record
        elif record.value.get("type") == "relation":
            relations.append(record)
        elif record.value.get("type") == "entity" and text_of(record.value.get("name")):
            entity = entities.setdefault(text_of(record.value["name"]), _Entity(record.value))
            for each in list_of(record.value.get("observations")):
                # Some variants of the server keep an object with a time for each.
                if text := text_of(each.get("content") if isinstance(each, dict) else each):
                    entity.observations[text] = None
        else:
            yield Skip(record.place, "it is neither an entity with a name nor a relation")
    yield from filter(None, (_relate(entities, relation) for relation in relations))
    for entity in entities.values():
        yield Note(
            kind="mcp-memory",
            agent="mcp-memory",
            place=printable(f"{place(path, path)}#{entity.name[:200]}"),
            content=entity.content,
            topics=(*words(entity.type), *words(entity.name)),
            timestamp=first_time([entity.created], path),
        )


def _relate(entities: Mapping[str, _Entity], record: Record) -> Skip | None:
    source, verb, target = (
        text_of(record.value.get(key)) for key in ("from", "relationType", "to")
    )
    if not (source and verb and target):
        return Skip(record.place, "the relation lacks 'from', 'relationType' or 'to'")
    if source in entities:
        entities[source].relations[f"{verb} {target}"] = None
    elif target in entities:
        entities[target].relations[f"{source} {verb} {target}"] = None
    else:
        return Skip(record.place, f"it relates {source!r} to {target!r}, and neither is there")
    return None


def text_of(value: object) -> str:
    """Return a text without the blanks around it; empty for any other value."""
    return value.strip() if isinstance(value, str) else ""


def list_of(value: object) -> list[Any]:
    """Return a list as it is; an empty one for any other value."""
    return value if isinstance(value, list) else []


def _bullets(texts: Mapping[str, None]) -> str:
    return "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
