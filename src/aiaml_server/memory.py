"""The value `Memory`, and text ⇄ value (`parse`, `format`). The standard is `docs/format.md`.

Every file that `format` writes is read alike by the plain key-value reader of the specification and
by any YAML parser: a value stands bare where it means the same text to both, and otherwise as a
double-quoted scalar that is a JSON string as well. `parse` reads more than `format` writes, because
people and other programs write these files too; where the two ways of reading disagree about such a
file, the key-value reading decides.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .errors import InvalidInput, MalformedFile
from .moments import EPOCH, in_utc, instant, is_iso, now

MAX_NAME = 200  # characters of `agent` and of `user`
MAX_TOPICS = 32
MAX_TOPIC = 64  # characters
MAX_CONTENT = 1024 * 1024  # bytes of UTF-8
MAX_ID = 200  # characters of an id; `think` gives it to agents, and so the timestamp
MAX_TIMESTAMP = 100  # characters
MAX_HEAD = 64 * 1024  # characters of a frontmatter; a YAML parser takes half a second for so many

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
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Memory:
    """One memory, as its file states it.

    Attributes:
        id: eight hexadecimal digits for a memory of our own; any text in a file by other hands.
        timestamp: when it was made, ISO 8601, as written in the file.
        agent: the agent that made it.
        user: the person it is about.
        topics: single words for those that `new` makes; any text in files by other hands.
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
            timestamp=now().isoformat(timespec="microseconds"),
            agent=_name("agent", agent),
            user=_name("user", user),
            topics=_topics(topics),
            content=_content(content),
        )

    def with_new_id(self) -> Memory:
        """Return the same memory under another random id."""
        return replace(self, id=draw_id())

    @property
    def file_name(self) -> str:
        """`YYYYMMDD_HHMMSS_<id>.md`, in UTC; 1970 where the timestamp names no moment."""
        made = in_utc(instant(self.timestamp) or 0) or EPOCH
        return f"{made.year:04}{made:%m%d_%H%M%S}_{self.id}.md"


def draw_id() -> str:
    """Draw eight random hexadecimal digits that YAML takes for text.

    `12345678` and `123e4567` are numbers to YAML 1.2, `0b101010` is one to YAML 1.1.
    """
    while True:
        drawn = uuid.uuid4().hex[:8]
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
    if len(value) > MAX_NAME or _UNSAFE.search(value):
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
    if any(len(word) > MAX_TOPIC or _UNSAFE.search(word) for word in words):
        raise must_be("topics")
    return words


def _content(value: str) -> str:
    if not isinstance(value, str) or not value.strip() or _SURROGATE.search(value):
        raise must_be("content")
    if len(value) > MAX_CONTENT or len(value.encode()) > MAX_CONTENT:
        raise must_be("content")
    return value


# --- value → text -----------------------------------------------------------------------------


def format(memory: Memory) -> str:
    """Return the text of the memory's file; `parse` gives the same memory back."""
    verbatim = ["verbatim: true"] if memory.content != memory.content.strip() else []
    bare_timestamp = is_iso(memory.timestamp)
    head = [
        f"id: {memory.id if _is_bare_id(memory.id) else _scalar(memory.id)}",
        f"timestamp: {memory.timestamp if bare_timestamp else _scalar(memory.timestamp)}",
        f"agent: {_scalar(memory.agent)}",
        f"user: {_scalar(memory.user)}",
        f"topics: [{', '.join(map(_scalar, memory.topics))}]",
    ]
    return "\n".join(["---", *head, *verbatim, *memory.extra, "---", "", memory.content, ""])


# Bare: a letter first, so no number, sign or indicator; then only what neither reader gives a
# meaning to, and never at the end.
_BARE = re.compile(r"[^\W\d_](?:[\w .@+/-]*[\w.@+/])?")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # beyond what JSON escapes


def _scalar(text: str) -> str:
    if _BARE.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _is_bare_id(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-f]{8}", text)) and not _NUMBER.fullmatch(text)


# --- text → value -----------------------------------------------------------------------------

# What `format` writes for a memory of plain words: read by one pattern, five times as fast.
_LINE = "([^\\s\"'\ud800-\udfff][^\n\r\ud800-\udfff]*)\n"
_USUAL = re.compile(
    f"---\nid: {_LINE}timestamp: {_LINE}agent: {_LINE}user: {_LINE}"
    "topics: \\[([^\"'\n\r\ud800-\udfff]*)]\n---\n"
)
_OPENING = re.compile("\ufeff?---[ \t]*(\r?\n)")
_CLOSING = re.compile("^---[ \t]*(?:\r?\n|\\Z)", re.MULTILINE)
_SINGLE_QUOTED = re.compile(r"'[^']*(?:''[^']*)*'")
# One item of a list. Each way of reading begins where the item does and ends where it must, so
# that no character is looked at again for every other one; white space is stripped afterwards.
_ITEM = re.compile(
    rf"""\s*(?:("[^"\\]*(?:\\.[^"\\]*)*"|{_SINGLE_QUOTED.pattern})\s*(?:,|$)|([^,]*)(?:,|$))"""
)


