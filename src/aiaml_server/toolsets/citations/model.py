"""The values: a memory, its citations and its links."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from aiaml_server.toolsets.citations.failures import MalformedMemory
from aiaml_server.toolsets.citations.frontmatter import Document
from aiaml_server.toolsets.citations.nodes import Node
from aiaml_server.toolsets.citations.writing import ABSENT

LINK_TYPES = ("related", "supersedes", "blocks", "references")

PREFIX = "mem-"
LONGEST_SUBJECT = 79  # characters
_ID = re.compile(r"mem-[A-Za-z0-9](?:[A-Za-z0-9._-]{0,113}[A-Za-z0-9_-])?")
_DRAWN = re.compile(r"mem-[a-z0-9-]+-(?:[0-9a-f]{8}){1,8}")
_SLUG = 48  # characters
MOST_COUNT = 999_999_999  # of lines, or of a snippet in a file


@dataclass(frozen=True)
class Citation:
    """A place in the repository that a memory rests on.

    Attributes:
        path: the file's, relative to the repository's top, with slashes.
        line: the line's number, from 1.
        snippet: the line, or several, as they are expected; blanks count once.
        before: the last line before it that is not empty.
        after: the first such line behind it.
        times: how often the snippet was in the file, if more than once.
        nth: which of these it was, from 1.
        within: the definition that it belongs to, such as `Shop.price`.
    """

    path: str
    line: int | None = None
    snippet: str | None = None
    before: str | None = None
    after: str | None = None
    times: int | None = None
    nth: int | None = None
    within: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the snippet was taken from the file, whole; a person may write a part of it."""
        return bool(self.before or self.after or self.times)

    def stated(self) -> dict[str, Any]:
        """Return it as its entry in the frontmatter."""
        return {key: ABSENT if value is None else value for key, value in vars(self).items()}


@dataclass(frozen=True)
class Link:
    """An edge from a memory to another.

    Attributes:
        type: one of `LINK_TYPES`.
        target: the other's id.
    """

    type: str
    target: str


@dataclass(frozen=True)
class Memory:
    """What one file says.

    Attributes:
        id: the file's name without its ending.
        subject: one line.
        content: the markdown below the frontmatter, without empty lines around it.
        created: ISO 8601, as it is written.
        verified: when its citations were last found valid; empty for never.
        confidence: from 0 to 1; None where nothing is known.
        citations: what it rests on.
        links: its edges.
        tags: its classification.
    """

    id: str
    subject: str
    content: str
    created: str = ""
    verified: str = ""
    confidence: float | None = None
    citations: tuple[Citation, ...] = ()
    links: tuple[Link, ...] = ()
    tags: tuple[str, ...] = field(default=())

    def stated(self) -> dict[str, Any]:
        """Return the frontmatter of a new file."""
        return {
            "id": self.id,
            "subject": self.subject,
            "created": self.created or None,
            "verified": self.verified or None,
            "confidence": self.confidence,
            "citations": [each.stated() for each in self.citations],
            "links": [vars(each) for each in self.links],
            "tags": list(self.tags),
        }


def is_id(text: str) -> bool:
    """Say whether a text can be a memory's id, and so a file's name on any system."""
    return _ID.fullmatch(text) is not None


