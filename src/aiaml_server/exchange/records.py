"""Records of other programs, in JSON or JSON Lines: mem0's, and any others by a mapping."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidInput, MalformedFile, os_reason
from aiaml_server.exchange.found import Note, Skip, printable
from aiaml_server.exchange.jsonl import Record, list_of, parsed, records
from aiaml_server.exchange.notes import kept_lines, one_line, words
from aiaml_server.exchange.walk import first_time, place
from aiaml_server.files import read_regular

MAX_DOCUMENT = 512 * 1024 * 1024  # bytes of one JSON document
_LOOKED_AT = 100  # records, to tell their fields
_LISTS = ("results", "memories", "items", "data", "records", "notes", "entries")
_NOTHING: tuple[object, ...] = (None, "", [], {})


class Fields(NamedTuple):
    """Which field of a record says what: a name, a way of names with dots, several with `+`."""

    content: str = ""
    title: str = ""
    topics: str = ""
    timestamp: str = ""
    agent: str = ""
    user: str = ""

    def __str__(self) -> str:
        """Return it as a person would give it: `content=text,topics=tags`."""
        return ",".join(f"{name}={way}" for name, way in self._asdict().items() if way)

    @classmethod
    def parse(cls, text: str) -> Fields:
        """Read what a person gave.

        Raises:
            InvalidInput: it names something else, or no content.
        """
        given: dict[str, str] = {}
        for pair in filter(None, text.split(",")):
            name, _, way = (each.strip() for each in pair.partition("="))
            if name not in cls._fields or not way:
                known = ", ".join(cls._fields)
                raise InvalidInput("map", f"{pair!r} must be NAME=FIELD; the names are {known}")
            given[name] = way
        if "content" not in given:
            raise InvalidInput("map", "must say which field is the content: content=FIELD")
        return cls(**given)


_USUAL = Fields(
    "content memory text body note message observation fact summary value description",
    "title name subject",
    "topics tags categories keywords labels category type",
    "timestamp created_at createdAt created date time updated_at updatedAt",
)
"""The fields that are taken for each, the first that a record has."""


def document(path: Path) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: it is none, is too large, or cannot be read; the message says which.
        InvalidInput: it has too many parts.
    """
    try:
        return parsed(read_regular(os.fspath(path), MAX_DOCUMENT))
    except MalformedFile as error:
        raise ValueError(str(error)) from error
    except OSError as error:
        raise ValueError(f"it cannot be read: {os_reason(error)}") from error


def records_in(path: Path) -> Iterator[Record | Skip]:
    """Yield the objects of a file: one a line, those of a list, or of the list in an object."""
    if path.suffix.lower() != ".json":
        yield from records(path)
        return
    where = place(path, path)
    try:
        value = document(path)
    except ValueError as error:
        yield Skip(where, str(error))
        return
    if isinstance(value, dict):
        lists = (value[name] for name in _LISTS if isinstance(value.get(name), list))
        value = _resolved(value) if "export_meta" in value else next(lists, [value])
    for number, each in enumerate(value if isinstance(value, list) else [value], 1):
        if isinstance(each, dict):
            yield Record(f"{where}:{number}", each)
        else:
            yield Skip(f"{where}:{number}", "it is no JSON object")


def _resolved(value: Mapping[str, Any]) -> list[object]:
    """Return the memories of OpenMemory's export, with names for the ids of apps and categories."""
    names = {
        each["id"]: each.get("name")
        for kind in ("apps", "categories")
        for each in list_of(value.get(kind))
        if isinstance(each, dict) and isinstance(each.get("id"), str)
    }
    return [
        {
            **{name: held for name, held in each.items() if name not in ("app_id", "category_ids")},
            "app": names.get(str(each.get("app_id"))),
            "categories": [
                names[str(key)] for key in list_of(each.get("category_ids")) if str(key) in names
            ],
        }
        if isinstance(each, dict)
        else each
        for each in list_of(value.get("memories"))
    ]


