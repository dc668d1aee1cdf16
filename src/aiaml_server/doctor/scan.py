"""One reading of all files: what is wrong with any, and what the literal scan answers."""

# ruff: noqa: S311 (a sample is no secret)
from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from aiaml_server.errors import MalformedFile
from aiaml_server.format.invisible import invisible_in
from aiaml_server.format.memory import MAX_CONTENT, MAX_TOPICS, NAMED, Memory
from aiaml_server.format.scorer import MAX_HITS, Hit, clean, fields, hit, ordered
from aiaml_server.storage.store import Store
from aiaml_server.terminal import progress
from aiaml_server.timestamps import parse_timestamp

_QUESTIONS = 8
_SOURCES = 24  # memories that questions are made of
_LENGTH = 100  # characters of a word that are asked for
_SHOWN = 5  # different invisible characters of a memory

Question = tuple[str, ...]


@dataclass
class FileScan:
    """What a reading showed.

    Attributes:
        names: the files that are memories.
        size: of these, in bytes.
        malformed: other files with a memory's name, and why each is none.
        ids: each id, and the files that carry it.
        misnamed: files whose name has another id than the file, with the latter.
        large: files that hold more than `remember` takes.
        foreign: files that belong to another user.
        invisible: files that hold invisible characters, each with some of them as code points.
        crowded: files with more topics than `remember` takes, each with their number.
        newest: the latest moment (microseconds since 1970), and its file.
        answers: questions, and the literal scan's answer to each.
    """

    names: set[str] = field(default_factory=set)
    size: int = 0
    malformed: dict[str, str] = field(default_factory=dict)
    ids: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    misnamed: dict[str, str] = field(default_factory=dict)
    large: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    invisible: dict[str, str] = field(default_factory=dict)
    crowded: dict[str, int] = field(default_factory=dict)
    newest: tuple[int, str] = (0, "")
    answers: dict[Question, list[Hit]] = field(default_factory=dict)

    def note(self, name: str, memory: Memory) -> None:
        """Take a memory in."""
        self.names.add(name)
        self.ids[memory.id].append(name)
        named = NAMED.fullmatch(name)
        if named and named[1] != memory.id:
            self.misnamed[name] = memory.id
        if len(memory.content) > MAX_CONTENT // 4 and len(memory.content.encode()) > MAX_CONTENT:
            self.large.append(name)
        head = (memory.id, memory.timestamp, memory.agent, memory.user, *memory.topics)
        if characters := invisible_in("\n".join((name, *head, memory.content))):
            self.invisible[name] = " ".join(characters[:_SHOWN])
        if len(memory.topics) > MAX_TOPICS:
            self.crowded[name] = len(memory.topics)
        self.newest = max(self.newest, (parse_timestamp(memory.timestamp) or 0, name))
        searched = fields(memory)
        for question, hits in self.answers.items():
            if found := hit(name, memory.id, memory.timestamp, searched, question):
                hits.append(found)
                if len(hits) > 40 * MAX_HITS:
                    hits[:] = ordered(hits)[:MAX_HITS]

    def stat(self, path: str) -> None:
        """Take in what the system says of a memory's file."""
        status = os.lstat(path)
        self.size += status.st_size
        if os.name == "posix" and status.st_uid != os.geteuid():
            self.foreign.append(os.path.basename(path))  # noqa: PTH119 (100,000 of them)


def look(store: Store) -> FileScan:
    """Read every file of a store.

    Raises:
        StoreError: the directory cannot be listed.
    """
    names = sorted(store.names())
    scan = FileScan(answers={question: [] for question in _questions(store, names)})
    for name in progress(names, "reading"):
        with suppress(FileNotFoundError):
            try:
                scan.note(name, store.read(name))
                scan.stat(f"{store.directory}{os.sep}{name}")
            except MalformedFile as error:
                scan.malformed[name] = str(error)
    for question, hits in scan.answers.items():
        scan.answers[question] = ordered(hits)[:MAX_HITS]
    return scan


def _questions(store: Store, names: list[str]) -> Iterator[Question]:
    """Make questions of what stands in some of the memories."""
    words: list[str] = []
    phrases: list[str] = []
    for name in random.sample(names, min(_SOURCES, len(names))):
        with suppress(FileNotFoundError, MalformedFile):
            memory = store.read(name)
            words += [*memory.topics, *random.choices(memory.content.split() or [""], k=2)]
            start = random.randrange(len(memory.content) + 1)
            phrases.append(memory.content[start : start + 12])
    for number in range(_QUESTIONS if words else 0):
        some = random.sample(words, min(number % 4 + 1, len(words)))
        yield tuple(clean(word[:_LENGTH] for word in (*some, *random.sample(phrases, number % 2))))
