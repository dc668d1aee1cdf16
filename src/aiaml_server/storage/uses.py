"""What agents asked for: a log beside the index, written behind the answers.

It tells when a tool was used, by which client, with which keywords, and which memories' ids it
answered with; never what a memory says. Servers of one directory append to one file, each its own
lines in one piece; at `MOST` bytes it becomes the older of two.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any

from aiaml_server.errors import AiamlError, Nowhere
from aiaml_server.files import (
    Lock,
    log_of,
    open_own,
    read_own,
    remove_own,
    replace_atomic,
    take_name,
)
from aiaml_server.moments import instant, present, timestamp
from aiaml_server.storage.derived import folder

MOST = 1024 * 1024  # bytes of one of the two files: some 2,500 questions
BEHIND_SECONDS = 0.3  # between an answer and its line, for others to join it
TOOLS = ("think", "recall", "shown", "asked")
_PATIENCE = 1.0  # seconds for another process that shortens the log
_FILE, _OLDER, _LOCK = "uses.jsonl", "uses-older.jsonl", "uses.lock"
_KEYWORDS, _LETTERS, _IDS = 32, 80, 100  # of each use that are noted


@dataclass(frozen=True)
class Use:
    """One use of a tool.

    Attributes:
        at: when, ISO 8601 in UTC.
        client: the name that the client gave itself.
        tool: "think" or "recall"; "shown" where a hook told of memories by itself, "asked" where
            it asked to store what matters.
        keywords: what was looked for; at most the first 32, of 80 characters each.
        ids: of the memories in the answer, at most 100.
    """

    at: str
    client: str
    tool: str
    keywords: tuple[str, ...]
    ids: tuple[str, ...]

    @classmethod
    def now(cls, client: str, tool: str, keywords: Iterable[str], ids: Iterable[str]) -> Use:
        """Return a use of this moment, with as much of it as is noted."""
        at = timestamp(present(), "milliseconds")
        words = tuple(each[:_LETTERS] for each in islice(keywords, _KEYWORDS))
        return cls(at, client[:_LETTERS], tool, words, tuple(islice(ids, _IDS)))

    def line(self) -> bytes:
        """Return it as it stands in the log."""
        import json  # noqa: PLC0415 (who only looks for memories pays nothing for it)

        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def parsed(cls, line: bytes) -> Use | None:
        """Return what a line says; None where it is torn or foreign."""
        import json  # noqa: PLC0415 (see `line`)

        try:
            said = json.loads(line)
            found = cls(**{**said, "keywords": (*said["keywords"],), "ids": (*said["ids"],)})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        texts = (found.at, found.client, found.tool, *found.keywords, *found.ids)
        if not all(isinstance(each, str) for each in texts):
            return None
        return found if found.tool in TOOLS and instant(found.at) is not None else None


class Uses:
    """The log of one base directory. Every method is safe to call from any thread."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._waiting: deque[Use] = deque(maxlen=10_000)
        self._noted = threading.Event()
        self._ended = threading.Event()
        self._keeping = False
        self._summed: tuple[object, Summary] | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Write inside the `with` what is noted; elsewhere noting does nothing."""
        self._ended.clear()
        writer = threading.Thread(target=self._write_behind, name="uses", daemon=True)
        self._keeping = True
        writer.start()
        try:
            yield
        finally:
            self._keeping = False
            self._ended.set()
            self._noted.set()
            writer.join(_PATIENCE)

    def note(self, client: str, tool: str, keywords: Iterable[str], ids: Iterable[str]) -> None:
        """Note that a tool was used; nobody waits for a disk."""
        if self._keeping:
            self._waiting.append(Use.now(client, tool, keywords, ids))
            self._noted.set()

    def write(self, client: str, tool: str, keywords: Iterable[str], ids: Iterable[str]) -> None:
        """Note at once that a tool was used.

        Raises:
            Nowhere: nothing can be kept for this user.
            OSError: the disk refused.
        """
        if place := self._place():
            self._append(place, b"\n" + Use.now(client, tool, keywords, ids).line())

    def _write_behind(self) -> None:
        while not self._ended.is_set():
            self._noted.wait()
            self._ended.wait(BEHIND_SECONDS)
            self._noted.clear()
            lines = [self._waiting.popleft().line() for _ in range(len(self._waiting))]
            try:
                if lines and (place := self._place()):
                    # What a kill has torn ends where this begins.
                    self._append(place, b"\n" + b"".join(lines))
            except (AiamlError, OSError) as error:
                log_of(__name__).info("What was asked for is not noted: %s", error)

    def _place(self) -> Path | None:
        """Return the folder that it is in; None where there is none (no index was made yet).

        Raises:
            Nowhere: nothing can be kept for this user.
            OSError: something else has the folder's place.
        """
        with suppress(FileNotFoundError):
            place = folder(self._base)
            return place if place.is_dir() else None
        return None

    def _append(self, place: Path, data: bytes) -> None:
        lock = Lock(place / _LOCK)
        with ExitStack() as stack:
            if sys.platform == "win32":  # where two that append may write over each other
                stack.enter_context(lock.held(_PATIENCE))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            stream = stack.enter_context(FileIO(open_own(place / _FILE, flags), "a"))
            stream.write(data)
            full = stream.tell() > MOST
        if full:
            with lock.held(_PATIENCE) as hold:
                there = _stamp(place / _FILE)
                if (hold.had or hold.problem) and there and there[1] > MOST:  # no other did it
                    take_name(place / _FILE, place / _OLDER)

    @property
    def problem(self) -> str:
        """Why nothing is noted for this user; empty where it is."""
        try:
            self._place()
        except Nowhere as error:
            return str(error)
        return ""

    def _files(self) -> list[Path]:
        """Return both files, older first; none where nothing is kept."""
        try:
            place = self._place()
        except Nowhere:
            return []
        return [place / _OLDER, place / _FILE] if place else []

    def read(self) -> Iterator[Use]:
        """Return what was noted, oldest first.

        Raises:
            OSError: it is there and cannot be read.
        """
        for path in self._files():
            yield from filter(None, map(Use.parsed, _bytes(path).splitlines()))

    def summary(self) -> Summary:
        """Return all that was noted in sum; it is read again only where it has changed.

        Raises:
            OSError: it is there and cannot be read.
        """
        stamps = [_stamp(path) for path in self._files()]
        if not self._summed or self._summed[0] != stamps:
            self._summed = stamps, Summary.of(self.read())
        return self._summed[1]

    def forget(self, ids: Collection[str]) -> None:
        """Take out every line that names one of these memories.

        Raises:
            OSError: the disk refused.
        """
        if not (files := self._files()):
            return
        with Lock(files[0].with_name(_LOCK)).held(_PATIENCE):
            for path in files:
                lines = _bytes(path).splitlines(keepends=True)
                kept = [
                    line
                    for line in lines
                    if (use := Use.parsed(line)) and not set(use.ids).intersection(ids)
                ]
                if kept != lines:
                    replace_atomic(path, b"".join(kept), 0o600)

    def clear(self) -> None:
        """Delete all of it.

        Raises:
            OSError: the disk refused.
        """
        for path in self._files():
            remove_own(path)


def _bytes(path: Path) -> bytes:
    with suppress(FileNotFoundError):
        return read_own(path, 2 * MOST)
    return b""


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what differs once a log has grown or was replaced."""
    with suppress(OSError):
        status = path.lstat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return None


