"""One entry, its rules, and how it is found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from aiaml_server.errors import InvalidInput

FILE = ".aiaml-compartments.json"
"""The file's name, where none is given."""

LIMIT = 10_000
"""Characters that each compartment holds, where nothing else is said."""

COMPARTMENTS = ("run", "session", "plan")

LOWEST, HIGHEST, USUAL = 1, 10, 5
MOST_TAGS = 100

MOST_LIMIT = 10**12 - 1
MOST_NAME = 200  # characters of a session's name

ARGUMENTS = {
    "path": "the path of a file",
    "session": f"a name of at most {MOST_NAME} printable characters",
    "plan_scope": '"session" or "run"',
    "limit": 'a number of characters, from 1, or one for some of them, such as {"run": 2000}',
    "changed": "a function, or nothing",
}
"""For each argument of `Compartments`, what it must be."""

RULES = {
    "compartment": '"run", "session" or "plan"',
    "content": "text that says something",
    "id": "the id of an entry, as text",
    "category": "one word or a few, as text",
    "tags": f'a list of at most {MOST_TAGS} words, such as ["invoice", "euro"]',
    "metadata": 'an object of texts, such as {"source": "mail"}',
    "priority": f"a whole number from {LOWEST} to {HIGHEST}",
    "query": "words to look for, as text",
    "limit": "a whole number from 1",
    "offset": "a whole number from 0",
}
"""For each parameter, what it must be."""


def refuse(name: str) -> InvalidInput:
    """Return the error for a parameter that is not what it must be."""
    return InvalidInput(name, f"must be {RULES[name]}")


def is_limit(value: object) -> bool:
    """Say whether it is a number of characters."""
    return type(value) is int and 1 <= value <= MOST_LIMIT


def is_session(value: object) -> bool:
    """Say whether it is a session's name."""
    return isinstance(value, str) and 1 <= len(value) <= MOST_NAME and value.isprintable()


def is_scope(value: object) -> bool:
    """Say whether a plan can be of it."""
    return value in ("session", "run")


@dataclass(frozen=True)
class Entry:
    """One thing remembered.

    Attributes:
        id: unique in the file.
        content: what is remembered.
        category: what kind of thing it is; empty for none.
        tags: words to find it by.
        metadata: anything else, as texts.
        created_at: ISO 8601 in UTC.
        updated_at: the same.
        access_count: how often it was returned.
        priority: 1 to 10; higher is more important.
        extra: what other programs have put beside these.
    """

    id: str
    content: str
    category: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""
    access_count: int = 0
    priority: int = USUAL
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def size(self) -> int:
        """Characters that count against the limit."""
        texts = (self.content, self.category, *self.tags, *self.metadata, *self.metadata.values())
        return sum(map(len, texts))

    @cached_property
    def _searched(self) -> str:
        texts = (self.content, self.category, *self.tags, *self.metadata, *self.metadata.values())
        return "\n".join(texts).lower()

    def occurrences(self, words: Sequence[str]) -> int:
        """Count how often lower-case words occur; 0 unless every one does."""
        counts = [self._searched.count(word) for word in words]
        return sum(counts) if all(counts) else 0

    def changed(self, **values: Any) -> Entry:
        """Return it with other values; those that are None stay."""
        return replace(self, **{name: value for name, value in values.items() if value is not None})

    def as_json(self) -> dict[str, Any]:
        """Return it as the file and agents have it; what is empty is left out."""
        values = {**vars(self), "tags": list(self.tags), "metadata": dict(self.metadata)}
        return {name: values[name] for name in _NAMES if values[name] or name not in _OPTIONAL}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Entry:
        """Read what `as_json` wrote.

        Raises:
            ValueError: it is no entry.
        """
        given = {name: part for name, part in value.items() if name in _NAMES}
        extra = {name: part for name, part in value.items() if name not in _NAMES}
        entry = cls(**{**given, "tags": tuple(given.get("tags", ())), "extra": extra})
        texts = (entry.id, entry.content, entry.category, entry.created_at, entry.updated_at)
        if not all(isinstance(each, str) for each in (*texts, *entry.tags)):
            raise ValueError("an entry's texts must be texts")
        if not isinstance(entry.metadata, dict) or not all(
            isinstance(each, str) for each in (*entry.metadata, *entry.metadata.values())
        ):
            raise ValueError("an entry's metadata must be texts")
        if type(entry.access_count) is not int or type(entry.priority) is not int:
            raise ValueError("an entry's numbers must be numbers")
        return entry


_NAMES = [each.name for each in fields(Entry) if each.name != "extra"]
_OPTIONAL = ("category", "tags", "metadata")


def check_values(
    category: str | None,
    tags: Sequence[str] | None,
    metadata: Mapping[str, str] | None,
    priority: int | None,
) -> dict[str, Any]:
    """Return what may be stored.

    Raises:
        InvalidInput: a value is not what it must be.
    """
    if category is not None and not isinstance(category, str):
        raise refuse("category")
    if tags is not None:
        if isinstance(tags, str) or not all(isinstance(each, str) for each in tags):
            raise refuse("tags")
        tags = tuple(dict.fromkeys(each.strip() for each in tags if each.strip()))
        if len(tags) > MOST_TAGS:
            raise refuse("tags")
    if metadata is not None and not (
        isinstance(metadata, Mapping)
        and all(isinstance(each, str) for pair in metadata.items() for each in pair)
    ):
        raise refuse("metadata")
    if priority is not None and not (type(priority) is int and LOWEST <= priority <= HIGHEST):
        raise refuse("priority")
    return {
        "category": None if category is None else category.strip(),
        "tags": tags,
        "metadata": None if metadata is None else dict(metadata),
        "priority": priority,
    }


def fitting(
    entries: Iterable[Entry],
    id: str | None,  # noqa: A002 (the specification's word)
    category: str | None,
    tags: Sequence[str] | None,
) -> list[Entry]:
    """Return the entries that have this id, this category and all of these tags, where given."""
    return [
        each
        for each in entries
        if (not id or each.id == id)
        and (not category or each.category == category)
        and (not tags or set(tags) <= set(each.tags))
    ]
