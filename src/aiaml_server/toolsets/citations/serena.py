"""Takes over what Serena has noted: file for file, byte for byte; the originals stay."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.citations.citing import recorded
from aiaml_server.toolsets.citations.failures import InvalidCitation, MalformedMemory, NoRepository
from aiaml_server.toolsets.citations.memories import Memories
from aiaml_server.toolsets.citations.model import (
    LONGEST_SUBJECT,
    PREFIX,
    Citation,
    Link,
    Memory,
    instant,
    is_id,
)
from aiaml_server.toolsets.citations.sources import Sources
from aiaml_server.toolsets.citations.store import MAX_FILE
from aiaml_server.toolsets.citations.writing import block
from aiaml_server.toolsets.git import ask

DIRECTORY = ".serena/memories"
_REFERENCE = re.compile(r"\bmem:([A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*)")
_LINK = re.compile(r"\]\(<?([^()<>\s]+?\.md)(?:#[^()<>\s]*)?>?(?:[ \t]+\"[^\"\n]*\")?\)")
_MENTION = re.compile(
    r"(?<![\w/.:@-])((?:[\w.-]{1,64}/){0,16}[\w.-]{1,64}\.[A-Za-z]\w{0,9}):(\d{1,6})(?![\w:])"
)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+")


class Note(NamedTuple):
    """One of Serena's memories.

    Attributes:
        name: its path below the directory, without the ending.
        data: its bytes.
        created: the time of its first commit, or of its last change.
        source: its path as it is noted in the new memory.
    """

    name: str
    data: bytes
    created: str
    source: str


class Taken(NamedTuple):
    """What becomes of a note.

    Attributes:
        id: the new memory's id.
        note: the note.
        text: the whole new file; empty where the memory is there already.
        links: how many links it has.
        citations: how many citations it has.
        dead: what leads nowhere: line and target.
        differs: whether the memory that is there has another text than the note today.
    """

    id: str
    note: Note
    text: str
    links: int
    citations: int
    dead: Sequence[tuple[int, str]]
    differs: bool = False


class Plan(NamedTuple):
    """What an import would do.

    Attributes:
        taken: each note, in order of the names.
        skipped: what is no memory of Serena's, or cannot be read: path and why.
    """

    taken: list[Taken]
    skipped: list[tuple[str, str]]


def plan(memories: Memories, directory: Path | None = None) -> Plan:
    """Say what becomes of each of Serena's memories.

    Args:
        memories: where they are to go.
        directory: where they are; `.serena/memories` in the repository where None.

    Raises:
        NoRepository: there is no such directory.
    """
    top = memories.root / DIRECTORY if directory is None else directory
    if not top.is_dir():
        raise NoRepository(f"{top} is no directory; name the one that holds Serena's memories")
    skipped: list[tuple[str, str]] = []
    notes = {each.name: each for each in _notes(memories.root, top, skipped)}
    ids = _ids(sorted(notes))
    sources = Sources(memories.root)
    texts = (each.data.decode("utf-8") for each in notes.values())
    sources.ask_about(path for text in texts for path, _ in _MENTION.findall(text))
    there = set(memories.store.ids())
    taken = []
    for name, note in sorted(notes.items()):
        if ids[name] in there:
            taken.append(Taken(ids[name], note, "", 0, 0, (), _differs(memories, ids[name], note)))
        else:
            taken.append(_taken(note, ids, top, sources))
    return Plan(taken, skipped)


def apply(memories: Memories, planned: Plan) -> None:
    """Write the new memories.

    Raises:
        Busy, DiskError: see there; what was written stays, and the next run goes on.
    """
    with memories.store.writing():
        there = set(memories.store.ids())
        for each in planned.taken:
            if each.text and each.id not in there:
                memories.store.put(each.id, each.text)


def _notes(root: Path, top: Path, skipped: list[tuple[str, str]]) -> Iterator[Note]:
    """Read the notes; links to directories are followed where they stay in the directory's tree."""
    bound = os.path.realpath(root if top.is_relative_to(root) else top)
    times = _first_commits(root, top)
    seen: set[str] = set()
    for place, folders, names in os.walk(top, followlinks=True):
        folders.sort()
        real = os.path.realpath(place)
        if real in seen or not Path(real).is_relative_to(bound):
            folders.clear()
            if real not in seen:
                skipped.append((_below(top, place), "a link that leads elsewhere"))
            continue
        seen.add(real)
        for name in sorted(names):
            path = Path(place) / name
            below = _below(top, path)
            if not name.endswith(".md") or name.startswith("."):
                continue
            try:
                data = read_regular(os.path.join(real, name), MAX_FILE - 64 * 1024)  # noqa: PTH118
                data.decode("utf-8")
            except UnicodeDecodeError:
                skipped.append((below, "it is not UTF-8"))
            except (OSError, MalformedFile) as error:
                skipped.append((below, str(error)))
            else:
                changed = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
                created = times.get(below) or f"{changed:%Y-%m-%dT%H:%M:%SZ}"
                source = f"{DIRECTORY}/{below}" if top == root / DIRECTORY else below
                yield Note(below.removesuffix(".md"), data, created, source)