def is_mem0(path: Path) -> bool:
    """Say whether a file holds memories as mem0 or OpenMemory give them out."""
    found = [each.value for each in islice(records_in(path), 5) if isinstance(each, Record)]
    return any(
        "id" in each
        and (isinstance(each.get("memory"), str) or {"content", "state", "app"} <= each.keys())
        for each in found
    )


def fields_of(path: Path, given: Fields | None = None) -> Fields:
    """Return which fields are taken: those that a person gave, or the usual ones that are there.

    Raises:
        InvalidInput: a field that was given is nowhere, or no field is known to hold the content.
    """
    found = [
        each.value for each in islice(records_in(path), _LOOKED_AT) if isinstance(each, Record)
    ]
    there = ", ".join(dict.fromkeys(name[:40] for each in found for name in each)) or "none"
    if given:
        for way in (each for field in given if field for each in field.split("+")):
            if not any(_at(each, way) not in _NOTHING for each in found):
                raise InvalidInput("map", f"no record has a field {way!r}; there are: {there}")
        return given
    content = _first(_USUAL.content, found, (str,))
    if not content:
        reason = (
            f"no field is known to hold the content; `--map content=FIELD` says it, of: {there}"
        )
        raise InvalidInput("map", reason)
    return Fields(
        content,
        _first(_USUAL.title, found, (str,)),
        _first(_USUAL.topics, found, (str, list)),
        _first(_USUAL.timestamp, found, (str, int, float)),
    )


def _first(usual: str, found: Iterable[Mapping[str, Any]], types: tuple[type, ...]) -> str:
    ways = (way for way in usual.split() for each in found if isinstance(each.get(way), types))
    return next(ways, "")


def notes_of(path: Path, kind: str, fields: Fields) -> Iterator[Note | Skip]:
    """Read the records of a file."""
    for record in records_in(path):
        yield record if isinstance(record, Skip) else note_of(record, path, kind, fields)


def note_of(record: Record, path: Path, kind: str, fields: Fields) -> Note | Skip:
    """Make a note of a record; what no field says stays as properties."""
    value = record.value
    text = "\n\n".join(_texts(value, fields.content)).strip()
    if value.get("state") == "deleted":
        return Skip(record.place, "it was deleted there")
    if not text:
        return Skip(record.place, f"its {fields.content!r} is missing, or no text")
    title = one_line(" ".join(_texts(value, fields.title)))
    told = " ".join(_texts(value, fields.topics))
    taken = {way for each in fields for way in each.split("+") if way and "." not in way}
    extra, lost = kept_lines({key: held for key, held in value.items() if key not in taken})
    identity = value.get("id", value.get("uuid"))
    where = record.place.rpartition(":")[0]
    named = f"{where}#{identity}" if isinstance(identity, (str, int)) else record.place
    return Note(
        kind=kind,
        agent=one_line(" ".join(_texts(value, fields.agent))) or kind,
        place=printable(named[:400]),
        content=f"# {title}\n\n{text}" if title and title not in text else text,
        topics=(*(told.split() or words(title) or words(text[:60])),),
        timestamp=first_time(_texts(value, fields.timestamp), path),
        extra=extra,
        said=text,
        user=one_line(" ".join(_texts(value, fields.user))),
        lost=lost,
    )


def _at(value: object, way: str) -> object:
    """Return what stands at the end of a way of names: `metadata.category`."""
    if isinstance(value, dict) and way in value:
        return value[way]
    for name in way.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _texts(value: Mapping[str, Any], ways: str) -> list[str]:
    """Return the texts at the ends of ways, which may be lists and numbers, or have names."""
    found: list[str] = []
    for way in filter(None, ways.split("+")):
        held = _at(value, way)
        for each in held if isinstance(held, list) else [held]:
            named = each.get("name") if isinstance(each, dict) else each
            if isinstance(named, (str, int, float)) and not isinstance(named, bool):
                found.append(str(named))
    return found
