"""The value `Memory`, and text ⇄ value (`parse`, `format`). The standard is `docs/format.md`.

Every file that `format` writes is read alike by the plain key-value reader of the specification and
by any YAML parser: a value stands bare where it means the same text to both, and otherwise as a
double-quoted scalar that is a JSON string as well. `parse` reads more than `format` writes, because
people and other programs write these files too; where the two ways of reading disagree about such a
file, the key-value reading decides.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.format.frontmatter import (
    MAX_HEAD,
    format_scalar,
    parse_list,
    parse_text,
    split,
    split_entries,
)
from aiaml_server.timestamps import (
    EPOCH,
    format_timestamp,
    is_timestamp,
    now_micros,
    parse_timestamp,
    to_utc,
)

MAX_NAME = 200  # characters of `agent` and of `user`
MAX_TOPICS = 32
MAX_TOPIC = 64  # characters
MAX_CONTENT = 1024 * 1024  # bytes of UTF-8
MAX_ID = 200  # characters of an id; `think` gives it to agents, and so the timestamp
SHORTEST_ID = 4  # that a person may shorten one to
MAX_TIMESTAMP = 100  # characters

WANTED = {
    "agent": f'a name on one line, 1 to {MAX_NAME} characters, such as "claude"',
    "user": f'a name on one line, 1 to {MAX_NAME} characters, such as "marco"',
    "topics": (
        f"a list of 1 to {MAX_TOPICS} single words of at most {MAX_TOPIC} characters each, "
        'such as ["python", "preferences"]'
    ),
    "content": "the text to remember, as markdown, at most 1 MiB of UTF-8",
}
"""What is right for each parameter of `remember`: the sentence that follows "must be"."""


_FIELDS = ("id", "timestamp", "agent", "user", "topics")
OURS = frozenset({*_FIELDS, "verbatim", "imported-from", "imported-digest"})
"""What has a meaning in a memory's frontmatter."""

_UNSAFE = "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Memory(NamedTuple):
    """One memory, as its file states it.

    Attributes:
        id: eight hexadecimal digits for a memory of our own; any text in a file that others wrote.
        timestamp: when it was made, ISO 8601, as written in the file.
        agent: the agent that made it.
        user: the person it is about.
        topics: single words for those that `new` makes; any text in files that others wrote.
        content: markdown, exactly as given.
        extra: lines of the frontmatter that belong to no field above, as they stand.
    """

    id: str
    timestamp: str
    agent: str
    user: str
    topics: tuple[str, ...]
    content: str
    extra: tuple[str, ...] = ()

    @classmethod
    def new(cls, agent: str, user: str, topics: Sequence[str], content: str) -> Memory:
        """Make a memory of now, with a fresh id, from what an agent or a person gave.

        Raises:
            InvalidInput: a value breaks a rule of `WANTED`.
        """
        return cls(
            id=draw_id(),
            timestamp=format_timestamp(now_micros()),
            agent=_name("agent", agent),
            user=_name("user", user),
            topics=_topics(topics),
            content=_content(content),
        )

    def fields(self) -> dict[str, Any]:
        """Return it as JSON has it, but for `extra`."""
        fields = {name: getattr(self, name) for name in (*_FIELDS, "content")}
        return {**fields, "topics": list(self.topics)}

    def with_new_id(self) -> Memory:
        """Return the same memory under another random id."""
        return self._replace(id=draw_id())

    @property
    def file_name(self) -> str:
        """`YYYYMMDD_HHMMSS_<id>.md`, in UTC; 1970 if the timestamp is no date."""
        made = to_utc(parse_timestamp(self.timestamp) or 0) or EPOCH
        return f"{made.year:04}{made:%m%d_%H%M%S}_{self.id}.md"


def draw_id() -> str:
    """Draw eight random hexadecimal digits that YAML takes for text.

    `12345678` and `123e4567` are numbers to YAML 1.2, `0b101010` is one to YAML 1.1.
    """
    while True:
        drawn = os.urandom(4).hex()
        if not _NUMBER.fullmatch(drawn):
            return drawn


_NUMBER = re.compile(r"\d+(e\d+)?|0b[01]+")


# --- what agents give -------------------------------------------------------------------------


def must_be(field: str) -> InvalidInput:
    """Return the error that says what is right for a parameter of `remember`."""
    return InvalidInput(field, f"must be {WANTED[field]}")