def _below(top: Path, path: str | Path) -> str:
    return Path(path).relative_to(top).as_posix()


def _first_commits(root: Path, top: Path) -> dict[str, str]:
    """Return when git first had each file; nothing where there is no git."""
    words = (
        *("-C", os.fspath(top), "-c", "log.showSignature=false"),
        *("log", "--diff-filter=A", "--no-renames"),
        *("--name-only", "--relative", "-z", "--format=format:%x01%aI", "--", "."),
    )
    done = ask(os.fspath(root), *words) if (root / ".git").exists() else None
    if not done or done.returncode:
        return {}
    found: dict[str, str] = {}
    for commit in done.stdout.decode("utf-8", "replace").split("\x01")[1:]:
        stamp, _, names = commit.partition("\n")
        then = instant(stamp.strip("\0"))
        for name in names.split("\0") if then else ():
            assert then  # noqa: S101
            found[name.strip("\n")] = f"{then.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    return found


def _ids(names: Sequence[str]) -> dict[str, str]:
    """Return an id for each name: `topic/name` becomes `mem-topic.name`."""
    plain = {
        name: PREFIX + re.sub(r"[^A-Za-z0-9_.-]", "-", name.replace("/", ".")) for name in names
    }
    folded = [each.lower() for each in plain.values()]
    ids = {}
    for name, each in plain.items():
        clear = re.fullmatch(r"[A-Za-z0-9_/-]+", name) and folded.count(each.lower()) == 1
        if not (clear and is_id(each)):
            mark = hashlib.sha256(name.encode()).hexdigest()[:8]
            each = f"{re.sub(r'[^A-Za-z0-9]+$', '', each[:80])}-{mark}"  # noqa: PLW2901
        ids[name] = each if is_id(each) else f"{PREFIX}{mark}"
    return ids


def _taken(note: Note, ids: dict[str, str], top: Path, sources: Sources) -> Taken:
    text = note.data.decode("utf-8")
    dead: list[tuple[int, str]] = []
    links: dict[Link, None] = {}
    citations: dict[Citation, None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for target in _targets(line, note.name, top):
            if target in ids:
                links[Link("references", ids[target])] = None
            else:
                dead.append((number, target))
        for path, cited in _MENTION.findall(line):
            with suppress(InvalidCitation):
                kept, warnings = recorded(Citation(path, int(cited)), sources)
                if not warnings:
                    citations[kept] = None
                    continue
            dead.append((number, f"{path}:{cited}"))
    memory = Memory(
        id=ids[note.name],
        subject=_subject(text, note.name),
        content="",
        created=note.created,
        citations=tuple(citations),
        links=tuple(links),
        tags=tuple(dict.fromkeys(note.name.split("/")[:-1])),
    )
    stated = {**memory.stated(), "source": note.source}
    head = [line for key, value in stated.items() for line in block(key, value)]
    whole = "\n".join(["---", *head, "---", "", text])
    return Taken(memory.id, note, whole, len(links), len(citations), dead)


def _targets(line: str, name: str, top: Path) -> Iterator[str]:
    """Yield the names of the notes that a line refers to, whether or not they are there."""
    yield from _REFERENCE.findall(line)
    for link in _LINK.findall(line):
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|/", link):
            continue
        path = os.path.normpath(f"{os.path.dirname(name)}/{link}".lstrip("/"))  # noqa: PTH120
        path = path.replace(os.sep, "/")
        if path.startswith("../"):
            if (top / path).is_file():  # another file of the repository
                continue
            yield path
        else:
            yield path.removesuffix(".md")


def _subject(text: str, name: str) -> str:
    """Return the first line that says something, as a heading says it."""
    for line in text.removeprefix("\ufeff").splitlines():
        said = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", _HEADING.sub("", line)).split())
        if re.search(r"\w", said):
            if len(said) > LONGEST_SUBJECT:
                said = f"{said[: LONGEST_SUBJECT - 1].rpartition(' ')[0] or said[:60]}…"
            return said
    return name[-LONGEST_SUBJECT:]


def _differs(memories: Memories, memory_id: str, note: Note) -> bool:
    """Say whether the memory that is there has another text than the note."""
    try:
        document = memories.store.document(memory_id)
    except MalformedMemory:
        return True
    return document.text[document.body :].removeprefix("\n") != note.data.decode("utf-8")