def new_id(subject: str, content: str, digits: int = 8) -> str:
    """Return the id that a subject and a content always have: `mem-<topic>-<hash>`."""
    ascii_only = unicodedata.normalize("NFKD", subject).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", ascii_only.lower())
    slug = ""
    for word in words:
        if len(slug) + len(word) >= _SLUG:
            break
        slug += f"{word}-"
    slug = slug or f"{''.join(words)[:_SLUG] or 'memory'}-"
    digest = hashlib.sha256(f"{subject}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{PREFIX}{slug}{digest[:digits]}"


def is_drawn(memory_id: str) -> bool:
    """Say whether an id looks like one of `new_id`, and not like a person's own."""
    return _DRAWN.fullmatch(memory_id) is not None


def now() -> str:
    """Return the time, to the second, in UTC."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def midnight() -> str:
    """Return the time at which this day began, in UTC: all who write today write the same."""
    return f"{now()[:10]}T00:00:00Z"


def place(citation: Citation) -> str:
    """Return a citation as `path:line`."""
    return f"{citation.path}:{citation.line}" if citation.line else citation.path


def cites(memory: Memory, paths: Collection[str]) -> bool:
    """Say whether a memory cites one of some files, or one in one of some directories."""
    for each in memory.citations:
        parts = each.path.split("/")
        if any("/".join(parts[:size]) in paths for size in range(1, len(parts) + 1)):
            return True
    return False


def fact(memory: Memory) -> str:
    """Return the sentence that a memory states; its subject where it has none."""
    said = memory.content.partition("**Fact**:")[2].partition("\n\n")[0].partition("**Reason")[0]
    return " ".join(said.split()) or memory.subject


def instant(text: str) -> datetime | None:
    """Return the time that a text means; None where it means none. Without a zone it is UTC."""
    try:
        whole = re.sub(r"\.[0-9]+", "", text.strip())  # Python 3.10 takes few forms of fractions
        found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", whole))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


# --- from a file ----------------------------------------------------------------------------------


def memory(document: Document, name: str) -> Memory:
    """Return the memory that a file holds.

    Args:
        document: its text.
        name: its name, without the ending.

    Raises:
        MalformedMemory: it is none; the sentence has the line.
    """
    root = document.root
    found = _text(root, "id", needed=True)
    if found != name:
        raise MalformedMemory(
            f"{_where(root, 'id')} is {found!r}, and the file's name says {name!r}"
        )
    body = document.text[document.body :].replace("\r\n", "\n")
    return Memory(
        id=found,
        subject=_text(root, "subject", needed=True),
        content=body.strip("\n"),
        created=_time(root, "created"),
        verified=_time(root, "verified"),
        confidence=_confidence(root),
        citations=tuple(_citation(each) for each in _maps(root, "citations")),
        links=tuple(_link(each) for each in _maps(root, "links")),
        tags=tuple(_said(each, "a tag") for each in _list(root, "tags")),
    )


def _where(node: Node, key: str) -> str:
    return f"line {node.entries[key].node.line}: {key}"


def _said(node: Node, what: str) -> str:
    """Return a scalar's text, as it is written."""
    if isinstance(node.value, str):
        return node.value
    if node.value is None or isinstance(node.value, list | dict) or not node.written:
        raise MalformedMemory(f"line {node.line}: {what} must be text")
    return node.written


def _text(node: Node, key: str, *, needed: bool = False) -> str:
    part = node.entries.get(key)
    if part is None or part.node.value is None:
        if needed:
            raise MalformedMemory(f"line {node.line}: there is no {key}")
        return ""
    text = _said(part.node, key)
    if needed and not text.strip():
        raise MalformedMemory(f"{_where(node, key)} is empty")
    return text


def _time(root: Node, key: str) -> str:
    text = _text(root, key)
    if text and instant(text) is None:
        raise MalformedMemory(f"{_where(root, key)} must be a time such as 2026-01-18T10:30:00Z")
    return text


def _confidence(root: Node) -> float | None:
    value = root.value.get("confidence")
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= 1:  # also for what is no number
        raise MalformedMemory(f"{_where(root, 'confidence')} must be a number from 0 to 1")
    return float(value)


def _list(root: Node, key: str) -> Sequence[Node]:
    part = root.entries.get(key)
    if part is None or part.node.value is None:
        return []
    if not isinstance(part.node.value, list):
        raise MalformedMemory(f"{_where(root, key)} must be a list")
    return [each.node for each in part.node.items]


def _maps(root: Node, key: str) -> Sequence[Node]:
    nodes = _list(root, key)
    for node in nodes:
        if not isinstance(node.value, dict):
            raise MalformedMemory(f"line {node.line}: each of {key} must be a map")
    return nodes


def _citation(node: Node) -> Citation:
    snippet, before, after, within = (
        _text(node, key) or None for key in ("snippet", "before", "after", "within")
    )
    line, times, nth = (_count(node, key) for key in ("line", "times", "nth"))
    path = _text(node, "path", needed=True)
    return Citation(path, line, snippet, before, after, times, nth, within)


def _count(node: Node, key: str) -> int | None:
    value = node.value.get(key)
    if value is not None and not (type(value) is int and 1 <= value <= MOST_COUNT):
        raise MalformedMemory(
            f"{_where(node, key)} must be a whole number, from 1 to {MOST_COUNT:,}"
        )
    return value


def _link(node: Node) -> Link:
    found = Link(_text(node, "type", needed=True), _text(node, "target", needed=True))
    if found.type not in LINK_TYPES:
        raise MalformedMemory(
            f"{_where(node, 'type')} is {found.type!r}; it must be one of {', '.join(LINK_TYPES)}"
        )
    return found
