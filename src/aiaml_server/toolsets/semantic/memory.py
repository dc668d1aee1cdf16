"""One memory: the value, and what its fields may be."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiaml_server.timestamps import format_timestamp, now_micros, parse_timestamp, to_utc
from aiaml_server.toolsets.semantic.failures import Damaged, InvalidInput

PRIORITIES = ("CORE", "HIGH", "NORMAL", "LOW")
SOURCES = ("manual", "auto_decision", "auto_error", "session_end", "import")
SCOPES = ("project", "global")
LIMITS = {"explicit": 0, "session_start": 8, "auto_trigger": 5}
"""How many hits a search gives that does not say; 0 for what the settings say."""
SORTS = ("created_at", "updated_at", "priority", "access_count")
"""What lists can be sorted by, the highest first, then the newest."""
MOST_LISTED = 200
MOST_HITS = 50
MOST_CONTENT = 50_000  # characters
MOST_TAGS = 32
MOST_CONTEXTS = 20
LONGEST = 100  # characters of a tag, a category
LONGEST_CONTEXT = 500


@dataclass(frozen=True)
class Memory:
    """A memory as it is kept.

    Attributes:
        id: its database and number there, `project:12`.
        content: the text.
        content_hash: its SHA-256.
        priority: one of `PRIORITIES`.
        category: a word of the user's, or None.
        tags: in the order in which they were given.
        project_id: the project that it belongs to; None for what is global.
        source: one of `SOURCES`.
        created_at, updated_at: in UTC, as ISO 8601.
        embedding_model, embedding_model_version, embedding_dimension: what made its vectors; None
            as long as it has none.
        access_count: how often it was used.
        last_accessed_at: when it last was, or None.
        usage_contexts: what for, the last ones.
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
        """The database that it is in."""
        return self.id.partition(":")[0]

    @property
    def number(self) -> int:
        """Its number there."""
        return int(self.id.partition(":")[2])


_COUNTS = ("embedding_dimension", "access_count")
_LONG = {"content": 4 * MOST_CONTENT, "tags": 16 * 1024, "path": 16 * 1024,
         "usage_contexts": 64 * 1024}  # fmt: skip
_SHORT = 1024
"""Bytes that a text may have in a column of `_LONG`, and in any other."""


def longest(name: str) -> int:
    """Return how many bytes a text may have in a column of the table `memories`."""
    return _LONG.get(name, _SHORT)


def guarded(value: str, most: int = _SHORT) -> str:
    """Return an expression for a value that anybody may have made: a text as bytes, for `decoded`.

    Of a blob, and of a text of more than `most` bytes, there is but -1: it is never read.
    """
    return (
        f"CASE typeof({value}) WHEN 'blob' THEN -1 WHEN 'text' THEN"
        f" iif(octet_length({value}) <= {most}, CAST({value} AS BLOB), -1) ELSE {value} END"
    )


def column(name: str) -> str:
    """Return `guarded` for a column of the table `memories`."""
    return guarded(f"memories.{name}", longest(name))


COLUMNS = ", ".join(map(column, Memory.__dataclass_fields__))
"""Of the table `memories`, for `of_row`: its columns are named as the fields, in their order."""


def of_row(scope: str, row: Sequence[Any]) -> Memory:
    """Return the memory that a row holds, whose columns are `COLUMNS`.

    Raises:
        Damaged: a value is of another kind than ours, which SQLite keeps in any column, or longer.
    """
    held: dict[str, Any] = {}
    for name, value in zip(Memory.__dataclass_fields__, row, strict=True):
        counts = name in ("id", *_COUNTS)
        read = decoded(value) if isinstance(value, bytes) and not counts else value
        fits = isinstance(read, int) and read >= 0 if counts else isinstance(read, str)
        if not fits and (value is not None or name == "content"):
            raise Damaged(f"{scope}:{row[0]} holds a value of another kind than a memory does")
        held[name] = read
    held["id"] = f"{scope}:{row[0]}"
    held |= {
        "priority": held["priority"] if held["priority"] in PRIORITIES else "NORMAL",
        "tags": texts(held["tags"]),
        "source": held["source"] if held["source"] in SOURCES else "manual",
        "created_at": shown(held["created_at"]) or "",
        "updated_at": shown(held["updated_at"]) or "",
        "embedding_model": held["embedding_model"] or None,
        "access_count": held["access_count"] or 0,
        "last_accessed_at": shown(held["last_accessed_at"]),
        "usage_contexts": texts(held["usage_contexts"]),
    }
    return Memory(**held)


def decoded(value: object) -> str | None:
    """Return the text that `guarded` has read; None where there is none of ours."""
    with suppress(UnicodeDecodeError):
        return value.decode("utf-8") if isinstance(value, bytes) else None
    return None


