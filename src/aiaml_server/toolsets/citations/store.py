"""The directory of memories: one markdown file for each, read and written whole."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiaml_server.errors import MalformedFile
from aiaml_server.files import make_directory, read_regular, sync_directory
from aiaml_server.toolsets.citations.config import Config
from aiaml_server.toolsets.citations.conflicts import settled
from aiaml_server.toolsets.citations.effort import Effort
from aiaml_server.toolsets.citations.failures import (
    DiskError,
    InvalidInput,
    MalformedMemory,
    NotFound,
)
from aiaml_server.toolsets.citations.frontmatter import Document, read
from aiaml_server.toolsets.citations.lock import alone
from aiaml_server.toolsets.citations.model import PREFIX, Memory, is_id, memory
from aiaml_server.toolsets.citations.usual import read_usual
from aiaml_server.toolsets.citations.writing import block, updated
from aiaml_server.toolsets.failures import disk_error
from aiaml_server.toolsets.writing import clear_unfinished, replace

MAX_FILE = 1024 * 1024  # bytes
MAX_HEAD = 64 * 1024  # bytes of the frontmatter
LOCK_SECONDS = 10.0
NO_ID = "the name can be no memory's id; ids look like mem-topic-1a2b3c4d"
MOST_READ = 32 * 1024 * 1024  # bytes in one call, some of which weigh more
_MOST_FILES = 20_000
_FRESH = 50_000_000  # nanoseconds in which a file may change twice with the same stamp


class Scan(NamedTuple):
    """What a directory holds.

    Attributes:
        memories: by id, in order of the ids.
        broken: the files that are no memories, by name, with what is wrong; and the directory's
            name, where some were not read, with how many.
    """

    memories: dict[str, Memory]
    broken: dict[str, str]


class Store:
    """One repository's memories."""

    def __init__(self, root: Path, config: Config) -> None:
        """Take a repository's top directory; nothing is made.

        Raises:
            DiskError: the directory of memories leads out of the repository.
        """
        self.root = Path(os.path.realpath(root))
        self.directory = self.root / config.directory
        self._name, self._extension = config.directory, config.extension
        self._seen: dict[str, tuple[object, Memory, int]] = {}
        self._check_links()

    def _check_links(self) -> None:
        real = os.path.realpath(self.directory)
        if os.path.normcase(real) != os.path.normcase(self.directory):
            raise DiskError(f"{self._name} is, or lies behind, a link; it could lead outside")

    def path(self, memory_id: str) -> str:
        """Return a memory's path below the repository's top, with slashes."""
        return f"{self._name}/{memory_id}{self._extension}"

    def _file(self, memory_id: str) -> str:
        return f"{self.directory}{os.sep}{memory_id}{self._extension}"

    def ids(self) -> list[str]:
        """Return the ids of all files that may be memories, in order.

        Raises:
            DiskError: the directory cannot be read.
        """
        try:
            names = os.listdir(self.directory)  # noqa: PTH208 (four times as fast)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise disk_error(self._name, error) from error
        end = self._extension
        return sorted(
            name[: -len(end)] for name in names if name.startswith(PREFIX) and name.endswith(end)
        )

    def document(self, memory_id: str) -> Document:
        """Return a memory's file.

        Raises:
            NotFound: there is none.
            MalformedMemory: it is no memory.
            DiskError: it cannot be read.
        """
        text = self.text(memory_id)
        try:
            return read(text)
        except MalformedMemory as error:
            raise MalformedMemory(f"{self.path(memory_id)}: {error}") from error

    def text(self, memory_id: str, *, settle: bool = True) -> str:
        """Return what a memory's file says; unless it is to be as it is, with conflicts settled.

        Raises:
            NotFound: there is none.
            MalformedMemory: it is no text, or too long.
            DiskError: it cannot be read.
        """
        if not is_id(memory_id):
            raise NotFound(
                f"there is no memory {memory_id[:150]!r}; ids look like mem-topic-1a2b3c4d"
            )
        try:
            data = read_regular(self._file(memory_id), MAX_FILE)
        except (FileNotFoundError, NotADirectoryError):
            near = [each for each in self.ids() if each.startswith(memory_id)]
            hint = f"; did you mean {near[0]}?" if len(near) == 1 else ""
            raise NotFound(f"there is no memory {memory_id}{hint}") from None
        except MalformedFile as error:
            raise MalformedMemory(f"{self.path(memory_id)}: {error}") from error
        except OSError as error:
            raise disk_error(self.path(memory_id), error) from error
        if _head(data) > MAX_HEAD:
            raise MalformedMemory(f"{self.path(memory_id)}: {_LONG_HEAD}")
        try:
            text = data.decode("utf-8")
            return settled(text) if settle else text
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise MalformedMemory(f"{self.path(memory_id)}: line {line} is not UTF-8") from error

    def get(self, memory_id: str) -> Memory:
        """Return a memory; raises as `document` does."""
        return self.weighed(memory_id)[0]

    def weighed(self, memory_id: str) -> tuple[Memory, int]:
        """Return a memory, and what its head weighs, in bytes; raises as `document` does."""
        stamp = self._stamp(memory_id)
        known = self._seen.get(memory_id)
        if known and stamp and known[0] == stamp:
            return known[1:]
        text = self.text(memory_id)
        rate = _USUAL
        try:
            found = read_usual(text, memory_id)
            if found is None:
                document = read(text)
                rate = _FOREIGN if document.root.kind == "foreign" else _UNUSUAL
                found = memory(document, memory_id)
        except MalformedMemory as error:
            raise MalformedMemory(f"{self.path(memory_id)}: {error}") from error
        weight = rate * (len(text) - len(found.content))
        weight += _ENTRY * (len(found.citations) + len(found.links))
        if stamp:
            self._seen[memory_id] = (stamp, found, weight)
        return found, weight

    def _stamp(self, memory_id: str) -> object:
        """Return what changes when a file does; nothing where it may be changing now."""
        try:
            status = os.lstat(self._file(memory_id))
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode) or time.time_ns() - status.st_ctime_ns < _FRESH:
            return None
        return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)

    def scan(self, ids: Iterable[str] | None = None, *, times: int = 2) -> Scan:
        """Read all memories, or some: the smallest first, and no more than one call may.

        Args:
            ids: which.
            times: what a byte of a content weighs, by what is done with it then.

        Raises:
            DiskError: the directory cannot be read.
            NotFound: one that is named is not there.
        """
        memories: dict[str, Memory] = {}
        broken: dict[str, str] = {}
        asked = self.ids() if ids is None else [*dict.fromkeys(ids)]
        sizes = {each: self._size(each) for each in asked[:_MOST_FILES]}
        effort, done = Effort(MOST_READ), 0
        for memory_id in sorted(sizes, key=sizes.__getitem__):
            done += 1
            weight = times * sizes[memory_id] + _FOREIGN * min(sizes[memory_id], MAX_HEAD)
            if ids is None and not is_id(memory_id):
                broken[self.path(memory_id)] = f"{self.path(memory_id)}: {NO_ID}"
                continue
            try:
                found, head = self.weighed(memory_id)
                weight = head + times * sys.getsizeof(found.content)
                memories[memory_id] = found
            except NotFound:  # deleted meanwhile
                if ids is not None:
                    raise
                continue
            except (MalformedMemory, DiskError) as error:
                broken[self.path(memory_id)] = str(error)
            if not effort.has(_FILE + weight):
                break
        if done < len(asked):
            broken[self._name] = (
                f"{self._name}: {len(asked) - done:,} of {len(asked):,} memories, the largest, were"
                " not looked at, for together they are too large; name some by their ids, or move"
                " what is none elsewhere"
            )
        if ids is None:
            self._seen = {key: each for key, each in self._seen.items() if key in memories}
        return Scan({each: memories[each] for each in asked if each in memories}, broken)

    def _size(self, memory_id: str) -> int:
        try:
            return os.lstat(self._file(memory_id)).st_size
        except (OSError, ValueError):
            return 0

    # --- writing --------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only one who writes; what a writer that was killed has left is cleared away.

        Raises:
            Busy: another process holds the lock for too long.
            DiskError: the directory cannot be made or locked.
        """
        try:
            make_directory(self.directory, 0o777)  # a repository's, for all whom the umask lets
            self._check_links()
            with alone(self.directory, LOCK_SECONDS):
                clear_unfinished(self.directory)
                yield
        except OSError as error:
            raise disk_error(self._name, error) from error

    def add(self, new: Memory) -> None:
        """Write a memory that is not there yet, while `writing`.

        Raises:
            InvalidInput: another file would have the same name on some systems.
            DiskError: the disk refused.
        """
        for other in self.ids():
            if other.lower() == new.id.lower():
                raise InvalidInput(f"id: {new.id} differs from {other} by case alone; take another")
        lines = [line for key, value in new.stated().items() for line in block(key, value)]
        self.put(new.id, "\n".join(["---", *lines, "---", "", new.content, ""]))

    def change(self, memory_id: str, changes: Mapping[str, Any], content: str | None) -> bool:
        """Change some entries of a memory, and its text where one is given, while `writing`.

        All else keeps its bytes.

        Returns:
            Whether anything was to be changed.

        Raises:
            NotFound, MalformedMemory, DiskError: as `document`; or the file is written so that
                the change would touch more than it may.
        """
        document = self.document(memory_id)
        text = updated(document, changes)
        if content is not None:
            text = _with_body(text, content)
        if text == document.text and text == self.text(memory_id, settle=False):
            return False
        after = read(text)
        for key in {*document.root.value, *after.root.value} - {*changes}:
            if document.root.value.get(key) != after.root.value.get(key):
                raise MalformedMemory(
                    f"{self.path(memory_id)}: {key} depends on what would be changed; edit the file"
                )
        memory(after, memory_id)
        self.put(memory_id, text)
        return True

    def delete(self, memory_id: str) -> None:
        """Delete a memory's file, while `writing`, whether or not it can be read.

        Raises:
            NotFound: there is none.
            DiskError: the disk refused.
        """
        if not is_id(memory_id):
            raise NotFound(f"there is no memory {memory_id[:150]!r}")
        try:
            Path(self._file(memory_id)).unlink()
            sync_directory(self.directory)
        except FileNotFoundError:
            raise NotFound(f"there is no memory {memory_id}") from None
        except OSError as error:
            raise disk_error(self.path(memory_id), error) from error

    def put(self, memory_id: str, text: str) -> None:
        """Write a memory's whole file, while `writing`.

        Raises:
            InvalidInput: it is too large.
            DiskError: the disk refused.
        """
        path = Path(self._file(memory_id))
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > MAX_FILE:
            raise InvalidInput(f"content: the file would have more than {MAX_FILE // 1024} KiB")
        if _head(data) > MAX_HEAD:
            raise InvalidInput(f"citations, links, tags: {_LONG_HEAD}")
        try:
            replace(path, data)
        except OSError as error:
            raise disk_error(self.path(memory_id), error) from error


# What a byte of a head weighs, a citation or a link, and a file: as long as each takes.
_USUAL, _UNUSUAL, _FOREIGN, _ENTRY, _FILE = 8, 32, 256, 256, 2048

_LONG_HEAD = f"the frontmatter is longer than {MAX_HEAD // 1024} KiB"


def _head(data: bytes) -> int:
    """Return how many bytes of a file its frontmatter has; all of them where it does not end."""
    end = data.find(b"\n---", 3)
    return len(data) if end < 0 else end


def _with_body(text: str, content: str) -> str:
    document = read(text)
    body = text[document.body :]
    if body.replace("\r\n", "\n").strip("\n") == content:
        return text
    newline = "\r\n" if "\r\n" in text[: document.body] else "\n"
    return f"{text[: document.body]}{newline}{content.replace(chr(10), newline)}{newline}"
