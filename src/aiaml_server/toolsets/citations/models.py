"""The values: a memory, its citations and its links."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, get_args

from aiaml_server.toolsets.citations.errors import MalformedMemory

JsonObject = dict[str, Any]
Texts = Sequence[str]
LinkType = Literal["related", "supersedes", "blocks", "references"]
LINK_TYPES = get_args(LinkType)
MAX_SUBJECT = 79  # characters

_ID = re.compile(r"mem-[A-Za-z0-9](?:[A-Za-z0-9._-]{0,113}[A-Za-z0-9_-])?")
# Each field with the pattern of its values.
_SOME = r"(?s).*\S.*"
_ANY = r"(?s).*"
_NUMBER = r"[1-9][0-9]{0,8}"
_MEMORY = {
    "subject": _SOME,
    "created": _ANY,
    "verified": _ANY,
    "confidence": r"0|0?\.[0-9]{1,20}|1(?:\.0{1,20})?",
}
_CITATION = {
    "path": _SOME,
    "line": _NUMBER,
    "snippet": _ANY,
    "before": _ANY,
    "after": _ANY,
    "occurrences": _NUMBER,
    "occurrence": _NUMBER,
}
_LINK = {"type": "|".join(LINK_TYPES), "target": _SOME}
_REQUIRED = ("subject", "path", "type", "target")


@dataclass(frozen=True)
class Citation:
    """A place in the repository that a memory rests on.

    Attributes:
        path: the file, relative to the repository's top, with slashes.
        line: the line number, from 1.
        snippet: the expected text of the line, or of several lines.
        before: the nearest line before it that is not empty.
        after: the nearest line after it that is not empty.
        occurrences: how often the snippet occurred in the file, if more than once.
        occurrence: which of these occurrences is cited, from 1.
    """

    path: str
    line: int | None = None
    snippet: str | None = None
    before: str | None = None
    after: str | None = None
    occurrences: int | None = None
    occurrence: int | None = None

    def to_dict(self) -> JsonObject:
        """Return the fields that have a value."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


@dataclass(frozen=True)
class Link:
    """An edge to another memory.

    Attributes:
        type: one of `LINK_TYPES`.
        target: the id of the other memory.
    """

    type: LinkType
    target: str


@dataclass(frozen=True)
class Memory:
    """The content of one memory file.

    Attributes:
        id: the file's name without its extension.
        subject: one line.
        content: the markdown below the frontmatter, without empty lines around it.
        created: an ISO 8601 time, as written; None if unknown.
        verified: when the citations were last found valid; None for never.
        confidence: from 0 to 1; None if unknown.
        citations: the places that it rests on.
        links: its edges.
        tags: words to classify it.
    """

    id: str
    subject: str
    content: str
    created: str | None = None
    verified: str | None = None
    confidence: float | None = None
    citations: tuple[Citation, ...] = ()
    links: tuple[Link, ...] = ()
    tags: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        """Return all fields as JSON and YAML have them, in the order of the frontmatter."""
        return {
            **vars(self),
            "citations": [citation.to_dict() for citation in self.citations],
            "links": [vars(link) for link in self.links],
            "tags": list(self.tags),
        }

    @property
    def text(self) -> str:
        """All its text: subject, content, tags, and the code that its citations quote."""
        quoted = [
            part or ""
            for each in self.citations
            for part in (each.path, each.before, each.snippet, each.after)
        ]
        return "\n".join([self.subject, self.content, *self.tags, *quoted])

    @property
    def fact(self) -> str:
        """The sentence after **Fact**:, or the subject if there is none."""
        fact = self.content.partition("**Fact**:")[2].partition("\n\n")[0]
        return " ".join(fact.split()) or self.subject

    def cites_any(self, paths: Iterable[str]) -> bool:
        """Return whether it cites one of these files, or a file in one of these directories."""
        folders = tuple(f"{path}/" for path in paths)
        return any(f"{citation.path}/".startswith(folders) for citation in self.citations)


def is_memory_id(text: str) -> bool:
    """Return whether a text can be a memory's id, and so a file name on any system."""
    return _ID.fullmatch(text) is not None


def generate_id(subject: str, content: str) -> str:
    """Return the id that a subject and a content always get: `mem-<topic>-<hash>`."""
    ascii_only = unicodedata.normalize("NFKD", subject).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", ascii_only.lower())
    topic = "-".join(words)[:48].strip("-") or "memory"
    digest = hashlib.sha256(f"{subject}\n{content}".encode()).hexdigest()
    return f"mem-{topic}-{digest[:8]}"


def current_time() -> str:
    """Return the present time in UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """Return the time that a text means, or None. Without a zone it is UTC."""
    try:
        # Python 3.10 reads neither "Z" nor every number of fractional digits.
        time = datetime.fromisoformat(re.sub(r"\.[0-9]+|[zZ]$", "", text.strip()))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def memory_from_fields(fields: Mapping[str, Any], name: str, content: str) -> Memory:
    """Return the memory that frontmatter and content describe.

    Args:
        fields: the frontmatter; every scalar is text.
        name: the file's name without its extension, which must be the id.
        content: the text below the frontmatter.

    Raises:
        MalformedMemory: a value is missing or wrong.
    """
    if fields.get("id") != name:
        raise MalformedMemory(f"id must be {name}, as the file is named")
    own = _read(fields, _MEMORY)
    if not all(parse_time(own[key]) for key in ("created", "verified") if own[key]):
        raise MalformedMemory("created and verified must be times such as 2026-01-18T10:30:00Z")
    own["confidence"] = own["confidence"] and float(own["confidence"])
    return Memory(
        id=name,
        content=content.replace("\r\n", "\n").strip("\n"),
        citations=tuple(
            Citation(**_read(entry, _CITATION)) for entry in _entries(fields, "citations", dict)
        ),
        links=tuple(Link(**_read(entry, _LINK)) for entry in _entries(fields, "links", dict)),
        tags=tuple(_entries(fields, "tags", str)),
        **own,
    )


def _read(fields: Mapping[str, Any], patterns: Mapping[str, str]) -> JsonObject:
    """Return the values under some keys, which match their patterns; None where there is none."""
    values: JsonObject = {}
    for key, pattern in patterns.items():
        text = fields.get(key)
        if text in (None, "", [], "null", "~") and key not in _REQUIRED:
            values[key] = None
        elif isinstance(text, str) and re.fullmatch(pattern, text):
            values[key] = int(text) if pattern == _NUMBER else text
        else:
            raise MalformedMemory(f"{key} is missing or wrong")
    return values


def _entries(fields: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    entries = fields.get(key) or []
    if not isinstance(entries, list) or not all(isinstance(entry, kind) for entry in entries):
        raise MalformedMemory(f"{key} must be a list of {'maps' if kind is dict else 'texts'}")
    return entries