def texts(value: str | None) -> tuple[str, ...]:
    """Return the texts of a JSON list, as a column has it; none where it is no list."""
    try:
        found = json.loads(value or "[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def digest(content: str) -> str:
    """Return a text's SHA-256."""
    return hashlib.sha256(content.encode()).hexdigest()


def folded(content: str) -> str:
    """Return what two texts have in common that differ in case and white space alone."""
    text = unicodedata.normalize("NFC", content).lower()  # folding would make one of Maße and Masse
    return digest(" ".join(text.split()))


_PUNCTUATION = re.compile(
    r"""(?<!\w)[.,;:!"'\u2026\u201c\u201d\u2019]|[.,;:!"'\u2026\u201c\u201d\u2019](?!\w)"""
)
"""At the edge of words alone: 1.5 is not 15. Signs such as < and ? have a meaning."""


def bare(content: str) -> str:
    """Return what two texts have in common that differ in case, blanks and punctuation alone."""
    text = unicodedata.normalize("NFC", content).lower()
    return " ".join(_PUNCTUATION.sub(" ", text).split()) or content


def now() -> str:
    """Return the present time as the databases have it, which sorts as text."""
    return kept(now_micros())


def kept(moment: int) -> str:
    """Return a moment as the databases have it."""
    return format_timestamp(moment).replace("T", " ").removesuffix("+00:00")


def instant_of(text: str) -> str | None:
    """Return the moment that an ISO 8601 text names, as the databases have it; None for none."""
    moment = parse_timestamp(text)
    return None if moment is None or to_utc(moment) is None else kept(moment)


def shown(kept: str | None) -> str | None:
    """Return a database's time as ISO 8601."""
    return f"{kept.replace(' ', 'T')}Z" if kept else None


# --- what may be given ----------------------------------------------------------------------------


class Draft(NamedTuple):
    """What is to be stored.

    Attributes:
        content: the text.
        tags: words to filter by.
        priority: one of `PRIORITIES`; None for NORMAL, or what is there.
        category: a word for its kind.
        source: one of `SOURCES`.
        path: the file that it was imported from.
        scope: the database; None for the project's, where one is active.
        created, updated, last_used: as the databases have it; None for now, or never.
        used: how often it was used.
        contexts: what for.
    """

    content: str
    tags: Sequence[str] = ()
    priority: str | None = None
    category: str | None = None
    source: str = "manual"
    path: str | None = None
    scope: str | None = None
    created: str | None = None
    updated: str | None = None
    used: int = 0
    last_used: str | None = None
    contexts: Sequence[str] = ()

    def checked(self) -> Draft:
        """Return it as it is kept.

        Raises:
            InvalidInput: a field is not what it must be.
        """
        priority, category = self.priority, self.category
        return self._replace(
            content=check_content(self.content),
            tags=check_tags(self.tags),
            priority=None if priority is None else check_choice("priority", priority, PRIORITIES),
            category=None if category is None else check_line("category", category),
            source=check_choice("source", self.source, SOURCES),
        )


def check_content(content: str) -> str:
    """Return a text as it was given, with the blanks around it.

    Raises:
        InvalidInput: it is empty or too long.
    """
    if not any(each.isprintable() and each != " " for each in content):
        raise InvalidInput("content: must not be empty")
    if len(content) > MOST_CONTENT:
        raise InvalidInput(
            f"content: has {len(content):,} characters; at most {MOST_CONTENT:,} are kept",
            "Store small pieces, one fact each.",
        )
    if "\0" in content or any("\ud800" <= each <= "\udfff" for each in content):
        raise InvalidInput("content: holds a character that is no text (U+0000 or half a pair)")
    return content


def repaired(*texts: str) -> list[str]:
    """Say that texts hold what stands for a character that was lost on the way here."""
    if not any("\ufffd" in each for each in texts):
        return []
    return ["it holds U+FFFD, which stands for a character that was lost before it came here"]


def check_line(field: str, value: str, longest: int = LONGEST) -> str:
    """Return a text of one line without the blanks around it.

    Raises:
        InvalidInput: it is empty, too long, or not of one line.
    """
    text = value.strip()
    if not text or len(text) > longest or not re.fullmatch(r"[^\x00-\x1f\x7f\ud800-\udfff]*", text):
        raise InvalidInput(f"{field}: must be one line of at most {longest} characters")
    return text


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags, each once, whatever its case.

    Raises:
        InvalidInput: one of them is no tag, or there are too many.
    """
    found = _once(check_line("tags", each) for each in tags)
    if len(found) > MOST_TAGS:
        raise InvalidInput(f"tags: are {len(found)}; at most {MOST_TAGS} are kept")
    return found


def united(*tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of several memories, each once, as many as one may have."""
    return _once(each for several in tags for each in several)[:MOST_TAGS]


def _once(tags: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for each in tags:
        first.setdefault(tag_key(each), each)
    return tuple(first.values())


def tag_key(tag: object) -> str:
    """Return what two spellings of a tag have in common that differ in case alone."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", str(tag)).casefold())


def check_choice(field: str, value: str, choices: Sequence[str]) -> str:
    """Return one of some words, whatever its case.

    Raises:
        InvalidInput: it is none of them.
    """
    for each in choices:
        if each.lower() == value.strip().lower():
            return each
    raise InvalidInput(f"{field}: must be one of {', '.join(choices)}")


def highest(priorities: Sequence[str]) -> str:
    """Return the highest of some priorities."""
    return min(priorities, key=PRIORITIES.index)
