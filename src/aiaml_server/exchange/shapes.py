"""Memories as the bytes of one file: JSON Lines, a zip of their files, a bundle, a book."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from urllib.parse import quote

from aiaml_server.exchange.found import printable
from aiaml_server.files import read_regular
from aiaml_server.format.invisible import marked
from aiaml_server.format.memory import Memory
from aiaml_server.rendering import visible
from aiaml_server.storage.store import MAX_FILE
from aiaml_server.timestamps import format_minute, parse_timestamp

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def lines(memories: Iterable[Memory]) -> Iterator[bytes]:
    """Return the memories as JSON Lines, which `aiaml import` reads."""
    for memory in memories:
        yield line_of(memory).encode()


def line_of(memory: Memory) -> str:
    """Return the memory as one line of JSON; `jsonl.memories_in` gives the same memory back."""
    fields = {name: getattr(memory, name) for name in Memory.__dataclass_fields__}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def archive(directory: Path, names: Iterable[str]) -> bytes:
    """Return a zip of files, byte for byte; the same files always give the same zip.

    Raises:
        OSError: a file cannot be read.
        MalformedFile: a file is none any more.
    """
    inside = _named(names)
    return _packed(
        (f"files/{inside[name]}", read_regular(os.fspath(directory / name), MAX_FILE))
        for name in inside
    )


def bundle(found: Sequence[tuple[str, Memory]]) -> bytes:
    """Return a zip that is a bundle of the Open Knowledge Format, which `aiaml import` reads.

    Args:
        found: each memory with the name of its file.

    Raises:
        MalformedFile: a memory cannot be written so without loss.
    """
    from aiaml_server.exchange.okf import RESERVED, VERSION, concept  # noqa: PLC0415 (only this form's)

    inside = _named((name for name, _ in found), RESERVED)
    index = [f'---\nokf_version: "{VERSION}"\n---\n\n# Memories\n']
    for name, memory in sorted(found):
        topics = _plain(", ".join(memory.topics))
        index.append(f"* [{_plain(inside[name])}](memories/{quote(inside[name])}) - {topics}")
    files = [(RESERVED[0], "\n".join([*index, ""]).encode())]
    files += [(f"memories/{inside[name]}", concept(each).encode()) for name, each in sorted(found)]
    return _packed(files)


def _named(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return for each file's name, sorted, the one that it has in a zip."""
    inside: dict[str, str] = {}
    there = {*taken}
    for name in sorted(names):
        inside[name] = _portable(printable(name), there)
        there.add(inside[name].casefold())
    return inside


def _packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    import zipfile  # noqa: PLC0415 (only this needs it)

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files:
            entry = zipfile.ZipInfo(name)  # of 1980: the same bytes each time
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = 0o100600 << 16
            target.writestr(entry, data)
    return buffer.getvalue()


# What some system takes for a way to another directory, a drive, a stream or a device, or does not
# take at all (Windows: "Naming Files, Paths, and Namespaces").
_PARTS_OF_PATHS = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]')
_DEVICE = re.compile(
    r"(con|prn|aux|nul|com\d|lpt\d|com[¹²³]|lpt[¹²³]|conin\$|conout\$)(\s*\.|\s*$)", re.IGNORECASE
)


def _portable(name: str, taken: Collection[str]) -> str:
    """Return a file's name as every system takes it for just that, and for no other's.

    Args:
        name: the name here, which ends in `.md`.
        taken: the names given already, casefolded.
    """
    stem = _PARTS_OF_PATHS.sub("_", name).removesuffix(".md")
    if _DEVICE.match(stem):
        stem = f"_{stem}"
    again = (f"{stem}{f' ({number})' if number else ''}.md" for number in count())
    return next(each for each in again if each.casefold() not in taken)


# --- the book ---------------------------------------------------------------------------------


def book(memories: Sequence[Memory], *, by_topic: bool = False) -> Iterator[bytes]:
    """Return one markdown document to read or to print: contents, then the memories in chapters.

    A memory stands as a quotation, so that no heading, fence or comment in it reaches further; and
    as the text that it is, where a renderer would hide a word of it.
    """
    chapters = by_topics(memories) if by_topic else by_months(memories)
    number = "1 memory" if len(memories) == 1 else f"{len(memories):,} memories"
    months = " to ".join(dict.fromkeys((month(memories[0]), month(memories[-1]))))
    yield f"# Memories\n\n{number}, {months}.\n\n".encode()
    for at, (title, inside) in enumerate(chapters.items(), 1):
        yield f"- [{_plain(title)}](#chapter-{at}) ({len(inside)})\n".encode()
    for at, (title, inside) in enumerate(chapters.items(), 1):
        yield f'\n<a id="chapter-{at}"></a>\n\n## {_plain(title)}\n'.encode()
        for memory in map(visible, inside):
            about = f"{memory.agent}, about {memory.user}: {', '.join(memory.topics)} ({memory.id})"
            made = _plain(format_minute(memory.timestamp))
            yield f"\n### {made}\n\n{_plain(about)}\n\n{_quoted(memory.content)}\n".encode()


def _quoted(content: str) -> str:
    """Return a text as a quotation, or as it is written, where a renderer would hide some of it."""
    from aiaml_server.rendering.commonmark import is_shown_by_others  # noqa: PLC0415 (a tenth of a second)

    quoted = "\n".join(f"> {line}".rstrip() for line in content.strip().split("\n"))
    if is_shown_by_others(quoted):
        return quoted
    longest = max(map(len, re.findall("`+", content)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}\n{content.rstrip()}\n{fence}"


def _plain(text: str) -> str:
    """Return text on one line, `marked`, in which markdown sees no sign of its own."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!])", r"\\\1", " ".join(marked(text).split()))


# --- chapters ---------------------------------------------------------------------------------


def by_months(memories: Iterable[Memory]) -> Mapping[str, Sequence[Memory]]:
    """Group memories by their month, in the order in which they come."""
    months: dict[str, list[Memory]] = {}
    for memory in memories:
        months.setdefault(month(memory), []).append(memory)
    return months


def by_topics(memories: Iterable[Memory]) -> Mapping[str, Sequence[Memory]]:
    """Group memories by their first topic, in the order of the alphabet."""
    topics: dict[str, list[Memory]] = {}
    for memory in memories:
        topics.setdefault(memory.topics[0] if memory.topics else "no topic", []).append(memory)
    return dict(sorted(topics.items(), key=lambda each: each[0].casefold()))


def month(memory: Memory) -> str:
    """Return the month of a memory as a title: "October 2026"."""
    moment = format_minute(memory.timestamp)
    if not re.match(r"\d{4}-\d\d", moment) or parse_timestamp(memory.timestamp) is None:
        return "No date"
    return f"{_MONTHS[int(moment[5:7]) - 1]} {moment[:4]}"