def _name(field: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise must_be(field)
    if len(value) > MAX_NAME or re.search(_UNSAFE, value):
        raise must_be(field)
    return value


def _topics(values: Sequence[str]) -> tuple[str, ...]:
    """Split each on white space and commas, strip square brackets, drop empties and repeats."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(each, str) for each in values):
        raise must_be("topics")
    pieces = (piece.strip("[]") for value in values for piece in re.split(r"[\s,]+", value))
    words = tuple(dict.fromkeys(word for word in pieces if word))
    if not 1 <= len(words) <= MAX_TOPICS:
        raise must_be("topics")
    if any(len(word) > MAX_TOPIC or re.search(_UNSAFE, word) for word in words):
        raise must_be("topics")
    return words


def _content(value: str) -> str:
    if not isinstance(value, str) or not value.strip() or _has_surrogate(value):
        raise must_be("content")
    if len(value) > MAX_CONTENT or len(value.encode()) > MAX_CONTENT:
        raise must_be("content")
    return value


# --- value → text -----------------------------------------------------------------------------


def format(memory: Memory) -> str:
    """Return the text of the memory's file; `parse` gives the same memory back."""
    verbatim = ["verbatim: true"] if memory.content != memory.content.strip() else []
    bare_id = re.fullmatch(r"[0-9a-f]{8}", memory.id) and not _NUMBER.fullmatch(memory.id)
    bare_timestamp = is_timestamp(memory.timestamp)
    head = [
        f"id: {memory.id if bare_id else format_scalar(memory.id)}",
        f"timestamp: {memory.timestamp if bare_timestamp else format_scalar(memory.timestamp)}",
        f"agent: {format_scalar(memory.agent)}",
        f"user: {format_scalar(memory.user)}",
        f"topics: [{', '.join(map(format_scalar, memory.topics))}]",
    ]
    return "\n".join(["---", *head, *verbatim, *memory.extra, "---", "", memory.content, ""])


# --- text → value -----------------------------------------------------------------------------

# What `format` writes for a memory of plain words: read by one pattern, five times as fast.
_LINE = "([^\\s\"'][^\n\r]*)\n"
_USUAL = re.compile(
    f"---\nid: {_LINE}timestamp: {_LINE}agent: {_LINE}user: {_LINE}topics: \\[([^\"'\n\r]*)]\n---\n"
)


def parse(text: str) -> Memory:
    """Return the memory that a file's text states.

    Raises:
        MalformedFile: it is not a memory's text; `problems` lists all that is wrong.
    """
    usual = _USUAL.match(text)
    if usual and usual.end() <= MAX_HEAD and not _has_surrogate(usual[0]):
        memory_id, timestamp, agent, user, topics = map(str.strip, usual.groups())
        words = tuple(filter(None, map(str.strip, topics.split(","))))
        if problems := _too_long(memory_id, timestamp):
            raise MalformedFile(problems)
        return Memory(memory_id, timestamp, agent, user, words, text[usual.end() :].strip())
    head, body, line_end = split(text)
    fields, extra = _sorted(head)
    values, problems = _values(fields)
    problems = problems or _too_long(values["id"], values["timestamp"])
    if problems:
        raise MalformedFile(problems)
    if values.pop("verbatim", "") == "true":
        content = body.removeprefix(line_end).removesuffix(line_end)
    else:
        content = body.strip()
    return Memory(**values, content=content, extra=extra)


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and bool(_SURROGATE.search(text))


def parsed(text: str | None) -> Memory | None:
    """Return the memory that a text is; None where there is no text, or it is none."""
    with suppress(MalformedFile):
        return None if text is None else parse(text)
    return None


def _too_long(memory_id: str, timestamp: str) -> list[str]:
    """Return what is wrong with the two fields that may be any text, and that `think` gives out."""
    limits = (("id", memory_id, MAX_ID), ("timestamp", timestamp, MAX_TIMESTAMP))
    return [
        f"{name} is longer than {most} characters"
        for name, text, most in limits
        if len(text) > most
    ]


def _sorted(head: str) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Sort the frontmatter's lines: those of each field, and the rest in order."""
    fields: dict[str, list[str]] = {}
    extra: list[str] = []
    for entry in split_entries(head):
        key, colon, _ = entry[0].partition(":")
        if colon and key.strip() in (*_FIELDS, "verbatim"):
            fields[key.strip()] = entry
        else:
            extra += entry
    while extra and not extra[-1].strip():
        extra.pop()
    return fields, tuple(extra)


def _values(fields: dict[str, list[str]]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems = [f"no field {field!r}" for field in _FIELDS if field not in fields]
    for field, entry in fields.items():
        value = parse_list(entry) if field == "topics" else parse_text(entry)
        if value is None:
            problems.append(f"{field} is not {'a list of words' if field == 'topics' else 'text'}")
        elif _has_surrogate("".join(value)):
            problems.append(f"{field} holds half of a surrogate pair")
        elif field in ("id", "timestamp") and not value:
            problems.append(f"{field} is empty")
        values[field] = value
    return values, problems


def usual_user(memories: Iterable[Memory]) -> str:
    """Return whom most memories are about, or else who is logged in."""
    for user, _ in Counter(memory.user for memory in memories).most_common():
        with suppress(InvalidInput):  # in a file that others wrote a name may be any text
            return checked_user(user)
    import getpass  # noqa: PLC0415 (for the first memory alone)

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user's number
        return "me"


def checked_user(user: str) -> str:
    """Return a name that a memory can be about.

    Raises:
        InvalidInput: it cannot be one.
    """
    return Memory.new("any", user, ["any"], "any").user
