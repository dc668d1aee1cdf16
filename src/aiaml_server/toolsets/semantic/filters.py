"""Which memories are meant: filters as SQL, and the orders in which they are listed."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiaml_server.timestamps import parse_range, to_utc
from aiaml_server.toolsets.semantic import memory
from aiaml_server.toolsets.semantic.failures import InvalidInput

_RANK = "CASE priority WHEN 'CORE' THEN 4 WHEN 'HIGH' THEN 3 WHEN 'LOW' THEN 1 ELSE 2 END"
_LONGEST_NAME = 255  # characters that a directory's name may have, by which a project is called
KEYS = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "priority": _RANK,
    "access_count": "coalesce(access_count, 0)",
}
"""What each order of lists is made by."""
_EQUAL: Sequence[tuple[str, Callable[..., str], Any]] = (
    ("priority", memory.check_choice, memory.PRIORITIES),
    ("source", memory.check_choice, memory.SOURCES),
    ("category", memory.check_line, _LONGEST_NAME),
    ("project_id", memory.check_line, _LONGEST_NAME),
)
"""The columns that are as a filter of their name says: each with what checks that, and by what."""


@dataclass(frozen=True)
class Filters:
    """What a memory must be like; None or nothing for anything.

    Attributes:
        tags: it has all of these, whatever their case.
        priority, category, source, project_id: it has this one.
        scope: it is in this database.
        since, until: it was created then, as ISO 8601; a date alone is the whole day, and so for
            a week, a month and a year.
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
        """Return a condition on the table, empty for none, and its values.

        Raises:
            InvalidInput: one of them is not what it must be.
        """
        conditions: list[str] = []
        values: dict[str, Any] = {}
        if self.scope is not None:
            memory.check_choice("filters.scope", self.scope, memory.SCOPES)
        for number, tag in enumerate(self.tags):
            usable = "octet_length(tags) <= 16384 AND json_valid(tags)"
            held = f"json_each(CASE WHEN {usable} THEN tags ELSE '[]' END)"
            key = "tag_key(CAST(coalesce(value, '') AS BLOB))"  # a tag may be no UTF-8
            name = f"tag{number}"
            conditions.append(f"EXISTS (SELECT 1 FROM {held} WHERE {key} = :{name})")
            values[name] = memory.tag_key(memory.check_line("filters.tags", tag))
        for name, check, rule in _EQUAL:
            if (value := getattr(self, name)) is not None:
                conditions.append(f"{name} = :{name}")
                values[name] = check(f"filters.{name}", value, rule)
        if self.since is not None:
            conditions.append("created_at >= :since")
            values["since"] = _moment("from", self.since, 0)
        if self.until is not None:
            conditions.append("created_at <= :until")
            values["until"] = _moment("to", self.until, 1)
        if self.since and self.until and values["since"] > values["until"]:
            raise InvalidInput(
                "filters.date_range: from is later than to, so that nothing can lie between"
            )
        return " AND ".join(conditions), values

    def asked(self, sort: str) -> str:
        """Return what tells a list that is asked for in this way from others, for its cursors."""
        said = json.dumps([sort, *self.where(), (self.scope or "").strip().lower()])
        return memory.digest(said)[:16]

    def meant(self, scope: str) -> bool:
        """Say whether a database may hold what is meant."""
        return self.scope is None or self.scope.strip().lower() == scope


def _moment(field: str, text: str, end: int) -> str:
    meant = parse_range(text)
    if meant is None or to_utc(meant[end]) is None:
        raise InvalidInput(
            f"filters.date_range: {field} must be a date, week, month or time in ISO 8601, such as"
            " 2026-11-22"
        )
    return memory.kept(meant[end])


# --- pages ----------------------------------------------------------------------------------------


LISTED = (str | int, str, str, int)


def cursor_of(asked: str, last: Sequence[Any]) -> str:
    """Return what a next page begins behind, as opaque text."""
    data = json.dumps([asked, *last], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def behind(cursor: str, asked: str, kinds: Sequence[Any] = LISTED) -> list[Any]:
    """Return what `cursor_of` was given of the last one of the page before.

    Args:
        cursor: what was answered then.
        asked: what tells this question from others; it must be the same.
        kinds: the types of what was given; for lists the sort key, time, scope and number.

    Raises:
        InvalidInput: it is no cursor, or one of another question.
    """
    try:
        data = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        found = json.loads(data)
    except (ValueError, binascii.Error, RecursionError):
        found = None
    if not (
        isinstance(found, list)
        and len(found) == 1 + len(kinds)
        and all(isinstance(each, kind) for each, kind in zip(found, (str, *kinds), strict=True))
        and found[0] == asked
        and all(abs(each) < 1 << 62 for each in found if isinstance(each, int))
    ):
        raise InvalidInput(
            "cursor: must be the next_cursor of an earlier answer, with the same filters and order",
            "Give what was given for the first page, or leave cursor out to begin anew.",
        )
    return found[1:]
