"""One entry, its rules, and how it is found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from aiaml_server.errors import InvalidInput
from aiaml_server.timestamps import format_timestamp, now_micros, parse_timestamp, range_end

FILE = ".aiaml-compartments.json"
"""The file's name, where none is given."""

LIMIT = 10_000
"""Characters that each compartment holds, where nothing else is said."""

COMPARTMENTS = ("run", "session", "plan")
SCOPES = ("session", "run")  # that a plan can be of

LOWEST, HIGHEST, USUAL = 1, 10, 5
MOST_TAGS = 100
MOST_GIVEN = 1000  # tags, some of them twice, or pairs of metadata

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
    "metadata": f'an object of at most {MOST_GIVEN:,} texts, such as {{"source": "mail"}}',
    "priority": f"a whole number from {LOWEST} to {HIGHEST}",
    "expires": 'a time to come, such as "2027-01-31" or "2h" (m, h, d or w), as text',
    "query": "words to look for, as text",
    "access_count": "a whole number from 0",
    **dict.fromkeys(("created_at", "updated_at", "expires_at"), "a time in ISO 8601, as text"),
    "limit": "a whole number from 1",
    "offset": "a whole number from 0",
}
"""For each parameter, what it must be."""


_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"([0-9]{1,6}) ?([mhdw])")
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no text may hold: control characters, and halves of characters, which are no UTF-8."""

_COMMON = """
    a about all an and any are as at be been but by can did do does for from had has have he her his
    how i if in is it its me my not of on or our she so that the their there they this to was we
    were what when where which who why will with would you your
"""
COMMON = frozenset(_COMMON.split())
"""Words of a question that say nothing of what is looked for."""


def refuse(name: str) -> InvalidInput:
    """Return the error for a parameter that is not what it must be."""
    return InvalidInput(name, f"must be {RULES[name]}")


def is_limit(value: object) -> bool:
    """Say whether it is a number of characters."""
    return type(value) is int and 1 <= value <= MOST_LIMIT


def is_session(value: object) -> bool:
    """Say whether it is a session's name."""
    return isinstance(value, str) and 1 <= len(value) <= MOST_NAME and value.isprintable()


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
        expires_at: when it is forgotten, as `created_at`; empty for never.
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
    expires_at: str = ""
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

    def occurrences(self, words: Sequence[str]) -> list[int]:
        """Count how often each of some lower-case words occurs, also inside of others."""
        return [self._searched.count(word) for word in words]

    def has_expired(self, now: int) -> bool:
        """Say whether its time is over at a moment."""
        end = parse_timestamp(self.expires_at) if self.expires_at else None
        return end is not None and end <= now

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
        given = {name: _fit(part) for name, part in value.items() if name in _KNOWN}
        given["tags"] = tuple(given.get("tags", ()))
        if not value.keys() <= _KNOWN:
            given["extra"] = {name: part for name, part in value.items() if name not in _KNOWN}
        entry = cls(**given)
        times = (entry.created_at, entry.updated_at, entry.expires_at)
        texts = (entry.id, entry.content, entry.category, *times)
        if not all(isinstance(each, str) for each in (*texts, *entry.tags)):
            raise ValueError("an entry's texts must be texts")
        if not isinstance(entry.metadata, dict) or not all(
            isinstance(each, str) for each in (*entry.metadata, *entry.metadata.values())
        ):
            raise ValueError("an entry's metadata must be texts")
        if type(entry.access_count) is not int or type(entry.priority) is not int:
            raise ValueError("an entry's numbers must be numbers")
        if LOWEST <= entry.priority <= HIGHEST:
            return entry
        return entry.changed(priority=min(max(entry.priority, LOWEST), HIGHEST))


_NAMES = [each.name for each in fields(Entry) if each.name != "extra"]
_KNOWN = frozenset(_NAMES)
_OPTIONAL = ("category", "tags", "metadata", "expires_at")


def _fit(part: Any) -> Any:
    """Return a part of an entry with U+FFFD for what no text may hold, in whatever it is."""
    if isinstance(part, str):
        return part if part.isprintable() else _UNFIT.sub("\ufffd", part)
    if isinstance(part, list):
        return [_fit(each) for each in part]
    if isinstance(part, dict):
        return {_fit(name): _fit(each) for name, each in part.items()}
    return part