@dataclass
class Summary:
    """What a log says in sum.

    Attributes:
        since: the first use that is counted; empty for none.
        tools: how often each was used.
        clients: how often each client asked.
        recalled: how often each memory was recalled, by id.
        found: how often each was found by `think`.
        shown: how often each was shown by a hook.
        last: when each was last found or recalled.
        nothing: how often a question found nothing, by its keywords.
    """

    since: str = ""
    tools: Counter[str] = field(default_factory=Counter)
    clients: Counter[str] = field(default_factory=Counter)
    recalled: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)
    last: dict[str, str] = field(default_factory=dict)
    nothing: Counter[Sequence[str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, uses: Iterable[Use]) -> Summary:
        """Add up uses, which come oldest first."""
        total = cls()
        by_tool = {"think": total.found, "recall": total.recalled, "shown": total.shown}
        for use in uses:
            total.since = total.since or use.at
            total.tools[use.tool] += 1
            total.clients[use.client] += 1
            counted = by_tool.get(use.tool)
            for each in use.ids:
                total.last[each] = use.at
                if counted is not None:
                    counted[each] += 1
            if use.tool == "think" and not use.ids:
                total.nothing[use.keywords] += 1
        return total

    def uses_of(self, memory_id: str) -> dict[str, Any]:
        """Return how often a memory was `recalled` and `found`, and when `last`; None for never."""
        return {
            "recalled": self.recalled[memory_id],
            "found": self.found[memory_id],
            "last": self.last.get(memory_id),
        }


def since(uses: Iterable[Use], moment: int | None) -> Iterator[Use]:
    """Return the uses from a moment on, in microseconds since 1970; None for all."""
    return (use for use in uses if moment is None or (instant(use.at) or 0) >= moment)
