"""What an import will do: notes become memories, and what the bank has is left out.

An imported note's memory says where it comes from, in two lines of its frontmatter:

    imported-from: "obsidian:vault/Recipes/Bread.md"
    imported-digest: "text:5d41402abc4b2a76"

The digest is of the note's text without its name. A note whose digest the bank has for the same
place is there already; and so is one for whose text the bank knows a place where nothing is any
more: it was renamed. A note whose digest is new at a place that the bank knows has changed since it
was imported. Earlier versions took the digest of the content, with the name in it, and wrote it
without `text:`; so it is still for kinds whose notes have no name beside their text.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

from aiaml_server.errors import InvalidInput, MalformedFile
from aiaml_server.exchange.found import Found, Kept, Note, Skip, label, printable
from aiaml_server.format.memory import (
    MAX_CONTENT,
    MAX_TOPIC,
    MAX_TOPICS,
    Memory,
    format,  # noqa: A004 (the word for it)
    parse,
)
from aiaml_server.storage.store import MAX_FILE

_MOST_PLACES = 100  # of one text that are looked for on the disk
_OWN_ID = re.compile(r"[0-9a-f]{8}")
_SOURCE = "imported-from: "
_DIGEST = "imported-digest: "


@dataclass(frozen=True)
class Addition:
    """A memory to be added.

    Attributes:
        place: where in the source it stands.
        memory: as it will be stored.
        remark: what a person should know about it; mostly nothing.
    """

    place: str
    memory: Memory
    remark: str = ""


@dataclass
class Plan:
    """What becomes of all that was found.

    Attributes:
        additions: what will be added, in the order of the source.
        there: places of what the bank has already.
        changed: places of notes that are not as they were when they were imported.
        renamed: of what the bank has, the place now and the one before.
        partly: of the additions, what is not taken of them.
        skips: what cannot become a memory.
    """

    additions: list[Addition] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    partly: list[Skip] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)


class Planner:
    """Decides about one note after the other, knowing the bank and what was decided before."""

    def __init__(self, existing: Iterable[Memory], user: str, *, changed: bool = False) -> None:
        """Learn what the bank has.

        Args:
            existing: every memory of the bank.
            user: whom the notes are about.
            changed: whether notes that changed since they were imported are added once more.
        """
        self.plan = Plan()
        self._user = user
        self._add_changed = changed
        self._ids: set[str] = set()
        self._fingerprints: set[bytes] = set()
        self._places: dict[str, dict[str, None]] = {}  # of a digest: where it was imported from
        self._stands = cache(_stands)  # the disk is asked once
        self._has_contents = False  # whether there are digests of contents among these
        self._sources: set[str] = set()  # those of the bank
        self._contents: set[tuple[str, str]] = set()  # digests of text and content
        for memory in existing:
            self._learn(memory)
            self._sources.update(line for line in memory.extra if line.startswith(_SOURCE))

    def _learn(self, memory: Memory) -> None:
        self._ids.add(memory.id)
        self._fingerprints.add(_fingerprint(memory))
        for digest in (line for line in memory.extra if line.startswith(_DIGEST)):
            places = [_place(line) for line in memory.extra if line.startswith(_SOURCE)]
            self._places.setdefault(digest, {}).update(dict.fromkeys(places))
            self._contents.add((digest, _digest(memory.content)))
            self._has_contents |= not digest.startswith(f'{_DIGEST}"text:')

    def consider(self, found: Iterable[Found]) -> None:
        """Decide about each, and note it in `plan`."""
        for each in found:
            if isinstance(each, Skip):
                self.plan.skips.append(each)
            elif isinstance(each, Kept):
                self._consider_kept(each)
            else:
                self._consider_note(each)

    def _consider_note(self, note: Note) -> None:
        try:
            memory = _memory_of(note, self._user)
        except InvalidInput as error:
            self.plan.skips.append(Skip(note.place, error.reason))
            return
        source, digest = memory.extra[:2]
        if self._is_there(note, digest, _digest(memory.content)):
            self.plan.there.append(note.place)
        elif source in self._sources and not self._add_changed:
            self.plan.changed.append(note.place)
        else:
            self._add(note.place, memory)
            self.plan.partly += [Skip(note.place, each) for each in note.lost]

    def _is_there(self, note: Note, digest: str, content: str) -> bool:
        """Say whether the bank has a note, be it under another name."""
        known = _line(note.former or note.content) if self._has_contents else ""
        earlier = self._places.get(known)
        if earlier is not None and (
            note.place in earlier
            or not all(self._stands(place, note.below) for place in islice(earlier, _MOST_PLACES))
        ):
            return True  # imported by an earlier version, or of a kind that names no text
        places = self._places.get(digest, {})
        if note.place in places or (digest, content) in self._contents:
            return True
        for place in islice(places, _MOST_PLACES):
            if self._stands(place, note.below) is False:
                del places[place]
                self.plan.renamed.append((note.place, place))
                return True
        return False

    def _consider_kept(self, kept: Kept) -> None:
        memory = kept.memory
        problem = _unfit(memory)
        if problem:
            self.plan.skips.append(Skip(kept.place, problem))
        elif _OWN_ID.fullmatch(memory.id) and memory.id not in self._ids:
            self._add(kept.place, memory)
        elif _fingerprint(memory) in self._fingerprints:
            self.plan.there.append(kept.place)
        else:
            taken = memory.id in self._ids
            why = "is that of another memory" if taken else "is none of eight hexadecimal digits"
            self._add(kept.place, memory, f"a new id: {memory.id[:40]!r} {why}")

    def _add(self, place: str, memory: Memory, remark: str = "") -> None:
        while memory.id in self._ids or not _OWN_ID.fullmatch(memory.id):
            memory = memory.with_new_id()
        self._learn(memory)
        self.plan.additions.append(Addition(place, memory, remark))


def _stands(place: str, below: Path | None) -> bool | None:
    """Say whether a place is in a source still, a folder; None for one of another source."""
    top = f"{label(below)}/" if below else ""
    if not below or not place.startswith(top):
        return None
    name = place.removeprefix(top)
    ways = (name, name.partition("#")[0], name.rpartition("#")[0])
    return any(os.path.lexists(below / each) for each in ways if each)


def _place(line: str) -> str:
    """Return the place that a line of the frontmatter names, without its kind."""
    with suppress(ValueError, RecursionError):
        source = json.loads(line.removeprefix(_SOURCE))
        return source.partition(":")[2] if isinstance(source, str) else ""
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _line(text: str, about: str = "") -> str:
    return f'{_DIGEST}"{about}{_digest(text)}"'


def _fingerprint(memory: Memory) -> bytes:
    """Return what is the same for memories that are alike but for their id."""
    return hashlib.sha256(repr(replace(memory, id="")).encode("utf-8", "replace")).digest()


def _unfit(memory: Memory) -> str:
    """Say why a memory could not be kept exactly as it is."""
    try:
        text = format(memory)
        if len(text.encode()) > MAX_FILE:
            return f"it is larger than {MAX_FILE // 1024 // 1024} MiB"
        return "" if parse(text) == memory else "it would not be the same when read again"
    except MalformedFile as error:
        return str(error)
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair, which is no text"


# --- a note as a memory -----------------------------------------------------------------------


def _memory_of(note: Note, user: str) -> Memory:
    if (
        len(note.content) > MAX_CONTENT // 4
        and len(note.content.encode(errors="replace")) > MAX_CONTENT
    ):
        reason = "it is larger than 1 MiB; `--split heading` makes a memory of each section"
        raise InvalidInput("content", reason)
    memory = Memory.new(note.agent, note.user or user, _topics(note), note.content)
    source = json.dumps(f"{note.kind}:{printable(note.place)}")
    digest = _line(note.said, "text:") if note.said else _line(note.content)
    return replace(
        memory, timestamp=note.timestamp, extra=(f"{_SOURCE}{source}", digest, *note.extra)
    )


def _topics(note: Note) -> list[str]:
    pieces = (word for topic in note.topics for word in re.split(r"[\s,]+", topic))
    topics = dict.fromkeys(piece.strip("[]") for piece in pieces)
    fit = [each for each in topics if 0 < len(each) <= MAX_TOPIC and each.isprintable()]
    return fit[:MAX_TOPICS] or [note.kind]
