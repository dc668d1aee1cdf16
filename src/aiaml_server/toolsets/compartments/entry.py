"""One entry: its fields and their rules, and how entries are found."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any
from unicodedata import combining, normalize

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from aiaml_server.errors import InvalidInput
from aiaml_server.toolsets.compartments.settings import COMPARTMENTS

LOWEST_PRIORITY, HIGHEST_PRIORITY, DEFAULT_PRIORITY = 1, 10, 5
MAX_TAGS = 100
MAX_METADATA = 1000

RULES = {
    "compartment": '"run", "session" or "plan"',
    "content": "a text that is not empty",
    "id": "the id of an entry, as text",
    "category": "one word or a few, as text",
    "tags": f'a list of at most {MAX_TAGS} words, such as ["invoice", "euro"]',
    "metadata": f'an object of at most {MAX_METADATA:,} texts, such as {{"source": "mail"}}',
    "priority": f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}",
    "query": "words to look for, as text",
    "limit": "a whole number from 1",
    "offset": "a whole number from 0",
    "access_count": "a whole number from 0",
    "created_at": "a text",
    "updated_at": "a text",
}
"""The rule of each parameter, and of each other field in the file, for error messages."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_COMMON = """
    a about all an and any are as at be been but by can did do does for from had has have he her his
    how i if in is it its me my not of on or our she so that the their there they this to was we
    were what when where which who why will with would you your
"""
_COMMON_WORDS = frozenset(_COMMON.split())


def invalid(name: str) -> InvalidInput:
    """Return the error for a parameter that breaks its rule."""
    return InvalidInput(name, f"must be {RULES[name]}")


def check_text(text: str) -> str:
    """Return a text without control characters other than tabs and line ends.

    Raises:
        ValueError: it has one, or half of a surrogate pair.
    """
    if match := _CONTROL.search(text):
        raise ValueError(f"contains the character U+{ord(match[0]):04X}")
    return text


def _unique(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, tags)))


Text = Annotated[str, AfterValidator(check_text)]
Word = Annotated[Text, StringConstraints(strip_whitespace=True)]
Content = Annotated[Text, StringConstraints(pattern=r"\S")]
Tags = Annotated[tuple[Word, ...], Field(max_length=MAX_TAGS), AfterValidator(_unique)]
Metadata = Annotated[dict[Text, Text], Field(max_length=MAX_METADATA)]


class Entry(BaseModel):
    """One memory. Fields that other programs added are preserved.

    Attributes:
        id: unique in its compartment.
        content: the text.
        category: what kind of thing it is; empty for none.
        tags: words to find it by.
        metadata: other properties.
        created_at: ISO 8601 in UTC.
        updated_at: the same.
        access_count: how often it was returned.
        priority: 1 to 10; higher is more important.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    id: Text
    content: Content
    category: Word = ""
    tags: Annotated[Tags, Field(strict=False)] = ()
    metadata: Metadata = Field(default_factory=dict)
    created_at: str = ""
    updated_at: str = ""
    access_count: int = Field(0, ge=0)
    priority: int = Field(DEFAULT_PRIORITY, ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY)

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that count against the limit and that are searched."""
        return (self.content, self.category, *self.tags, *self.metadata, *self.metadata.values())

    @property
    def size(self) -> int:
        """The number of characters that count against the limit."""
        return sum(map(len, self.texts))

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the file and agents have it, without empty fields."""
        values = self.model_dump(mode="json")
        return {name: value for name, value in values.items() if value not in ("", [], {})}


def make_entry(**values: Any) -> Entry:
    """Return an entry with a caller's values.

    Raises:
        InvalidInput: one breaks its rule.
    """
    try:
        return Entry(**values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0])
        if problem["type"] == "value_error":
            raise InvalidInput(name, str(problem["ctx"]["error"])) from None
        raise invalid(name) from None


def check_compartment(compartment: object) -> None:
    """Raise an error if there is no such compartment.

    Raises:
        InvalidInput: there is none.
    """
    if compartment not in COMPARTMENTS:
        raise invalid("compartment")


def filter_entries(
    entries: Iterable[Entry],
    entry_id: str | None = None,
    category: str | None = None,
    tags: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[Entry]:
    """Return the entries that have all that is given; category and tags in any case."""
    wanted = {_fold(tag) for tag in tags or ()}
    found = []
    for entry in entries:
        entry_tags = {_fold(tag) for tag in entry.tags}
        if entry_id and entry.id != entry_id:
            continue
        if category and _fold(entry.category) != _fold(category):
            continue
        if wanted <= entry_tags and (metadata or {}).items() <= entry.metadata.items():
            found.append(entry)
    return found


def _fold(text: str) -> str:
    """Return a text without surrounding blanks, case, and differences of Unicode forms (NFKC)."""
    return normalize("NFKC", text.strip().casefold())


def _without_marks(text: str) -> str:
    """Return a folded text without accents and vowel marks."""
    decomposed = normalize("NFKD", _fold(text))
    plain = "".join(character for character in decomposed if not combining(character))
    return normalize("NFC", plain)


def rank_entries(entries: Sequence[Entry], query: str) -> list[Entry]:
    """Return the entries that contain a word of a query, the best first.

    Rare words weigh more than frequent ones; then the number of occurrences, the priority, and the
    newest count. Common words are ignored, a plural finds its singular, and accents do not matter.
    """
    query = _without_marks(query)
    words = list(dict.fromkeys(re.findall(r"\w+|[^\w\s\0-\x7f]", query))) or query.split()
    words = [word for word in words if word not in _COMMON_WORDS] or words
    stems = [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words]
    texts = {entry.id: _without_marks("\n".join(entry.texts)) for entry in entries}
    weights = {}
    for stem in stems:
        count = sum(stem in text for text in texts.values())
        weights[stem] = math.log(1 + len(entries) / count) if count else 0.0

    def rank(entry: Entry) -> tuple[float, int, int, str]:
        counts = {stem: texts[entry.id].count(stem) for stem in stems}
        weight = sum(weights[stem] for stem, count in counts.items() if count)
        return weight, sum(counts.values()), entry.priority, entry.updated_at

    hits = [entry for entry in entries if any(stem in texts[entry.id] for stem in stems)]
    return sorted(hits, key=rank, reverse=True)