def parse(text: str) -> Memory:
    """Return the memory that a file's text states.

    Raises:
        MalformedFile: it is not a memory's text; `problems` lists all that is wrong.
    """
    usual = _USUAL.match(text)
    if usual and usual.end() <= MAX_HEAD:
        memory_id, timestamp, agent, user, topics = map(str.strip, usual.groups())
        words = tuple(filter(None, map(str.strip, topics.split(","))))
        if problems := _too_long(memory_id, timestamp):
            raise MalformedFile(problems)
        return Memory(memory_id, timestamp, agent, user, words, text[usual.end() :].strip())
    opening = _OPENING.match(text)
    if not opening:
        raise MalformedFile(["the first line is not ---"])
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        raise MalformedFile(["no second line --- closes the frontmatter"])
    if closing.end() > MAX_HEAD:
        raise MalformedFile([f"the frontmatter is longer than {MAX_HEAD:,} characters"])
    entries, extra = _entries(text[opening.end() : closing.start()])
    values, problems = _values(entries)
    problems = problems or _too_long(values["id"], values["timestamp"])
    if problems:
        raise MalformedFile(problems)
    body = text[closing.end() :]
    if values.pop("verbatim", "") == "true":
        content = body.removeprefix(opening[1]).removesuffix(opening[1])
    else:
        content = body.strip()
    return Memory(**values, content=content, extra=extra)


def _too_long(memory_id: str, timestamp: str) -> list[str]:
    """Return what is wrong with the two fields that may be any text, and that `think` gives out."""
    limits = (("id", memory_id, MAX_ID), ("timestamp", timestamp, MAX_TIMESTAMP))
    return [
        f"{name} is longer than {most} characters"
        for name, text, most in limits
        if len(text) > most
    ]


def _entries(head: str) -> tuple[dict[str, list[str]], tuple[str, ...]]:
    """Sort the frontmatter's lines: those of each field, and the rest in order.

    An entry is a line and the lines that continue it: indented, blank, or items of a list.
    """
    entries: list[list[str]] = []
    for line in (raw.rstrip("\r") for raw in head.split("\n")):
        continues = not line.strip() or line[0] in " \t" or line == "-" or line.startswith("- ")
        if not (entries and continues):
            entries.append([line])
        else:
            entries[-1].append(line)
    fields: dict[str, list[str]] = {}
    extra: list[str] = []
    for entry in entries:
        key, colon, _ = entry[0].partition(":")
        if colon and key.strip() in (*_FIELDS, "verbatim"):
            fields[key.strip()] = entry
        else:
            extra += entry
    while extra and not extra[-1].strip():
        extra.pop()
    return fields, tuple(extra)


def _values(entries: dict[str, list[str]]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems = [f"no field {field!r}" for field in _FIELDS if field not in entries]
    for field, entry in entries.items():
        value = _list(entry) if field == "topics" else _text(entry)
        if value is None:
            problems.append(f"{field} is not {'a list of words' if field == 'topics' else 'text'}")
        elif _SURROGATE.search("".join(value)):
            problems.append(f"{field} holds half of a surrogate pair")
        elif field in ("id", "timestamp") and not value:
            problems.append(f"{field} is empty")
        values[field] = value
    return values, problems


def _text(entry: list[str]) -> str | None:
    value = _yaml(entry) if _continued(entry) else _unquoted(_after_colon(entry))
    return value if isinstance(value, str) else None


def _list(entry: list[str]) -> tuple[str, ...] | None:
    value = _after_colon(entry)
    if not _continued(entry):
        inner = value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value
        items = (match[1] or match[2].rstrip() for match in _ITEM.finditer(inner))
        return tuple(filter(None, map(_unquoted, items)))
    loaded = _yaml(entry)
    if not isinstance(loaded, list) or not all(isinstance(item, str) for item in loaded):
        return None
    return tuple(loaded)


def _after_colon(entry: list[str]) -> str:
    return entry[0].partition(":")[2].strip()


def _continued(entry: list[str]) -> bool:
    return any(line.strip() for line in entry[1:])


def _unquoted(value: str) -> str:
    """Read a quoted scalar as YAML does; what is not one stands for itself."""
    if value[:1] not in ("'", '"'):
        return value
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            text = json.loads(value)
        except ValueError:
            text = _load_yaml(value)
        return text if isinstance(text, str) else value
    if _SINGLE_QUOTED.fullmatch(value):
        return value[1:-1].replace("''", "'")
    return value


def _yaml(entry: list[str]) -> object:
    loaded = _load_yaml("\n".join([f"value:{entry[0].partition(':')[2]}", *entry[1:]]))
    return loaded.get("value") if isinstance(loaded, dict) else None


def _load_yaml(text: str) -> object:
    """Load with every scalar as text, so that nothing is guessed and nothing is executed."""
    import yaml  # noqa: PLC0415 (only files by other hands need it)

    try:
        return yaml.load(text, yaml.BaseLoader)  # noqa: S506 (BaseLoader makes only text and lists)
    except (yaml.YAMLError, RecursionError):
        return None
