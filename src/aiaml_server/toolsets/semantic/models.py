"""Values: a memory as stored, a memory to be stored, filters, and their validation."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from aiaml_server.timestamps import (
    EPOCH,
    format_timestamp,
    now_micros,
    parse_timestamp,
    to_local,
    to_utc,
)
from aiaml_server.toolsets.semantic.errors import CorruptDatabase, InvalidInput

PRIORITIES = ("CORE", "HIGH", "NORMAL", "LOW")
SOURCES = ("manual", "auto_decision", "auto_error", "session_end", "import")
SCOPES = ("project", "global")
UNREVIEWED = "unreviewed"
"""The tag of what a hook stored by itself, until somebody gives the memory other tags."""

MAX_CONTENT = 50_000  # characters
MAX_TAGS = 32
MAX_LINE = 100  # characters of a tag or a category
MAX_CONTEXT = 500  # characters
MAX_CONTEXTS = 20
MAX_HITS = 50
MAX_LISTED = 200

_PRIORITY_RANK = "CASE priority WHEN 'CORE' THEN 4 WHEN 'HIGH' THEN 3 WHEN 'LOW' THEN 1 ELSE 2 END"
_CHOICES = {"priority": PRIORITIES, "source": SOURCES}
_HAS_TAG = """
EXISTS (
    SELECT 1 FROM json_each(CASE WHEN json_valid(tags) THEN tags ELSE '[]' END)
    WHERE normalize_tag(value) = :tag{}
)
"""
SORT_KEYS = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "priority": _PRIORITY_RANK,
    "access_count": "coalesce(access_count, 0)",
}
"""The SQL expression of each sort order; the highest comes first."""


@dataclass(frozen=True)
class Memory:
    """A memory as stored.

    Attributes:
        id: its database and its number there, `project:12`.
        content: the text.
        content_hash: its SHA-256.
        priority: one of `PRIORITIES`.
        category: a word for its kind, or None.
        tags: as given.
        project_id: the project it belongs to; None for global memories.
        source: one of `SOURCES`.
        created_at, updated_at: ISO 8601 in UTC.
        embedding_model, embedding_model_version, embedding_dimension: what made its vectors; None
            while it has none.
        access_count: how often it was used.
        last_accessed_at: when it was last used, or None.
        usage_contexts: what for, the latest ones.
        path: the file that it was imported from, or None.
    """

    id: str
    content: str
    content_hash: str
    priority: str
    category: str | None
    tags: tuple[str, ...]
    project_id: str | None
    source: str
    created_at: str
    updated_at: str
    embedding_model: str | None
    embedding_model_version: str | None
    embedding_dimension: int | None
    access_count: int
    last_accessed_at: str | None
    usage_contexts: tuple[str, ...]
    path: str | None

    @property
    def scope(self) -> str:
        """The database it is in."""
        return self.id.partition(":")[0]

    @property
    def number(self) -> int:
        """Its number there."""
        return int(self.id.partition(":")[2])

    @property
    def is_reviewed(self) -> bool:
        """Whether a person or an agent chose its tags; a hook tags what it stores `unreviewed`."""
        return UNREVIEWED not in self.tags

    @property
    def date(self) -> str:
        """The day on which it was created, in this machine's time zone, as filters read dates."""
        return local_time(self.created_at).date().isoformat()


COLUMNS = ", ".join(f"memories.{each.name}" for each in fields(Memory))
"""What `from_row` reads, in order."""


def from_row(scope: str, row: Sequence[Any]) -> Memory:
    """Return the memory in a row of `COLUMNS`.

    Raises:
        CorruptDatabase: a value has the wrong type.
    """
    values = dict(zip((each.name for each in fields(Memory)), row, strict=True))
    name = f"{scope}:{values['id']}"
    if any(isinstance(value, bytes | float) for value in row):
        raise CorruptDatabase(f"{name} is damaged: a value has the wrong type")
    for column in ("tags", "usage_contexts"):
        values[column] = parse_json_list(values[column])
    for column in ("created_at", "updated_at", "last_accessed_at"):
        values[column] = to_iso(values[column])
    values["id"] = name
    values["access_count"] = values["access_count"] or 0
    values["embedding_model"] = values["embedding_model"] or None
    if values["priority"] not in PRIORITIES:
        values["priority"] = "NORMAL"
    return Memory(**values)