def check_text(name: str, value: object) -> str | None:
    """Return a text that may be stored, or asked for; None where none is given.

    Raises:
        InvalidInput: it is no text, or holds what none may.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise refuse(name)
    if found := _UNFIT.search(value):
        raise InvalidInput(name, f"holds U+{ord(found[0]):04X}, which no text may; take it out")
    return value


def check_expires(value: object) -> str | None:
    """Return the moment at which an entry expires, as it is stored; empty for never.

    Raises:
        InvalidInput: it is no time to come.
    """
    text = check_text("expires", value)
    if not text:
        return text
    now = now_micros()
    span = _SPAN.fullmatch(text)
    end = now + int(span[1]) * _SECONDS[span[2]] * 1_000_000 if span else range_end(text)
    if end is None or end <= now:
        raise refuse("expires")
    return format_timestamp(end)


def check_values(
    category: object = None,
    tags: object = None,
    metadata: object = None,
    priority: object = None,
) -> dict[str, Any]:
    """Return what may be stored, or asked for.

    Raises:
        InvalidInput: a value is not what it must be.
    """
    category = check_text("category", category)
    if tags is not None:
        if not isinstance(tags, (list, tuple, set, frozenset)) or len(tags) > MOST_GIVEN:
            raise refuse("tags")
        words = [check_text("tags", each) for each in tags]
        if None in words:
            raise refuse("tags")
        tags = tuple(dict.fromkeys(each.strip() for each in words if each and each.strip()))
        if len(tags) > MOST_TAGS:
            raise refuse("tags")
    if metadata is not None:
        if not isinstance(metadata, Mapping) or len(metadata) > MOST_GIVEN:
            raise refuse("metadata")
        for each in (part for pair in metadata.items() for part in pair):
            if check_text("metadata", each) is None:
                raise refuse("metadata")
        metadata = dict(metadata)
    if priority is not None and not (type(priority) is int and LOWEST <= priority <= HIGHEST):
        raise refuse("priority")
    return {
        "category": None if category is None else category.strip(),
        "tags": tags,
        "metadata": metadata,
        "priority": priority,
    }


def check_entry(value: Mapping[str, Any]) -> Entry:
    """Return the entry that `as_json` wrote, where it is one that could be saved.

    Raises:
        InvalidInput: a value is not what it must be.
        ValueError: it is no entry.
    """
    check_values(*(value.get(name) for name in ("category", "tags", "metadata", "priority")))
    content, id_ = (check_text(name, value.get(name)) for name in ("content", "id"))
    if not content or not content.strip():
        raise refuse("content")
    if not id_ or len(id_) > MOST_NAME:
        raise refuse("id")
    count = value.get("access_count", 0)
    if type(count) is not int or not 0 <= count <= MOST_LIMIT:
        raise refuse("access_count")
    for name in ("created_at", "updated_at", "expires_at"):
        time = check_text(name, value.get(name))
        if time and parse_timestamp(time) is None:
            raise refuse(name)
    return Entry.from_json({name: each for name, each in value.items() if each is not None})


def fitting(
    entries: Iterable[Entry],
    id: str | None = None,  # noqa: A002 (the specification's word)
    category: str | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Return the entries that have all that is given: id, category, all tags, all metadata.

    The case of category and tags does not count.
    """
    kind = (category or "").casefold()
    words = {each.casefold() for each in tags or ()}
    pairs = (metadata or {}).items()
    return [
        each
        for each in entries
        if (not id or each.id == id)
        and (not kind or each.category.casefold() == kind)
        and (not words or words <= {tag.casefold() for tag in each.tags})
        and pairs <= each.metadata.items()
    ]


def ranked(entries: Sequence[Entry], query: str) -> list[Entry]:
    """Return the entries in which a word of a query occurs, the best first.

    A word counts the more, the fewer entries have it; then it counts how often the words occur,
    the priority, and what is newest. Common words count only where there are no others, and a
    plural finds its singular.
    """
    said = list(dict.fromkeys(re.findall(r"\w+", query.lower()))) or query.lower().split()
    words = [each for each in said if each not in COMMON] or said
    stems = [each[:-1] if len(each) > 3 and each[-1] == "s" else each for each in words]
    counts = [each.occurrences(stems) for each in entries]
    having = [sum(map(bool, column)) for column in zip(*counts, strict=True)]
    weights = [math.log(1 + len(entries) / count) if count else 0.0 for count in having]

    def rank(pair: tuple[Entry, list[int]]) -> tuple[float, int, int, str]:
        entry, found = pair
        weight = sum(each for each, count in zip(weights, found, strict=True) if count)
        return weight, sum(found), entry.priority, entry.updated_at

    hits = [pair for pair in zip(entries, counts, strict=True) if any(pair[1])]
    return [entry for entry, _ in sorted(hits, key=rank, reverse=True)]
