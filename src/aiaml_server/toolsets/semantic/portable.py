"""A memory in the default toolset's own format, which its export, import and git carry.

What that has no place for stands in lines of its own in the frontmatter (`priority: HIGH`), so that
the way there and back loses nothing.
"""

from __future__ import annotations

import json
import re

from aiaml_server.format import memory as files
from aiaml_server.frontmatter import format_scalar, parse_list, parse_text, split_entries
from aiaml_server.toolsets.semantic.memory import (
    LONGEST,
    LONGEST_CONTEXT,
    MOST_CONTEXTS,
    MOST_TAGS,
    PRIORITIES,
    SCOPES,
    SOURCES,
    Draft,
    Memory,
    instant_of,
)

AGENT = "semantic"
NOBODY = "me"  # whom a global memory is about: the format wants a name
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*")


def as_file(memory: Memory, uid: str, *, exchanged: bool = False) -> files.Memory:
    """Return a memory as the default toolset has it.

    Args:
        memory: the memory.
        uid: eight hexadecimal digits, its id there.
        exchanged: whether it is for `sync`: without how often it was used, and what for, and with
            its id once more, which is left where git makes a version a file of its own.
    """
    lines = {
        "scope": memory.scope,
        "priority": memory.priority,
        "category": memory.category,
        "source": memory.source,
        "path": memory.path,
        "updated": memory.updated_at if memory.updated_at != memory.created_at else None,
        "tagged": None if memory.tags else "no",
    }
    if exchanged:
        lines["origin"] = uid
    elif memory.access_count:
        lines["used"] = str(memory.access_count)
        lines["last-used"] = memory.last_accessed_at
    extra = [f"{name}: {format_scalar(value)}" for name, value in lines.items() if value]
    if memory.usage_contexts and not exchanged:
        extra.append(f"contexts: {json.dumps(memory.usage_contexts, ensure_ascii=False)}")
    topics = memory.tags or (memory.category or "memory",)
    user = memory.project_id or NOBODY
    return files.Memory(uid, memory.created_at, AGENT, user, topics, memory.content, tuple(extra))


def draft_of(one: files.Memory) -> Draft:
    """Return what is to be stored of a memory of the default toolset, or one of `as_file`.

    What it says that cannot be a memory's field is left out.
    """
    said = {each[0].partition(":")[0].strip(): each for each in split_entries("\n".join(one.extra))}

    def text(name: str) -> str:
        return (parse_text(said[name]) or "") if name in said else ""

    tags = () if text("tagged") == "no" else one.topics
    count = text("used")
    contexts = (parse_list(said["contexts"]) or ()) if "contexts" in said else ()
    created = instant_of(one.timestamp)
    scope, category = text("scope"), text("category")
    return Draft(
        one.content,
        tuple(filter(None, map(_line, tags)))[:MOST_TAGS],
        text("priority") if text("priority") in PRIORITIES else None,
        _line(category) or None,
        text("source") if text("source") in SOURCES else "import",
        text("path") or None,
        scope=scope if scope in SCOPES else None,
        created=created,
        updated=instant_of(text("updated")) or created,
        used=int(count) if count.isascii() and count.isdigit() and len(count) < 10 else 0,
        last_used=instant_of(text("last-used")),
        contexts=tuple(each[:LONGEST_CONTEXT] for each in contexts)[-MOST_CONTEXTS:],
    )


def origin(one: files.Memory) -> str:
    """Return the id of the memory that a file is of, its own or one of its versions."""
    said = next((each for each in one.extra if each.startswith("origin:")), "")
    return (parse_text([said]) if said else None) or one.id


def _line(text: str) -> str:
    """Return what a tag or category may be of a text; empty for nothing."""
    is_one = _PLAIN.fullmatch(text)
    short = (text if is_one else " ".join(text.split())).strip()[:LONGEST].strip()
    return short if _PLAIN.fullmatch(short) else ""
