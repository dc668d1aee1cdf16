"""Convert memories, versions, counts and the sync status to JSON for the page."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import JSONResponse

from aiaml_server.format.invisible import invisible_in, marked, marked_line
from aiaml_server.format.memory import Memory, parse
from aiaml_server.rendering import LINK, title, unified_diff
from aiaml_server.rendering.html import safe_html
from aiaml_server.sync import Status
from aiaml_server.sync.history import Version
from aiaml_server.timestamps import format_timestamp, to_local

_TITLE_CHARACTERS = 120
_EXCERPT_CHARACTERS = 200
_BEFORE_MATCH = 40  # characters
_MARKUP = re.compile(r"^\s*(?:```|~~~).*|[*`#>|~]+|^\s*[-+] (?:\[[ xX]\] )?", re.MULTILINE)
_MAX_DAYS = 45  # that the chart shows one by one
_MAX_MONTHS_SPAN = 4 * 365  # days, up to which the chart shows months
_YEAR_2100 = 4_102_444_800_000_000  # later timestamps are mistakes, and would flatten the chart


class Json(JSONResponse):
    """A JSON answer in ASCII, because a file name may hold bytes that are not UTF-8."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json.dumps(content).encode()


def version_of(text: str) -> str:
    """Return what identifies a version of a file, for `If-Match`."""
    return hashlib.sha256(text.encode()).hexdigest()


# --- memories -------------------------------------------------------------------------------------


def summary(name: str, memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory in a list. Invisible characters are marked."""
    return {
        "file": name,
        "id": marked_line(memory.id),
        "timestamp": marked_line(memory.timestamp),
        "agent": marked_line(memory.agent),
        "user": marked_line(memory.user),
        "topics": [marked_line(topic) for topic in memory.topics],
        "title": marked_line(_cut(title(memory.content), _TITLE_CHARACTERS)),
    }


def hit(name: str, memory: Memory, words: Collection[str]) -> dict[str, Any]:
    """Return a memory as the list of search results shows it.

    Args:
        name: the name of its file.
        memory: the memory.
        words: what was found, in lower case. It is to be highlighted.
    """
    lower = "\n".join((memory.content, *memory.topics)).lower()
    found = sorted(word for word in words if word in lower)
    return {**summary(name, memory), "excerpt": _excerpt(memory.content, found), "words": found}


def whole(name: str, text: str) -> dict[str, Any]:
    """Return a memory to read and to edit.

    Raises:
        MalformedFile: the text is not a memory's.
    """
    memory = parse(text)
    return {
        **summary(name, memory),
        "html": safe_html(memory.content),
        "text": text,
        "version": version_of(text),
        "invisible": invisible_in(text),
    }


def _excerpt(content: str, words: Sequence[str]) -> str:
    """Return the text around the first word, or the text after the title."""
    plain = " ".join(_MARKUP.sub("", LINK.sub(r"\1", content)).split())
    lower = plain.lower()
    places = [place for place in map(lower.find, words) if place >= 0]
    start = min(places, default=0)
    if start > _EXCERPT_CHARACTERS // 2:
        start = plain.rfind(" ", 0, start - _BEFORE_MATCH) + 1
        return marked_line("…" + _cut(plain[start:], _EXCERPT_CHARACTERS))
    rest = plain.removeprefix(_MARKUP.sub("", title(content)))
    return marked_line(_cut(rest.strip(), _EXCERPT_CHARACTERS))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


# --- versions -------------------------------------------------------------------------------------


def version_summary(version: Version) -> dict[str, Any]:
    """Return the fields of a version in a list."""
    return {
        "commit": version.commit,
        "timestamp": format_timestamp(version.time * 1_000_000, "seconds"),
        "author": marked_line(version.author),
        "action": version.action,
    }


def version_whole(version: Version, before: str, after: str) -> dict[str, Any]:
    """Return a version with its text and what it changed, as lines of a unified diff."""
    return {
        **version_summary(version),
        "text": after or before,
        "diff": [marked(line) for line in unified_diff(before, after)],
    }


# --- counts and status ----------------------------------------------------------------------------


def bars(made: Sequence[int]) -> list[tuple[str, int]]:
    """Return the bars of the chart: a day, month or year (ISO 8601), and how many memories it has.

    Args:
        made: when the memories were made, in microseconds since 1970, ascending.
    """
    times = [to_local(micros) for micros in made if 0 <= micros < _YEAR_2100]
    days = [time.date() for time in times if time]
    if not days:
        return []
    span = (days[-1] - days[0]).days
    length = len("2026-01-31")
    if span > _MAX_DAYS:
        length = len("2026-01") if span <= _MAX_MONTHS_SPAN else len("2026")
    counts = Counter(day.isoformat()[:length] for day in days)
    every_day = [days[0] + timedelta(number) for number in range(span + 1)]
    labels = dict.fromkeys(day.isoformat()[:length] for day in every_day)
    return [(label, counts[label]) for label in labels]


def sync_state(status: Status, *, sync: bool) -> str:
    """Return in a few words where the memories are kept."""
    if not sync:
        return "Sync is off"
    if held_back := len(status.needs_attention):
        return f"{held_back} not committed"
    if not status.remote:
        return "On this computer only"
    return f"{status.unsent} to send" if status.unsent else "Synced"


def sync_warnings(status: Status) -> list[str]:
    """Return warnings about sync, as sentences."""
    found = []
    if status.problem:
        found.append(f"{status.problem.sentence}. {status.problem.remedy}")
    if status.deletions_waiting:
        found.append(
            f"Deletions that wait: {status.deletions_waiting}. Run `aiaml sync` with --forget or "
            "--bring-back."
        )
    found += [
        f"Two versions of a memory were kept: {kept} and {copy}. Edit or forget one of them."
        for kept, copy in status.conflicts
    ]
    found += [
        f"{name} is not committed: {why.sentence}. {why.remedy}"
        for name, why in status.needs_attention.items()
    ]
    return [marked(sentence) for sentence in found]