def parse_json_list(value: str | None) -> tuple[str, ...]:
    """Return the texts of a JSON list in a column; none if it is not a list."""
    try:
        found = json.loads(value or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def to_json(value: Any) -> str:
    """Return a JSON value as a column holds it."""
    return json.dumps(value, ensure_ascii=False)


# --- hashes and times -----------------------------------------------------------------------------


def sha256_hex(content: str) -> str:
    """Return a text's SHA-256."""
    return hashlib.sha256(content.encode()).hexdigest()


def normalized_hash(content: str) -> str:
    """Return a hash that is equal for texts that differ in case and white space only."""
    text = unicodedata.normalize("NFC", content).lower()
    return sha256_hex(" ".join(text.split()))


def to_sql_timestamp(micros: int) -> str:
    """Return a time in microseconds since 1970 as UTC text that sorts by time."""
    return format_timestamp(micros).replace("T", " ").removesuffix("+00:00")


def sql_now() -> str:
    """Return the present time as the databases hold it."""
    return to_sql_timestamp(now_micros())


def iso_to_sql(text: str) -> str | None:
    """Return the time of an ISO 8601 text as the databases hold it; None if it is not a time."""
    micros = parse_timestamp(text)
    return None if micros is None or to_utc(micros) is None else to_sql_timestamp(micros)


def local_time(created_at: str) -> datetime:
    """Return a time in this machine's time zone; in UTC if the system's calendar has no such time.

    What cannot be read is 1970.
    """
    micros = parse_timestamp(created_at) or 0
    return to_local(micros) or to_utc(micros) or EPOCH


def to_iso(value: str | None) -> str | None:
    """Return a time of a database as ISO 8601."""
    return f"{value.replace(' ', 'T')}Z" if value else None


# --- validation -----------------------------------------------------------------------------------


class NewMemory(NamedTuple):
    """What is to be stored; None and empty values mean the default.

    Attributes:
        created_at: as the databases hold it.
        import_key: identifies an imported memory, so that it is imported once.
        extra: a JSON object of unknown keys, for the export.
    """

    content: str
    tags: Sequence[str] = ()
    priority: str | None = None
    category: str | None = None
    source: str = "manual"
    scope: str | None = None
    path: str | None = None
    created_at: str | None = None
    import_key: str | None = None
    extra: str | None = None

    def validated(self) -> NewMemory:
        """Return it in its stored form.

        Raises:
            InvalidInput: a field is not valid.
        """
        return self._replace(
            content=check_content(self.content),
            tags=check_tags(self.tags),
            priority=self.priority and check_choice("priority", self.priority, PRIORITIES),
            category=None if self.category is None else check_line("category", self.category),
            source=check_choice("source", self.source, SOURCES),
        )


def check_content(content: str, field: str = "content") -> str:
    """Return the text unchanged; an error names the field.

    Raises:
        InvalidInput: it is empty, too long, or not valid Unicode.
    """
    if not any(each.isprintable() and each != " " for each in content):
        raise InvalidInput(f"{field}: must have a visible character")
    if len(content) > MAX_CONTENT:
        raise InvalidInput(
            f"{field}: has {len(content):,} characters; the limit is {MAX_CONTENT:,}",
            "Store small pieces, one fact each.",
        )
    if re.search("[\0\ud800-\udfff]", content):
        raise InvalidInput(f"{field}: holds U+0000 or half a surrogate pair")
    return content


def check_line(field: str, value: str, longest: int = MAX_LINE) -> str:
    """Return a text of one line, stripped.

    Raises:
        InvalidInput: it is empty, too long, or has several lines.
    """
    text = value.strip()
    if not text or len(text) > longest or re.search("[\x00-\x1f\x7f\ud800-\udfff]", text):
        raise InvalidInput(f"{field}: must be one line of at most {longest} characters")
    return text


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags without repetitions, whatever their case.

    Raises:
        InvalidInput: a tag is not valid, or there are too many.
    """
    unique = merge_tags([check_line("tags", tag) for tag in tags])
    if len(unique) > MAX_TAGS:
        raise InvalidInput(f"tags: there are {len(unique)}; the limit is {MAX_TAGS}")
    return unique


def merge_tags(*groups: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of several memories, each once, whatever its case."""
    tags: dict[str, str] = {}
    for tag in chain(*groups):
        tags.setdefault(normalize_tag(tag), tag)
    return tuple(tags.values())


def normalize_tag(tag: object) -> str:
    """Return a tag as it is compared: without regard to case and Unicode forms."""
    return unicodedata.normalize("NFKC", str(tag).casefold())


def check_choice(field: str, value: str, choices: Iterable[str]) -> str:
    """Return one of the choices, given in any case.

    Raises:
        InvalidInput: it is none of them.
    """
    for choice in choices:
        if choice.lower() == value.strip().lower():
            return choice
    raise InvalidInput(f"{field}: must be one of {', '.join(choices)}")


def check_cursor(cursor: str | None) -> int:
    """Return the position at which a page begins.

    Raises:
        InvalidInput: it is not a `next_cursor`.
    """
    if cursor and not re.fullmatch("[0-9]{1,9}", cursor):
        raise InvalidInput("cursor: must be the next_cursor of an earlier answer")
    return int(cursor or 0)


def check_limit(limit: int, most: int) -> int:
    """Return a limit.

    Raises:
        InvalidInput: it is out of range.
    """
    if not 1 <= limit <= most:
        raise InvalidInput(f"limit: must be a whole number from 1 to {most}")
    return limit


def check_changes(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that new values of fields change; None changes nothing.

    Raises:
        InvalidInput: a value is not valid.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    new = NewMemory(**{"content": "unchanged", **given, "category": given.get("category") or None})
    values = new.validated()._asdict()
    values["tags"] = to_json(values["tags"])
    return {name: values[name] for name in given}


# --- filters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filters:
    """What memories must match; None or nothing matches all.

    Attributes:
        tags: all of these, in any case.
        priority, category, source, project_id, scope: exactly this one.
        since, until: created in this period, as ISO 8601. A date is meant whole, in this
            machine's time zone.
    """

    tags: Sequence[str] = ()
    priority: str | None = None
    category: str | None = None
    source: str | None = None
    project_id: str | None = None
    scope: str | None = None
    since: str | None = None
    until: str | None = None

    def where(self) -> tuple[str, dict[str, Any]]:
        """Return an SQL condition, empty for none, and its parameters.

        Raises:
            InvalidInput: a filter is not valid.
        """
        values: dict[str, Any] = {}
        for column in ("priority", "source", "category", "project_id"):
            value = getattr(self, column)
            if value is not None:
                choices = _CHOICES.get(column)
                name = f"filters.{column}"
                values[column] = check_choice(name, value, choices) if choices else value.strip()
        conditions = [f"{column} = :{column}" for column in values]
        for number, tag in enumerate(self.tags):
            conditions.append(_HAS_TAG.format(number))
            values[f"tag{number}"] = normalize_tag(tag.strip())
        if self.since is not None:
            conditions.append("created_at >= :since")
            values["since"] = _boundary("from", self.since, "00:00")
        if self.until is not None:
            conditions.append("created_at <= :until")
            values["until"] = _boundary("to", self.until, "23:59:59.999999")
        if values.get("since", "") > values.get("until", "~"):
            raise InvalidInput("filters.date_range: from is later than to")
        return " AND ".join(conditions), values

    def includes(self, scope: str) -> bool:
        """Return whether a database may hold matching memories.

        Raises:
            InvalidInput: the filter `scope` is not valid.
        """
        return self.scope is None or check_choice("filters.scope", self.scope, SCOPES) == scope


def _boundary(field: str, text: str, time_of_day: str) -> str:
    """Return a time as the database holds it; a date alone gets the time of day."""
    micros = parse_timestamp(f"{text.strip()}T{time_of_day}") or parse_timestamp(text)
    if micros is None:
        raise InvalidInput(
            f"filters.date_range: {field} must be a date or time in ISO 8601, such as 2026-11-22"
        )
    return to_sql_timestamp(micros)
